"""Orbits along a parameter, from Python, in memory and in files that go on."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics, layout, storage, studies
from statmech_attn.dynamics import System
from statmech_attn.dynamics.maps.catalogue import henon


GRID = {"a": [0.2, 1.2, 2.5], "b": 0.3}


def orbits(step=henon, **changes):
    given = {"steps": 30, "transient": 5, "observables": ["x", "y"]} | changes
    return dynamics.trajectories(step, GRID, jnp.zeros(2), **given)


def test_rows_are_the_iterated_map():
    observed = orbits().compute().observed
    for a, row in zip(GRID["a"], observed.values):
        state, expected = jnp.zeros(2), []
        for _ in range(35):
            expected.append(state)
            state = jax.jit(henon)(state, {"a": a, "b": 0.3})
        expected = np.array(expected[5:])
        finite = np.isfinite(expected).all(axis=1) & (np.abs(expected) < 1e6).all(1)
        assert finite.all() or a == 2.5
        np.testing.assert_allclose(row[finite], expected[finite], rtol=1e-9, atol=1e-12)
    assert observed.dims == ("a", "time", "observable")


def test_a_file_is_a_whole_one_and_another_map_is_refused(tmp_path):
    """A row that diverges says why; cuts between chunks change no bit."""
    path = tmp_path / "orbits.h5"
    computed = orbits().run(path, points_per_chunk=8)
    layout.require_layout(computed, path)
    assert computed.failure.values.tolist() == [0, 0, 1]
    assert "henon diverges" in computed.attrs["failure_reasons"]
    in_memory = orbits().compute()
    assert set(in_memory.variables) == set(computed.variables)
    for name, values in in_memory.variables.items():
        np.testing.assert_array_equal(computed[name], values, str(name))
    written = path.stat().st_mtime_ns
    orbits().run(path)
    assert path.stat().st_mtime_ns == written
    others = [
        orbits(lambda x, p: henon(x, p) + 1e-9),
        orbits(steps=31),
        orbits(transient=6),
        orbits(observables=["x", "z"]),
    ]
    for other in others:
        with pytest.raises(storage.StorageError, match="holds another study"):
            other.run(path)


def test_a_start_may_depend_on_the_parameters():
    start = lambda p: jnp.stack([p["a"], 0.0 * p["b"]])
    observed = dynamics.trajectories(henon, GRID, start, steps=1).compute().observed
    assert observed.sel(observable="x_1").values[:, 0].tolist() == GRID["a"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observables": ["x"]}, "the system has 2 observables"),
        ({"steps": 10**9}, "steps: these trajectories need"),
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"transient": -5}, "transient must be at least 0; got -5"),
        ({"step": lambda x, p: p["c"] * x}, "asks for the parameter 'c'"),
        ({"step": lambda x, p: x[:1]}, "step must return a state like"),
    ],
)
def test_mistakes_are_one_line(changes, message):
    with pytest.raises(ValueError, match=message):
        orbits(**changes)


@pytest.mark.slow
def test_a_network_from_python_has_the_numbers_of_its_study(tmp_path):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    grid = {"beta": [0.7, 1.4], "gamma": file.gamma, "epsilon": file.epsilon}
    start = lambda params: dmft.from_row(net, params, 0)
    points = dmft.trajectories(net, grid, start, steps=12, noise=file.patterns)
    python = points.run(tmp_path / "python.h5")
    study = studies.parse(
        {
            "kind": "trajectory",
            "parameters": {"beta": grid["beta"]},
            "run": {"start": "token", "steps": 12, "noise": True},
        }
    )
    of_study = studies.run(study)
    assert set(python.variables) == set(of_study.variables)
    for name, values in of_study.variables.items():
        np.testing.assert_array_equal(python[name], values, str(name))
    assert python.network == of_study.network
    with pytest.raises(ValueError, match="gamma must be one number; only beta"):
        dmft.trajectories(
            net, grid | {"beta": 1.0, "gamma": [1.0, 2.0]}, start, steps=2
        )


def test_time_has_one_unit_in_theory_simulation_and_comparison():
    modules = (
        "dmft.along_beta.trajectories",
        "montecarlo.finite_networks.dataset",
        "comparison.trajectories",
    )
    for name in modules:
        module = importlib.import_module(f"statmech_attn.{name}")
        assert module.VARIABLES.variable("time") == dmft.TIME
    assert dmft.TIME.units == "token"
    years = System(lambda x, p: x, unit="year")
    orbits = dynamics.trajectories(years, {"a": [0.0, 1.0]}, jnp.zeros(1), steps=2)
    assert orbits.variables.variable("time").units == "year"
