"""What a worker of a dask cluster does: one chunk, in one thread.

A worker builds the work of a study once per process and keeps nothing else: whatever
becomes of it, another one computes the same bits.
"""

import signal
from collections.abc import Mapping
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import cloudpickle

from statmech_attn import storage
from statmech_attn.batches import limited, runtime
from statmech_attn.scan.chunks import chunk_computation
from statmech_attn.scan.chunks.chunk_computation import Computed
from statmech_attn.scan.chunks.folder import MANIFEST
from statmech_attn.scan.chunks.work import Chunk, Stopped, Work


class Order(NamedTuple):
    """A chunk that a worker is to compute.

    Attributes:
        run: name of the run that asks, see `stop`.
        build: builds the work, pickled.
        payloads: of the chunk, or of its units if the whole of it has raised; an error
            where there is none.
        folder: where a kind that keeps blocks puts those of this chunk.
    """

    run: str
    build: bytes
    chunk: Chunk
    payloads: Mapping[Chunk, Any]
    folder: Path | None


class Answer(NamedTuple):
    """A chunk, None if it raised; and `storage.environment` of the worker."""

    computed: Computed | None
    environment: dict[str, str]


def compute(packed: bytes) -> Answer | None:
    """Compute an `Order`, pickled as a whole; None when its run was stopped."""
    order: Order = cloudpickle.loads(packed)
    runtime.prepare()
    work = _work(order.build)

    def payload(chunk: Chunk) -> Any:
        numbers = order.payloads[chunk]
        if isinstance(numbers, Exception):
            raise numbers
        return numbers

    def tick(points: float) -> None:
        if work.keeps_blocks and order.run in _stopped:
            raise Stopped

    if order.run in _stopped:
        return None
    way = (
        chunk_computation.together
        if order.chunk in order.payloads
        else chunk_computation.one_by_one
    )
    with limited(1), _one_at_a_time if work.alone else nullcontext():
        try:
            numbers = way(work, order.chunk, payload, tick, _shared(order.folder))
        except Stopped:
            return None
    return Answer(numbers, storage.environment())


def stop(run: str) -> None:
    """Begin no other chunk of a run in this process."""
    _stopped.add(run)


def dask_setup(worker: object) -> None:
    """Leave signals to the process that started this worker; called by dask.

    A terminal sends Ctrl-C, and a batch system SIGTERM, to every process of a run.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


_stopped: set[str] = set()
_one_at_a_time = Lock()  # for work that is alone, where a worker has several threads
_building = Lock()


def _work(build: bytes) -> Work:
    with _building:
        return _built(build)


@lru_cache(maxsize=1)
def _built(build: bytes) -> Work:
    return cloudpickle.loads(build)()


def _shared(folder: Path | None) -> Path | None:
    """The folder, where this worker sees the file system of the client."""
    if folder is None or not (folder.parent / MANIFEST).exists():
        return None
    return folder
