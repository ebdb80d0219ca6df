"""The dask engine against the local one, with a scheduler and workers as processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from statmech_attn import storage
from statmech_attn.reporting import Silent
from statmech_attn.scan import jobs
from statmech_attn.scan.chunks.results import Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop, Unfinished
from statmech_attn.scan.chunks.work import Assembled, RAISED
from statmech_attn.scan.engines import local
from statmech_attn.studies.files import results


cloudpickle = pytest.importorskip("cloudpickle")
distributed = pytest.importorskip("distributed")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers lack this file

from statmech_attn.scan.engines import distributed as engine  # noqa: E402


class Toy:
    """Two rounds of points; a value of the second follows from one of the first.

    Args:
        seconds: that a chunk takes.
        raising, deadly: points that cannot be computed, and that end their process.
        seen: folder in which a chunk leaves the process that begins it.
    """

    title, batch, unit, empty = "toy", 4, 2, {}
    alone = keeps_blocks = False

    def __init__(self, points, seconds=0.0, raising=(), deadly=(), seen=None):
        self._points, self._seconds = points, seconds
        self._raising, self._deadly, self._seen = set(raising), set(deadly), seen

    @property
    def total(self):
        return 2 * self._points

    def points(self, round, earlier):
        return self._points if round < 2 else None

    def payload(self, chunk, earlier):
        if chunk.round == 0:
            return np.zeros(chunk.size)
        return earlier.column("x", 0)[chunk.first : chunk.stop]

    def rows(self, chunk, payload, tick, folder):
        if self._seen:
            (self._seen / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        time.sleep(self._seconds)
        numbers = np.arange(chunk.first, chunk.stop)
        if self._deadly.intersection(numbers.tolist()):
            os._exit(1)
        if self._raising.intersection(numbers.tolist()):
            raise ValueError("has no value")
        return {"x": np.sin(numbers + payload)}

    def not_finite(self, arrays):
        return ~np.isfinite(arrays["x"])

    def pilot(self):
        return None

    def assemble(self, results):
        return Assembled(None)


@contextlib.contextmanager
def processes(*commands, **environment):
    """Run modules of dask; kill what is left of them."""
    where = {"PYTHONPATH": str(Path(results.__file__).parents[2])} | environment
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{command[0]}", *command[1:]],
            env=os.environ | where,
            start_new_session=True,
            **quiet,
        )
        for command in commands
    ]
    try:
        yield started
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def scheduler(folder):
    """A scheduler process and its address."""
    file = folder / "scheduler.json"
    options = ("--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with processes(("scheduler", *options)) as (process,):
        wait_for(file.exists)
        yield process, json.loads(file.read_text())["address"]


def worker(address):
    """A command for `processes`."""
    return ("worker", address, "--nthreads", "1", "--no-dashboard")


def wait_for(condition, seconds=60.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "nothing happened"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers, restarted when they die, and the address of their scheduler."""
    folder = tmp_path_factory.mktemp("cluster")
    with scheduler(folder) as (_, address):
        with processes(*[worker(address)] * 2):
            yield address


@pytest.fixture(scope="module")
def threads():
    """A client of two workers that are threads of this process."""
    options = dict(processes=False, threads_per_worker=1, dashboard_address=None)
    with distributed.Client(n_workers=2, set_as_default=False, **options) as client:
        yield client


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


class Notes(Silent):
    def __init__(self):
        self.notes, self.moved = [], 0.0

    def note(self, text):
        self.notes.append(text)

    def advance(self, work):
        self.moved += work


def computed(build, compute, stop=None, report=None):
    """Chunks by number, computed by an engine."""
    store = Memory()
    with Session(build(), store, 8, report or Notes(), stop or Stop()) as session:
        compute(session)
        assert session.finished or stop
    return store._chunks


def bits(chunks):
    """All that must not depend on the engine."""
    rows = lambda stored: {n: x.tobytes() for n, x in stored.arrays.items()}
    return {n: (rows(c), c.failures) for n, c in chunks.items()}


here = partial(local.compute, count=2)


def on(client, build):
    return lambda session: engine.compute(session, build, client)


def test_results_are_those_of_the_local_engine(threads):
    build = partial(Toy, 50, raising=(3, 30, 31))
    found, report = {}, Notes()
    found["dask"] = computed(build, on(threads, build), report=report)
    found["local"] = computed(build, here)
    assert bits(found["dask"]) == bits(found["local"])
    assert found["dask"][0].failures[2] == (RAISED, "has no value")
    assert report.moved == 100


def test_a_local_cluster_listens_on_the_loopback_address_only(monkeypatch):
    """By our word: what the library's default is has changed before."""
    asked = {}

    def cluster(**options):
        asked.update(options)
        raise OSError

    monkeypatch.setattr(engine, "LocalCluster", cluster)
    with pytest.raises(OSError), engine._cluster(1):
        pass
    assert asked["host"] == "127.0.0.1"
    assert asked["dashboard_address"].startswith("127.0.0.1:")


def test_a_scheduler_behind_tls_needs_certificates():
    with pytest.raises(ValueError, match="tls://127.0.0.1:9: needs certificates"):
        engine.at("tls://127.0.0.1:9")


def test_a_payload_that_raises_marks_its_points(threads):
    build = partial(Toy, 8, raising=range(8))
    found = computed(build, on(threads, build))
    assert bits(found) == bits(computed(build, here))
    assert found[1].failures[0][1].startswith("no point could be computed")


@pytest.mark.slow
def test_workers_that_are_killed_change_nothing(client, tmp_path):
    build = partial(Toy, 40, 0.3, seen=tmp_path)
    killed = []

    def kill():
        for count in (2, 6):
            wait_for(lambda: len(list(tmp_path.iterdir())) > count)
            killed.append(int(max(p.name for p in tmp_path.iterdir()).split("-")[1]))
            os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    found = computed(build, on(client, build))
    thread.join()
    assert len(killed) == 2
    assert len(list(tmp_path.iterdir())) > len(found)  # what died was begun again
    assert bits(found) == bits(computed(partial(Toy, 40), here))


def test_a_stop_finishes_what_is_being_computed_only(threads, tmp_path):
    build, stop = partial(Toy, 400, 1.0, seen=tmp_path), Stop()

    def ask():
        wait_for(lambda: len(list(tmp_path.iterdir())) >= 2)
        stop.finish.set()

    thread = threading.Thread(target=ask)
    thread.start()
    found = computed(build, on(threads, build), stop)
    thread.join()
    assert len(found) == len(list(tmp_path.iterdir())) < 4


def test_an_error_that_no_point_causes_ends_the_run(threads):
    def build():
        raise OSError("patterns.json: not here")

    with pytest.raises(OSError, match="not here"):
        computed(partial(Toy, 50), on(threads, build))


@pytest.mark.slow
def test_a_scheduler_that_is_killed_is_named_and_finished_chunks_stay(tmp_path):
    (tmp_path / "seen").mkdir()
    build = partial(Toy, 400, 0.1, seen=tmp_path / "seen")
    store = Memory()
    with (
        scheduler(tmp_path) as (process, address),
        engine._connected(address) as client,
    ):
        late = threading.Timer(1.0, lambda: started.append(run.__enter__()))
        started, run = [], processes(worker(address))
        late.start()  # a worker that joins when the run is under way

        def kill():
            wait_for(lambda: len(store._chunks) >= 2)
            process.kill()

        threading.Thread(target=kill).start()
        with Session(build(), store, 8, Notes(), Stop()) as session:
            with pytest.raises(Unfinished, match=f"at {address} is gone") as caught:
                engine.compute(session, build, client)
        run.__exit__(None, None, None)
    assert caught.value.exit_code == 75
    assert len(store._chunks) >= 2
    assert not session._mine  # nothing stays claimed


def test_an_address_where_nobody_answers_is_one_line(monkeypatch):
    monkeypatch.setattr(engine, "CONNECT", 0.5)
    with pytest.raises(ValueError, match="no dask scheduler answers at tcp://127"):
        engine.at("tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_chunk_that_kills_its_workers_is_named_after_all_others_are_done():
    build, store = partial(Toy, 40, 0.05, deadly=(17,)), Memory()
    with engine._cluster(2) as cluster, engine._connected(cluster) as client:
        with Session(build(), store, 8, Notes(), Stop()) as session:
            with pytest.raises(
                RuntimeError, match=r"chunk 2 \(points 16 to 23\) ended"
            ):
                engine.compute(session, build, client)
    assert set(store._chunks) == {0, 1, 3, 4}


def test_a_chunk_that_dask_loses_is_handed_out_again(threads, monkeypatch):
    """Seen once beside other work, after workers had been killed: no answer, no end."""
    for name, seconds in (("LOOK", 0.5), ("IDLE", 2.0)):
        monkeypatch.setattr(engine, name, seconds)
    heard = distributed.Future.add_done_callback
    silent = iter([True])
    monkeypatch.setattr(
        distributed.Future,
        "add_done_callback",
        lambda self, f: None if next(silent, False) else heard(self, f),
    )
    build, store = partial(Toy, 40, 0.05), Memory()
    with Session(build(), store, 8, Notes(), Stop()) as session:
        engine.compute(session, build, threads)
    assert set(store._chunks) == set(range(10))  # of two rounds


SCAN = """
kind = "bifurcation"
[network]
patterns = "random-segments"
n_patterns = 1
n_segments = 2
n_bits = 1
context = 1
seed = 1
[parameters]
beta = { start = 1.0, stop = 3.0, num = 100000 }
gamma = 1.0
epsilon = 0.1
[run]
start = "token"
row = 0
transient = 500
steps = 500
extend = false
exponents = 0
strobe_samples = 4
section_samples = 4
"""


def command(study, output, *options):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "statmech_attn.cli",
            "run",
            str(study),
            "-o",
            str(output),
            "--chunk",
            "1360",
            *options,
        ],
        env=os.environ | {"PYTHONPATH": str(Path(results.__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_long_scan_interrupted_five_times_equals_the_local_one(tmp_path):
    study, plain, output = (tmp_path / n for n in ("scan.toml", "plain.h5", "scan.h5"))
    study.write_text(SCAN)
    local_run = command(study, plain)
    _, said = local_run.communicate()
    assert local_run.returncode == 0, said
    folder = jobs.chunks_of(output)
    done = lambda: len(list(folder.glob("chunk-*.h5")))
    dask = ("--engine", "dask", "--workers", "4")
    least, reached = 0, []
    for way in ("kill", "term", "worker", "kill", "term", None):
        run = command(study, output, *dask)
        if way is not None:
            least = max(done(), least) + 8
            wait_for(lambda: done() >= least, 300)
            children = psutil.Process(run.pid).children()
        if way == "worker":
            for child in children[-2:]:
                child.kill()
            wait_for(lambda: done() >= least + 8, 300)
            run.kill()
        elif way is not None:
            run.send_signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
        _, said = run.communicate()
        assert run.returncode == {"term": 75, None: 0}.get(way, -signal.SIGKILL), said
        if way is not None:
            assert not psutil.wait_procs(children, 30)[1]  # no orphans
            reached.append((way, done()))
    print(f"chunks done at each interruption: {reached}")  # noqa: T201
    found, expected = storage.read(output), storage.read(plain)
    assert found.drop_attrs(deep=False).identical(expected.drop_attrs(deep=False))
    assert not folder.exists()
