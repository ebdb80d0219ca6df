r"""Lifetimes of transients (docs/theory/attractors.md, section 4).

A lifetime is the number of steps until an orbit has arrived; where the run ended
first it is censored.  An orbit that leaves a chaotic set at a constant rate $\kappa$
(nats per step) has the chance $h = 1 - e^{-\kappa}$ to leave at each step.  With $e$
lifetimes that ended after $t_0$, and T the steps that were spent on the way after $t_0$
by all orbits, those of censored runs included, the likelihood $h^e (1-h)^{T-e}$ gives

    $\hat h = e/T, \qquad \hat\kappa = -\ln(1 - \hat h), \qquad
     \sigma_\kappa = \hat h / \sqrt{e\,(1 - \hat h)}$

which are $e/T$ and $\hat\kappa/\sqrt e$ for lifetimes that are long.  Times known in
units of u steps are divided by u, and the rate after it.
"""

import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, PyTree, Real
from scipy.stats import CensoredData, ecdf

from statmech_attn import presentation
from statmech_attn.batches import batches, Compiled, lanes_for, require_double, run_all
from statmech_attn.dynamics.attractors.orbit_follower import put, take
from statmech_attn.dynamics.maps.starts import (
    require_states,
    shared_by,
    side_by_side,
    warn_of_readings,
)
from statmech_attn.dynamics.maps.systems import as_system, count_of, lane_axes, System
from statmech_attn.labels import STEP, Variable
from statmech_attn.options import Count


Times = Real[np.ndarray, " n"]
TAILS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)  # shares of the ended that may be early


class EscapeRate(NamedTuple):
    """Rate of an exponential tail; NaN where nothing ended after `after`.

    Attributes:
        rate: escape rate, nats per step.
        stderr: its standard error, with the choice of the tail where it was chosen.
        events: number of lifetimes that ended after `after`.
        time: steps at risk.
        after: time t_0 from which on the tail is exponential, steps.
        constancy: early minus late rate, in standard errors.
        unit: what a step is.
    """

    rate: float
    stderr: float
    events: int
    time: float
    after: float
    constancy: float
    unit: str = STEP

    _shown = (
        Variable("rate", "", "escape rate", "nat / {unit}", "κ", error="stderr"),
        Variable("mean", "", "expected lifetime", "{unit}", "⟨t⟩"),
        Variable("events", "", "lifetimes that ended after that time", symbol="n"),
        Variable(
            "after", "", "time from which on the tail is exponential", "{unit}", "t_0"
        ),
        Variable(
            "constancy", "", "early minus late rate, in standard errors", symbol="z"
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def mean(self) -> float:
        """Expected lifetime, steps."""
        return 1 / self.rate


class Survival(NamedTuple):
    """Kaplan-Meier estimate of the share of orbits that are still on their way.

    Attributes:
        time: steps.
        share: share of orbits with a longer lifetime.
        low: lower end of one standard error, on the scale of log(-log).
        high: upper end.
        unit: what a step is.
    """

    time: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unit: str = STEP

    _shown = (
        Variable("time", "event", "time", "{unit}", "t"),
        Variable("share", "event", "share that is still on its way", symbol="S"),
        Variable(
            "low", "event", "share less one standard error", symbol="S_-", line=False
        ),
        Variable(
            "high", "event", "share and one standard error", symbol="S_+", line=False
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def escape_times(
    system: Callable[..., PyTree] | System,
    starts: PyTree,
    inside: Callable[[PyTree], Any],
    parameters: PyTree = None,
    *,
    horizon: Count,
    chunk: Count = 4096,
) -> tuple[np.ndarray, np.ndarray]:
    """Steps until each start is outside a region for the first time.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        starts: states, on the first axis of every array.
        inside: state -> bool, the region; a NaN is outside every comparison.
        parameters: of the system, shared by all starts.
        horizon: steps after which an orbit is followed no further.
        chunk: steps between two looks at who is left.

    Returns:
        lifetime (n,), steps, 0 for a start that is outside; and ended (n,), False for
        an orbit that was inside for the whole of `horizon`.

    Raises:
        ValueError: `horizon` or `chunk` is below one step, or starts that are not as
            many in every array.

    Example:
        >>> import numpy as np
        >>> import jax.numpy as jnp
        >>> escape_times(lambda x: 2 * x, np.array([0.3, 3.0]), lambda x: x < 1,
        ...              horizon=10)
        (array([2, 0]), array([ True,  True]))
    """
    require_double()
    system, parameters = as_system(system), shared_by(starts, parameters)
    require_states(system, starts, parameters)
    warn_of_readings(system, starts, parameters)
    lanes, parameters = side_by_side(system, starts, parameters)
    exits = _Exit(system, inside, lanes, parameters, chunk)
    state = jax.tree.map(lambda x: np.array(x, order="C"), lanes)
    n = count_of(lanes)
    lifetime, ended, pending = np.zeros(n, int), np.zeros(n, bool), np.arange(n)
    for begin in range(0, horizon + 1, chunk):
        steps = min(chunk, horizon + 1 - begin)
        start, survivors = state, []
        for lanes, after, alive, time in exits.run(start, pending, steps):
            state = put(state, after, lanes)
            lifetime[lanes] += time
            ended[lanes] = ~alive
            survivors.append(lanes[alive])
        pending = np.sort(np.concatenate(survivors))
        if not pending.size:
            break
    return np.minimum(lifetime, horizon), ended


def survival(
    lifetime: Times, ended: Bool[np.ndarray, " n"], *, unit: str = STEP
) -> Survival:
    """Share of orbits with a lifetime beyond t, censored runs taken into account.

    Args:
        lifetime: steps; where not `ended`, a lower bound.
        ended: whether each lifetime ended.
        unit: what a step is, such as `Orbits.unit`.

    Returns:
        `Survival`: the share at every time at which a lifetime ended.

    Raises:
        ValueError: a lifetime that is negative or not finite, or `ended` that is not as
            long, or not of the type bool.

    Example:
        >>> import numpy as np
        >>> survival(np.array([1, 2, 2, 5]), np.array([True, True, True, False])).share
        array([0.75, 0.25, 0.25])
    """
    lifetime, ended = _checked(lifetime, ended)
    estimate = ecdf(CensoredData(lifetime[ended], right=lifetime[~ended])).sf
    one_sigma = 0.6826894921370859
    with warnings.catch_warnings():  # it is undefined where the share is 0
        warnings.simplefilter("ignore", RuntimeWarning)
        between = estimate.confidence_interval(one_sigma, method="log-log")
    return Survival(
        estimate.quantiles,
        estimate.probabilities,
        between.low.probabilities,
        between.high.probabilities,
        unit,
    )


def escape_rate(
    lifetime: Times,
    ended: Bool[np.ndarray, " n"],
    *,
    after: float | None = None,
    resolution: Count = 1,
    unit: str = STEP,
) -> EscapeRate:
    """Maximum likelihood rate of the exponential tail of lifetimes.

    Args:
        lifetime: steps; where not `ended`, at least so many.
        ended: whether each lifetime ended; others are lower bounds.
        after: where the tail begins, steps; when omitted the earliest of a few
            quantiles of the ended ones from which the rate is constant within two
            standard errors.  The stated error contains most of this choice: of 1000
            lifetimes of a logistic map 11 % were beyond two errors, 5 % with a tail
            given.  Where orbits leave early at a rate near that of the tail, it is
            better to give it (docs/theory/attractors.md, section 4): where half leave
            at twice the rate, the error is 2.5 times too small.
        resolution: of the lifetimes, steps.
        unit: what a step is, such as `Orbits.unit`.

    Returns:
        `EscapeRate`: the rate in nats per step, its standard error, the number of
        lifetimes that it rests on and where the tail begins.

    Raises:
        ValueError: `resolution` is below one step, or what `survival` refuses.

    Example:
        >>> import numpy as np
        >>> escape = escape_rate(np.array([3, 5, 8]), np.array([True, True, False]))
        >>> escape.events, round(escape.rate, 4)
        (2, 0.1335)
    """
    lifetime, ended = _checked(lifetime, ended)
    if after is not None:
        return _rate(lifetime, ended, after, resolution)._replace(unit=unit)
    finished = np.sort(lifetime[ended])
    begins = [np.quantile(finished, q, method="lower") for q in TAILS if finished.size]
    starts = [0.0, *begins[1:]]
    tails = [_rate(lifetime, ended, after, resolution) for after in starts]
    constant = (tail for tail in tails if not abs(tail.constancy) > 2)
    estimate, last = next(constant, tails[-1]), tails[-1]
    # Halves that disagree widen an error, and so does a later tail with another rate,
    # as far as its own error does not explain it.
    halves = estimate.stderr * np.fmax(abs(estimate.constancy), 1)
    explained = last.stderr**2 - estimate.stderr**2
    later = np.fmax((estimate.rate - last.rate) ** 2 - explained, 0)
    return estimate._replace(stderr=float(np.hypot(halves, np.sqrt(later))), unit=unit)


def _rate(lifetime, ended, after, resolution) -> EscapeRate:
    """The rate of the tail beyond `after`, and how its halves differ."""
    tail = lifetime > after
    waits, over = (lifetime[tail] - after) / resolution, ended[tail]
    rate, error = _likeliest(waits, over)
    middle = np.median(waits[over]) if over.any() else 0.0
    late = waits > middle
    early = _likeliest(np.minimum(waits, middle), over & ~late)
    later = _likeliest(waits[late] - middle, over[late])
    gap = (early[0] - later[0]) / np.hypot(early[1], later[1])
    return EscapeRate(
        rate / resolution,
        error / resolution,
        int(over.sum()),
        float(waits.sum() * resolution),
        float(after),
        float(gap),
    )


def _likeliest(times, over) -> tuple[float, float]:
    """Rate and error per unit of time; NaN without an event, or with nothing else."""
    events, time = int(over.sum()), float(times.sum())
    if not 0 < events < time:
        return np.nan, np.nan
    chance = events / time
    return float(-np.log1p(-chance)), float(chance / np.sqrt(events * (1 - chance)))


class _Exit:
    """The compiled chunk of steps of `escape_times`."""

    def __init__(self, system: System, inside, starts: PyTree, parameters, chunk: int):
        self.lanes = lanes_for(count_of(starts))
        some = np.zeros(self.lanes, int)
        example = jax.tree.map(jnp.asarray, take(starts, some))
        parameters = jax.tree.map(jnp.asarray, take(parameters, some))
        self.within = jax.vmap(inside, in_axes=(lane_axes(example),), out_axes=-1)
        form = jax.eval_shape(self.within, example)
        if form.shape != (self.lanes,) or form.dtype != bool:
            raise ValueError(
                "inside must return one bool for a state; "
                f"got {form.dtype}{list(form.shape[:-1])}."
            )
        self.system, self.parameters, self.chunk = system, parameters, chunk
        self._run = Compiled(self._steps, example, jnp.asarray(chunk))

    def _steps(self, state, steps):
        def step(_, carry):
            state, alive, time = carry
            alive &= self.within(state)
            return self.system.steps(state, self.parameters), alive, time + alive

        nobody = jnp.zeros(self.lanes, int)
        everyone = jnp.ones(self.lanes, bool)
        return jax.lax.fori_loop(0, steps, step, (state, everyone, nobody))

    def run(self, state: PyTree, indices: np.ndarray, steps: int):
        """Advance some starts; yields who, states, bool still inside, steps inside."""
        items = list(batches(indices, self.lanes))

        def job(item, stop: threading.Event):
            chosen, real = item
            lanes = jax.tree.map(jnp.asarray, take(state, chosen))
            outcome = jax.tree.map(np.asarray, self._run(lanes, jnp.asarray(steps)))
            return chosen[:real], *take(outcome, np.arange(real))

        for _, result in run_all(job, items):
            yield result


def _checked(lifetime, ended) -> tuple[np.ndarray, np.ndarray]:
    lifetime, ended = np.asarray(lifetime), np.asarray(ended)
    if lifetime.shape != ended.shape or lifetime.ndim != 1:
        raise ValueError(
            "lifetime and ended must be of one length; "
            f"got {lifetime.shape} and {ended.shape}."
        )
    if not lifetime.size or not ((lifetime >= 0) & (lifetime < np.inf)).all():
        raise ValueError(
            "lifetime must hold one number or more, none of them negative or infinite; "
            f"got {lifetime}."
        )
    if ended.dtype != bool:
        raise ValueError(
            f"ended must be bool; got {ended.dtype}: take ended.astype(bool)."
        )
    return lifetime, ended
