"""Patterns growing with N: the generating functional with its memory."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dmft.extensive.closed import closed
    from statmech_attn.dmft.extensive.ensembles import (
        column_probabilities,
        correlated,
        cycle,
        Ensemble,
        identical,
        independent,
    )
    from statmech_attn.dmft.extensive.exact import exact
    from statmech_attn.dmft.extensive.problem import Problem, problem
    from statmech_attn.dmft.extensive.results import Trajectory, Values
    from statmech_attn.dmft.extensive.sampled import sampled, solve
    from statmech_attn.dmft.extensive.stationary import (
        Capacity,
        capacity,
        Stationary,
        stationary,
    )


__all__ = [
    "Capacity",
    "capacity",
    "closed",
    "column_probabilities",
    "correlated",
    "cycle",
    "Ensemble",
    "exact",
    "identical",
    "independent",
    "Problem",
    "problem",
    "sampled",
    "solve",
    "Stationary",
    "stationary",
    "Trajectory",
    "Values",
]
lazy.attach(__name__)
