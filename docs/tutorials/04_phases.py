r"""
Phases and how they are determined
==================================

A Lyapunov exponent alone does not tell a fixed point from a cycle, a torus from a
strange attractor that is not chaotic, nor chaos from a transient that only looks
chaotic.  The package therefore bases the phase of an orbit on several kinds of evidence
and calls it undetermined where they do not decide.  This tutorial shows the evidence,
and two situations in which the phase of a single orbit can still mislead, transients
and coexistence, with what to do about each.
"""

# %%
# Three orbits, three phases
# --------------------------
#
# The published network at three values of :math:`\beta`, after 30 000 tokens from the
# published start.  ``jax.vmap`` computes all three at once.

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dmft, dynamics, plotting


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

file = dmft.load("poclopez-pe2")
network = dmft.network(file.patterns, context=file.context)
system = dmft.system(network)
betas = jnp.array([1.255, 1.27, 1.28])


def judged(beta):
    parameters = dmft.parameters(beta, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(network, parameters, file)
    return dynamics.classify(system, start, parameters, transient=30_000, exponents=3)


verdicts = jax.vmap(judged)(betas)
for beta, sentence in zip(betas, verdicts.explain()):
    print(f"β = {beta}  {sentence}\n")

# %%
# Every sentence names the evidence for the phase:
#
# * **recurrence**: the orbit returns to an earlier point to within :math:`10^{-9}` of
#   its size.  It is then a cycle, and the time of return is its period;
# * **exponents** with their errors, estimated from means over blocks of the orbit.  A
#   zero exponent is one below :math:`2\cdot10^{-5}` nat/token *in a weighted average*,
#   which on a torus converges faster than any power of the time;
# * the **0–1 test**, near 0 for regular and near 1 for irregular series;
# * the **power spectrum**: lines only, or a broad band;
# * **convergence** of weighted averages: 5 digits or more on a torus, 2 or 3 in chaos.
#
# If these disagree, the window is doubled, up to a given number of times.  If they
# still disagree, the phase is ``undetermined``, with the reasons.

evidence = verdicts.evidence
print("positive exponents ", evidence.positive)
print("zero exponents     ", evidence.zeros)
print("K of the 0-1 test  ", np.round(evidence.zero_one, 3))
print("digits of averages ", np.round(evidence.digits, 1))

# %%
# The figure shows the orbits in the plane of two components of the attention vector,
# and the power spectra on which the phases rest:

figure, axes = plt.subplots(
    2, 3, figsize=(plotting.DOUBLE, 4.0), layout="constrained", height_ratios=(1.2, 1)
)
for column, beta in enumerate(betas):
    parameters = dmft.parameters(beta, file.gamma, file.epsilon)
    state = jax.tree.map(lambda x: x[column], verdicts.state)
    orbit = dynamics.orbit(system, state, parameters, samples=8192)
    plane, spectrum = axes[:, column]
    plane.plot(orbit[:, 0], orbit[:, 1], "k.", ms=1.2 if column != 1 else 4, mew=0)
    word = dynamics.PHASES[int(verdicts.phase[column])]
    plane.set(
        title=rf"$\beta = {beta:g}$: {word}",
        xlabel="$A_1$",
        ylabel="$A_2$",
    )
    plane.margins(0.08)
    frequency, power = dynamics.power_spectrum(orbit[:, 0], window="hann")
    spectrum.semilogy(frequency, power, lw=0.5)
    spectrum.set(xlabel="frequency (cycles/token)", ylim=(1e-16, 1e4), xlim=(0, 0.5))
axes[1, 0].set_ylabel("power density")
plt.show()

# %%
# Torus and cycle have lines above a floor of rounding errors, chaos has a broad band.
#
# A phase has a horizon
# ---------------------
#
# No finite window tells chaos from a *chaotic transient*, motion that is chaotic for
# thousands or millions of tokens until it finds a cycle.  Its lifetimes are distributed
# exponentially.  A study of kind ``basins`` follows orbits from many random initial
# conditions until each has reached an attractor, and records which one and after how
# many tokens.

study = {
    "kind": "basins",
    "network": {"patterns": "poclopez-pe2"},
    "parameters": {"beta": [1.2645, 1.27, 1.2738]},
    "run": {"starts": 40, "seed": 1, "horizon": 100_000, "steps": 4000, "exponents": 2},
}
basins = statmech_attn.run(study, progress=False)
print(basins.statmech.describe())

# %%

pictures = basins.statmech.plot()
pictures["lifetimes"]

# %%
# At :math:`\beta = 1.27` every orbit ends on a cycle, of 28 tokens or of 56, but after
# chaotic motion with a mean lifetime of some 2000 tokens.  At 1.2738 the mean lifetime
# is :math:`(3.5 \pm 0.6)\cdot 10^4` tokens, and some orbits have not reached an
# attractor at the end.  A scan with a window of 2000 tokens would report chaos there,
# with a small standard error and a clear 0–1 test.  The error of an exponent is that of
# the average over the window; it contains no information on what happens later.
#
# In a scan, transients show by neighbours with another phase, or with another
# :math:`\lambda_1`.  Such points are ``doubtful``, and so is all chaos in one run with
# them.  A scan runs them again from perturbed states and for longer; if one of these
# orbits leaves the chaotic set, the phase becomes ``transient``, and ``final_phase``
# says what follows.  Here this is switched off for the first scan.

window = {
    "kind": "bifurcation",
    "parameters": {"beta": {"start": 1.2730, "stop": 1.2746, "num": 31}},
    "run": {"transient": 2000, "steps": 4000, "exponents": 2, "max_doublings": 1},
}
short = statmech_attn.run(
    window | {"run": window["run"] | {"confirm": {"starts": 0}}}, progress=False
)
long = statmech_attn.run(window, progress=False)
figure, axes = plt.subplots(
    2, figsize=(plotting.DOUBLE, 1.3), layout="constrained", sharex=True
)
entries = {}
for axis, scan, words in zip(axes, (short, long), ("after 2000", "and again")):
    plotting.phase_ribbon(scan, ax=axis)
    axis.set_yticks([0.5], [words])
    axis.set_xlabel("")
    handles, labels = axis.get_legend_handles_labels()
    entries |= dict(zip(labels, handles))
axes[1].set_xlabel(r"output inverse temperature $\beta$")
axes[1].tick_params(labelbottom=True)
figure.legend(
    entries.values(), entries.keys(), ncols=len(entries), loc="outside upper center"
)
plt.show()
print("doubtful after 2000 tokens:", int(short.doubtful.sum()), "of", short.beta.size)
print(long.statmech.describe())

# %%
# Coexistence
# -----------
#
# At one value of :math:`\beta` several attractors may exist, each with its own basin of
# attraction.  The shares of random initial conditions that end on each attractor have
# binomial errors, and they refer to the distribution from which initial conditions are
# drawn, here uniform in :math:`[-1, 1]` for every entry of the attention window.

pictures["basins"]

# %%
# At :math:`\beta = 1.2645` a torus coexists with a cycle of 44 tokens, at 1.2738 one
# of 28 with one of 32.  The torus attracts a few per cent of the initial conditions: a
# scan with a single initial condition finds one of the two attractors and gives no hint
# of the other.  With 40 initial conditions, an attractor with a share of 5 % is missed
# altogether with probability :math:`0.95^{40} \approx 13\,\%`.
#
# Coexistence also means that the state depends on the history.  When :math:`\beta`
# increases slowly, the network stays on one attractor until that disappears; when it
# decreases, on another.  The two sweeps differ where there is hysteresis.

sweeps = []
for way in ("up", "down"):
    sweep = {
        "kind": "bifurcation",
        "parameters": {"beta": {"start": 1.262, "stop": 1.268, "num": 31}},
        "run": {
            "start": f"continue-{way}",
            "transient": 6000,
            "steps": 3000,
            "exponents": 1,
            "max_doublings": 0,
        },
    }
    sweeps.append(statmech_attn.run(sweep, progress=False))

plotting.hysteresis(dynamics.diagrams.compare_sweeps(*sweeps))

# %%
# Where to go next
# ----------------
#
# * :doc:`05_continuation` follows the cycles themselves, also where they are unstable,
#   and finds the folds at which they are born.
# * :doc:`06_theory_and_simulation`: a finite network is noisy, and noise can end
#   transients.
# * :doc:`/theory/dynamics` lists the thresholds of the classification, and the
#   reference systems on which it is tested; :doc:`/theory/attractors` explains basins
#   and lifetimes.
