r"""Normal-form coefficients against closed forms, coordinates and simulation.

Closed forms, all by hand with q normalised to length one over the cycle and <p, q> = 1:

    logistic, r = 3          c = (3 f''^2 / 2) / 6 = 9
    Henon, fold              q ~ (1, b), p ~ (1, 1):   b_2 = -a / ((1+b) sqrt(1+b^2))
    Henon, doubling          q ~ (1, -b), p ~ (1, -1): c = a^2 / ((1-b^2)(1+b^2))
    delayed logistic, a = 2  d = -1 - i sqrt 3,  mu'/mu = 1/2 + i / (2 sqrt 3)
"""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import (
    find_cycle,
    follow_cycle,
    Problem,
    Settings,
)
from statmech_attn.dynamics.continuation.augmented_systems import DOUBLING, Located
from statmech_attn.dynamics.continuation.normal_forms import normal_form
from statmech_attn.dynamics.maps.catalogue import delayed_logistic, henon, logistic


EXACT = 1e-12  # derivatives are exact; what is left is rounding times condition


def scalar(x, p):
    """y -> (sign + m) y + b y^2 + c y^3 + e y^5.

    Seen through x = at + L (y + k y^2).
    """
    y = (x - p["at"]) / p["L"]
    y = 2 * y / (1 + jnp.sqrt(1 + 4 * p["k"] * y))
    y = (p["sign"] + p["m"]) * y + p["b"] * y**2 + p["c"] * y**3 + p["e"] * y**5
    return p["at"] + p["L"] * (y + p["k"] * y**2)


def spiral(s, p):
    """z -> e^{i (theta + turn |z|^2)} z (1 + m + (d + i twist) |z|^2).

    Seen through y + k x^2.
    """
    x, y = s[0], s[1] - p["k"] * s[0] ** 2
    square = x**2 + y**2
    re, im = 1 + p["m"] + p["d"] * square, p["twist"] * square
    x, y = re * x - im * y, im * x + re * y
    angle = p["theta"] + p["turn"] * square
    c, s = jnp.cos(angle), jnp.sin(angle)
    x, y = c * x - s * y, s * x + c * y
    return jnp.array([x, y + p["k"] * x**2])


def special_of(map, x, value, parameters, free, **options):
    problem = Problem(map, jnp.zeros(len(x)), parameters, free)
    branch = follow_cycle(problem, jnp.array(x), value, **options).run()
    (special,) = branch.special
    return problem, special


def scalar_point(start=-0.3, within=(-0.3, 0.4), **parameters):
    unset = dict.fromkeys(("m", "b", "c", "e", "k", "at"), 0.0) | {
        "sign": 1.0,
        "L": 1.0,
    }
    parameters = unset | parameters
    return special_of(scalar, [parameters["at"]], start, parameters, "m", within=within)


def cubic_point(sign, c, k=0.0):
    return scalar_point(-0.13, (-0.2, 0.2), sign=sign, c=c, k=k)


def spiral_point(d, twist=0.3, theta=2.0, k=0.7, turn=0.0):
    parameters = {"m": 0.0, "d": d, "twist": twist, "theta": theta, "k": k}
    parameters["turn"] = turn
    return special_of(spiral, [0.0, 0.0], -0.13, parameters, "m", within=(-0.2, 0.2))


def test_logistic_doubling():
    _, special = special_of(logistic, [0.6], 2.5, {"r": 2.5}, "r", within=(2, 3.2))
    assert special.form.coefficient == pytest.approx(9, rel=EXACT)
    assert special.form.criticality == "supercritical" and special.form.side == 1


def test_logistic_period_three_fold():
    """b = (f^3)'' / 2Q and s = Q d f^3 / d r, from the composed polynomial.

    Q^2 = (1 + (f')^2 + ((f^2)')^2) / 3 makes the size of q one over the cycle.
    """
    problem = Problem(logistic, jnp.zeros(1), {"r": 3.84}, "r", period=3)
    start = find_cycle(problem, jnp.array([0.5]), 3.84)
    branch = follow_cycle(problem, start.x, 3.84, direction=-1, within=(3.5, 3.86))
    (fold,) = branch.run().special
    r = 1 + np.sqrt(8)
    f = np.polynomial.Polynomial([0, r, -r])
    third = f(f(f))
    assert third.deriv()(fold.x[0]) == pytest.approx(1, abs=1e-9)
    # Degree 8 with coefficients up to 10^5, evaluated at a point of the fold, where x
    # is known to the square root of rounding.
    Q = np.sqrt(
        sum(
            g.deriv()(fold.x[0]) ** 2
            for g in (np.polynomial.Polynomial([0, 1]), f, f(f))
        )
        / 3
    )
    h = 1e-6
    at = lambda r: np.polynomial.Polynomial([0, r, -r])
    difference = at(r + h)(at(r + h)(at(r + h))) - at(r - h)(at(r - h)(at(r - h)))
    slope = difference(fold.x[0]) / (2 * h)
    b = np.sign(slope) * third.deriv(2)(fold.x[0]) / (2 * Q)
    assert fold.form.coefficient == pytest.approx(b, rel=1e-6)
    assert fold.form.speed.real == pytest.approx(abs(slope) * Q, rel=1e-6)
    assert fold.form.side == 1 and fold.form.criticality == ""


def test_henon_fold_and_doubling():
    options = dict(parameters={"a": 0.2, "b": 0.3}, free="a")
    b = 0.3
    _, fold = special_of(
        henon,
        [0.7, 0.2],
        0.2,
        direction=-1,
        settings=Settings(max_points=40),
        **options,
    )
    a = -((1 - b) ** 2) / 4
    exact = -a / ((1 + b) * np.sqrt(1 + b**2))
    # Orbits are on the side of larger a: s > 0 by the sign of q, and b < 0.
    assert fold.form.coefficient == pytest.approx(-exact, rel=EXACT)
    assert fold.form.speed.real > 0 and fold.form.side == 1
    _, doubling = special_of(henon, [0.7, 0.2], 0.2, within=(0.1, 0.8), **options)
    a = 3 * (1 - b) ** 2 / 4
    exact = a**2 / ((1 - b**2) * (1 + b**2))
    assert doubling.form.coefficient == pytest.approx(exact, rel=EXACT)
    assert doubling.form.criticality == "supercritical"


def test_coefficients_are_those_of_the_cycle_not_of_one_of_its_points():
    """Cycles that double: of period 2 at a = 0.9125, and its third image, period 6."""
    problem = Problem(henon, jnp.zeros(2), {"a": 0.9, "b": 0.3}, "a", period=2)
    start = find_cycle(problem, jnp.array([1.2, -0.13]), 0.9)
    branch = follow_cycle(problem, start.x, 0.9, within=(0.89, 0.92)).run()
    (special,) = branch.special
    assert special.kind == "period_doubling" and special.period == 2
    once, parameters = problem.with_period(1), {"a": special.value, "b": 0.3}
    for period in (2, 6):
        of_cycle, x, forms = problem.with_period(period), special.x, []
        for _ in range(2):
            located = Located(np.append(x, special.value), np.nan, 0.0)
            forms.append(normal_form(of_cycle, DOUBLING, located))
            x = np.asarray(once.iterate(jnp.asarray(x), parameters, 1))
        lengths = [np.linalg.norm(form.vector) for form in forms]
        assert abs(lengths[0] / lengths[1] - 1) > 0.2
        assert sum(length**2 for length in lengths) == pytest.approx(2, rel=1e-9)
        first, second = forms
        assert first.coefficient == pytest.approx(second.coefficient, rel=1e-9)
        assert first.speed == pytest.approx(second.speed, rel=1e-9)
        # Three turns, -1 each, multiply both by 3: (-1 + e)^3 = -1 + 3 e + O(e^2).
        assert first.coefficient == pytest.approx(
            period / 2 * special.form.coefficient, rel=1e-9
        )
        assert first.speed == pytest.approx(period / 2 * special.form.speed, rel=1e-9)


def test_delayed_logistic_torus():
    _, special = special_of(
        delayed_logistic, [0.33, 0.33], 1.5, {"a": 1.5}, "a", within=(1.2, 2.2)
    )
    assert special.kind == "neimark_sacker" and abs(special.value - 2) < 1e-10
    form = special.form
    assert form.rotation == pytest.approx(1 / 6, abs=1e-10)
    assert form.coefficient + 1j * form.twist == pytest.approx(
        -1 - 1j * np.sqrt(3), rel=EXACT
    )
    assert form.speed == pytest.approx(0.5 + 0.5j / np.sqrt(3), rel=EXACT)
    assert form.criticality == "supercritical" and form.resonance == 0


@pytest.mark.parametrize("c", [0.8, -0.8])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cubic_coefficient_does_not_depend_on_coordinates(sign, c):
    """A change of coordinates tangent to the identity leaves c as it is."""
    for k in (0.0, 0.6):
        _, special = cubic_point(sign, c, k)
        assert special.kind == ("pitchfork" if sign > 0 else "period_doubling")
        assert special.form.coefficient == pytest.approx(c, rel=EXACT)
        assert special.form.speed.real == pytest.approx(1, rel=EXACT)
        # A doubling is supercritical for c > 0, a pitchfork for c < 0.
        assert special.form.criticality == (
            "supercritical" if sign * c < 0 else "subcritical"
        )
        assert special.form.side == -np.sign(c)


@pytest.mark.parametrize("d", [0.4, -0.4])
def test_torus_coefficient_does_not_depend_on_coordinates(d):
    """With |q| = 1 the amplitude |w|^2 of w = x + i y is 2 |z|^2."""
    for k in (0.0, 0.7):
        _, special = spiral_point(d, k=k)
        form = special.form
        assert special.kind == "neimark_sacker"
        assert form.coefficient + 1j * form.twist == pytest.approx(
            2 * (d + 0.3j), rel=EXACT
        )
        assert form.speed == pytest.approx(1, rel=EXACT)
        assert form.criticality == ("supercritical" if d < 0 else "subcritical")
        assert form.side == -np.sign(d)


@pytest.mark.parametrize(("order", "turn"), [(3, 1 / 3), (4, 1 / 4)])
def test_strong_resonances_are_flagged(order, turn):
    _, special = spiral_point(-0.4, theta=2 * np.pi * turn)
    assert special.form.resonance == order
    assert special.form.rotation == pytest.approx(turn, abs=1e-12)
    assert special.form.criticality == ""
    assert np.isnan(special.form.coefficient) == (order == 3)


def test_a_subcritical_doubling_has_an_unstable_cycle_beside_the_stable_point():
    """The cycle at distance dp is +-sqrt(-dp/c), and unstable."""
    problem, special = cubic_point(-1.0, -0.8)
    distance = 1e-4
    amplitude = special.form.amplitude(distance)
    doubled = problem.with_period(2)
    cycle = find_cycle(doubled, jnp.array([amplitude]), special.value + distance)
    assert cycle.period == 2 and not cycle.stable
    assert abs(cycle.x[0]) == pytest.approx(amplitude, rel=1e-3)
    assert np.isnan(special.form.amplitude(-distance))


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_of_a_transcritical_point_part_linearly(sign):
    """x = 0 and x = 1 - 1/r of the logistic map are |r - 1| apart, on both sides.

    1 - 1/r = dr - dr^2 + ..., so the error is dr relative to the prediction.
    """
    _, special = special_of(logistic, [0.0], 0.5, {"r": 0.5}, "r", within=(0.4, 1.5))
    form = special.form
    assert special.kind == "transcritical" and form.side == 0
    for dr in (1e-2 * sign, 1e-3 * sign):
        apart = abs(1 - 1 / (1 + dr))
        assert form.amplitude(dr) == pytest.approx(apart, rel=1.1 * abs(dr))


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("a", [1.0, 0.0])
def test_a_branch_point_has_the_same_name_in_all_units(a, unit):
    """b = a/L, by the sign of q, and c = -1/L^2, in whatever units x is measured."""
    for c in (1.0, 0.0) if a else (1.0,):
        _, special = scalar_point(L=unit, b=-a, c=-c)
        assert special.kind == ("transcritical" if a else "pitchfork")
        exact = a / unit if a else -c / unit**2
        assert special.form.coefficient == pytest.approx(exact, rel=EXACT)
        assert special.form.criticality == ("" if a else "supercritical")


@pytest.mark.parametrize("at", [0.0, 0.3])
@pytest.mark.parametrize("fifth", [0.0, 1.0])
def test_a_pitchfork_whose_cubic_coefficient_is_zero_is_degenerate(at, fifth):
    """Rounding keeps y off 0 at 0.3."""
    _, special = scalar_point(at=at, e=-fifth)
    form = special.form
    assert special.kind == "pitchfork" and abs(form.coefficient) < 1e-15
    assert form.criticality == "degenerate" and form.side == 0
    assert np.isnan(form.amplitude(0.1)) and np.isnan(form.amplitude(-0.1))
    assert "degenerate" in repr(special)


def test_an_area_preserving_hopf_point_is_degenerate():
    """Re d = 0: (x, y) turned by 1 + |x|^2/2, and longer by a factor 1 + m."""
    _, special = spiral_point(0.0, twist=0.0, theta=1.0, k=0.0, turn=0.5)
    assert special.kind == "neimark_sacker"
    assert special.form.criticality == "degenerate"
    # |x|^2 = 2 |z|^2: the angle is 1 + |z|^2.
    assert special.form.twist == pytest.approx(1.0, abs=1e-9)


def test_doubled_orbit_with_its_second_order_term():
    """x_0 + x' dp + xi q + xi^2 h/2 misses the two-cycle by O(xi^3)."""
    problem, special = special_of(
        henon, [0.7, 0.2], 0.2, {"a": 0.2, "b": 0.3}, "a", within=(0.1, 0.8)
    )
    errors = []
    for xi in (0.04, 0.02):
        shift, distance = special.form.depart(xi)
        assert special.form.amplitude(distance) == pytest.approx(xi, rel=EXACT)
        x = special.x + shift
        two = problem.with_period(2)
        cycle = find_cycle(two, jnp.asarray(x), special.value + distance)
        assert cycle.period == 2
        errors.append(np.linalg.norm(cycle.x - x))
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.02)
