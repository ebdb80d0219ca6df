"""Sweeps that follow transients alone keep the attractor that they come from."""

import importlib.util
import pathlib

import numpy as np
import pytest

from statmech_attn.dynamics import diagrams, System


PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "analysis" / "pe5_sweeps.py"
FOLD = 2 / np.sqrt(27)


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("pe5_sweeps", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cubic(state, p):
    """x' = r + x - x^3 by Euler steps; two stable states between the folds."""
    x = state["x"]
    return {"x": x + 0.1 * (p["r"] + x - x**3), "tokens": state["tokens"] + 1}


def test_states_are_followed_through_the_hysteresis_of_a_cubic(program):
    r = np.linspace(-1, 1, 21)[np.random.default_rng(0).permutation(21)]
    diagram = diagrams.Diagram(
        System(cubic),
        diagrams.axes_of({"r": r}),
        lambda params, numbers: {"x": 0 * params["r"], "tokens": np.array(0)},
        diagrams.Plan(transient=2000, steps=64, exponents=0),
        diagrams.VARIABLES,
    )
    upward = np.argsort(r)
    way = np.stack([upward, upward[::-1]], axis=1)
    states = program.followed(diagram, way)
    up, down = np.asarray(states["x"]).T
    sorted_r = r[upward]
    assert (np.sign(up) == np.where(sorted_r > FOLD, 1, -1)).all()
    assert (np.sign(down[::-1]) == np.where(sorted_r < -FOLD, -1, 1)).all()
    residual = r[way] + states["x"] - states["x"] ** 3
    assert np.abs(residual).max() < 1e-9
    np.testing.assert_array_equal(states["tokens"], 2000 * np.arange(1, 22))
