"""
First steps
===========

The network of the published figures has three patterns and attends to the last two tokens.  At
:math:`\\beta = 1.28` its overlaps wander without end.  Is that chaos?
"""

# %%
# A preset holds the patterns of the network and the parameters of the figures.  The package
# computes in double precision, which JAX switches on for a whole process.

import jax
import matplotlib.pyplot as plt

jax.config.update("jax_enable_x64", True)
from statmech_attn import dmft, dynamics

file = dmft.load("poclopez-pe2")
network = dmft.network(file.patterns, context=file.context)
parameters = dmft.parameters(1.28, file.gamma, file.epsilon)
start = dmft.from_checkpoint(network, parameters, file)

# %%
# The mean-field map gives the overlaps of infinitely many spins, token by token.

state, seen = dmft.trajectory(network, parameters, start, steps=10_000)

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(seen.m_o_se[-200:], lw=0.8)
axes[0].set(xlabel="token", ylabel=r"overlap $m^o$ with each pattern")
axes[1].plot(seen.m_o_se[:, 0], seen.m_o_se[:, 1], ",")
axes[1].set(xlabel="pattern 1", ylabel="pattern 2")

# %%
# Lyapunov exponents say how fast neighbouring trajectories separate.  The verdict rests on
# several kinds of evidence, and `explain` says which.

verdict = dynamics.classify(dmft.system(network), state, parameters, exponents=4)
print(dynamics.PHASES[verdict.phase])
print(verdict.spectrum.exponents)
print(verdict.explain())
