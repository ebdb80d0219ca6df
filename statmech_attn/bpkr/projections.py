r"""Attention of layers that are given by their query and key weights (docs/data.md).

The score of the key s for the query t is

    $c \, (R_s k_s) \cdot (R_t q_t)$,  $q_t = Q x_t + b_Q$,  $k_s = K x_s + b_K$

    Q, K              (H, G, N_0)     queries and keys of every head   `queries`, `keys`
    b_Q, b_K          (H, G)          biases, zero where there are none
    c                 ()              $1 / \sqrt G$ unless it is given       `scale`
    R_t               (G, G)          rotary positions, 1 without            `rotary`

Libraries store Q and K in their own ways: `projections_from_linear` (torch.nn.Linear,
also with fewer key heads), `projections_from_torch` (torch.nn.MultiheadAttention) and
`projections_from_flax` (flax MultiHeadDotProductAttention) read them.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from statmech_attn.batches import require_double


ROTARY = ("halves", "pairs")


class Projections(NamedTuple):
    """Queries and keys of the heads of one layer.

    Attributes:
        queries: Q of every head.
        keys: K of every head.
        query_bias: b_Q of every head.
        key_bias: b_K of every head.
    """

    queries: Float[Array, "H G N_0"]
    keys: Float[Array, "H G N_0"]
    query_bias: Float[Array, "H G"]
    key_bias: Float[Array, "H G"]


def projections_from_linear(
    query,
    key,
    *,
    heads: int,
    key_heads: int | None = None,
    query_bias=None,
    key_bias=None,
) -> Projections:
    """Weights of two `torch.nn.Linear`, of which the heads share the outputs.

    Head h has the rows h G to (h + 1) G of a weight of shape (outputs, inputs).

    Args:
        query, key: their `weight`, (H G, N_0).
        heads: number H of heads.
        key_heads: number of key heads where several query heads in a row share one
            (grouped queries); H when omitted.
        query_bias, key_bias: their `bias`, none when omitted.

    Returns:
        `Projections`, for `projected_attention`.

    Raises:
        ValueError: shapes that do not fit the heads or each other.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> shared = projections_from_linear(
        ...     np.ones((8, 5)), np.ones((4, 5)), heads=4, key_heads=2)
        >>> shared.queries.shape, shared.keys.shape
        ((4, 2, 5), (4, 2, 5))
    """
    require_double()
    key_heads = heads if key_heads is None else key_heads
    if heads < 1 or key_heads < 1 or heads % key_heads:
        raise ValueError(
            f"heads must be a multiple of key_heads, both >= 1; got {heads} and "
            f"{key_heads}."
        )
    query, key = np.asarray(query, float), np.asarray(key, float)
    size = len(query) // heads
    if query.shape != (heads * size, key.shape[-1]) or len(key) != key_heads * size:
        raise ValueError(
            f"query and key must have shapes (H G, N_0) and (H_K G, N_0) with H = "
            f"{heads} and H_K = {key_heads}; got {query.shape} and {key.shape}."
        )
    biases = [
        np.zeros(len(weight)) if bias is None else np.asarray(bias, float)
        for weight, bias in ((query, query_bias), (key, key_bias))
    ]
    for name, weight, bias in zip(("query", "key"), (query, key), biases):
        if bias.shape != (len(weight),):
            raise ValueError(
                f"{name}_bias must have shape ({len(weight)},); got {bias.shape}."
            )
    repeated = lambda array: jnp.repeat(array, heads // key_heads, axis=0)
    return Projections(
        jnp.asarray(query.reshape(heads, size, -1)),
        repeated(key.reshape(key_heads, size, -1)),
        jnp.asarray(biases[0].reshape(heads, size)),
        repeated(biases[1].reshape(key_heads, size)),
    )


def projections_from_torch(
    in_proj_weight, in_proj_bias=None, *, heads: int
) -> Projections:
    """Weights of a `torch.nn.MultiheadAttention`.

    Queries, keys and values stand below each other.

    Args:
        in_proj_weight: as the layer has it, (3 N_0, N_0), in NumPy.
        in_proj_bias: likewise, (3 N_0,), none when omitted.
        heads: `num_heads` of the layer.

    Returns:
        `Projections`, for `projected_attention`.

    Raises:
        ValueError: shapes that do not fit the heads.

    Example:
        `projections_from_torch(layer.in_proj_weight.detach().numpy(), heads=4)`
    """
    weight = np.asarray(in_proj_weight, float)
    if weight.ndim != 2 or weight.shape[0] != 3 * weight.shape[1]:
        raise ValueError(
            f"in_proj_weight must have shape (3 N_0, N_0); got {weight.shape}."
        )
    biases = (None,) * 3
    if in_proj_bias is not None:
        bias = np.asarray(in_proj_bias, float)
        if bias.shape != weight.shape[:1]:
            raise ValueError(
                f"in_proj_bias must have shape {weight.shape[:1]}; got {bias.shape}."
            )
        biases = np.split(bias, 3)
    query, key, _ = np.split(weight, 3)
    return projections_from_linear(
        query, key, heads=heads, query_bias=biases[0], key_bias=biases[1]
    )


def projections_from_flax(query, key, query_bias=None, key_bias=None) -> Projections:
    """Weights of a flax `MultiHeadDotProductAttention`, of linen or of nnx.

    Args:
        query, key: `kernel` of its parts of these names, (N_0, H, G).
        query_bias, key_bias: their `bias`, (H, G), none when omitted.

    Returns:
        `Projections`, for `projected_attention`.

    Raises:
        ValueError: shapes that differ or are no (N_0, H, G).

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> projections_from_flax(np.ones((5, 4, 2)), np.ones((5, 4, 2))).keys.shape
        (4, 2, 5)
    """
    query, key = np.asarray(query, float), np.asarray(key, float)
    if query.ndim != 3 or query.shape != key.shape:
        raise ValueError(
            f"query and key must share one shape (N_0, H, G); got {query.shape} and "
            f"{key.shape}."
        )
    flat = lambda kernel: kernel.reshape(len(kernel), -1).T
    bias = lambda values: None if values is None else np.ravel(np.asarray(values))
    return projections_from_linear(
        flat(query),
        flat(key),
        heads=query.shape[1],
        query_bias=bias(query_bias),
        key_bias=bias(key_bias),
    )


def projected_attention(
    x: Float[Array | np.ndarray, "P N_0 T"],
    projections: Projections,
    *,
    scale: float | None = None,
    rotary: str | None = None,
    base: float = 10_000.0,
    causal: bool = False,
    real: Bool[Array | np.ndarray, "P T"] | None = None,
) -> Float[Array, "H P T T"]:
    r"""Attention of the heads of one layer, with queries on columns.

    Args:
        x: what the layer sees: P examples of N_0 features and T tokens.
        projections: of its heads.
        scale: factor of the scores; 1 / sqrt(G) when omitted.
        rotary: how rotary positions turn features by $t \, base^{-2 i / G}$: "halves"
            turns i and i + G / 2 (Llama, GPT-NeoX), "pairs" turns 2 i and 2 i + 1
            (RoFormer, GPT-J); none when omitted.
        base: of the angles of rotary positions.
        causal: a query sees no token that comes after it.
        real: which tokens are no padding; all when omitted.

    Returns:
        Weights of one layer, for `attention_arrays`.

    Raises:
        ValueError: inputs of another size, an unknown rotary convention, or an odd G
            with one.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> heads = projections_from_linear(np.eye(4), np.eye(4), heads=2)
        >>> projected_attention(np.zeros((1, 4, 3)), heads, causal=True)[0, 0, :, 1]
        Array([0.5, 0.5, 0. ], dtype=float64)
    """
    if not isinstance(projections, Projections):
        raise ValueError(
            "projections must be what bpkr.projections_from_torch, _linear or _flax "
            f"makes; got {type(projections).__name__}."
        )
    x = jnp.asarray(x, float)
    _, size, n_inputs = projections.queries.shape
    if x.ndim != 3 or x.shape[1] != n_inputs:
        raise ValueError(f"x must have shape (P, {n_inputs}, T); got {x.shape}.")
    if rotary not in (None, *ROTARY) or (rotary and size % 2):
        raise ValueError(
            f'rotary must be "halves" or "pairs", of heads of even size; got '
            f"{rotary!r} and size {size}."
        )
    turn = lambda a: a if rotary is None else _turned(a, rotary, base)
    q, k = (
        turn(jnp.einsum("hgi,pit->hptg", W, x) + bias[:, None, None])
        for W, bias in (
            (projections.queries, projections.query_bias),
            (projections.keys, projections.key_bias),
        )
    )
    scale = 1 / math.sqrt(size) if scale is None else scale
    attended = jnp.ones((1, x.shape[2], x.shape[2]), bool)
    if real is not None:
        real = jnp.asarray(real)
        if real.shape != (len(x), x.shape[2]) or real.dtype != bool:
            raise ValueError(
                f"real must be truth values of shape (P, T) = {(len(x), x.shape[2])}; "
                f"got {real.dtype} of shape {real.shape}."
            )
        attended = attended & real[:, :, None]
    if causal:
        attended = jnp.triu(attended)
    scores = scale * jnp.einsum("hpsg,hptg->hpst", k, q)
    return jax.nn.softmax(scores, axis=2, where=attended)


def _turned(a: Float[Array, "H P T G"], rotary: str, base: float) -> Array:
    """Features turned in planes by angles that grow with the place of the token."""
    tokens, size = a.shape[2:]
    angles = jnp.outer(jnp.arange(tokens), base ** (-jnp.arange(0, size, 2) / size))
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    if rotary == "halves":
        first, second = a[..., : size // 2], a[..., size // 2 :]
    else:
        first, second = a[..., ::2], a[..., 1::2]
    parts = first * cos - second * sin, first * sin + second * cos
    if rotary == "halves":
        return jnp.concatenate(parts, axis=-1)
    return jnp.stack(parts, axis=-1).reshape(a.shape)
