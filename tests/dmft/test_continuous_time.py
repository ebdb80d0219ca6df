"""Limits in continuous time: exact parts, and maps that converge to them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics
from statmech_attn.dmft.continuous_time import _chebyshev


FILE = dmft.load("poclopez-pe2")
FIRST = (0.6, 0.5, -0.4)  # class means of all tokens before the start
TIMES = (1, 2, 3)


def limit(context, window, gamma):
    """Output overlaps of the limit at TIMES."""
    net = dmft.network(FILE.patterns, context=context)
    start = jnp.array(FIRST)
    if window:
        start = dmft.history(lambda age: jnp.array(FIRST), window=window, nodes=40)
    system = dmft.continuous(net, window=window, nodes=40, substeps=80)
    given = {"beta": 1.5, "gamma": gamma}
    return np.asarray(dynamics.orbit(system, start, given, samples=len(TIMES)))


def overlaps_of_map(net, gamma, tokens):
    """The same of a map of which one spin in `tokens` is redrawn."""
    params = dmft.parameters(1.5, gamma, 0.0, 1 / tokens)
    map = dmft.sequential(net, 0.0).at(params)
    first = dmft.token_overlaps(net, params, jnp.array(FIRST), 0)[jnp.array([1, 3])]
    older = jnp.repeat(first[:, None], net.context - 1, axis=1)
    empty = dmft.from_window(net, params, jnp.zeros((net.context, net.n_patterns)), 0)
    state = map.at(empty, jnp.concatenate([jnp.array(FIRST), older.ravel()]))
    overlaps = []
    for _ in TIMES:
        state = dmft.advance(net, params, state, tokens)
        overlaps.append(np.asarray(net.weighted[0] @ state.means))
    return np.array(overlaps)


def order_in_redrawn(differences, tokens):
    """Slope of ln(difference) against ln(Delta), with its standard error."""
    x, y = -np.log(tokens), np.log(differences)
    (slope, _), covariance = np.polyfit(x, y, 1, cov="unscaled")
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    return slope, np.sqrt(covariance[0, 0] * (residual**2).sum() / (len(x) - 2))


def test_polynomials_are_differentiated_and_integrated_exactly():
    ages, difference, weights = _chebyshev(3.0, 8)
    np.testing.assert_allclose(difference @ ages**5, 5 * ages**4, atol=1e-9)
    assert weights @ ages**8 == pytest.approx(3.0**9 / 9, rel=1e-13)
    assert (weights > 0).all()


def test_without_a_field_class_means_decay_and_history_moves_on():
    """At beta = 0 x(t) = x(0) exp(-t), which is smooth where it was so before."""
    net = dmft.network(FILE.patterns, context=4)
    given = {"beta": 0.0, "gamma": 127.0}
    past = dmft.history(
        lambda age: jnp.array(FIRST) * jnp.exp(age), window=2.0, nodes=16
    )
    system = dmft.continuous(net, window=2.0, nodes=16)
    after = jax.jit(system.step)(past, given)
    np.testing.assert_allclose(after, past * np.exp(-1), rtol=1e-8)
    alone = jax.jit(dmft.continuous(net).step)(jnp.array(FIRST), given)
    np.testing.assert_allclose(alone, np.array(FIRST) * np.exp(-1), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "window", "gamma", "tokens"),
    [
        (4, 0.0, FILE.gamma, (64, 128, 256, 512)),
        (2, 2.0, 4.0, (8, 16, 24, 32)),
    ],
)
def test_maps_converge_to_the_limit_at_first_order(context, window, gamma, tokens):
    """A window of tokens shrinks to nothing; a stretched one keeps its length."""
    net = dmft.network(FILE.patterns, context=context)
    nets = [dmft.stretched(net, n if window else 1) for n in tokens]
    exact = limit(context, window, gamma)
    differences = [
        np.abs(overlaps_of_map(each, gamma, n) - exact).max()
        for each, n in zip(nets, tokens, strict=True)
    ]
    order, error = order_in_redrawn(differences, tokens)
    # What is left of the next order bends the slope by Delta at most.
    assert abs(order - 1) < 3 * error + 1 / tokens[0]
    assert error < 0.02


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("window must be at least 0", lambda net: dmft.continuous(net, window=-1.0)),
        ("nodes at least 2", lambda net: dmft.continuous(net, window=1.0, nodes=1)),
        (
            "parameters must be beta and gamma",
            lambda net: dmft.continuous(net).step(jnp.array(FIRST), {"beta": 1.0}),
        ),
    ],
)
def test_bad_input_is_refused(words, call):
    with pytest.raises(ValueError, match=words):
        call(dmft.network(FILE.patterns, context=4))
