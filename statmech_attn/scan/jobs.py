"""From a job to its result file, once, whatever happens on the way.

    OUT.h5.chunks/    the job while it is computed (`scan.folder`)
    OUT.h5            the result, when all chunks are there

The same call goes on where an earlier one ended, takes part where others are computing,
and has nothing to do where the result is there.
"""

import glob
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from statmech_attn import storage
from statmech_attn.batches import compilations, on_cpu
from statmech_attn.options import Count
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import earlier_runs, forecast
from statmech_attn.scan.chunks import signals
from statmech_attn.scan.chunks.chunk_file import Damaged
from statmech_attn.scan.chunks.claims import Claims
from statmech_attn.scan.chunks.folder import (
    changed_inputs,
    Folder,
    MANIFEST,
    Manifest,
    remove,
    remove_leftovers,
    SCHEMA_VERSION,
)
from statmech_attn.scan.chunks.session import PAUSE, Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.work import Work
from statmech_attn.scan.engines import local
from statmech_attn.scan.engines.engine import Engine
from statmech_attn.storage import StorageError


class Incomplete(StorageError):
    """Chunks of a folder are missing."""


def chunks_of(output: Path) -> Path:
    """Folder where a study is computed until `output` is written."""
    return output.with_name(f"{output.name}.chunks")


class Job(NamedTuple):
    """A computation to be run in chunks, with what identifies it.

    Attributes:
        text: of the study, in TOML; a result that holds the same is this one.
        resolved: the study with all defaults, in TOML.
        build: batch, or None -> the work.  Pickled by engines with other processes.
        inputs: SHA-256 of what the study reads, by name.
        files: that the study names, which no output may replace.
        keys: random keys or seeds by name.
    """

    text: str
    resolved: str
    build: Callable[[int | None], Work]
    inputs: dict[str, str] = {}
    files: Sequence[Path] = ()
    keys: Mapping[str, Any] | None = None


def compute(
    job: Job,
    output: Path,
    report: Reporter = Silent(),
    *,
    overwrite: bool = False,
    engine: Engine | None = None,
    points_per_chunk: Count | None = None,
) -> None:
    """Compute a job, or what is left of it, and write its result.

    `overwrite` replaces a result that is there, and chunks of another study.  Points in
    a chunk, on which no number depends, are chosen from a pilot when omitted.
    """
    storage.check_output(output, study=job.text, overwrite=overwrite, inputs=job.files)
    path = chunks_of(output)
    remove_leftovers(path)
    if not overwrite and output.exists():
        stored = storage.info(output)
        _require_inputs(stored, job.inputs)
        if storage.same_study(stored.study, job.text):
            _remove_merged(path, stored.started)
            report.note(f"{output} already holds the result of this study")
            return
    stop = Stop()
    with signals.handled(stop, report) as caught:
        engine = engine or local.engine()
        task = _Task(job, output, report, overwrite, engine, stop, caught)
        try:
            _compute(task, path, points_per_chunk)
        except (FileNotFoundError, StorageError):
            # Where another process has merged the chunks meanwhile, all is well.
            if path.exists() or not holds(output, job.text, job.inputs):
                raise


class _Task(NamedTuple):
    """One call of `compute`."""

    job: Job
    output: Path
    report: Reporter
    overwrite: bool
    engine: Engine
    stop: Stop
    caught: signals.Signals

    def unfinished(self, path: Path) -> signals.Unfinished:
        return signals.Unfinished(
            f"stopped; finished chunks are in {path}: the same command goes on.",
            self.caught.exit_code,
        )


def _compute(task: _Task, path: Path, per_chunk: int | None) -> None:
    if task.overwrite and path.exists():
        _remove_other(path, task.job.text, task.job.inputs)
    before = compilations.count()
    work, folder = _opened(task, path, per_chunk)
    if not task.overwrite and holds(task.output, task.job.text, task.job.inputs):
        remove(path)  # another process has merged the chunks since the first look
        return
    while True:
        try:
            _compute_chunks(task, folder, work)
            task.report.note(str(compilations.count().since(before)))
            _merge_once(task, folder, work)
            return
        except Incomplete:
            continue  # another process has found a damaged chunk
        except Damaged as error:
            Folder.open(path).require(task.job.text, task.job.inputs)
            if task.caught.first is None:
                task.stop.finish.clear()  # set for the other threads of the engine
            task.report.note(f"{error} It is computed again.")
            folder.quarantine(error.chunk)


def _opened(task: _Task, path: Path, per_chunk: int | None) -> tuple[Work, Folder]:
    """The folder of a study, begun if it is not there, and the work that fits it."""
    if not (path / MANIFEST).exists():
        work = task.job.build(None)
        folder = _begin(work, task, path, per_chunk)
        if (folder.manifest.batch, folder.manifest.decisions) == _kept_of(work):
            return work, folder
    folder = Folder.open(path)
    folder.require(task.job.text, task.job.inputs)
    cut = folder.manifest.points_per_chunk
    if per_chunk not in (None, cut):
        task.report.note(f"--chunk has no effect: the chunks begun have {cut} points")
    return folder.work(task.job.build), folder


def _kept_of(work: Work) -> tuple[int, dict[str, str]]:
    """What a run keeps of the work that it begins with."""
    return work.batch, dict(getattr(work, "decisions", {}))


def _begin(work: Work, task: _Task, path: Path, per_chunk: int | None) -> Folder:
    place = _place(task, work)
    estimate = forecast.forecast(work, task.engine, per_chunk, place)
    for line in estimate.lines():
        task.report.note(line)
    forecast.require_room(estimate, path)
    batch, decisions = _kept_of(work)
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        study=task.job.text,
        study_sha256=storage.study_digest(task.job.text),
        resolved=task.job.resolved,
        points_per_chunk=estimate.points_per_chunk,
        batch=batch,
        started=storage.now().isoformat(),
        inputs=task.job.inputs,
        decisions=decisions,
    )
    return Folder.begin(path, manifest)


def _place(task: _Task, work: Work) -> earlier_runs.Place:
    """Where the times of this job are kept."""
    workers = task.engine.workers_for(work)
    return earlier_runs.place(work, workers, task.job.text, task.job.inputs)


def _compute_chunks(task: _Task, folder: Folder, work: Work) -> None:
    environment = storage.environment()
    for other in folder.environments().values():
        if changes := storage.differences(other, environment):
            task.report.note(
                "warning: earlier chunks were computed elsewhere, last digits may "
                f"differ: {'; '.join(changes)}"
            )
    with Session(
        work,
        folder,
        folder.manifest.points_per_chunk,
        task.report,
        task.stop,
        environment=folder.remember(environment),
        study=folder.manifest.study_sha256,
    ) as session:
        clock = _Clock()
        task.engine.compute(session, partial(folder.work, task.job.build))
        session.look()
        whole = session.finished and session.kept == len(session.chunks)
        if whole and task.engine.one_process:
            _keep_time(_place(task, work), clock.seconds(session.workers))
    if not session.finished:
        raise task.unfinished(folder.path)
    task.report.finish()


class _Clock:
    """The time of all chunks on one worker."""

    def __init__(self) -> None:
        self._begun = time.perf_counter(), time.process_time()
        self._programs = compilations.count()

    def seconds(self, workers: int) -> float | None:
        """Seconds; None where programs were compiled that the next run will read."""
        clock, processors = self._begun
        programs = compilations.count().since(self._programs)
        if programs.compiled > programs.read:
            return None
        elapsed = workers * (time.perf_counter() - clock)
        if on_cpu():  # whose processors do not count what other programs take
            elapsed = min(elapsed, time.process_time() - processors)
        return elapsed


def _keep_time(place: earlier_runs.Place, seconds: float | None) -> None:
    """Keep the time of all chunks, the least of all runs, for the next forecast."""
    earlier = place.read()
    if earlier is None:
        return
    if seconds is not None:
        least = min(earlier.seconds or seconds, seconds)
        earlier = earlier._replace(seconds=least)
    elif earlier.pilot is not None:
        earlier = earlier._replace(pilot=earlier.pilot._replace(fixed=0.0))
    place.write(earlier)


def merge(
    folder: Folder,
    work: Work,
    job: Job,
    output: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write the result of a folder in which all chunks are done."""
    manifest = folder.manifest
    session = Session(work, folder, manifest.points_per_chunk, Silent(), Stop())
    session.look()
    if not session.finished:
        done, total = session.progress()
        raise Incomplete(
            f"{folder.path}: {total - done} of {total} chunks are missing; run the "
            "study again to compute them."
        )
    session.require_consistent()
    storage.require_no_input(output, job.files)
    results = session.results
    results.require_numbers()
    dataset, columns = work.assemble(results)
    environments = folder.environments()
    if len(environments) > 1:
        dataset = dataset.assign_attrs(environments=json.dumps(environments))
    if manifest.inputs:
        dataset = dataset.assign_attrs(inputs=json.dumps(manifest.inputs))
    elapsed, busy = results.elapsed_and_busy()
    storage.write(
        output,
        dataset,
        study=manifest.study,
        keys=job.keys,
        started=datetime.fromisoformat(manifest.started),
        elapsed=elapsed,
        busy=busy,
        overwrite=overwrite,
        columns=columns,
    )


def _merge_once(task: _Task, folder: Folder, work: Work) -> None:
    """Merge unless another process is at it; then wait for it."""
    claim = folder.path / "merge.claim"
    with folder.claims() as claims:
        while not (claims.take(claim) or claims.take_over(claim)):
            if task.stop.finish.wait(PAUSE[0]):
                raise task.unfinished(folder.path)
        try:
            task.report.note("writing the file from its chunks")
            _remove_unfinished(task.output)
            merge(folder, work, task.job, task.output, overwrite=task.overwrite)
            remove(folder.path)
        finally:
            Claims.release(claim)


def _remove_unfinished(output: Path) -> None:
    """Remove what a kill while merging has left beside the output."""
    target = Path(os.path.realpath(output))
    for beside in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        if beside.is_dir() and {p.name for p in beside.iterdir()} <= {target.name}:
            (beside / target.name).unlink(missing_ok=True)
            beside.rmdir()


def _remove_merged(path: Path, started: str | None) -> None:
    """Remove the chunks that a result was made of, if a kill has left them."""
    try:
        merged = Folder.open(path).manifest.started == started
    except StorageError:
        return
    if merged:
        remove(path)


def _remove_other(path: Path, text: str, inputs: dict[str, str]) -> None:
    """Remove the chunks of another study."""
    try:
        Folder.open(path).require(text, inputs)
    except StorageError:
        remove(path)


def holds(file: Path, text: str, inputs: Mapping[str, str] = {}) -> bool:
    """Whether a file exists and holds the result of this study."""
    if not file.exists():
        return False
    stored = storage.info(file)
    same = storage.same_study(stored.study, text)
    return same and not _changed_inputs(stored, inputs)


def _changed_inputs(stored: storage.Info, inputs: Mapping[str, str]) -> str:
    """Files that were others when a result was computed, as far as it tells."""
    digests = stored.attributes.get("inputs")
    return "" if digests is None else changed_inputs(json.loads(digests), inputs)


def _require_inputs(stored: storage.Info, inputs: Mapping[str, str]) -> None:
    if changed := _changed_inputs(stored, inputs):
        raise StorageError(
            f"{stored.path}: was computed with another {changed}; choose another "
            "output, or pass --overwrite."
        )
