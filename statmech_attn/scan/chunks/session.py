"""Chunks that are still to be computed, by this process among others."""

import contextlib
import threading
import time
from collections import deque
from contextlib import ExitStack

from statmech_attn.reporting import Reporter
from statmech_attn.scan.chunks.chunk_computation import ERRORS
from statmech_attn.scan.chunks.chunk_file import Damaged, digest, Stored
from statmech_attn.scan.chunks.claims import Claims
from statmech_attn.scan.chunks.folder import Folder
from statmech_attn.scan.chunks.results import Results, Store
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.work import Arrays, Chunk, Work


GOLDEN = (5**0.5 - 1) / 2  # its multiples, less their whole parts, fill an interval
PAUSE = 0.2, 5.0  # seconds between two looks at what others do, first and later


class Session:
    """Hands out chunks and keeps their results; safe to use from several threads."""

    def __init__(
        self,
        work: Work,
        store: Store,
        points_per_chunk: int,
        report: Reporter,
        stop: Stop,
        *,
        environment: str = "",
        study: str = "",
    ):
        self.work, self.store, self.report, self.stop = work, store, report, stop
        self.finished = False
        self.workers = 1  # that share the chunks
        self.kept = 0  # chunks that this session has stored
        self._per_chunk = points_per_chunk
        self._environment, self._study = environment, study
        self._chunks: list[Chunk] = []
        self._round = -1
        self._todo: deque[Chunk] = deque()
        self._counted: set[int] = set()  # chunks that the progress bar has seen
        self._mine: set[int] = set()
        self._payloads: dict[int, str] = {}  # digests, of chunks under way
        self._lock = threading.RLock()
        self._claims = Claims(store.path) if isinstance(store, Folder) else None

    def __enter__(self) -> "Session":
        with ExitStack() as undone:
            if self._claims is not None:
                undone.enter_context(self._claims)
                self._claims.clean()
            if isinstance(self.store, Folder):
                self.store.tidy()
                self._put_truncated_aside(self.store)
            self.look()
            undone.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        for number in list(self._mine):
            self._release(number)
        if self._claims is not None:
            self._claims.__exit__(*error)

    @property
    def results(self) -> Results:
        """The chunks of all rounds that have begun."""
        return Results(self.store, self._chunks, self.work)

    def next(self, *, wait: bool = True) -> Chunk | None:
        """A chunk to compute now."""
        pause, longest = PAUSE
        while not (self.stop.finish.is_set() or self.finished):
            with self._lock:
                chunk = self._free() or self._search()
            if chunk is not None or not wait:
                return chunk
            if not self.finished:
                self.stop.finish.wait(pause)
                pause = min(1.5 * pause, longest)
        return None

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks of all rounds that have begun."""
        return tuple(self._chunks)

    def progress(self) -> tuple[int, int]:
        """Chunks that are done, and all that are known by now."""
        done, _ = self.store.listing()
        return len(done.intersection(c.number for c in self._chunks)), len(self._chunks)

    def payload(self, chunk: Chunk):
        """What computing a chunk needs of earlier rounds."""
        before = [c for c in self._chunks if c.round < chunk.round]
        payload = self.work.payload(chunk, Results(self.store, before, self.work))
        if chunk == self._chunks[chunk.number]:  # and not a part of it
            self._payloads[chunk.number] = digest(payload)
        return payload

    def require_consistent(self) -> None:
        """Refuse chunks that rest on other results than those that are there.

        An earlier chunk that was computed again, where numbers differ in their last
        digits, may ask for other points or give other states.
        """
        assert isinstance(self.store, Folder)
        for chunk in self._chunks:
            if not chunk.round:
                continue
            # It was so when the chunk was computed, or is found below.
            with contextlib.suppress(*ERRORS):
                self.payload(chunk)
            now = self._payloads.pop(chunk.number, "")
            if self.store.read(chunk, ()).payload != now:
                raise Damaged(
                    f"{self.store.file(chunk.number)}: rests on other results than "
                    "those that are there.",
                    chunk.number,
                )

    def keep(
        self,
        chunk: Chunk,
        arrays: Arrays,
        failures: dict[int, tuple[int, str]],
        seconds: float,
        environment: str | None = None,
    ) -> None:
        """Store a finished chunk."""
        if environment is None:
            environment = self._environment
        payload = self._payloads.pop(chunk.number, "")
        chunk_file = Stored(
            chunk,
            arrays,
            failures,
            seconds,
            time.time(),
            environment,
            self._study,
            payload,
        )
        self.store.write(chunk_file, self._claims.name if self._claims else "")
        with self._lock:
            self.kept += 1
            self._release(chunk.number)

    def drop(self, chunk: Chunk) -> None:
        """Give a chunk back: it was not computed."""
        with self._lock:
            self._counted.discard(chunk.number)
            self._release(chunk.number)

    def _free(self) -> Chunk | None:
        while self._todo:
            chunk = self._todo.popleft()
            if self._take(chunk):
                return self._own(chunk)
        return None

    def _search(self) -> Chunk | None:
        """See what is left; what dead processes had claimed is free again."""
        self.look()
        if free := self._free():
            return free
        if self._claims is None:
            return None
        done, claimed = self.store.listing()
        others = claimed - done - self._mine
        for chunk in self._chunks:
            if chunk.number not in others:
                continue
            assert isinstance(self.store, Folder)
            if self._claims.take_over(self.store.claim(chunk.number)):
                return self._own(chunk)
        return None

    def look(self) -> None:
        """See which chunks are done and which rounds have begun."""
        done, claimed = self.store.listing()
        while not self.finished and all(c.number in done for c in self._chunks):
            self._count(done)
            self._begin_round(done)
        self._count(done)
        busy = done | claimed | self._mine
        todo = [chunk for chunk in self._chunks if chunk.number not in busy]
        self._todo = deque(sorted(todo, key=_scattered))

    def _begin_round(self, done: set[int]) -> None:
        points = self.work.points(self._round + 1, self.results)
        self._round += 1  # only now: another thread may ask again after an error
        if points is None:
            self.finished = True
            return
        first, begun = len(self._chunks), sum(c.size for c in self._chunks)
        self._chunks += [
            Chunk(first + i, self._round, low, min(low + self._per_chunk, points))
            for i, low in enumerate(range(0, points, self._per_chunk))
        ]
        total = self.work.total
        if not self._round:
            points = total or points
        elif total is not None and begun + points <= total:
            return
        else:
            unfinished = sum(c.number not in done for c in self._chunks[first:])
            if unfinished and (
                text := self.work.outlook(points, unfinished, self.workers)
            ):
                self.report.note(text)
        title = self.work.title + (f" {self._round}" if self._round else "")
        self.report.begin(title, points, points)

    def _count(self, done: set[int]) -> None:
        """Move the bar by what was done before, or by others."""
        new = done - self._counted
        for chunk in self._chunks:
            if chunk.number in new:
                self._counted.add(chunk.number)
                self.report.advance(chunk.size)

    def _put_truncated_aside(self, folder: Folder) -> None:
        for number in folder.truncated():
            if place := folder.quarantine(number):
                self.report.note(f"{place}: was truncated; it is computed again.")

    def _take(self, chunk: Chunk) -> bool:
        if self._claims is not None:
            assert isinstance(self.store, Folder)
            claim = self.store.claim(chunk.number)
            if not self._claims.take(claim):
                return False
            if self.store.file(chunk.number).exists():
                Claims.release(claim)
                return False
        return True

    def _own(self, chunk: Chunk) -> Chunk:
        self._mine.add(chunk.number)
        self._counted.add(chunk.number)
        return chunk

    def _release(self, number: int) -> None:
        self._mine.discard(number)
        if isinstance(self.store, Folder):
            Claims.release(self.store.claim(number))


def _scattered(chunk: Chunk) -> float:
    """Order in which chunks are computed: those of any stretch stand for all of them.

    Neighbouring points cost alike, so that the mean time of the first chunks would be
    no forecast for the rest if they were computed one after the other.
    """
    return chunk.number * GOLDEN % 1.0
