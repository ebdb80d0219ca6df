"""From a study file to its result file, once."""

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import xarray as xr

from statmech_attn import storage, studies
from statmech_attn.montecarlo import remove_blocks
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.studies.spec import Study


def blocks_of(output: Path) -> Path:
    """Folder where sampling of weights keeps its draws until `output` is written."""
    return output.with_name(f"{output.name}.blocks")


def compute(
    study: Study,
    text: str,
    output: Path,
    report: Reporter = Silent(),
    *,
    overwrite: bool = False,
) -> xr.Dataset:
    """Compute a study and write its result.

    Args:
        study, text: as `load` returns them.
        overwrite: replace the result of another study.

    Raises:
        ValueError: an impossible setting.
        StorageError: the output is taken or cannot be written; a result that was
            computed before is then kept in a folder that the message names.
    """
    storage.check_output(output, study=text, overwrite=overwrite)
    started, blocks = storage.now(), blocks_of(output)
    dataset = studies.run(study, report, blocks)
    save = partial(storage.write, study=text, keys=study.seeds, started=started)
    try:
        save(output, dataset, overwrite=overwrite)
    except storage.StorageError as error:
        kept = Path(tempfile.mkdtemp(prefix="statmech-attn-")) / output.name
        save(kept, dataset)
        raise storage.StorageError(f"{error} The result is in {kept}.") from None
    if study.keeps_blocks:
        remove_blocks(blocks)
    return dataset


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
    if not holds(output, text):
        report.note(f"computing {output}")
        compute(study, text, output, report, overwrite=overwrite)
    return storage.read(output)


def holds(file: Path, text: str) -> bool:
    """Whether a file exists and holds the result of this study."""
    if not file.exists():
        return False
    return storage.same_study(storage.info(file).study, text)
