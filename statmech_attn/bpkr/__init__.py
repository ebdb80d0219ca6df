"""Bayesian learning in deep multi-head attention: kernels of attention paths.

Theory of Tiberi, Mignacco, Irie and Sompolinsky (NeurIPS 2024); docs/theory/bpkr.md.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr.attention import attention_weights
    from statmech_attn.bpkr.attention.attention import (
        attended as attended,
        attention_of as attention_of,
        attentioned_inputs as attentioned_inputs,
        head_names,
        Heads,
        heads_from_products as heads_from_products,
        heads_from_queries as heads_from_queries,
        path_names as path_names,
    )
    from statmech_attn.bpkr.attention.attention_weights import (
        Attention,
        attention_arrays as attention_arrays,
    )
    from statmech_attn.bpkr.attention.networks import (
        draw_weights as draw_weights,
        effective_weights,
        forward as forward,
        forward_paths as forward_paths,
        order_parameters as order_parameters,
        Weights as Weights,
    )
    from statmech_attn.bpkr.grids import (
        estimates,
        learning_curves,
        points,
        pruned_networks,
    )
    from statmech_attn.bpkr.grids.examples import (
        Attended,
        LearningTask as LearningTask,
        VALIDATION,
    )
    from statmech_attn.bpkr.grids.learning_curves import (
        learning_curve as learning_curve,
        LearningCurves as LearningCurves,
    )
    from statmech_attn.bpkr.grids.points import Grid as Grid, TaskPoints
    from statmech_attn.bpkr.grids.pruned_networks import (
        prune_networks as prune_networks,
    )
    from statmech_attn.bpkr.grids.saddle_points import SaddlePoints as SaddlePoints
    from statmech_attn.bpkr.grids.selection import (
        model_selection as model_selection,
    )
    from statmech_attn.bpkr.heads import pruning as pruning
    from statmech_attn.bpkr.heads.ablation import ablate as ablate
    from statmech_attn.bpkr.heads.scores import score as score
    from statmech_attn.bpkr.posed import prior as prior, quantities
    from statmech_attn.bpkr.posed.activations import (
        activation_kernels as activation_kernels,
        Kernels as Kernels,
    )
    from statmech_attn.bpkr.posed.checked_arrays import check_test
    from statmech_attn.bpkr.posed.kernel_forms import MEMORY_LIMIT, most_paths
    from statmech_attn.bpkr.posed.kernels import cross_kernel
    from statmech_attn.bpkr.posed.linear_algebra import inverse_cholesky
    from statmech_attn.bpkr.posed.newton import NewtonSolver as NewtonSolver
    from statmech_attn.bpkr.posed.prior import head_counts as head_counts
    from statmech_attn.bpkr.problem import Problem as Problem
    from statmech_attn.bpkr.theory.action import (
        gaussian_process_limit as gaussian_process_limit,
    )
    from statmech_attn.bpkr.theory.evidence import evidence as evidence
    from statmech_attn.bpkr.theory.predictor import (
        accuracy as accuracy,
        block_structure as block_structure,
        correct as correct,
        head_scores as head_scores,
        paths_through as paths_through,
        Prediction as Prediction,
        Theory as Theory,
    )
    from statmech_attn.bpkr.theory.solution import Solution as Solution


lazy.attach(__name__, modules=["pruning"])
