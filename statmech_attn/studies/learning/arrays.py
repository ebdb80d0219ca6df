"""Examples of a study that reads data and attention of one's own from a file."""

import json

from statmech_attn.bpkr import LearningTask, VALIDATION
from statmech_attn.studies.learning.tables import ArraysTask
from statmech_attn.tasks import arrays


def learning(table: ArraysTask) -> LearningTask:
    """What the file holds, as its heads attend it.

    Of several test sets, one that is called validation chooses temperatures, beside the
    first one.
    """
    how = table.model_dump(exclude={"name", "file", "seed"}, exclude_none=True)
    data = arrays.load(table.file, **how)
    choices = {x: x for x in {VALIDATION} & {*data.sets}} | {"published": arrays.FIRST}
    sizes = {"n_train": len(data.Y), "n_test": len(data.Y_test)}
    described = {"name": table.name} | how | sizes | table.inputs()
    return data._replace(description=json.dumps(described), choices=choices)
