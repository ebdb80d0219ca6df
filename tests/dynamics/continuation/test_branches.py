"""Branches of cycles of maps whose bifurcations are known on paper."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import (
    find_cycle,
    follow_cycle,
    Problem,
    Settings,
)
from statmech_attn.dynamics.maps.catalogue import henon, logistic


LOCATED = 1e-10  # asked of every special point; they are found to rounding


def polynomial(x, p):
    """Fixed points solve h + v m + w m^2 + (a + k m) x + b x^2 + c x^3 + d x^4 = 0.

    One map for the tests that follow: what it compiles serves them all.
    """
    m = p["m"]
    constant, slope = p["h"] + p["v"] * m + p["w"] * m**2, p["a"] + p["k"] * m
    return (1 + slope) * x + constant + p["b"] * x**2 + p["c"] * x**3 + p["d"] * x**4


PITCHFORK = {"k": 1.0, "c": -1.0}  # x = 0 and m = x^2
FLAT = {"v": 1.0, "c": -1.0, "d": 0.25}  # m = x^3 (1 - x/4): steep beside x = 0
FOLD_AT_ONE = {"v": 1.0, "h": -1.0, "b": 1.0}  # m = 1 - x^2
ISOLA = {"w": 0.3, "h": 0.9, "a": -1.2, "b": 0.3}  # (x - 2)^2 + m^2 = 1


def planar(s, p):
    """Fixed point 0 of a saddle, of a pair that meets, and of a symmetric map."""
    m, which = p["m"], p["which"]
    saddle = jnp.array([[2 + m, 0.0], [0.0, 0.5]])
    collision = jnp.array([[1.5, m], [1.0, 1.5]])
    linear = jnp.where(which > 0.5, collision, saddle) @ s
    return jnp.where(which > 1.5, (1 + m - s @ s) * s, linear)


def broken(x, p):
    """Its value jumps by `up`/`down` at m = 1, and its slope in m by twice `kink`."""
    m, jump = p["m"], p["up"] / p["down"]
    return 0.5 * x + p["kink"] * jnp.abs(m - 1) + jnp.where(m > 1, jump, 0.0)


BROKEN = {
    "not_a_number": {"up": 0.0, "down": 0.0, "kink": 0.0},
    "diverged": {"up": 1.0, "down": 0.0, "kink": 0.0},
    "not_differentiable": {"up": 0.0, "down": 1.0, "kink": 3.0},
}


def logistic_cycle(period=1, r=2.5):
    return Problem(logistic, jnp.zeros(1), {"r": r}, "r", period)


def henon_cycle(period=1):
    return Problem(henon, jnp.zeros(2), {"a": 0.2, "b": 0.3}, "a", period)


def branch_of(map, x, value, parameters, free, **options):
    problem = Problem(map, jnp.zeros(len(x)), parameters, free)
    return follow_cycle(problem, jnp.array(x), value, **options).run()


def fixed_points(coefficients, x, value, **options):
    parameters = dict.fromkeys(("m", *"hvwakbcd"), 0.0) | coefficients
    return branch_of(polynomial, [x], value, parameters, "m", **options)


def kinds(branch):
    return [special.kind for special in branch.special]


def test_multipliers_of_the_logistic_two_cycle():
    """mu = 4 + 2 r - r^2 on the whole branch."""
    branch = follow_cycle(
        logistic_cycle(2), jnp.array([0.5]), 3.2, within=(3.1, 3.8)
    ).run()
    r = branch.values
    np.testing.assert_allclose(
        branch.multipliers[:, 0], 4 + 2 * r - r**2, rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(branch.stable, np.abs(4 + 2 * r - r**2) < 1)
    assert branch.stable.any() and not branch.stable.all()
    assert branch.reason == "left_range" and r[-1] == pytest.approx(3.8, abs=1e-12)


def test_the_logistic_fixed_point_doubles_at_three_and_dies_at_one():
    up = follow_cycle(logistic_cycle(), jnp.array([0.6]), 2.5, within=(2, 4)).run()
    down = follow_cycle(
        logistic_cycle(), jnp.array([0.6]), 2.5, direction=-1, within=(0.5, 4)
    ).run()
    assert kinds(up) == ["period_doubling"] and kinds(down) == ["transcritical"]
    assert abs(up.special[0].value - 3) < LOCATED
    assert abs(down.special[0].value - 1) < LOCATED
    # The branch goes straight through: x = 1 - 1/r, negative and unstable below 1.
    np.testing.assert_allclose(down.x[:, 0], 1 - 1 / down.values, atol=1e-12)
    assert not down.stable[-1]


def test_the_two_cycle_ends_on_the_fixed_point():
    branch = follow_cycle(
        logistic_cycle(2), jnp.array([0.5]), 3.2, direction=-1, within=(2, 3.6)
    ).run()
    # Down to r = 3, through the fixed point, and up the other half of the branch.
    assert kinds(branch) == ["period_halving", "period_doubling"]
    assert abs(branch.special[0].value - 3) < LOCATED
    assert abs(branch.special[1].value - (1 + np.sqrt(6))) < LOCATED
    assert [special.period for special in branch.special] == [1, 2]


def test_the_period_three_window_opens_in_a_fold():
    problem = logistic_cycle(3)
    start = find_cycle(problem, jnp.array([0.5]), 3.84)
    branch = follow_cycle(problem, start.x, 3.84, direction=-1, within=(3, 3.86)).run()
    fold = branch.special[0]
    assert kinds(branch) == ["fold"] and fold.period == 3
    assert abs(fold.value - (1 + np.sqrt(8))) < LOCATED
    # One multiplier, above 1 on the unstable side: both sides were followed.
    assert branch.stable[0] and not branch.stable[-1]
    assert branch.values[-1] == pytest.approx(3.86, abs=1e-12)


def test_henon_fold_is_exact_and_both_its_branches_are_followed():
    """Fixed points solve a x^2 + (1 - b) x - 1 = 0."""
    b = 0.3
    branch = follow_cycle(
        henon_cycle(), jnp.array([0.7, 0.2]), 0.2, direction=-1, within=(-1, 0.5)
    )
    points = list(itertools.islice(branch, 40))
    special = [s for point in points for s in point.special]
    assert [s.kind for s in special] == ["fold"]
    assert abs(special[0].value + (1 - b) ** 2 / 4) < LOCATED
    for sign in (1, -1):
        side = [p for p in points if sign * (2 * p.value * p.x[0] + 1 - b) > 0]
        a = np.array([p.value for p in side])
        x = (-(1 - b) + sign * np.sqrt((1 - b) ** 2 + 4 * a)) / (2 * a)
        assert len(side) > 5
        np.testing.assert_allclose([p.x[0] for p in side], x, rtol=1e-9)


def test_a_symmetric_branch_point_is_a_pitchfork_on_either_branch():
    for x, start, direction in ((0.0, -0.5, 1), (0.7, 0.49, -1)):
        branch = fixed_points(PITCHFORK, x, start, direction=direction, within=(-1, 1))
        assert kinds(branch) == ["pitchfork"]
        assert abs(branch.special[0].value) < LOCATED


@pytest.mark.parametrize("a", [0.1, 0.05, 0.02])
def test_a_fold_beside_a_transcritical_point_is_not_lost(a):
    """On m = a x + x^2 the fold at x = -a/2 and the crossing of x = 0 are one step."""
    for x in (-0.63, -0.6, -0.57):
        branch = fixed_points(
            PITCHFORK | {"b": -a},
            x,
            a * x + x**2,
            direction=np.array([1.0, a + 2 * x]),
            within=(-1, 0.5),
        )
        assert kinds(branch) == ["fold", "transcritical"]
        np.testing.assert_allclose(
            [s.value for s in branch.special], [-(a**2) / 4, 0], rtol=0, atol=LOCATED
        )


@pytest.mark.parametrize("h", [1e-3, 1e-5, 1e-7])
def test_a_pitchfork_taken_apart_is_a_fold(h):
    """x^3 - m x = h has folds at m^3 = 27 h^2 / 4, and no branch point.

    Its two branches come within about h^(1/3) of each other, 0.005 at the least, with
    steps of 0.1: neither may be left for the other.
    """
    options = dict(direction=-1, within=(-0.6, 0.6))
    lower, upper = (
        fixed_points(PITCHFORK | {"h": h}, x, 0.5, **options) for x in (-0.7, 0.7)
    )
    assert kinds(lower) == ["fold"] and (lower.x < 0).all()
    assert abs(lower.special[0].value - (27 * h**2 / 4) ** (1 / 3)) < LOCATED
    assert kinds(upper) == [] and (upper.x > 0).all() and upper.stable.all()
    assert lower.values[-1] == pytest.approx(0.6) and upper.values[-1] == pytest.approx(
        -0.6
    )


@pytest.mark.parametrize("which", [0.0, 1.0])
def test_no_bifurcation_is_seen_where_none_is(which):
    """Real multipliers with product 1, and a pair that meets outside the circle."""
    branch = branch_of(
        planar, [0.0, 0.0], -0.4, {"m": 0.0, "which": which}, "m", within=(-0.4, 0.2)
    )
    product = np.prod(branch.multipliers, axis=1).real
    assert which or (product.min() < 1 < product.max())
    assert branch.special == ()


def test_two_multipliers_that_cross_together_are_not_given_a_wrong_name():
    """With the symmetry of the circle both reach 1 at m = 0."""
    branch = branch_of(
        planar, [0.0, 0.0], -0.4, {"m": 0.0, "which": 2.0}, "m", within=(-0.4, 0.2)
    )
    assert kinds(branch) == ["unresolved"]
    special = branch.special[0]
    # The step on which it lies, at most 0.1, was split at 0.46 twelve times.
    assert abs(special.value) <= 0.1 * 0.54**12
    assert special.form is None and np.isnan(special.error)


def test_a_branch_ends_on_the_edge_where_it_leaves_and_not_on_another_branch():
    """Beside x = 0 the parameter hardly moves, and m = x^3 (1 - x/4) again near 4."""
    edge = 1e-4
    near, far = sorted(np.roots([-1 / 4, 1, 0, 0, -edge]).real)[-2:]
    assert 0.046 < near < 0.047 and far > 3.9
    for x in np.linspace(-0.5, -0.4, 20):
        branch = fixed_points(FLAT, x, x**3 * (1 - x / 4), within=(-1, edge))
        assert branch.reason == "left_range"
        assert branch.values[-1] == pytest.approx(edge, abs=1e-12)
        assert branch.x[-1, 0] == pytest.approx(near, abs=LOCATED)
        # Longer than the chord, and shorter than its two sides.
        assert 0 < branch.arclength[-1] - np.hypot(near - x, edge - branch.values[0])
        assert branch.arclength[-1] < near - x + edge - branch.values[0]


@pytest.mark.parametrize("beyond", [1e-3, 1e-5, 1e-7])
def test_a_branch_that_turns_beyond_its_range_ends_on_the_edge(beyond):
    """The fold is at 1: between two points of the branch, and outside the range."""
    for x in (-0.76, -0.73, -0.7):
        branch = fixed_points(FOLD_AT_ONE, x, 1 - x**2, within=(-5, 1 - beyond))
        assert branch.reason == "left_range" and branch.special == ()
        assert branch.values[-1] == pytest.approx(1 - beyond, abs=1e-12)
        assert (branch.x < 0).all() and (np.diff(branch.arclength) > 0).all()
        assert branch.x[-1, 0] == pytest.approx(-np.sqrt(beyond), rel=1e-6)


def test_a_two_cycle_whose_birth_is_out_of_range_ends_on_the_edge():
    """Not on the fixed point either, which is near; x = (r+1 - sqrt((r-3)(r+1)))/2r."""
    for low in (3.01, 3.001, 3.0001):
        branch = follow_cycle(
            logistic_cycle(2), jnp.array([0.5]), 3.2, direction=-1, within=(low, 3.6)
        ).run()
        assert branch.special == () and branch.values[-1] == pytest.approx(low)
        lower = (low + 1 - np.sqrt((low - 3) * (low + 1))) / (2 * low)
        assert branch.x[-1, 0] == pytest.approx(lower, abs=LOCATED)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_a_branch_is_the_same_in_any_unit_of_the_parameter(unit):
    """m/L instead of m, with L as its unit: lengths along the branch are equal."""
    branches = [
        fixed_points(
            FOLD_AT_ONE | {"v": 1 / L},
            -0.73,
            L * (1 - 0.73**2),
            within=(-L, 2 * L),
            unit=L,
        )
        for L in (1.0, unit)
    ]
    one, other = branches
    np.testing.assert_allclose(other.arclength, one.arclength, rtol=1e-9)
    assert kinds(one) == kinds(other) == ["fold"]
    assert other.special[0].arclength == pytest.approx(
        one.special[0].arclength, rel=1e-9
    )


def test_an_isola_closes():
    settings = Settings(largest_step=0.3)
    branch = fixed_points(ISOLA, 3.0, 0.0, settings=settings, within=(-3, 3))
    assert branch.reason == "closed"
    assert kinds(branch) == ["fold", "fold"]
    np.testing.assert_allclose([s.value for s in branch.special], [1, -1], atol=LOCATED)
    assert branch.values[0] == branch.values[-1]


def test_a_cycle_knows_its_smallest_period():
    four = find_cycle(logistic_cycle(4), jnp.array([0.5]), 3.2)
    assert four.converged and four.asked == 4 and four.period == 2
    assert find_cycle(logistic_cycle(4), jnp.array([0.69]), 3.2).period == 1
    assert find_cycle(logistic_cycle(2), jnp.array([0.5]), 3.2).period == 2
    # A branch says so too.
    for x, smallest in ((0.69, 1), (0.5, 2)):
        branch = follow_cycle(
            logistic_cycle(2), jnp.array([x]), 3.2, within=(3.1, 3.3)
        ).run()
        assert branch.period == 2 and branch.smallest_period == smallest


@pytest.mark.parametrize("reason", BROKEN)
def test_a_bad_map_ends_the_branch_and_keeps_it(reason):
    problem = Problem(broken, jnp.zeros(1), {"m": 0.0} | BROKEN[reason], "m")
    branch = follow_cycle(problem, jnp.array([6.0]), 0.0, within=(0, 2)).run()
    assert branch.reason == reason
    assert branch.values.size > 5 and np.isfinite(branch.x).all()
    # The last step taken is one of the smallest, so the point is next to the trouble.
    assert 0 <= 1 - branch.values[-1] < 1e-6


def test_newton_on_a_bad_map_tells_why():
    reasons = {
        reason: find_cycle(
            Problem(broken, jnp.zeros(1), {"m": 0.0} | trouble, "m"),
            jnp.array([1.0]),
            1.5,
        ).reason
        for reason, trouble in BROKEN.items()
    }
    assert reasons == {
        "not_a_number": "not_a_number",
        "diverged": "diverged",
        "not_differentiable": "converged",  # the kink itself is at m = 1
    }
    no_cycle = find_cycle(henon_cycle(), jnp.array([0.7, 0.2]), -0.5)
    assert no_cycle.reason == "not_converged" and not no_cycle.stable
    assert np.isnan(no_cycle.multipliers).all()


def test_an_orbit_that_overflows_is_diverged_and_not_nan():
    """Henon's x is infinity minus infinity two steps later where b < 0."""
    problem = henon_cycle(50).with_parameters(b=-0.3)
    assert find_cycle(problem, jnp.array([50.0, 0.0]), 0.2).reason == "diverged"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(system=lambda x, p: x[:1]), "map must return a state of the shape"),
        (dict(system=lambda x, p: x > 0), "map must return a state of the shape"),
        (dict(system=lambda x, p: (x, x)), "map must return a state of the shape"),
        (dict(free="s"), r"free must be one of \['r'\]; got 's'"),
        (dict(period=0), "period must be at least 1; got 0"),
        (dict(template=jnp.zeros(2, int)), "template must be float64 arrays"),
    ],
)
def test_a_bad_problem_is_refused_in_one_line(change, message):
    good = dict(
        system=logistic,
        template=jnp.zeros(2),
        parameters={"r": 3.0},
        free="r",
        period=1,
    )
    with pytest.raises(ValueError, match=message) as caught:
        Problem(**{**good, **change})
    assert "\n" not in str(caught.value)


def test_a_bad_branch_is_refused_in_one_line():
    with pytest.raises(ValueError, match="x must have 1 coordinates; got 2"):
        follow_cycle(logistic_cycle(), jnp.zeros(2), 3.0)
    with pytest.raises(ValueError, match="low < high"):
        follow_cycle(logistic_cycle(), jnp.zeros(1), 3.0, within=(2, 1))
    with pytest.raises(ValueError, match=r"parameters must be among \['r'\]"):
        logistic_cycle().with_parameters(s=1.0)
