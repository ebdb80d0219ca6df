"""Curves of zeros whose shape, length and end are known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import follow, Settings
from statmech_attn.dynamics.continuation.arclength import interpolate


def circle(u):
    return jnp.array([u @ u - 1])


def ellipse(u):
    return jnp.array([u[0] ** 2 + (u[1] / 1000) ** 2 - 1])


def nan_beyond_one(u):
    return jnp.array([jnp.where(u[1] > 1, jnp.nan, u[0] - u[1])])


def infinite_beyond_one(u):
    return jnp.array([jnp.where(u[1] > 1, jnp.inf, u[0] - u[1])])


def corner(u):
    return jnp.array([u[0] - jnp.abs(u[1] - 1)])


def weak_corner(u):
    return jnp.array([u[0] - jnp.maximum(u[1], 4 * u[1] - 3)])


def broken_fold(u):
    return jnp.array([jnp.abs(u[0]) + u[1] - 1])


def jump(u):
    return jnp.array([u[0] - jnp.sign(u[1] - 1)])


def root(u):
    return jnp.array([u[0] - jnp.sqrt(jnp.abs(u[1] - 1))])


def end_point(u):
    """u0 = u1 up to 1, and no zero beyond: Newton runs away from the minimum."""
    apart, beyond = u[0] - u[1], u[1] > 1
    short = jnp.where(beyond, u[1] - 1, 1.0)  # hypot has no derivative at zero
    size = jnp.where(beyond, jnp.hypot(apart, short**2), jnp.abs(apart))
    return jnp.array([size + apart])


class OneOf(eqx.Module):
    """One of several residuals: they are compiled together, once."""

    number: jax.Array

    def __call__(self, u):
        return jax.lax.switch(self.number, RESIDUALS, u)


def pole(u):
    return jnp.array([u[0] * (1 - u[1]) - 1])


def line(u):
    return jnp.array([u[0] - u[1]])


def test_a_circle_closes_and_every_point_lies_on_it():
    curve = follow(circle, [1.0, 0.0])
    points = list(curve)
    assert curve.reason == "closed"
    u = np.array([p.u for p in points])
    # Newton's last correction is below 1e-10, so its square bounds the distance.
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=0, atol=1e-14)
    tangents = np.array([p.tangent for p in points])
    np.testing.assert_allclose(np.sum(u * tangents, axis=1), 0, atol=1e-13)
    np.testing.assert_array_equal(u[-1], u[0])
    # A chord of a step h <= 0.1 is shorter than its arc by h^3/24.
    assert 0 < 2 * np.pi - points[-1].arclength < 2 * np.pi * 0.1**2 / 24


def test_direction_is_a_sign_of_the_last_coordinate_or_a_vector():
    first = lambda direction: next(follow(circle, [0.8, 0.6], direction=direction))
    np.testing.assert_allclose(first(1).tangent, [-0.6, 0.8], atol=1e-14)
    np.testing.assert_allclose(first(-1).tangent, [0.6, -0.8], atol=1e-14)
    np.testing.assert_allclose(first([1.0, 0.0]).tangent, [0.6, -0.8], atol=1e-14)
    # The first point is sought in the plane across the direction.
    above = next(follow(circle, [1.0, 0.6], direction=1)).u
    np.testing.assert_allclose(above, [0.8, 0.6], atol=1e-14)


def test_scales_make_an_ellipse_a_circle():
    settings = Settings(first_step=0.05, largest_step=0.05)
    steps = {
        name: len(list(follow(f, [1.0, 0.0], settings=settings, scales=scales)))
        for name, f, scales in (
            ("circle", circle, None),
            ("ellipse", ellipse, [1.0, 1000.0]),
        )
    }
    assert steps["circle"] == steps["ellipse"]


ENDS = {
    nan_beyond_one: "not_a_number",
    infinite_beyond_one: "diverged",
    corner: "not_differentiable",
    weak_corner: "not_differentiable",
    broken_fold: "not_differentiable",
    jump: "not_differentiable",
    root: "not_differentiable",
}
RESIDUALS = [*ENDS, end_point, pole, line]


def one_of(residual):
    return OneOf(jax.device_put(RESIDUALS.index(residual)))


@pytest.mark.parametrize(("residual", "reason"), ENDS.items())
def test_a_curve_ends_for_a_reason_with_the_last_good_point(residual, reason):
    start = {"jump": [-1.0, 0.0], "nan_beyond_one": [0.0, 0.0]}
    curve = follow(one_of(residual), start.get(residual.__name__, [1.0, 0.0]))
    last = list(curve)[-1]
    assert curve.reason == reason
    # The trouble starts at u1 = 1; the last point is within the smallest steps of it,
    # or, on the root, where its slope 1/(2 sqrt) has come within the steps.
    np.testing.assert_allclose(last.u[1], 1, atol=1e-5)
    # A zero lies within the tolerance of it.
    away = np.linalg.norm(residual(jnp.asarray(last.u))) / np.linalg.norm(last.jacobian)
    assert away < 1e-9
    assert next(curve, None) is None


def test_no_zero_any_more_is_not_converged():
    curve = follow(one_of(end_point), [0.0, 0.0], settings=Settings(bend=10.0))
    last = list(curve)[-1]
    assert curve.reason == "not_converged"
    # Beyond u1 = 1 the best residual is of order (u1 - 1)^2, below what Newton can see
    # until it exceeds its tolerance.
    assert 0.99 < last.u[1] < 1.1


def test_running_off_to_infinity_is_diverged():
    settings = Settings(largest_step=10.0, bound=100.0, max_points=10_000)
    curve = follow(one_of(pole), [1.0, 0.0], settings=settings)
    last = list(curve)[-1]
    assert curve.reason == "diverged"
    assert 80 < last.u[0] <= 100


def test_leaving_the_range_and_the_count_of_points_end_a_curve():
    curve = follow(one_of(line), [0.0, 0.0], inside=lambda u: u[1] <= 0.5)
    assert list(curve)[-1].u[1] <= 0.5
    assert curve.reason == "left_range"
    outside = follow(one_of(line), [0.0, 0.0], inside=lambda u: u[1] > 1)
    assert list(outside) == [] and outside.reason == "left_range"
    short = follow(one_of(line), [0.0, 0.0], settings=Settings(max_points=7))
    assert len(list(short)) == 7 and short.reason == "max_points"


def test_the_caller_may_stop_and_go_on():
    curve = follow(circle, [1.0, 0.0])
    for point in curve:
        if point.u[1] > 0.5:
            break
    assert curve.reason == "unfinished"
    assert curve.points[-1] is point
    rest = list(curve)
    assert curve.reason == "closed"
    np.testing.assert_array_equal(curve.points[-1].u, rest[-1].u)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(settings=dict(first_step=1.0)), "first_step must lie between"),
        (dict(settings=dict(smallest_step=0.0)), "smallest_step must be above 0"),
        (dict(settings=dict(tolerance=0.0)), "tolerance must be above 0; got 0.0"),
        (dict(settings=dict(max_points=0)), "max_points must be at least 1; got 0"),
        (dict(direction=2), "direction must be 1, -1 or a vector; got 2"),
        (dict(direction=[0.0, 0.0]), "direction must be a non-zero vector"),
        (dict(scales=[1.0, 0.0]), "scales must be 2 positive numbers"),
        (dict(start=[1.0, 0.0, 0.0]), "residual must map"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        settings = Settings(**change.pop("settings", {}))
        start = change.pop("start", [1.0, 0.0])
        follow(circle, start, settings=settings, **change)
    assert "\n" not in str(caught.value)


def test_between_two_points_of_a_circle_the_curve_is_near_it():
    circle = lambda u: jnp.array([u @ u - 1])
    first, second = list(follow(circle, jnp.array([1.0, 0.0])))[:2]
    halfway = interpolate(first, second, 0.5)
    assert abs(halfway @ halfway - 1) < 1e-3
