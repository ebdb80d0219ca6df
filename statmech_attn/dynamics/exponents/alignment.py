r"""Alignment of deviation vectors, GALI and SALI (docs/theory/indicators.md, sec. 4).

k unit vectors are pushed along the orbit without orthonormalisation; their volume is
the generalised alignment index (Skokos, Bountis & Antonopoulos, Physica D 231, 30,
2007, eqs. 9 and 12)

    $\mathrm{GALI}_k(n) = \|\hat v_1 \wedge \dots \wedge \hat v_k\|
      \sim e^{-[(\lambda_1 - \lambda_2) + \dots + (\lambda_1 - \lambda_k)] n}$ (chaos)

and SALI = min |v_1 ± v_2| is GALI_2 for nearly parallel vectors.  On a torus of
dimension s >= k of a conservative system they stay constant, else fall like a power.

The vectors themselves would be parallel to rounding after some tens of steps.  With
$V_n = Q_n R_n \cdots R_1$ and the unit columns $u_j$ of $R_n \cdots R_1$ (k x k, upper
triangular) all is kept in logarithms,

    $\ln \mathrm{GALI}_k = \sum_{j \le k} (\ln |R_{jj}|_{n \dots 1} - \ln \ell_j)$

with $\ell_j$ the length of column j, and all orders 2..k come out of one pass.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn import presentation
from statmech_attn.batches import add_up, require_double
from statmech_attn.dynamics.exponents.frames import LOST, start_frame, turn
from statmech_attn.dynamics.exponents.lyapunov import frame_size
from statmech_attn.dynamics.maps.orthonormal import nonzero, safe_log
from statmech_attn.dynamics.maps.systems import (
    advance,
    as_system,
    BatchedResult,
    of_each,
    System,
)
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.labels import STEP, Variable
from statmech_attn.options import Count, Several, WholeNumber


class Alignment(BatchedResult):
    """ln GALI_j for j = 2..k at sampled times; NaN after the state diverged.

    -inf: the map sent a vector to zero, as at a superstable point; NaN: rounding hid
    one within a single step.  Properties and methods of a batch that plain `jax.vmap`
    made have its axis first, those of one with `out_axes=-1` last.

    Attributes:
        log_gali: ln GALI_2 to ln GALI_k, one row for each sample.
        every: steps between two samples.
        unit: what a step is.
    """

    log_gali: Float[Array, "samples k-1 *batch"]
    every: int = eqx.field(static=True)
    unit: str = eqx.field(static=True, default=STEP)

    own_axes = ("log_gali", 2)
    _shown = (
        Variable(
            "log_gali", "sample order", "ln GALI_j, j = 2, 3, ...", "1", "ln GALI_j"
        ),
        Variable(
            "rate",
            "order",
            "slope of ln GALI_j over the second half",
            "1 / {unit}",
            "d ln GALI_j/dn",
            value=lambda a: a.rate(),
        ),
        Variable(
            "alignment_time",
            "sample",
            "steps since the vectors were set out",
            "{unit}",
            "n",
            value="time",
            line=False,
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def time(self) -> Int[Array, " samples"]:
        """Steps since the vectors were set out."""
        return self.every * (1 + jnp.arange(self._axes[0]))

    @property
    @of_each
    def log_sali(self) -> Float[Array, "samples *batch"]:
        """ln SALI; SALI = 2 sin(theta/2) where GALI_2 = sin(theta)."""
        log_sine = self.log_gali[:, 0]
        cosine = jnp.sqrt(-jnp.expm1(2 * jnp.minimum(log_sine, 0.0)))
        return log_sine + jnp.log(2 / (1 + cosine)) / 2

    @of_each
    def rate(self, start: float = 0.5) -> Float[Array, "k-1 *batch"]:
        """Slope of ln GALI per step over the samples after a share `start` of them.

        Args:
            start: share of the samples that is left out at the beginning, below 1.
        """
        return self._slope(jnp.asarray(self.time, float), start)

    @of_each
    def power(self, start: float = 0.5) -> Float[Array, "k-1 *batch"]:
        """Slope of ln GALI over ln n, the exponent of a power law in time.

        Args:
            start: share of the samples that is left out at the beginning, below 1.
        """
        return self._slope(jnp.log(self.time), start)

    def _slope(self, x, start: float):
        if not 0 <= start < 1 or self.time[int(start * len(self.time)) :].size < 2:
            raise ValueError(
                f"start must lie in [0, 1) and leave two samples; got {start:g}."
            )
        first = int(start * len(self.time))
        x, y = x[first:], self.log_gali[first:]
        x = (x - jnp.mean(x)).reshape((-1,) + (1,) * (y.ndim - 1))
        return jnp.sum(x * (y - jnp.mean(y, axis=0)), axis=0) / jnp.sum(x**2)


@forward_only
def gali(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    order: Several = 2,
    samples: Several = 100,
    every: Count = 10,
    transient: WholeNumber = 0,
) -> Alignment:
    """GALI_2 .. GALI_order, hence SALI, along an orbit of any map; works under `vmap`.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: where the orbit starts.
        parameters: of the system, a tree of arrays; none when omitted.
        order: number of deviation vectors, k.
        samples: how often the indices are recorded.
        every: steps between records.
        transient: steps before the vectors are set out, orthonormal.

    Returns:
        `Alignment`: ln GALI_2 to ln GALI_order at the sampled steps.

    Raises:
        ValueError: an order below 2 or above the dimension, or a count below 1.

    Example:
        >>> import jax.numpy as jnp
        >>> cat = lambda z: jnp.array([[2.0, 1.0], [1.0, 1.0]]) @ z % 1.0
        >>> alignment = gali(cat, jnp.array([0.1, 0.2]))
        >>> round(float(alignment.rate()[0]), 6)   # -2 ln((3 + sqrt 5)/2)
        -1.924847
    """
    require_double()
    system = as_system(system)
    map = system.at(parameters)
    dimension = frame_size(map, state, None)
    if order > dimension:
        raise ValueError(
            f"order must be at most {dimension}, the dimension of the "
            f"state; got {order}."
        )
    counts = jnp.asarray(every), jnp.asarray(transient)
    log_gali = _indices(map, state, *counts, order=order, samples=samples)
    return Alignment(log_gali, every, system.unit)


@eqx.filter_jit
def _indices(system, state, every, transient, *, order, samples):
    state = advance(system, state, transient)
    lifted, frame = start_frame(system, state, order)
    batch = frame.shape[2:]
    unit = jnp.broadcast_to(
        jnp.eye(order).reshape((order, order) + (1,) * len(batch)),
        (order, order, *batch),
    )

    def push(_, carry):
        lifted, frame, columns, logs = carry
        after = turn(system, lifted, frame)
        columns = _triangular(after.frame, after.pushed, after.lengths, columns)
        norms = jnp.sqrt(jnp.sum(columns**2, axis=0))
        growth = safe_log(after.lengths) - safe_log(norms)
        growth = jnp.where(after.noise > LOST, jnp.nan, growth)
        logs = logs + jnp.where(norms == 0, -jnp.inf, growth)
        return after.lifted, after.frame, columns / nonzero(norms), logs

    def record(carry, _):
        carry = jax.lax.fori_loop(0, every, push, carry)
        return carry, jnp.cumsum(carry[3], axis=0)[1:]

    first = (lifted, frame, unit, jnp.zeros((order, *batch)))
    return jax.lax.scan(record, first, None, length=samples)[1]


def _triangular(basis, pushed, lengths, columns):
    """R times the columns, with R the upper triangle of basis^T pushed."""
    order = columns.shape[0]
    entry = lambda i, j: add_up(basis[d, i] * pushed[d, j] for d in range(len(basis)))
    rows = [
        lengths[i] * columns[i]
        + sum(entry(i, j) * columns[j] for j in range(i + 1, order))
        for i in range(order)
    ]
    return jnp.stack(rows)
