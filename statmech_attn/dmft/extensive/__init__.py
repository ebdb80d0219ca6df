"""Patterns growing with N: the generating functional with its memory."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dmft.extensive import points
    from statmech_attn.dmft.extensive.capacities import Capacities
    from statmech_attn.dmft.extensive.closed_recursion import closed
    from statmech_attn.dmft.extensive.effective_process import (
        POPULATION,
        sampled,
        solve,
        trajectory_bytes,
    )
    from statmech_attn.dmft.extensive.ensembles import (
        column_probabilities,
        correlated,
        cycle,
        Ensemble,
        identical,
        independent,
    )
    from statmech_attn.dmft.extensive.finite_memory import MEMORY, system, system_start
    from statmech_attn.dmft.extensive.loaded_network import (
        check_steps,
        loaded_network,
        LoadedNetwork,
        require_overlap,
        two_time_bytes,
    )
    from statmech_attn.dmft.extensive.moving_recall import (
        check_moving,
        moving,
        moving_capacity,
        MovingState,
    )
    from statmech_attn.dmft.extensive.options import Recall, Retrieval, SolvedRecall
    from statmech_attn.dmft.extensive.order_parameters import OrderParameters
    from statmech_attn.dmft.extensive.results import Trajectory, Values
    from statmech_attn.dmft.extensive.stationary import (
        Capacity,
        capacity,
        check_stationary,
        chosen_lags,
        NoRetrieval,
        Stationary,
        stationary,
        StationaryState,
    )


__all__ = [
    "Capacities",
    "Capacity",
    "capacity",
    "check_moving",
    "check_stationary",
    "check_steps",
    "chosen_lags",
    "closed",
    "column_probabilities",
    "correlated",
    "cycle",
    "Ensemble",
    "identical",
    "independent",
    "loaded_network",
    "LoadedNetwork",
    "MEMORY",
    "moving",
    "moving_capacity",
    "MovingState",
    "NoRetrieval",
    "OrderParameters",
    "points",
    "POPULATION",
    "Recall",
    "require_overlap",
    "Retrieval",
    "sampled",
    "solve",
    "SolvedRecall",
    "Stationary",
    "stationary",
    "StationaryState",
    "system",
    "system_start",
    "Trajectory",
    "trajectory_bytes",
    "two_time_bytes",
    "Values",
]
lazy.attach(__name__)
