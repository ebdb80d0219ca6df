"""Chunks on the workers of a dask cluster, which may come and go.

This process takes chunks from the session, hands them out and writes what comes back;
workers need not see its file system.  It has a few chunks for each worker thread under
way, so that memory is bounded and no worker waits for it.

* A worker that dies: dask gives its chunks to others.
* A chunk that seems to kill its workers is tried again on its own, when all others are
  done; if it kills them again, the run ends with its name.
* A chunk of which dask has lost track, so that nobody computes it: it is handed out
  again.
* A scheduler that dies: the run ends; what is finished is on disk.
"""

import contextlib
import logging
import queue
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cloudpickle
from dask import config
from distributed import Client, Future, KilledWorker, LocalCluster, Security
from distributed.comm.addressing import parse_host_port

from statmech_attn import storage
from statmech_attn.scan.chunks import chunk_computation
from statmech_attn.scan.chunks.folder import Folder
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import TEMPORARY_FAILURE, Unfinished
from statmech_attn.scan.chunks.work import Chunk, Work
from statmech_attn.scan.engines import remote
from statmech_attn.scan.engines.engine import Engine


LOOPBACK = "127.0.0.1"  # whoever reaches a scheduler or a worker can run code there
AHEAD = 2  # chunks under way for each worker thread
TICK = 0.2  # seconds between two looks at what was asked for here
LOOK = 5.0  # seconds between two looks at the cluster
ANSWER = 30.0  # seconds in which a scheduler that lives answers
FETCH = 300.0  # seconds in which a result arrives, or is computed again
IDLE = 30.0  # seconds of silence after which chunks that nobody computes are lost
LONELY = 30.0  # seconds without workers after which the user is told
CONNECT = 10.0  # seconds in which a scheduler that lives lets us in
CLOSE = 5.0  # seconds for taking leave of a scheduler


class Lost(Exception):
    """The scheduler does not answer any more."""


def local_cluster(workers: int) -> Engine:
    """Worker processes on this machine, each computing one chunk at a time."""

    def run(session: Session, build: Callable[[], Work]) -> None:
        with _cluster(workers) as cluster, _connected(cluster) as client:
            compute(session, build, client)

    return Engine(run, workers, one_process=False)


def at(address: str) -> Engine:
    """The workers of a scheduler that runs already."""

    def run(session: Session, build: Callable[[], Work]) -> None:
        with _connected(address) as client:
            compute(session, build, client)

    with _connected(address) as client:
        workers = max(_threads(client), 1)
    return Engine(run, workers, one_process=False, here=False)


def compute(session: Session, build: Callable[[], Work], client: Client) -> None:
    """Compute chunks until none are left or a stop is asked for."""
    address = client.scheduler_info()["address"]
    try:
        _Run(session, build, client, address).finish()
    except Lost:
        place = f" in {session.store.path}" if isinstance(session.store, Folder) else ""
        raise Unfinished(
            f"the scheduler at {address} is gone; finished chunks are kept{place}: the "
            "same command goes on.",
            TEMPORARY_FAILURE,
        ) from None


class _Run:
    """What is under way for a session on a cluster."""

    def __init__(self, session: Session, build, client: Client, address: str):
        self._session, self._client, self._address = session, client, address
        self._name, self._build = uuid.uuid4().hex, cloudpickle.dumps(build)
        self._here = storage.environment()
        self._environments: dict[tuple, str] = {}
        self._running: dict[Future, Chunk] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._repeated: set[Chunk] = set()
        self._suspects: deque[Chunk] = deque()
        self._alone = False
        self._deadly: list[Chunk] = []
        self._error: BaseException | None = None
        self._stopping = False
        self._threads, self._looked, self._lonely = 0, -LOOK, 0.0
        self._heard = time.monotonic()

    def finish(self) -> None:
        try:
            while self._fill():
                self._wait()
        finally:
            for chunk in (*self._running.values(), *self._suspects, *self._deadly):
                self._session.drop(chunk)
        if self._error is not None:
            raise self._error
        if self._deadly:
            raise RuntimeError(
                f"{_named(self._deadly)} ended every worker process that tried; all "
                "other chunks are done; see the logs of the workers (memory?)."
            )

    def _fill(self) -> bool:
        """Keep the workers busy; False when nothing is left to wait for."""
        self._look()
        if self._session.stop.finish.is_set():
            self._stop_workers()
            return bool(self._running) and self._threads > 0
        while not self._alone and len(self._running) < AHEAD * max(self._threads, 1):
            if (chunk := self._session.next(wait=False)) is None:
                break
            self._submit(chunk)
        if self._running:
            return True
        if self._suspects:
            self._alone = True
            self._submit(self._suspects.popleft())
        elif not self._deadly and (chunk := self._session.next()):
            self._submit(chunk)
        return bool(self._running)

    def _submit(self, chunk: Chunk, parts: list[Chunk] | None = None) -> None:
        """Hand out a chunk, or the parts that it is computed in."""
        payloads = {part: self._payload(part) for part in parts or [chunk]}
        folder = self._session.store.blocks(chunk.number)
        folder = folder and folder.absolute()
        order = remote.Order(self._name, self._build, chunk, payloads, folder)
        packed = cloudpickle.dumps(order)
        try:
            future = self._client.submit(remote.compute, packed, pure=False)
        except (OSError, RuntimeError):
            self._session.drop(chunk)
            raise Lost from None
        self._running[future] = chunk
        future.add_done_callback(self._done.put)

    def _payload(self, chunk: Chunk) -> Any:
        try:
            return self._session.payload(chunk)
        except chunk_computation.ERRORS as error:
            return error

    def _wait(self) -> None:
        """Take what has arrived; come back now and then to look at the rest."""
        try:
            future = self._done.get(timeout=TICK)
        except queue.Empty:
            return
        self._heard = time.monotonic()
        if (chunk := self._running.pop(future, None)) is None:
            return  # handed out again
        try:
            self._take(future, chunk)
        except BaseException:
            self._session.drop(chunk)
            raise

    def _take(self, future: Future, chunk: Chunk) -> None:
        self._alone, alone = False, self._alone
        if future.status == "error":
            error: Any = future.exception()
            self._failed(chunk, error, alone)
            return
        if future.status != "finished":
            raise Lost
        try:
            answer: remote.Answer | None = future.result(timeout=FETCH)
        except TimeoutError:
            self._submit(chunk)
            return
        except Exception:  # connections fail in many ways
            raise Lost from None
        if answer is None:
            self._session.drop(chunk)
        elif answer.computed is None:
            self._submit(chunk, chunk_computation.units(chunk, self._session.work.unit))
        else:
            self._keep(chunk, answer)

    def _keep(self, chunk: Chunk, answer: remote.Answer) -> None:
        assert answer.computed is not None
        digest = self._environment(answer.environment)
        self._session.keep(chunk, *answer.computed, environment=digest)
        self._session.report.advance(chunk.size)

    def _failed(self, chunk: Chunk, error: BaseException | None, alone: bool) -> None:
        if not isinstance(error, KilledWorker):
            self._session.drop(chunk)
            self._session.stop.finish.set()
            self._error = self._error or error
        else:
            self._suspect(chunk, alone)

    def _suspect(self, chunk: Chunk, alone: bool) -> None:
        """A chunk that ends workers: to be tried on its own, or tried on its own."""
        (self._deadly if alone else self._suspects).append(chunk)

    def _environment(self, found: dict[str, str]) -> str:
        """Digest of a worker's environment; another one than here is told once."""
        key = tuple(sorted(found.items()))
        if key not in self._environments:
            store = self._session.store
            digest = store.remember(found) if isinstance(store, Folder) else ""
            self._environments[key] = digest
            if changes := storage.differences(self._here, found):
                self._session.report.note(
                    "warning: workers differ from this process, so may last digits: "
                    f"{'; '.join(changes)}"
                )
        return self._environments[key]

    def _look(self) -> None:
        """See who works, now and then."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        try:
            self._threads = _threads(self._client)
            idle = now - self._heard > IDLE and not self._computing()
        except (OSError, RuntimeError):
            raise Lost from None
        if self._threads and idle:
            self._hand_out_again()
        if self._threads:
            self._lonely = now
        elif self._lonely and now - self._lonely > LONELY:
            self._lonely = 0.0
            self._session.report.note(
                f"no workers at {self._address}; waiting for them (Ctrl-C stops)"
            )

    def _computing(self) -> bool:
        """Whether a worker is at one of the chunks."""
        stacks: Any = self._client.call_stack(keys=[f.key for f in self._running])
        return any(stacks.values())

    def _hand_out_again(self) -> None:
        """Submit chunks anew that nobody computes; at the second time suspect them."""
        chunks, futures = [*self._running.values()], [*self._running]
        self._running.clear()
        self._heard = time.monotonic()
        self._client.cancel(futures, force=True)
        self._alone, alone = False, self._alone
        for chunk in chunks:
            if chunk in self._repeated:
                self._suspect(chunk, alone)
                continue
            self._repeated.add(chunk)
            self._submit(chunk)
            self._alone = alone

    def _stop_workers(self) -> None:
        """Let workers finish what they compute, and see whether any are left."""
        if not self._stopping:
            self._stopping = True
            self._looked = -LOOK
            self._look()
            try:
                self._client.run(remote.stop, self._name, on_error="ignore")
            except (OSError, RuntimeError):
                raise Lost from None


def _threads(client: Client) -> int:
    """Threads of all workers, by a question that the scheduler has to answer."""
    threads: Any = client.nthreads(callback_timeout=ANSWER)
    return sum(threads.values())


def _named(chunks: list[Chunk]) -> str:
    """Chunks and their points, in words."""
    some = ", ".join(
        f"chunk {c.number} (points {c.first} to {c.stop - 1})" for c in chunks[:3]
    )
    return some + (f" and {len(chunks) - 3} more" if len(chunks) > 3 else "")


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """Processes with the threads that this one would use: the same bits.

    They listen on the loopback address, which no other computer reaches, and end with
    this process, however it ends.
    """
    options: dict[str, Any] = {
        "memory_limit": 0,
        "dashboard_address": f"{LOOPBACK}:0",
    }
    with (
        config.set({"distributed.nanny.pre-spawn-environ": {}}),
        LocalCluster(
            host=LOOPBACK,
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            silence_logs=logging.CRITICAL,
            preload=[remote.__name__],
            **options,
        ) as cluster,
    ):
        yield cluster


def _require_certificates(where: Any) -> None:
    if not isinstance(where, str) or not where.startswith("tls://"):
        return
    if Security().get_connection_args("client").get("ssl_context") is None:
        raise ValueError(
            f"{where}: needs certificates, which distributed.comm.tls in the "
            "configuration of dask names."
        )


def _require_listener(where: Any) -> None:
    """Raise OSError or ValueError unless something listens at an address.

    A client that finds nobody goes on trying behind the error that it has raised.
    """
    scheme, separator, place = str(where).rpartition("://")
    if isinstance(where, str) and (not separator or scheme in ("tcp", "tls")):
        socket.create_connection(parse_host_port(place), CONNECT).close()


@contextmanager
def _connected(where: Any) -> Iterator[Client]:
    _require_certificates(where)
    try:
        _require_listener(where)
        client = Client(where, set_as_default=False, timeout=CONNECT)
    except (OSError, ValueError) as error:
        raise ValueError(f"no dask scheduler answers at {where}: {error}.") from None
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, RuntimeError):  # the scheduler is gone
            client.close(timeout=CLOSE)
