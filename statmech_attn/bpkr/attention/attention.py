r"""Attention of fixed heads, and what its paths deliver (docs/theory/bpkr.md, 1).

    $\xi^\pi = x \Omega^{1,h_1} \cdots \Omega^{L,h_L} e_{t^*}$

    x                 (P, N_0, T)       inputs, tokens last              `x`
    Omega^{l,h}       (P, T, T)         softmax over the key s, or given `omega`
    xi^pi             (P, N_0, Pi)      attentioned inputs of the paths  `xi`
    b_l                                 skip connections, None without   `skip`

Paths are ordered h_1 slowest, h_L fastest.  In a layer with a skip connection a path
may take it, with Omega = 1 and before h_l = 1.  All numbers are dimensionless.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from statmech_attn.batches import require_double
from statmech_attn.bpkr.attention.attention_weights import (
    Attention,
    attention_arrays,
    readout_weights,
)
from statmech_attn.bpkr.posed.prior import skips
from statmech_attn.options import Numbers


Heads = Annotated[tuple[Float[Array, "_H N_0 N_0"], ...], "L"]  # one array a layer


@jax.tree_util.register_pytree_node_class
class _Layers(tuple):
    """Heads as `Heads` says, which print short."""

    def __repr__(self) -> str:
        counts = ", ".join(str(len(layer)) for layer in self)
        rows, columns = self[0].shape[1:]
        return (
            f"Heads per layer: {counts}; W of {rows} x {columns}, "
            "score x_key^T W x_query"
        )

    def tree_flatten(self):
        return tuple(self), None

    @classmethod
    def tree_unflatten(cls, _, layers):
        return cls(layers)


def heads_from_products(layers: Sequence) -> Heads:
    r"""Heads given by W, one (H_l, N_0, N_0) array per layer.

    The score that the query t gives to the key s is $x_s^T W x_t$: W = W_K^T W_Q, with
    the key on its rows, which is the transpose of W_Q^T W_K.

    Args:
        layers: for every layer, the products W of its heads.

    Returns:
        Heads for `attentioned_inputs` and `Problem`.

    Raises:
        ValueError: there is no layer, or the shapes do not fit each other.

    Example:
        >>> import numpy as np
        >>> heads_from_products([np.zeros((2, 3, 3)), np.zeros((1, 3, 3))])
        Heads per layer: 2, 1; W of 3 x 3, score x_key^T W x_query
    """
    require_double()
    heads = _Layers(jnp.asarray(layer, float) for layer in layers)
    if not heads:
        raise ValueError("heads: need at least one layer; got none.")
    for number, layer in enumerate(heads, 1):
        square = layer.ndim == 3 and layer.shape[1] == layer.shape[2]
        if not square or layer.shape[0] < 1 or layer.shape[1:] != heads[0].shape[1:]:
            raise ValueError(
                f"heads: layer {number} must have shape (H, N_0, N_0) with one N_0 "
                f"for all layers; got {layer.shape}."
            )
    return heads


def heads_from_queries(queries: Sequence, keys: Sequence) -> Heads:
    r"""Heads given by Q and K, with the score $x_s^T K^T Q x_t / \sqrt G$ of key s.

    Args:
        queries: query matrices Q: one (H_l, G, N_0) array per layer.
        keys: key matrices K, likewise.

    Returns:
        Heads for `attentioned_inputs` and `Problem`.

    Raises:
        ValueError: the numbers of layers differ, or the shapes do not fit each other.

    Example:
        >>> import numpy as np
        >>> queries = [np.ones((2, 4, 3))]
        >>> heads_from_queries(queries, queries)
        Heads per layer: 2; W of 3 x 3, score x_key^T W x_query
    """
    if len(queries) != len(keys):
        raise ValueError(
            f"queries and keys: need one array per layer each; "
            f"got {len(queries)} and {len(keys)}."
        )
    products = []
    for number, (q, k) in enumerate(zip(queries, keys), 1):
        q, k = jnp.asarray(q, float), jnp.asarray(k, float)
        if q.ndim != 3 or q.shape != k.shape:
            raise ValueError(
                f"queries and keys of layer {number} must share one shape "
                f"(H, G, N_0); got {q.shape} and {k.shape}."
            )
        products.append(jnp.einsum("hgi,hgj->hij", k, q) / math.sqrt(q.shape[1]))
    return heads_from_products(products)


def path_names(
    counts: Sequence[int], skip: Sequence | Numbers | None = None
) -> list[str]:
    """Names of the paths in order, heads counted from one; 0 is a skip connection.

    Args:
        counts: heads per layer.
        skip: as in `Problem`.

    Example:
        >>> path_names((2, 2))
        ['1-1', '1-2', '2-1', '2-2']
        >>> path_names((2, 2), skip=(0.5, 0))
        ['0-1', '0-2', '1-1', '1-2', '2-1', '2-2']
    """
    layers = zip(counts, skips(skip, len(counts)), strict=True)
    heads = [range(b is None, count + 1) for count, b in layers]
    return ["-".join(map(str, path)) for path in itertools.product(*heads)]


def head_names(
    counts: Sequence[int], skip: Sequence | Numbers | None = None
) -> list[str]:
    """Names of all heads, layer.head from one; a skip is head 0 of its layer."""
    layers = enumerate(zip(counts, skips(skip, len(counts)), strict=True), 1)
    return [f"{layer}.{h}" for layer, (H, b) in layers for h in path_names([H], b)]


def attention_matrix(
    x: Float[Array, "P N_0 T"],
    head: Float[Array, "N_0 N_0"],
    seen: Bool[Array, "#P T T"] | None = None,
) -> Float[Array, "P T T"]:
    """Attention matrix of one head: every column t is a softmax over the keys s."""
    scores = jnp.einsum("pis,ij,pjt->pst", x, head, x, optimize="optimal")
    return jax.nn.softmax(scores, axis=1, where=seen)


def attentioned_inputs(
    x: Float[Array | np.ndarray, "P N_0 T"],
    heads: Heads,
    *,
    readout: str | int = "last",
    skip: Sequence | Numbers | None = None,
) -> Float[Array, "P N_0 Pi"]:
    r"""Inputs as each attention path delivers them to the readout.

    $\xi^\pi = x \Omega^{1,h_1} \cdots \Omega^{L,h_L} e_{t^*}$ of every path $\pi$.

    Args:
        x: P examples of T tokens with N_0 features.
        heads: attention heads of every layer.
        readout: token that is read out: "first", "last", "mean" or its number.
        skip: as in `Problem`: paths may also pass a layer by its skip connection.

    Returns:
        The inputs as every one of the Pi attention paths delivers them.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> heads = heads_from_products([jnp.zeros((2, 3, 3))] * 2)
        >>> x = jnp.ones((5, 3, 4))
        >>> attentioned_inputs(x, heads).shape
        (5, 3, 4)
    """
    x = check_inputs(x, heads)
    along = readout_weights(readout, x)[:, :, None]
    for layer, b in zip(heads[::-1], skips(skip, len(heads))[::-1]):
        along = _through((attention_matrix(x, head) for head in layer), along, b)
    return jnp.einsum("pit,ptr->pir", x, along)


def attended(
    x: Float[Array | np.ndarray, "P N_0 T"],
    attention: Attention,
    *,
    readout: str | int = "last",
    skip: Sequence | Numbers | None = None,
) -> Float[Array, "P N_0 Pi"]:
    r"""Attentioned inputs of every path, for attention of any source.

    $\xi^\pi = x \Omega^{1,h_1} \cdots \Omega^{L,h_L} e_{t^*}$, as `attentioned_inputs`
    gives it for heads $W$.

    Args:
        x: P examples of T tokens with N_0 features.
        attention: `attention_arrays` takes those of a trained network,
            `attention_of` makes those of heads.
        readout: "first", "last" or "mean" of the tokens that are no padding, or the
            index of a token.
        skip: as in `Problem`: paths may also pass a layer by its skip connection, which
            comes before the heads of the layer.

    Raises:
        ValueError: inputs that do not fit the attention, or an unknown readout.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> uniform = np.full((2, 5, 4, 4), 1 / 4)  # (H, P, T, T)
        >>> attended(np.ones((5, 3, 4)), attention_arrays([uniform, None])).shape
        (5, 3, 2)
        >>> omega = attention_arrays([uniform, None])
        >>> attended(np.ones((5, 3, 4)), omega, skip=0.5).shape
        (5, 3, 6)
    """
    x, layers = attention.check(x), attention.layers
    along = readout_weights(readout, x, attention.real)[:, :, None]
    for layer, b in zip(layers[::-1], skips(skip, len(layers))[::-1]):
        along = _through(layer, along, b)
    return jnp.einsum("pit,ptr->pir", x, along)


def attention_of(
    x: Float[Array | np.ndarray, "P N_0 T"],
    heads: Sequence[Float[Array | np.ndarray, "_H _N _N"] | None],
    *,
    real: Bool[Array | np.ndarray, "P T"] | None = None,
    causal: bool = False,
) -> Attention:
    """The attention of heads on some inputs, as arrays.

    Args:
        x: P examples of T tokens with N_0 features.
        heads: one array W a layer, as in `heads_from_products`; None is a linear block.
        real: which tokens are no padding; all when omitted.
        causal: a query sees no token that comes after it.

    Returns:
        `Attention`: arrays (H, P, T, T), one for each layer.

    Raises:
        ValueError: inputs that do not fit the heads.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> heads = heads_from_products([np.zeros((2, 3, 3))])
        >>> omega = attention_of(np.ones((5, 3, 4)), (*heads, None), causal=True)
        >>> omega.heads, omega.layers[0][0, 0, :, 1].tolist()
        ((2, 1), [0.5, 0.5, 0.0, 0.0])
    """
    nonlinear = heads_from_products([layer for layer in heads if layer is not None])
    x = check_inputs(x, nonlinear)
    every = np.ones((1, x.shape[2], x.shape[2]), bool)
    attended = jnp.asarray(np.triu(every) if causal else every, bool)
    if real is not None:
        attended = attended & jnp.asarray(real, bool)[:, :, None]
    matrix = lambda W: attention_matrix(x, jnp.asarray(W, float), attended)
    layers = [
        None if layer is None else jnp.stack([matrix(W) for W in layer])
        for layer in heads
    ]
    return attention_arrays(layers, real=real)


def check_inputs(x, heads: Heads) -> Float[Array, "P N_0 T"]:
    """Inputs as a finite float64 (P, N_0, T) array that fits the heads."""
    require_double()
    x = jnp.asarray(x, float)
    if x.ndim != 3 or x.shape[1] != heads[0].shape[1]:
        raise ValueError(
            f"x must have shape (P, N_0, T) with N_0 = {heads[0].shape[1]} as the "
            f"heads; got {x.shape}."
        )
    return x


def _through(omegas: Iterable[Array] | None, along: Array | np.ndarray, b) -> Array:
    """What the paths that go on from a layer read of the tokens below it.

    `omegas` are of its heads, None for a linear block; `b` is the factor of its skip
    connection, None without.
    """
    through = [along]
    if omegas is not None:
        through = [jnp.einsum("pst,ptr->psr", omega, along) for omega in omegas]
    if b is not None:
        through.insert(0, jnp.broadcast_to(along, through[0].shape))
    return jnp.concatenate(through, axis=-1)
