"""Patterns growing with N: the generating functional with its memory."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dmft.extensive.closed_recursion import closed as closed
    from statmech_attn.dmft.extensive.effective_process import (
        sampled as sampled,
        solve as solve,
    )
    from statmech_attn.dmft.extensive.ensembles import (
        column_probabilities as column_probabilities,
        correlated as correlated,
        cycle as cycle,
        Ensemble as Ensemble,
        identical as identical,
        independent as independent,
    )
    from statmech_attn.dmft.extensive.finite_memory import (
        system as system,
        system_start as system_start,
    )
    from statmech_attn.dmft.extensive.grids import points as points
    from statmech_attn.dmft.extensive.grids.capacities import capacities as capacities
    from statmech_attn.dmft.extensive.grids.options import (
        Recall as Recall,
        Retrieval as Retrieval,
        SolvedRecall as SolvedRecall,
    )
    from statmech_attn.dmft.extensive.grids.order_parameters import (
        OrderParameters as OrderParameters,
    )
    from statmech_attn.dmft.extensive.loaded_network import (
        loaded_network as loaded_network,
        LoadedNetwork as LoadedNetwork,
    )
    from statmech_attn.dmft.extensive.moving_recall import (
        moving as moving,
    )
    from statmech_attn.dmft.extensive.results import (
        Trajectory as Trajectory,
        Values as Values,
    )
    from statmech_attn.dmft.extensive.stationary import (
        capacity as capacity,
        NoRetrieval as NoRetrieval,
        stationary as stationary,
    )


lazy.attach(__name__)
