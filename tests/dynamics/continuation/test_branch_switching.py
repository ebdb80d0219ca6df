"""From one branch to the next: doublings, cascades, pitchforks."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import (
    cascade,
    follow_cycle,
    Problem,
    Settings,
    switch,
)
from statmech_attn.dynamics.maps.catalogue import henon, logistic


# Period doublings of the logistic map: 1, 2 -> 3, 1 + sqrt 6; 4 to 64 by Newton on
# f^k(x) = x, (f^k)'(x) = -1 in 60-digit arithmetic (mpmath).
LOGISTIC = {
    1: 3.0,
    2: 1 + np.sqrt(6),
    4: 3.544090359551922853615966,
    8: 3.564407266095432597773558,
    16: 3.568759419543826431298210,
    32: 3.569691609801396714288269,
    64: 3.569891259378120487320271,
}
FEIGENBAUM = (
    4.669201609102990671853204  # M. J. Feigenbaum, J. Stat. Phys. 21 (1979) 669
)


def cubic(x, p):
    return (1 + p["m"]) * x - x**3


def logistic_point():
    return Problem(logistic, jnp.zeros(1), {"r": 2.5}, "r")


@pytest.fixture(scope="module")
def doublings():
    return list(cascade(logistic_point(), jnp.array([0.6]), 2.5, doublings=7))


def test_cascade_of_the_logistic_map(doublings):
    assert [branch.period for branch in doublings] == list(LOGISTIC)
    for branch in doublings:
        special = branch.special[-1]
        assert special.kind == "period_doubling" and special.period == branch.period
        assert abs(special.value - LOGISTIC[branch.period]) < 1e-10
        assert special.form.criticality == "supercritical"


def test_branches_of_a_cascade_are_stable_between_doublings(doublings):
    for before, branch in zip(doublings, doublings[1:], strict=False):
        low, high = before.special[-1].value, branch.special[-1].value
        inside = (branch.values > low) & (branch.values < high)
        assert inside.sum() > 5
        np.testing.assert_array_equal(branch.stable, inside)


def test_windows_shrink_at_feigenbaums_rate(doublings):
    r = np.array([branch.special[-1].value for branch in doublings])
    rates = (r[1:-1] - r[:-2]) / (r[2:] - r[1:-1])
    # The rate converges geometrically itself; the last two differ by 1e-4.
    assert rates[-1] == pytest.approx(FEIGENBAUM, abs=2 * abs(rates[-1] - rates[-2]))


@pytest.mark.slow
def test_cascade_of_the_henon_map():
    """The first two are exact; the ratio of windows tends to the same number."""
    problem = Problem(henon, jnp.zeros(2), {"a": 0.2, "b": 0.3}, "a")
    branches = list(cascade(problem, jnp.array([0.7, 0.2]), 0.2, doublings=6))
    a = [branch.special[-1].value for branch in branches]
    np.testing.assert_allclose(a[:2], [0.3675, 0.9125], rtol=0, atol=1e-10)
    assert [branch.period for branch in branches] == [1, 2, 4, 8, 16, 32]
    rates = np.diff(a)[:-1] / np.diff(a)[1:]
    assert abs(rates[-1] / FEIGENBAUM - 1) < 0.01


def test_a_cascade_ends_where_no_doubling_is_met():
    found = list(
        cascade(logistic_point(), jnp.array([0.6]), 2.5, doublings=5, within=(2, 3.5))
    )
    assert [branch.period for branch in found] == [1, 2, 4]
    assert found[-1].special == () and found[-1].reason == "left_range"
    assert max(branch.values.max() for branch in found) == found[-1].values[-1] == 3.5


def test_the_doubled_branch_leaves_from_the_doubling():
    """x = (r + 1 +- sqrt((r - 3)(r + 1))) / 2r for either sign of the amplitude."""
    start = follow_cycle(logistic_point(), jnp.array([0.6]), 2.5, within=(2, 3.2)).run()
    sides = []
    for amplitude in (1e-3, -1e-3):
        branch = switch(
            logistic_point(), start.special[0], amplitude=amplitude, within=(2, 3.4)
        ).run()
        r = branch.values
        side = np.sign(branch.x[-1, 0] - (1 - 1 / r[-1]))
        x = (r + 1 + side * np.sqrt((r - 3) * (r + 1))) / (2 * r)
        np.testing.assert_allclose(branch.x[:, 0], x, atol=1e-9)
        assert branch.period == 2 and branch.stable.all()
        assert branch.values.max() == r[-1] == 3.4 and branch.reason == "left_range"
        sides.append(side)
    assert sorted(sides) == [-1, 1]
    with pytest.raises(ValueError, match="within"):
        switch(logistic_point(), start.special[0], within=(3.2, 3.4)).run()


def test_a_pitchfork_has_two_halves():
    problem = Problem(cubic, jnp.zeros(1), {"m": 0.0}, "m")
    start = follow_cycle(problem, jnp.array([0.0]), -0.33, within=(-0.5, 0.5)).run()
    ends = [
        switch(problem, start.special[0], amplitude=xi, within=(-0.5, 0.5)).run()
        for xi in (1e-3, -1e-3)
    ]
    np.testing.assert_allclose(
        sorted(end.x[-1, 0] for end in ends), [-np.sqrt(0.5), np.sqrt(0.5)], atol=1e-12
    )
    assert {end.period for end in ends} == {1}


def test_where_nothing_branches_is_refused_in_one_line():
    problem = Problem(henon, jnp.zeros(2), {"a": 0.2, "b": 0.3}, "a")
    branch = follow_cycle(
        problem,
        jnp.array([0.7, 0.2]),
        0.2,
        direction=-1,
        settings=Settings(max_points=40),
    ).run()
    with pytest.raises(ValueError, match="period_doubling or a pitchfork; got fold"):
        switch(problem, branch.special[0])
    with pytest.raises(ValueError, match="doublings must be at least 1; got 0"):
        next(cascade(problem, jnp.array([0.7, 0.2]), 0.2, doublings=0))
