"""Studies and their result files: computed, resumed, and found again."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from statmech_attn import scan, storage, studies
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import jobs, status, Work
from statmech_attn.storage import Info, StorageError, toml
from statmech_attn.studies.files import user_code
from statmech_attn.studies.files.spec import dump, parse
from statmech_attn.studies.tables import StudyTable


holds = jobs.holds


def job(study: StudyTable, text: str) -> jobs.Job:
    """A study as a job; double precision must be on.

    Args:
        study, text: as `load` returns them.
    """
    return jobs.Job(
        text,
        dump(study.model_dump(exclude_none=True)),
        partial(studies.work, study),
        study.inputs(),
        study.files(),
        study.seeds,
    )


def compute(
    study: StudyTable, text: str, output: Path, report: Reporter = Silent(), **how: Any
) -> None:
    """Compute a study, or what is left of it, and write its result.

    Args:
        study, text: as `load` returns them.
        output: HDF5 file; chunks are stored beside it.
        report: told how far the computation is.
        how: `overwrite`, `engine`, `points_per_chunk`, as `scan.jobs.compute` takes
            them, which says what is raised as well.

    Example:
        `compute(*load("scan.toml"), Path("scan.h5"))`
    """
    jobs.compute(job(study, text), output, report, **how)


class Places(NamedTuple):
    """Where a run keeps what it has, and what it writes at the end."""

    output: Path
    chunks: Path

    @property
    def begun(self) -> bool:
        """Whether there is a folder of chunks."""
        return (self.chunks / scan.folder.MANIFEST).exists()


def places(path: Path) -> Places:
    """The places of a run, of which one is given; neither need be there.

    Example:
        >>> places(Path("scan.h5.chunks")) == places(Path("scan.h5"))
        True

    Raises:
        StorageError: no name.
    """
    if path.name in ("", ".."):
        raise StorageError(f"{str(path)!r}: is no name of a run.")
    if (path / scan.folder.MANIFEST).exists() or path.suffix == ".chunks":
        return Places(path.with_name(path.name.removesuffix(".chunks")), path)
    return Places(path, jobs.chunks_of(path))


class Progress(NamedTuple):
    """How far a run is.

    Attributes:
        state: "not begun", "running", "stopped", "computed" (all chunks are done, and
            not merged yet) or "finished" (the output is there).
        chunks: None where there is no folder of chunks.
        started: of the computation; None before it.
        result: what the output says of itself; None where it is not there.
    """

    state: str
    places: Places
    chunks: status.Status | None = None
    started: str | None = None
    result: Info | None = None


def progress(path: Path, *, allow_code: bool = False) -> Progress:
    """How far a run is; double precision must be on where there are chunks.

    Args:
        path: the output, or its folder of chunks.
        allow_code: whether code outside the folder of the study may run.

    Raises:
        StorageError: the file is of something else, or the folder is damaged.
    """
    where = places(path)
    result = storage.info(where.output) if where.output.exists() else None
    folder = scan.folder.Folder.open(where.chunks) if where.begun else None
    if result and (folder is None or folder.manifest.started == result.started):
        return Progress("finished", where, None, result.started, result)
    if folder is None:
        return Progress("not begun", where)
    _, _, work = opened(where.chunks, allow_code=allow_code)
    chunks = status.status(folder, work)
    state = "running" if chunks.workers else "stopped"
    if chunks.complete and not chunks.workers:
        state = "computed"
    return Progress(state, where, chunks, folder.manifest.started, result)


def opened(
    path: Path, *, allow_code: bool = False
) -> tuple[scan.folder.Folder, StudyTable, Work]:
    """A chunk folder with its study; double precision must be on.

    Args:
        path: the folder, or the output that it belongs to.
        allow_code: run the code that its study names, if it names any.

    Raises:
        StorageError: there is none, it is damaged, files that its study names have
            changed, or it names code.
    """
    path = places(path).chunks
    folder = scan.folder.Folder.open(path)
    try:
        study = parse(toml.loads(folder.manifest.resolved))
        folder.require(folder.manifest.study, study.inputs())
        if study.code() and not allow_code:
            raise StorageError(
                f"{path}: its study names the code "
                f"{user_code.brief(study.code()[0])}; pass --allow-code to run it."
            )
        return folder, study, folder.work(partial(studies.work, study))
    except ValueError as error:
        raise StorageError(f"{path}: its study cannot be read: {error}") from None


def merge(
    folder: scan.folder.Folder,
    work: Work,
    study: StudyTable,
    output: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write the result of a folder in which all chunks are done, as `jobs.merge`."""
    text = folder.manifest.study
    jobs.merge(folder, work, job(study, text), output, overwrite=overwrite)


def produce(
    path: Path,
    output: Path,
    settings: Sequence[str] = (),
    report: Reporter = Silent(),
    *,
    overwrite: bool = False,
) -> xr.Dataset:
    """Load a file if it holds the study of `path`; otherwise compute and write it.

    Args:
        path: study file (TOML).
        output: HDF5 file.
        settings: such as "run.steps=500", which override keys of the file.
        report: told how far the computation is.
        overwrite: replace a file of this package that holds another study.

    Returns:
        The result.

    Raises:
        StorageError: the file holds another study, unless `overwrite`.

    Example:
        `scan = produce(Path("scan.toml"), Path("scan.h5"), ["run.steps=500"])`
    """
    study, text = studies.load(path, settings)
    if not jobs.holds(output, text, study.inputs()):
        report.note(f"computing {output}")
        compute(study, text, output, report, overwrite=overwrite)
    return storage.read(output)
