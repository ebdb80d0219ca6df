r"""
The arrow of time of an attention network
=========================================

Does a text that the network writes look the same when it is read backwards?  How does
the network answer to a small push, and does it fluctuate as its answer says that it
should?  And what do N spins do where the theory of infinitely many of them has a
bifurcation?  This tutorial asks the published network these three questions of the
physics of systems far from equilibrium, from one :math:`\beta` to the next.

The derivations are in :doc:`/theory/irreversibility`, :doc:`/theory/response` and
:doc:`/theory/critical_fluctuations`.
"""

# %%
# Reading backwards
# -----------------
#
# Every token is drawn from the :math:`C` tokens before it.  Read backwards, the same
# network would draw it from those after it.  The entropy production :math:`\sigma` is
# how much better the forward reading predicts a spin, in nats for each token.  A scan
# averages it beside the Lyapunov exponents.

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import comparison, dmft, dynamics, montecarlo, plotting
from statmech_attn.dynamics import continuation, diagrams


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

file = dmft.load("poclopez-pe2")
net = dmft.network(file.patterns, context=file.context)
values = {"gamma": file.gamma, "epsilon": file.epsilon}
scan = dynamics.diagram(
    dmft.system(net),
    {"beta": np.linspace(1.2, 1.5, 121), **values},
    lambda p: dmft.from_checkpoint(net, dmft.parameters(**p), file),
    diagrams.Plan(transient=10_000, steps=10_000, exponents=2),
)
figure = plotting.bifurcation_diagram(scan)

# %%
# Below :math:`\beta_1 = 1.2434` the network is at rest but for the clock of its
# positions, and has hardly any arrow.  It appears with the torus, jumps where chaos
# begins, and grows in chaos while the largest exponent falls.  Cycles inside the chaos
# have an arrow of their own: to be periodic is not to be reversible.
#
# Spins
# -----
#
# A network of N spins has a rate of its own.  At rest it is all noise, a bias like
# :math:`1/N`; in chaos it is that of the map.

params = dmft.parameters([1.2, 1.4], **values)
start = dmft.from_checkpoint(net, params, file)
start = dmft.advance(net, params, start, 10_000)
theory = dmft.entropy_production(net, params, start, steps=40_000)
spins = montecarlo.simulations(
    jax.random.key(0),
    net,
    file.patterns,
    {"beta": [1.2, 1.4], **values},
    lambda p: dmft.advance(net, p, dmft.from_checkpoint(net, p, file), 10_000),
    n_spins=[3000, 30_000, 300_000],
    runs=16,
    steps=1200,
    transient=200,
    entropy_production=True,
).compute()
compared = comparison.compare_entropy_production(theory, spins)
sampled = spins.entropy_production_stationary_mean.mean("all_runs")
for i, beta in enumerate(params.beta):
    rates = ", ".join(f"{x:.2g}" for x in sampled[:, i].values)
    print(f"β = {beta:.1f}: the map {theory.mean[i]:.2g}; spins {rates}")
print("extrapolated differences in standard errors:", compared.limit_z.values.round(1))

# %%
# A push, and what noise does by itself
# -------------------------------------
#
# A field along a pattern moves the overlaps: the susceptibility :math:`\chi(\omega)`.
# Without a field they fluctuate, with the spectrum :math:`S(\omega) / N`.  In
# equilibrium the two are tied; their ratio is an effective temperature, which would be
# 1 everywhere.

params = dmft.parameters([1.2, 1.24], **values)
start = dmft.from_checkpoint(net, params, file)
frequencies = np.linspace(0.02, 3.1, 300)
response = dmft.response(
    net, params, start, frequencies=frequencies, field="v", pattern=0
)
overlap = response.observables.index("m_v")
figure, axes = plt.subplots(1, 3, figsize=(plotting.DOUBLE, 2.2), layout="constrained")
panels = {
    r"$|\chi|$": abs(response.susceptibility),
    r"$N S$": response.spectrum,
    r"$T_\mathrm{eff}$": response.temperature,
}
for axis, (words, curves) in zip(axes, panels.items(), strict=True):
    for i, beta in enumerate(params.beta):
        axis.plot(frequencies, curves[:, overlap, 0, i], label=rf"$\beta = {beta:.2f}$")
    axis.set(xlabel=r"$\omega$ (rad/token)", ylabel=words)
axes[0].set_yscale("log")
axes[1].set_yscale("log")
axes[2].set_ylim(-3, 3)
_ = axes[0].legend()

# %%
# Towards the bifurcation both grow at one frequency, that of the torus to come.  The
# temperature is near 1 above it and negative below it: slow fluctuations are not those
# of any equilibrium.
#
# At the bifurcation
# ------------------
#
# There linear theory says that fluctuations are infinite.  What bounds them is the
# normal form, whose coefficients continuation knows, and the noise of N spins, which
# follows from the fields: a law without a free parameter.

problem = continuation.Problem(
    dmft.strobe(net, file.epsilon),
    jnp.zeros(net.dimension),
    {"beta": 1.2, **values},
    "beta",
)
rest = continuation.find_cycle(problem, jnp.zeros(net.dimension), 1.2)
branch = continuation.follow_cycle(problem, rest.x, 1.2, within=(1.2, 1.25)).run()
law = dmft.critical_fluctuations(problem, branch.special[0])
print(law)
for n_spins in (10**5, 10**7, 10**9):
    print(
        f"N = {n_spins:.0e}: rounded over {law.rounding(n_spins):.1e} in β, "
        f"standard deviation of the first overlap at the point "
        f"{np.sqrt(law.overlap_variance(law.value, n_spins)[0, 0]):.4f}"
    )

# %%
# A hundred times as many spins round the transition ten times less, and fluctuate only
# :math:`100^{1/4} = 3.2` times less.  Simulations of up to :math:`10^8` spins follow
# this law; :doc:`/theory/critical_fluctuations` shows them, and a study of
# ``kind = "finite-size"`` makes more.

# %%
# Where to go next
# ----------------
#
# * :doc:`05_continuation` explains how bifurcations and their normal forms are found.
# * :doc:`06_theory_and_simulation` compares spins and map token by token.
# * :doc:`04_phases` tells tori, cycles and chaos apart.
