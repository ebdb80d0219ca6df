"""Chunks on the threads of this process: one at a time for each usable core.

XLA runs compiled calls of different threads side by side, so a CPU computes as many
chunks at once as it has cores.  An accelerator computes one while another is stored.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import xarray as xr

from statmech_attn.batches import limited, on_cpu, workers
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan.chunks import chunk_computation
from statmech_attn.scan.chunks.results import first_round, Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.work import Chunk, Stopped, Tick, Work
from statmech_attn.scan.engines.engine import Engine


def threads() -> int:
    """Chunks that this process computes at once."""
    return workers() if on_cpu() else 2


def engine(count: int | None = None) -> Engine:
    """So many threads of this process; one for each usable core when omitted."""
    local = Engine(
        lambda session, build: compute(session, local.workers_for(session.work)),
        count or threads(),
        one_process=True,
    )
    return local


def compute(session: Session, count: int) -> None:
    """Compute chunks on so many threads until none are left or a stop is asked for."""
    session.workers = count
    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(_worker, session) for _ in range(count)]
        try:
            for future in wait(running, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException as error:
            session.stop.finish.set()
            if not isinstance(error, Exception):  # Ctrl-C in a notebook
                session.stop.drop.set()
            raise


def in_memory(work: Work, report: Reporter = Silent()) -> xr.Dataset:
    """Compute all points of a study and return its result.

    Args:
        work: what a kind computes, a `Work`.
        report: told how far the run is.

    Returns:
        The data set that a run writes to its file, without provenance.

    Example:
        >>> import xarray as xr
        >>> import numpy as np
        >>> from statmech_attn.scan import Assembled, OneRound, Pilot
        >>> class Squares(OneRound):
        ...     title, batch, total = "squares", 1, 5
        ...     pilot = lambda self: Pilot(1e-6, 1000, 8)
        ...     not_finite = lambda self, arrays: np.isnan(arrays["y"])
        ...     def rows(self, chunk, payload, tick, folder):
        ...         return {"y": np.arange(chunk.first, chunk.stop) ** 2.0}
        ...     def assemble(self, results):
        ...         return Assembled(xr.Dataset({"y": ("x", results.column("y"))}))
        >>> in_memory(Squares()).y.values.tolist()
        [0.0, 1.0, 4.0, 9.0, 16.0]
    """
    count = engine().workers_for(work)
    share = -(-first_round(work) // (4 * count))
    per_chunk = -(-share // work.batch) * work.batch
    with Session(work, Memory(), per_chunk, report, Stop()) as session:
        compute(session, count)
    report.finish()
    results = session.results
    results.require_numbers()
    return work.assemble(results).loaded()


def _worker(session: Session) -> None:
    with limited(1):
        while chunk := session.next():
            _compute_one(session, chunk)


def _compute_one(session: Session, chunk: Chunk) -> None:
    tick, uncounted = _ticking(session, chunk)
    try:
        result = chunk_computation.compute(
            session.work,
            chunk,
            session.payload,
            tick,
            session.store.blocks(chunk.number),
        )
        session.keep(chunk, *result)
    except BaseException as error:
        session.drop(chunk)
        if not isinstance(error, Stopped):
            raise
        return
    session.report.advance(uncounted())


def _ticking(session: Session, chunk: Chunk) -> tuple[Tick, Callable[[], float]]:
    """A tick for the progress bar and for stopping; and what it has left untold."""
    told = 0.0
    stop = session.stop

    def tick(points: float) -> None:
        nonlocal told
        if stop.drop.is_set() or (session.work.keeps_blocks and stop.finish.is_set()):
            session.report.advance(-told)
            raise Stopped
        points = min(points, chunk.size - told)  # the work of a chunk is an estimate
        told += points
        session.report.advance(points)

    return tick, lambda: chunk.size - told
