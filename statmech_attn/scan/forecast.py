"""What a long run will take, from a short one; and how many points make a chunk."""

import shutil
from pathlib import Path
from typing import NamedTuple

import psutil

from statmech_attn.batches import available_memory
from statmech_attn.labels import with_count
from statmech_attn.reporting import duration, size
from statmech_attn.scan.chunks.results import first_round
from statmech_attn.scan.chunks.work import Pilot, Work
from statmech_attn.scan.earlier_runs import Place, Timings
from statmech_attn.scan.engines.engine import Engine


CHUNK_SECONDS = 15.0  # what a kill may cost; longer ones pack unsettled points better
# Of the programs of what a pilot leaves out: 390 MiB compiled, 90 MiB from the cache.
COMPILATION = 270 * 2**20
CHUNK_BYTES = 256 * 2**20  # rows of a chunk that are kept in memory
MEMORY_SHARE = 0.6  # of what is available; a forecast knows not all, nor others
WRITING = 1.0  # seconds from the last chunk to the result file: modules, checks
SHARE = 4  # chunks for each worker at least, so that all are busy to the end


class Forecast(NamedTuple):
    """What a run needs; bytes, seconds; None where no pilot could tell.

    Attributes:
        memory: that the run takes of this machine at its largest.
        earlier: what is known from earlier runs.
    """

    points: int
    points_per_chunk: int
    workers: int
    pilot: Pilot | None
    memory: int
    earlier: Timings | None = None

    @property
    def most(self) -> int:
        """Points of all rounds at most."""
        return (self.pilot and self.pilot.most) or self.points

    @property
    def disk(self) -> int:
        """Bytes of the chunks and of the final file, before compression."""
        return 2 * self.most * (self.pilot.stored if self.pilot else 0)

    @property
    def expected(self) -> int:
        """Points of all rounds, as far as the pilot can tell."""
        return max((self.pilot and self.pilot.expected) or 0, self.points)

    @property
    def seconds(self) -> float | None:
        """Seconds from now to the result file, on a machine with nothing else to do."""
        if self.earlier and self.earlier.seconds is not None:
            return self.earlier.seconds / self.workers + WRITING
        if self.pilot is None:
            return None
        points = self._rounded(self.expected - self.points)
        points += self._rounded(self.points)
        seconds = self.pilot.fixed + points * self.pilot.seconds
        return seconds + self.pilot.later / self.workers + WRITING

    def _rounded(self, points: int) -> int:
        """Points of the busiest worker: whole chunks, of which the last is smaller."""
        chunks, rest = divmod(points, self.points_per_chunk)
        rounds, more = divmod(chunks, self.workers)
        last = self.points_per_chunk if more else rest
        return rounds * self.points_per_chunk + last

    def lines(self) -> list[str]:
        """The forecast, what it rests on, and what makes the programs."""
        by = self.pilot.by if self.pilot else ""
        return [line for line in (self.text(), self.assumptions(), by) if line]

    def text(self) -> str:
        """The forecast in one line."""
        chunks = -(-self.points // self.points_per_chunk)
        more = ""
        if self.most > self.points:
            about = f"about {self.expected}, " if self.expected > self.points else ""
            more = f" (refined to {about}at most {self.most})"
        line = (
            f"{self.points} points{more} in {with_count(chunks, 'chunk')} of "
            f"{self.points_per_chunk}, by {with_count(self.workers, 'worker')}"
        )
        if self.seconds is None:
            return line
        line += f": about {duration(self.seconds)}"
        if self.pilot is None:
            return line
        line += f" ({self.workers / self.pilot.seconds:.3g} points/s)"
        line += f", {size(self.memory)} of memory"
        if self.pilot.stored:
            line += f", a file of at most {size(self.most * self.pilot.stored)}"
        return line

    def assumptions(self) -> str:
        """What the time rests on, in one line; nothing where there is no forecast."""
        if self.earlier and self.earlier.seconds is not None:
            return "the time is that of an earlier run of this study on this machine"
        if self.pilot is None:
            return ""
        parts = ["nothing else runs on this machine"]
        if self.earlier:
            parts.append("points take as long as an earlier run has measured")
        if self.pilot.assumes:
            parts.append(self.pilot.assumes)
        if self.pilot.fixed:
            parts.append(f"{duration(self.pilot.fixed)} of further compilation")
        text = f"the time assumes that {', '.join(parts)}"
        without, later = self.pilot.without, self.pilot.later / self.workers
        if self.pilot.more:
            most = duration(self.pilot.more / self.workers)
            return f"{text}; {without} take {duration(later)} of it, at most {most}"
        return f"{text}; not included: {without}" if without else text


def forecast(
    work: Work, engine: Engine, points_per_chunk: int | None, place: Place | None = None
) -> Forecast:
    """Measure a pilot and choose the size of chunks, unless it is given."""
    workers = engine.workers_for(work)
    points = work.total or first_round(work)
    earlier = place and place.read()
    pilot = earlier.pilot if earlier else work.pilot()
    if points_per_chunk is None:
        points_per_chunk = chunk_size(work, workers, pilot)
    memory = _memory(engine, workers, pilot, min(points_per_chunk, points))
    if earlier:
        memory = max(memory, earlier.memory)
    elif place:
        place.write(Timings(pilot, memory))
    return Forecast(points, points_per_chunk, workers, pilot, memory, earlier)


def _memory(engine: Engine, workers: int, pilot: Pilot | None, points: int) -> int:
    """Bytes on this machine while chunks of so many points are computed."""
    resident = psutil.Process().memory_info().rss
    rows = points * (pilot.stored if pilot else 0)
    if not engine.here:
        return resident + 3 * rows
    processes = 1 if engine.one_process else 1 + workers
    working = pilot.memory if pilot else 0
    if pilot and pilot.without and not (pilot.fixed or pilot.more):
        resident += COMPILATION
    chunk = max(working + rows, 3 * rows)  # computed, then written
    return processes * resident + workers * chunk


def chunk_size(work: Work, workers: int, pilot: Pilot | None) -> int:
    """Points of a chunk: some seconds of work, but enough chunks for all workers."""
    if pilot is None:
        return work.batch
    most = -(-first_round(work) // (SHARE * workers))
    most = min(most, int(CHUNK_SECONDS / max(pilot.seconds, 1e-12)) + 1)
    most = min(most, CHUNK_BYTES // max(pilot.stored, 1) + 1)
    return -(-most // work.batch) * work.batch


def require_room(found: Forecast, output: Path) -> None:
    """Refuse a run that would not fit, with the numbers."""
    available = available_memory() + psutil.Process().memory_info().rss
    if found.memory > MEMORY_SHARE * available:
        raise ValueError(
            f"this run needs {size(found.memory)} of memory, more than "
            f"{MEMORY_SHARE:.0%} of the {size(available)} that are available; use "
            "fewer workers or a smaller --chunk."
        )
    free = shutil.disk_usage(output.parent).free
    if found.disk > free:
        raise ValueError(
            f"this run needs up to {size(found.disk)} of disk for its chunks and its "
            f"file, {size(free)} are free in {output.parent}; choose another output, "
            "or store fewer samples."
        )
