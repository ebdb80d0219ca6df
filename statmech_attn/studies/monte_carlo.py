"""Monte Carlo studies: simulations of N spins for several N and beta.

A point is a block of runs of one N and one beta; those of a beta are neighbours.  The
blocks whose trajectories are stored make the first round, the others the second.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import jax
import numpy as np

from statmech_attn import dmft
from statmech_attn.batches import limited, seconds_of
from statmech_attn.dmft import network_digest
from statmech_attn.dynamics import take
from statmech_attn.montecarlo import (
    AVERAGES,
    class_counts,
    layout,
    Moments,
    monte_carlo_dataset,
    observations,
    PER_RUN,
    point_keys,
    rows_of_a_call,
    Simulation,
    Simulator,
    stationary,
    TimeAverages,
    VARIABLES,
)
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    OneRound,
    Pilot,
    Results,
    Tick,
)
from statmech_attn.storage import Column
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import MonteCarloStudy


PIECE = 8192  # steps of the mean-field transient between two ticks
STARTS = 8  # points whose start is computed at once


class MonteCarloWork(OneRound):
    """Every N at every beta from the study's start; a `scan.work.Work`.

    Args:
        batch: blocks simulated at once, of which a chunk holds a multiple; chosen for
            this device when omitted.

    Raises:
        ValueError: an impossible setting.
    """

    title = "monte-carlo"

    def __init__(self, study: MonteCarloStudy, batch: int | None = None):
        self.made = build.model(study.network)
        axes = build.axes(study.parameters, self.made.file)
        self.axes, self.options = build.only_beta(axes, "monte-carlo"), study.run
        self.beta, options = self.axes.values[0], study.run
        self.axes.points()
        self.sizes = sorted(set(options.n_spins))
        self.counts = [class_counts(self.made.patterns, n) for n in self.sizes]
        self.layout = layout(options.runs, options.method, self.sizes[-1])
        self.batch = batch or rows_of_a_call(
            self.layout.size, options.method, self.sizes[-1]
        )
        key = jax.random.key(options.seed)
        self._keys = [
            np.asarray(point_keys(jax.random.fold_in(key, i), None, self.beta.shape))
            for i in range(len(self.sizes))
        ]
        self._starts: dict[int, tuple[dmft.Parameters, dmft.State]] = {}
        self._start(0)

    @property
    def total(self) -> int:
        return self._places * self.layout.blocks

    @property
    def _places(self) -> int:
        """Pairs of N and beta."""
        return len(self.sizes) * len(self.beta)

    def _blocks(self, round: int) -> range:
        """Blocks of runs of each N and beta in a round."""
        every, stored = self.layout.blocks, self.options.stored
        first = -(-stored // self.layout.size) if stored else every
        return range(first, every) if round else range(first)

    def points(self, round: int, earlier: Results) -> int | None:
        if round > 1:
            return None
        return self._places * len(self._blocks(round)) or None

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """Moments, time averages and, in the first round, trajectories of blocks."""
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
        """From a stretch of the largest N; those of other N take N at spin level."""
        options, simulator = self.options, self._simulator(len(self.sizes) - 1, 0)
        beta = np.zeros(self.batch, int)
        inputs = self._inputs(len(self.sizes) - 1, beta, lambda _: None)
        rows, carry = simulator.begin(*inputs, beta, self.layout.number(beta))
        stretch = lambda: simulator.advance(rows, carry, 0)
        with limited(1):
            compiling = seconds_of(stretch, repeats=1)
        seconds = seconds_of(stretch) / self.batch
        second_round = self.layout.blocks > 1 and simulator.keep > 0
        seconds *= -(-options.steps // simulator.stretch)
        if options.method == "spins":
            seconds *= float(np.mean(self.sizes)) / self.sizes[-1]
        numbers = 5 * options.steps * (2 + simulator.keep) + 4 * self.layout.size
        stored = 8 * self.made.net.n_patterns * numbers
        memory = simulator.bytes + 2 * self.batch * stored
        without = "the mean-field transient" if options.mean_field_transient else ""
        fixed = compiling if second_round else 0.0
        return Pilot(seconds, memory, stored, without, fixed=fixed)

    def assemble(self, results: Results) -> Assembled:
        options, moments = self.options, self._merged(results)
        mean, spread, stored = moments.mean, moments.spread, self._stored(results)
        none = np.empty((self.made.net.n_patterns, len(self.beta), 0))
        simulations = []
        for i, n_spins in enumerate(self.sizes):
            rows = slice(i * len(self.beta), (i + 1) * len(self.beta))
            over_points = lambda x, rows=rows: observations(x[rows], self.beta.shape)
            simulations.append(
                Simulation(
                    over_points(mean),
                    over_points(spread),
                    over_points(stored),
                    TimeAverages(none, none, none, none),
                    n_spins,
                    options.runs,
                    options.transient,
                    options.method,
                )
            )
        dataset = monte_carlo_dataset(
            simulations,
            self.beta,
            averages=False,
            attrs={
                "network": network_digest(self.made.net),
                "start": build.describe_start(options, self.made),
                "context": self.made.net.context,
            },
        )
        dataset = build.with_failures(
            dataset, self._failure(results), ("n_spins", "beta"), results.reasons()
        )
        columns = {stationary(name): self._column(results, name) for name in AVERAGES}
        return Assembled(build.with_fixed(dataset, self.axes), columns)

    def _simulator(self, i: int, round: int) -> Simulator:
        """That of the i-th N; all of them share the compiled program of a round."""
        options = self.options
        return Simulator(
            self.made.net,
            self.counts[i],
            options.method,
            steps=options.steps,
            transient=options.transient,
            size=self.layout.size,
            rows=self.batch,
            keep=0 if round else min(options.stored, self.layout.size),
        )

    def _rows(self, simulator: Simulator, i: int, beta, block, tick: Tick) -> Arrays:
        """One call: rows of blocks of the i-th N."""
        count, steps = len(beta), self.options.steps
        inputs = self._inputs(i, beta, tick)
        done = lambda n: tick(count * n / steps)
        moments = simulator(*inputs, block, self.layout.number(block), done)
        averages = np.moveaxis(moments.averages, 1, 0)
        rows = {"mean": moments.mean, "square": moments.square}
        rows |= dict(zip(AVERAGES, averages, strict=True))
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
        params = self.axes.at(index.clip(max=len(self.beta) - 1)[:, None])
        return params, build.start(self.options, self.made, params)

    def _moved(self, group: int, tick: Tick) -> tuple[dmft.Parameters, dmft.State]:
        """The same after the mean-field transient."""
        if group not in self._starts:
            params, state = self._start(group)
            for first in range(0, self.options.mean_field_transient, PIECE):
                piece = min(PIECE, self.options.mean_field_transient - first)
                state = dmft.advance(self.made.net, params, state, piece)
                jax.block_until_ready(state)
                tick(0.0)
            self._starts[group] = params, state
        return self._starts[group]

    def _merged(self, results: Results) -> Moments:
        """Moments over all runs, (N and beta, steps, 5, M)."""
        moments = Moments(self._places, self.layout, results.like("mean").shape[1:])
        every = chain.from_iterable
        rows = zip(*(every(results.blocks(n)) for n in ("mean", "square")), strict=True)
        for round in (0, 1):
            for point in range(self._places):
                for block in self._blocks(round):
                    moments.add(point, block, *next(rows))
        return moments

    def _stored(self, results: Results) -> np.ndarray:
        """Trajectories (N and beta, stored, steps, 5, M)."""
        stored = self.options.stored
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

    def _column(self, results: Results, name: str) -> Column:
        """Time averages of all runs, one after the other."""
        shape = (len(self.sizes), len(self.beta), self.layout.runs)
        like = results.like(name)
        return Column(
            PER_RUN,
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
            for block in range(self.layout.blocks):
                row = next(some if block in first else rows)
                yield row[: int(self.layout.number(np.asarray(block)))]
