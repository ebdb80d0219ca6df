"""Studies and their result files: computed, resumed, and found again."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from statmech_attn import scan, storage, studies
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import Folder, holds, Job, MANIFEST, Work
from statmech_attn.storage import StorageError, toml
from statmech_attn.studies import code
from statmech_attn.studies.spec import dump, parse
from statmech_attn.studies.tables import StudyTable


def job(study: StudyTable, text: str) -> Job:
    """A study as a job; double precision must be on.

    Args:
        study, text: as `load` returns them.
    """
    return Job(
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
        how: `overwrite`, `engine`, `points_per_chunk`, as `scan.compute` takes them,
            which says what is raised as well.
    """
    scan.compute(job(study, text), output, report, **how)


def opened(path: Path, *, allow_code: bool = False) -> tuple[Folder, StudyTable, Work]:
    """A chunk folder with its study; double precision must be on.

    Args:
        path: the folder, or the output that it belongs to.
        allow_code: run the code that its study names, if it names any.

    Raises:
        StorageError: there is none, it is damaged, files that its study names have
            changed, or it names code.
    """
    if not (path / MANIFEST).exists() and scan.chunks_of(path).is_dir():
        path = scan.chunks_of(path)
    folder = Folder.open(path)
    try:
        study = parse(toml.loads(folder.manifest.resolved))
        folder.require(folder.manifest.study, study.inputs())
        if study.code() and not allow_code:
            raise StorageError(
                f"{path}: its study names the code {code.brief(study.code()[0])}; pass "
                "--allow-code to run it."
            )
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
    """Write the result of a folder in which all chunks are done; see `scan.merge`."""
    text = folder.manifest.study
    scan.merge(folder, work, job(study, text), output, overwrite=overwrite)


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
