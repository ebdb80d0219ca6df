"""Bayesian learning in deep multi-head attention: kernels of attention paths.

Theory of Tiberi, Mignacco, Irie and Sompolinsky (NeurIPS 2024); docs/theory/bpkr.md.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr import prior, pruning, wishart
    from statmech_attn.bpkr.action import (
        action,
        energy,
        entropies,
        gaussian_process_limit,
    )
    from statmech_attn.bpkr.attention import (
        attention_matrix,
        attentioned_inputs,
        draw_weights,
        effective_weights,
        forward,
        forward_paths,
        head_counts,
        Heads,
        heads_from_products,
        heads_from_queries,
        order_parameters,
        path_names,
        Weights,
    )
    from statmech_attn.bpkr.checks import (
        check_finite_width,
        check_sampled,
        check_temperature,
        check_test,
    )
    from statmech_attn.bpkr.corrections import Corrected, corrections
    from statmech_attn.bpkr.evidence import Evidence, evidence
    from statmech_attn.bpkr.kernels import (
        cross_kernel,
        path_kernels,
        PathFactors,
        PathKernels,
        scaled,
    )
    from statmech_attn.bpkr.linear_algebra import inverse_cholesky
    from statmech_attn.bpkr.minima import Minima, multi_start
    from statmech_attn.bpkr.newton import NewtonSolver, RESULTS
    from statmech_attn.bpkr.predictor import (
        accuracy,
        block_structure,
        correct,
        gaussian_process,
        head_scores,
        kernel_overlap,
        paths_through,
        Prediction,
        Theory,
        theory,
    )
    from statmech_attn.bpkr.saddle import Solution, solve, solve_many, sweep


__all__ = [
    "accuracy",
    "action",
    "attention_matrix",
    "attentioned_inputs",
    "block_structure",
    "check_finite_width",
    "check_sampled",
    "check_temperature",
    "check_test",
    "correct",
    "Corrected",
    "corrections",
    "cross_kernel",
    "draw_weights",
    "effective_weights",
    "energy",
    "entropies",
    "Evidence",
    "evidence",
    "forward",
    "forward_paths",
    "gaussian_process",
    "gaussian_process_limit",
    "head_counts",
    "head_scores",
    "Heads",
    "heads_from_products",
    "heads_from_queries",
    "inverse_cholesky",
    "kernel_overlap",
    "Minima",
    "multi_start",
    "NewtonSolver",
    "order_parameters",
    "path_kernels",
    "path_names",
    "PathFactors",
    "PathKernels",
    "paths_through",
    "Prediction",
    "prior",
    "pruning",
    "RESULTS",
    "scaled",
    "Solution",
    "solve",
    "solve_many",
    "sweep",
    "Theory",
    "theory",
    "Weights",
    "wishart",
]
lazy.attach(__name__)
