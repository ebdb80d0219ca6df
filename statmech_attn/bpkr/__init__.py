"""Bayesian learning in deep multi-head attention: kernels of attention paths.

Theory of Tiberi, Mignacco, Irie and Sompolinsky (NeurIPS 2024); docs/theory/bpkr.md.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr import (
        attention_weights as attention_weights,
        chosen_temperature as chosen_temperature,
        estimates as estimates,
        learning_curves as learning_curves,
        newton as newton,
        permuted_labels as permuted_labels,
        points as points,
        prior as prior,
        pruned_networks as pruned_networks,
        pruning as pruning,
        quantities as quantities,
        saddle_points as saddle_points,
        selection as selection,
        wishart as wishart,
    )
    from statmech_attn.bpkr.ablation import (
        ablate as ablate,
        Ablation as Ablation,
        ablation_of as ablation_of,
    )
    from statmech_attn.bpkr.action import (
        energy as energy,
        entropies as entropies,
        gaussian_process_limit as gaussian_process_limit,
    )
    from statmech_attn.bpkr.activations import (
        activation_kernels as activation_kernels,
        Kernels as Kernels,
    )
    from statmech_attn.bpkr.attention import (
        attended as attended,
        attention_matrix as attention_matrix,
        attention_of as attention_of,
        attentioned_inputs as attentioned_inputs,
        head_names as head_names,
        Heads as Heads,
        heads_from_products as heads_from_products,
        heads_from_queries as heads_from_queries,
        path_names as path_names,
    )
    from statmech_attn.bpkr.attention_weights import (
        Attention as Attention,
        attention_arrays as attention_arrays,
    )
    from statmech_attn.bpkr.checked_arrays import check_test as check_test
    from statmech_attn.bpkr.corrections import Corrected as Corrected
    from statmech_attn.bpkr.evidence import Evidence as Evidence, evidence as evidence
    from statmech_attn.bpkr.examples import (
        Attended as Attended,
        Learning as Learning,
        VALIDATION as VALIDATION,
    )
    from statmech_attn.bpkr.kernel_forms import (
        MEMORY_LIMIT as MEMORY_LIMIT,
        most_paths as most_paths,
        PathFactors as PathFactors,
        PathKernels as PathKernels,
    )
    from statmech_attn.bpkr.kernels import (
        cross_kernel as cross_kernel,
        prefactor as prefactor,
    )
    from statmech_attn.bpkr.learning_curves import (
        learning_curve as learning_curve,
        LearningCurves as LearningCurves,
    )
    from statmech_attn.bpkr.linear_algebra import inverse_cholesky as inverse_cholesky
    from statmech_attn.bpkr.minima import Minima as Minima
    from statmech_attn.bpkr.networks import (
        draw_weights as draw_weights,
        effective_weights as effective_weights,
        forward as forward,
        forward_paths as forward_paths,
        order_parameters as order_parameters,
        Weights as Weights,
    )
    from statmech_attn.bpkr.newton import (
        NewtonSolver as NewtonSolver,
        RESULTS as RESULTS,
    )
    from statmech_attn.bpkr.points import Grid as Grid, TaskPoints as TaskPoints
    from statmech_attn.bpkr.predictor import (
        accuracy as accuracy,
        block_structure as block_structure,
        correct as correct,
        head_scores as head_scores,
        kernel_overlap as kernel_overlap,
        paths_through as paths_through,
        Prediction as Prediction,
        Theory as Theory,
    )
    from statmech_attn.bpkr.prior import (
        check_finite_width as check_finite_width,
        check_temperature as check_temperature,
        head_counts as head_counts,
    )
    from statmech_attn.bpkr.problem import Problem as Problem
    from statmech_attn.bpkr.pruned_networks import PrunedNetworks as PrunedNetworks
    from statmech_attn.bpkr.saddle_points import SaddlePoints as SaddlePoints
    from statmech_attn.bpkr.score_agreement import (
        score_agreement as score_agreement,
        ScoreAgreement as ScoreAgreement,
    )
    from statmech_attn.bpkr.scores import (
        head_floors as head_floors,
        HeadScores as HeadScores,
        score as score,
        score_by_layer as score_by_layer,
    )
    from statmech_attn.bpkr.selection import (
        model_selection as model_selection,
        ModelSelection as ModelSelection,
    )
    from statmech_attn.bpkr.solution import Solution as Solution


lazy.attach(__name__)
