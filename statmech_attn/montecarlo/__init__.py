"""Monte Carlo checks of the theories: finite networks, and samplers of weights."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.montecarlo import posteriors, weight_space
    from statmech_attn.montecarlo.binomial import binomial
    from statmech_attn.montecarlo.collapsed import class_counts
    from statmech_attn.montecarlo.dataset import (
        monte_carlo_dataset,
        PER_RUN,
        stationary,
        VARIABLES,
    )
    from statmech_attn.montecarlo.extensive import (
        extensive_plan,
        ExtensivePlan,
        ExtensiveSimulation,
        Overlaps,
        simulate_extensive,
    )
    from statmech_attn.montecarlo.extensive_samples import ExtensiveSamples
    from statmech_attn.montecarlo.nuts import Sampler, Transition
    from statmech_attn.montecarlo.options import SampledRecall, Sampling
    from statmech_attn.montecarlo.run_blocks import (
        AVERAGES,
        layout,
        Moments,
        observations,
        rows_of_a_call,
        Simulator,
    )
    from statmech_attn.montecarlo.simulation import (
        point_keys,
        simulate,
        Simulation,
        TimeAverages,
    )
    from statmech_attn.montecarlo.simulation_grid import Simulations, simulations
    from statmech_attn.montecarlo.weight_sampling import sample_weights, WeightDraws


__all__ = [
    "AVERAGES",
    "binomial",
    "class_counts",
    "extensive_plan",
    "ExtensivePlan",
    "ExtensiveSamples",
    "ExtensiveSimulation",
    "layout",
    "Moments",
    "monte_carlo_dataset",
    "observations",
    "Overlaps",
    "PER_RUN",
    "point_keys",
    "posteriors",
    "rows_of_a_call",
    "sample_weights",
    "SampledRecall",
    "Sampler",
    "Sampling",
    "simulate",
    "simulate_extensive",
    "Simulation",
    "Simulations",
    "simulations",
    "Simulator",
    "stationary",
    "TimeAverages",
    "Transition",
    "VARIABLES",
    "weight_space",
    "WeightDraws",
]
lazy.attach(__name__)
