r"""Deep attention whose heads are trained too (docs/theory/bpkr.md, section 1).

The network of `bpkr.networks` in the parametrisation of gradient descent: every matrix
acts as it is, without $1/\sqrt{\text{width}}$; the output of a layer is scaled by
$H_l^{-1/2}$, and the readout is the mean over the tokens,

    $f = \sum_\pi w_\pi \cdot V_0 \, \xi^\pi$,
    $w_\pi = V_{1,h_1}^T \cdots V_{L,h_L}^T \, a / \sqrt{H_1 \cdots H_L}$.

Neither the hidden state of a token nor the attentioned inputs xi^pi of an example are
ever built: the w_pi are contracted once for all examples, so are the scores' matrices
in the features of tokens, and the weights of the tokens in xi^pi from the last layer
down.

    Q_l, K_l          (H_l, G, N_0)     queries and keys           `queries`, `keys`
    V_0, V_l, a                         value weights and readout  `V_0`, `V`, `a`
    xi^pi             (N_0,)            attentioned inputs of a path, sums of x_t
    w_pi              (Pi, N)           effective weights
    u_t, E, c_t       (n,), (N_0, n), (N_0,)  features of a token, `Embedding`

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
from statmech_attn.bpkr import Heads
from statmech_attn.options import Count, Positive


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


class Embedding(NamedTuple):
    r"""How features u become tokens, $x_t = E u_t + c_t$.

    Attributes:
        matrix: E.
        codes: c, the same for all examples.
    """

    matrix: Float[Array, "N_0 n"]
    codes: Float[Array, "T N_0"]


class FactoredScores(NamedTuple):
    """Scores of all heads of a layer, of queries and keys: for small G.

    Attributes:
        queries: Q on features, and behind it on codes.
        keys: K likewise.
    """

    queries: Float[Array, "H G n+T"]
    keys: Float[Array, "H G n+T"]

    def __call__(self, u: Float[Array, "B T n"], product) -> Float[Array, "B T H T"]:
        n, turned = u.shape[-1], lambda W: jnp.moveaxis(W, 2, 0)
        queries, keys = (
            product("btn,hgn->bthg", u, W[:, :, :n]) + turned(W[:, :, n:]) for W in self
        )
        return product("bthg,bshg->bths", queries, keys)


class Scores(NamedTuple):
    r"""Scores of all heads of a layer in the features of tokens: for large G.

    $x_s^T W x_t = u_s \cdot (A u_t + a_t) + b_s \cdot u_t + d_{ts}$, key s, query t.

    Attributes:
        matrix: A and a in its first n rows, b and d below.
    """

    matrix: Float[Array, "H n+T n+T"]

    def __call__(self, u: Float[Array, "B T n"], product) -> Float[Array, "B T H T"]:
        n = u.shape[-1]
        applied = product("btn,hmn->bthm", u, self.matrix[:, :, :n])
        applied = applied + jnp.moveaxis(self.matrix[:, :, n:], 2, 0)
        return product("bthn,bsn->bths", applied[..., :n], u) + applied[..., n:]


class Acting(NamedTuple):
    """All that a network does to features of tokens, in the order of its layers."""

    scores: tuple[FactoredScores | Scores, ...]
    readout: Float[Array, "Pi n+T"]


def initial(
    key: Key[Array, ""],
    *,
    n_inputs: Count,
    heads: Sequence[int],
    width: Count,
    key_size: Count,
    gain: Positive = 1.0,
) -> Transformer:
    r"""Weights before training, uniform on $\pm$ gain / sqrt(fan in), in float32.

    A gain of 1 is the published start; sqrt(3) has the variances of the prior.
    """
    heads = bpkr.head_counts(heads)

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

    "mixed" rounds the factors of products over tokens to bfloat16; sums, softmax and
    effective weights are those of "single".
    """
    kind = transformer.a.dtype
    u = jnp.swapaxes(jnp.asarray(x, kind), 1, 2)
    tokens = Embedding(jnp.eye(u.shape[-1], dtype=kind), jnp.zeros(u.shape[1:], kind))
    return answers(acting(transformer, tokens), u, precision)


def acting(transformer: Transformer, tokens: Embedding) -> Acting:
    """A network as it acts on the features of tokens, once for all examples."""
    T, n = len(tokens.codes), tokens.matrix.shape[1]
    parts = jnp.concatenate([tokens.matrix.T, tokens.codes])

    def scores(Q: Float[Array, "H G N_0"], K: Float[Array, "H G N_0"]):
        queries, keys = (jnp.einsum("hgi,mi->hgm", W, parts) for W in (Q, K))
        queries, G = queries / math.sqrt(Q.shape[1]), Q.shape[1]
        if G * (2 * n + T) < n * (n + 2 * T):  # operations for a token and a head
            return FactoredScores(queries, keys)
        return Scores(jnp.einsum("hgm,hgn->hmn", keys, queries))

    with jax.default_matmul_precision("float32"):
        return Acting(
            tuple(map(scores, transformer.queries, transformer.keys)),
            _effective_inputs(transformer) @ parts.T,
        )


def answers(
    network: Acting, u: Float[Array, "B T n"], precision: Precision = "single"
) -> Float[Array, " B"]:
    """f of tokens with the features u, in their precision."""
    B, T, n = u.shape
    product = _product(u.dtype, precision)
    with jax.default_matmul_precision("float32"):
        along = jnp.full((B, T, 1), 1 / T, u.dtype)
        for scores in network.scores[::-1]:
            omega = jax.nn.softmax(scores(u, product), axis=-1)  # over keys s
            along = product("bths,btr->bshr", omega, along).reshape(B, T, -1)
        readout = product("btn,rn->btr", u, network.readout[:, :n])
        return jnp.einsum("btr,btr->b", along, readout + network.readout[:, n:].T)


def attention_heads(transformer: Transformer) -> Heads:
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


def _effective_inputs(transformer: Transformer) -> Float[Array, "Pi N_0"]:
    """w_pi through V_0, paths in the order of `bpkr.path_names`."""
    w = transformer.a[None]
    for V in transformer.V[::-1]:
        # (h_l, rest) in this order: the head of the earlier layer is the slowest.
        w = jnp.einsum("hmn,rm->hrn", V, w).reshape(-1, V.shape[2])
        w = w / math.sqrt(V.shape[0])
    return w @ transformer.V_0
