r"""What random transformer blocks make of norms, overlaps and small differences.

docs/theory/signal_propagation.md, section 2, derives the equations of infinite width.
T tokens of norm $q = |h_i|^2 / D$ and overlap $c = h_i \cdot h_k / (D q)$, and a second
input whose tokens have the overlaps 1 - e with their own and c - f with the others,
both infinitesimally close to those of the first:

    $q' = q + a^2 q_u$,    $q' c' = q c + a^2 p_u$,
    $q' e' = q e + a^2 e_u$,    $q' f' = q f + a^2 f_u$

after heads, and again after the MLP, with updates u of either.  A layer changes the
angle between the inputs by the factor $\sqrt{e' / e}$.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.finite_time import error_of_mean
from statmech_attn.dynamics.layers import LAYER, TOGETHER
from statmech_attn.dynamics.tracing import forward_only
from statmech_attn.dynamics.transformers import looped, rms_norm, transformer_block
from statmech_attn.labels import Variable
from statmech_attn.options import require_least


REACH, NODES = 7.0, 81  # of sums over a normal variable, in standard deviations
PLACES = 161  # of integrals over the logarithm of a Laplace variable


class RandomBlocks(eqx.Module):
    """Pre-norm transformer blocks with independent normal weights in every layer.

    Attributes:
        tokens: in the context, T.
        attention: standard deviation of what the softmax is taken of, for a token of
            root mean square 1.
        value: of an output of the heads, for equal tokens.
        up: of an input of GELU.
        down: of an output of the MLP, over the root mean square of its hidden units.
        scale: that multiplies all branches, a.
        normed: whether tokens are normed at the end of every block.
    """

    tokens: int = eqx.field(static=True)
    attention: float = 1.0
    value: float = 1.0
    up: float = 1.0
    down: float = 1.0
    scale: float = 1.0
    normed: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        require_least(2, tokens=self.tokens)

    def weights(self, key: Array, width: int) -> dict[str, Float[Array, "..."]]:
        """Weights of one layer, as `transformer_block` takes them.

        There are as many heads, coordinates of a head and hidden units as the width.

        Args:
            key: of random numbers.
            width: D.
        """
        heads, layer = (width,) * 3, (width,) * 2
        roots = {
            "query": (self.attention**0.5, heads),
            "key": (self.attention**0.5, heads),
            "value": (1.0, heads),
            "output": (self.value / width**0.5, heads),
            "up": (self.up, layer),
            "down": (self.down, layer),
        }
        sizes = [math.prod(shape) for _, shape in roots.values()]
        normal = jax.random.normal(key, (sum(sizes),)) / width**0.5
        parts = jnp.split(normal, list(itertools.accumulate(sizes))[:-1])
        return {
            name: root * part.reshape(shape)
            for part, (name, (root, shape)) in zip(parts, roots.items())
        }

    def step(self, weights: dict[str, Any], h: Float[Array, "T D"]):
        """A layer of such weights, whose many heads are one branch.

        Args:
            weights: of the layer.
            h: its input.
        """
        heads = {name: weights[name] for name in ("query", "key", "value", "output")}

        def attention(h, p):
            def of_one(head):
                (stage,) = transformer_block(jax.tree.map(lambda x: x[None], head))
                assert not callable(stage)
                return stage["head 1"](h, p)

            return jnp.sum(jax.vmap(of_one)(heads), axis=0)

        mlp = transformer_block(weights)[1]
        norm = rms_norm if self.normed else None
        return looped([{"attention": attention}, mlp], norm=norm).step(
            h, {"scale": self.scale}
        )


class SignalPropagation(eqx.Module):
    """Norms, overlaps and growth of small differences, layer by layer.

    Attributes:
        norm: mean square of the coordinates of a token before each layer and after the
            last.
        overlap: of two tokens, over the norm.
        growth: of the angle between two close inputs in each layer, in nats.
        norm_stderr, overlap_stderr, growth_stderr: standard errors over draws of all
            weights; 0 of equations.
        width: coordinates of a token; infinite of equations.
        unit: what a step is.
    """

    norm: Float[Array, "states *batch"]
    overlap: Float[Array, "states *batch"]
    growth: Float[Array, "layers *batch"]
    norm_stderr: Float[Array, "states *batch"]
    overlap_stderr: Float[Array, "states *batch"]
    growth_stderr: Float[Array, "layers *batch"]
    width: float = eqx.field(static=True, default=math.inf)
    unit: str = eqx.field(static=True, default=LAYER)

    _shown = (
        Variable(
            "norm",
            "state",
            "mean square of a coordinate",
            "1",
            "q",
            error="norm_stderr",
        ),
        Variable(
            "overlap",
            "state",
            "overlap of two tokens",
            "1",
            "c",
            error="overlap_stderr",
        ),
        Variable(
            "growth",
            "layer",
            "growth of the angle between close inputs",
            "nat / {unit}",
            "g",
            error="growth_stderr",
        ),
        Variable("width", "", "width", "1", "N"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@forward_only
def mean_field_signal(
    blocks: RandomBlocks, *, layers: int, overlap: float = 0.0
) -> SignalPropagation:
    """Signal propagation at infinite width; under `vmap` over fields of `blocks` too.

    Args:
        blocks: the random blocks.
        layers: how many follow each other.
        overlap: of two tokens of the input, in [0, 1]; their norm is 1.

    Returns:
        `SignalPropagation`, without errors.

    Raises:
        ValueError: fewer than one layer.

    Example:
        >>> blocks = RandomBlocks(tokens=4, attention=2.0, up=1.5, scale=0.8)
        >>> signal = mean_field_signal(blocks, layers=4)
        >>> [round(float(c), 3) for c in signal.overlap]
        [0.0, 0.178, 0.286, 0.361, 0.416]
    """
    require_double()
    require_least(1, layers=layers)
    states, growth = _mean_field(blocks, jnp.asarray(overlap, float), layers)
    exact = jax.tree.map(jnp.zeros_like, (*states, growth))
    return SignalPropagation(*states, growth, exact[0], exact[1], exact[2])


@eqx.filter_jit
def _mean_field(blocks, overlap, layers):
    def layer(state, _):
        q, c, e, f = state
        for update in (_attention, _perceptron):
            q_u, p_u, e_u, f_u = blocks.scale**2 * jnp.stack(update(blocks, c, e, f))
            after = q + q_u
            c, e, f = (
                (q * c + p_u) / after,
                (q * e + e_u) / after,
                (q * f + f_u) / after,
            )
            q = after
        q = jnp.ones_like(q) if blocks.normed else q
        after = (q, c, jnp.ones_like(e), f / e)  # e is 1 where a layer begins
        return after, (q, c, jnp.log(e) / 2)

    ones = jnp.ones_like(overlap)
    first = (ones, overlap, ones, 0 * ones)
    q, c, growth = jax.lax.scan(layer, first, None, length=layers)[1]
    with_first = lambda x, x_0: jnp.concatenate([x_0[None], x])
    return (with_first(q, ones), with_first(c, overlap)), growth


def _attention(blocks: RandomBlocks, c, e, f):
    """Norm and overlaps of what heads add to normed tokens."""
    spread = blocks.attention * jnp.sqrt(1 - c)
    same, same_slope = _rows(blocks.tokens, spread, jnp.ones_like(c))
    other, slope = _rows(blocks.tokens, spread, c)
    q_u, p_u = c + (1 - c) * same, c + (1 - c) * other
    e_u = f + (e - f) * same + same_slope * ((1 - c) * e + e - f)
    f_u = f + (e - f) * other + slope * ((1 - c) * f + c * (e - f))
    return tuple(blocks.value**2 * x for x in (q_u, p_u, e_u, f_u))


def _rows(tokens: int, spread, rho):
    r"""$\langle \sum_j w_j w'_j \rangle$ of two rows of attention, and its slope.

    $w_j = y_j / \sum_l y_l$ with $\ln y_j$, $\ln y'_j$ normal, of this spread and
    correlation; the slope is that in the correlation.
    """
    s, weights = _normal()
    x = jnp.linspace(-18 - spread**2, 5 + REACH * spread, PLACES)
    mixed = rho * s[:, None] + jnp.sqrt(1 - rho**2) * s
    first = _powers(jnp.exp(x[:, None] + spread * s)) * weights
    second = _powers(jnp.exp(x[:, None, None] + spread * mixed)) @ weights
    mean = lambda a, b: a @ b.T
    zero, one = mean(first[0], second[0]), mean(first[1], second[1])
    zero_slope = spread**2 * one
    one_slope = spread**2 * mean(first[1] - first[2], second[1] - second[2])
    others = (tokens - 1) * zero ** (tokens - 2) * zero_slope
    area = tokens * (x[1] - x[0]) ** 2
    slope = one_slope * zero ** (tokens - 1) + one * others
    return area * jnp.sum(one * zero ** (tokens - 1)), area * jnp.sum(slope)


def _powers(y):
    """y^a e^-y for a = 0, 1, 2."""
    return jnp.stack([jnp.exp(-y), y * jnp.exp(-y), y**2 * jnp.exp(-y)])


def _perceptron(blocks: RandomBlocks, c, e, f):
    """The same of the MLP."""
    gain, slope = jax.nn.gelu, jax.vmap(jax.grad(jax.nn.gelu))
    ones = jnp.ones_like(c)
    q_u, p_u = (_products(gain, blocks.up, rho) for rho in (ones, c))
    same, other = (blocks.up**2 * _products(slope, blocks.up, x) for x in (ones, c))
    return tuple(blocks.down**2 * x for x in (q_u, p_u, same * e, other * f))


def _products(function, spread, rho):
    """Mean of a function of one normal variable times that of another."""
    s, weights = _normal()
    mixed = rho * s[:, None] + jnp.sqrt(1 - rho**2) * s
    second = function((spread * mixed).ravel()).reshape(mixed.shape) @ weights
    return jnp.sum(weights * function(spread * s) * second)


def _normal():
    """Nodes of a standard normal variable, and their weights."""
    s = jnp.linspace(-REACH, REACH, NODES)
    return s, jax.nn.softmax(-(s**2) / 2)


def sampled_signal(
    key: Array,
    blocks: RandomBlocks,
    *,
    layers: int,
    width: int,
    draws: int,
    overlap: float = 0.0,
) -> SignalPropagation:
    """Signal propagation through blocks of finite width, with errors.

    Of every draw of all weights, the tokens of the input have norm 1 and the given
    overlap without error, and the small difference points anywhere.

    Args:
        key: of random numbers.
        blocks: the random blocks.
        layers: how many follow each other.
        width: coordinates of a token, at least as many as there are tokens; also the
            number of heads, of coordinates of a head and of hidden units.
        draws: of all weights, at least 2.
        overlap: of two tokens of the input, in [0, 1).

    Returns:
        `SignalPropagation`: means over the draws with their standard errors.

    Raises:
        ValueError: a number out of range.

    Example:
        >>> import jax
        >>> blocks, key = RandomBlocks(tokens=4), jax.random.key(0)
        >>> signal = sampled_signal(key, blocks, layers=2, width=8, draws=4)
        >>> signal.norm.shape, bool((signal.norm_stderr[1:] > 0).all())
        ((3,), True)
    """
    require_double()
    require_least(1, layers=layers)
    require_least(2, draws=draws)
    require_least(blocks.tokens, width=width)
    if not 0 <= overlap < 1:
        raise ValueError(f"overlap must lie in [0, 1); got {overlap}.")
    every = _sampled(jax.random.split(key, draws), blocks, overlap, layers, width)
    means = [jnp.mean(x, axis=0) for x in every]
    return SignalPropagation(*means, *map(error_of_mean, every), width=width)


@eqx.filter_jit
def _sampled(keys, blocks, overlap, layers, width):
    tokens = blocks.tokens
    gram = jnp.full((tokens, tokens), overlap) + (1 - overlap) * jnp.eye(tokens)

    def seen(h):
        products = h @ h.T / width
        norm = jnp.trace(products) / tokens
        pairs = (jnp.sum(products) - tokens * norm) / (tokens * (tokens - 1))
        return norm, pairs / norm

    def layer(state, key):
        h, v = state
        weights = blocks.weights(key, width)
        h, v = jax.jvp(lambda h: blocks.step(weights, h), (h,), (v,))
        v, length = _turned(h, v)
        return (h, v), (*seen(h), jnp.log(length))

    def one(key):
        of_input, of_layers = jax.random.split(key)
        directions, v = jax.random.normal(of_input, (2, width, tokens))
        basis = jnp.linalg.qr(directions)[0]
        h = width**0.5 * jnp.linalg.cholesky(gram) @ basis.T
        v, _ = _turned(h, v.T)
        keys = jax.random.split(of_layers, layers)
        norm, pairs, growth = jax.lax.scan(layer, (h, v), keys)[1]
        with_first = lambda x, x_0: jnp.concatenate([x_0[None], x])
        return *map(with_first, (norm, pairs), seen(h)), growth

    return jax.lax.map(one, keys, batch_size=TOGETHER)


def _turned(h, v):
    """A difference without what changes lengths of tokens, and its angle, made 1."""
    square = jnp.sum(h**2, axis=-1, keepdims=True)
    across = v - h * jnp.sum(h * v, axis=-1, keepdims=True) / square
    angle = jnp.sqrt(jnp.mean(jnp.sum(across**2, axis=-1, keepdims=True) / square))
    return across / angle, angle
