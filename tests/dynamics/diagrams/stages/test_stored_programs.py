"""Which stages are stored, and that a stored one is the program that was compiled."""

import os
import subprocess
import sys

import equinox as eqx
import jax
import numpy as np
import pytest

from statmech_attn import dmft, dynamics
from statmech_attn.batches.compiled import kept_programs
from statmech_attn.dynamics.diagrams.stages import stored_programs
from statmech_attn.dynamics.diagrams.stages.stored_programs import origin_of
from statmech_attn.native.program import FOLDER


COMPUTE = """
import sys
import numpy as np
import statmech_attn
from statmech_attn import studies
from statmech_attn.batches.compiled import programs
from statmech_attn.dynamics.diagrams.stages import stages
from statmech_attn.native import program

statmech_attn.setup()
without, kept = lambda *parts: None, stages.origin_of
lower, traced = programs.jax.jit, []
def jit(function, **how):
    made = lower(function, **how)
    class Counted:
        def lower(self, *examples):
            traced.append(function.__qualname__)
            return made.lower(*examples)
    return Counted() if "compiler_options" in how else made
programs.jax.jit = jit
make_jaxpr = program.jax.make_jaxpr
def make(function, **how):
    traced.append(function.__qualname__)
    return make_jaxpr(function, **how)
program.jax.make_jaxpr = make
for compiler in ("xla", "llvm"):
    study = studies.parse({
        "kind": "bifurcation",
        "parameters": {"beta": [1.0, 1.27, 2.0]},
        "run": {"transient": 200, "steps": 400, "exponents": 0, "compiler": compiler},
    })
    for stages.origin_of in [without, kept] if "first" in sys.argv[1] else [kept]:
        programs.jax.clear_caches()
        traced.clear()
        result = studies.run(study)
    numbers = {n: x.values for n, x in result.items() if x.dtype != object}
    np.savez(sys.argv[1] + compiler, **numbers)
    print(len(traced))
"""


def compute(folder, name):
    """Stages that a process traces by each compiler, and the bytes of its diagram."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "store")}
    words = [sys.executable, "-c", COMPUTE, str(folder / name)]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True
    )
    computed = {}
    for compiler, traced in zip(("xla", "llvm"), done.stdout.split(), strict=True):
        with np.load(folder / f"{name}{compiler}.npz") as arrays:
            computed[compiler] = (
                int(traced),
                {n: x.tobytes() for n, x in arrays.items()},
            )
    return computed


@pytest.mark.slow
def test_a_second_process_traces_no_stage_unless_it_is_damaged(tmp_path):
    """It has the same numbers to the last bit."""
    first, second = compute(tmp_path, "first"), compute(tmp_path, "second")
    for kept in (kept_programs.FOLDER, FOLDER):
        for entry in (tmp_path / "store" / kept).glob("*"):
            entry.write_bytes(entry.read_bytes()[:-1])
    damaged = compute(tmp_path, "damaged")
    for compiler in ("xla", "llvm"):
        assert first[compiler][0] == 2 and second[compiler][0] == 0
        assert first[compiler][1] == second[compiler][1]
        assert first[compiler] == damaged[compiler]


@pytest.fixture
def network():
    file = dmft.load("poclopez-pe2")
    return dmft.network(file.patterns, context=file.context)


def test_stages_of_one_network_are_known_apart(network, monkeypatch):
    monkeypatch.setattr(stored_programs, "_source", lambda: "source")
    system = dmft.system(network)
    assert origin_of(system, 4) == origin_of(dmft.system(network), 4)
    other = dmft.system(network, epsilon=0.0)
    assert other.drive_period != system.drive_period
    assert origin_of(other, 4) != origin_of(system, 4)
    assert origin_of(system, 5) != origin_of(system, 4)
    with jax.default_matmul_precision("highest"):
        highest = origin_of(system, 4)
    assert highest != origin_of(system, 4)


class Step(eqx.Module):
    """A step that somebody else has written."""

    def __call__(self, state, parameters):
        return 1.5 * state


def without_module():
    """A function of a text, as of a page of the documentation."""
    names = {}
    exec("def step(x):\n    return 1.5 * x", {"__name__": None}, names)
    assert names["step"].__module__ is None
    return names["step"]


@pytest.mark.parametrize("step", [lambda x: 1.5 * x, Step(), np.sin, without_module()])
def test_a_system_of_ones_own_is_traced(step):
    assert origin_of(dynamics.System(step)) is None


def test_a_changed_package_keeps_no_stages(network, monkeypatch):
    """What this process has imported may be older than the files."""
    stored_programs._source.cache_clear()
    monkeypatch.setattr(stored_programs.psutil.Process, "create_time", lambda self: 0.0)
    assert origin_of(dmft.system(network)) is None
    stored_programs._source.cache_clear()
