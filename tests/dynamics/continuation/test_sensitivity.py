"""Derivatives of cycles against closed forms and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import multipliers_at, orbit, Problem
from statmech_attn.dynamics.maps.catalogue import henon, logistic


TWO_CYCLE = Problem(logistic, jnp.zeros(1), {"r": 3.2}, "r", period=2)
START = jnp.array([0.5])


def point(r):
    return orbit(TWO_CYCLE, START, r=r)[0]


def exact(r):
    """The lower point of the two-cycle."""
    return (r + 1 - jnp.sqrt((r - 3) * (r + 1))) / (2 * r)


@pytest.mark.slow
def test_first_derivative_in_both_modes():
    expected = float(jax.grad(exact)(3.2))
    for derivative in (jax.grad, jax.jacfwd, jax.jacrev):
        assert derivative(point)(3.2) == pytest.approx(expected, rel=1e-12)
    assert jax.jit(jax.grad(point))(3.2) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_second_derivative():
    """Also by reverse over reverse: the rule uses itself."""
    expected = float(jax.grad(jax.grad(exact))(3.2))
    for second in (jax.hessian(point), jax.grad(jax.grad(point))):
        assert second(3.2) == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
def test_many_parameters_at_once():
    r = jnp.linspace(3.15, 3.25, 5)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(point))(r), jax.vmap(jax.grad(exact))(r), rtol=1e-11
    )


def test_multipliers_of_the_two_cycle():
    """mu = 4 + 2 r - r^2, so d mu / d r = 2 - 2 r, through the moving orbit."""

    def multiplier(r):
        x = orbit(TWO_CYCLE, START, r=r)
        return multipliers_at(TWO_CYCLE, x, r=r)[0].real

    value, slope = jax.jit(jax.value_and_grad(multiplier))(3.2)
    assert value == pytest.approx(0.16, abs=1e-13)
    assert slope == pytest.approx(-4.4, rel=1e-12)


def test_any_parameter_by_name():
    """Henon's fixed point: a x^2 + (1 - b) x = 1, by implicit differentiation."""
    problem = Problem(henon, jnp.zeros(2), {"a": 0.2, "b": 0.3}, "a")
    x_of = lambda a, b: orbit(problem, jnp.array([0.7, 0.2]), a=a, b=b)[0]
    a, b = 0.25, 0.2
    solved = jax.jit(jax.value_and_grad(x_of, argnums=(0, 1)))
    x, (by_a, by_b) = jax.tree.map(float, solved(a, b))
    assert by_a == pytest.approx(-(x**2) / (2 * a * x + 1 - b), rel=1e-12)
    assert by_b == pytest.approx(x / (2 * a * x + 1 - b), rel=1e-12)
    # Parameters that are not named keep the values of the problem.
    kept = lambda b: orbit(problem, jnp.array([0.7, 0.2]), b=b)[0]
    assert jax.jit(kept)(0.2) == pytest.approx(float(solved(0.2, 0.2)[0]), rel=1e-14)


def test_the_cycle_does_not_depend_on_where_newton_starts():
    """The derivative in the start is zero; it passes through to other uses of it."""
    from_x = lambda x: orbit(TWO_CYCLE, x, r=3.2)[0]
    for derivative in (jax.grad, jax.jacfwd):
        assert jax.jit(derivative(from_x))(START)[0] == 0
    both = lambda r: from_x(jnp.array([exact(r)])) + point(r)
    slopes = jax.jit(lambda r: (jax.grad(both)(r), jax.grad(exact)(r)))(3.2)
    assert slopes[0] == pytest.approx(float(slopes[1]), rel=1e-12)


def test_no_cycle_is_nan_and_a_wrong_name_is_refused():
    problem = Problem(henon, jnp.zeros(2), {"a": 0.2, "b": 0.3}, "a")
    lost = orbit(problem, jnp.array([0.7, 0.2]), a=-0.5)
    assert np.isnan(lost).all()
    with pytest.raises(ValueError, match=r"parameters must be among \['a', 'b'\]"):
        orbit(problem, jnp.zeros(2), c=1.0)
    with pytest.raises(ValueError, match="x must have 2 coordinates; got 1"):
        orbit(problem, jnp.zeros(1))
