r"""Finite-time Lyapunov exponents (docs/theory/indicators.md, section 3).

The aligned frame of the spectrum is pushed on, and the logarithms of what Gram-Schmidt
leaves are averaged over consecutive windows of n steps,

    $\lambda_j^{(n)} = \frac1n \sum_{i=1}^n \ln |R_{jj}^{(i)}|$     (count, k, *batch)

in nats per step.  Their mean is the exponent.  Where correlations decay,
$n \operatorname{Var} \lambda^{(n)}$ tends to the diffusion constant D_j of the growth
(central limit theorem), and the density obeys a large-deviation principle,
$p(\lambda^{(n)}) \sim e^{-n S(\lambda)}$ with the Cramer function S.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.exponents.frames import align, LOST, start_frame, turn
from statmech_attn.dynamics.exponents.lyapunov import frame_size
from statmech_attn.dynamics.maps.orthonormal import safe_log
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
from statmech_attn.statistics import rounding


ALIGN = 64  # windows' worth of steps, at least, that align the frame
LEAST = 16  # windows that a variance is taken over


class FiniteTimeExponents(BatchedResult):
    """Exponents over consecutive windows, in nats per step.

    The columns keep the order of the frame: sorting them window by window would bias
    every one.  -inf marks a direction that the map sent to zero, NaN one that rounding
    hides, with those after it, or a state that diverged.
    Properties and methods of a batch that plain `jax.vmap` made have its axis first,
    those of one with `out_axes=-1` last.

    Attributes:
        values: exponents of every window, nats per step.
        window: length n of a window, steps.
        unit: what a step is.
    """

    values: Float[Array, "count k *batch"]
    window: int = eqx.field(static=True)
    unit: str = eqx.field(static=True, default=STEP)

    own_axes = ("values", 2)
    _shown = (
        Variable(
            "finite_time_exponent",
            "window exponent",
            "exponent over a window",
            "nat / {unit}",
            "λ_i^{(n)}",
            value="values",
            line=False,
        ),
        Variable(
            "mean",
            "exponent",
            "average over the windows",
            "nat / {unit}",
            "⟨λ_i⟩",
            error="stderr",
        ),
        Variable(
            "variance",
            "exponent",
            "variance over the windows",
            "nat2 / {unit}2",
            "Var λ_i",
        ),
        Variable(
            "window_steps", "", "length of a window", "{unit}", "n", value="window"
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    @of_each
    def mean(self) -> Float[Array, "k *batch"]:
        """Average over the windows."""
        return jnp.mean(self.values, axis=0)

    @property
    @of_each
    def variance(self) -> Float[Array, "k *batch"]:
        """Unbiased variance over the windows, of n-step averages."""
        return jnp.var(self.values, axis=0, ddof=1)

    @property
    @of_each
    def stderr(self) -> Float[Array, "k *batch"]:
        """Standard error of the average, of windows that do not remember another."""
        return error_of_mean(self.values)

    @presentation.knows_given
    @of_each
    def merged(self, turns: int) -> "FiniteTimeExponents":
        """The same orbit cut into windows `turns` times as long.

        Args:
            turns: number of windows that become one.

        Raises:
            ValueError: `turns` is below 1, or fewer than two windows would be left.
        """
        most = self.values.shape[0] // 2
        if not 1 <= turns <= most:
            raise ValueError(f"turns must lie in 1..{most}; got {turns}.")
        count = self.values.shape[0] // turns
        windows = self.values[: count * turns]
        grouped = windows.reshape((count, turns) + windows.shape[1:])
        mean, window = jnp.mean(grouped, axis=1), self.window * turns
        return FiniteTimeExponents(mean, window, self.unit)

    @of_each
    def diffusion(self) -> tuple[Array, Array, Array]:
        """n Var over windows of n, 2n, 4n, ... steps, with its standard error.

        Returns:
            window lengths (levels,), n Var and its error (levels, k, *batch), in
            nats^2 per step.  The error assumes nearly normal windows that do not
            remember one another; a plateau is the diffusion constant, a fall like 1/n
            a growth that is a total difference, hence without diffusion.

        Raises:
            ValueError: fewer than 16 windows.

        Example:
            >>> import jax.numpy as jnp
            >>> values = jnp.asarray(np.random.default_rng(0).normal(size=(32, 1)))
            >>> n, D, error = FiniteTimeExponents(values, 1).diffusion()
            >>> bool(abs(D[0, 0] - 1) < 4 * error[0, 0])
            True
        """
        count = self.values.shape[0]
        if count < LEAST:
            raise ValueError(f"diffusion needs at least {LEAST} windows; got {count}.")
        turns = 2 ** np.arange(int(np.log2(count / LEAST)) + 1)
        levels = [self.merged(int(t)) for t in turns]
        spread = jnp.stack([level.variance * level.window for level in levels])
        degrees = np.array([level.values.shape[0] - 1 for level in levels])
        error = spread * np.sqrt(2 / degrees).reshape((-1,) + (1,) * (spread.ndim - 1))
        return jnp.asarray(turns * self.window), spread, error


def error_of_mean(values: Float[Array, "count *rest"]) -> Float[Array, "*rest"]:
    """Standard error of the mean of independent numbers, not below its rounding."""
    count = values.shape[0]
    error = jnp.sqrt(jnp.var(values, axis=0, ddof=1) / count)
    floor = rounding(jnp.mean(values, axis=0), count)
    return jnp.where(error > 0, jnp.fmax(error, floor), error)


@forward_only
def finite_time_exponents(
    system: Callable[..., PyTree] | System,
    state: PyTree,
    parameters: PyTree = None,
    *,
    window: Count,
    count: Several,
    transient: WholeNumber = 0,
    exponents: WholeNumber | None = None,
) -> FiniteTimeExponents:
    """Exponents over `count` consecutive windows of `window` steps; under `vmap` too.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        state: where the orbit starts.
        parameters: of the system, a tree of arrays; none when omitted.
        window: steps averaged into one value, n.
        count: number of windows.
        transient: steps before the first window.  The frame is aligned after it, for
            a tenth of the run but at least 64 steps.
        exponents: how many leading exponents; all when omitted.

    Returns:
        `FiniteTimeExponents`, in nats per step.

    Raises:
        ValueError: a count out of range, or a state without coordinates.

    Example:
        >>> import jax.numpy as jnp
        >>> f = finite_time_exponents(lambda x: 4 * x * (1 - x), jnp.array(0.3),
        ...     window=20, count=500)
        >>> f.values.shape, abs(float(f.mean[0]) - 0.6931) < 0.01
        ((500, 1), True)
    """
    require_double()
    system = as_system(system)
    map = system.at(parameters)
    values = _windows(
        map,
        state,
        window=window,
        count=count,
        transient=jnp.asarray(transient),
        alignment=jnp.asarray(max(ALIGN, window * count // 10)),
        k=frame_size(map, state, exponents),
    )
    return FiniteTimeExponents(values, window, system.unit)


@eqx.filter_jit
def _windows(system, state, *, window, count, transient, alignment, k):
    state = advance(system, state, transient)
    lifted, frame = start_frame(system, state, k)

    def one_window(carry, _):
        nothing = jnp.zeros((k, *frame.shape[2:]))

        def add(_, carry):
            lifted, frame, logs, worst = carry
            after = turn(system, lifted, frame)
            logs, worst = (
                logs + safe_log(after.lengths),
                jnp.maximum(worst, after.noise),
            )
            return after.lifted, after.frame, logs, worst

        first = (*carry, nothing, nothing)
        *carry, logs, worst = jax.lax.fori_loop(0, window, add, first)
        hidden = jnp.cumsum(worst > LOST, axis=0) > 0
        return tuple(carry), jnp.where(hidden, jnp.nan, logs / window)

    carry = align(system, lifted, frame, alignment)
    return jax.lax.scan(one_window, carry, None, length=count)[1]
