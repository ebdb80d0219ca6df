"""Pictures of result files, drawn at the size at which they are printed.

The gallery of the documentation shows every figure with the commands that make it.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.plotting.dynamics.basins import hysteresis as hysteresis
    from statmech_attn.plotting.dynamics.bifurcation import (
        bifurcation_diagram as bifurcation_diagram,
        bifurcation_samples as bifurcation_samples,
        is_swept as is_swept,
        lyapunov_spectrum as lyapunov_spectrum,
        phase_ribbon as phase_ribbon,
    )
    from statmech_attn.plotting.dynamics.continuation import (
        bifurcation_curves as bifurcation_curves,
        continuation_diagram as continuation_diagram,
        critical_curves as critical_curves,
    )
    from statmech_attn.plotting.dynamics.phases import phase_diagram as phase_diagram
    from statmech_attn.plotting.dynamics.sweeps import sweep_diagram as sweep_diagram
    from statmech_attn.plotting.frame.axis_words import plain as plain
    from statmech_attn.plotting.frame.choices import (
        Choice as Choice,
        choices as choices,
    )
    from statmech_attn.plotting.frame.drawing import (
        draw as draw,
        figure as figure,
        names as names,
        offered as offered,
        pictures as pictures,
    )
    from statmech_attn.plotting.frame.readings import readable as readable
    from statmech_attn.plotting.frame.registry import (
        Beside as Beside,
        Picture as Picture,
    )
    from statmech_attn.plotting.frame.style import (
        DOUBLE as DOUBLE,
        FORMATS as FORMATS,
        PHASE_COLOURS as PHASE_COLOURS,
        save as save,
        SETTINGS as SETTINGS,
        SINGLE as SINGLE,
    )
    from statmech_attn.plotting.learning.ablation import ablation as ablation
    from statmech_attn.plotting.learning.head_scores import head_scores as head_scores
    from statmech_attn.plotting.learning.learning_curve import (
        error_against_examples as error_against_examples,
    )
    from statmech_attn.plotting.learning.one_shot import (
        one_shot_pictures as one_shot_pictures,
    )
    from statmech_attn.plotting.network.comparison import (
        agreement as agreement,
        finite_size as finite_size,
    )
    from statmech_attn.plotting.network.extensive import capacities as capacities
    from statmech_attn.plotting.network.loads import (
        phases_against_load as phases_against_load,
    )
    from statmech_attn.plotting.network.trajectory import (
        phase_planes as phase_planes,
        spectra as spectra,
        trajectory_windows as trajectory_windows,
    )


lazy.attach(__name__)
