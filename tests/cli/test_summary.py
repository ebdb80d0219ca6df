"""The summary of a file that does not fit into memory."""

import io
import tracemalloc

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from statmech_attn import storage
from statmech_attn.cli import summary


LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
POINTS, SAMPLES = 4000, 1000


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    """A bifurcation file with a section of 32 MB."""
    path = tmp_path_factory.mktemp("scan") / "scan.h5"
    rng = np.random.default_rng(0)
    phase = rng.integers(0, 8, POINTS).astype("i1")
    small = xr.Dataset(
        {
            "phase": ("beta", phase, LABELS),
            "phase_paper": ("beta", phase, LABELS),
            "lyapunov": (("beta", "exponent"), rng.normal(size=(POINTS, 3)), LABELS),
        },
        coords={"beta": ("beta", np.linspace(1, 2, POINTS), LABELS)},
    )
    block = np.zeros((500, SAMPLES))
    section = storage.Column(
        ("beta", "sample"),
        (POINTS, SAMPLES),
        block.dtype,
        LABELS,
        lambda: iter([block] * (POINTS // 500)),
    )
    study = 'kind = "bifurcation"'
    storage.write(path, small, study=study, columns={"section": section})
    return path


def printed(dataset: xr.Dataset) -> str:
    text = io.StringIO()
    summary.print_summary(dataset, Console(file=text, width=120))
    return text.getvalue()


def test_a_large_file_is_summarised_without_reading_all_of_it(scan, monkeypatch):
    expected = printed(storage.read(scan))
    assert "agrees at 100.0 %" in expected and "fixed" in expected
    monkeypatch.setattr(summary, "AT_ONCE", 0)
    with storage.opened(scan) as dataset:
        tracemalloc.start()
        found = printed(dataset)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == expected
    assert peak < 4 * 2**20


def test_points_that_failed_are_counted_and_have_no_phase():
    along = lambda values: ("beta", values, LABELS)
    phase = np.array([0, 7, 7], "i1")
    found = xr.Dataset(
        {
            "phase": along(phase),
            "phase_paper": along(np.array([0, 7, 0], "i1")),
            "lyapunov": (
                ("beta", "exponent"),
                np.array([[1.0], [2.0], [np.nan]]),
                LABELS,
            ),
            "failure": along(np.array([0, 0, 2], "i1")),
        },
        coords={"beta": along(np.arange(3.0))},
        attrs={"kind": "bifurcation", "failure_reasons": ["it broke (1 points)"]},
    )
    console = Console(file=io.StringIO(), width=40)
    summary.print_summary(found, console)
    said = console.file.getvalue()
    assert "1 of 3 points have no numbers: it broke (1 points)\n" in said
    assert "agrees at 100.0 %" in " ".join(said.split())
