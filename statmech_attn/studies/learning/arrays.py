"""Examples of a study that reads data and attention of one's own from a file."""

import json

from statmech_attn.bpkr import Learning, VALIDATION
from statmech_attn.studies.learning.tables import ArraysTask
from statmech_attn.tasks import arrays


def learning(table: ArraysTask) -> Learning:
    """What the file holds, as its heads attend it.

    Of several test sets, one that is called validation chooses temperatures, beside the
    first one.

    Raises:
        OSError: there is no such file.
        ValueError: it lacks an array, or its arrays do not fit.
    """
    how = table.model_dump(exclude={"name", "file", "seed"}, exclude_none=True)
    given = arrays.load(table.file, **how)
    choices = {VALIDATION: VALIDATION} if VALIDATION in given.sets else {}
    sizes = {"n_train": len(given.Y), "n_test": len(given.Y_test)}
    described = {"name": table.name} | how | sizes | table.inputs()
    return Learning(
        given.xi,
        given.Y,
        given.xi_test,
        given.Y_test,
        given.heads,
        json.dumps(described),
        given.sets,
        choices | {"published": arrays.FIRST},
        names=given.names,
        skip=table.skip,
    )
