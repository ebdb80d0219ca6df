"""From a study file to its result file, once, whatever happens on the way.

    OUT.h5.chunks/    the study while it is computed (`scan.folder`)
    OUT.h5            the result, when all chunks are there

The same call goes on where an earlier one ended, takes part where others are computing,
and has nothing to do where the result is there.
"""

import glob
import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import xarray as xr

from statmech_attn import storage, studies
from statmech_attn.batches import compilations
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import (
    changed_inputs,
    Claims,
    Damaged,
    Engine,
    engines,
    Folder,
    forecast,
    MANIFEST,
    Manifest,
    PAUSE,
    remove,
    remove_leftovers,
    SCHEMA_VERSION,
    Session,
    signals,
    Stop,
    Work,
)
from statmech_attn.storage import StorageError, toml
from statmech_attn.studies.spec import dump, parse
from statmech_attn.studies.tables import StudyTable


class Incomplete(StorageError):
    """Chunks of a folder are missing."""


def chunks_of(output: Path) -> Path:
    """Folder where a study is computed until `output` is written."""
    return output.with_name(f"{output.name}.chunks")


def compute(
    study: StudyTable,
    text: str,
    output: Path,
    report: Reporter = Silent(),
    *,
    overwrite: bool = False,
    engine: Engine | None = None,
    points_per_chunk: int | None = None,
) -> None:
    """Compute a study, or what is left of it, and write its result.

    Args:
        study, text: as `load` returns them.
        overwrite: replace a result that is there, and chunks of another study.
        engine: the threads of this process when omitted.
        points_per_chunk: chosen from a pilot when omitted; numbers do not depend on it.

    Raises:
        ValueError: an impossible setting, or a run that would not fit.
        StorageError: the output is taken or cannot be written; finished chunks stay.
        signals.Unfinished: stopped by Ctrl-C or SIGTERM.
    """
    inputs = study.inputs()
    storage.check_output(output, study=text, overwrite=overwrite, inputs=study.files())
    path = chunks_of(output)
    remove_leftovers(path)
    if not overwrite and output.exists():
        _require_inputs(output, inputs)
    if not overwrite and holds(output, text, inputs):
        _remove_merged(path, output)
        report.note(f"{output} holds this study already")
        return
    stop = Stop()
    with signals.handled(stop, report) as caught:
        engine = engine or engines.local.engine()
        task = _Task(
            study, text, inputs, output, report, overwrite, engine, stop, caught
        )
        try:
            _compute(task, path, points_per_chunk)
        except (FileNotFoundError, StorageError):
            # Where another process has merged the chunks meanwhile, all is well.
            if path.exists() or not holds(output, text, inputs):
                raise


class _Task(NamedTuple):
    """One call of `compute`."""

    study: StudyTable
    text: str
    inputs: dict[str, str]
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
        _remove_other(path, task.text, task.inputs)
    before = compilations.count()
    work, folder = _opened(task, path, per_chunk)
    if not task.overwrite and holds(task.output, task.text, task.inputs):
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
            Folder.open(path).require(task.text, task.inputs)
            if task.caught.first is None:
                task.stop.finish.clear()  # set for the other threads of the engine
            task.report.note(f"{error} It is computed again.")
            folder.quarantine(error.chunk)


def _opened(task: _Task, path: Path, per_chunk: int | None) -> tuple[Work, Folder]:
    """The folder of a study, begun if it is not there, and the work that fits it."""
    if not (path / MANIFEST).exists():
        work = studies.work(task.study)
        folder = _begin(work, task, path, per_chunk)
        if folder.manifest.batch == work.batch:
            return work, folder
    folder = Folder.open(path)
    folder.require(task.text, task.inputs)
    cut = folder.manifest.points_per_chunk
    if per_chunk not in (None, cut):
        task.report.note(f"the chunks that are there have {cut} points: so have all")
    return studies.work(task.study, folder.manifest.batch), folder


def _begin(work: Work, task: _Task, path: Path, per_chunk: int | None) -> Folder:
    found = forecast.forecast(work, task.engine, per_chunk)
    task.report.note(found.text())
    forecast.require_room(found, path)
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        study=task.text,
        study_sha256=storage.study_digest(task.text),
        resolved=dump(task.study.model_dump(exclude_none=True)),
        points_per_chunk=found.points_per_chunk,
        batch=work.batch,
        started=storage.now().isoformat(),
        inputs=task.inputs,
    )
    return Folder.begin(path, manifest)


def _compute_chunks(task: _Task, folder: Folder, work: Work) -> None:
    environment = storage.environment()
    for other in folder.environments().values():
        if changes := storage.differences(other, environment):
            task.report.note(
                "warning: earlier chunks were computed elsewhere, last digits may "
                f"differ: {'; '.join(changes)}"
            )
    with Session(
        work, folder, folder.manifest.points_per_chunk, task.report, task.stop,
        environment=folder.remember(environment), study=folder.manifest.study_sha256,
    ) as session:  # fmt: skip
        build = partial(studies.work, task.study, folder.manifest.batch)
        task.engine.compute(session, build)
        session.look()
    if not session.finished:
        raise task.unfinished(folder.path)
    task.report.finish()


def opened(path: Path) -> tuple[Folder, StudyTable, Work]:
    """A chunk folder with its study; double precision must be on.

    Args:
        path: the folder, or the output that it belongs to.

    Raises:
        StorageError: there is none, it is damaged, or files that its study names
            have changed.
    """
    if not (path / MANIFEST).exists() and chunks_of(path).is_dir():
        path = chunks_of(path)
    folder = Folder.open(path)
    try:
        study = parse(toml.loads(folder.manifest.resolved))
        folder.require(folder.manifest.study, study.inputs())
        return folder, study, studies.work(study, folder.manifest.batch)
    except ValueError as error:
        raise StorageError(f"{path}: its study cannot be read: {error}") from None


def merge(
    folder: Folder,
    work: Work,
    study: StudyTable,
    output: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write the result of a folder in which all chunks are done.

    Raises:
        Incomplete: chunks are missing.
        ValueError: no point has numbers.
        StorageError: chunks are damaged, or the output is taken.
    """
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
    storage.require_no_input(output, study.files())
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
        output, dataset, study=manifest.study, keys=study.seeds,
        started=datetime.fromisoformat(manifest.started), elapsed=elapsed, busy=busy,
        overwrite=overwrite, columns=columns,
    )  # fmt: skip


def _merge_once(task: _Task, folder: Folder, work: Work) -> None:
    """Merge unless another process is at it; then wait for it."""
    claim = folder.path / "merge.claim"
    with folder.claims() as claims:
        while not (claims.take(claim) or claims.take_over(claim)):
            if task.stop.finish.wait(PAUSE[0]):
                raise task.unfinished(folder.path)
        try:
            task.report.note("merging the chunks")
            _remove_unfinished(task.output)
            merge(folder, work, task.study, task.output, overwrite=task.overwrite)
            remove(folder.path)
        finally:
            Claims.release(claim)


def _remove_unfinished(output: Path) -> None:
    """Remove what a kill while merging has left beside the output."""
    target = Path(os.path.realpath(output))
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        if part.is_file():
            part.unlink(missing_ok=True)


def _remove_merged(path: Path, output: Path) -> None:
    """Remove the chunks that a result was made of, if a kill has left them."""
    try:
        started = Folder.open(path).manifest.started
    except StorageError:
        return
    if started == storage.info(output).started:
        remove(path)


def _remove_other(path: Path, text: str, inputs: dict[str, str]) -> None:
    """Remove the chunks of another study."""
    try:
        Folder.open(path).require(text, inputs)
    except StorageError:
        remove(path)


def produce(
    path: Path,
    output: Path,
    settings: Sequence[str] = (),
    report: Reporter = Silent(),
    *,
    overwrite: bool = False,
) -> xr.Dataset:
    """Load a file if it holds the study of `path`, else compute and write it.

    Raises:
        StorageError: the file holds another study, unless `overwrite`.
    """
    study, text = studies.load(path, settings)
    if not holds(output, text, study.inputs()):
        report.note(f"computing {output}")
        compute(study, text, output, report, overwrite=overwrite)
    return storage.read(output)


def holds(file: Path, text: str, inputs: Mapping[str, str] = {}) -> bool:
    """Whether a file exists and holds the result of this study.

    Args:
        inputs: of the study, see `StudyTable.inputs`.
    """
    if not file.exists():
        return False
    same = storage.same_study(storage.info(file).study, text)
    return same and not _changed_inputs(file, inputs)


def _changed_inputs(file: Path, inputs: Mapping[str, str]) -> str:
    """Files that were others when a result was computed, as far as it tells."""
    stored = storage.info(file).attributes.get("inputs")
    return "" if stored is None else changed_inputs(json.loads(stored), inputs)


def _require_inputs(output: Path, inputs: Mapping[str, str]) -> None:
    if changed := _changed_inputs(output, inputs):
        raise StorageError(
            f"{output}: was computed with another {changed}; choose another output, "
            "or pass --overwrite."
        )
