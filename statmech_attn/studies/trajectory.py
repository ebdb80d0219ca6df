"""Trajectories: of the mean-field map with the linear-noise spread, of any system.

A point is a value of the parameter; `batch` of them are iterated side by side.
"""

import dataclasses
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any

import jax
import numpy as np

from statmech_attn import dmft
from statmech_attn.dmft import network_digest, noise_start, noise_steps
from statmech_attn.dynamics import diagrams
from statmech_attn.labels import Variable, Variables
from statmech_attn.reporting import size
from statmech_attn.scan import Arrays, Assembled, Chunk, OneRound, Pilot, Results, Tick
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import TrajectoryStudy


LARGEST = 4 * 2**30  # bytes kept in memory
BATCH = 32  # points side by side at most
NOISY_BATCH = 8  # with noise: the last bits of a spread depend on it
DENSE = 40  # dimension from which a point with noise keeps a core busy alone
PIECE = 8192  # tokens of a transient between two ticks
SEGMENT, NOISY_SEGMENT = 2048, 256  # kept tokens between two ticks
OBSERVABLES = ("A", "m_o_se", "m_v", "m_q", "m_k")
NOISY = ("A", "m_o_se")  # observables whose spread is stored
BY = ("beta", "gamma", "epsilon")  # parameters of the derivatives
STRETCH = 1e-5  # of a parameter, for its derivative
SCORE = "score_noise_std"  # the spread in which the linear noise is an expansion
STEPWISE, ONE = "beta time pattern", "divide by √N; with run.noise"
VARIABLES = Variables(
    Variable("A", STEPWISE, "attention", "1", "A", group="", note="after the token"),
    Variable("m_o_se", STEPWISE, "semantic output overlap", "1", "m^{o,SE}", group=""),
    Variable("m_v", STEPWISE, "value overlap", "1", "m^v"),
    Variable("m_q", STEPWISE, "query overlap", "1", "m^q"),
    Variable("m_k", STEPWISE, "key overlap", "1", "m^k"),
    Variable(
        "A_noise_std", STEPWISE, "sqrt(N) times the linear-noise spread of A", "1",
        "√N σ_A", note=ONE,
    ),
    Variable(
        "m_o_se_noise_std", STEPWISE, "sqrt(N) times the linear-noise spread of m_o_se",
        "1", "√N σ_m", note=ONE,
    ),
    Variable(
        SCORE, "beta time",
        "sqrt(N) times the largest linear-noise spread of an attention score; linear "
        "noise holds where the spread is far below 1", "1", "√N σ_s", note=ONE,
    ),
    *(
        Variable(
            f"{name}_by_{parameter}", STEPWISE,
            f"{words}: derivative in the logarithm of {parameter}", "1",
            f"∂{symbol}/∂ln {parameter}", group="derivatives", note="with run.noise",
        )
        for name, words, symbol in (
            ("A", "attention", "A"),
            ("m_o_se", "semantic output overlap", "m^{o,SE}"),
        )
        for parameter in BY
    ),
    build.FAILURE,
    build.PARAMETERS,
    Variable(
        "time", "time", "token step, 0 is the first generated token", "token", "t"
    ),
    Variable("pattern", "pattern", "feature pattern", "1", "a"),
)  # fmt: skip


class Trajectories(OneRound):
    """Every value of a parameter, `steps` steps after the transient.

    Attributes:
        axes: the one scanned parameter, and the others.
        options: keys of [run].
        width: numbers that are kept of a step.
        segment: kept steps between two ticks at most.

    Raises:
        ValueError: more than fits into memory.
    """

    title = "trajectory"
    axes: diagrams.Axes
    options: Any
    batch: int
    width: int
    segment = SEGMENT

    @property
    def total(self) -> int:
        return len(self.axes.values[0])

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Arrays that a chunk has."""

    @abstractmethod
    def _states(self, params: Any) -> Any:
        """Initial states of a batch."""

    @abstractmethod
    def _advanced(self, params: Any, state: Any, steps: int) -> Any:
        """The state after so many steps."""

    @abstractmethod
    def _kept(self, params: Any, state: Any, steps: int, tick: Tick) -> Arrays:
        """Arrays (batch, steps, ...), in segments of one length."""

    def require_memory(self, numbers: int) -> None:
        """Refuse trajectories of so many numbers a step that fill the memory."""
        needed = 8 * self.total * numbers * self.options.steps
        if needed > LARGEST:
            raise ValueError(
                f"run.steps: these trajectories need {size(needed)} of memory, more "
                f"than {size(LARGEST)}; keep fewer steps or {self.axes.names[0]}, or "
                "run a bifurcation study."
            )

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """(points, time, ...) of every name."""
        parts = [
            self._compute(np.arange(first, min(first + self.batch, chunk.stop)), tick)
            for first in range(chunk.first, chunk.stop, self.batch)
        ]
        return {name: np.concatenate([p[name] for p in parts]) for name in self.names}

    def pilot(self) -> Pilot:
        """From two segments of one batch: the first one compiles."""
        seconds = []
        for _ in range(2):
            clock = time.perf_counter()
            self._moved(*self._start(np.arange(1)), PIECE, lambda _: None)
            moved = time.perf_counter()
            self._kept(*self._start(np.arange(1)), 1, lambda _: None)
            seconds = [moved - clock, time.perf_counter() - moved]
        steps = self.options.transient / PIECE, self.options.steps / self._segment
        seconds_of_point = float(np.dot(steps, seconds)) / self.batch
        arrays = 8 * self.options.steps * self.width
        return Pilot(seconds_of_point, 2 * self.batch * arrays, arrays)

    @property
    def _segment(self) -> int:
        """Kept steps between two ticks, equal parts of all of them."""
        return -(-self.options.steps // -(-self.options.steps // self.segment))

    def _start(self, index: np.ndarray):
        """Parameters and start of a batch that is filled up with its last point."""
        index = np.pad(index, (0, self.batch - len(index)), mode="edge")
        params = self.axes.at(index[:, None])
        return params, self._states(params)

    def _compute(self, index: np.ndarray, tick: Tick) -> Arrays:
        total = self.options.transient + self.options.steps
        done = lambda steps: tick(len(index) * steps / total)
        params, state = self._start(index)
        state = self._moved(params, state, self.options.transient, done)
        arrays = self._kept(params, state, self.options.steps, done)
        return {name: x[: len(index)] for name, x in arrays.items()}

    def _moved(self, params, state, steps: int, tick: Tick):
        """The state after the transient."""
        for first in range(0, steps, PIECE):
            piece = min(PIECE, steps - first)
            state = self._advanced(params, state, piece)
            jax.block_until_ready(state)
            tick(piece)
        return state


class TrajectoryWork(Trajectories):
    """Trajectories of a network; a `scan.work.Work`.

    Args:
        batch: points side by side, of which a chunk holds a multiple; a number that
            depends on the study alone when omitted.

    Raises:
        ValueError: an impossible setting, or more than fits into memory.
    """

    def __init__(self, study: TrajectoryStudy, batch: int | None = None):
        self.made = build.model(study.network)
        axes = build.axes(study.parameters, self.made.file)
        self.axes, self.options = build.only_beta(axes, "trajectory"), study.run
        self.beta = self.axes.values[0]
        self.batch = batch or self._chosen_batch()
        self.width = self.made.net.n_patterns * len(self.names)
        self.segment = NOISY_SEGMENT if study.run.noise else SEGMENT
        self.require_memory(self.made.net.n_patterns * 16)
        self.alone = study.run.noise
        self.axes.points()
        self._start(np.arange(1))

    @property
    def names(self) -> list[str]:
        spread = [*(f"{name}_noise_std" for name in NOISY), SCORE]
        slopes = [f"{name}_by_{parameter}" for name in NOISY for parameter in BY]
        return [*OBSERVABLES, *([*spread, *slopes] if self.options.noise else [])]

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """The spread of a chaotic point is infinite in the end, which is its value."""
        bad = [np.isnan(arrays[n]) for n in self.names if "_by_" not in n]
        bad += [np.isinf(arrays[n]) for n in OBSERVABLES]
        return np.any([x.reshape(len(x), -1).any(axis=1) for x in bad], axis=0)

    def assemble(self, results: Results) -> Assembled:
        dims = ("beta", "time", "pattern")
        columns = {name: results.column(name) for name in self.names}
        variables = {name: (dims[: x.ndim], x) for name, x in columns.items()}
        coordinates = {
            "beta": self.beta,
            "time": np.arange(self.options.steps),
            "pattern": np.arange(1, self.made.net.n_patterns + 1),
        }
        net = self.made.net
        dataset = VARIABLES.labelled(variables, coordinates).assign_attrs(
            kind="trajectory",
            network=network_digest(net),
            context=net.context,
            start=build.describe_start(self.options, self.made),
        )
        dataset = build.with_failures(
            dataset, results.failure(), ("beta",), results.reasons()
        )
        return Assembled(build.with_fixed(dataset, self.axes))

    def _chosen_batch(self) -> int:
        """With noise every lane, also one of padding, has matrices to factorise."""
        net = self.made.net
        if not self.options.noise:
            return min(BATCH, -(-len(self.beta) // 8) * 8)
        dense = dmft.noise_dimension(net, self.axes.points()) >= DENSE
        return 1 if dense else NOISY_BATCH

    def _states(self, params):
        return build.start(self.options, self.made, params)

    def _advanced(self, params, state, steps: int):
        return dmft.advance(self.made.net, params, state, steps)

    def _derivatives(self, params) -> Arrays:
        """In the logarithm of every parameter, from two trajectories of each."""
        arrays = {}
        for parameter in BY:
            ends = []
            for factor in (1 + STRETCH, 1 - STRETCH):
                value = getattr(params, parameter) * factor
                moved = dataclasses.replace(params, **{parameter: value})
                state = self._moved(
                    moved, self._states(moved), self.options.transient, lambda _: None
                )
                steps = self.options.steps
                _, observed = dmft.trajectory(self.made.net, moved, state, steps=steps)
                ends.append(observed)
            for name in NOISY:
                above, below = (
                    np.asarray(getattr(observed, name)) for observed in ends
                )
                slope = (above - below) / (2 * STRETCH)
                arrays[f"{name}_by_{parameter}"] = np.moveaxis(slope, -1, 0)
        return arrays

    def _kept(self, params, state, steps: int, tick: Tick) -> Arrays:
        net, length = self.made.net, self._segment
        noise = None
        if self.options.noise:
            noise = noise_start(net, self.made.patterns, params, state)
        parts = []
        for first in range(0, steps, length):
            state, averages = dmft.trajectory(net, params, state, steps=length)
            observed = {name: getattr(averages, name) for name in OBSERVABLES}
            if noise is not None:
                noise, band = noise_steps(net, noise, steps=length)
                observed |= {f"{n}_noise_std": getattr(band.std, n) for n in NOISY}
                observed[SCORE] = band.score
            parts.append(
                {n: np.moveaxis(np.asarray(x), -1, 0) for n, x in observed.items()}
            )
            tick(min(length, steps - first))
        slopes = {} if noise is None else self._derivatives(params)
        join = lambda name: np.concatenate([p[name] for p in parts], axis=1)
        return slopes | {n: join(n)[:, :steps] for n in self.names if n not in slopes}
