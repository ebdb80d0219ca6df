import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.bpkr.attention.attention import attention_matrix


@pytest.mark.parametrize(
    "readout",
    (
        "mean",
        2,
        -2,
    ),
)
@pytest.mark.parametrize("outputs", (None, 3))
def test_paths_and_layers_are_one_function(small, readout, outputs):
    x, heads, _ = small
    weights = bpkr.draw_weights(
        jax.random.key(1),
        n_inputs=6,
        heads=bpkr.head_counts(heads),
        width=(4, 7, 5, 3),
        variances=(0.5, 2.0, 1.0, 3.0, 0.7),
        outputs=outputs,
    )
    xi = bpkr.attentioned_inputs(x, heads, readout=readout)
    by_layer = bpkr.forward(weights, x, heads, readout=readout)
    by_path = bpkr.forward_paths(weights, xi)
    assert by_layer.shape == ((10,) if outputs is None else (10, 3))
    scale = float(jnp.abs(by_layer).max())
    assert np.abs(by_layer - by_path).max() < 1e-12 * scale


def test_one_head_by_hand():
    """T = 2, N_0 = 1, W = 1: column t is a softmax over x_s x_t."""
    x = jnp.array([[[1.0, 3.0]]])
    heads = bpkr.heads_from_products([jnp.ones((1, 1, 1))])
    odds = np.exp(np.array([1 * 3.0, 3 * 3.0]))
    by_hand = odds @ [1.0, 3.0] / odds.sum()
    xi = bpkr.attentioned_inputs(x, heads, readout="last")
    assert float(xi[0, 0, 0]) == pytest.approx(by_hand, rel=1e-14)


def test_queries_and_keys_give_the_head_of_their_product():
    keys = jax.random.split(jax.random.key(2), 3)
    q, k = (rng.normal(key, (2, 3, 4)) for key in keys[:2])
    x = rng.normal(keys[2], (5, 4, 6))
    q, k, x = map(np.asarray, (q, k, x))
    heads = bpkr.heads_from_queries([q], [k])
    scores = np.einsum("gi,pis->pgs", k[1], x), np.einsum("gi,pit->pgt", q[1], x)
    scores = np.einsum("pgs,pgt->pst", *scores) / np.sqrt(3)
    omega = np.asarray(attention_matrix(jax.device_put(x), heads[0][1]))
    assert np.abs(omega - softmax(scores, axis=1)).max() < 1e-14
    assert np.abs(omega.sum(axis=1) - 1).max() < 1e-14


def test_paths_are_ordered_with_the_first_layer_slowest(small):
    x, heads, _ = small
    xi = bpkr.attentioned_inputs(x, heads, readout="mean")
    names = bpkr.path_names(bpkr.head_counts(heads))
    assert names == ["1-1-1", "1-1-2", "2-1-1", "2-1-2"]
    along = x @ attention_matrix(x, heads[0][1]) @ attention_matrix(x, heads[1][0])
    along = (along @ attention_matrix(x, heads[2][0])).mean(axis=2)
    assert np.abs(xi[:, :, names.index("2-1-1")] - along).max() < 1e-13


def test_order_parameters_of_wide_prior_weights_are_the_gp_limit():
    """Every entry of U_l is an average of N terms of unit variance, L + 1 times."""
    variances = (1.0, 2.0, 0.5, 3.0)
    N = 1000
    weights = bpkr.draw_weights(
        jax.random.key(3), n_inputs=2, heads=(2, 2), width=N, variances=variances
    )
    U, U_a = bpkr.order_parameters(weights)
    exact, exact_a = bpkr.gaussian_process_limit((2, 2), variances)
    # Relative error of one entry: chi^2 of variance 2 / N in each of three layers;
    # 14 numbers compared, five standard errors.
    bound = 5 * np.sqrt(3 * 2 / N)
    for found, limit in zip((*U, U_a), (*exact, exact_a[0, 0])):
        assert np.abs(found - limit).max() < bound * np.max(limit)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, message",
    (
        (lambda: bpkr.heads_from_products([]), "at least one layer"),
        (lambda: bpkr.heads_from_products([np.ones((1, 2, 3))]), "layer 1"),
        (lambda: bpkr.heads_from_queries([np.ones((1, 2, 3))], []), "one array per"),
        (
            lambda: bpkr.attentioned_inputs(
                np.ones((1, 2, 3)), bpkr.heads_from_products([np.ones((1, 4, 4))])
            ),
            "N_0 = 4",
        ),
        (
            lambda: bpkr.attentioned_inputs(
                np.ones((1, 2, 3)),
                bpkr.heads_from_products([np.ones((1, 2, 2))]),
                readout="lst",
            ),
            "readout must be",
        ),
    ),
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_skip_of_zero_is_no_skip():
    V = tuple(rng.normal(jax.random.key(l), (2, 3, 3)) for l in range(2))
    xi = rng.normal(jax.random.key(2), (5, 3, 6))
    with_zero = bpkr.Weights(jnp.eye(3), V, jnp.ones(3), (0.5, 0))
    without = with_zero._replace(skip=(0.5, None))
    f, g = (bpkr.forward_paths(weights, xi) for weights in (with_zero, without))
    assert (f == g).all()
    one, other = (bpkr.order_parameters(w)[0][0] for w in (with_zero, without))
    assert one.shape == (6, 6) and (one == other).all()


def test_attention_of_heads_is_refused_in_one_line_while_jax_traces():
    x, heads = np.ones((2, 3, 4)), bpkr.heads_from_products([np.zeros((1, 3, 3))])
    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(lambda x: bpkr.attention_of(x, heads).layers)(x)
