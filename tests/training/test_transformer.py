"""A network with trained heads is the network of the theory."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.training import attention_heads, transformer, value_weights
from statmech_attn.training.transformer import initial, outputs


SIZES = {"n_inputs": 10, "heads": (2, 3), "width": 7, "key_size": 5}
OUTPUTS = jax.jit(outputs)


def double(network):
    return jax.tree.map(lambda w: jnp.asarray(w, jnp.float64), network)


def inputs(examples=6, tokens=9, n_inputs=10):
    return 2 * rng.normal(jax.random.key(1), (examples, n_inputs, tokens))


def test_outputs_are_those_of_the_layers_one_by_one():
    network = double(initial(jax.random.key(0), **SIZES))
    network = network._replace(V_0=3 * network.V_0)
    f = np.asarray(OUTPUTS(network, inputs()))
    expected = jax.jit(partial(bpkr.forward, readout="mean"))(
        value_weights(network), inputs(), attention_heads(network)
    )
    assert f.dtype == np.float64 and f.std() > 1e-3
    np.testing.assert_allclose(f, expected, rtol=0, atol=1e-12 * float(abs(f).max()))


def test_paths_are_in_the_order_of_the_theory():
    """f from attentioned inputs and effective weights, whose gram matrix is U_1."""
    network = double(initial(jax.random.key(0), **SIZES))
    assert network.heads == (2, 3)
    heads, weights = attention_heads(network), value_weights(network)
    xi = jax.jit(partial(bpkr.attentioned_inputs, readout="mean"))(inputs(), heads)
    f = jax.jit(bpkr.forward_paths)(weights, xi)
    np.testing.assert_allclose(f, OUTPUTS(network, inputs()), rtol=1e-10)


def test_weights_are_uniform_within_the_gain_over_the_root_of_the_fan_in():
    sizes = {"n_inputs": 40, "heads": (4, 4), "width": 60, "key_size": 50}
    for gain in (1.0, np.sqrt(3)):
        network = initial(jax.random.key(2), gain=gain, **sizes)
        leaves, fans = jax.tree.leaves(network), [40] * 5 + [60] * 3
        for leaf, fan in zip(leaves, fans, strict=True):
            scaled = np.asarray(leaf).ravel() * np.sqrt(fan) / gain
            assert abs(scaled).max() <= 1 + 1e-6 and leaf.dtype == jnp.float32
            # Variance 1/3, known to sqrt(4/45 / n); five errors for 16 comparisons.
            error = np.sqrt(4 / 45 / scaled.size)
            assert abs((scaled**2).mean() - 1 / 3) < 5 * error
        assert len({float(leaf.ravel()[0]) for leaf in leaves}) == len(leaves)


@pytest.mark.slow
def test_mixed_precision_differs_by_the_rounding_of_bfloat16():
    network = initial(jax.random.key(0), **SIZES)
    x = inputs(examples=200)
    single, mixed = (outputs(network, x, precision=p) for p in ("single", "mixed"))
    assert single.dtype == mixed.dtype == jnp.float32
    difference = np.asarray(single - mixed)
    scale = float(single.std())
    # bfloat16 rounds by 2^-8 at most, 0.85 2^-9 in the mean of squares.  10 arrays are
    # rounded: x, in either layer W, W x, Omega and what it acts on, and what x is
    # summed with.  Scores are of order one, so that none is amplified: their errors add
    # in squares.
    rounding = 2**-9 * scale
    assert 0.5 * rounding < np.sqrt((difference**2).mean()) < 10**0.5 * rounding
    exact = outputs(double(network), x)
    np.testing.assert_allclose(single, exact, atol=1e-5 * scale)


def rounded(x):
    """In float64."""
    return jnp.asarray(x, jnp.bfloat16).astype(float)


@pytest.mark.slow
def test_mixed_products_and_their_gradients_are_summed_in_single_precision():
    """Scores of order 40, which bfloat16 itself has to an eighth only."""
    draws = rng.normal(jax.random.key(3), (3, 4, 9, 2, 32), jnp.float32)
    q, k = (40 / 32**0.5) ** 0.5 * draws[:2]
    scores, product = "bthg,bshg->bhts", transformer._product(jnp.float32, "mixed")
    found, back = jax.vjp(lambda q, k: product(scores, q, k), q, k)
    above = rng.normal(jax.random.key(4), found.shape, jnp.float32)
    g, Q, K = map(rounded, (above, q, k))
    expected = {
        "scores": (found, jnp.einsum(scores, Q, K), 32),
        "queries": (back(above)[0], jnp.einsum("bhts,bshg->bthg", g, K), 9),
        "keys": (back(above)[1], jnp.einsum("bthg,bhts->bshg", Q, g), 9),
    }
    assert float(jnp.std(found)) == pytest.approx(40, rel=0.1)
    for values, exact, terms in expected.values():
        assert values.dtype == jnp.float32
        # Partial sums are below 4 times the largest result; each is rounded by 2^-24.
        bound = 4 * terms * 2**-24 * float(abs(exact).max())
        np.testing.assert_allclose(values, exact, rtol=0, atol=bound)


def test_accelerators_take_the_products_of_bfloat16():
    """As they are lowered: operands in 16 bits, results in 32, forward and back."""
    network = initial(jax.random.key(0), **SIZES)
    loss = lambda network, x: (outputs(network, x, precision="mixed") ** 2).sum()
    traced = jax.jit(jax.grad(loss)).trace(network, inputs())
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    dots = re.findall(r"dot_general.*: \((.*)\) -> (.*)", text)
    short = [result for operands, result in dots if operands.count("bf16") == 2]
    # Three products of each layer and one more; back, one for each factor that learns.
    assert len(short) >= 7 + 8 and all(result.endswith("xf32>") for result in short)


def test_layers_without_heads_are_named():
    with pytest.raises(ValueError, match="heads: need the number of heads of every"):
        initial(jax.random.key(0), **SIZES | {"heads": (2, 0)})


@pytest.mark.parametrize("key_size", [2, 5])
def test_answers_to_features_are_outputs_of_the_tokens_they_make(key_size):
    """By queries and keys, and by matrices of the features."""
    network = initial(jax.random.key(0), **SIZES | {"key_size": key_size})
    u, E, codes = (
        2 * rng.normal(jax.random.key(1), (6, 3, 4), jnp.float32),
        rng.normal(jax.random.key(2), (10, 4), jnp.float32),
        rng.normal(jax.random.key(3), (3, 10), jnp.float32),
    )
    acting = transformer.acting(network, transformer.Embedding(E, codes))
    scores = transformer.Scores if key_size == 5 else transformer.FactoredScores
    assert {type(layer) for layer in acting.scores} == {scores}
    f = transformer.answers(acting, u)
    expected = OUTPUTS(network, jnp.swapaxes(u @ E.T + codes, 1, 2))
    np.testing.assert_allclose(f, expected, rtol=1e-5, atol=1e-5 * expected.std())
