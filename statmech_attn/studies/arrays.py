"""Studies of data and attention of one's own, read from a file of arrays."""

import json
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from statmech_attn.studies import digests
from statmech_attn.studies.bpkr_tables import Readout
from statmech_attn.studies.examples import Learning
from statmech_attn.studies.tables import TaskTable


class ArraysTask(TaskTable, frozen=True):
    """[task]: a file with inputs, labels, and heads or attention.

    Attributes:
        name: name of the task.
        file: npz or HDF5 file of arrays, beside the study.
        readout: token that is read: "first", "last" or its number, or their "mean".
        queries: whether queries are "columns" or "rows" of attention matrices.
    """

    name: Literal["arrays"]
    file: Annotated[str, Field(examples=["arrays.npz"])]
    readout: Readout = "last"
    queries: Literal["columns", "rows"] = "columns"

    def files(self) -> list[Path]:
        return [Path(self.file)]

    def inputs(self) -> dict[str, str]:
        path = Path(self.file)
        return {path.name: digests.of_file(path)}

    def beside(self, folder: Path) -> Self:
        return self.model_copy(update={"file": os.path.abspath(folder / self.file)})


def learning(table: ArraysTask) -> Learning:
    """What the file holds, as its heads attend it.

    Raises:
        OSError: there is no such file.
        ValueError: it lacks an array, or its arrays do not fit.
    """
    from statmech_attn.tasks import arrays

    given = arrays.load(table.file, readout=table.readout, queries=table.queries)
    described = table.model_dump(exclude={"file", "seed"}) | table.inputs()
    return Learning(
        given.xi,
        given.Y,
        given.xi_test,
        given.Y_test,
        given.heads,
        json.dumps(described),
        names=given.names,
    )
