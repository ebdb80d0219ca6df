"""Pictures of result files, drawn at the size at which they are printed.

The gallery of the documentation shows every figure with the commands that make it.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.plotting.dynamics.basins import (
        basin_fractions,
        hysteresis,
        lifetimes,
        sweep_samples,
    )
    from statmech_attn.plotting.dynamics.bifurcation import (
        bifurcation_diagram,
        bifurcation_samples,
        entropy_production,
        is_swept,
        lyapunov_spectrum,
        phase_ribbon,
    )
    from statmech_attn.plotting.dynamics.continuation import (
        bifurcation_curves,
        bifurcation_points,
        branches,
        continuation_diagram,
        critical_curves,
    )
    from statmech_attn.plotting.dynamics.covariant_vectors import (
        angle_quantiles,
        covariant_vectors,
    )
    from statmech_attn.plotting.dynamics.indicators import (
        chaos_indicators,
        finite_series,
    )
    from statmech_attn.plotting.dynamics.lyapunov import running_lyapunov
    from statmech_attn.plotting.dynamics.phases import (
        classifier_disagreement,
        describe_phase,
        entropy_map,
        exponent_map,
        phase_diagram,
        phase_map,
    )
    from statmech_attn.plotting.dynamics.plane_basins import plane_basins
    from statmech_attn.plotting.dynamics.sweeps import sweep_diagram
    from statmech_attn.plotting.dynamics.unstable_cycles import unstable_cycles
    from statmech_attn.plotting.frame.axis_words import plain
    from statmech_attn.plotting.frame.choices import Choice, choices
    from statmech_attn.plotting.frame.drawing import (
        draw,
        learning_pictures,
        names,
        offered,
        pictures,
        pruning_pictures,
    )
    from statmech_attn.plotting.frame.readings import readable
    from statmech_attn.plotting.frame.registry import Beside, Picture
    from statmech_attn.plotting.frame.style import (
        DOUBLE,
        FORMATS,
        PHASE_COLOURS,
        save,
        SETTINGS,
        SINGLE,
    )
    from statmech_attn.plotting.learning.ablation import (
        ablation,
        greedy_pruning,
        head_interactions,
    )
    from statmech_attn.plotting.learning.head_scores import head_scores, heads_together
    from statmech_attn.plotting.learning.learning_curve import (
        error_against_examples,
        variance_against_examples,
    )
    from statmech_attn.plotting.learning.one_shot import (
        one_shot_accuracy,
        one_shot_alignment,
        one_shot_kernels,
        one_shot_matrices,
        one_shot_pictures,
    )
    from statmech_attn.plotting.learning.order_parameters import (
        accuracy_against_width,
        alignment,
        evidence_against_width,
        finite_width,
        order_parameter_matrices,
        path_kernels,
    )
    from statmech_attn.plotting.learning.pruning import (
        cumulative_pruning,
        pruned_heads,
        pruning_ranks,
    )
    from statmech_attn.plotting.learning.selection import evidence_and_validation
    from statmech_attn.plotting.learning.several_sets import accuracy_on_sets
    from statmech_attn.plotting.learning.training import training
    from statmech_attn.plotting.learning.training_history import learning_curves
    from statmech_attn.plotting.network.comparison import (
        agreement,
        differences_in_time,
        finite_size,
    )
    from statmech_attn.plotting.network.extensive import (
        capacities,
        capacities_of_spins,
        crosstalk_in_time,
        extensive_agreement,
        overlaps_in_time,
        two_times,
    )
    from statmech_attn.plotting.network.loads import (
        motion_against_size,
        phases_against_load,
    )
    from statmech_attn.plotting.network.response import response_curves
    from statmech_attn.plotting.network.size_scaling import finite_size_collapse
    from statmech_attn.plotting.network.trajectory import (
        phase_planes,
        spectra,
        trajectory_windows,
    )


__all__ = [
    "ablation",
    "accuracy_against_width",
    "accuracy_on_sets",
    "agreement",
    "alignment",
    "angle_quantiles",
    "basin_fractions",
    "Beside",
    "bifurcation_curves",
    "bifurcation_diagram",
    "bifurcation_points",
    "bifurcation_samples",
    "branches",
    "capacities",
    "capacities_of_spins",
    "chaos_indicators",
    "Choice",
    "choices",
    "classifier_disagreement",
    "continuation_diagram",
    "covariant_vectors",
    "critical_curves",
    "crosstalk_in_time",
    "cumulative_pruning",
    "describe_phase",
    "differences_in_time",
    "DOUBLE",
    "draw",
    "entropy_map",
    "entropy_production",
    "error_against_examples",
    "evidence_against_width",
    "evidence_and_validation",
    "exponent_map",
    "extensive_agreement",
    "finite_series",
    "finite_size",
    "finite_size_collapse",
    "finite_width",
    "FORMATS",
    "greedy_pruning",
    "head_interactions",
    "head_scores",
    "heads_together",
    "hysteresis",
    "is_swept",
    "learning_curves",
    "learning_pictures",
    "lifetimes",
    "lyapunov_spectrum",
    "motion_against_size",
    "names",
    "offered",
    "one_shot_accuracy",
    "one_shot_alignment",
    "one_shot_kernels",
    "one_shot_matrices",
    "one_shot_pictures",
    "order_parameter_matrices",
    "overlaps_in_time",
    "plain",
    "path_kernels",
    "PHASE_COLOURS",
    "phase_diagram",
    "phase_map",
    "phase_planes",
    "phase_ribbon",
    "phases_against_load",
    "Picture",
    "pictures",
    "plane_basins",
    "pruned_heads",
    "pruning_pictures",
    "pruning_ranks",
    "readable",
    "response_curves",
    "running_lyapunov",
    "save",
    "SETTINGS",
    "SINGLE",
    "spectra",
    "sweep_diagram",
    "sweep_samples",
    "training",
    "trajectory_windows",
    "two_times",
    "unstable_cycles",
    "variance_against_examples",
]
lazy.attach(__name__)
