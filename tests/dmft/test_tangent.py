import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics


# One program each: what runs operation by operation is compiled so, too.
from_random = eqx.filter_jit(dmft.from_random)
jacobian = eqx.filter_jit(dmft.jacobian)
step = eqx.filter_jit(dmft.step)


def by_age(state, context, n_patterns):
    """Order of slot coordinates that lists the window newest first."""
    slots = (int(state.clock) - np.arange(context)) % context
    return (slots[:, None] * n_patterns + np.arange(n_patterns)).ravel()


def test_structured_push_is_the_jacobian_of_the_map():
    p = dmft.random_segments(jax.random.key(2), n_patterns=3, n_segments=4, n_bits=2)
    net = dmft.network(p, context=2)
    params = dmft.parameters(1.3, 6.0, 0.1)
    state = from_random(net, params, jax.random.key(1))
    system = dmft.TangentMap(net, params)
    expected = np.eye(net.dimension)
    lifted, frame = system.lift(state), jnp.asarray(expected, float)
    push = eqx.filter_jit(system.push)
    # Several steps, so that cached responses of older tokens are used too.
    for _ in range(4):
        expected = np.asarray(jacobian(net, params, system.lower(lifted))) @ expected
        lifted, frame = push(lifted, frame)
    after = by_age(system.lower(lifted), 2, 3)
    before = by_age(state, 2, 3)
    pushed = np.asarray(frame)[after][:, before]
    assert np.allclose(pushed, expected, rtol=1e-11, atol=1e-13)


def test_jacobian_is_the_finite_difference_of_the_window():
    net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
    params = dmft.parameters(1.1, 127.0, 0.02)
    state = dmft.from_checkpoint(net, params, dmft.load("poclopez-pe2"))
    exact = np.asarray(jacobian(net, params, state))
    z, h = np.asarray(dmft.window(state)).ravel(), 1e-6

    @jax.jit
    def moved(x):
        start = dmft.from_window(net, params, x.reshape(4, 3), state.clock)
        return dmft.window(dmft.step(net, params, start)).ravel()

    for j in range(12):
        unit = h * np.eye(12)[j]
        central = (moved(z + unit) - moved(z - unit)) / (2 * h)
        # Third derivatives are of order gamma^2, so the error is h^2 gamma^2 or so.
        assert np.allclose(central, exact[:, j], atol=1e-7)


def spectrum(patterns, beta, gamma=20.0, epsilon=0.05, **options):
    net = dmft.network(patterns, context=3)
    params = dmft.parameters(beta, gamma, epsilon)
    state = from_random(net, params, jax.random.key(0))
    return dynamics.lyapunov_spectrum(
        dmft.system(net), state, params, steps=4000, transient=500, **options
    )


@pytest.mark.slow
def test_structured_and_automatic_tangents_have_one_spectrum():
    p = dmft.random_segments(jax.random.key(8), n_patterns=2, n_segments=6, n_bits=2)
    net = dmft.network(p, context=3)
    params = dmft.parameters(0.9, 5.0, 0.05)
    state = from_random(net, params, jax.random.key(0))

    def plain(pair):  # the map on the window alone, with the clock beside it
        z, clock = pair
        full = dmft.from_window(net, params, z, clock)
        after = dmft.step(net, params, full)
        return dmft.window(after), after.clock

    pair = (dmft.window(state), state.clock)
    options = dict(steps=3000, transient=500)
    automatic = dynamics.lyapunov_spectrum(plain, pair, **options)
    structured = dynamics.lyapunov_spectrum(dmft.system(net), state, params, **options)
    assert int(structured.resolved) == int(automatic.resolved) == 6
    # A fixed point of F^C: both averages are exact up to their start-up.
    assert np.allclose(structured.weighted, automatic.weighted, atol=1e-9)


@pytest.mark.slow
def test_sum_of_exponents_is_the_mean_log_determinant():
    p = dmft.random_segments(jax.random.key(8), n_patterns=2, n_segments=6, n_bits=2)
    net = dmft.network(p, context=3)
    params = dmft.parameters(0.9, 5.0, 0.05)
    state = from_random(net, params, jax.random.key(0))
    state = dmft.advance(net, params, state, 2001)
    found = dynamics.lyapunov_spectrum(
        dmft.system(net), state, params, steps=3000, transient=500
    )
    logs = []
    for _ in range(3):  # one period of the clock: the orbit is fixed under F^C
        logs.append(np.linalg.slogdet(jacobian(net, params, state))[1])
        state = step(net, params, state)
    assert float(found.weighted.sum()) == pytest.approx(np.mean(logs), abs=1e-9)


@pytest.mark.slow
def test_fewer_classes_than_patterns_leave_minus_infinity():
    p = dmft.random_segments(jax.random.key(4), n_patterns=3, n_segments=2, n_bits=2)
    found = spectrum(p, 0.8)
    # Two classes: each of the three tokens in the window carries rank two.
    assert np.isfinite(found.exponents[:6]).all()
    assert np.isneginf(found.exponents[6:]).all()
    assert int(found.resolved) == 6


@pytest.mark.slow
def test_no_dependence_on_the_past_is_minus_infinity_everywhere():
    p = dmft.random_segments(jax.random.key(4), n_patterns=3, n_segments=2, n_bits=2)
    found = spectrum(p, 0.0)
    assert np.isneginf(found.exponents).all() and np.isneginf(found.weighted).all()


@pytest.mark.slow
def test_saturated_attention_reports_what_is_resolved():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=4)
    params = dmft.parameters(1.9, file.gamma, file.epsilon)
    state = dmft.from_checkpoint(net, params, file)
    found = dynamics.lyapunov_spectrum(
        dmft.system(net),
        state,
        params,
        steps=8000,
        transient=2000,
        reorthonormalize_every=4,
    )
    resolved = int(found.resolved)
    assert 3 <= resolved < 12
    assert np.isfinite(found.exponents[:resolved]).all()
    assert not np.isfinite(found.exponents[resolved:]).any()
    assert np.isfinite(found.stderr[:resolved]).all()
