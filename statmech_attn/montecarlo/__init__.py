"""Monte Carlo checks of the theories: finite networks, and samplers of weights."""

from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.binomial import binomial
from statmech_attn.montecarlo.collapsed import class_counts
from statmech_attn.montecarlo.dataset import monte_carlo_dataset
from statmech_attn.montecarlo.simulate import simulate, Simulation, TimeAverages
from statmech_attn.montecarlo.weight_sampling import sample_weights, WeightDraws


__all__ = [
    "binomial",
    "class_counts",
    "monte_carlo_dataset",
    "sample_weights",
    "simulate",
    "Simulation",
    "TimeAverages",
    "weight_space",
    "WeightDraws",
]
