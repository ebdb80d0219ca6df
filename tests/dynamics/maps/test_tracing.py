"""Inside transformations of JAX, and how many programs of it calls need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics
from statmech_attn.batches import compilations
from statmech_attn.dynamics.continuation import find_cycle, Problem
from statmech_attn.dynamics.diagrams import Plan


def logistic(x, r):
    return r * x * (1 - x)


def plane(x, r):
    return jnp.stack([r * x[0] * (1 - x[0]), x[0]])


def lift(x, p):
    return x + p["omega"] + 0.1 * jnp.sin(2 * jnp.pi * x) / (2 * jnp.pi)


X, XY = jnp.array(0.3), jnp.array([0.3, 0.2])
FORWARD = {
    "lyapunov_spectrum": lambda r: dynamics.lyapunov_spectrum(logistic, X, r, steps=64),
    "orbit": lambda r: dynamics.orbit(logistic, X, r, samples=4),
    "finite_time_exponents": lambda r: dynamics.finite_time_exponents(
        logistic, X, r, window=4, count=8
    ),
    "growth_shares": lambda r: dynamics.growth_shares(
        dynamics.looped([{"sine": lambda x, p: p["a"] * jnp.sin(x)}]),
        XY,
        {"a": r},
        steps=64,
    ),
    "gali": lambda r: dynamics.gali(plane, XY, r, samples=3),
    "classify": lambda r: dynamics.classify(logistic, X, r, steps=64),
    "rotation_number": lambda r: dynamics.rotation_number(
        lift, 0.1, {"omega": r}, steps=64
    ),
    "curve_rotation": lambda r: dynamics.curve_rotation(plane, XY, r, steps=64),
}
UNTRACED = {
    "cycle_spectrum": lambda r: dynamics.cycle_spectrum(logistic, X, r, period=1),
    "settle": lambda r: dynamics.settle(logistic, jnp.full(2, 0.3), r),
    "find_attractors": lambda r: dynamics.find_attractors(
        logistic, jnp.full(2, 0.3), r
    ),
    "diagram": lambda r: dynamics.diagram(
        lambda x, p: logistic(x, p["r"]), {"r": jnp.stack([r, r + 0.1])}, X
    ),
}


def numbers(result):
    """All floating-point numbers of a result, as one."""
    leaves = [
        x for x in jax.tree.leaves(result) if jnp.issubdtype(x.dtype, jnp.floating)
    ]
    return sum(jnp.sum(jnp.where(jnp.isfinite(x), x, 0.0)) for x in leaves)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORWARD)
def test_reverse_mode_is_refused_in_one_line(name):
    with pytest.raises(ValueError, match=f"^{name} has derivatives in forward mode"):
        jax.grad(lambda r: numbers(FORWARD[name](r)))(0.4)


SECOND = "curve_rotation", "gali", "growth_shares"  # as the others, of the slow suite


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in SECOND))
        for name in sorted(set(FORWARD) - {"classify"})
    ],
)
def test_programs_and_forward_derivatives_exist(name):
    f = lambda r: numbers(FORWARD[name](r))
    value, slope = jax.jit(lambda r: jax.jvp(f, (r,), (1.0,)))(0.4)
    assert np.isfinite(value) and np.isfinite(slope)


@pytest.mark.parametrize("transformed", (jax.jit, jax.vmap, jax.grad, jax.jacfwd))
@pytest.mark.parametrize("name", UNTRACED)
def test_numbers_that_choose_the_work_are_not_traced(name, transformed):
    r = jnp.array([2.9, 3.1]) if transformed is jax.vmap else 2.9
    with pytest.raises(ValueError, match=f"^{name} works with numbers: not inside"):
        transformed(UNTRACED[name])(r)


def test_derivative_of_a_negative_exponent_is_that_of_the_attractor():
    """At rest in 1 - 1/r the exponent is ln|2 - r|; the orbit forgets its start."""
    exponent = lambda r: dynamics.lyapunov_spectrum(
        logistic, X, r, steps=2000, transient=2000
    ).exponents[0]
    value, slope = jax.jvp(exponent, (2.8,), (1.0,))
    assert value == pytest.approx(np.log(0.8), abs=1e-12)
    assert slope == pytest.approx(-1 / (2 - 2.8), rel=1e-9)


def test_derivative_of_a_chaotic_exponent_grows_with_the_run():
    """As the distance of neighbours, by more than e a step of ten (docs/python.md)."""
    slopes = [
        jax.jacfwd(
            lambda r, n=n: dynamics.lyapunov_spectrum(
                logistic, X, r, steps=n, blocks=4, align=0
            ).exponents[0]
        )(3.9)
        for n in (40, 120)
    ]
    assert abs(slopes[1]) > np.exp(8) * abs(slopes[0])


def test_the_network_may_be_an_argument_of_a_program():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.4, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)

    def late(net, params):
        system = dmft.system(net)
        assert system.drive_period == 4
        return dynamics.orbit(system, start, params, samples=3)

    # Programs may add products in another order: an error of rounding a token.
    plain = late(net, params)
    np.testing.assert_allclose(jax.jit(late)(net, params), plain, atol=1e-12)
    closed = jax.jit(lambda params: late(net, params))
    np.testing.assert_allclose(closed(params), plain, atol=1e-12)
    with pytest.raises(ValueError, match="epsilon: whether it is zero must be known"):
        jax.jit(lambda epsilon: dmft.clock_period(net, epsilon))(0.02)


def test_the_clock_of_a_stretched_network_is_longer():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=4)
    assert dmft.sequential(net).drive_period == dmft.clock_period(net, 0.02) == 4
    assert dmft.clock_period(dmft.stretched(net, 5), 0.02) == 20
    assert dmft.clock_period(dmft.stretched(net, 5), 0.0) == 1


def programs(call) -> int:
    """How many programs a call compiles, or reads from where they are kept."""
    before = compilations.count()
    call()
    return sum(compilations.count().since(before)[:2])


DECAY, SINE = lambda x, p: p["a"] * x / 2, lambda x, p: p["a"] * jnp.sin(x)
SHORT = Plan(transient=100, steps=100, exponents=1, max_doublings=0, compiler="xla")


@pytest.mark.parametrize(
    ("judge", "number"),
    [
        (lambda map: dynamics.lyapunov_spectrum(map, X, {"a": 1.0}, steps=64), 1),
        (lambda map: dynamics.classify(map, X, {"a": 1.0}, steps=64), 1),
        pytest.param(
            # Sums of a window, steps, rows of a section and exponents of cycles.
            lambda map: dynamics.diagram(map, {"a": [0.5, 1.0]}, X, SHORT),
            4,
            marks=pytest.mark.slow,
        ),
    ],
    ids=("lyapunov_spectrum", "classify", "diagram"),
)
def test_another_map_makes_programs_of_its_steps_alone(judge, number):
    """What judges an orbit is compiled once for all maps."""
    judge(DECAY)
    assert programs(lambda: judge(SINE)) == number


def test_another_value_of_the_parameter_compiles_nothing():
    doubled = Problem(lambda x, p: logistic(x, p["r"]), X, {"r": 3.2}, "r", period=2)
    find_cycle(doubled, jnp.array(0.5), 3.2)
    assert programs(lambda: find_cycle(doubled, jnp.array(0.5), 3.3)) == 0
