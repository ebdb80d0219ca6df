"""Doubtful points of a diagram, run again in rounds of their own.

The rounds of the scan come first.  Then come the rows that others make doubtful
(`confirm`); and as long as some of them leave what they were said to be, the rows that
those make doubtful.  A row says how many of its perturbed starts kept to the verdict;
where one did not, the orbit was a transient, and the row says where it went.
"""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import limited, once
from statmech_attn.dynamics import phases
from statmech_attn.dynamics.diagrams import confirm, lifetimes
from statmech_attn.dynamics.diagrams.points import Points
from statmech_attn.dynamics.diagrams.rows import (
    Diagram,
    Rows,
    tree_names,
    tree_of,
    tree_rows,
)
from statmech_attn.dynamics.diagrams.stages import Outcome, Scan, Times
from statmech_attn.reporting import duration
from statmech_attn.scan import Arrays, Chunk, OneRound, Results, Tick


PERTURBATION = 1e-7  # of the coordinates, relative
NOT_RUN = -1  # of `confirmed` and `final_starts`
END = "end"  # of the rows that hold the parameters and the last state
REPEATS = "repeats"  # of the rows that hold `Repeats`
LEADING = ("lyapunov", "lyapunov_stderr")
FINAL = ("final_phase", "final_period", "final_lyapunov", "final_lyapunov_stderr")
FIRST = 4  # part of the horizon for which doubtful rows are run at first
DOUBT = 0.05  # probability of a transient from which on a row stays doubtful


class Asked(NamedTuple):
    """A round of rows that are run again, each for so many steps at most."""

    rows: np.ndarray
    horizon: int


class Repeats(NamedTuple):
    """What perturbed starts of a row did; NaN where none were run.

    Attributes:
        horizon: steps for which each was followed at most.
        stayed: how many kept to the verdict.
        time: steps for which all of them together did.
        phase, period, exponent, stderr: of what those that left settled on most often.
        alike: how many of them did.
    """

    horizon: np.ndarray
    stayed: np.ndarray
    time: np.ndarray
    phase: np.ndarray
    period: np.ndarray
    exponent: np.ndarray
    stderr: np.ndarray
    alike: np.ndarray

    def rows(self) -> Arrays:
        """As one array, (rows, fields)."""
        return {REPEATS: np.stack(self, axis=1)}


class Looked(NamedTuple):
    """Rows after the rounds so far.

    Attributes:
        said: (3, rows) phase, largest exponent and its error.
        run: whether a row was run again.
        gone: whether one of its starts left what the scan said.
        chance: that its chaos is a transient.
    """

    said: np.ndarray
    repeats: Repeats
    run: np.ndarray
    gone: np.ndarray
    chance: np.ndarray


def ends(outcome: Outcome, points: Points) -> Arrays:
    """What a row needs to be run again from where it ended."""
    end = tree_rows(END, Points(points.params, outcome.final), points.size)
    return end | {REPEATS: np.full((points.size, len(Repeats._fields)), np.nan)}


class Confirming(OneRound):
    """Work whose rounds of a scan are followed by rounds of doubtful rows."""

    diagram: Diagram
    example: Points  # one point
    scan: once[Scan]

    def __init__(self) -> None:
        self._scanned: int | None = None  # rounds of the scan; None: not known yet
        self._asked: list[Asked] = []  # further rounds

    @abstractmethod
    def scan_points(self, round: int, earlier: Results) -> int | None:
        """`Work.points` of the rounds of the scan."""

    @abstractmethod
    def scan_payload(self, chunk: Chunk, earlier: Results) -> Any:
        """`Work.payload` of the rounds of the scan."""

    @abstractmethod
    def scan_compute(self, chunk: Chunk, payload: Any, tick: Tick) -> Arrays:
        """`Work.compute` of the rounds of the scan."""

    @abstractmethod
    def scan_rows(self, results: Results) -> Rows:
        """The rows of the scan in the order of `index`, starts fastest."""

    @abstractmethod
    def index(self) -> np.ndarray:
        """Places of the points on a grid, (points, axes)."""

    def points(self, round: int, earlier: Results) -> int | None:
        for before in range(round + 1):
            if self._scanned is None:
                count = self.scan_points(before, earlier)
                if count is None:
                    self._scanned = before
                elif before == round:
                    return count
        assert self._scanned is not None
        if round < self._scanned:
            return self.scan_points(round, earlier)
        if self.diagram.again is None:
            return None
        while round - self._scanned >= len(self._asked):
            self._asked.append(self._next(earlier))
        return len(self._asked[round - self._scanned].rows) or None

    def payload(self, chunk: Chunk, earlier: Results) -> Any:
        if self._scanned is None or chunk.round < self._scanned:
            return self.scan_payload(chunk, earlier)
        asked = self._asked[chunk.round - self._scanned]
        rows = asked.rows[chunk.first : chunk.stop]
        of_scan = self.scan_rows(earlier)
        named = {
            name: of_scan.column(name)[rows] for name in tree_names(END, self.example)
        }
        said = _said(of_scan)[:, rows].T
        return named | {"row": rows, "said": said, "horizon": asked.horizon}

    def compute(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        if isinstance(payload, dict) and "said" in payload:
            return self._again(payload, tick).rows()
        return self.scan_compute(chunk, payload, tick)

    def longest(self, times: Times, points: int) -> float:
        """Seconds of one worker if every point were doubtful, and left at the end.

        Args:
            times: of the pilot.
            points: of the whole scan.
        """
        again, plan, scan = self.diagram.again, self.diagram.plan, self.scan
        assert again is not None and again.horizon is not None
        plain = again.horizon * (1 + 1 / FIRST)
        looks = 2 * len(confirm.LOOKS) * (scan.glance_steps + scan.window_steps(0))
        until_settled = 2 * scan.window_steps(plan.max_doublings)
        tangent = (looks + until_settled) * times.tangent_step
        batches = -(-points * again.starts // scan.lanes)
        return batches * (plain * times.step + tangent)

    def outlook(self, points: int, chunks: int, workers: int) -> str:
        again = self.diagram.again
        if not self._asked or again is None:  # a round of a refined grid
            return ""
        asked = self._asked[-1]
        scan, busy = self.scan, -(-chunks // workers) / chunks
        with limited(1):
            count = points * again.starts
            seconds = scan.advance.seconds(count, asked.horizon)
            steps = len(confirm.LOOKS) * scan.glance_steps
            seconds += scan.examine.seconds(count, steps)
        about = f": about {duration(busy * seconds)}" if seconds else ""
        return (
            f"doubtful points that are run again from {again.starts} perturbed states: "
            f"{points}, for {asked.horizon} steps at most{about}"
        )

    def first_rounds(self, results: Results) -> Results:
        """The results of the scan alone."""
        if self.diagram.again is None:
            return results
        assert self._scanned is not None
        return FirstRounds(results, self._scanned)

    def judged(self, results: Results) -> Rows:
        """The rows of the scan, with what their neighbours and a longer look say."""
        of_scan = self.scan_rows(results)
        if not self.diagram.plan.exponents:
            return of_scan
        looked = self._looked(of_scan, results)
        doubt = confirm.doubtful(looked.said, self._pairs()) & ~looked.run
        doubt |= (looked.chance >= DOUBT) & looked.run & ~looked.gone
        changed = {
            "doubtful": doubt.astype(np.int8),
            "transient_probability": looked.chance,
        }
        if self.diagram.again is None:
            return Judged(of_scan, changed)
        phase, horizon = of_scan.column("phase"), of_scan.column("horizon")
        repeats, gone = looked.repeats, looked.gone
        exponents = (of_scan.column(name)[:, 0] for name in LEADING)
        before = (phase, of_scan.column("period"), *exponents)
        after = (repeats.phase, repeats.period, repeats.exponent, repeats.stderr)
        final = zip(FINAL, before, after, strict=True)
        held = np.where(looked.run & ~gone, repeats.horizon, 0)
        changed |= {
            "confirmed": np.where(looked.run, repeats.stayed, NOT_RUN).astype(np.int16),
            "phase": np.where(gone, phases.TRANSIENT, phase).astype(phase.dtype),
            "horizon": horizon + held.astype(horizon.dtype),
            "final_starts": np.where(gone, repeats.alike, NOT_RUN).astype(np.int16),
        }
        changed |= {n: np.where(gone, y, x).astype(x.dtype) for n, x, y in final}
        return Judged(of_scan, changed)

    def _looked(self, of_scan: Rows, results: Results) -> "Looked":
        """What the rounds of rows that were run again have told so far."""
        said, horizon = _said(of_scan), of_scan.column("horizon").astype(float)
        blank = np.full((said.shape[1], len(Repeats._fields)), np.nan)
        for round, asked in enumerate(self._asked, self._scanned or 0):
            if len(asked.rows):
                blank[asked.rows] = results.column(REPEATS, round)
        repeats = Repeats(*blank.T)
        run, again = np.isfinite(repeats.stayed), self.diagram.again
        gone = run & (repeats.stayed < (again.starts if again else 0))
        time, left = horizon.copy(), np.zeros(len(horizon), int)
        time[run] += repeats.time[run]
        leaves = gone & np.isin(said[0], confirm.CHAOS)
        left[leaves] = again.starts - repeats.stayed[leaves] if again else 0
        said[0, gone] = phases.TRANSIENT
        chance = lifetimes.still_transient(said, self._pairs(), horizon, time, left)
        return Looked(said, repeats, run, gone, chance)

    def _pairs(self) -> np.ndarray:
        """Neighbouring rows; those of one start with those of the same."""
        starts = self.diagram.starts
        pairs = confirm.edges(self.index())[:, None] * starts
        return (pairs + np.arange(starts)[:, None]).reshape(-1, 2)

    def _next(self, earlier: Results) -> Asked:
        """The next round.

        First come, for a part of the horizon, all rows that are doubtful or transient;
        then for all of it those that may still be transients as long-lived as others.
        """
        again = self.diagram.again
        assert again is not None and again.horizon is not None
        looked = self._looked(self.scan_rows(earlier), earlier)
        rows = confirm.doubtful(looked.said, self._pairs())
        rows |= looked.said[0] == phases.TRANSIENT
        first = max(again.horizon // FIRST, 1)
        if (rows & ~looked.run).any():
            return Asked(np.flatnonzero(rows & ~looked.run), first)
        rows = (looked.chance >= DOUBT) & ~looked.gone
        rows &= looked.repeats.horizon < again.horizon
        return Asked(np.flatnonzero(rows), again.horizon)

    def _again(self, payload: Arrays, tick: Tick) -> Repeats:
        """Run each row again from perturbed starts."""
        asked = self.diagram.again
        assert asked is not None
        points = self._perturbed(payload, asked.starts)
        said = np.repeat(payload["said"].T, asked.starts, axis=1)
        horizon = int(payload["horizon"])
        report = lambda steps: tick(steps / (asked.starts * horizon))
        watched = confirm.watched(self.scan, points, said, horizon, report)
        stayed = watched.stayed.reshape(-1, asked.starts)
        settled = np.split(watched.settled, len(stayed), axis=1)
        rows = [
            (horizon, kept.sum(), time.sum(), *_commonest(final))
            for kept, time, final in zip(
                stayed, watched.time.reshape(stayed.shape), settled, strict=True
            )
        ]
        return Repeats(*np.array(rows, float).T)

    def _perturbed(self, payload: Arrays, starts: int) -> Points:
        """Rows where they ended, each from several slightly perturbed states."""
        repeated = {
            name: np.repeat(payload[name], starts, axis=0)
            for name in tree_names(END, self.example)
        }
        points = tree_of(END, repeated, self.example)
        map = self.diagram.system.beside(points.params)
        vectors = np.array(map.vector(points.starts))
        for i, row in enumerate(payload["row"]):
            noise = np.random.default_rng([self.diagram.seed, int(row)])
            few = slice(i * starts, (i + 1) * starts)
            kicks = noise.standard_normal((starts, len(vectors)))
            vectors[:, few] *= 1 + PERTURBATION * kicks.T
        points = points._replace(starts=map.at(points.starts, jnp.asarray(vectors)))
        return jax.tree.map(np.asarray, points)


def _commonest(settled: np.ndarray) -> tuple[float, ...]:
    """What most starts of a row have settled on, and how many; of (4, starts).

    Starts are alike that have one phase and one period; of as many, the first count.
    """
    alike = (settled[:2, :, None] == settled[:2, None]).all(axis=0).sum(axis=0)
    first = int(np.argmax(alike))
    return (*settled[:, first], alike[first])


def _said(rows: Rows) -> np.ndarray:
    """Phase, largest exponent and its error of each row, (3, rows)."""
    leading = (rows.column(name)[:, 0] for name in LEADING)
    return np.stack([rows.column("phase").astype(float), *leading])


class FirstRounds:
    """`Results` of the first rounds alone."""

    def __init__(self, results: Results, rounds: int):
        self._results, self._rounds = results, rounds

    def column(self, name: str, round: int | None = None) -> np.ndarray:
        if round is not None:
            return self._results.column(name, round)
        parts = [self._results.column(name, r) for r in range(self._rounds)]
        return np.concatenate(parts)

    def rows(self, name: str, round: int, first: int, stop: int) -> np.ndarray:
        return self._results.rows(name, round, first, stop)

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        left = len(self.column("finite"))
        for block in self._results.blocks(name):
            yield block[:left]
            left -= len(block)
            if left <= 0:
                return

    def like(self, name: str) -> np.ndarray:
        return self._results.like(name)

    def failure(self) -> np.ndarray:
        return self._results.failure()[: len(self.column("finite"))]

    def reasons(self) -> list[str]:
        return self._results.reasons()


class Judged:
    """Rows of a scan with some columns replaced or added."""

    def __init__(self, rows: Rows, changed: Arrays):
        self._rows, self._changed = rows, changed

    def column(self, name: str) -> np.ndarray:
        return self._changed[name] if name in self._changed else self._rows.column(name)

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        if name in self._changed:
            return iter([self._changed[name]])
        return self._rows.blocks(name)

    def like(self, name: str) -> np.ndarray:
        changed = self._changed.get(name)
        return self._rows.like(name) if changed is None else changed[:0]

    def failure(self) -> np.ndarray:
        return self._rows.failure()

    def reasons(self) -> list[str]:
        return self._rows.reasons()
