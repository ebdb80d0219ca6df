r"""Equilibria of a flow are fixed points of its time map.

Lorenz (1963) with sigma = 10, b = 8/3: the origin has a pitchfork at r = 1, and the two
equilibria born there lose stability in a Hopf bifurcation at

    r = sigma (sigma + b + 3) / (sigma - b - 1) = 470/19,   omega^2 = b (sigma + r)

(Routh-Hurwitz), which is subcritical (C. Sparrow, *The Lorenz Equations*, Springer
1982).  In the map over a time tau it is a Neimark-Sacker point with rotation number
omega tau / 2 pi.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import flow
from statmech_attn.dynamics.continuation import follow_cycle, Problem, Settings


TIME = 0.1


def lorenz(state, p):
    def field(s):
        x, y, z = s
        return jnp.array([10 * (y - x), x * (p["r"] - z) - y, x * y - 8 / 3 * z])

    return flow(field, time=TIME, substeps=10).step(state)


@pytest.mark.slow
def test_lorenz_pitchfork_and_subcritical_hopf():
    problem = Problem(lorenz, jnp.zeros(3), {"r": 20.0}, "r")
    x = np.sqrt(8 / 3 * 19)
    settings = Settings(largest_step=0.5)
    branch = follow_cycle(
        problem,
        jnp.array([x, x, 19.0]),
        20.0,
        direction=-1,
        within=(0.5, 26.0),
        settings=settings,
    ).run()
    # Down to the pitchfork, and up again on the other, symmetric equilibrium.
    pitchfork, hopf = branch.special
    assert (
        pitchfork.kind == "pitchfork" and pitchfork.form.criticality == "supercritical"
    )
    assert abs(pitchfork.value - 1) < 1e-10
    assert hopf.kind == "neimark_sacker" and hopf.form.criticality == "subcritical"
    r = 470 / 19
    # An order-8 solver with steps of 0.01: errors of the multipliers near 1e-13.
    assert abs(hopf.value - r) < 1e-10
    frequency = np.sqrt(8 / 3 * (10 + r)) / (2 * np.pi)
    assert hopf.form.rotation / TIME == pytest.approx(frequency, rel=1e-10)
    np.testing.assert_allclose(hopf.x, [-np.sqrt(8 / 3 * (r - 1))] * 2 + [r - 1])
