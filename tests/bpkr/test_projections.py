"""Query and key weights as libraries store them, against formulas and the libraries."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

from statmech_attn import bpkr


P, N_0, T, H, G = 2, 8, 5, 4, 2
RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(P, N_0, T))
LINEAR = RANDOM.normal(size=(2, H * G, N_0))
BIAS = RANDOM.normal(size=(2, H * G))
PROJECTIONS = bpkr.projections_from_linear(
    *LINEAR, heads=H, query_bias=BIAS[0], key_bias=BIAS[1]
)

# Attention of the third token of the second example in every head, as PyTorch 2.13.0
# and flax 0.12.8 (within 4e-16) return it from LINEAR and BIAS.
OF_LIBRARIES = [
    [
        0.13007295450420298,
        0.5786883403848483,
        0.24926501205135992,
        0.025999697838253198,
        0.015973995221335486,
    ],
    [
        0.04069283559470516,
        0.33705842340538283,
        0.12315561688854514,
        0.4909143908528354,
        0.008178733258531617,
    ],
    [
        0.00011942645217032144,
        0.36947424074866375,
        0.6269526257555929,
        1.9390361250141033e-05,
        0.0034343166823229587,
    ],
    [
        0.08040678031730926,
        0.003806601308423487,
        0.0013280061036290867,
        0.08408913041125991,
        0.8303694818593782,
    ],
]


def by_hand(queries, keys, scale=1 / np.sqrt(G), seen=lambda s, t: True):
    """Attention of features (H, P, T, G), entry by entry; queries on columns."""
    omega = np.zeros((H, P, T, T))
    for h, p, t in np.ndindex(H, P, T):
        weights = [
            np.exp(scale * queries[h, p, t] @ keys[h, p, s]) * seen(s, t)
            for s in range(T)
        ]
        omega[h, p, :, t] = np.array(weights) / sum(weights)
    return omega


def features(which: int):
    """Queries (0) or keys (1) of every head and token."""
    flat = np.einsum("oi,pit->pto", LINEAR[which], X) + BIAS[which]
    return flat.reshape(P, T, H, G).transpose(2, 0, 1, 3)


def test_heads_are_rows_of_linear_layers_with_their_biases():
    omega = bpkr.projected_attention(X, PROJECTIONS)
    np.testing.assert_allclose(omega, by_hand(features(0), features(1)), rtol=1e-12)
    assert bpkr.attention_arrays([omega]).heads == (H,)


def torch_projections():
    weight = np.concatenate([*LINEAR, np.ones((H * G, N_0))])
    return bpkr.projections_from_torch(weight, [*BIAS.ravel(), *[1.0] * 8], heads=H)


def flax_projections():
    kernels = [W.reshape(H, G, N_0).transpose(2, 0, 1) for W in LINEAR]
    return bpkr.projections_from_flax(*kernels, *BIAS.reshape(2, H, G))


@pytest.mark.parametrize("projections", (torch_projections, flax_projections))
def test_attention_is_that_which_the_libraries_returned(projections):
    """Numbers kept from them; the slow tests compare with those that are installed."""
    omega = bpkr.projected_attention(X, projections())
    np.testing.assert_allclose(omega[:, 1, :, 2], OF_LIBRARIES, rtol=1e-12)


def test_scale_masks_and_padding():
    real = np.ones((P, T), bool)
    real[1, 3:] = False
    omega = bpkr.projected_attention(X, PROJECTIONS, scale=0.3, causal=True, real=real)
    expected = by_hand(features(0), features(1), 0.3, lambda s, t: s <= t)
    np.testing.assert_allclose(omega[:, 0], expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(omega[:, 1, :3, :3], expected[:, 1, :3, :3], rtol=1e-12)
    assert not omega[:, 1, 3:].any()
    bpkr.attention_arrays([omega], real=real)


@pytest.mark.parametrize("projections", (torch_projections, flax_projections))
def test_conventions_of_libraries_are_of_the_same_heads(projections):
    """torch stacks queries, keys and values; flax has inputs first."""
    for one, other in zip(projections(), PROJECTIONS, strict=True):
        np.testing.assert_array_equal(one, other)


def test_query_heads_in_a_row_share_a_key_head():
    shared = bpkr.projections_from_linear(
        LINEAR[0], LINEAR[1][:4], heads=4, key_heads=2
    )
    keys = LINEAR[1][:4].reshape(2, G, N_0)
    np.testing.assert_array_equal(shared.keys, keys[[0, 0, 1, 1]])
    assert not shared.key_bias.any()


@pytest.mark.parametrize(
    "rotary", (pytest.param("halves", marks=pytest.mark.slow), "pairs")
)
def test_rotary_scores_depend_on_the_distance_of_tokens_alone(rotary):
    """As complex numbers: k* q exp(i theta (t - s)), theta = base^(-2 j / G)."""
    size = 4
    W = RANDOM.normal(size=(2, size, N_0))
    projections = bpkr.projections_from_linear(*W, heads=1)
    omega = bpkr.projected_attention(X, projections, rotary=rotary, base=50.0)
    q, k = (np.einsum("gi,pit->ptg", w, X) for w in W)
    split = (
        (slice(0, 2), slice(2, 4))
        if rotary == "halves"
        else (
            slice(0, None, 2),
            slice(1, None, 2),
        )
    )
    q, k = (a[..., split[0]] + 1j * a[..., split[1]] for a in (q, k))
    theta = 50.0 ** (-np.array([0, 2]) / size)
    distance = np.arange(T)[None, :] - np.arange(T)[:, None]  # t - s
    turned = np.exp(1j * theta * distance[..., None])
    scores = np.einsum("psj,ptj,stj->pst", k.conj(), q, turned).real / 2
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(omega[0], expected, rtol=1e-11)


@pytest.mark.parametrize("rotary", ("halves", "pairs"))
def test_rotary_positions_are_those_of_a_library(rotary):
    """Equinox turns halves; with features in another order it turns pairs."""
    size = 6
    W = RANDOM.normal(size=(2, size, N_0))
    projections = bpkr.projections_from_linear(*W, heads=1)
    omega = bpkr.projected_attention(X, projections, rotary=rotary)
    in_halves = slice(None) if rotary == "halves" else [0, 2, 4, 1, 3, 5]
    embedding = eqx.nn.RotaryPositionalEmbedding(size, dtype=jnp.float64)
    turn = jax.jit(jax.vmap(embedding))
    q, k = (turn(np.einsum("gi,pit->ptg", w[in_halves], X)) for w in W)
    scores = np.einsum("psg,ptg->pst", k, q) / size**0.5
    np.testing.assert_allclose(omega[0], softmax(scores, axis=1), rtol=1e-11)


@pytest.mark.parametrize(
    "make, words",
    (
        (lambda: bpkr.projections_from_linear(*LINEAR, heads=3), "(H G, N_0) and"),
        (
            lambda: bpkr.projections_from_linear(*LINEAR, heads=4, key_heads=3),
            "heads must be a multiple of key_heads",
        ),
        (
            lambda: bpkr.projections_from_linear(*LINEAR, heads=4, key_bias=[1.0]),
            "key_bias must have shape (8,); got (1,).",
        ),
        (
            lambda: bpkr.projections_from_torch(LINEAR[0], heads=4),
            "in_proj_weight must have shape (3 N_0, N_0); got (8, 8).",
        ),
        (
            lambda: bpkr.projections_from_flax(LINEAR[0], LINEAR[1]),
            "query and key must share one shape (N_0, H, G); got (8, 8)",
        ),
        (
            lambda: bpkr.projected_attention(X, PROJECTIONS, rotary="both"),
            'rotary must be "halves" or "pairs", of heads of even size',
        ),
        (
            lambda: bpkr.projected_attention(X[:, :3], PROJECTIONS),
            "x must have shape (P, 8, T); got (2, 3, 5).",
        ),
    ),
)
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert words in str(error.value)


@pytest.mark.slow
def test_a_torch_layer_has_the_same_attention():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(N_0, H, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_bias.normal_()
        x = torch.from_numpy(X.swapaxes(1, 2).copy())
        _, rows = layer(x, x, x, average_attn_weights=False)
        weight, bias = layer.in_proj_weight.numpy(), layer.in_proj_bias.numpy()
    found = bpkr.projected_attention(
        X, bpkr.projections_from_torch(weight, bias, heads=H)
    )
    expected = rows.numpy().transpose(1, 0, 3, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
def test_a_flax_layer_has_the_same_attention():
    linen = pytest.importorskip("flax.linen")
    import jax

    layer = linen.MultiHeadDotProductAttention(
        num_heads=H, qkv_features=H * G, dtype=float, param_dtype=float
    )
    x = X.swapaxes(1, 2)
    weights = layer.init(jax.random.key(0), x)["params"]
    weights["query"]["bias"] += BIAS[0].reshape(H, G)
    weights["key"]["bias"] += BIAS[1].reshape(H, G)
    _, state = layer.apply(
        {"params": weights}, x, sow_weights=True, mutable=["intermediates"]
    )
    (rows,) = state["intermediates"]["attention_weights"]
    found = bpkr.projected_attention(
        X,
        bpkr.projections_from_flax(
            *(weights[part]["kernel"] for part in ("query", "key")),
            *(weights[part]["bias"] for part in ("query", "key")),
        ),
    )
    expected = np.asarray(rows).transpose(1, 0, 3, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
