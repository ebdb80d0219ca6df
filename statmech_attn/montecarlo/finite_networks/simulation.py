r"""Many runs of a network of N spins, with bounded memory (docs/theory/dmft.md, 5).

A simulated token has sampled class means instead of tanh h_c; attention and window are
those of the theory (`dmft.mean_field.receive`), so the physics is written once.  Runs
are done a block at a time (`run_blocks`) and reduced on the way: per step the mean and
the unbiased spread over runs, per run the time averages after the transient.

    batch of the parameters   *batch         (any trailing axes, as in theory)
    runs                      one more trailing axis
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn import presentation
from statmech_attn.batches import require_double, workers
from statmech_attn.dmft import (
    ENTROPY_UNIT,
    Network,
    Observation,
    Parameters,
    Patterns,
    State,
)
from statmech_attn.labels import Variable
from statmech_attn.montecarlo.finite_networks.collapsed import class_counts
from statmech_attn.montecarlo.finite_networks.randomness import (
    address,
    seed_words,
    Words,
)
from statmech_attn.montecarlo.finite_networks.run_blocks import (
    BlockLayout,
    layout,
    Method,
    METHODS,
    Moments,
    observations,
    rows_per_call,
    Simulated,
    Simulator,
)
from statmech_attn.options import Count, require_least, WholeNumber, WholeNumbers
from statmech_attn.statistics import not_below_rounding, standard_error


class TimeAverages(NamedTuple):
    """Averages over the kept steps of every run, (M, *batch, runs).

    Attributes:
        A_mean: means of the attention A over the steps that are kept.
        A_square: means of its square.
        m_o_se_mean: means of the semantic overlap with the outputs.
        m_o_se_square: means of its square.
        entropy_production: means of the rate of entropy production in nats per token
            and spin, over the kept tokens that have the C tokens after them; None where
            it was not asked for.
    """

    A_mean: Float[np.ndarray, "M *batch runs"]
    A_square: Float[np.ndarray, "M *batch runs"]
    m_o_se_mean: Float[np.ndarray, "M *batch runs"]
    m_o_se_square: Float[np.ndarray, "M *batch runs"]
    entropy_production: Float[np.ndarray, "*batch runs"] | None = None


def _over_runs(statistic: Callable[[np.ndarray], Any]) -> Callable[[Any], Any]:
    """A statistic of the entropy production of the runs, where it was asked for."""

    def of(simulation: "Simulation") -> Any:
        runs = simulation.averages.entropy_production
        return None if runs is None else statistic(runs)

    return of


class Simulation(NamedTuple):
    """The result of a simulation; row 0 of time is the first generated token.

    Attributes:
        mean: means over the runs, arrays (steps, M, *batch).
        spread: unbiased standard deviations over the runs, of the same shape; NaN for
            one run.
        sample: the runs that are stored whole, arrays (steps, M, *batch, stored).
        averages: time averages of every run.
        n_spins: number N of spins.
        runs: number of runs.
        transient: tokens that the time averages leave out.
        method: "collapsed" or "spins".
    """

    mean: Observation
    spread: Observation
    sample: Observation
    averages: TimeAverages
    n_spins: int
    runs: int
    transient: int
    method: str

    _shown = (
        Variable("n_spins", "", "spins", symbol="N"),
        Variable("runs", "", "runs"),
        Variable("method", "", "method"),
        Variable(
            "m_o_se",
            "time pattern",
            "mean of the overlap m_o_se over runs",
            symbol="m^o",
            value="mean.m_o_se",
            error="stderr.m_o_se",
        ),
        Variable(
            "A",
            "time pattern",
            "mean of the attention A over runs",
            symbol="A",
            value="mean.A",
            error="stderr.A",
        ),
        Variable(
            "entropy_production",
            "",
            "entropy production",
            ENTROPY_UNIT,
            "σ",
            value=_over_runs(lambda runs: runs.mean(-1)),
            error=_over_runs(standard_error),
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def stderr(self) -> Observation:
        """Standard error of the mean over runs."""
        error = lambda s, m: not_below_rounding(s / np.sqrt(self.runs), m, self.runs)
        return jax.tree.map(error, self.spread, self.mean)


@presentation.knows_given
def simulate(
    net: Network,
    patterns: Patterns,
    params: Parameters,
    state: State,
    *,
    n_spins: Count,
    runs: Count,
    steps: Count,
    key: Key[Array, ""],
    method: Method = "collapsed",
    transient: WholeNumber = 0,
    stored: WholeNumber = 1,
    points: WholeNumbers | None = None,
    entropy_production: bool = False,
) -> Simulation:
    """Simulate networks of N spins, all from one initial condition.

    Args:
        net: the network, as `dmft.network` builds it.
        patterns: those from which the network was built.
        params: control parameters of any batch shape.
        state: initial condition, as for the theory; where spins are copied, its newest
            token is one of N spins with these class means on average.
        n_spins: number of spins, divisible by the class fractions.
        runs: independent runs of every parameter point.
        steps: tokens to generate.
        key: JAX key; run r of point i depends on (key, i, r) only.
        method: "collapsed" (class counts) or "spins" (every spin).
        transient: steps left out of the time averages.
        stored: how many runs keep their whole trajectory.
        points: numbers of the parameter points in the whole study, shaped like the
            batch; 0, 1, ... when omitted.
        entropy_production: whether its rate is averaged as well
            (docs/theory/irreversibility.md, 5), over the tokens transient, ...,
            steps - C - 1: a token is read backwards from the C after it.

    Returns:
        Means and spreads over runs by token, sample trajectories, and time averages of
        every run.

    Raises:
        ValueError: an argument out of range, N that the fractions do not divide, or
            spins that are copied at the level of spins.

    Example:
        >>> import jax
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(0.5, file.gamma, file.epsilon)
        >>> result = simulate(net, file.patterns, params, dmft.from_row(net, params, 0),
        ...     n_spins=3000, runs=20, steps=5, key=jax.random.key(0))
        >>> result.mean.A.shape, result.averages.A_mean.shape
        ((5, 3), (3, 20))
    """
    require_double()
    check_simulation(
        net,
        patterns,
        params,
        method=method,
        runs=runs,
        steps=steps,
        transient=transient,
        stored=stored,
        entropy_production=entropy_production,
    )
    counts = class_counts(patterns, n_spins)
    batch = jnp.broadcast_shapes(params.beta.shape, state.attention.shape[2:])
    points_of = _Points(*_flat(params, state, batch), point_keys(key, points, batch))
    cut = layout(runs, method, n_spins)
    blocks = len(points_of.keys[0]) * cut.blocks
    simulator = Simulator(
        net,
        counts,
        method,
        steps=steps,
        transient=transient,
        size=cut.size,
        rows=rows_per_call(cut.size, method, n_spins, blocks),
        keep=min(stored, cut.size),
        entropy_production=entropy_production,
    )
    collected = _Collected(simulator, len(points_of.keys[0]), cut, stored)
    for point, block, simulated in _all_blocks(simulator, points_of, cut):
        collected.add(point, block, simulated)
    return Simulation(
        observations(collected.moments.mean, batch),
        observations(collected.moments.spread, batch),
        observations(collected.sample, batch),
        collected.time_averages(batch),
        n_spins,
        runs,
        transient,
        method,
    )


class _Collected:
    """Blocks of all points, reduced and put into their places as they come."""

    def __init__(
        self, simulator: Simulator, points: int, cut: BlockLayout, stored: int
    ):
        steps, n_patterns = simulator.steps, simulator.net.n_patterns
        self._size = cut.size
        self.moments = Moments(points, cut, (steps, 5, n_patterns))
        self.sample = np.empty((points, stored, steps, 5, n_patterns))
        self._averages = {
            name: np.empty((points, cut.runs, *shape))
            for name, shape in simulator.averages.items()
        }

    def add(self, point: int, block: int, simulated: Simulated) -> None:
        self.moments.add(point, block, simulated.mean, simulated.square)
        first = block * self._size
        for name, values in self._averages.items():
            runs = values[point, first : first + self._size]
            runs[:] = simulated.averages[name][: len(runs)]
        sample = self.sample[point, first : first + len(simulated.sample)]
        sample[:] = simulated.sample[: len(sample)]

    def time_averages(self, batch: tuple[int, ...]) -> TimeAverages:
        def placed(values: np.ndarray) -> np.ndarray:
            values = np.moveaxis(values, (0, 1), (-2, -1))
            return values.reshape(*values.shape[:-2], *batch, values.shape[-1])

        return TimeAverages(**{name: placed(x) for name, x in self._averages.items()})


def check_simulation(
    net: Network,
    patterns: Patterns,
    params: Parameters,
    *,
    method: str,
    runs: int,
    steps: int,
    transient: int,
    stored: int,
    entropy_production: bool,
) -> None:
    """Refuse arguments of `simulate` out of range, or that do not go together."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    require_least(1, runs=runs, steps=steps)
    if not 0 <= transient < steps:
        raise ValueError(f"transient must lie in 0..steps - 1; got {transient}.")
    if not 0 <= stored <= runs:
        raise ValueError(f"stored must lie in 0..runs; got {stored}.")
    if params.redrawn is not None and method != "collapsed":
        raise ValueError(
            f'method must be "collapsed" where spins are copied; got {method!r}.'
        )
    if entropy_production and steps - transient <= net.context:
        raise ValueError(
            "steps must exceed transient + context with entropy_production, which "
            f"averages tokens that {net.context} follow; got {steps}."
        )
    net.check_patterns(patterns)


class _Points(NamedTuple):
    """Points in a row, each with its start and cipher key."""

    params: Parameters
    state: State
    keys: Words

    def take(self, index: np.ndarray) -> "_Points":
        return jax.tree.map(lambda x: x[..., index] if np.ndim(x) else x, self)


def _flat(params: Parameters, state: State, batch) -> tuple[Parameters, State]:
    """Parameters (points,) and windows (C, M, points)."""

    def flat(x, leading):
        x = np.broadcast_to(x, (*x.shape[:leading], *batch))
        return x.reshape(*x.shape[:leading], -1)

    batched = state.attention.ndim - 2  # axes of the state's own batch
    leading = lambda x: flat(np.asarray(x), x.ndim - batched)
    fields = jax.tree.map(lambda x: leading(x) if x.ndim else x, state)
    return jax.tree.map(lambda x: flat(np.asarray(x), 0), params), fields


def point_keys(key: Key[Array, ""], points, batch: tuple[int, ...]) -> Words:
    """One cipher key per parameter point, in a row.

    `points` are their numbers, shaped like the batch; 0, 1, ... when None.
    """
    if points is None:
        points = np.arange(int(np.prod(batch))).reshape(batch)
    points = np.asarray(points)
    if points.shape != batch:
        raise ValueError(
            f"points must have the batch shape {batch}; got {points.shape}."
        )
    return address(seed_words(key), points.ravel())


def _all_blocks(
    simulator: Simulator, points: _Points, cut: BlockLayout
) -> Iterator[tuple[int, int, Simulated]]:
    """Point, block and what was simulated, for all blocks in order.

    As many calls at a time as there are cores.
    """
    count = len(points.keys[0])
    point = np.repeat(np.arange(count), cut.blocks)
    block = np.tile(np.arange(cut.blocks), count)
    calls = [slice(i, i + simulator.rows) for i in range(0, len(point), simulator.rows)]

    device = getattr(jax.config, "jax_default_device", None)  # of this thread

    def simulate_rows(rows: slice) -> Simulated:
        chosen, number = points.take(point[rows]), cut.number(block[rows])
        with jax.default_device(device):
            return simulator(*chosen, block[rows], number)

    with ThreadPoolExecutor(workers()) as pool:
        for i in range(0, len(calls), workers()):
            group = calls[i : i + workers()]
            results = pool.map(simulate_rows, group)
            for rows, result in zip(group, results, strict=True):
                for j, (p, b) in enumerate(zip(point[rows], block[rows], strict=True)):
                    yield int(p), int(b), jax.tree.map(lambda x, j=j: x[j], result)
