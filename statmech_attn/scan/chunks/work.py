"""What a study hands to whatever computes it: points, in rounds, in chunks.

A study is a list of points, numbered from zero.  They come in rounds: most kinds have
one; where points depend on the results of others (refinement, following an attractor)
the next round begins when all chunks of the rounds before are there.  A chunk is a run
of neighbouring points of one round.  Its arrays have one row for each of its points,

    name -> (points of the chunk, ...)

and do not depend on the chunks that other processes compute, nor on their order, nor
on where the cuts between chunks are: that is what makes results the same to the last
bit for every engine and after every interruption.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable, TYPE_CHECKING

import numpy as np

from statmech_attn.labels import cf_words, Variable
from statmech_attn.storage import Column


if TYPE_CHECKING:  # tables of labels need no data sets
    import xarray as xr


Arrays = dict[str, np.ndarray]
Contents = dict[str, tuple[tuple[str, ...], Any]]  # dimensions and values by name
Tick = Callable[[float], None]  # takes the work done since the last call, in points

COMPUTED, NOT_FINITE, RAISED = 0, 1, 2  # of the stored variable `failure`
FAILURES = ("computed", "not finite", "raised")
FAILURE = Variable(
    "failure",
    "",
    "why a point has no numbers",
    "1",
    "failure",
    flags=cf_words(FAILURES),
    note="where a file has such points only",
)


class Stopped(BaseException):
    """Raised by a tick: drop the chunk that is being computed."""


class Chunk(NamedTuple):
    """Points `first` to `stop - 1` of a round; `number` counts over all rounds."""

    number: int
    round: int
    first: int
    stop: int

    @property
    def size(self) -> int:
        """Number of points."""
        return self.stop - self.first


class Assembled(NamedTuple):
    """A result: a data set, and variables of it that are too large for memory."""

    dataset: "xr.Dataset"
    columns: Mapping[str, Column] = {}

    def loaded(self) -> "xr.Dataset":
        """The result with all variables in memory."""
        read = {n: (c.dims, c.values(), c.attrs) for n, c in self.columns.items()}
        return self.dataset.assign(read)


class Pilot(NamedTuple):
    """A forecast of time and memory from a short run.

    Attributes:
        seconds: for one point, on one of the workers of this process.
        memory: bytes of one worker while it computes.
        stored: bytes of the rows of a point, before compression; 0 if unknown.
        without: what may take more time and is not in `seconds`, in a few words.
        most: points of all rounds at most, where the results decide how many.
        expected: points of all rounds, as far as the pilot can tell.
        fixed: seconds that a run takes beside its points, such as compilations.
        assumes: what the time rests on, in a few words.
        later: seconds on one worker of rounds that only results ask for, as far as the
            pilot can tell, and
        more: at most; `without` says what they do.
        by: what makes the programs, in one line.
    """

    seconds: float
    memory: int
    stored: int = 0
    without: str = ""
    most: int | None = None
    expected: int | None = None
    fixed: float = 0.0
    assumes: str = ""
    later: float = 0.0
    more: float = 0.0
    by: str = ""


@runtime_checkable
class Results(Protocol):
    """The arrays of chunks that are done."""

    def before(self, round: int) -> "Results": ...  # those of the rounds before one

    def column(self, name: str, round: int | None = None) -> np.ndarray:
        """Rows of one array over all points, or over those of one round, in order.

        Args:
            name: of the array.
            round: number of the round; all of them when omitted.
        """
        ...

    def rows(self, name: str, round: int, first: int, stop: int) -> np.ndarray:
        """Rows of one array over some points of a round; reads their chunks only.

        Args:
            name: of the array.
            round: number of the round.
            first: number of the first row.
            stop: number after the last row.
        """
        ...

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """An array of all points so far, a piece at a time.

        Args:
            name: of the array.
        """
        ...

    def like(self, name: str) -> np.ndarray:
        """No row of an array: its type and the shape of its rows.

        Args:
            name: of the array.
        """
        ...

    def names(self) -> list[str]:
        """Names of all arrays."""
        ...

    def failure(self) -> np.ndarray:
        """Why a point has no numbers: an index into `FAILURES` for each."""
        ...

    def reasons(self) -> list[str]:
        """Why points were not computed, the most frequent first."""
        ...


class OneRound(ABC):
    """Work whose points need nothing of each other, as in most kinds."""

    unit = 1
    alone = False
    keeps_blocks = False
    lost = "not finite"
    empty: Mapping[str, int] = {}

    @property
    @abstractmethod
    def total(self) -> int | None: ...

    def points(self, round: int, earlier: "Results") -> int | None:
        return self.total if round == 0 else None

    def payload(self, chunk: Chunk, earlier: "Results") -> Any:
        return None

    def outlook(self, points: int, chunks: int, workers: int) -> str:
        return ""


class Work(Protocol):
    """A study as an engine sees it.

    Attributes:
        title: a word or two for the progress bar.
        batch: points that are computed together; chunks hold a multiple of it.
        unit: neighbouring points that cannot be computed one by one; divides `batch`.
        alone: a process computes one chunk at a time.  Two programs that factorise
            batches of matrices can wait for each other for ever: jaxlib's kernels keep
            a thread of XLA's pool while they wait for tasks in the same pool.
        keeps_blocks: a chunk that is dropped goes on later from where it was.
        lost: why rows that are not finite are so; may be absent.
        decisions: what a run decided for itself when it began, by name: kept in its
            folder, from which `with_decisions` gives the same work again; both may be
            absent.
        total: points of the rounds that are known before, None where only the results
            will tell; further rounds may follow.
        empty: what the integer columns hold for points that were not computed; others
            hold zero, and NaN stands in the floating-point ones.
    """

    title: str
    batch: int
    unit: int
    alone: bool
    keeps_blocks: bool
    empty: Mapping[str, int]

    @property
    def total(self) -> int | None: ...

    def points(self, round: int, earlier: Results) -> int | None:
        """Points of a round, given those before; None when there is no such round.

        Args:
            round: number of the round, from 0.
            earlier: results of the rounds before.
        """
        ...

    def payload(self, chunk: Chunk, earlier: Results) -> Any:
        """What `rows` needs of earlier rounds: small, of plain numpy arrays.

        Args:
            chunk: that is to be computed.
            earlier: results of the rounds before.
        """
        ...

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """The rows of a chunk.

        Args:
            chunk: that is to be computed.
            payload: what `payload` returned for it.
            tick: called now and then; it raises `Stopped` to drop the chunk.
            folder: where a kind that keeps blocks puts those of this chunk.

        Raises:
            ValueError, ArithmeticError, RuntimeError: a point that cannot be computed.
                The engine then computes the units of the chunk one by one.
        """
        ...

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Which rows lack numbers that every computed point has.

        Args:
            arrays: rows of a chunk.
        """
        ...

    def outlook(self, points: int, chunks: int, workers: int) -> str:
        """What a further round will take, in a line; nothing where that is not known.

        Args:
            points: of the round.
            chunks: in which they are computed.
            workers: that compute a chunk each.
        """
        ...

    def pilot(self) -> Pilot | None:
        """Measured in about two seconds; None where only a whole chunk can tell."""
        ...

    def assemble(self, results: Results) -> Assembled:
        """The labelled result.

        Args:
            results: rows of all points.
        """
        ...
