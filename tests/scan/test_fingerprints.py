"""Code and data tell values apart, in any process; what is another one is refused."""

import functools
import os
import pathlib
import subprocess
import sys
import threading
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import statmech_attn
from statmech_attn import dynamics
from statmech_attn.dynamics import diagrams, Linearised, System
from statmech_attn.dynamics.maps.starts import start_of_each
from statmech_attn.labels import Variables
from statmech_attn.reporting import Silent
from statmech_attn.scan.fingerprints import described, fingerprint
from statmech_attn.storage import StorageError, toml


PACKAGE = pathlib.Path(statmech_attn.__file__).parent


class Kicked:
    """An object of one's own with arrays, and a method that is mended."""

    def __init__(self, strength):
        self.strength = np.full(3, strength)

    def __call__(self, x, p=None):
        return x + self.strength.sum() * self.shape(x)

    def shape(self, x):
        return jnp.sin(x)


class Mended(Kicked):
    def shape(self, x):
        return jnp.cos(x)


def weights(seed):
    return eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(seed))


square, cube = (lambda x, power=n: x**power for n in (2, 3))
inside = lambda: lambda x: jax.lax.cond(x > 0, lambda y: square(y), cube, x)
WRAPPERS = (jax.jit, jax.grad, jax.vmap, jax.checkpoint, jax.custom_jvp, eqx.filter_jit)
DIFFERENT = {
    "code": (square, lambda x: x + 1),
    "defaults": (square, cube),
    "numbers around it": [(lambda c: lambda x: c * x)(c) for c in (1.0, 2.0)],
    "functions of its module": (lambda x: square(x), lambda x: cube(x)),
    "functions called within": (inside(), lambda x: jax.lax.cond(x > 0, cube, cube, x)),
    "arrays": (np.zeros(10**4), np.eye(1, 10**4)[0]),
    "types of arrays": (np.zeros(3), np.zeros(3, np.float32)),
    "objects": (Kicked(1.0), Kicked(2.0)),
    "methods": (Kicked(1.0), Mended(1.0)),
    "bound methods": (Kicked(1.0).shape, Mended(1.0).shape),
    "networks": (weights(0), weights(1)),
    "partials": [functools.partial(cube, power=n) for n in (2, 3)],
    "transformations": (square, jax.grad(square)),
    "axes": [jax.vmap(square, in_axes=n) for n in (0, 1)],
    "sets": ({"a", "b"}, {"a", "c"}),
    "keys": jax.random.split(jax.random.key(0)),
    **{f"within {w.__name__}": (w(square), w(cube)) for w in WRAPPERS},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_code_and_data_tell_values_apart(name):
    first, second = DIFFERENT[name]
    assert fingerprint(first) != fingerprint(second)


def test_what_cannot_be_told_apart_is_refused():
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock object .* has no description by which"):
        fingerprint(lambda x: x if lock else -x)


PRINT = """
import statmech_attn, test_fingerprints as t
from statmech_attn import dmft
from statmech_attn.scan.fingerprints import described, fingerprint
statmech_attn.setup()
patterns = dmft.site_classes([[[1]], [[-1]], [[1]], [[1]]])
one, two = (described(dmft.system(dmft.network(patterns, context=1))) for _ in "12")
print(one, one == two)
print([fingerprint(x) for pair in t.DIFFERENT.values() for x in pair])
print(described({"tangent": lambda p: t.Wrong(t.logistic, p), "class": t.Wrong}))
"""


def test_fingerprints_are_those_of_any_process():
    """Whose texts have other hashes, and objects other addresses."""
    folder = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(PACKAGE.parent), str(folder)])
    first, second = (
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            **{"check": True, "capture_output": True, "text": True, "cwd": folder},
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert first.splitlines()[0].endswith("True")


def test_a_million_points_with_their_starts_are_known_at_once():
    """Arrays are read once, without a point or a start being made."""
    many = np.random.default_rng(0).normal(size=(10**6, 4))
    posed = lambda starts: diagrams.Diagram(
        System(logistic),
        diagrams.point_list({"a": many[:, 0], "b": many[:, 1]}),
        functools.partial(lambda x, params, numbers: x[numbers], starts),
        PLAN,
        Variables(),
    )
    clock = time.process_time()
    told = toml.dumps(described(posed(many)))
    assert time.process_time() - clock < 2.0
    assert len(told) < 10_000
    other = many.copy()
    other[500_000, 2] += 1e-9
    assert described(posed(other))["start"] not in told


# Of the review of what hand-written identities left out.

LOGISTIC = {"r": [3.0, 3.83, 4.0]}
PLAN = diagrams.Plan(100, 100, exponents=1, compiler="xla", max_doublings=0)


def logistic(x, p):
    return p["r"] * x * (1 - x)


class Wrong(Linearised):
    def push(self, lifted, frame):
        after, frame = super().push(lifted, frame)
        return after, 2 * frame


def bump(height):
    return lambda p: 0.3 + height * (p["r"] - 3.0) * (4.0 - p["r"])


def scan(file, start=bump(0.0), **parts):
    system = System(logistic, **parts)
    return dynamics.diagram(system, LOGISTIC, start, PLAN, file=file)


OTHERS = {
    "system.tangent": {"tangent": lambda p: Wrong(logistic, p)},
    "system.observe": {"observe": lambda x: 0 * x},
    "system.unit": {"unit": "year"},
    "start": {"start": bump(0.9)},  # at the value in the middle alone
}


def test_a_diagram_of_another_system_or_start_is_refused_by_its_name(
    tmp_path, monkeypatch
):
    file = tmp_path / "scan.h5"
    scan(file)
    for word, parts in OTHERS.items():
        with pytest.raises(StorageError, match=rf"study \(.*{word}: ") as refused:
            scan(file, **parts)
        assert "\n" not in str(refused.value)
    monkeypatch.setattr(diagrams.GridWork, "rows", None)
    scan(file)


class Stopping(Silent):
    done = 0.0

    def advance(self, work):
        self.done += work
        if self.done > 1.5:
            raise KeyboardInterrupt


def test_a_stopped_run_does_not_go_on_with_another_system(tmp_path):
    file = tmp_path / "scan.h5"
    axes = diagrams.axes_of(LOGISTIC)
    start = functools.partial(start_of_each, jnp.array(0.3))
    posed = axes, start, PLAN, diagrams.variables(axes.labels, unit="step")
    work = lambda **parts: diagrams.diagram_work(
        diagrams.Diagram(System(logistic, **parts), *posed), batch=1
    )
    wrong = work(tangent=lambda p: Wrong(logistic, p))
    with pytest.raises(KeyboardInterrupt):
        wrong.run(file, Stopping(), points_per_chunk=1)
    assert not file.exists()
    with pytest.raises(StorageError, match=r"was begun.*system\.tangent: .*absent"):
        work().run(file, points_per_chunk=1)


def test_entries_of_a_value_are_those_of_toml():
    said = described({"name": "x", "values": (1, 2.5), "seed": None})
    assert said == {"name": "x", "values": [1, 2.5]}
