"""Diagrams of any system: sections, exponents and phases of many points."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics.along_parameter.hysteresis import (
        compare_sweeps as compare_sweeps,
    )
    from statmech_attn.dynamics.diagrams.axes import (
        Axes as Axes,
        axes_of,
        on_device,
        one_axis_of,
    )
    from statmech_attn.dynamics.diagrams.diagram_variables import (
        INDEX,
        VARIABLES,
        variables,
    )
    from statmech_attn.dynamics.diagrams.explanations import (
        doubts,
        explain as explain,
        listed_parameters,
        rotation_text,
    )
    from statmech_attn.dynamics.diagrams.point_lists import (
        listed,
        point_list,
        read_points,
    )
    from statmech_attn.dynamics.diagrams.refinement import Grid, on_grid as on_grid
    from statmech_attn.dynamics.diagrams.rows import Diagram as Diagram
    from statmech_attn.dynamics.diagrams.stages.lanes import Points as Points, Verdicts
    from statmech_attn.dynamics.diagrams.stages.outcomes import run as run
    from statmech_attn.dynamics.diagrams.stages.stages import Scan as Scan, SEGMENT
    from statmech_attn.dynamics.diagrams.work import (
        diagram_work as diagram_work,
        GridWork,
    )
    from statmech_attn.dynamics.motion.classes import (
        CLASSES,
        classes,
        disagreement,
        UNDECIDED,
    )
    from statmech_attn.dynamics.options import (
        Confirm as Confirm,
        Plan as Plan,
        WITHOUT_SECTION as WITHOUT_SECTION,
    )


lazy.attach(__name__)
