"""Random transformer blocks: equations of infinite width beside sampled weights."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics, statistics
from statmech_attn.dynamics import mean_field_signal, RandomBlocks, sampled_signal
from statmech_attn.dynamics.signal_propagation import _products, _rows


BLOCKS = RandomBlocks(tokens=4, attention=2.0, up=1.5, scale=0.8)
LAYERS, OVERLAP = 4, 0.2
NAMES = "norm", "overlap", "growth"
HERMITE = np.polynomial.hermite_e.hermegauss(80)
ROUNDED = 1e-7  # sums over 81 nodes, and 80 of Gauss and Hermite


@functools.cache
def theory():
    return mean_field_signal(BLOCKS, layers=LAYERS, overlap=OVERLAP)


@functools.cache
def sampled(width, draws):
    """With keys that differ between widths."""
    return sampled_signal(
        jax.random.key(width),
        BLOCKS,
        layers=LAYERS,
        width=width,
        draws=draws,
        overlap=OVERLAP,
    )


rows_of = jax.jit(_rows, static_argnums=0)
products_of = jax.jit(_products, static_argnums=(0, 1))


def normal_mean(function):
    """Of a function of one standard normal number."""
    nodes, weights = HERMITE
    return float(weights @ np.asarray(function(nodes)) / weights.sum())


@pytest.mark.parametrize("tokens", [2, 5])
def test_rows_of_attention_share_what_their_laws_say(tokens):
    """Uniform and independent rows, a slope, and two tokens of one normal number."""

    def rows(spread, rho):
        return tuple(map(float, rows_of(tokens, spread, rho)))

    assert abs(rows(0.0, 1.0)[0] - 1 / tokens) < ROUNDED
    assert abs(rows(1.7, 0.0)[0] - 1 / tokens) < ROUNDED
    slope = (rows(1.7, 0.501)[0] - rows(1.7, 0.499)[0]) / 0.002
    assert rows(1.7, 0.5)[1] == pytest.approx(slope, 1e-5)
    if tokens == 2:
        share = lambda z: 1 / (1 + np.exp(2**0.5 * z))
        mean = normal_mean(lambda z: share(z) ** 2 + share(-z) ** 2)
        slope = normal_mean(lambda z: 4 * (share(z) * share(-z)) ** 2)
        np.testing.assert_allclose(rows(1.0, 1.0), (mean, slope), atol=ROUNDED)


def test_products_of_hidden_units_are_those_of_two_normal_numbers():
    gelu = lambda z: np.asarray(jax.nn.gelu(1.5 * z))
    of_second = lambda z: normal_mean(lambda x: gelu(0.6 * z + 0.8 * x))
    expected = normal_mean(lambda z: gelu(z) * np.array([of_second(x) for x in z]))
    assert abs(products_of(jax.nn.gelu, 1.5, 0.6) - expected) < ROUNDED
    square = normal_mean(lambda z: gelu(z) ** 2)
    assert abs(products_of(jax.nn.gelu, 1.5, 1.0) - square) < ROUNDED


def two_inputs(blocks, e, layers):
    """Overlaps after some layers of inputs that overlap in 1 - e with themselves."""
    square = blocks.scale**2
    q, c, m, n = 1.0, OVERLAP, 1 - e, OVERLAP
    rows = lambda c, rho: float(
        rows_of(blocks.tokens, blocks.attention * np.sqrt(1 - c), rho)[0]
    )
    products = lambda rho: (
        blocks.down**2 * float(products_of(jax.nn.gelu, blocks.up, rho))
    )
    heads = lambda c, m, n: [
        blocks.value**2 * (n + (m - n) * rows(c, x * (m - n) / (1 - c))) for x in (m, n)
    ]
    mlp = lambda c, m, n: [products(m), products(n)]
    for branch in (heads, mlp) * layers:
        (q_u, p_u), (m_u, n_u) = branch(c, 1.0, c), branch(c, m, n)
        after = q + square * q_u
        c, m, n = (
            (q * x + square * u) / after for x, u in ((c, p_u), (m, m_u), (n, n_u))
        )
        q = after
    return q, c, 1 - m


def test_growth_is_the_slope_of_the_equations_of_two_inputs():
    """Whose own difference e is finite; the remainder is of order e, below 2 e."""
    found, growth = theory(), 0.0
    for layer in (1, 2):
        q, c, after = two_inputs(BLOCKS, 1e-5, layer)
        np.testing.assert_allclose(found.norm[layer], q, rtol=1e-6)
        np.testing.assert_allclose(found.overlap[layer], c, rtol=1e-6)
        growth += found.growth[layer - 1]
        assert growth == pytest.approx(np.log(after / 1e-5) / 2, abs=2e-5)


@pytest.mark.slow
def test_tokens_that_nearly_agree_approach_at_the_rate_of_the_mlp():
    """Heads add the same to all of them: 1 - c is multiplied by a known factor."""
    near, blocks = 1e-6, RandomBlocks(tokens=4, value=0.5, up=1.5)
    found = mean_field_signal(blocks, layers=1, overlap=1 - near)
    gelu_slope = jax.vmap(jax.grad(jax.nn.gelu))
    square = normal_mean(lambda z: jax.nn.gelu(1.5 * z) ** 2)
    slopes = 1.5**2 * normal_mean(lambda z: gelu_slope(1.5 * z) ** 2)
    heads = 1 + 0.5**2
    expected = (heads + slopes) / (heads + square) / heads
    assert (1 - found.overlap[1]) / near == pytest.approx(expected, rel=1e-5)


def test_a_random_block_is_the_loop_of_its_weights():
    weights = jax.jit(lambda key: BLOCKS.weights(key, 6))(jax.random.key(0))
    h = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)))
    block = dynamics.looped(dynamics.transformer_block(weights))
    after = jax.jit(lambda h: block.step(h, {"scale": BLOCKS.scale}))(h)
    again = jax.jit(BLOCKS.step)(weights, h)
    np.testing.assert_allclose(again, after, rtol=1e-12)


@pytest.mark.slow
def test_sampled_blocks_agree_with_theory_as_their_width_grows():
    """What differs is of order 1/N: twice that of 32 is that of 16, in errors."""
    wide, narrow = sampled(32, 512), sampled(16, 1024)
    expected = theory()
    for name in NAMES:
        values = [np.asarray(getattr(x, name)) for x in (wide, narrow, expected)]
        errors = [np.asarray(getattr(x, f"{name}_stderr")) for x in (wide, narrow)]
        limit = 2 * values[0] - values[1]
        error = np.hypot(2 * errors[0], errors[1])
        known = error > 1e-12
        z = (limit - values[2])[known] / error[known]
        assert (np.abs(z) < statistics.threshold(3 * LAYERS)).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RandomBlocks(tokens=1), "tokens must be at least 2; got 1"),
        (
            lambda: mean_field_signal(BLOCKS, layers=0),
            "layers must be at least 1; got 0",
        ),
        (lambda: sampled(3, 4), "width must be at least 4; got 3"),
        (lambda: sampled(8, 1), "draws must be at least 2; got 1"),
        (
            lambda: sampled_signal(
                jax.random.key(0), BLOCKS, layers=1, width=8, draws=4, overlap=1.0
            ),
            r"overlap must lie in \[0, 1\); got 1.0",
        ),
    ],
)
def test_what_is_no_ensemble_is_refused_in_one_line(call, words):
    with pytest.raises(ValueError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)
