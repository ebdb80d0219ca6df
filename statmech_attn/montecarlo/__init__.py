"""Monte Carlo checks of the theories: simulations of finite networks and their errors."""

from statmech_attn.montecarlo.binomial import binomial
from statmech_attn.montecarlo.collapsed import class_counts
from statmech_attn.montecarlo.simulate import simulate, Simulation, TimeAverages


__all__ = ["binomial", "class_counts", "simulate", "Simulation", "TimeAverages"]
