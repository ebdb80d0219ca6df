"""Bayesian learning in deep multi-head attention: kernels of attention paths.

Theory of Tiberi, Mignacco, Irie and Sompolinsky (NeurIPS 2024); docs/theory/bpkr.md.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr import (
        attention_weights,
        chosen_temperature,
        estimates,
        learning_curves,
        newton,
        points,
        prior,
        pruned_networks,
        pruning,
        quantities,
        saddle_points,
        selection,
        wishart,
    )
    from statmech_attn.bpkr.action import (
        energy,
        entropies,
        gaussian_process_limit,
    )
    from statmech_attn.bpkr.activations import activation_kernels, Kernels
    from statmech_attn.bpkr.attention import (
        attended,
        attention_matrix,
        attention_of,
        attentioned_inputs,
        draw_weights,
        effective_weights,
        forward,
        forward_paths,
        Heads,
        heads_from_products,
        heads_from_queries,
        order_parameters,
        path_names,
        Weights,
    )
    from statmech_attn.bpkr.attention_weights import Attention, attention_arrays
    from statmech_attn.bpkr.corrections import Corrected
    from statmech_attn.bpkr.evidence import Evidence, evidence
    from statmech_attn.bpkr.examples import Attended, Learning, VALIDATION
    from statmech_attn.bpkr.kernels import (
        cross_kernel,
        MEMORY_LIMIT,
        most_paths,
        PathFactors,
        PathKernels,
        prefactor,
    )
    from statmech_attn.bpkr.learning_curves import learning_curve, LearningCurves
    from statmech_attn.bpkr.linear_algebra import inverse_cholesky
    from statmech_attn.bpkr.minima import Minima
    from statmech_attn.bpkr.newton import NewtonSolver, RESULTS
    from statmech_attn.bpkr.points import Grid, TaskPoints
    from statmech_attn.bpkr.predictor import (
        accuracy,
        block_structure,
        correct,
        head_scores,
        kernel_overlap,
        paths_through,
        Prediction,
        Theory,
    )
    from statmech_attn.bpkr.prior import (
        check_finite_width,
        check_temperature,
        head_counts,
    )
    from statmech_attn.bpkr.problem import check_test, Problem
    from statmech_attn.bpkr.projections import (
        projected_attention,
        Projections,
        projections_from_flax,
        projections_from_linear,
        projections_from_torch,
    )
    from statmech_attn.bpkr.pruned_networks import PrunedNetworks
    from statmech_attn.bpkr.saddle_points import SaddlePoints
    from statmech_attn.bpkr.scores import by_head, head_floors, HeadScores, score
    from statmech_attn.bpkr.selection import model_selection, ModelSelection
    from statmech_attn.bpkr.solution import Solution


__all__ = [
    "accuracy",
    "activation_kernels",
    "Attended",
    "attended",
    "Attention",
    "attention_arrays",
    "attention_matrix",
    "attention_of",
    "attentioned_inputs",
    "block_structure",
    "by_head",
    "check_finite_width",
    "check_temperature",
    "check_test",
    "chosen_temperature",
    "correct",
    "Corrected",
    "cross_kernel",
    "learning_curves",
    "draw_weights",
    "effective_weights",
    "energy",
    "entropies",
    "Evidence",
    "estimates",
    "evidence",
    "forward",
    "forward_paths",
    "gaussian_process_limit",
    "attention_weights",
    "Grid",
    "head_counts",
    "head_floors",
    "head_scores",
    "Heads",
    "heads_from_products",
    "heads_from_queries",
    "HeadScores",
    "inverse_cholesky",
    "kernel_overlap",
    "Kernels",
    "Learning",
    "learning_curve",
    "LearningCurves",
    "MEMORY_LIMIT",
    "Minima",
    "model_selection",
    "ModelSelection",
    "most_paths",
    "newton",
    "NewtonSolver",
    "order_parameters",
    "path_names",
    "PathFactors",
    "PathKernels",
    "paths_through",
    "points",
    "Prediction",
    "prefactor",
    "prior",
    "Problem",
    "projected_attention",
    "Projections",
    "projections_from_flax",
    "projections_from_linear",
    "projections_from_torch",
    "pruned_networks",
    "PrunedNetworks",
    "pruning",
    "quantities",
    "RESULTS",
    "saddle_points",
    "SaddlePoints",
    "score",
    "selection",
    "Solution",
    "TaskPoints",
    "Theory",
    "VALIDATION",
    "Weights",
    "wishart",
]
lazy.attach(__name__)
