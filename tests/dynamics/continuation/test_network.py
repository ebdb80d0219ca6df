"""The published network (preset poclopez-pe2) as beta grows from 0."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dynamics.continuation import (
    find_cycle,
    follow_cycle,
    Problem,
)
from statmech_attn.dynamics.exponents.lyapunov import window_weights


FIRST_INSTABILITY = 1.2434445478150  # measured here; confirmed by the tests below


class Published(NamedTuple):
    file: dmft.PatternFile
    net: dmft.Network
    problem: Problem


@pytest.fixture(scope="module")
def published():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    parameters = {"beta": 0.0, "gamma": file.gamma, "epsilon": file.epsilon}
    turn = dmft.strobe(net, file.epsilon)
    return Published(file, net, Problem(turn, jnp.zeros(12), parameters, "beta"))


@pytest.fixture(scope="module")
def branch(published):
    """The cycle of the clock's period from beta = 0, where the drive alone sets it."""
    start = find_cycle(published.problem, jnp.zeros(12), 0.0)
    assert start.converged and start.stable and not np.any(start.multipliers)
    return follow_cycle(published.problem, start.x, 0.0, within=(0.0, 3.0)).run()


@pytest.fixture(scope="module")
def instability(branch):
    return branch.special[0]


@pytest.mark.slow
def test_the_first_instability_is_a_supercritical_neimark_sacker_point(branch):
    """The only event on the cycle's branch up to beta = 3, and so the first."""
    (special,) = branch.special
    assert special.kind == "neimark_sacker"
    assert special.form.criticality == "supercritical" and special.form.side == 1
    assert special.form.resonance == 0
    assert abs(special.value - FIRST_INSTABILITY) < 1e-10
    assert branch.reason == "left_range"
    assert (np.diff(branch.values) > 0).all()
    np.testing.assert_array_equal(branch.stable, branch.values < special.value)


@pytest.mark.slow
def test_its_place_is_confirmed_by_the_jacobians_of_single_steps(
    published, instability
):
    """|mu| - 1 over d|mu|/d beta bounds the error of beta, by another route."""
    net, file = published.net, published.file
    params = dmft.parameters(instability.value, file.gamma, file.epsilon)
    window = jnp.asarray(instability.x).reshape(net.context, net.n_patterns)
    state = dmft.from_window(net, params, window, 0)
    product = np.eye(net.dimension)
    for _ in range(net.context):
        product = np.asarray(dmft.jacobian(net, params, state)) @ product
        state = dmft.step(net, params, state)
    np.testing.assert_allclose(dmft.window(state), window, rtol=0, atol=1e-13)
    modulus = np.max(np.abs(np.linalg.eigvals(product)))
    assert abs(modulus - 1) / instability.form.speed.real < 1e-10
    # Any starting state is on the cycle below it (transients die like |mu|^n).
    below = dmft.parameters(1.2, file.gamma, file.epsilon)
    far = dmft.advance(net, below, dmft.from_checkpoint(net, below, file), 4000)
    cycle = find_cycle(published.problem, dmft.strobe_point(net, below, far), 1.2)
    assert cycle.stable and cycle.iterations <= 2


@eqx.filter_jit
def turns(problem, x, value, *, skip, steps):
    image = lambda x: problem.image(x, value)
    x = jax.lax.fori_loop(0, skip, lambda _, x: image(x), x)
    return jax.lax.scan(lambda x, _: (image(x), x), x, None, length=steps)[1]


def closed_curve(problem, special, distance):
    """Measured over predicted radius, and measured rotation number minus predicted."""
    form, value = special.form, special.value + distance
    radius = form.amplitude(distance)
    centre = find_cycle(problem, special.x + distance * form.drift, value).x
    start = centre + 2 * np.real(radius * form.vector)
    # The radius relaxes like exp(-2 |mu|' dp n): e^-20 is left.
    skip = jnp.asarray(int(10 / (form.speed.real * distance)))
    points = turns(
        problem, jnp.asarray(start), jnp.asarray(value), skip=skip, steps=4000
    )
    z = (np.asarray(points) - centre) @ form.adjoint.conj()
    advance = np.angle(z[1:] / z[:-1]) / (2 * np.pi)
    s = jnp.asarray((np.arange(advance.size) + 0.5) / advance.size)
    weights = np.asarray(jax.vmap(window_weights)(s))[:, 0]
    rotation = np.sum(weights * advance) / np.sum(weights)
    measured = np.sqrt(np.mean(np.abs(z) ** 2))
    return measured / radius, rotation - form.rotation_at(distance)


@pytest.mark.slow
def test_the_torus_above_it_has_the_predicted_size_and_rotation(published, instability):
    r"""Radius $\sqrt{-|\mu|' \delta\beta / a}$ with its prefactor, not a fitted one.

    Corrections are of relative order dbeta to the radius, dbeta^2 to the rotation.
    """
    far, near = (
        closed_curve(published.problem, instability, distance)
        for distance in (2e-3, 5e-4)
    )
    assert abs(near[0] - 1) < 0.005
    assert (far[0] - 1) / (near[0] - 1) == pytest.approx(4, rel=0.15)
    assert abs(near[1]) < 2e-6
    assert far[1] / near[1] == pytest.approx(16, rel=0.25)


@pytest.mark.slow
def test_the_cycle_of_44_tokens_is_locked_between_two_folds(published):
    """Its stable and unstable copies, eleven phases of each, form one closed curve."""
    file, net = published.file, published.net
    beta = 1.26451
    params = dmft.parameters(beta, file.gamma, file.epsilon)
    far = dmft.advance(net, params, dmft.from_checkpoint(net, params, file), 100_000)
    problem = published.problem.with_period(11)
    start = find_cycle(problem, dmft.strobe_point(net, params, far), beta)
    assert start.period == 11 and start.stable
    locked = follow_cycle(problem, start.x, beta, within=(1.2, 1.3)).run()
    assert locked.reason == "closed"
    assert [special.kind for special in locked.special] == 22 * ["fold"]
    ends = np.array([special.value for special in locked.special])
    np.testing.assert_allclose(ends[0::2], ends[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ends[1::2], ends[1], rtol=0, atol=1e-10)
    assert ends[1] < 1.2645 < ends[0]  # where torus and cycle are known to coexist
