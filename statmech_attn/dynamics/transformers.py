r"""Transformer blocks as maps, and what each head adds to the largest exponent.

A looped block reads its own output, as a transformer of recurrent depth does (Geiping
et al., arXiv:2502.05171).  Its stages follow one another; the branches b of a stage
read the same residual stream h (T, D) of T tokens and width D,

    $h \leftarrow h + a \sum_b f_b(h)$   for every stage,   then   $h \leftarrow N(h)$

with a the `scale` of all branches and N a norm.  A tangent vector v leaves a stage as
$w = v + \sum_b u_b$ with $u_b = a\, Df_b(h)\, v$.  Since
$(w + v) \cdot \sum_b u_b = |w|^2 - |v|^2$, its growth is shared without remainder,

    $\ln \frac{|w|}{|v|} = \sum_b g_b$,
    $g_b = \frac{(w + v) \cdot u_b}{2 |v|^2} \frac{\ln(1 + x)}{x}$,
    $x = \frac{|w|^2 - |v|^2}{|v|^2}$

and what the norm stretches v by is a share of its own.  Along the leading tangent
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
from statmech_attn.dynamics.frames import align as aligned, start_frame, turn
from statmech_attn.dynamics.lyapunov import (
    alignment,
    BLOCKS,
    check_counts,
    frame_size,
    mean_of_blocks,
    window_weights,
)
from statmech_attn.dynamics.orthonormal import safe_log
from statmech_attn.dynamics.systems import advance, leading_axes, require_like, System
from statmech_attn.dynamics.tracing import forward_only
from statmech_attn.labels import STEP, Variable


EPSILON = 1e-5  # added to mean squares by norms
SHAPES = {  # axes of weights: heads, size of a head, width, hidden width
    "query": "HdD",
    "key": "HdD",
    "value": "HdD",
    "output": "HDd",
    "up": "MD",
    "down": "DM",
}


def rms_norm(h: Float[Array, "*tokens D"]) -> Float[Array, "*tokens D"]:
    """Every token divided by its root mean square.

    Args:
        h: tokens, with their coordinates on the last axis.

    Example:
        >>> import jax.numpy as jnp
        >>> rms_norm(jnp.array([3.0, -3.0])).round(4).tolist()
        [1.0, -1.0]
    """
    return h / jnp.sqrt(jnp.mean(h**2, axis=-1, keepdims=True) + EPSILON)


def layer_norm(h: Float[Array, "*tokens D"]) -> Float[Array, "*tokens D"]:
    """Every token less its mean, divided by its standard deviation.

    Args:
        h: tokens, with their coordinates on the last axis.

    Example:
        >>> import jax.numpy as jnp
        >>> layer_norm(jnp.array([4.0, 2.0])).round(4).tolist()
        [1.0, -1.0]
    """
    return rms_norm(h - jnp.mean(h, axis=-1, keepdims=True))


class _Branch(eqx.Module):
    name: str = eqx.field(static=True)
    update: Callable[..., Any]


class _Loop(eqx.Module):
    """The step of a looped block: stages of branches, then a norm."""

    stages: tuple[tuple[_Branch, ...], ...]
    norm: Callable[..., Any] | None

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of all branches in their order, and of the norm."""
        branches = tuple(branch.name for stage in self.stages for branch in stage)
        return branches if self.norm is None else (*branches, "norm")

    def __call__(self, h, parameters=None):
        for stage in self.stages:
            h = h + jnp.sum(self._updates(stage, h, parameters), axis=0)
        return h if self.norm is None else self.norm(h)

    def shares(self, h, v, parameters) -> Float[Array, " parts"]:
        """Growth of a tangent vector in one step, by part."""
        shares = []
        for stage in self.stages:
            of_state = lambda h, stage=stage: self._updates(stage, h, parameters)
            updates, changes = jax.jvp(of_state, (h,), (v,))
            after = v + jnp.sum(changes, axis=0)
            shares.append(_shared(v, after, changes))
            h, v = h + jnp.sum(updates, axis=0), after
        if self.norm is not None:
            after = jax.jvp(self.norm, (h,), (v,))[1]
            shares.append(_log_square(after, v)[None] / 2)
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
    stages: Sequence[Mapping[str, Callable[..., Any]]],
    *,
    norm: Callable[[Any], Any] | None = None,
    unit: str = STEP,
) -> System:
    """A system whose step adds residual branches to a hidden state, stage by stage.

    Args:
        stages: which follow one another, each a table of branches that act side by
            side.  A branch is a function (state, parameters) -> update, of the form of
            the state.  An input that every step sees again is a branch that returns it.
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
    tables = [dict(x) if isinstance(x, Mapping) else {} for x in stages]
    if not (tables and all(x and all(map(callable, x.values())) for x in tables)):
        raise ValueError(
            "stages must be a list of tables, each with a function for every branch."
        )
    branches = [tuple(_Branch(*pair) for pair in x.items()) for x in tables]
    loop = _Loop(tuple(branches), norm)
    for name in loop.parts:
        if loop.parts.count(name) > 1:
            raise ValueError(f"names of branches must differ; got {name!r} twice.")
    return System(loop, unit=unit)


class _Head(eqx.Module):
    """A head of softmax attention over a normed state."""

    query: Float[Array, "d D"]
    key: Float[Array, "d D"]
    value: Float[Array, "d D"]
    output: Float[Array, "D d"]
    norm: Callable[..., Any]
    causal: bool = eqx.field(static=True)

    def __call__(self, h, parameters):
        z = self.norm(h)
        products = (z @ self.query.T) @ (z @ self.key.T).T / math.sqrt(len(self.query))
        products = products / parameters.get("temperature", 1.0)
        if self.causal:
            seen = jnp.tril(jnp.ones(products.shape, bool))
            products = jnp.where(seen, products, -jnp.inf)
        return jax.nn.softmax(products, axis=-1) @ (z @ self.value.T) @ self.output.T


class _Perceptron(eqx.Module):
    """Two layers with GELU between them, over a normed state."""

    up: Float[Array, "M D"]
    down: Float[Array, "D M"]
    norm: Callable[..., Any]

    def __call__(self, h, parameters):
        return jax.nn.gelu(self.norm(h) @ self.up.T) @ self.down.T


def transformer_block(
    weights: Mapping[str, Any],
    *,
    norm: Callable[[Any], Any] = rms_norm,
    causal: bool = False,
    prefix: str = "",
) -> list[dict[str, Callable[..., Any]]]:
    """The stages of a pre-norm transformer block: attention heads, then an MLP.

    Gains of a norm belong to the arrays that read from it: `query * gain`.  A looped
    network of several blocks is their stages one after another.

    Args:
        weights: arrays `query`, `key` and `value` (H, d, D) and `output` (H, D, d) of H
            heads; `up` (M, D) and `down` (D, M) of an MLP with GELU, or neither.
        norm: before heads and MLP, `rms_norm` or `layer_norm`.
        causal: whether a token sees only itself and those before it.
        prefix: of the names `head 1`, `head 2`, ... and `mlp`.

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
        >>> looped(block, norm=rms_norm).step(random(size=(5, 8))).shape
        (5, 8)
    """
    arrays = _fitting({name: jnp.asarray(array) for name, array in weights.items()})
    heads = zip(arrays["query"], arrays["key"], arrays["value"], arrays["output"])
    stages: list[dict[str, Callable[..., Any]]] = [
        {
            f"{prefix}head {number}": _Head(query, key, value, output, norm, causal)
            for number, (query, key, value, output) in enumerate(heads, 1)
        }
    ]
    if "up" in arrays:
        stages.append({f"{prefix}mlp": _Perceptron(arrays["up"], arrays["down"], norm)})
    return stages


def _fitting(arrays: dict[str, Array]) -> dict[str, Array]:
    """Weights of a block, or a refusal of those that do not fit each other."""
    perceptron = {"up", "down"} & arrays.keys()
    names = [name for name in SHAPES if perceptron or name not in ("up", "down")]
    if set(names) != arrays.keys():
        raise ValueError(
            f"weights must be {', '.join(names)}; got {', '.join(arrays) or 'none'}."
        )
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
    steps: int,
    transient: int = 0,
    blocks: int = BLOCKS,
    align: int | None = None,
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
        >>> found = growth_shares(system, jnp.zeros((2, 3)), steps=16)
        >>> (jnp.exp(found.shares) ** jnp.array([2, 2, 1])).round(6).tolist()
        [2.0, 2.0, 0.75]
    """
    require_double()
    check_counts(steps, transient, 1, blocks, align or 0)
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
