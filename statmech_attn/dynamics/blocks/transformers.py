r"""Transformer blocks as maps, and what each head adds to the largest exponent.

A looped block reads its own output, as a transformer of recurrent depth does (Geiping
et al., arXiv:2502.05171).  Its stages follow one another; the branches b of a stage
read the same residual stream h (T, D) of T tokens and width D,

    $h \leftarrow h + a \sum_b f_b(h)$   for every stage,   then   $h \leftarrow N(h)$

with a the `scale` of all branches and N a norm, or with norms between the stages
(post-norm: Vaswani et al., arXiv:1706.03762).  A tangent vector v leaves a stage as
$w = v + \sum_b u_b$ with $u_b = a\, Df_b(h)\, v$.  Since
$(w + v) \cdot \sum_b u_b = |w|^2 - |v|^2$, its growth is shared without remainder,

    $\ln \frac{|w|}{|v|} = \sum_b g_b$,
    $g_b = \frac{(w + v) \cdot u_b}{2 |v|^2} \frac{\ln(1 + x)}{x}$,
    $x = \frac{|w|^2 - |v|^2}{|v|^2}$

and what a norm stretches v by is a share of its own.  Along the leading tangent
vector, averages of all shares add up to the largest Lyapunov exponent
(docs/theory/indicators.md, section 6).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.exponents.frames import align as aligned, start_frame, turn
from statmech_attn.dynamics.exponents.lyapunov import (
    alignment,
    BLOCKS,
    Blocks,
    frame_size,
    mean_of_blocks,
    window_weights,
)
from statmech_attn.dynamics.maps.orthonormal import safe_log
from statmech_attn.dynamics.maps.systems import (
    advance,
    leading_axes,
    require_like,
    System,
)
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.labels import STEP, Variable
from statmech_attn.options import Count, NotNegative, Numbers, WholeNumber


EPSILON = 1e-5  # added to mean squares by norms
SHAPES = {  # axes of weights: heads, size of a head, width, hidden width
    "query": "HdD",
    "key": "HdD",
    "value": "HdD",
    "output": "HDd",
    "up": "MD",
    "down": "DM",
    "query_bias": "Hd",
    "key_bias": "Hd",
    "value_bias": "Hd",
    "output_bias": "D",
    "up_bias": "M",
    "down_bias": "D",
    "attention_gain": "D",
    "attention_shift": "D",
    "mlp_gain": "D",
    "mlp_shift": "D",
}
OF_HEADS, OF_MLP = ("query", "key", "value", "output"), ("up", "down")  # are needed


def rms_norm(
    h: Float[Array, "*tokens D"], epsilon: NotNegative = EPSILON
) -> Float[Array, "*tokens D"]:
    """Every token divided by its root mean square.

    Args:
        h: tokens, with their coordinates on the last axis.
        epsilon: added to the mean square.

    Example:
        >>> import jax.numpy as jnp
        >>> rms_norm(jnp.array([3.0, -3.0])).round(4).tolist()
        [1.0, -1.0]
    """
    return h / jnp.sqrt(jnp.mean(h**2, axis=-1, keepdims=True) + epsilon)


def layer_norm(
    h: Float[Array, "*tokens D"], epsilon: NotNegative = EPSILON
) -> Float[Array, "*tokens D"]:
    """Every token less its mean, divided by its standard deviation.

    Args:
        h: tokens, with their coordinates on the last axis.
        epsilon: added to the variance: 1e-5 in PyTorch, 1e-6 in Flax.

    Example:
        >>> import jax.numpy as jnp
        >>> layer_norm(jnp.array([4.0, 2.0])).round(4).tolist()
        [1.0, -1.0]
    """
    return rms_norm(h - jnp.mean(h, axis=-1, keepdims=True), epsilon)


class _Branch(eqx.Module):
    name: str = eqx.field(static=True)
    update: Callable[..., Any]


class _Norm(eqx.Module):
    name: str = eqx.field(static=True)
    of: Callable[..., Any]


class _Loop(eqx.Module):
    """The step of a looped block: stages of branches, and norms."""

    stages: tuple[tuple[_Branch, ...] | _Norm, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of all branches and norms in their order."""
        stages = ((x,) if isinstance(x, _Norm) else x for x in self.stages)
        return tuple(part.name for stage in stages for part in stage)

    def __call__(self, h, parameters=None):
        for stage in self.stages:
            if isinstance(stage, _Norm):
                h = stage.of(h)
            else:
                h = h + jnp.sum(self._updates(stage, h, parameters), axis=0)
        return h

    def shares(self, h, v, parameters) -> Float[Array, " parts"]:
        """Growth of a tangent vector in one step, by part."""
        shares = []
        for stage in self.stages:
            if isinstance(stage, _Norm):
                h, after = jax.jvp(stage.of, (h,), (v,))
                shares.append(_log_square(after, v)[None] / 2)
            else:
                of_state = lambda h, stage=stage: self._updates(stage, h, parameters)
                updates, changes = jax.jvp(of_state, (h,), (v,))
                after = v + jnp.sum(changes, axis=0)
                shares.append(_shared(v, after, changes))
                h = h + jnp.sum(updates, axis=0)
            v = after
        return jnp.concatenate(shares)

    def _updates(self, stage, h, parameters) -> Float[Array, "branches T D"]:
        parameters = {} if parameters is None else parameters
        updates = [branch.update(h, parameters) for branch in stage]
        for branch, update in zip(stage, updates, strict=True):
            require_like(update, h, f"branch {branch.name!r}")
        return parameters.get("scale", 1.0) * jnp.stack(updates)


def _shared(v, w, changes) -> Float[Array, " branches"]:
    """ln |w|/|v| shared between the changes that w - v is the sum of."""
    square = jnp.sum(v**2)
    parts = jnp.sum((w + v) * changes, axis=tuple(range(1, changes.ndim))) / square
    x = jnp.sum(parts)
    small = jnp.abs(x) < 0.5
    near = jnp.where(small, x, 1.0)
    ratio = jnp.where(near == 0, 1.0, jnp.log1p(near) / jnp.where(near == 0, 1.0, near))
    far = _log_square(w, v) / jnp.where(small, 1.0, x)
    return parts / 2 * jnp.where(small, ratio, far)


def _log_square(w, v):
    """ln |w|^2/|v|^2."""
    return safe_log(jnp.sum(w**2)) - safe_log(jnp.sum(v**2))


def looped(
    stages: Sequence[Mapping[str, Callable[..., Any]] | Callable[[Any], Any]],
    *,
    norm: Callable[[Any], Any] | None = None,
    unit: str = STEP,
) -> System:
    """A system whose step adds residual branches to a hidden state, stage by stage.

    Args:
        stages: which follow one another, each a table of branches that act side by
            side.  A branch is a function (state, parameters) -> update, of the form of
            the state.  An input that every step sees again is a branch that returns it.
            A function state -> state between them is a norm; its name is `norm 1`, ...
        norm: state -> state, at the end of every step.  Without one a residual stream
            may grow without bound.
        unit: what a step is, in a word.

    Returns:
        A system whose parameters are a dictionary.  Its `scale`, where it has one,
        multiplies every branch.

    Raises:
        ValueError: no branches, or one that is no function, or two of one name.

    Example:
        >>> import jax.numpy as jnp
        >>> pull = lambda h, p: -h / 2
        >>> system = looped([{"pull": pull}, {"push": lambda h, p: 0.2 * h}])
        >>> system.step(jnp.ones((1, 2)), {"scale": 1.0}).round(6).tolist()
        [[0.6, 0.6]]
    """
    every: list[tuple[_Branch, ...] | _Norm] = []
    for stage in stages:
        if callable(stage):
            number = 1 + sum(isinstance(x, _Norm) for x in every)
            every.append(_Norm(f"norm {number}", stage))
            continue
        table = dict(stage) if isinstance(stage, Mapping) else {}
        if not (table and all(map(callable, table.values()))):
            every = []
            break
        every.append(tuple(_Branch(*pair) for pair in table.items()))
    if all(isinstance(x, _Norm) for x in every):
        raise ValueError(
            "stages must be a list of tables, each with a function for every branch."
        )
    loop = _Loop((*every, *([] if norm is None else [_Norm("norm", norm)])))
    for name in loop.parts:
        if loop.parts.count(name) > 1:
            raise ValueError(f"names of branches must differ; got {name!r} twice.")
    return System(loop, unit=unit)


class _Affine(eqx.Module):
    """A norm with a gain and a shift of every coordinate."""

    norm: Callable[..., Any]
    gain: Any
    shift: Any

    def __call__(self, h):
        return self.norm(h) * self.gain + self.shift


class _Linear(eqx.Module):
    """A linear map with a bias."""

    weight: Float[Array, "to D"]
    bias: Any

    def __call__(self, z):
        return z @ self.weight.T + self.bias


class _Head(eqx.Module):
    """A head of softmax attention over a normed state."""

    query: _Linear
    key: _Linear
    value: _Linear
    output: Float[Array, "D d"]
    norm: Callable[..., Any]
    causal: bool = eqx.field(static=True)

    def __call__(self, h, parameters):
        z = self.norm(h)
        products = self.query(z) @ self.key(z).T / math.sqrt(len(self.query.weight))
        products = products / parameters.get("temperature", 1.0)
        if self.causal:
            attended = jnp.tril(jnp.ones(products.shape, bool))
            products = jnp.where(attended, products, -jnp.inf)
        return jax.nn.softmax(products, axis=-1) @ self.value(z) @ self.output.T


class _Bias(eqx.Module):
    """What the output projection adds to every token."""

    bias: Float[Array, " D"]

    def __call__(self, h, parameters):
        return jnp.broadcast_to(self.bias, h.shape)


class _Perceptron(eqx.Module):
    """Two layers with an activation between them, over a normed state."""

    up: _Linear
    down: _Linear
    norm: Callable[..., Any]
    activation: Callable[..., Any]

    def __call__(self, h, parameters):
        return self.down(self.activation(self.up(self.norm(h))))


def transformer_block(
    weights: Mapping[str, Numbers],
    *,
    norm: Callable[[Any], Any] = rms_norm,
    activation: Callable[[Any], Any] = jax.nn.gelu,
    post: bool = False,
    causal: bool = False,
    prefix: str = "",
) -> list[Mapping[str, Callable[..., Any]] | Callable[[Any], Any]]:
    """The stages of a transformer block: attention heads, then an MLP.

    A looped network of several blocks is their stages one after another.

    Args:
        weights: arrays `query`, `key` and `value` (H, d, D) and `output` (H, D, d) of H
            heads; `up` (M, D) and `down` (D, M) of an MLP, or neither.  A layer may
            have biases, `query_bias`, `key_bias` and `value_bias` (H, d), `output_bias`
            (D,), `up_bias` (M,) and `down_bias` (D,), and its norms gains and shifts,
            `attention_gain`, `attention_shift`, `mlp_gain` and `mlp_shift` (D,).
        norm: `rms_norm` or `layer_norm`.
        activation: of the MLP.  `jax.nn.gelu` is that of Flax; PyTorch's GELU is
            `functools.partial(jax.nn.gelu, approximate=False)`.
        post: whether norms follow heads and MLP, as in layers of PyTorch by default.
            They stand before them when omitted.
        causal: whether a token sees only itself and those before it.
        prefix: of the names `head 1`, `head 2`, ..., `bias` and `mlp`.

    Returns:
        Stages for `looped`.  Their parameter `temperature`, where there is one, divides
        what the softmax of the attention is taken of, besides sqrt(d).

    Raises:
        ValueError: arrays that are missing, do not fit or are not finite.

    Example:
        >>> import numpy as np
        >>> random = np.random.default_rng(0).normal
        >>> weights = {x: random(size=(2, 3, 8)) for x in ("query", "key", "value")}
        >>> block = transformer_block(weights | {"output": random(size=(2, 8, 3))})
        >>> whole = looped(block, norm=rms_norm)
        >>> jax.jit(lambda h: whole.step(h))(random(size=(5, 8))).shape
        (5, 8)
    """
    arrays = _fitting({name: jnp.asarray(array) for name, array in weights.items()})

    def normed(part):
        gain, shift = arrays.get(f"{part}_gain", 1.0), arrays.get(f"{part}_shift", 0.0)
        return _Affine(norm, gain, shift)

    def linear(name, *head):
        bias = arrays.get(f"{name}_bias")
        return _Linear(arrays[name][head], 0.0 if bias is None else bias[head])

    before = (lambda part: lambda h: h) if post else normed
    attention: dict[str, Callable[..., Any]] = {
        f"{prefix}head {h + 1}": _Head(
            query=linear("query", h),
            key=linear("key", h),
            value=linear("value", h),
            output=arrays["output"][h],
            norm=before("attention"),
            causal=causal,
        )
        for h in range(len(arrays["query"]))
    }
    if "output_bias" in arrays:
        attention[f"{prefix}bias"] = _Bias(arrays["output_bias"])
    parts = {"attention": attention}
    if "up" in arrays:
        mlp = _Perceptron(linear("up"), linear("down"), before("mlp"), activation)
        parts["mlp"] = {f"{prefix}mlp": mlp}
    if not post:
        return list(parts.values())
    return [stage for part in parts for stage in (parts[part], normed(part))]


def _fitting(arrays: dict[str, Array]) -> dict[str, Array]:
    """Weights of a block, or a refusal of those that do not fit each other."""
    perceptron = any(name.split("_")[0] in (*OF_MLP, "mlp") for name in arrays)
    needed = (*OF_HEADS, *OF_MLP) if perceptron else OF_HEADS
    if not {*needed} <= arrays.keys() <= SHAPES.keys():
        more = [name for name in SHAPES if name not in (*OF_HEADS, *OF_MLP)]
        raise ValueError(
            f"weights must be {', '.join(needed)}, and may be {', '.join(more)}; got "
            f"{', '.join(arrays) or 'none'}."
        )
    names = [name for name in SHAPES if name in arrays]
    lengths: dict[str, int] = {}
    for name in names:
        shape, axes = arrays[name].shape, SHAPES[name]
        sizes = dict(zip(axes, shape))
        if len(shape) != len(axes) or 0 in shape or lengths | sizes != sizes | lengths:
            raise ValueError(
                f"{name} must have axes ({', '.join(axes)}) of the lengths of the "
                f"other arrays; got {list(shape)}."
            )
        lengths |= sizes
        known = not isinstance(arrays[name], Tracer)
        if known and not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} must be finite.")
    return arrays


class GrowthShares(eqx.Module):
    """Shares of the parts of a block in the largest exponent, in nats per step.

    They add up to the exponent.  A negative share is that of a part that shortens the
    leading tangent vector.  NaN after the state diverged.

    Attributes:
        shares: averages over the window, of every branch and then of the norm.
        stderr: their standard errors, from blocks.
        exponent: the largest Lyapunov exponent over the same window.
        exponent_stderr: its standard error.
        parts: names of branches, and of the norm where there is one.
        steps: length of the window.
        unit: what a step is.
    """

    shares: Float[Array, "parts *batch"]
    stderr: Float[Array, "parts *batch"]
    exponent: Float[Array, "*batch"]
    exponent_stderr: Float[Array, "*batch"]
    parts: tuple[str, ...] = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    unit: str = eqx.field(static=True, default=STEP)

    _shown = (
        Variable(
            "part_name", "part", "parts", value=lambda found: np.array(found.parts)
        ),
        Variable(
            "growth_share",
            "part",
            "shares in the largest exponent",
            "nat / {unit}",
            "g_b",
            value="shares",
            error="stderr",
        ),
        Variable(
            "exponent",
            "",
            "largest Lyapunov exponent",
            "nat / {unit}",
            "λ_1",
            error="exponent_stderr",
        ),
        Variable("window", "", "length of the window", "{unit}", "n", value="steps"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def leading_axes(self) -> int:
        """Axes of a batch that stand first."""
        return leading_axes((self.shares, (len(self.parts),)))


@forward_only
def growth_shares(
    system: System,
    state: Float[Array, "..."],
    parameters: Mapping[str, Any] | None = None,
    *,
    steps: Count,
    transient: WholeNumber = 0,
    blocks: Blocks = BLOCKS,
    align: WholeNumber | None = None,
) -> GrowthShares:
    """How much every branch of a looped block adds to its largest Lyapunov exponent.

    The sum does not depend on how lengths of tangent vectors are measured; the shares
    do, and are those of the Euclidean length in the residual stream.

    Args:
        system: of `looped`.
        state: where the orbit starts, (T, D); may be batched by `jax.vmap`.
        parameters: of the system.
        steps: length of the window, rounded up to a multiple of `blocks`.
        transient: steps before the window.
        blocks: number of blocks for errors, a multiple of 4.
        align: steps after the transient that turn the tangent vector to the orbit's own
            direction, as in `lyapunov_spectrum`.

    Returns:
        `GrowthShares`, in nats per step.

    Raises:
        ValueError: a count out of range, or a system that has no branches.

    Example:
        >>> import jax.numpy as jnp
        >>> grow = lambda h, p: h / 2
        >>> system = looped([{"a": grow, "b": grow}, {"c": lambda h, p: -h / 4}])
        >>> shares = growth_shares(system, jnp.zeros((2, 3)), steps=16)
        >>> np.exp(shares.shares * np.array([2, 2, 1])).round(6).tolist()
        [2.0, 2.0, 0.75]
    """
    require_double()
    if not isinstance(loop := getattr(system, "step", None), _Loop):
        raise ValueError("system must be made by looped, of named branches.")
    frame_size(system.at(parameters), state, 1)
    per_block = -(-steps // blocks)
    turns = alignment(per_block, 1, blocks) if align is None else align
    series = _series(
        system,
        state,
        parameters,
        steps=per_block * blocks,
        transient=jnp.asarray(transient),
        turns=jnp.asarray(turns),
    )
    weights = window_weights((jnp.arange(series.shape[1]) + 0.5) / series.shape[1])[0]
    averages = jnp.mean(series.reshape(len(series), blocks, per_block), axis=2).T
    mean, error = mean_of_blocks(averages, series @ weights / jnp.sum(weights))
    return GrowthShares(
        shares=mean[:-1],
        stderr=error[:-1],
        exponent=mean[-1],
        exponent_stderr=error[-1],
        parts=loop.parts,
        steps=per_block * blocks,
        unit=system.unit,
    )


@eqx.filter_jit
def _series(system, state, parameters, *, steps, transient, turns):
    """Shares of every step, and the logarithm of the whole growth."""
    map = system.at(parameters)
    state = advance(map, state, transient)
    carry = aligned(map, *start_frame(map, state, 1), turns)

    def one(carry, _):
        state, frame = carry
        v = map.at(state, frame[:, 0])
        after = turn(map, state, frame)
        shares = system.step.shares(state, v, parameters)
        whole = safe_log(after.lengths)
        return (after.lifted, after.frame), jnp.concatenate([shares, whole])

    return jax.lax.scan(one, carry, None, length=steps)[1].T


def soft_feedback(
    logits: Callable[[Any], Any], embedding: Float[Array, "V D"]
) -> System:
    r"""A language model that reads the mean embedding of its own next token.

    The state is the window of the last C embeddings (C, D).  A step appends
    $\sum_i \mathrm{softmax}(z/T)_i\, e_i$, the mean of what a model that samples at the
    temperature T appends, and drops the oldest one.

    Args:
        logits: window (C, D) -> z (V,), a score of every token of the vocabulary.
        embedding: of every token.

    Returns:
        A system with the parameter `temperature`, 1 where it is not given.

    Example:
        >>> import jax.numpy as jnp
        >>> system = soft_feedback(lambda window: window[0] * 100, jnp.eye(2))
        >>> system.step(jnp.array([[0.0, 1.0], [1.0, 0.0]])).round(6).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    def step(window, parameters=None):
        temperature = (parameters or {}).get("temperature", 1.0)
        chances = jax.nn.softmax(logits(window) / temperature)
        return jnp.concatenate([window[1:], (chances @ embedding)[None]])

    return System(step, unit="token")
