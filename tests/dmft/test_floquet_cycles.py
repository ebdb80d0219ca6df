"""The cycles of `floquet.json`, made without the package, are orbits of its map."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from statmech_attn import dmft


REFERENCE = json.loads(Path(__file__).with_name("floquet.json").read_text())
CYCLES = REFERENCE["cycles"]
PERIODS = np.array([cycle["period"] for cycle in CYCLES])


@pytest.fixture(scope="module")
def orbits():
    """Windows (cycles, time, MC) and Jacobians (cycles, time, MC, MC) of all cycles."""
    file = dmft.load(REFERENCE["patterns"])
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(
        [cycle["beta"] for cycle in CYCLES], REFERENCE["gamma"], REFERENCE["epsilon"]
    )

    def follow(params, z):
        def body(state, _):
            shown = dmft.window(state).ravel(), dmft.jacobian(net, params, state)
            return dmft.step(net, params, state), shown

        state = dmft.from_window(net, params, z, 0)
        return jax.lax.scan(body, state, None, length=int(PERIODS.max()) + 1)[1]

    windows = np.array([cycle["window"] for cycle in CYCLES])
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(follow))(params, windows))


def test_every_orbit_returns_after_its_period_within_rounding(orbits):
    # A score gamma sum_b q_b k_b of M = 3 products is wrong by at most
    # gamma M (M + 2 (S + 4)) u: sums over M and over S classes, tanh to 4 u.  An
    # attention vector, an average of overlaps within [-1, 1], is then wrong by twice
    # that, and the Jacobians that follow carry the error to the end of the period.
    # Kept windows are rounded to u.
    M = S = 3
    one_step = 2 * REFERENCE["gamma"] * M * (M + 2 * (S + 4)) * np.finfo(float).eps
    for cycle, windows, jacobians in zip(CYCLES, *orbits, strict=True):
        period, carried, gain = cycle["period"], np.eye(12), 1.0
        for jacobian in jacobians[period - 1 :: -1]:
            carried = carried @ jacobian
            gain += np.abs(carried).sum(axis=1).max()
        distance = np.abs(windows[period] - windows[0]).max()
        assert distance <= gain * one_step, cycle["beta"]


def test_no_orbit_returns_earlier(orbits):
    for cycle, windows in zip(CYCLES, orbits[0], strict=True):
        distance = np.abs(windows[1 : cycle["period"]] - windows[0]).max(axis=1)
        assert distance.min() > 1e-9, cycle["beta"]


def test_the_exponents_add_up_to_the_mean_logarithm_of_the_determinant(orbits):
    # Every Jacobian is a shift with the block of the oldest vector at its end.
    for cycle, jacobians in zip(CYCLES, orbits[1], strict=True):
        blocks = jacobians[: cycle["period"], :3, -3:]
        logarithms = np.linalg.slogdet(blocks)[1]
        assert sum(cycle["exponents"]) == pytest.approx(logarithms.mean(), rel=1e-9)
