"""The study of a file, if something can be computed from it."""

import json
from typing import Any

from statmech_attn import scan, studies
from statmech_attn.explore.result_files.files import File


class Uncomputable(ValueError):
    """A file from which nothing can be computed; why, in one line."""


def study_of(file: File, tree: dict[str, Any], allow_code: bool) -> studies.StudyTable:
    """The study of a file, with the files that it names beside the file.

    `Uncomputable` says why nothing can be computed.
    """
    try:
        study = studies.parse(tree).beside(file.path.parent)
    except ValueError as error:
        raise Uncomputable(f"Nothing can be computed: {error}") from None
    if study.code() and not allow_code:
        raise Uncomputable(
            "The study names code in Python. Start the explorer with --allow-code "
            "to compute with it."
        )
    try:
        inputs = study.inputs()
    except FileNotFoundError as error:
        raise Uncomputable(
            f"Nothing is computed here, because {error.filename} is missing: put it "
            "there and start the explorer again."
        ) from None
    except OSError as error:
        raise Uncomputable(f"{error.filename}: {error.strerror}.") from None
    stored = json.loads(file.dataset.attrs.get("inputs", "{}"))
    if changed := scan.folder.changed_inputs(stored, inputs):
        raise Uncomputable(f"The file was computed with another {changed}.")
    return study
