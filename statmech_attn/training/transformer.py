r"""Deep attention whose heads are trained too (docs/theory/bpkr.md, section 1).

The network of `bpkr.attention` in the parametrisation of gradient descent: every matrix
acts as it is, without $1/\sqrt{\text{width}}$; the output of a layer is scaled by
$H_l^{-1/2}$, and the readout is the mean over the tokens,

    $f = \sum_\pi w_\pi \cdot V_0 \, \xi^\pi$,
    $w_\pi = V_{1,h_1}^T \cdots V_{L,h_L}^T \, a / \sqrt{H_1 \cdots H_L}$.

Neither the hidden state of a token nor that of an example is ever built: the w_pi are
contracted once for all examples, and the attentioned inputs xi^pi of an example from
the last layer down.

    Q_l, K_l          (H_l, G, N_0)     queries and keys           `queries`, `keys`
    V_0, V_l, a                         value weights and readout  `V_0`, `V`, `a`
    xi^pi             (B, N_0, Pi)      attentioned inputs of the paths
    w_pi              (Pi, N)           effective weights

The score of key s and query t is $x_s^T K^T Q x_t / \sqrt G$.
All numbers are dimensionless.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from statmech_attn import bpkr
from statmech_attn.batches import rng


Precision = Literal["single", "mixed"]


class Transformer(NamedTuple):
    """All weights of one network.

    Attributes:
        queries: query matrices, one array for each layer.
        keys: key matrices, likewise.
        V_0: embedding.
        V: value matrices, one array for each layer.
        a: readout.
    """

    queries: tuple[Float[Array, "H G N_0"], ...]
    keys: tuple[Float[Array, "H G N_0"], ...]
    V_0: Float[Array, "N N_0"]
    V: tuple[Float[Array, "H N N"], ...]
    a: Float[Array, " N"]

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads per layer (H_1, ..., H_L)."""
        return tuple(layer.shape[0] for layer in self.V)


def initial(
    key: Key[Array, ""],
    *,
    n_inputs: int,
    heads: Sequence[int],
    width: int,
    key_size: int,
    gain: float = 1.0,
) -> Transformer:
    r"""Weights before training, uniform on $\pm$ gain / sqrt(fan in), in float32.

    Args:
        key: random key of JAX.
        n_inputs: number of features.
        heads: heads per layer (H_1, ..., H_L).
        width: N, of all layers.
        key_size: G.
        gain: 1 is the published start; sqrt(3) has the variances of the prior.

    Returns:
        `Transformer` with the weights of every layer.

    Raises:
        ValueError: a size below one, or a gain that is not finite and > 0.

    Example:
        >>> import jax
        >>> sizes = dict(n_inputs=8, heads=(2, 3), width=4, key_size=5)
        >>> made = initial(jax.random.key(0), **sizes)
        >>> [layer.shape for layer in made.V], made.keys[1].dtype
        ([(2, 4, 4), (3, 4, 4)], dtype('float32'))
    """
    heads = bpkr.head_counts(heads)
    for name, size in (
        ("n_inputs", n_inputs),
        ("width", width),
        ("key_size", key_size),
    ):
        if size < 1:
            raise ValueError(f"{name} must be at least 1; got {size}.")
    if not (math.isfinite(gain) and gain > 0):
        raise ValueError(f"gain must be finite and > 0; got {gain}.")

    def drawn(name: int, *shape: int) -> Array:
        bound = gain / math.sqrt(shape[-1])
        name_key = jax.random.fold_in(key, name)
        return rng.uniform(name_key, shape, -bound, bound, jnp.float32)

    scored = [(count, key_size, n_inputs) for count in heads]
    return Transformer(
        queries=tuple(drawn(3 * l + 2, *shape) for l, shape in enumerate(scored)),
        keys=tuple(drawn(3 * l + 3, *shape) for l, shape in enumerate(scored)),
        V_0=drawn(0, width, n_inputs),
        V=tuple(drawn(3 * l + 4, H, width, width) for l, H in enumerate(heads)),
        a=drawn(1, width),
    )


def outputs(
    transformer: Transformer,
    x: Float[Array, "B N_0 T"],
    *,
    precision: Precision = "single",
) -> Float[Array, " B"]:
    """f(x), in the precision of the weights.

    Args:
        transformer: all weights of the network.
        x: examples.
        precision: "mixed" rounds the factors of products over tokens to bfloat16; sums,
            softmax and effective weights are those of "single".

    Example:
        >>> import jax.numpy as jnp
        >>> import jax
        >>> sizes = dict(n_inputs=8, heads=(2, 2), width=4, key_size=5)
        >>> outputs(initial(jax.random.key(0), **sizes), jnp.ones((6, 8, 3))).shape
        (6,)
    """
    kind = transformer.a.dtype
    with jax.default_matmul_precision("float32"):
        x = jnp.swapaxes(jnp.asarray(x, kind), 1, 2)
        product = _product(kind, precision)
        along = jnp.full((*x.shape[:2], 1), 1 / x.shape[1], kind)
        for Q, K in zip(transformer.queries[::-1], transformer.keys[::-1], strict=True):
            omega = _attention(x, Q, K, product)
            along = product("bhts,btr->bshr", omega, along)
            along = along.reshape(*x.shape[:2], -1)
        xi = product("bti,btr->bri", x, along)
        return jnp.einsum("bri,ri->b", xi, _effective_inputs(transformer))


def attention_heads(transformer: Transformer) -> bpkr.Heads:
    """Attention heads of a network as the theory takes them, in float64.

    Args:
        transformer: all weights of the network.

    Returns:
        Heads for `bpkr.attentioned_inputs`.

    Example:
        >>> import jax
        >>> sizes = dict(n_inputs=8, heads=(2, 3), width=4, key_size=5)
        >>> attention_heads(initial(jax.random.key(0), **sizes))
        Heads per layer: 2, 3; W of 8 x 8, score x_key^T W x_query
    """
    return bpkr.heads_from_queries(transformer.queries, transformer.keys)


def value_weights(transformer: Transformer) -> bpkr.Weights:
    r"""Other weights of a network times sqrt(fan in), as under a prior of variance 1.

    `bpkr.forward(value_weights(t), x, attention_heads(t), readout="mean")` is
    `outputs(t, x)`.

    Args:
        transformer: all weights of the network.

    Returns:
        `bpkr.Weights`, in the normalisation of the theory.

    Example:
        >>> import jax
        >>> sizes = dict(n_inputs=8, heads=(2, 3), width=4, key_size=5)
        >>> weights = value_weights(initial(jax.random.key(0), **sizes))
        >>> [layer.shape for layer in weights.V]
        [(2, 4, 4), (3, 4, 4)]
    """
    scaled = lambda w: jnp.asarray(w, jnp.float64) * math.sqrt(w.shape[-1])
    V_0, V, a = transformer[2:]
    return bpkr.Weights(scaled(V_0), tuple(map(scaled, V)), scaled(a))


def _product(kind, precision: Precision):
    """`einsum` of rounded operands, or of them as they are; results are of `kind`."""
    if precision == "single":
        return jnp.einsum

    def product(subscripts: str, a: Array, b: Array) -> Array:
        product_32 = _rounded(subscripts, a.astype(jnp.float32), b.astype(jnp.float32))
        return jnp.asarray(product_32, kind)

    return product


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rounded(subscripts: str, a: Array, b: Array) -> Array:
    """`einsum` of two arrays rounded to bfloat16, summed in float32.

    So are the products of its gradient.  Every index of an operand must be in the other
    or in the result.
    """
    return _summed(subscripts, a.astype(jnp.bfloat16), b.astype(jnp.bfloat16))


def _forward(subscripts: str, a: Array, b: Array):
    short = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    return _summed(subscripts, *short), short


def _backward(subscripts: str, short: tuple[Array, Array], above: Array):
    operands, result = subscripts.split("->")
    first, second = operands.split(",")
    (a, b), above = short, above.astype(jnp.bfloat16)
    along_a = _summed(f"{result},{second}->{first}", above, b)
    return along_a, _summed(f"{first},{result}->{second}", a, above)


_rounded.defvjp(_forward, _backward)


def _summed(subscripts: str, a: Array, b: Array) -> Array:
    """Products of bfloat16 are exact in float32, which CPUs may need to be told."""
    wide = partial(jnp.einsum, subscripts, preferred_element_type=jnp.float32)
    return jax.lax.platform_dependent(
        a,
        b,
        default=wide,
        cpu=lambda a, b: wide(a.astype(jnp.float32), b.astype(jnp.float32)),
    )


def _attention(x, Q, K, product) -> Float[Array, "B H T T"]:
    """Omega_{st} of every head of a layer, a softmax over the key s, which is last."""
    q, k = (product("bti,hgi->bthg", x, W) for W in (Q, K))
    scores = product("bthg,bshg->bhts", q, k) / math.sqrt(Q.shape[1])
    return jax.nn.softmax(scores, axis=3)


def _effective_inputs(transformer: Transformer) -> Float[Array, "Pi N_0"]:
    """w_pi through V_0, paths in the order of `bpkr.path_names`."""
    w = transformer.a[None]
    for V in transformer.V[::-1]:
        # (h_l, rest) in this order: the head of the earlier layer is the slowest.
        w = jnp.einsum("hmn,rm->hrn", V, w).reshape(-1, V.shape[2])
        w = w / math.sqrt(V.shape[0])
    return w @ transformer.V_0
