"""Pictures of result files, drawn at the size at which they are printed.

The gallery of the documentation shows every figure with the commands that make it.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.plotting.dynamics.basins import (
        basin_fractions as basin_fractions,
        hysteresis as hysteresis,
        lifetimes as lifetimes,
    )
    from statmech_attn.plotting.dynamics.bifurcation import (
        bifurcation_diagram as bifurcation_diagram,
        bifurcation_samples as bifurcation_samples,
        entropy_production as entropy_production,
        is_swept as is_swept,
        lyapunov_spectrum as lyapunov_spectrum,
        phase_ribbon as phase_ribbon,
    )
    from statmech_attn.plotting.dynamics.continuation import (
        bifurcation_curves as bifurcation_curves,
        bifurcation_points as bifurcation_points,
        branches as branches,
        continuation_diagram as continuation_diagram,
        critical_curves as critical_curves,
    )
    from statmech_attn.plotting.dynamics.covariant_vectors import (
        angle_quantiles as angle_quantiles,
        covariant_vectors as covariant_vectors,
    )
    from statmech_attn.plotting.dynamics.indicators import (
        chaos_indicators as chaos_indicators,
        finite_series as finite_series,
    )
    from statmech_attn.plotting.dynamics.lyapunov import (
        running_lyapunov as running_lyapunov,
    )
    from statmech_attn.plotting.dynamics.phases import (
        classifier_disagreement as classifier_disagreement,
        describe_phase as describe_phase,
        entropy_map as entropy_map,
        exponent_map as exponent_map,
        phase_diagram as phase_diagram,
        phase_map as phase_map,
    )
    from statmech_attn.plotting.dynamics.plane_basins import (
        plane_basins as plane_basins,
    )
    from statmech_attn.plotting.dynamics.sweeps import sweep_diagram as sweep_diagram
    from statmech_attn.plotting.dynamics.unstable_cycles import (
        unstable_cycles as unstable_cycles,
    )
    from statmech_attn.plotting.frame.axis_words import plain as plain
    from statmech_attn.plotting.frame.choices import (
        Choice as Choice,
        choices as choices,
    )
    from statmech_attn.plotting.frame.drawing import (
        draw as draw,
        learning_pictures as learning_pictures,
        names as names,
        offered as offered,
        pictures as pictures,
        pruning_pictures as pruning_pictures,
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
    from statmech_attn.plotting.learning.ablation import (
        ablation as ablation,
        greedy_pruning as greedy_pruning,
        head_interactions as head_interactions,
    )
    from statmech_attn.plotting.learning.head_scores import (
        head_scores as head_scores,
        heads_together as heads_together,
    )
    from statmech_attn.plotting.learning.learning_curve import (
        error_against_examples as error_against_examples,
        variance_against_examples as variance_against_examples,
    )
    from statmech_attn.plotting.learning.one_shot import (
        one_shot_accuracy as one_shot_accuracy,
        one_shot_alignment as one_shot_alignment,
        one_shot_kernels as one_shot_kernels,
        one_shot_matrices as one_shot_matrices,
        one_shot_pictures as one_shot_pictures,
    )
    from statmech_attn.plotting.learning.order_parameters import (
        accuracy_against_width as accuracy_against_width,
        alignment as alignment,
        evidence_against_width as evidence_against_width,
        finite_width as finite_width,
        order_parameter_matrices as order_parameter_matrices,
        path_kernels as path_kernels,
    )
    from statmech_attn.plotting.learning.pruning import (
        cumulative_pruning as cumulative_pruning,
        pruned_heads as pruned_heads,
        pruning_ranks as pruning_ranks,
    )
    from statmech_attn.plotting.learning.selection import (
        evidence_and_validation as evidence_and_validation,
    )
    from statmech_attn.plotting.learning.several_sets import (
        accuracy_on_sets as accuracy_on_sets,
    )
    from statmech_attn.plotting.learning.training import training as training
    from statmech_attn.plotting.learning.training_history import (
        learning_curves as learning_curves,
    )
    from statmech_attn.plotting.network.comparison import (
        agreement as agreement,
        differences_in_time as differences_in_time,
        finite_size as finite_size,
    )
    from statmech_attn.plotting.network.extensive import (
        capacities as capacities,
        capacities_of_spins as capacities_of_spins,
        crosstalk_in_time as crosstalk_in_time,
        extensive_agreement as extensive_agreement,
        overlaps_in_time as overlaps_in_time,
        two_times as two_times,
    )
    from statmech_attn.plotting.network.loads import (
        motion_against_size as motion_against_size,
        phases_against_load as phases_against_load,
    )
    from statmech_attn.plotting.network.response import (
        response_curves as response_curves,
    )
    from statmech_attn.plotting.network.size_scaling import (
        finite_size_collapse as finite_size_collapse,
    )
    from statmech_attn.plotting.network.trajectory import (
        phase_planes as phase_planes,
        spectra as spectra,
        trajectory_windows as trajectory_windows,
    )


lazy.attach(__name__)
