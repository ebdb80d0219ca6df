r"""Deep attention with fixed heads (docs/theory/bpkr.md, section 1).

    $x^0_t = V_0 x_t / \sqrt{N_0}$,
    $x^l_t = \sum_h V_{l,h} \sum_s x^{l-1}_s \Omega^{l,h}_{st} / \sqrt{N_l H_l}$,
    $f = a \cdot x^L_{t^*} / \sqrt{N_a}$

    x                 (P, N_0, T)       inputs, tokens last              `x`
    Omega^{l,h}       (P, T, T)         softmax over the key s, or given `omega`
    xi^pi             (P, N_0, Pi)      attentioned inputs of the paths  `xi`
    V_0, V_{l,h}, a                     the weights that are learned     `Weights`
    w_pi              (Pi K, N_1)       effective weights                `w`

Paths are ordered h_1 slowest, h_L fastest; an output index, if any, comes after them.
All numbers are dimensionless.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from statmech_attn.batches import require_double, rng
from statmech_attn.bpkr.given import Attention, attention_arrays, readout_weights
from statmech_attn.bpkr.prior import layer_widths, prior


Heads = tuple[Float[Array, "_H N_0 N_0"], ...]  # one array a layer


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


class Weights(NamedTuple):
    """Weights of one network: V_0, one V per layer, the readout a."""

    V_0: Float[Array, "N_1 N_0"]
    V: tuple[Float[Array, "H N_out N_in"], ...]
    a: Float[Array, "*K N_a"]


def heads_from_products(layers: Sequence) -> Heads:
    r"""Heads given by W, one (H_l, N_0, N_0) array per layer.

    The score that the query t gives to the key s is $x_s^T W x_t$: W = W_K^T W_Q, with
    the key on its rows, which is the transpose of W_Q^T W_K.

    Args:
        layers: for every layer, the products W of its heads.

    Returns:
        Heads for `attentioned_inputs` and `Problem`.

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


def path_names(counts: Sequence[int]) -> list[str]:
    """Names of the paths in order, heads counted from one.

    Args:
        counts: heads per layer.

    Example:
        >>> path_names((2, 2))
        ['1-1', '1-2', '2-1', '2-2']
    """
    shape = tuple(counts)
    number = math.prod(shape)
    digits = [
        [
            str(index // math.prod(shape[l + 1 :]) % shape[l] + 1)
            for l in range(len(shape))
        ]
        for index in range(number)
    ]
    return ["-".join(d) for d in digits]


def attention_matrix(
    x: Float[Array, "P N_0 T"],
    head: Float[Array, "N_0 N_0"],
    seen: Bool[Array, "#P T T"] | None = None,
) -> Float[Array, "P T T"]:
    """Attention matrix of one head: every column t is a softmax over the keys s.

    Args:
        x: examples of T tokens with N_0 features.
        head: matrix of one head.
        seen: which keys a query sees; all when omitted.
    """
    scores = jnp.einsum("pis,ij,pjt->pst", x, head, x, optimize="optimal")
    return jax.nn.softmax(scores, axis=1, where=seen)


def attentioned_inputs(
    x: Float[Array | np.ndarray, "P N_0 T"],
    heads: Heads,
    *,
    readout: str | int = "last",
) -> Float[Array, "P N_0 Pi"]:
    r"""Inputs as each attention path delivers them to the readout.

    $\xi^\pi = x \Omega^{1,h_1} \cdots \Omega^{L,h_L} e_{t^*}$ of every path $\pi$.

    Args:
        x: P examples of T tokens with N_0 features.
        heads: attention heads of every layer.
        readout: token that is read out: "first", "last", "mean" or its number.

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
    for layer in reversed(heads):
        along = _through((attention_matrix(x, head) for head in layer), along)
    return jnp.einsum("pit,ptr->pir", x, along)


def attended(
    x: Float[Array | np.ndarray, "P N_0 T"],
    attention: Attention,
    *,
    readout: str | int = "last",
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

    Raises:
        ValueError: inputs that do not fit the attention, or an unknown readout.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> uniform = np.full((2, 5, 4, 4), 1 / 4)  # (H, P, T, T)
        >>> attended(np.ones((5, 3, 4)), attention_arrays([uniform, None])).shape
        (5, 3, 2)
    """
    x = attention.check(x)
    along = readout_weights(readout, x, attention.real)[:, :, None]
    for layer in reversed(attention.layers):
        along = along if layer is None else _through(layer, along)
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
    given = heads_from_products([layer for layer in heads if layer is not None])
    x = check_inputs(x, given)
    seen = jnp.ones((1, x.shape[2], x.shape[2]), bool)
    if real is not None:
        seen = seen & jnp.asarray(real)[:, :, None]
    if causal:
        seen = jnp.triu(seen)
    layers = [
        None
        if layer is None
        else jnp.stack([attention_matrix(x, jnp.asarray(W), seen) for W in layer])
        for layer in heads
    ]
    return attention_arrays(layers, real=real)


def forward(
    weights: Weights,
    x: Float[Array, "P N_0 T"],
    heads: Heads | Attention,
    *,
    readout: str | int = "last",
) -> Float[Array, "P *K"]:
    """Output f(x) of a network with given weights, layer by layer.

    Args:
        weights: all weights, as `draw_weights` gives them.
        x: P examples of T tokens with N_0 features.
        heads: attention heads of every layer, or attention given as arrays.
        readout: token that is read out: "first", "last", "mean" or its number.
    """
    given = isinstance(heads, Attention)
    x = heads.check(x) if given else check_inputs(x, heads)
    hidden = jnp.einsum("ni,pit->pnt", weights.V_0, x) / math.sqrt(x.shape[1])
    for V, layer in zip(weights.V, heads.layers if given else heads, strict=True):
        scale = math.sqrt(V.shape[2] * V.shape[0])
        if layer is None:
            hidden = jnp.einsum("mn,pnt->pmt", V[0], hidden) / scale
            continue
        omegas = layer if given else (attention_matrix(x, head) for head in layer)
        hidden = sum(
            jnp.einsum("mn,pns,pst->pmt", v, hidden, omega) / scale
            for v, omega in zip(V, omegas, strict=True)
        )
    real = heads.real if given else None
    read = jnp.einsum("pnt,pt->pn", hidden, readout_weights(readout, x, real))
    return (
        read
        @ jnp.swapaxes(jnp.atleast_2d(weights.a), 0, 1).reshape(
            (-1,) + weights.a.shape[:-1]
        )
        / math.sqrt(read.shape[1])
    )


def forward_paths(
    weights: Weights, xi: Float[Array, "P N_0 Pi"]
) -> Float[Array, "P *K"]:
    r"""$f = \sum_\pi w_\pi^T V_0 \xi^\pi / \sqrt{N_1 N_0 |\Pi|}$.

    Args:
        weights: all weights of a network.
        xi: attentioned inputs.
    """
    n_inputs, n_paths = xi.shape[1:]
    w = effective_weights(weights)
    w = w.reshape((n_paths, -1, w.shape[-1]))
    f = jnp.einsum("akn,ni,pia->pk", w, weights.V_0, xi, optimize="optimal")
    f = f / math.sqrt(w.shape[-1] * n_inputs * n_paths)
    return f.reshape((xi.shape[0],) + weights.a.shape[:-1])


def effective_weights(weights: Weights) -> Float[Array, "PiK N_1"]:
    r"""Effective weights of every path: $w_\pi = V_{1,h_1}^T \cdots V_{L,h_L}^T a$.

    Each step is divided by $\sqrt{width}$.

    Args:
        weights: all weights of a network.
    """
    return _all_effective_weights(weights)[0]


def order_parameters(weights: Weights):
    r"""Order parameters of one network: $U_l = w w^T / N_l$.

    Args:
        weights: all weights of a network.

    Returns:
        (U_1, ..., U_L) and U_a.
    """
    grams = [w @ w.T / w.shape[1] for w in _all_effective_weights(weights)]
    U_a = grams[-1] if weights.a.ndim == 2 else grams[-1][0, 0]
    return tuple(grams[:-1]), U_a


def draw_weights(
    key: Key[Array, ""],
    *,
    n_inputs: int,
    heads: Sequence[int],
    width,
    variances=None,
    outputs: int | None = None,
) -> Weights:
    """Draw a network from the prior.

    Args:
        key: random key of JAX.
        n_inputs: number N_0 of features.
        heads: heads per layer (H_1, ..., H_L).
        width: one number, or (N_1, ..., N_L, N_a).
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2); one when omitted.
        outputs: number of outputs K; a scalar network when omitted.
    """
    law = prior(width, heads, variances)
    sizes = [int(n) for n in layer_widths(width, len(heads))]
    keys = jax.random.split(key, len(heads) + 2)
    draw = lambda k, s2, shape: jnp.sqrt(s2) * rng.normal(k, shape)
    V = tuple(
        draw(k, s2, (H, n_out, n_in))
        for k, s2, H, n_out, n_in in zip(
            keys[1:-1], law.variances[1:-1], heads, sizes[1:], sizes[:-1]
        )
    )
    shape_a = (sizes[-1],) if outputs is None else (outputs, sizes[-1])
    V_0 = draw(keys[0], law.variances[0], (sizes[0], n_inputs))
    return Weights(V_0, V, draw(keys[-1], law.variances[-1], shape_a))


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


def _through(omegas: Iterable[Array], along: Array) -> Array:
    """What the paths that go on from a layer read of the tokens below it."""
    through = [jnp.einsum("pst,ptr->psr", omega, along) for omega in omegas]
    return jnp.concatenate(through, axis=-1)


def _all_effective_weights(weights: Weights) -> list[Array]:
    w = jnp.atleast_2d(weights.a)
    chain = [w]
    for V in reversed(weights.V):
        # (h_l, rest) in this order: the head of the earlier layer is the slowest.
        w = jnp.einsum("hmn,rm->hrn", V, w).reshape(-1, V.shape[2])
        w = w / math.sqrt(V.shape[1])
        chain.append(w)
    return chain[::-1]
