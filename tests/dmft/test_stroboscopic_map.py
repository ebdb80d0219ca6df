"""The stroboscopic map is C steps of the network, seen from clock 0."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft


@pytest.fixture(scope="module")
def published():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.4, file.gamma, file.epsilon)
    return net, params, dmft.from_checkpoint(net, params, file)


def values(params):
    return {"beta": params.beta, "gamma": params.gamma, "epsilon": params.epsilon}


def test_one_turn_of_the_clock_is_c_steps(published):
    net, params, start = published
    state = dmft.advance(net, params, start, 37)
    x = dmft.strobe_point(net, params, state)
    to_zero = (-int(state.clock)) % net.context
    later = dmft.advance(net, params, state, to_zero + net.context)
    turn = dmft.strobe(net, float(params.epsilon)).step
    after = jax.jit(lambda x: turn(x, values(params)))(x)
    # Chaos magnifies rounding by at most e^0.1 per token over four tokens.
    np.testing.assert_allclose(after, dmft.window(later).ravel(), rtol=0, atol=1e-13)


@pytest.mark.slow
def test_its_jacobian_is_the_product_of_those_of_the_steps(published):
    net, params, start = published
    state = dmft.advance(net, params, start, (-start.clock) % net.context)
    product = np.eye(net.dimension)
    for _ in range(net.context):
        product = np.asarray(dmft.jacobian(net, params, state)) @ product
        state = dmft.step(net, params, state)
    x = dmft.strobe_point(net, params, start)
    turn = dmft.strobe(net, float(params.epsilon)).step
    jacobian = jax.jit(jax.jacfwd(lambda x: turn(x, values(params))))(x)
    np.testing.assert_allclose(jacobian, product, rtol=0, atol=1e-11)


def test_without_a_drive_it_is_one_step(published):
    net, params, start = published
    silent = dmft.parameters(params.beta, params.gamma, 0.0)
    state = dmft.from_window(net, silent, dmft.window(start), 0)
    once = dmft.strobe(net, 0.0).step
    assert once.tokens == 1
    np.testing.assert_allclose(
        once(dmft.window(state).ravel(), values(silent)),
        dmft.window(dmft.step(net, silent, state)).ravel(),
        rtol=0,
        atol=1e-15,
    )
