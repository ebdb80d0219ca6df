"""What a file says of the time it took: of the computation, and of its workers."""

import time
import types

import numpy as np

from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks import session as sessions
from statmech_attn.scan.chunks.results import covered, Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.engines import local


def test_every_second_of_the_computation_counts_once(toy, monkeypatch):
    """Two workers at once for 10 s and 6 s, an hour of pause, one alone for 4 s."""
    work = toy.ToyWork(toy.ToyStudy(points=3))
    clock = types.SimpleNamespace()
    monkeypatch.setattr(sessions, "time", clock)
    with Session(work, Memory(), 1, Silent(), Stop()) as session:
        for finished, seconds in ((1e9, 10.0), (1e9 - 1.0, 6.0), (1e9 + 3600, 4.0)):
            chunk = session.next()
            rows = {"x": np.zeros((1, 3)), "number": np.zeros(1, int)}
            clock.time = lambda now=finished: now
            session.keep(chunk, rows, {}, seconds)
        assert session.results.elapsed_and_busy() == (14.0, 20.0)


def test_progress_ends_with_all_points_and_never_falls(toy):
    """Also where a point raises, so that those of its chunk are computed twice."""
    work = toy.ToyWork(toy.ToyStudy(points=8, raises=[3]))
    told, report = [0.0], Silent()
    report.advance = lambda work: told.append(told[-1] + work)
    with Session(work, Memory(), 8, report, Stop()) as session:
        local.compute(session, 1)
    assert told == sorted(told) and told[-1] == 8


def test_workers_side_by_side_take_less_time_than_all_of_them(toy):
    work = toy.ToyWork(toy.ToyStudy(points=8, seconds=0.1))
    begin = time.perf_counter()
    with Session(work, Memory(), 2, Silent(), Stop()) as session:
        local.compute(session, 4)
    wall = time.perf_counter() - begin
    elapsed, busy = session.results.elapsed_and_busy()
    assert busy >= 0.8  # eight points, a tenth of a second each
    assert 0.2 <= elapsed <= min(busy, wall) + 1e-5


def test_the_first_chunks_stand_for_all_of_them(toy):
    """So that the time left is known early where points of one end cost more."""
    work = toy.ToyWork(toy.ToyStudy(points=100))
    with Session(work, Memory(), 1, Silent(), Stop()) as session:
        numbers = []
        while len(numbers) < 100:
            numbers.append(session.next().number)
            rows = {"x": np.zeros((1, 3)), "number": np.zeros(1, int)}
            session.keep(session.chunks[numbers[-1]], rows, {}, 0.0)
    assert sorted(numbers) == list(range(100))
    for count in (8, 16, 32):
        assert abs(np.mean(numbers[:count]) - 49.5) < 6


def test_time_of_workers_side_by_side_counts_once():
    assert covered([(0.0, 3.0), (5.0, 6.0), (1.0, 4.0)]) == 5.0
