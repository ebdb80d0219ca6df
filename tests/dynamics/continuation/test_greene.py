"""Residues of cycles of the standard map, and the break-up of its golden torus."""

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import (
    critical_parameter,
    find_long_cycle,
    greene,
    greene_residue,
    Problem,
)
from statmech_attn.validation.families import standard


GOLDEN = [(5, 8), (8, 13), (13, 21), (21, 34), (34, 55), (55, 89)]
CRITICAL = 0.97163540631  # Greene (1979), MacKay (1983)


def standard_map(K=0.0):
    return Problem(standard, jnp.zeros(2), {"K": K, "bias": 0.0}, "bias")


def turns(p, q, angle=0.0):
    return np.stack([angle + np.arange(q) * p / q, np.full(q, p / q)], axis=1)


@pytest.mark.slow
def test_residues_of_short_cycles_are_closed_forms():
    """Fixed points at angles 0 and 1/2: R = K/4 and -K/4.  Period 2: R = K^2/4.

    The cycle of period 2 is (0, 1/2), (1/2, 1/2): tr = 2 - K^2, of the two shears.
    """
    at = standard_map(0.8)
    fixed = [
        find_long_cycle(at, np.array([[angle, 0.0]]), 0.0, held=0)
        for angle in (0.0, 0.5)
    ]
    two = find_long_cycle(at.with_period(2), turns(1, 2), 0.0, shift=(1, 0), held=0)
    for cycle, exact in zip([*fixed, two], [0.2, -0.2, 0.16], strict=True):
        residue, error = greene_residue(cycle)
        assert abs(residue - exact) < 3 * error + 1e-15 and error < 1e-13


@pytest.mark.slow
def test_an_unbroken_area_needs_no_bias():
    """Of cycles that are held by an angle on the symmetry line the bias is rounding."""
    cycle = find_long_cycle(
        standard_map(0.5).with_period(55), turns(34, 55), 0.0, shift=(34, 0), held=0
    )
    residue, error = greene_residue(cycle)
    assert cycle.converged and abs(cycle.value) < 1e-15
    assert abs(cycle.log_moduli.sum()) < 3 * cycle.error.sum()
    assert abs(residue) < 3 * error < 1e-3  # the torus exists


@pytest.mark.slow
def test_golden_torus_of_the_standard_map_breaks_up_where_it_should():
    """Values alternate about K_c, 0.38 times as far each: extrapolated to 1e-6."""
    cycles = [(turns(p, q), (p, 0)) for p, q in GOLDEN]
    found = critical_parameter(standard_map(), "K", cycles, 0.97)
    away = found.values - CRITICAL
    assert (np.sign(away[1:]) == -np.sign(away[:-1])).all()
    assert abs(found.value - CRITICAL) < found.error < 1e-6
    assert np.abs(away[1:] / away[:-1] + 0.38).max() < 0.03


def test_the_limit_of_levels_that_alternate_by_a_power_is_exact(monkeypatch):
    """Cycles by hand, of residues R* (K / K_n)^q with K_n = 1 + (-0.38)^n / 10."""

    def cycle(problem, orbit, *_, **__):
        n, q = int(orbit[0, 0]), len(orbit)
        level = 1 + (-0.38) ** n / 10
        residue = 0.2500888 * (problem.parameters["K"] / level) ** q
        turn = np.arccos(1 - 2 * residue) * np.array([1, -1])
        none = np.zeros(2)
        return SimpleNamespace(
            converged=True, orbit=orbit, log_moduli=none, angles=turn, error=none
        )

    monkeypatch.setattr(greene, "find_long_cycle", cycle)
    cycles = [(np.full((q, 2), n), (0, 0)) for n, q in enumerate((5, 8, 13, 21))]
    found = critical_parameter(standard_map(), "K", cycles, 0.97)
    np.testing.assert_allclose(found.values, 1 + (-0.38) ** np.arange(4) / 10)
    assert found.value == pytest.approx(1, abs=1e-10)
    assert found.error < 1e-10 and found.periods.tolist() == [5, 8, 13, 21]


def test_what_has_no_residue_or_no_error_is_refused():
    one: Any = SimpleNamespace(log_moduli=np.zeros(1))
    with pytest.raises(ValueError, match="two multipliers; got 1"):
        greene_residue(one)
    with pytest.raises(ValueError, match="four cycles; got 1"):
        critical_parameter(standard_map(), "K", [(turns(1, 2), (1, 0))], 0.97)
