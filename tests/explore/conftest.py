"""Scans that nothing was computed for, and a server of them."""

import json
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.dynamics import diagrams, PHASES
from statmech_attn.labels import Variable


STUDY = 'kind = "bifurcation"\n[parameters]\nbeta = { start = 1, stop = 2, num = 5 }\n'
PARAMETERS = [
    Variable("beta", "", "inverse temperature of the output", "1", "β"),
    Variable("gamma", "", "inverse temperature of attention", "1", "γ"),
]
TABLE = diagrams.variables(PARAMETERS, unit="token", shown="overlap", symbol="m")
WHOLE = ("period", "reasons", "n_positive", "window", "horizon", "doubtful")


def scan(values: dict[str, np.ndarray], samples: np.ndarray, **verdicts) -> xr.Dataset:
    """A scan with these samples; points are fixed where no other verdict is given."""
    names, shape = tuple(values), samples.shape[:-1]
    zeros = lambda *more: np.zeros((*shape, *more))
    variables: dict[str, Any] = {
        "section": ((*names, "sample"), samples),
        "section_count": (names, zeros().astype(int) + samples.shape[-1]),
        "strobe": ((*names, "strobe_sample"), samples[..., :1]),
        "phase": (names, zeros().astype(np.int8)),
        "phase_paper": (names, zeros().astype(np.int8)),
    }
    numbers = ("rotation_number", "recurrence_error", "zero_one", "broadband")
    numbers += ("convergence_digits", "quarter_disagreement", "drift")
    variables |= {name: (names, zeros().astype(int)) for name in WHOLE}
    variables |= {name: (names, zeros()) for name in numbers}
    for name in ("lyapunov", "lyapunov_stderr", "lyapunov_weighted"):
        variables[name] = ((*names, "exponent"), zeros(2))
    variables["lyapunov_source"] = ((*names, "exponent"), zeros(2).astype(np.int8))
    for name, given in verdicts.items():
        variables[name] = (variables[name][0], given)
    coordinates = {
        **values,
        "exponent": np.arange(1, 3),
        "sample": np.arange(samples.shape[-1]),
        "strobe_sample": np.arange(1),
    }
    attributes = {"section_tolerance": 1e-3, "clock_period": 1, "refine": 0}
    return TABLE.labelled(variables, coordinates).assign_attrs(attributes)


@pytest.fixture(scope="session")
def made_scan():
    """The function `scan`."""
    return scan


@pytest.fixture(scope="session")
def line(tmp_path_factory) -> Path:
    """A scan of 40 values of beta, the last quarter of which is chaotic."""
    beta = np.linspace(1, 2, 40)
    samples = np.random.default_rng(0).normal(size=(40, 32)) * (beta > 1.5)[:, None]
    samples[3, 5:] = np.nan
    phase = np.where(beta > 1.75, PHASES.index("chaotic"), PHASES.index("periodic"))
    dataset = scan(
        {"beta": beta},
        samples,
        phase=phase.astype(np.int8),
        period=np.where(beta > 1.75, 0, 4),
        lyapunov=np.stack([beta - 1.75, beta - 3], axis=1),
        lyapunov_stderr=np.full((40, 2), 1.5e-3),
        lyapunov_weighted=np.stack([beta - 1.75, beta - 3], axis=1),
    )
    path = tmp_path_factory.mktemp("line") / "<b>scan<b>.h5"
    storage.write(path, dataset, study=STUDY, kind="bifurcation")
    return path


@pytest.fixture(scope="session")
def plane(tmp_path_factory) -> Path:
    """A scan of 7 by 5 points."""
    values = {
        "beta": np.linspace(1, 2, 7),
        "gamma": np.array([9.0, 1.0, 3.0, 2.0, 6.0]),
    }
    samples = np.zeros((7, 5, 1))
    beta, gamma = np.meshgrid(*values.values(), indexing="ij")
    lyapunov = np.stack([beta - gamma / 4, -beta * gamma], axis=-1)
    period = (beta > 1.5) * np.arange(5)
    exponents = {"lyapunov": lyapunov, "lyapunov_weighted": lyapunov}
    dataset = scan(values, samples, period=period, **exponents)
    path = tmp_path_factory.mktemp("plane") / "plane.h5"
    storage.write(path, dataset, study=STUDY, kind="bifurcation")
    return path


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    body: bytes
    headers: Any

    @property
    def told(self) -> Any:
        """The JSON of the body."""
        return json.loads(self.body)

    @property
    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays."""
        length = int.from_bytes(self.body[:4], "little")
        header = json.loads(self.body[4 : 4 + length])
        arrays = {}
        for name, array in header.pop("arrays").items():
            values = np.frombuffer(
                self.body, array["type"], array["size"], 4 + length + array["place"]
            )
            arrays[name] = values.reshape(array["shape"])
        return header, arrays


class Page:
    """Asks as the page of an explorer does."""

    def __init__(self, address: str):
        self.address = address
        self.origin = "/".join(address.split("/")[:3])

    def __call__(self, name: str, **asked: Any) -> Answer:
        return self.send(f"api/{name}", asked, Origin=self.origin)

    def send(self, path: str, asked: Any = None, **headers: str) -> Answer:
        """A request with these headers, a POST where something is asked."""
        address = path if path.startswith("http") else self.address + path
        body = None if asked is None else json.dumps(asked).encode()
        request = urllib.request.Request(address, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, answer.read(), answer.headers)
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read(), error.headers)

    def ready(self) -> list[dict[str, Any]]:
        """The files, once all of them have been opened."""
        while any(f["state"] == "opening" for f in self("files").told["files"]):
            time.sleep(0.02)
        return self("files").told["files"]


@pytest.fixture(autouse=True)
def _opened_with_the_test():
    """No file is being opened or warmed up any more when the next test begins.

    Checked functions draw from `random` and would change its state under that test.
    """
    yield
    for thread in threading.enumerate():
        if thread.name.endswith("(prepare)"):
            thread.join()


@pytest.fixture(scope="session")
def make_page():
    """The class `Page`."""
    return Page


@pytest.fixture(scope="session")
def page(line, plane):
    """The page of both scans."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    from statmech_attn.explore.explorer import Explorer

    with Explorer([line, plane], warm=False) as explorer:
        asking = Page(explorer.address)
        asking.ready()
        yield asking
