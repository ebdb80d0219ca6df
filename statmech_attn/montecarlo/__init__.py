"""Monte Carlo checks of the theories: finite networks, and errors of estimates."""

from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.binomial import binomial
from statmech_attn.montecarlo.collapsed import class_counts
from statmech_attn.montecarlo.dataset import monte_carlo_dataset
from statmech_attn.montecarlo.estimates import (
    autocorrelation_time,
    block_stderr,
    effective_sample_size,
    Estimate,
    estimate,
    r_hat,
    two_sample_test,
    TwoSample,
)
from statmech_attn.montecarlo.simulate import simulate, Simulation, TimeAverages
from statmech_attn.montecarlo.weight_sampling import sample_weights, WeightDraws


__all__ = [
    "autocorrelation_time",
    "binomial",
    "block_stderr",
    "class_counts",
    "effective_sample_size",
    "Estimate",
    "estimate",
    "monte_carlo_dataset",
    "r_hat",
    "sample_weights",
    "simulate",
    "Simulation",
    "TimeAverages",
    "two_sample_test",
    "TwoSample",
    "weight_space",
    "WeightDraws",
]
