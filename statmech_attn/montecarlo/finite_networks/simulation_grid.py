"""Simulations of N spins for several N and beta, in memory or in chunks.

A point is a block of runs of one N and one beta; those of a beta are neighbours.  The
blocks whose trajectories are stored make the first round, the others the second.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from statmech_attn import dmft
from statmech_attn.batches import limited, seconds_of
from statmech_attn.dynamics import diagrams, take
from statmech_attn.montecarlo.finite_networks.collapsed import class_counts
from statmech_attn.montecarlo.finite_networks.dataset import (
    BETA,
    PER_RUN,
    stationary,
    STEPWISE,
    STORED,
    VARIABLES,
)
from statmech_attn.montecarlo.finite_networks.run_blocks import (
    layout,
    Method,
    Moments,
    rows_per_call,
    Simulator,
)
from statmech_attn.montecarlo.finite_networks.simulation import (
    check_simulation,
    point_keys,
)
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    Computation,
    FAILURE,
    OneRound,
    Pilot,
    Results,
    Tick,
)
from statmech_attn.statistics import not_below_rounding
from statmech_attn.storage import Column


PIECE = 8192  # steps of the mean-field transient between two ticks
STARTS = 8  # points whose start is computed at once


def simulations(
    key: Key[Array, ""],
    net: dmft.Network,
    patterns: dmft.Patterns,
    grid: Mapping[str, Any] | diagrams.Axes,
    start: Callable[[dmft.Parameters], dmft.State],
    **how: Any,
) -> "Simulations":
    """Simulations of N spins, for each of several N and beta.

    Args:
        key: random key of JAX.
        net: the network, as `dmft.network` builds it.
        patterns: those from which the network was built.
        grid: `beta` with several values, and numbers `gamma`, `epsilon` and, where
            not all spins are redrawn, `redrawn`; or a `dynamics.point_list` in them.
        start: parameters of many points -> their states, with the points on the last
            axis.
        how: keywords of `Simulations`: `n_spins`, `steps`, `runs`, `stored`, ....

    Returns:
        the simulations: `compute()` gives their data set, `run(path)` also writes it.

    Raises:
        ValueError: an argument out of range, or N that the fractions do not divide.

    Example:
        >>> import jax
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> grid = {"beta": [0.7, 1.4], "gamma": file.gamma, "epsilon": file.epsilon}
        >>> spins = simulations(
        ...     jax.random.key(0), net, file.patterns, grid,
        ...     lambda params: dmft.from_row(net, params, 0),
        ...     n_spins=[300, 3000], steps=5, runs=20)
        >>> spins.compute().A_mean.sizes
        Frozen({'n_spins': 2, 'beta': 2, 'time': 5, 'pattern': 3})
    """
    axes, starts = dmft.along_beta(grid, start, lists=True)
    return Simulations(key, net, patterns, axes, starts, **how)


class Simulations(Computation, OneRound):
    """Simulations of N spins, for each of several N and beta; see `simulations`.

    Args:
        key: random key of JAX.
        net: the network.
        patterns: those from which the network was built.
        axes: beta, or a list of points, and the other parameters.
        starts: parameters and numbers of some points -> their states, with the points
            on the last axis.
        n_spins: numbers of spins, divisible by the class fractions.
        steps: tokens of a run.
        runs: independent runs of every N and beta.
        stored: runs whose trajectories are kept.
        transient: tokens that time averages leave out.
        mean_field_transient: tokens of the mean field before the start.
        method: "collapsed" (class counts) or "spins" (every spin).
        entropy_production: whether its rate is averaged as well, as by `simulate`.
        about: attributes of the file.
        batch: blocks simulated at once, of which a chunk holds a multiple; chosen for
            this device when omitted.

    Raises:
        ValueError: an argument out of range, or N that the fractions do not divide.
    """

    title = "monte-carlo"

    def __init__(
        self,
        key: Key[Array, ""],
        net: dmft.Network,
        patterns: dmft.Patterns,
        axes: diagrams.Axes,
        starts: Callable[[dmft.Parameters, np.ndarray], dmft.State],
        *,
        n_spins: Sequence[int],
        steps: int,
        runs: int = 100,
        stored: int = 1,
        transient: int = 0,
        mean_field_transient: int = 0,
        method: Method = "collapsed",
        entropy_production: bool = False,
        about: Mapping[str, Any] = {},
        batch: int | None = None,
    ):
        check_simulation(
            net,
            patterns,
            axes.points(),
            method=method,
            runs=runs,
            steps=steps,
            transient=transient,
            stored=stored,
            entropy_production=entropy_production,
        )
        if not n_spins:
            raise ValueError("n_spins must hold at least one number of spins.")
        self.key, self.net, self.patterns, self.starts = key, net, patterns, starts
        self.steps, self.runs, self.stored, self.method = steps, runs, stored, method
        self.transient, self.mean_field_transient = transient, mean_field_transient
        self.entropy_production, self.about = entropy_production, about
        self.parameters = {**axes.fixed, **axes.columns}
        self.beta = axes.values[0]  # or the numbers in a list of points
        self.sizes = sorted(set(n_spins))
        self._axes = axes
        self._counts = [class_counts(patterns, n) for n in self.sizes]
        self._layout = layout(runs, method, self.sizes[-1])
        blocks = len(self.beta) * max(len(self._blocks(round)) for round in (0, 1))
        self.batch = batch or rows_per_call(
            self._layout.size, method, self.sizes[-1], blocks
        )
        self._keys = [
            np.asarray(point_keys(jax.random.fold_in(key, i), None, self.beta.shape))
            for i in range(len(self.sizes))
        ]
        self._starts: dict[int, tuple[dmft.Parameters, dmft.State]] = {}
        self._start(0)

    @property
    def total(self) -> int:
        return self._places * self._layout.blocks

    @property
    def _places(self) -> int:
        """Number of pairs of N and beta."""
        return len(self.sizes) * len(self.beta)

    def _blocks(self, round: int) -> range:
        """Blocks of runs of each N and beta in a round."""
        every, stored = self._layout.blocks, self.stored
        first = -(-stored // self._layout.size) if stored else every
        return range(first, every) if round else range(first)

    def points(self, round: int, earlier: Results) -> int | None:
        if round > 1:
            return None
        return self._places * len(self._blocks(round)) or None

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        blocks = self._blocks(chunk.round)
        shape = (len(self.sizes), len(self.beta), len(blocks))
        place = np.unravel_index(np.arange(chunk.first, chunk.stop), shape)
        parts = []
        for i in np.unique(place[0]):
            rows = np.flatnonzero(place[0] == i)
            simulator = self._simulator(int(i), chunk.round)
            for first in range(0, len(rows), self.batch):
                _, beta, block = (x[rows[first : first + self.batch]] for x in place)
                parts.append(
                    self._rows(simulator, int(i), beta, block + blocks.start, tick)
                )
        return {name: np.concatenate([f[name] for f in parts]) for name in parts[0]}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return np.any(~np.isfinite(arrays["mean"]), axis=(1, 2, 3))

    def pilot(self) -> Pilot:
        """Forecast from a stretch of the largest N; spins take a time like N."""
        simulator = self._simulator(len(self.sizes) - 1, 0)
        beta = np.zeros(self.batch, int)
        inputs = self._inputs(len(self.sizes) - 1, beta, lambda _: None)
        rows, carry = simulator.begin(*inputs, beta, self._layout.number(beta))
        stretch = lambda: simulator.advance(rows, carry, 0)
        with limited(1):
            compiling = seconds_of(stretch, repeats=1)
        seconds = seconds_of(stretch) / self.batch
        second_round = self._layout.blocks > 1 and simulator.keep > 0
        seconds *= -(-self.steps // simulator.stretch)
        if self.method == "spins":
            seconds *= float(np.mean(self.sizes)) / self.sizes[-1]
        numbers = 5 * self.steps * (2 + simulator.keep) + 4 * self._layout.size
        stored = 8 * self.net.n_patterns * numbers
        memory = simulator.bytes + 2 * self.batch * stored
        without = "the mean-field transient" if self.mean_field_transient else ""
        fixed = compiling if second_round else 0.0
        return Pilot(seconds, memory, stored, without, fixed=fixed)

    def assemble(self, results: Results) -> Assembled:
        moments, stored = self._merged(results), self._stored(results)
        shape = len(self.sizes), len(self.beta)
        error = moments.spread / np.sqrt(self.runs)
        error = not_below_rounding(error, moments.mean, self.runs)
        parts = {"_mean": moments.mean, "_stderr": error, "_spread": moments.spread}
        variables = {}
        for i, name in enumerate(dmft.OBSERVABLES):
            placed = lambda x, i=i: x.reshape(*shape, *x.shape[1:])[..., i, :]
            for ending, values in parts.items():
                variables[name + ending] = self._dims(STEPWISE), placed(values)
            variables[name] = self._dims(STORED), placed(stored)
        coordinates = {
            "n_spins": np.array(self.sizes, np.int64),
            self._axes.names[0]: self.beta,
            "time": np.arange(self.steps),
            "pattern": np.arange(1, self.net.n_patterns + 1),
            "run": np.arange(self.stored),
            "all_runs": np.arange(self.runs),
        }
        dataset = VARIABLES.labelled(variables, coordinates)
        dataset.attrs = {
            "kind": "monte-carlo",
            "method": self.method,
            "runs": self.runs,
            "transient": self.transient,
            **dmft.network_attributes(self.net),
            "start": "given",
            **self.about,
        }
        failure = self._failure(results)
        if failure.any():
            rows = self._dims(STEPWISE[:2]), failure, FAILURE.attributes()
            dataset = dataset.assign(failure=rows)
            dataset.attrs["failure_reasons"] = results.reasons()
        others = {
            name: (*value, dmft.PARAMETERS.attributes(name))
            for name, value in self._axes.others().items()
        }
        columns = {
            stationary(name): self._column(results, name)
            for name in self._simulator(0, 0).averages
        }
        return Assembled(dataset.assign_coords(others), columns)

    def _simulator(self, i: int, round: int) -> Simulator:
        """Simulator of the i-th N; all share the compiled program of a round."""
        return Simulator(
            self.net,
            self._counts[i],
            self.method,
            steps=self.steps,
            transient=self.transient,
            size=self._layout.size,
            rows=self.batch,
            keep=0 if round else min(self.stored, self._layout.size),
            entropy_production=self.entropy_production,
        )

    def _rows(self, simulator: Simulator, i: int, beta, block, tick: Tick) -> Arrays:
        """One call: rows of blocks of the i-th N."""
        count, steps = len(beta), self.steps
        inputs = self._inputs(i, beta, tick)
        tick_steps = lambda n: tick(count * n / steps)
        moments = simulator(*inputs, block, self._layout.number(block), tick_steps)
        rows = {"mean": moments.mean, "square": moments.square} | moments.averages
        if simulator.keep:
            rows["sample"] = moments.sample
        return {name: np.ascontiguousarray(x) for name, x in rows.items()}

    def _inputs(self, i: int, beta: np.ndarray, tick: Tick):
        """Parameters, states and cipher keys of points by their beta."""
        groups = np.unique(beta // STARTS)
        parts = [self._moved(int(group), tick) for group in groups]
        join = lambda *xs: np.concatenate(xs, axis=-1) if xs[0].ndim else xs[0]
        place = np.searchsorted(groups, beta // STARTS) * STARTS + beta % STARTS
        params, state = take(jax.tree.map(join, *parts), place)
        return params, state, tuple(self._keys[i][:, beta])

    def _start(self, group: int) -> tuple[dmft.Parameters, dmft.State]:
        """Parameters and starts of `STARTS` neighbouring beta, filled up at the end."""
        index = np.arange(group * STARTS, (group + 1) * STARTS)
        params = self._axes.at(index.clip(max=len(self.beta) - 1)[:, None])
        return params, self.starts(params, np.zeros(STARTS, int))

    def _moved(self, group: int, tick: Tick) -> tuple[dmft.Parameters, dmft.State]:
        """Parameters and states after the mean-field transient."""
        if group not in self._starts:
            params, state = self._start(group)
            for first in range(0, self.mean_field_transient, PIECE):
                piece = min(PIECE, self.mean_field_transient - first)
                state = dmft.advance(self.net, params, state, piece)
                jax.block_until_ready(state)
                tick(0.0)
            self._starts[group] = params, state
        return self._starts[group]

    def _merged(self, results: Results) -> Moments:
        """Moments over all runs, (N and beta, steps, 5, M)."""
        moments = Moments(self._places, self._layout, results.like("mean").shape[1:])
        every = chain.from_iterable
        rows = zip(*(every(results.blocks(n)) for n in ("mean", "square")), strict=True)
        for round in (0, 1):
            for point in range(self._places):
                for block in self._blocks(round):
                    moments.add(point, block, *next(rows))
        return moments

    def _stored(self, results: Results) -> np.ndarray:
        """Trajectories (N and beta, stored, steps, 5, M)."""
        stored = self.stored
        if not stored:
            return np.empty((self._places, 0, *results.like("mean").shape[1:]))
        sample = results.column("sample", 0)
        return sample.reshape(self._places, -1, *sample.shape[2:])[:, :stored]

    def _failure(self, results: Results) -> np.ndarray:
        """The worst of the blocks of every N and beta."""
        first = self._places * len(self._blocks(0))
        parts = np.split(results.failure(), [first])
        rows = [x.reshape(self._places, -1) for x in parts if x.size]
        return np.concatenate(rows, axis=1).max(1).reshape(-1, len(self.beta))

    def _dims(self, names: Sequence[str]) -> tuple[str, ...]:
        """Dimensions, with those of a list of points in the place of beta."""
        return tuple(self._axes.names[0] if n == BETA else n for n in names)

    def _column(self, results: Results, name: str) -> Column:
        """Time averages of all runs, one after the other."""
        shape = (len(self.sizes), len(self.beta), self._layout.runs)
        like = results.like(name)
        return Column(
            self._dims(PER_RUN[: len(shape) + like.ndim - 2]),
            (*shape, *like.shape[2:]),
            like.dtype,
            VARIABLES.attributes(stationary(name)),
            partial(self._per_run, results, name),
        )

    def _per_run(self, results: Results, name: str) -> Iterator[np.ndarray]:
        """The runs of every N and beta in order: those of both rounds."""
        rows = chain.from_iterable(results.blocks(name))
        first, second = (self._blocks(round) for round in (0, 1))
        places = range(self._places if second else 0)
        early = [[next(rows) for _ in first] for _ in places]
        for point in range(self._places):
            some = iter(early[point]) if second else rows
            for block in range(self._layout.blocks):
                row = next(some if block in first else rows)
                yield row[: int(self._layout.number(np.asarray(block)))]
