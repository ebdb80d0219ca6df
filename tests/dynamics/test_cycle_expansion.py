"""Cycle expansions: exact escape rates, exponents and entropies, and their errors."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebpts1, chebvander

from statmech_attn.dynamics import cycle_expansion, unstable_cycles


NEAR = np.linspace(0, 1, 8)[None]  # starts where orbits escape


def logistic(x, p):
    return p["r"] * x * (1 - x)


def tent(x):
    """Two whole branches of slopes 3 and -4, between which orbits escape."""
    return jnp.where(x < 0.5, 3 * x, 4 * (1 - x))


def henon(x):
    return jnp.stack([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])


def cycles_of_logistic(r):
    return unstable_cycles(
        logistic, jnp.array(0.3), {"r": r}, period=9, transient=0, near=NEAR
    )


@pytest.fixture(scope="module")
def of_tent():
    return unstable_cycles(tent, jnp.array(0.3), period=6, transient=0, near=NEAR)


def test_two_linear_branches_are_exact_at_every_order(of_tent):
    """Of the zeta function; the n-th factor of the determinant has 3^-n and 4^-n."""
    expansion = cycle_expansion(of_tent)
    determinant = cycle_expansion(of_tent, function="determinant")
    shares = np.array([1 / 3, 1 / 4])
    exponent = shares @ -np.log(shares) / shares.sum()
    each = np.ones(6)
    escape = -np.log(shares.sum())
    assert expansion.escape_rates == pytest.approx(escape * each, abs=1e-13)
    assert expansion.exponents == pytest.approx(exponent * each, abs=1e-13)
    assert expansion.entropies == pytest.approx(np.log(2) * each, abs=1e-13)
    away = abs(determinant.escape_rates - escape)
    assert (away[1:] < away[:-1] / 3.0 ** np.arange(1, 6)).all()
    assert away[-1] < determinant.error(determinant.escape_rates)


@pytest.mark.slow
def test_truncations_for_the_logistic_map_miss_what_they_leave_out():
    r"""1/zeta is (1 - z)(1 - z/4)/(1 - z/2) at r = 4, with coefficients -2^-(n+1).

    Its truncation has the zero 1 + 2^-n/3, to second order in 2^-n.
    """
    expansion = cycle_expansion(cycles_of_logistic(4.0))
    order = np.arange(3, 10)
    away = 2.0**-order / 3
    assert (abs(expansion.escape_rates[2:] - away) < 3 * order * away**2).all()
    assert expansion.entropies == pytest.approx(np.full(9, np.log(2)), abs=1e-12)
    for values, exact in (
        (expansion.exponents, np.log(2)),
        (expansion.escape_rates, 0),
    ):
        assert abs(values[-1] - exact) < expansion.error(values) < 2 * away[1]


@pytest.mark.slow
def test_escape_rates_are_those_of_the_transfer_operator():
    """Its leading eigenvalue at r = 5, on polynomials: both branches are analytic."""
    points = chebpts1(40)
    operator = np.zeros((40, 40))
    for sign in (1, -1):
        x = (1 + sign * np.sqrt(1 - 4 * (points + 1) / 10)) / 2
        operator += chebvander(2 * x - 1, 39) / (5 * abs(1 - 2 * x))[:, None]
    values = np.linalg.eigvals(np.linalg.solve(chebvander(points, 39), operator))
    exact = -np.log(abs(values).max())
    cycles = cycles_of_logistic(5.0)
    zeta = cycle_expansion(cycles)
    determinant = cycle_expansion(cycles, function="determinant")
    # The remainder of F falls faster than exponentially: at order 7 it is rounding.
    assert determinant.escape_rates[6:] == pytest.approx(np.full(3, exact), abs=1e-13)
    assert abs(zeta.escape_rates[-1] - exact) < zeta.error(zeta.escape_rates)
    assert zeta.escape_rates[-1] == pytest.approx(exact, abs=1e-9)
    # Of the two sums over cycles alike, though term by term they differ.
    error = zeta.error(zeta.exponents)
    away = abs(zeta.exponents[-1] - determinant.exponents[-1])
    assert away < error and away < 1e-8


@pytest.mark.slow
def test_henon_within_the_error_of_its_truncations():
    """Exponent 0.4192 of long orbits, entropy 0.46469 at least (Newhouse et al., 2008).

    A cycle of 13 steps next to a tangency hardly expands: the exponent comes slowly.
    """
    cycles = unstable_cycles(henon, jnp.array([0.1, 0.2]), period=13)
    expansion = cycle_expansion(cycles.where(cycles.distance < 0.02))
    for order in range(7, 14):
        for values, exact in (
            (expansion.exponents, 0.4192),
            (expansion.entropies, 0.46469),
            (expansion.escape_rates, 0),
        ):
            error = expansion.error(values[:order])
            assert abs(values[order - 1] - exact) < error
    assert expansion.error(expansion.exponents) < 0.2
    assert expansion.error(expansion.entropies) < 0.1


def test_no_cycles_and_unknown_functions_are_refused(of_tent):
    with pytest.raises(ValueError, match="no cycles"):
        cycle_expansion(of_tent.where(of_tent.length > 6))
    with pytest.raises(ValueError, match="zeta or determinant"):
        cycle_expansion(of_tent, function="trace")  # pyright: ignore[reportArgumentType]


def test_hidden_multipliers_contract_behind_contracting_ones_or_are_refused(of_tent):
    """Two exponents of every cycle, of which the second is lost or hidden."""
    cycles = eqx.tree_at(lambda c: c.signs, of_tent, of_tent.signs.repeat(2, axis=1))
    values = lambda exponents, function: (
        cycle_expansion(
            eqx.tree_at(lambda c: c.exponents, cycles, exponents), function=function
        ).escape_rates
    )
    lost, hidden = (of_tent.exponents.repeat(2, axis=1) for _ in range(2))
    lost[:, 1], hidden[:, 1] = -np.inf, np.nan
    hidden[:, 0] = lost[:, 0] = -0.1
    for function in ("zeta", "determinant"):
        np.testing.assert_array_equal(values(hidden, function), values(lost, function))
    hidden[1, 0] = 0.1
    with pytest.raises(ValueError, match="may expand, of 1 of"):
        values(hidden, "zeta")
