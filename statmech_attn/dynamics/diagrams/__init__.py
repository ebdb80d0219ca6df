"""Diagrams of any system: sections, exponents and phases of many points."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics.along_parameter.hysteresis import (
        compare_sweeps as compare_sweeps,
    )
    from statmech_attn.dynamics.diagrams.axes import (
        Axes as Axes,
        axes_of as axes_of,
        on_device as on_device,
        one_axis_of as one_axis_of,
    )
    from statmech_attn.dynamics.diagrams.diagram_variables import (
        INDEX as INDEX,
        VARIABLES as VARIABLES,
        variables as variables,
    )
    from statmech_attn.dynamics.diagrams.explanations import (
        doubts as doubts,
        explain as explain,
        listed_parameters as listed_parameters,
        rotation_text as rotation_text,
    )
    from statmech_attn.dynamics.diagrams.point_lists import (
        listed as listed,
        point_list as point_list,
        read_points as read_points,
    )
    from statmech_attn.dynamics.diagrams.refinement import (
        Grid as Grid,
        on_grid as on_grid,
    )
    from statmech_attn.dynamics.diagrams.rows import Diagram as Diagram
    from statmech_attn.dynamics.diagrams.stages.lanes import (
        Points as Points,
        Verdicts as Verdicts,
    )
    from statmech_attn.dynamics.diagrams.stages.outcomes import (
        run as run,
    )
    from statmech_attn.dynamics.diagrams.stages.stages import (
        Scan as Scan,
        SEGMENT as SEGMENT,
    )
    from statmech_attn.dynamics.diagrams.work import (
        diagram_work as diagram_work,
        GridWork as GridWork,
    )
    from statmech_attn.dynamics.motion.classes import (
        CLASSES as CLASSES,
        classes as classes,
        disagreement as disagreement,
        UNDECIDED as UNDECIDED,
    )
    from statmech_attn.dynamics.options import (
        Confirm as Confirm,
        Plan as Plan,
        WITHOUT_SECTION as WITHOUT_SECTION,
    )


lazy.attach(__name__)
