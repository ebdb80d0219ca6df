"""Special points with the errors that Newton's method and rounding leave them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics.continuation import Problem
from statmech_attn.dynamics.continuation.augmented_systems import locate
from statmech_attn.dynamics.continuation.normal_forms import normal_form


FOLD, DOUBLING, TORUS = range(3)


def logistic(period):
    """G(x, r) = f^k(x) - x."""

    def residual(u):
        iterate = lambda _, x: u[1] * x * (1 - x)
        return jax.lax.fori_loop(0, period, iterate, u[:1]) - u[:1]

    return residual


def delayed(u):
    """x -> a x (1 - y), y -> x, whose fixed point loses stability at a = 2."""
    x, y, a = u
    return jnp.array([a * x * (1 - y) - x, x - y])


@pytest.mark.parametrize(
    "residual, kind, start, exact",
    (
        (logistic(1), DOUBLING, (0.66, 2.99), 3.0),
        (logistic(2), DOUBLING, (0.85, 3.45), 1 + 6**0.5),
        (logistic(3), FOLD, (0.51, 3.82), 1 + 8**0.5),
        (logistic(3), FOLD, (0.16, 3.82), 1 + 8**0.5),
        (delayed, TORUS, (0.49, 0.51, 1.99), 2.0),
    ),
)
def test_the_error_covers_the_known_point_and_is_that_of_rounding(
    residual, kind, start, exact
):
    located = locate(residual, kind, np.array(start))
    assert abs(located.u[-1] - exact) <= located.error
    assert 2.0**-53 * exact < located.error < 100 * 2.0**-53 * exact


@pytest.mark.parametrize("scale", (1.0, 1e-6))
def test_rounding_of_the_equations_is_seen_through_their_inverse(scale):
    """x^2 = p in a sum with terms e^x / scale: p is known to u / scale at best."""

    def residual(u):
        large = jnp.exp(u[0]) / scale
        return jnp.array([(u[1] - u[0] ** 2 + large) - large])

    located = locate(residual, FOLD, np.array([0.1, 0.02]))
    error = abs(located.u[-1])
    assert error <= located.error
    assert scale == 1 or 2.0**-54 / scale < located.error < 2.0**-50 / scale


def test_a_torus_without_a_complex_multiplier_and_a_point_that_is_none_are_refused():
    with pytest.raises(ValueError, match="angle must be given"):
        locate(logistic(1), TORUS, np.array([0.66, 2.99]))
    problem = Problem(lambda x, p: x + p["p"] ** 2 + 1, jnp.zeros(1), {"p": 0.0}, "p")
    nowhere = locate(problem.residual, FOLD, np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="located must be a bifurcation"):
        normal_form(problem, FOLD, nowhere)
