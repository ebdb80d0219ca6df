"""A study that was begun on this machine before is not timed again."""

import jax
import pytest
import toy_runs

from statmech_attn import storage, studies
from statmech_attn.scan import earlier_runs, forecast, jobs
from statmech_attn.scan.chunks.folder import Folder
from statmech_attn.scan.engines import local


@pytest.fixture
def store(tmp_path):
    """An empty store of programs for one test."""
    name = "jax_compilation_cache_dir"
    before = getattr(jax.config, name)
    jax.config.update(name, str(tmp_path / "store"))
    yield tmp_path / "store" / earlier_runs.FOLDER
    jax.config.update(name, before)


@pytest.fixture
def timed(toy, monkeypatch):
    """How often a pilot was measured."""
    measured, pilot = [], toy.ToyWork.pilot
    monkeypatch.setattr(
        toy.ToyWork, "pilot", lambda self: (measured.append(1), pilot(self))[1]
    )
    return measured


def chunks_take(monkeypatch, seconds):
    """Lets all chunks take the last of these times, on one worker."""
    times = [seconds]
    monkeypatch.setattr(jobs._Clock, "seconds", lambda self, workers: times[-1])
    return times


def forecast_of(path, workers=1):
    study, text = studies.load(path)
    work, engine = studies.work(study), local.engine(workers)
    place = earlier_runs.place(work, workers, text, study.inputs())
    return forecast.forecast(work, engine, None, place)


def test_a_second_run_takes_its_pilot_from_the_first(
    toy, timed, study, tmp_path, store
):
    path = study(seconds=0.002)
    first = toy_runs.compute(path, tmp_path / "a.h5")
    second = toy_runs.compute(path, tmp_path / "b.h5")
    assert len(timed) == 1
    said = "the time is that of an earlier run of this study on this machine"
    assert said not in first and said in second
    assert toy_runs.equal(tmp_path / "a.h5", storage.read(tmp_path / "b.h5"))


def test_a_study_that_was_only_begun_is_not_timed_again(toy, timed, study, store):
    first, second = forecast_of(study()), forecast_of(study())
    assert len(timed) == 1
    assert (second.pilot, second.seconds) == (first.pilot, first.seconds)
    assert second.memory >= first.memory
    assert "an earlier run" in second.assumptions()


def test_the_time_is_that_of_all_chunks(toy, study, tmp_path, store, monkeypatch):
    path, clock = study(), chunks_take(monkeypatch, 12.0)
    toy_runs.compute(path, tmp_path / "a.h5", engine=local.engine(2))
    assert forecast_of(path, 2).seconds == 12.0 / 2 + forecast.WRITING
    clock.append(8.0)  # a run on a machine that was less busy
    toy_runs.compute(path, tmp_path / "b.h5", engine=local.engine(2))
    assert forecast_of(path, 2).seconds == 8.0 / 2 + forecast.WRITING


def test_a_part_of_the_chunks_says_nothing_of_all(
    toy, study, tmp_path, store, monkeypatch
):
    """A run that goes on where an earlier one was killed leaves the pilot alone."""
    path, output = study(), tmp_path / "b.h5"
    clock = chunks_take(monkeypatch, 12.0)
    toy_runs.compute(path, tmp_path / "a.h5", engine=local.engine(1))
    with monkeypatch.context() as patch:
        patch.setattr(storage, "write", toy_runs.stop_before_merging)
        with pytest.raises(storage.StorageError):
            toy_runs.compute(path, output, engine=local.engine(1))
    Folder.open(toy_runs.chunks(output)).file(0).unlink()
    clock.append(1.0)
    toy_runs.compute(path, output, engine=local.engine(1))
    assert forecast_of(path).seconds == 12.0 + forecast.WRITING


@pytest.mark.parametrize("damage", [lambda x: x[:40], lambda x: x[:-1] + b"?"])
def test_a_damaged_entry_is_measured_anew(toy, timed, study, store, damage):
    first = forecast_of(study())
    (entry,) = store.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    with pytest.warns(UserWarning, match="is damaged, .* made anew"):
        assert forecast_of(study()).pilot == first.pilot
    assert len(timed) == 2
    assert forecast_of(study()).pilot == first.pilot
    assert len(timed) == 2


def test_another_machine_study_or_number_of_workers_is_timed(
    toy, timed, study, store, monkeypatch
):
    forecast_of(study())
    forecast_of(study(), workers=2)
    forecast_of(study(points=41))
    here = storage.environment()
    monkeypatch.setattr(storage, "environment", lambda: {**here, "cpu_model": "other"})
    forecast_of(study(points=41))
    assert len(timed) == 4


def test_without_a_store_every_run_is_timed(toy, timed, study, store):
    jax.config.update("jax_compilation_cache_dir", None)
    forecast_of(study())
    forecast_of(study())
    assert len(timed) == 2
