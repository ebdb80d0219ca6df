"""Doubtful points of a diagram, run again in rounds of their own.

The rounds of the scan come first.  Then come, where the study asks for it, the rows
whose neighbours make them doubtful (`confirm`); and as long as some of them
leave what they were said to be, the neighbours of those.  A row says how many of its
perturbed starts kept to the verdict; where one did not, the orbit was a transient.
"""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import once
from statmech_attn.dynamics import phases
from statmech_attn.dynamics.diagrams import confirm
from statmech_attn.dynamics.diagrams.points import Points
from statmech_attn.dynamics.diagrams.rows import (
    Diagram,
    Rows,
    tree_names,
    tree_of,
    tree_rows,
)
from statmech_attn.dynamics.diagrams.stages import Outcome, Scan
from statmech_attn.scan import Arrays, Chunk, OneRound, Results, Tick


PERTURBATION = 1e-7  # of the coordinates, relative
NOT_RUN = -1  # of `stayed`
END = "end"  # of the rows that hold the parameters and the last state


def ends(outcome: Outcome, points: Points) -> Arrays:
    """What a row needs to be run again from where it ended."""
    end = tree_rows(END, Points(points.params, outcome.final), points.size)
    return end | {"stayed": np.full(points.size, NOT_RUN, np.int16)}


class Confirming(OneRound):
    """Work whose rounds of a scan are followed by rounds of doubtful rows."""

    diagram: Diagram
    example: Points  # one point
    scan: once[Scan]

    def __init__(self) -> None:
        self._scanned: int | None = None  # rounds of the scan; None: not known yet
        self._asked: list[np.ndarray] = []  # rows of each further round

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
        if self.diagram.confirm is None:
            return None
        while round - self._scanned >= len(self._asked):
            self._asked.append(self._next(earlier))
        return len(self._asked[round - self._scanned]) or None

    def payload(self, chunk: Chunk, earlier: Results) -> Any:
        if self._scanned is None or chunk.round < self._scanned:
            return self.scan_payload(chunk, earlier)
        rows = self._asked[chunk.round - self._scanned][chunk.first : chunk.stop]
        of_scan = self.scan_rows(earlier)
        named = {
            name: of_scan.column(name)[rows] for name in tree_names(END, self.example)
        }
        return named | {"row": rows, "said": _said(of_scan)[:, rows].T}

    def compute(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        if isinstance(payload, dict) and "said" in payload:
            return {"stayed": self._stayed(payload, tick)}
        return self.scan_compute(chunk, payload, tick)

    def first_rounds(self, results: Results) -> Results:
        """The results of the scan alone."""
        if self.diagram.confirm is None:
            return results
        assert self._scanned is not None
        return FirstRounds(results, self._scanned)

    def judged(self, results: Results) -> Rows:
        """The rows of the scan, with what their neighbours and a longer look say."""
        of_scan, asked = self.scan_rows(results), self.diagram.confirm
        if not self.diagram.plan.exponents:
            return of_scan
        said = _said(of_scan)
        changed = {"doubtful": confirm.doubtful(said, self._pairs()).astype(np.int8)}
        if asked is None:
            return Judged(of_scan, changed)
        stayed = np.full(said.shape[1], NOT_RUN, np.int16)
        for round, rows in enumerate(self._asked, self._scanned or 0):
            if len(rows):
                stayed[rows] = results.column("stayed", round)
        left = (stayed >= 0) & (stayed < asked.starts)
        phase, horizon = of_scan.column("phase"), of_scan.column("horizon")
        longer = np.where(stayed == asked.starts, asked.horizon, 0)
        changed |= {
            "confirmed": stayed,
            "phase": np.where(left, phases.TRANSIENT, phase).astype(phase.dtype),
            "horizon": horizon + longer.astype(horizon.dtype),
        }
        return Judged(of_scan, changed)

    def _pairs(self) -> np.ndarray:
        """Neighbouring rows; those of one start with those of the same."""
        starts = self.diagram.starts
        pairs = confirm.edges(self.index())[:, None] * starts
        return (pairs + np.arange(starts)[:, None]).reshape(-1, 2)

    def _next(self, earlier: Results) -> np.ndarray:
        said, pairs = _said(self.scan_rows(earlier)), self._pairs()
        if not self._asked:
            return np.flatnonzero(confirm.doubtful(said, pairs))
        assert self._scanned is not None and self.diagram.confirm is not None
        stayed = earlier.column("stayed", self._scanned + len(self._asked) - 1)
        left = self._asked[-1][(stayed >= 0) & (stayed < self.diagram.confirm.starts)]
        beside = np.isin(pairs, left)
        rows = np.unique(
            np.concatenate([pairs[beside[:, 1], 0], pairs[beside[:, 0], 1]])
        )
        irregular = np.isin(said[0, rows], (*confirm.CHAOS, phases.QUASIPERIODIC))
        return np.setdiff1d(rows[irregular], np.concatenate(self._asked))

    def _stayed(self, payload: Arrays, tick: Tick) -> np.ndarray:
        """How many perturbed starts of each row kept to the verdict."""
        asked = self.diagram.confirm
        assert asked is not None
        starts, count = asked.starts, len(payload["row"])
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
        points = jax.tree.map(np.asarray, points)
        said = np.repeat(payload["said"].T, starts, axis=1)
        report = lambda steps: tick(steps / (starts * asked.horizon))
        stayed = confirm.kept(self.scan, points, said, asked.horizon, report)
        return stayed.reshape(count, starts).sum(axis=1).astype(np.int16)


def _said(rows: Rows) -> np.ndarray:
    """Phase, largest exponent and its error of each row, (3, rows)."""
    leading = (rows.column(name)[:, 0] for name in ("lyapunov", "lyapunov_stderr"))
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
