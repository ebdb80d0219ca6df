"""From the tables of a learning study to its task and its grid."""

from statmech_attn.bpkr import Grid, LearningTask
from statmech_attn.kinds import TASKS
from statmech_attn.studies.learning.tables import listed, WidthsTable
from statmech_attn.studies.tables import TaskTable


def learning(table: TaskTable) -> LearningTask:
    """Draw the task of a study."""
    (row,) = TASKS.named(table.name)
    return TASKS.part(row, "draw")(table)


def grid(table: WidthsTable) -> Grid:
    """Widths and temperatures of a study, sorted; a single temperature is no axis."""
    T = table.temperature
    temperatures = sorted(T) if isinstance(T, list) else T
    return Grid(sorted(listed(table.width)), temperatures, table.width_ratios)
