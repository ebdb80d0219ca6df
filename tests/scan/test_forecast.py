"""How the time of a run follows from that of a point."""

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from statmech_attn.batches import runtime, seconds_of, Stage, workers
from statmech_attn.batches.compiled import programs
from statmech_attn.dynamics.diagrams.stages.batch_times import shares_of_parts
from statmech_attn.scan import forecast
from statmech_attn.scan.chunks.work import Pilot
from statmech_attn.scan.forecast import Forecast, WRITING


def seconds(points, per_chunk, workers, **pilot):
    found = Forecast(points, per_chunk, workers, Pilot(1.0, 0, **pilot), 0)
    return found.seconds - WRITING


def test_the_busiest_worker_decides():
    assert seconds(100, 10, 2) == 50
    assert seconds(90, 10, 2) == 50  # nine chunks: five and four
    assert seconds(85, 10, 2) == 45  # the last of nine is half a chunk
    assert seconds(7, 10, 4) == 7


def test_compilation_and_refinement_are_contained():
    assert seconds(100, 10, 2, fixed=3.0) == 53
    assert seconds(100, 10, 2, most=900, expected=300) == 150
    assert seconds(100, 10, 2, later=8.0) == 54


def test_what_the_time_rests_on_is_said():
    pilot = Pilot(1.0, 0, without="phases", fixed=3.0, assumes="0.1 of them move")
    said = Forecast(10, 10, 1, pilot, 0).assumptions()
    assert "0.1 of them move" in said and "3 s of further compilation" in said
    assert said.endswith("not included: phases")
    rounds = pilot._replace(later=4.0, more=20.0)
    said = Forecast(10, 10, 2, rounds, 0).assumptions()
    assert said.endswith("phases take 2 s of it, at most 10 s")
    assert Forecast(10, 10, 1, None, 0).assumptions() == ""


@pytest.mark.parametrize("share", (0.59, 0.61))
def test_a_run_may_take_sixty_per_cent_of_the_memory(tmp_path, monkeypatch, share):
    resident = psutil.Process().memory_info().rss
    monkeypatch.setattr(forecast, "available_memory", lambda: 2**40 - resident)
    found = Forecast(10, 10, 1, None, int(share * 2**40))
    expected = nullcontext()
    if share > 0.6:
        expected = pytest.raises(ValueError, match="more than 60% of the 1024.00 GiB")
    with expected:
        forecast.require_room(found, tmp_path / "out.h5")


def test_programs_that_no_pilot_has_made_take_memory_once_in_a_process():
    """A pilot of basins leaves phases and matching out, with their programs."""
    here = SimpleNamespace(here=True, one_process=True)
    of = lambda **more: forecast._memory(here, 2, Pilot(1.0, 0, 0, **more), 1)
    rest = of(without="phases") - of()
    assert abs(rest - forecast.COMPILATION) < forecast.COMPILATION / 10
    for made in ({"fixed": 1.0}, {"more": 1.0}):  # a pilot that times it has made it
        rest = of(without="phases", **made) - of()
        assert abs(rest) < forecast.COMPILATION / 10


def test_rows_are_written_when_nothing_is_computed_any_more():
    """Three copies of rows in memory while they are written, and one before."""
    here, much = SimpleNamespace(here=True, one_process=True), 2**40
    unknown = forecast._memory(here, 1, None, 100)
    for working, chunk in ((much, much + 100 * 2**30), (0, 300 * 2**30)):
        found = forecast._memory(here, 1, Pilot(1.0, working, 2**30), 100)
        assert abs(found - unknown - chunk) < 2**30


def test_few_points_cost_a_part_of_a_batch():
    stage = Stage(lambda x: 2.0 * x, lambda n: (programs.np.zeros(n),), 136)
    assert stage.part_of_batch(0.0) == 0.0
    assert stage.part_of_batch(136.0) == pytest.approx(1.0)
    # A point in every third batch: one in every third, narrow where there are such.
    narrow = (8 + programs.OVERHEAD) / (136 + programs.OVERHEAD)
    cost = narrow if runtime.has_fused() else 1.0
    assert stage.part_of_batch(1 / 3) == pytest.approx(0.28 * cost, rel=0.2)


def test_points_that_need_longer_windows_share_a_batch():
    undecided = np.arange(40) >= 30
    shares = shares_of_parts(undecided, 4)
    assert shares[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(shares[:-1], 0.25 / 10.25)  # one that was not sampled
    assert shares_of_parts(undecided, 400).size == 5  # parts of eight points
    assert shares_of_parts(undecided[:4], 3) == pytest.approx(1 / 5)


def test_programs_for_few_points_are_forecast_where_there_are_any():
    times = []
    for lanes_of_batch in (8, 32, 136):
        stage = Stage(
            lambda x: 3.0 * x, lambda n: (programs.np.zeros(n),), lanes_of_batch
        )
        times.append(stage.narrow_seconds / stage.program(lanes_of_batch).seconds)
    assert times == pytest.approx([0, 1, 2] if runtime.has_fused() else [0, 0, 0])


def test_a_call_is_timed_while_every_worker_makes_it():
    at_once = []
    barrier = threading.Barrier(workers(), timeout=30)

    def call():
        barrier.wait()
        at_once.append(workers())

    seconds_of(call, repeats=2)
    assert at_once == [1] * 2 * workers()


def test_time_taken_by_other_programs_does_not_count():
    assert seconds_of(lambda: time.sleep(0.2), repeats=1) < 0.1
