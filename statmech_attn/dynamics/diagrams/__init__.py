"""Diagrams of any system: sections, exponents and phases of many points."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics.diagrams import doubtful_verdicts
    from statmech_attn.dynamics.diagrams.axes import Axes, axes_of
    from statmech_attn.dynamics.diagrams.classes import (
        CLASSES,
        classes,
        disagreement,
        UNDECIDED,
    )
    from statmech_attn.dynamics.diagrams.diagram_variables import VARIABLES, variables
    from statmech_attn.dynamics.diagrams.explanations import (
        doubts,
        explain,
        rotation_text,
    )
    from statmech_attn.dynamics.diagrams.hysteresis import compare_sweeps
    from statmech_attn.dynamics.diagrams.points import Points, Verdicts
    from statmech_attn.dynamics.diagrams.refinement import (
        Cells,
        Grid,
        on_grid,
        refine_axis,
    )
    from statmech_attn.dynamics.diagrams.rows import Diagram
    from statmech_attn.dynamics.diagrams.stages import Outcome, run, Scan, SEGMENT
    from statmech_attn.dynamics.diagrams.work import diagram_work, GridWork
    from statmech_attn.dynamics.options import Confirm, Plan, WITHOUT_SECTION


__all__ = [
    "Axes",
    "axes_of",
    "Cells",
    "CLASSES",
    "classes",
    "compare_sweeps",
    "Confirm",
    "doubtful_verdicts",
    "Diagram",
    "diagram_work",
    "disagreement",
    "doubts",
    "explain",
    "Grid",
    "GridWork",
    "on_grid",
    "Outcome",
    "Plan",
    "Points",
    "refine_axis",
    "rotation_text",
    "run",
    "Scan",
    "SEGMENT",
    "UNDECIDED",
    "VARIABLES",
    "variables",
    "Verdicts",
    "WITHOUT_SECTION",
]
lazy.attach(__name__)
