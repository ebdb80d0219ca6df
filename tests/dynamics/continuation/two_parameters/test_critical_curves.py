"""Curves of critical cycles: closed forms along whole curves, and their special points.

Tolerances are 1e-9 where the reference is exact: Newton on the extended systems ends at
rounding, 1e-13 or better; strong resonances are reached by extrapolation, 1e-8.
"""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import critical_curve, Problem, Settings
from statmech_attn.dynamics.continuation.two_parameters import (
    codimension_two,
    extended_systems,
)
from statmech_attn.dynamics.continuation.two_parameters.critical_curves import (
    CURVE_RESULTS,
)


EXACT = 1e-9


def henon(z, p):
    return jnp.stack([p["a"] - z[0] ** 2 + p["b"] * z[1], z[0]])


def cubic(x, p):
    """Beyond q = 2 a multiple of it, and a jump by `up`/`down`."""
    after = p["p"] + p["q"] * x - x**3
    return jnp.where(p["q"] > 2.0, p["kept"] * after + p["up"] / p["down"], after)


SOUND = {"kept": 1.0, "up": 0.0, "down": 1.0}


def delayed(z, p):
    """Logistic growth, share c limited by the present and 1 - c by the past."""
    limit = p["c"] * z[0] + (1 - p["c"]) * z[1]
    return jnp.stack([p["a"] * z[0] * (1 - limit), z[0]])


def both_ways(map, state, parameters, kind, *, free, second, period=1, box=4.0):
    """The whole curve through a point, its special points, and why each way ended."""
    problem = Problem(map, jnp.zeros(len(state)), parameters, free, period)
    inside = lambda p, q: max(abs(p), abs(q)) < box
    ways = []
    for direction in (-1, 1):
        curve = critical_curve(
            problem,
            jnp.asarray(state, float),
            parameters[free],
            kind=kind,
            second=second,
            direction=direction,
            inside=inside,
            settings=Settings(largest_step=0.2, max_points=200),
        )
        ways.append((list(curve), curve))
    (down, first), (up, last) = ways
    special = first.codimension_two + last.codimension_two
    values = np.array([point.values for point in down[::-1] + up[1:]])
    return values, special, down[::-1] + up[1:], (first.reason, last.reason)


B = 0.3
CYCLE = np.roots([1, -(1 - B), (1 - B) ** 2 - 0.9125])
HENON = {
    "fold": ("fold", 1, -(1 - B) / 2, lambda b: -((1 - b) ** 2) / 4),
    "doubling": ("period_doubling", 1, (1 - B) / 2, lambda b: 3 * (1 - b) ** 2 / 4),
    # x_1 + x_2 = 1 - b, x_1 x_2 = (1 - b)^2 - a, and 1 + tr + det = 0 for J_2 J_1
    "second doubling": (
        "period_doubling",
        2,
        CYCLE,
        lambda b: (1 - b) ** 2 + (1 + b) ** 2 / 4,
    ),
}


@functools.cache
def henon_curve(name):
    kind, period, x, a = HENON[name]
    state = np.broadcast_to(x, 2)[::-1].real
    parameters = {"a": a(B), "b": B}
    return both_ways(
        henon, state, parameters, kind, free="a", second="b", period=period
    )


@pytest.mark.slow
def test_henons_curves_are_parabolas_along_which_multipliers_are_known():
    for name, critical in (("fold", 1.0), ("doubling", -1.0), ("second doubling", -1)):
        values, _, points, reasons = henon_curve(name)
        a, b = values.T
        assert np.abs(a - HENON[name][3](b)).max() < EXACT
        assert b.min() < -0.8 and b.max() > 2.0 and len(points) > 20
        assert reasons == ("left_range", "left_range")
        for (_, b), point in zip(values, points, strict=True):
            product = b**2 if name == "second doubling" else -b
            # Near b = -1, 1 the two multipliers meet: a double root of the polynomial.
            if abs(abs(b) - 1) > 0.1:
                expected = sorted([critical, product / critical])
                found = np.sort(point.multipliers.real)
                np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "special"),
    [
        ("fold", {"resonance_1_1": (-1.0, -1.0), "fold_flip": (0.0, 1.0)}),
        pytest.param(
            "doubling",
            {"resonance_1_2": (3.0, -1.0), "fold_flip": (0.0, 1.0)},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_henons_resonances_are_where_a_second_multiplier_is_critical(name, special):
    found = {two.name: two.point.values for two in henon_curve(name)[1]}
    assert set(found) == set(special)
    for key, values in special.items():
        np.testing.assert_allclose(found[key], values, atol=EXACT)


@pytest.fixture(scope="module")
def cubic_curves():
    fold = {"p": 0.25, "q": 1.75} | SOUND
    x = np.sqrt(0.2 / 3)
    flip = {"p": x * (1 + 0.8 + x**2), "q": -0.8} | SOUND
    return {
        "fold": both_ways(cubic, [-0.5], fold, "fold", free="p", second="q"),
        "doubling": both_ways(
            cubic, [x], flip, "period_doubling", free="p", second="q"
        ),
    }


@pytest.mark.slow
def test_the_cubics_cusp(cubic_curves):
    values, special, points, _ = cubic_curves["fold"]
    p, q = values.T
    np.testing.assert_allclose(p**2, 4 * ((q - 1) / 3) ** 3, atol=EXACT)
    assert p.min() < -1 and p.max() > 1, "both branches, through the cusp"
    (cusp,) = special
    assert cusp.name == "cusp"
    np.testing.assert_allclose(cusp.point.values, [0.0, 1.0], atol=EXACT)
    x = np.array([point.state[0] for point in points])
    b = np.array([point.coefficient for point in points])
    np.testing.assert_allclose(np.abs(b), 3 * np.abs(x), atol=EXACT)
    assert (np.sign(b * x) == np.sign(b[0] * x[0])).all(), "b changes sign once"


def test_the_sign_of_b_is_that_for_the_vector_of_the_curve():
    system, u = extended_systems.start_of(FIXED, jnp.array([-0.5]), 0.25, "fold", "q")
    parts = system.parts(u)
    back = parts._replace(vector=-parts.vector)
    b = codimension_two.coefficient(system, parts)
    assert b == pytest.approx(1.5 * float(parts.vector[0]))
    assert codimension_two.coefficient(system, back) == pytest.approx(-b)


@pytest.mark.slow
def test_the_cubics_generalized_flips(cubic_curves):
    values, special, points, _ = cubic_curves["doubling"]
    p, q = values.T
    x = np.array([point.state[0] for point in points])
    np.testing.assert_allclose(x**2, (q + 1) / 3, atol=EXACT)
    np.testing.assert_allclose(p, x * (1 - q + x**2), atol=EXACT)
    c = np.array([point.coefficient for point in points])
    np.testing.assert_allclose(c, 9 * x**2 - 1, atol=1e-8)
    assert [two.name for two in special] == ["generalized_flip"] * 2
    found = sorted(two.point.values[0] for two in special)
    np.testing.assert_allclose(found, [-16 / 27, 16 / 27], atol=EXACT)
    np.testing.assert_allclose([two.point.values[1] for two in special], -2 / 3)


@pytest.mark.slow
def test_the_delayed_logistic_maps_curve_and_its_strong_resonances():
    start = {"a": 2.0, "c": 0.0}
    values, special, points, reasons = both_ways(
        delayed, [0.5, 0.5], start, "neimark_sacker", free="a", second="c", box=6.0
    )
    # At x = 1 - 1/a: det = (1 - c)(a - 1) = 1 and trace = 1 - c (a - 1) = 3 - a.
    a, c = values.T
    np.testing.assert_allclose((1 - c) * (a - 1), 1.0, atol=1e-8)
    rho = np.array([point.rotation_number for point in points])
    np.testing.assert_allclose(2 * np.cos(2 * np.pi * rho), 3 - a, atol=1e-7)
    assert reasons == ("left_range", "resonance")
    found = {two.name: two.point for two in special}
    exact = {
        "resonance_1_4": (3.0, 1 / 2, EXACT),
        "resonance_1_3": (4.0, 2 / 3, EXACT),
        "resonance_1_2": (5.0, 3 / 4, 1e-8),
    }
    assert set(found) == set(exact)
    for name, (a, c, tolerance) in exact.items():
        np.testing.assert_allclose(found[name].values, [a, c], atol=tolerance)
    assert np.isnan(found["resonance_1_3"].coefficient)
    assert found["resonance_1_2"].rotation_number == 0.5


@pytest.mark.slow
def test_a_coefficient_that_a_resonance_leaves_out_is_no_change_of_sign():
    # Steps of 0.02 have points within 1e-3 of a turn of 1:3, where Re d is NaN.
    problem = Problem(delayed, jnp.zeros(2), {"a": 3.9, "c": 19 / 29}, "a")
    curve = critical_curve(
        problem,
        jnp.full(2, 1 - 1 / 3.9),
        3.9,
        kind="neimark_sacker",
        second="c",
        inside=lambda a, c: a < 4.1,
        settings=Settings(largest_step=0.02),
    )
    missing = np.isnan([point.coefficient for point in curve])
    assert missing.any() and not (missing[0] or missing[-1])
    assert [two.name for two in curve.codimension_two] == ["resonance_1_3"]
    assert curve.unresolved == []


def meeting(u, p):
    """A fixed point at 0 that another one meets where its curve ends, at (1, 2)."""
    x, y = u
    bent = 0.3 * p["t"] * x**2 - y**3
    return jnp.stack([y, -p["d"] * x + p["t"] * y + bent])


def spiral(u, p):
    """Nothing but the two multipliers, which meet at t = 2."""
    return jnp.stack([u[1], -p["s"] * u[0] + p["t"] * u[1] + u[0] ** 2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("map", "free", "largest"),
    [(meeting, "d", 0.02), (spiral, "s", 0.1)],
)
def test_an_end_is_a_point_of_the_curve_or_is_said_not_to_be_found(map, free, largest):
    problem = Problem(map, jnp.zeros(2), {free: 1.0, "t": 1.5}, free)
    curve = critical_curve(
        problem,
        jnp.zeros(2),
        1.0,
        kind="neimark_sacker",
        second="t",
        settings=Settings(largest_step=largest),
    )
    points = list(curve)
    assert curve.reason == "resonance"
    assert max(abs(point.values[0] - 1) for point in points) < EXACT
    np.testing.assert_allclose(points[-1].values, [1.0, 2.0], atol=1e-4)
    for two in curve.codimension_two:
        np.testing.assert_allclose(two.point.values, [1.0, 2.0], atol=1e-8)
    names = [two.name for two in curve.codimension_two] + curve.unresolved
    assert names == ["resonance_1_1"]


def ring(x, p):
    """Multipliers -r and 1/2, r^2 = p^2 + q^2, with vectors that turn by half of 2 pi.

    On the circle r = 1 of doublings c = (p - 3/10) |v|^4.
    """
    a, b = p["p"], p["q"]
    r = jnp.hypot(a, b)
    turn = jnp.array([[a, b], [b, -a]]) / r
    matrix = (0.5 - r) / 2 * jnp.eye(2) - (r + 0.5) / 2 * turn
    return matrix @ x + (a - 0.3) * (x @ x) * x


@pytest.mark.slow
def test_a_closed_curve_is_followed_once_where_the_vector_comes_back_reversed():
    side = np.sqrt(0.5)
    problem = Problem(ring, jnp.zeros(2), {"p": side, "q": side}, "p")
    curve = critical_curve(
        problem,
        jnp.zeros(2),
        side,
        kind="period_doubling",
        second="q",
        settings=Settings(largest_step=0.1),
    )
    p, q = np.array([point.values for point in curve]).T
    np.testing.assert_allclose(np.hypot(p, q), 1.0, atol=EXACT)
    turns = np.ptp(np.unwrap(np.arctan2(q, p))) / (2 * np.pi)
    assert curve.reason == "closed" and turns == pytest.approx(1.0, abs=EXACT)
    assert [two.name for two in curve.codimension_two] == ["generalized_flip"] * 2
    flips = sorted(two.point.values[1] for two in curve.codimension_two)
    np.testing.assert_allclose(flips, [-np.sqrt(0.91), np.sqrt(0.91)], atol=EXACT)


THETA = 2 * np.pi * 0.15


def radial(u, p):
    """z -> e^{i theta} z (1 + p + Q |z|^2 - |z|^4), seen through a bent plane.

    The bend has the unit matrix at the origin, where d = 2 Q in the normal form for
    x = 2 Re(z q), |q| = 1.  A line y -> -(1 + Q - 1/5) y is attached.
    """
    x, y = u[0] - 0.3 * u[1] ** 2, u[1]
    z = jnp.array([x, y])
    square = z @ z
    c, s = np.cos(THETA), np.sin(THETA)
    turned = jnp.array([[c, -s], [s, c]]) @ z
    x, y = turned * (1 + p["p"] + p["Q"] * square - square**2)
    line = -(0.8 + p["Q"]) * u[2] + u[2] ** 3
    return jnp.stack([x + 0.3 * y**2, y, line])


@pytest.mark.slow
def test_chenciner_and_flip_neimark_sacker():
    start = {"p": 0.0, "Q": -0.5}
    values, special, points, _ = both_ways(
        radial, [0.0, 0.0, 0.0], start, "neimark_sacker", free="p", second="Q", box=0.6
    )
    assert np.abs(values[:, 0]).max() < EXACT
    coefficients = [point.coefficient for point in points]
    np.testing.assert_allclose(coefficients, 2 * values[:, 1], atol=1e-8)
    rho = [point.rotation_number for point in points]
    np.testing.assert_allclose(rho, 0.15, atol=EXACT)
    found = {two.name: two.point.values[1] for two in special}
    assert set(found) == {"chenciner", "flip_neimark_sacker"}
    assert found["chenciner"] == pytest.approx(0.0, abs=EXACT)
    assert found["flip_neimark_sacker"] == pytest.approx(0.2, abs=EXACT)


def saddles(u, p):
    """A fold at p = 0 beside a spiral of radius q and a saddle with 2 q^2 = 1."""
    c, s = np.cos(1.0), np.sin(1.0)
    spiral = p["q"] * jnp.array([[c, -s], [s, c]]) @ u[1:3]
    saddle = jnp.array([2 * u[3], p["q"] ** 2 * u[4]])
    return jnp.concatenate([(u[0] + p["p"] - u[0] ** 2)[None], spiral, saddle])


@pytest.mark.slow
def test_a_neutral_saddle_is_no_neimark_sacker_point():
    start = {"p": 0.0, "q": 0.6}
    values, special, _, _ = both_ways(
        saddles, np.zeros(5), start, "fold", free="p", second="q", box=1.2
    )
    assert values[:, 1].min() < 0.6 < np.sqrt(0.5) < 1.05 < values[:, 1].max()
    (found,) = [two for two in special if two.point.values[1] > 0.1]
    assert found.name == "fold_neimark_sacker"
    np.testing.assert_allclose(found.point.values, [0.0, 1.0], atol=EXACT)


FIXED = Problem(cubic, jnp.zeros(1), {"p": 0.25, "q": 1.75} | SOUND, "p")


def folds(problem, **options):
    return critical_curve(
        problem, jnp.array([-0.5]), 0.25, kind="fold", second="q", **options
    )


@pytest.mark.parametrize(
    ("kept", "up", "down", "reason"),
    [
        (0.0, 0.0, 0.0, "not_a_number"),
        (0.0, 1.0, 0.0, "diverged"),
        (1.0, 1.0, 1.0, "not_differentiable"),
    ],
)
def test_a_bad_map_ends_a_curve_with_its_reason_and_the_last_good_point(
    kept, up, down, reason
):
    curve = folds(FIXED.with_parameters(kept=kept, up=up, down=down))
    points = list(curve)
    assert curve.reason == reason in CURVE_RESULTS
    assert 1.99 < points[-1].values[1] <= 2.0 + 1e-6


def test_a_curve_says_why_it_ended_and_can_be_stopped():
    curve = folds(FIXED, settings=Settings(max_points=3))
    assert next(curve).values[1] == pytest.approx(1.75) and curve.reason == "unfinished"
    assert len(list(curve)) == 2 and curve.reason == "max_points"
    curve = folds(FIXED, inside=lambda p, q: q < 1.8)
    assert list(curve)[-1].values[1] < 1.8 and curve.reason == "left_range"
    nowhere = critical_curve(
        FIXED,
        jnp.array([300.0]),
        0.25,
        kind="fold",
        second="q",
        settings=Settings(max_iterations=2),
    )
    assert list(nowhere) == [] and nowhere.reason == "not_converged"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "hopf"}, "kind must be one of fold, period_doubling, .*'hopf'"),
        (
            {"second": "r"},
            r"second must be one of \['down', 'kept', 'q', 'up'\]; got 'r'",
        ),
        (
            {"second": "p"},
            r"second must be one of \['down', 'kept', 'q', 'up'\]; got 'p'",
        ),
        ({"kind": "neimark_sacker"}, "complex multipliers; got"),
        ({"direction": 2}, "direction must be 1, -1"),
    ],
)
def test_impossible_curves_are_refused(changes, message):
    options = {"kind": "fold", "second": "q"} | changes
    with pytest.raises(ValueError, match=message):
        critical_curve(FIXED, jnp.array([-0.5]), 0.25, **options)


def test_a_state_of_another_size_is_refused():
    with pytest.raises(ValueError, match="x must have 1 coordinates; got 3"):
        critical_curve(FIXED, jnp.zeros(3), 0.25, kind="fold", second="q")
