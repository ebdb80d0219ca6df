r"""Deep attention whose heads are trained too (docs/theory/bpkr.md, section 1).

The network of `bpkr.networks` in the parametrisation of gradient descent: every matrix
acts as it is, without $1/\sqrt{\text{width}}$; the output of a layer is scaled by
$H_l^{-1/2}$, and the readout is the mean over the tokens,

    $f = \sum_\pi w_\pi \cdot V_0 \, \xi^\pi$,
    $w_\pi = V_{1,h_1}^T \cdots V_{L,h_L}^T \, a / \sqrt{H_1 \cdots H_L}$.

Neither the hidden state of a token nor the attentioned inputs xi^pi of an example are
ever built: the w_pi are contracted once for all examples, and the weights of the tokens
in xi^pi from the last layer down.

    Q_l, K_l          (H_l, G, N_0)     queries and keys           `queries`, `keys`
    V_0, V_l, a                         value weights and readout  `V_0`, `V`, `a`
    xi^pi             (N_0,)            attentioned inputs of a path, sums of x_t
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


class Codes(NamedTuple):
    r"""What is added to the features of tokens, $\bar c_t + s\, d_t$.

    `common` is $\bar c$, the same for all examples, `difference` is d.
    """

    common: Float[Array, "T N_0"]
    difference: Float[Array, "T N_0"]


class Tokens(NamedTuple):
    r"""Tokens $x_t = (v_t, ..., v_t) + \bar c_t + s\, d_t$ of examples; see `Codes`.

    Each feature vector is made of copies of `v`; `signs` are s.
    """

    v: Float[Array, "B T n"]
    signs: Float[Array, " B"]


class OnTokens(NamedTuple):
    """A matrix as it acts on tokens: on v, and what it makes of the codes."""

    matrix: Float[Array, "... n"]
    common: Float[Array, "T ..."]
    difference: Float[Array, "T ..."]

    def __call__(self, tokens: Tokens, product) -> Float[Array, "B T ..."]:
        shape = self.matrix.shape[:-1]
        rows = lambda part: part.reshape(len(part), -1)
        y = product(
            "bti,ri->btr", tokens.v, self.matrix.reshape(-1, tokens.v.shape[-1])
        )
        signs = tokens.signs[:, None, None]
        y = y + rows(self.common) + signs * rows(self.difference)
        return y.reshape(*y.shape[:2], *shape)


class Acting(NamedTuple):
    """All that a network does to tokens, in the order of its layers."""

    queries: tuple[OnTokens, ...]
    keys: tuple[OnTokens, ...]
    readout: OnTokens


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
        >>> network = initial(jax.random.key(0), **sizes)
        >>> [layer.shape for layer in network.V], network.keys[1].dtype
        ([(2, 4, 4), (3, 4, 4)], dtype('float32'))
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
    v = jnp.swapaxes(jnp.asarray(x, kind), 1, 2)
    none = jnp.zeros(v.shape[1:], kind)
    tokens = Tokens(v, jnp.zeros(len(v), kind))
    return answers(
        acting(transformer, Codes(none, none), v.shape[-1]), tokens, precision
    )


def acting(transformer: Transformer, codes: Codes, n: int) -> Acting:
    """A network as it acts on tokens of n features, once for all examples.

    n is the length of v in `Tokens`.
    """

    def on_tokens(W: Float[Array, "... N_0"]) -> OnTokens:
        copies = W.reshape(*W.shape[:-1], -1, n)
        through = lambda code: jnp.einsum("ti,...i->t...", code, W)
        return OnTokens(copies.sum(-2), *map(through, codes))

    with jax.default_matmul_precision("float32"):
        return Acting(
            tuple(on_tokens(Q / math.sqrt(Q.shape[1])) for Q in transformer.queries),
            tuple(map(on_tokens, transformer.keys)),
            on_tokens(_effective_inputs(transformer)),
        )


def answers(
    network: Acting, tokens: Tokens, precision: Precision = "single"
) -> Float[Array, " B"]:
    """f of tokens in their precision, as `outputs` of their features."""
    B, T, _ = tokens.v.shape
    kind = tokens.v.dtype
    product = _product(kind, precision)
    with jax.default_matmul_precision("float32"):
        along = jnp.full((B, T, 1), 1 / T, kind)
        for Q, K in zip(network.queries[::-1], network.keys[::-1], strict=True):
            scores = product("bthg,bshg->bhst", Q(tokens, product), K(tokens, product))
            omega = jax.nn.softmax(scores, axis=2)  # over keys s
            along = product("bhst,btr->bshr", omega, along).reshape(B, T, -1)
        return jnp.einsum("btr,btr->b", along, network.readout(tokens, product))


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


def _effective_inputs(transformer: Transformer) -> Float[Array, "Pi N_0"]:
    """w_pi through V_0, paths in the order of `bpkr.path_names`."""
    w = transformer.a[None]
    for V in transformer.V[::-1]:
        # (h_l, rest) in this order: the head of the earlier layer is the slowest.
        w = jnp.einsum("hmn,rm->hrn", V, w).reshape(-1, V.shape[2])
        w = w / math.sqrt(V.shape[0])
    return w @ transformer.V_0
