"""Unstable cycles: complete where their number is known, once each; multipliers."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.dynamics import unstable_cycles
from statmech_attn.dynamics.maps.catalogue import henon, logistic
from statmech_attn.dynamics.unstable_cycles import (
    COMPLETENESS,
    INCOMPLETE,
    NONE_MISSING,
    NOT_KNOWN,
)


CAT = np.array([[2, 1], [1, 1]])
# Hénon's map at a = 1.4, b = 0.3, cycles of the attractor with 1, 2, ... steps: counted
# over all sequences of symbols by the flow of Biham & Wenzel, PRL 63, 819 (1989).
HENON = [1, 1, 0, 1, 0, 2, 4, 7, 6, 10, 14, 19, 32]


def cat(x):
    """No cycle comes to the border of the torus, which moves with its fixed point."""
    return (jnp.asarray(CAT) @ x + jnp.array([0.3, 0.217])) % 1


def prime(points):
    """Numbers of cycles of 1, 2, ... steps from those of points that return."""
    counts = []
    for p, n in enumerate(points, 1):
        shorter = sum(q * m for q, m in enumerate(counts, 1) if p % q == 0)
        counts.append((n - shorter) // p)
    return counts


@pytest.fixture(scope="module")
def of_logistic():
    return unstable_cycles(logistic, jnp.array(0.3), {"r": 4.0}, period=9)


def test_all_cycles_of_the_logistic_map_once_each(of_logistic):
    """f^p has 2^p fixed points; multipliers are ±2^p, and 4 at zero."""
    assert of_logistic.counts.tolist() == prime([2**p for p in range(1, 10)])
    images = logistic(of_logistic.points[..., 0], {"r": 4.0})
    for p, points, after in zip(
        of_logistic.length, of_logistic.points[..., 0], images, strict=True
    ):
        assert after[:p] == pytest.approx(np.roll(points[:p], -1), abs=1e-14)
        assert len(np.unique(points[:p].round(9))) == p
    zero = of_logistic.points[:, 0, 0] < 1e-10
    expected = np.where(zero, np.log(4), np.log(2))
    # ln|f'| at points next to 1/2, where rounding is divided by 1 - 2 x.
    assert of_logistic.exponents[:, 0] == pytest.approx(expected, abs=1e-11)
    assert of_logistic.index_sums.tolist() == [0.0] * 9  # slopes of f^p alternate
    folds = np.sum(of_logistic.points[..., 0] > 0.5, axis=1)
    assert of_logistic.signs[:, 0].tolist() == (1 - 2 * (folds % 2)).tolist()


def test_a_cycle_that_is_missing_is_told_by_indices(of_logistic):
    """It changes the sum at its own period by as much; a fixed point changes all."""
    assert of_logistic.completeness == NONE_MISSING
    for i in np.flatnonzero(of_logistic.length > 1):
        others = of_logistic.where(np.arange(len(of_logistic.length)) != i)
        p = of_logistic.length[i]
        sums = others.index_sums
        assert not sums[: p - 1].any() and abs(sums[p - 1]) == p
        assert f"after {p} steps sum to {sums[p - 1]:g}, " in others.explain()
        assert COMPLETENESS[others.completeness] == "may be incomplete"
        assert "may be incomplete" in repr(others)


def test_indices_need_signs_of_exponents(of_logistic):
    marginal = dataclasses.replace(of_logistic, stderr=of_logistic.exponents)
    assert marginal.completeness == NOT_KNOWN and "do not tell" in repr(marginal)
    plane = np.repeat(of_logistic.points, 2, axis=2)  # a second exponent is not known
    assert dataclasses.replace(of_logistic, points=plane).completeness == NOT_KNOWN
    going = dataclasses.replace(of_logistic, stayed=0)
    assert going.completeness == INCOMPLETE and "the last did too" in going.explain()


@pytest.mark.slow
def test_a_search_goes_on_until_a_horseshoe_is_complete():
    """Of 30 cycles of 8 steps one is not found from 10 × 10 points."""
    side = np.linspace(-0.8, 0.8, 10)
    near = np.stack(np.meshgrid(side, side)).reshape(2, -1)
    horseshoe = lambda x: jnp.stack([1 - 6 * x[0] ** 2 - x[1], x[0]])
    how = dict(period=8, transient=0, near=near)
    start = jnp.array([0.1, 0.2])
    short = unstable_cycles(horseshoe, start, **how)
    assert short.counts[-1] == 29 and short.completeness == INCOMPLETE
    assert short.index_sums.tolist() == [0, 0, 0, 0, 0, 0, 0, 8]
    whole = unstable_cycles(horseshoe, start, **how, until_complete=True)
    assert whole.counts.tolist() == prime([2**p for p in range(1, 9)])
    assert whole.completeness == NONE_MISSING and whole.stayed >= 1


@pytest.mark.slow
def test_all_cycles_of_a_cat_map():
    """A^p - 1 maps the torus |det(A^p - 1)| times onto itself."""
    cycles = unstable_cycles(cat, jnp.array([0.1, 0.234]), period=6)
    power = lambda p: np.linalg.matrix_power(CAT, p) - np.eye(2)
    points = [abs(round(np.linalg.det(power(p)))) for p in range(1, 7)]
    assert cycles.counts.tolist() == prime(points)
    largest = np.log((3 + np.sqrt(5)) / 2)
    expected = np.tile([largest, -largest], (len(cycles.length), 1))
    assert cycles.exponents == pytest.approx(expected, abs=1e-13)
    assert (cycles.signs == 1).all()
    # Lefschetz's number of a torus, det(1 - A^p): not one, and all cycles are there.
    assert cycles.index_sums.tolist() == [-n for n in points]
    assert "stretches a circle or a torus" in cycles.explain()


@pytest.mark.slow
def test_cycles_of_henon_as_many_as_sequences_of_symbols_give():
    cycles = unstable_cycles(henon, jnp.array([0.1, 0.2]), period=13)
    # A fixed point is outside; 20 000 points on a set of dimension 1.26 leave gaps
    # of 20 000^(-1/1.26) = 4e-4, wider where they are rare.
    inside = cycles.where(cycles.distance < 0.02)
    assert inside.counts.tolist() == HENON
    assert len(cycles.length) == len(inside.length) + 1
    assert cycles.hits.min() > 20
    assert cycles.index_sums.tolist() == [0.0] * 13  # 1 inside, -1 outside
    assert inside.index_sums.tolist() == [1.0] * 13
    total = cycles.exponents.sum(axis=1)
    assert total == pytest.approx(np.full(len(total), np.log(0.3)), abs=1e-14)


def test_cycles_of_a_repeller_need_starts_near_it():
    """At r = 5 almost all orbits escape; all 2^p points of cycles stay real."""
    escaping = logistic, jnp.array(0.3), {"r": 5.0}
    cycles = unstable_cycles(
        *escaping, period=9, transient=0, near=np.linspace(0, 1, 8)[None]
    )
    assert cycles.counts.tolist() == prime([2**p for p in range(1, 10)])
    assert cycles.completeness == NONE_MISSING and not cycles.index_sums.any()
    with pytest.raises(ValueError, match="the orbit escapes"):
        unstable_cycles(*escaping, period=9)


def test_periods_without_cycles_are_empty_and_shorter_ones_are_told():
    """Below the first doubling there are the two fixed points alone."""
    cycles = unstable_cycles(
        logistic, jnp.array(0.3), {"r": 2.5}, period=9, near=np.linspace(0, 1, 8)[None]
    )
    assert cycles.counts.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0]
    assert cycles.outcomes[1, 1] > 0
    assert "0 to 2 (9)" in repr(cycles)


def test_starts_of_a_driven_map_and_of_another_shape_are_refused():
    driven = dynamics.System(lambda x: -x, drive_period=2)
    with pytest.raises(ValueError, match=r"strobed\(2\)"):
        unstable_cycles(driven, jnp.array(0.3), period=2)
    with pytest.raises(ValueError, match=r"\(2, n\); got shape \(3, 1\)"):
        unstable_cycles(henon, jnp.zeros(2), period=2, steps=10, near=np.ones((3, 1)))


@pytest.mark.slow
def test_cycles_of_a_section_are_those_of_the_flow():
    """Rössler's, a = b = 0.2, c = 5.7: periods, a point and multipliers are those of
    cns.physics.gatech.edu/ChaosBook/extras/simon/Roessler.html (Simon), which has ten
    digits; the solver's steps of 1/20 leave seven."""

    def rossler(u):
        x, y, z = u
        return jnp.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)])

    flow = dynamics.flow(rossler, time=1.0, substeps=20)
    plane = dynamics.section(flow, (0, 0.0), direction="down")
    cycles = unstable_cycles(
        plane, jnp.array([0.0, 6.0, 1.0]), period=3, steps=400, starts=40, exponents=1
    )
    assert cycles.counts.tolist() == [1, 1, 2]
    multipliers = cycles.signs[:, 0] * np.exp(cycles.exponents[:, 0] * cycles.length)
    assert multipliers[:2] == pytest.approx([-2.403953527, -3.512006980], rel=1e-6)
    assert cycles.points[0, 0] == pytest.approx([0, 6.09176831742, 1.29973195919], 1e-6)
    times = [
        sum(float(plane.first_return(jnp.asarray(x)).time) for x in points[:p])
        for points, p in zip(cycles.points[:2], cycles.length[:2])
    ]
    assert times == pytest.approx([5.88108845586, 11.7586260717], rel=1e-7)
