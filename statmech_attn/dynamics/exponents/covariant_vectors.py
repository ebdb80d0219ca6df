r"""Covariant Lyapunov vectors and the angles between them.

A covariant vector $v_j(x)$ is mapped to a multiple of $v_j(F(x))$, and grows with
$\lambda_j$ forwards and backwards in time (Ginelli et al., Phys. Rev. Lett. 99, 130601,
2007).  Frames pushed forwards, $J_n Q_n = Q_{n+1} R_n$, turn into the subspaces that
expand most.  In their basis covariant vectors are upper triangular, $V_n = Q_n C_n$,
and columns that are pulled back turn into them:

    $C_n = R_n^{-1} C_{n+1}$   in columns of length one                `vectors`
    $\ln |J_n v_j|$            minus the logarithm of what makes it one  `exponents`
    $\sin \theta_n = \sigma_{\min}(B_n)$                               `angles`

where B holds the rows after the first m of an orthonormal basis of columns m + 1 to k
of C: $\theta$ is the smallest angle of a vector in the span of the first m vectors with
one in the span of the others.  An attractor is uniformly hyperbolic only if the angle
of expanding with contracting vectors is bounded away from zero.

Frames are kept at the beginning of every piece of the window, from where they are
pushed again, so that memory grows with the number of pieces and with their length, but
not with the window.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents
from statmech_attn.dynamics.exponents.frames import (
    align as aligned,
    completed,
    LOST,
    start_frame,
    turn,
)
from statmech_attn.dynamics.exponents.lyapunov import (
    ALIGN,
    BLOCKS,
    frame_size,
    mean_of_blocks,
    window_weights,
)
from statmech_attn.dynamics.exponents.spectrum import ZERO
from statmech_attn.dynamics.maps.orthonormal import safe_log
from statmech_attn.dynamics.maps.systems import (
    advance,
    as_system,
    require_like,
    shape_of_step,
    System,
    TangentSystem,
)
from statmech_attn.dynamics.maps.tracing import untraced
from statmech_attn.labels import STEP, Variable, Variables
from statmech_attn.options import Count, WholeNumber
from statmech_attn.scan import FAILURE


SHARES = 0.001, 0.01, 0.1, 0.5  # of the steps whose angles are smaller
ROWS = (
    Variable(
        "covariant_exponent",
        "exponent",
        "growth of covariant vectors",
        "nat / {unit}",
        "λ_i",
        value="exponents",
        error="stderr",
    ),
    Variable(
        "angle",
        "place",
        "smallest angle of expanding with other vectors",
        "rad",
        "θ",
        value="angles",
        line=False,
    ),
    Variable(
        "smallest_angle",
        "",
        "smallest of these angles",
        "rad",
        "min θ",
        value=lambda vectors: vectors.angles.min(),
    ),
    Variable(
        "tangency_exponent",
        "",
        "power of the angle in the share of smaller ones",
        symbol="α",
        value=lambda vectors: vectors.tangency()[0],
        error=lambda vectors: vectors.tangency()[1],
    ),
    Variable("split", "", "number of expanding vectors", symbol="m"),
    Variable(
        "angle_quantile",
        "share",
        "angle below which a share of the steps lies",
        "rad",
        "θ_q",
        value=lambda vectors: np.quantile(vectors.angles, SHARES),
        line=False,
    ),
    Variable(
        "share",
        "share",
        "share of the steps",
        symbol="q",
        value=lambda _: SHARES,
        line=False,
    ),
    Variable(
        "state",
        "piece coordinate",
        "orbit at the beginning of a piece",
        symbol="x",
        value="states",
        line=False,
    ),
    Variable(
        "covariant_vector",
        "piece coordinate exponent",
        "covariant vectors",
        symbol="v",
        value="vectors",
        line=False,
    ),
    Variable("piece_steps", "", "steps of a piece", "{unit}", "n", value="piece"),
)
VARIABLES = Variables(*(row._replace(group="") for row in ROWS))
OF_ORBIT = "angle", "state", "covariant_vector", "piece_steps"  # not along a parameter
ALONG = Variables(*(row for row in VARIABLES if row.name not in OF_ORBIT), FAILURE)


class NoDirection(ValueError):
    """A vector that the map collapses to rounding, or that diverges."""


class CovariantVectors(eqx.Module):
    """Covariant vectors along an orbit; `k` of them, of the largest exponent first.

    Attributes:
        exponents: mean growth of every vector, nats per step.
        stderr: standard errors of the exponents, from blocks.
        angles: smallest angle between the span of the first vectors and that of the
            others at every step, radians; NaN where one of the two is empty.
        states: coordinates of the orbit at the beginning of every piece.
        vectors: there, in columns of length one; their signs mean nothing.
        split: number of vectors of the first span.
        piece: steps from one of these states to the next.
        unit: what a step is.
    """

    exponents: Float[np.ndarray, " k"]
    stderr: Float[np.ndarray, " k"]
    angles: Float[np.ndarray, " n"]
    states: Float[np.ndarray, "pieces dim"]
    vectors: Float[np.ndarray, "pieces dim k"]
    split: int = eqx.field(static=True)
    piece: int = eqx.field(static=True)
    unit: str = eqx.field(static=True, default=STEP)

    _shown = ROWS
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    def tangency(self) -> tuple[float, float]:
        r"""Power $\alpha$ in the share $\theta^\alpha$ of angles below $\theta$.

        It is 1 where the density of angles has a value at zero, as where expanding and
        contracting directions become tangent, and grows without bound with the length
        of the window where angles are bounded away from zero.  Hill's estimator (Annals
        of Statistics 3, 1163, 1975) of the $\sqrt n$ smallest angles,
        $1/\alpha = \langle \ln(\theta_{\max}/\theta) \rangle$, with the error of a
        jackknife over blocks of the window.

        Returns:
            The power and its standard error; NaN where there are no angles.

        Example:
            >>> chance = np.random.default_rng(0).uniform(size=10_000)
            >>> none = np.zeros((1, 2, 1))
            >>> vectors = CovariantVectors(
            ...     none[0, 0], none[0, 0], chance, none[..., 0], none, 1, 1)
            >>> power, error = vectors.tangency()
            >>> abs(power - 1) < 4 * error
            True
        """
        if np.isnan(self.angles).any() or len(self.angles) < BLOCKS**2:
            return np.nan, np.nan
        blocks = np.array_split(self.angles, BLOCKS)
        left_out = [
            _hill(np.concatenate([*blocks[:b], *blocks[b + 1 :]]))
            for b in range(BLOCKS)
        ]
        variance = (BLOCKS - 1) * np.var(left_out)
        return _hill(self.angles), float(np.sqrt(variance))


def _hill(angles: Float[np.ndarray, " n"]) -> float:
    """Power of the distribution function at its lower end."""
    least = np.sort(angles)[: round(np.sqrt(len(angles))) + 1]
    with np.errstate(divide="ignore"):
        return float(1 / np.mean(np.log(least[-1] / least[:-1])))


@untraced
def covariant_vectors(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    steps: Count,
    transient: WholeNumber = 0,
    exponents: WholeNumber | None = None,
    split: Count | None = None,
    piece: Count | None = None,
    align: WholeNumber | None = None,
) -> CovariantVectors:
    """Covariant Lyapunov vectors along an orbit of any system.

    Args:
        system: a `System`, or its step, as `lyapunov_spectrum` takes it.
        state: where the orbit starts.
        parameters: of the system, a tree of arrays; none when omitted.
        steps: length of the window, rounded up to whole pieces.
        transient: steps before the window.
        exponents: how many vectors; one for every finite exponent when omitted.
        split: how many of the first vectors span the space whose angle with the span
            of the others is taken; those that expand when omitted.
        piece: steps between two states whose vectors are kept; 1 keeps all.  A square
            root of `steps` when omitted, which takes the least memory.
        align: steps before the window that turn frames to the orbit's own directions,
            and after it that turn vectors; 1000, or as many as the window has, when
            omitted.

    Returns:
        `CovariantVectors`: exponents with errors, angles, and vectors of every piece.

    Raises:
        ValueError: a count out of range, a state without coordinates, or a map that
            changes its shape.
        NoDirection: vectors that rounding hides, or an orbit that diverges.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> cat = lambda x: (jnp.array([[3.0, 1.0], [2.0, 1.0]]) @ x) % 1
        >>> vectors = covariant_vectors(cat, jnp.array([0.1, 0.234]), steps=100)
        >>> vectors.exponents.round(4).tolist(), vectors.angles.round(4)[:2].tolist()
        ([1.317, -1.317], [1.2898, 1.2898])
    """
    require_double()
    system = as_system(system)
    map = system.at(parameters)
    piece = max(1, round(np.sqrt(steps))) if piece is None else piece
    align = min(ALIGN, steps) if align is None else align
    state = jax.tree.map(jnp.asarray, state)
    k = vector_count(map, state, exponents, split)
    pieces, further = -(-steps // piece), -(-align // piece)
    lengths = {"pieces": pieces + further, "piece": piece, "k": k}
    starts, logs, worst = _forwards(
        map, state, jnp.asarray(transient), jnp.asarray(align), **lengths
    )
    lost = ~np.isfinite(logs[:pieces]).all(axis=0) | (np.max(worst, axis=0) > LOST)
    if lost.any():
        column = int(np.argmax(lost))
        if not column:
            raise NoDirection("no vector has a direction: the orbit diverges.")
        raise NoDirection(
            f"vector {column + 1} has no direction, since the map collapses it to "
            f"rounding: ask for at most {column} exponents."
        )
    if split is None:
        split = int(np.sum(np.mean(logs[:pieces], axis=0) / piece > ZERO))
    series = _backwards(map, starts, split=split, piece=piece)
    vectors, states, growth, angles = [np.asarray(x[:pieces]) for x in series]
    growth = growth.reshape(-1, k)
    blocks = [part.mean(axis=0) for part in np.array_split(growth, BLOCKS)]
    weights = window_weights((jnp.arange(len(growth)) + 0.5) / len(growth))[0]
    weighted = weights @ growth / jnp.sum(weights)
    mean, error = mean_of_blocks(jnp.asarray(blocks), weighted)
    return CovariantVectors(
        exponents=np.asarray(mean),
        stderr=np.asarray(error),
        angles=angles.reshape(-1),
        states=states,
        vectors=vectors,
        split=split,
        piece=piece,
        unit=system.unit,
    )


def vector_count(
    map: TangentSystem, state: PyTree, exponents: int | None, split: int | None
) -> int:
    """Number of vectors: as asked for, or one for every exponent that can be finite."""
    most = frame_size(map, state, None)
    require_like(shape_of_step(map.step, state), state)
    finite = finite_exponents(map, state)
    most = most if finite is None else finite
    k = most if exponents is None else frame_size(map, state, exponents)
    if not 0 < k <= most:
        raise ValueError(
            f"exponents must lie in 1..{most}, the number that can be finite; got {k}."
        )
    if split is not None and not 0 < split < k:
        raise ValueError(f"split must lie in 1..{k - 1}; got {split}.")
    return k


@eqx.filter_jit
def _forwards(map, state, transient, turns, *, pieces, piece, k):
    """State and frame at the beginning of each piece, and how columns grow over it."""
    state = advance(map, state, transient)
    carry = aligned(map, *start_frame(map, state, k), turns)

    def of_piece(carry, _):
        def one(_, sums):
            lifted, frame, logs, worst = sums
            after = turn(map, lifted, frame)
            logs = logs + safe_log(after.lengths)
            return after.lifted, after.frame, logs, jnp.maximum(worst, after.noise)

        nothing = jnp.zeros(k)
        *after, logs, worst = jax.lax.fori_loop(
            0, piece, one, (*carry, nothing, nothing)
        )
        return tuple(after), (carry, logs, worst)

    return jax.lax.scan(of_piece, carry, None, length=pieces)[1]


@eqx.filter_jit
def _backwards(map, starts, *, split, piece):
    """Vectors and states at the beginning of each piece; growth and angles of steps."""
    k = starts[1].shape[-1]

    def forward(carry, _):
        after = turn(map, *carry)
        return (after.lifted, after.frame), after.frame.T @ after.pushed

    def pull(C, R):
        C = solve_triangular(R, C)
        lengths = jnp.linalg.norm(C, axis=0)
        return C / lengths, (C / lengths, -jnp.log(lengths))

    def sine(C):
        basis = jnp.linalg.qr(C[:, split:])[0]
        return jnp.linalg.svd(basis[split:], compute_uv=False)[-1]

    def of_piece(C, start):
        lifted, frame = start
        R = jax.lax.scan(forward, start, None, length=piece)[1]
        C, (series, growth) = jax.lax.scan(pull, C, R, reverse=True)
        sines = jax.vmap(sine)(series) if 0 < split < k else jnp.full(piece, jnp.nan)
        state = map.vector(map.lower(lifted))
        return C, (frame @ C, state, growth, jnp.arcsin(jnp.minimum(sines, 1.0)))

    generic = jnp.triu(jnp.asarray(completed(np.empty((k, 0)), k)))
    return jax.lax.scan(of_piece, generic, starts, reverse=True)[1]
