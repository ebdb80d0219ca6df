"""Doubtful points of a diagram, run again in rounds of their own.

The rounds of the scan come first.  Then come the rows that others make doubtful
(`doubtful_verdicts`); and as long as some of them lose their verdict, the rows that
those make doubtful.  Rows that are still too likely transients (`lifetimes.at_risk`)
are followed further, each time for as long as before, those first that were followed
least.  A row says how many of its perturbed starts kept to the verdict; where one did
not, the orbit was a transient, and the row says where it went.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import limited, once
from statmech_attn.dynamics.diagrams.confirmation import doubtful_verdicts, lifetimes
from statmech_attn.dynamics.diagrams.rows import (
    Diagram,
    Rows,
    tree_names,
    tree_of,
    tree_rows,
)
from statmech_attn.dynamics.diagrams.stages.batch_times import Times
from statmech_attn.dynamics.diagrams.stages.lanes import Points
from statmech_attn.dynamics.diagrams.stages.outcomes import Outcome
from statmech_attn.dynamics.diagrams.stages.stages import Scan
from statmech_attn.dynamics.motion import phases
from statmech_attn.reporting import duration
from statmech_attn.scan import Arrays, Chunk, OneRound, Results, Tick


PERTURBATION = 1e-7  # of the coordinates, relative
NOT_RUN = -1  # of `confirmed` and `final_starts`
END = "end"  # of the rows that hold the parameters and the last state
REPEATS = "repeats"  # of the rows that hold `Repeats`
PERTURBED = "perturbed"  # of the rows that hold the states of the perturbed starts
LEADING = ("lyapunov", "lyapunov_stderr")
FINAL = ("final_phase", "final_period", "final_lyapunov", "final_lyapunov_stderr")
FIRST = 12  # runs of a point for which doubtful rows are run at first


class ConfirmationRound(NamedTuple):
    """A round of rows that are run again.

    Attributes:
        done: steps for which each of them was run again before.
        further: steps for which it is run now, at most.
    """

    rows: np.ndarray
    done: int
    further: int

    @property
    def looks(self) -> tuple[float, ...]:
        """Parts of the further steps after which orbits are looked at."""
        return (1.0,) if self.done else doubtful_verdicts.LOOKS


class Repeats(NamedTuple):
    """What perturbed starts of a row did; NaN where none were run.

    Attributes:
        horizon: steps for which each was followed at most, 0 where none were run.
        time: steps for which all of them together kept to the verdict, likewise.
        stayed: how many did to the end.
        phase, period, exponent, stderr: of what those that left settled on most often.
        alike: how many of them did.
    """

    horizon: np.ndarray
    time: np.ndarray
    stayed: np.ndarray
    phase: np.ndarray
    period: np.ndarray
    exponent: np.ndarray
    stderr: np.ndarray
    alike: np.ndarray

    def rows(self) -> Arrays:
        """All fields as one array, (rows, fields)."""
        return {REPEATS: np.stack(self, axis=1)}


class EvidenceOfRounds(NamedTuple):
    """What is known of the rows after the rounds so far.

    Attributes:
        verdict: (3, rows) phase, largest exponent and its error.
        run: whether a row was run again.
        departed: whether one of its starts left what the scan said.
        chance: that its chaos is a transient.
        late: of rows that lasted for a part of its time, the share that left within it.
    """

    verdict: np.ndarray
    repeats: Repeats
    run: np.ndarray
    departed: np.ndarray
    chance: np.ndarray
    late: np.ndarray


def ends(outcome: Outcome, points: Points) -> Arrays:
    """What a row needs to be run again from where it ended."""
    end = tree_rows(END, Points(points.params, outcome.final), points.size)
    return end | {REPEATS: np.full((points.size, len(Repeats._fields)), np.nan)}


class ConfirmationRounds(OneRound):
    """Work whose rounds of a scan are followed by rounds of doubtful rows."""

    diagram: Diagram
    example: once[Points]
    scan: once[Scan]

    def __init__(self) -> None:
        self._scanned: int | None = None  # rounds of the scan; None: not known yet
        self._further: list[ConfirmationRound] = []  # further rounds

    @abstractmethod
    def scan_points(self, round: int, earlier: Results) -> int | None:
        """`Work.points` of the rounds of the scan."""

    @abstractmethod
    def scan_payload(self, chunk: Chunk, earlier: Results) -> Any:
        """`Work.payload` of the rounds of the scan."""

    @abstractmethod
    def scan_compute(self, chunk: Chunk, payload: Any, tick: Tick) -> Arrays:
        """`Work.rows` of the rounds of the scan."""

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
        while round - self._scanned >= len(self._further):
            self._further.append(self._next(earlier))
        return len(self._further[round - self._scanned].rows) or None

    def payload(self, chunk: Chunk, earlier: Results) -> Any:
        if self._scanned is None or chunk.round < self._scanned:
            return self.scan_payload(chunk, earlier)
        this_round = self._further[chunk.round - self._scanned]
        rows = this_round.rows[chunk.first : chunk.stop]
        of_scan = self.scan_rows(earlier)
        named = {
            name: of_scan.column(name)[rows] for name in tree_names(END, self.example)
        }
        if this_round.done:
            named |= self._followed(chunk.round, rows, earlier)
        verdict = _verdict_of(of_scan)[:, rows].T
        return named | {
            "verdict": verdict,
            "confirmation": this_round._replace(rows=rows),
        }

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        if isinstance(payload, dict) and "confirmation" in payload:
            return self._again(payload, tick)
        return self.scan_compute(chunk, payload, tick)

    def expected_again(self, times: Times, points: int) -> float:
        """Seconds of one worker for the points that are expected to be doubtful.

        They are all chaotic ones, where a sample has some beside other orbits: between
        its points are more of these.  Most last, and are followed to the horizon.
        """
        if times.verdicts is None:
            return 0.0
        chaos = np.isin(times.verdicts.phase, phases.CHAOS)
        share = 0.0 if chaos.all() else chaos.mean()
        return self._seconds_again(times, share * points, 0)

    def longest(self, times: Times, points: int) -> float:
        """Seconds of one worker if every point were doubtful, and left at the end."""
        plan = self.diagram.plan
        until_settled = 2 * self.scan.window_steps(plan.max_doublings)
        return self._seconds_again(times, points, until_settled)

    def _seconds_again(self, times: Times, points: float, settling: int) -> float:
        """Seconds for points that are followed to the horizon, and then until settled.

        `settling` steps of a point are in windows after it has left.
        """
        again, scan = self.diagram.again, self.scan
        assert again is not None and again.horizon is not None
        rounds = 1 + math.ceil(math.log2(max(again.horizon / self._first(), 1)))
        look = scan.short_window_steps + scan.window_steps(0)
        tangent = (len(doubtful_verdicts.LOOKS) + rounds - 1) * look + settling
        batches = math.ceil(points * again.starts / scan.lanes)
        return batches * (again.horizon * times.step + tangent * times.tangent_step)

    def outlook(self, points: int, chunks: int, workers: int) -> str:
        again = self.diagram.again
        if not self._further or again is None:  # a round of a refined grid
            return ""
        this_round = self._further[-1]
        scan, busy = self.scan, -(-chunks // workers) / chunks
        with limited(1):
            count = points * again.starts
            seconds = scan.advance.seconds(count, this_round.further)
            steps = len(this_round.looks) * scan.short_window_steps
            seconds += scan.examine.seconds(count, steps)
        about = f": about {duration(busy * seconds)}" if seconds else ""
        return (
            f"{points} doubtful points are run again from {again.starts} perturbed "
            f"states each, for {this_round.further} steps at most{about}"
        )

    def first_rounds(self, results: Results) -> Results:
        """The results of the scan alone."""
        if self.diagram.again is None:
            return results
        assert self._scanned is not None
        return results.before(self._scanned)

    def judged(self, results: Results) -> Rows:
        """The rows of the scan, with what their neighbours and a longer look say."""
        of_scan = self.scan_rows(results)
        if not self.diagram.plan.exponents:
            return of_scan
        so_far = self._evidence(of_scan, results)
        doubt = doubtful_verdicts.doubtful(so_far.verdict, self._pairs()) & ~so_far.run
        doubt |= (so_far.chance >= lifetimes.DOUBT) & so_far.run & ~so_far.departed
        changed = {
            "doubtful": doubt.astype(np.int8),
            "transient_probability": so_far.chance,
        }
        if self.diagram.again is None:
            return Judged(of_scan, changed)
        phase, horizon = of_scan.column("phase"), of_scan.column("horizon")
        repeats, departed = so_far.repeats, so_far.departed
        exponents = (of_scan.column(name)[:, 0] for name in LEADING)
        before = (phase, of_scan.column("period"), *exponents)
        after = (repeats.phase, repeats.period, repeats.exponent, repeats.stderr)
        final = zip(FINAL, before, after, strict=True)
        further_steps = np.where(so_far.run & ~departed, repeats.horizon, 0)
        changed |= {
            "confirmed": np.where(so_far.run, repeats.stayed, NOT_RUN).astype(np.int16),
            "phase": np.where(departed, phases.TRANSIENT, phase).astype(phase.dtype),
            "horizon": horizon + further_steps.astype(horizon.dtype),
            "final_starts": np.where(departed, repeats.alike, NOT_RUN).astype(np.int16),
        }
        changed |= {n: np.where(departed, y, x).astype(x.dtype) for n, x, y in final}
        return Judged(of_scan, changed)

    def _evidence(self, of_scan: Rows, results: Results) -> "EvidenceOfRounds":
        """What the rounds of rows that were run again have shown so far."""
        verdict, horizon = _verdict_of(of_scan), of_scan.column("horizon").astype(float)
        sums = np.full((verdict.shape[1], len(Repeats._fields)), np.nan)
        sums[:, :2] = 0  # of all rounds, the sums of the steps
        for round, this_round in enumerate(self._further, self._scanned or 0):
            if len(this_round.rows):
                latest = results.column(REPEATS, round)
                sums[this_round.rows, :2] += latest[:, :2]
                sums[this_round.rows, 2:] = latest[:, 2:]
        repeats = Repeats(*sums.T)
        run, again = np.isfinite(repeats.stayed), self.diagram.again
        departed = run & (repeats.stayed < (again.starts if again else 0))
        time, departures = horizon.copy(), np.zeros(len(horizon), int)
        time[run] += repeats.time[run]
        chaos, late = np.isin(verdict[0], phases.CHAOS), np.full(len(time), np.nan)
        leaves = departed & chaos
        departures[leaves] = again.starts - repeats.stayed[leaves] if again else 0
        late[chaos] = lifetimes.left_late(time[chaos], leaves[chaos])
        verdict[0, departed] = phases.TRANSIENT
        chance = lifetimes.still_transient(
            verdict, self._pairs(), horizon, time, departures
        )
        return EvidenceOfRounds(verdict, repeats, run, departed, chance, late)

    def _pairs(self) -> np.ndarray:
        """Neighbouring rows; those of one start with those of the same."""
        starts = self.diagram.starts
        pairs = doubtful_verdicts.edges(self.index())[:, None] * starts
        return (pairs + np.arange(starts)[:, None]).reshape(-1, 2)

    def _first(self) -> int:
        """Steps for which doubtful rows are run at first."""
        plan, again = self.diagram.plan, self.diagram.again
        assert again is not None and again.horizon is not None
        return min(FIRST * (plan.transient + plan.steps), again.horizon)

    def _next(self, earlier: Results) -> ConfirmationRound:
        """The next round: of the rows that need one, those that were run least."""
        again = self.diagram.again
        assert again is not None and again.horizon is not None
        so_far = self._evidence(self.scan_rows(earlier), earlier)
        doubt = doubtful_verdicts.doubtful(so_far.verdict, self._pairs())
        doubt |= so_far.verdict[0] == phases.TRANSIENT
        steps = so_far.repeats.horizon
        likely = np.maximum(so_far.chance, so_far.late)
        risk = lifetimes.at_risk(likely, again.transients) & ~so_far.departed
        rows = doubt & ~so_far.run | risk & (steps < again.horizon)
        followed = int(steps[rows].min(initial=again.horizon))
        further = min(followed or self._first(), again.horizon - followed)
        return ConfirmationRound(
            np.flatnonzero(rows & (steps == followed)), followed, further
        )

    def _followed(self, round: int, rows: np.ndarray, earlier: Results) -> Arrays:
        """States of the perturbed starts of some rows at the end of earlier rounds."""
        names = tree_names(PERTURBED, self.example.starts)
        states: Arrays = {}
        for before in range(self._scanned or 0, round):
            ran = self._further[before - (self._scanned or 0)].rows
            _, places, rows_ran = np.intersect1d(rows, ran, return_indices=True)
            for name in names if len(places) else ():
                state = earlier.column(name, before)
                blank = np.empty((len(rows), *state.shape[1:]), state.dtype)
                states.setdefault(name, blank)[places] = state[rows_ran]
        return states

    def _again(self, payload: dict[str, Any], tick: Tick) -> Arrays:
        """Run each row again, from perturbed starts or on from where these were."""
        again = self.diagram.again
        assert again is not None
        starts = again.starts
        points = self._perturbed(payload, starts)
        verdict = np.repeat(payload["verdict"].T, starts, axis=1)
        _, _, further = this_round = payload["confirmation"]
        report = lambda steps: tick(steps / (starts * further))
        watched = doubtful_verdicts.follow_until_change(
            self.scan, points, verdict, further, report, this_round.looks
        )
        stayed = watched.stayed.reshape(-1, starts)
        settled = np.split(watched.settled, len(stayed), axis=1)
        rows = [
            (further, time.sum(), stayed_of_row.sum(), *_commonest(final))
            for stayed_of_row, time, final in zip(
                stayed, watched.time.reshape(stayed.shape), settled, strict=True
            )
        ]
        ended = tree_rows(PERTURBED, watched.states, points.size)
        by_row = lambda x: x.reshape(-1, starts, *x.shape[1:])
        repeats = Repeats(*np.array(rows, float).T).rows()
        return repeats | {name: by_row(x) for name, x in ended.items()}

    def _perturbed(self, payload: dict[str, Any], starts: int) -> Points:
        """Rows where they ended, each from several slightly perturbed states.

        Rows that were run again before go on from the states of then.
        """
        repeated = {
            name: np.repeat(payload[name], starts, axis=0)
            for name in tree_names(END, self.example)
        }
        points = tree_of(END, repeated, self.example)
        if payload["confirmation"].done:
            names = tree_names(PERTURBED, self.example.starts)
            states = {n: payload[n].reshape(-1, *payload[n].shape[2:]) for n in names}
            points = points._replace(starts=tree_of(PERTURBED, states, points.starts))
            return jax.tree.map(np.asarray, points)
        map = self.diagram.system.beside(points.params)
        vectors = np.array(map.vector(points.starts))
        for i, row in enumerate(payload["confirmation"].rows):
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


def _verdict_of(rows: Rows) -> np.ndarray:
    """Phase, largest exponent and its error of each row, (3, rows)."""
    leading = (rows.column(name)[:, 0] for name in LEADING)
    return np.stack([rows.column("phase").astype(float), *leading])


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
