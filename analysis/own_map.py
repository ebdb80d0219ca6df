"""The bifurcation diagram of a map of one's own, ready for print, in ten lines."""

import jax.numpy as jnp

import statmech_attn
from statmech_attn import dynamics, plotting


statmech_attn.setup()
logistic = lambda x, p: p["r"] * x * (1 - x)
grid = {"r": jnp.linspace(2.8, 4.0, 601)}
scan = dynamics.diagram(logistic, grid, jnp.array(0.3), file="results/own_map.h5")
plotting.save(plotting.bifurcation_diagram(scan), "results", "own_map")
