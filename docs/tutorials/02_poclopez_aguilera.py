r"""
Reproduce Poc-López & Aguilera: dynamics of self-attention
==========================================================

Poc-López and Aguilera (`arXiv:2406.07247 <https://arxiv.org/abs/2406.07247>`_) derived
a dynamical mean-field theory of self-attention with 1-bit tokens, and found fixed
points, cycles, tori and chaos in a network of three patterns.  This tutorial goes
through the figures of the paper: it computes them at reduced size, or draws them from
results kept in the repository where the full size takes long, says what differs, and
shows what is new.
"""

# %%
# Six orbits
# ----------
#
# The paper shows the orbits of six values of :math:`\beta`.  They start from the
# published checkpoint, which comes with the preset; 50 000 tokens are discarded (100
# 000 in the paper and in ``paper_figs/trajectories.py``).  Phases and periods in the
# titles are measured on these orbits, by a study of kind ``bifurcation`` from the same
# start.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dmft, dynamics, plotting, storage


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

six = [1.255, 1.26451, 1.266, 1.27, 1.28, 1.4]
network = {"patterns": "poclopez-pe2"}


def compute(kind, beta, **run):
    run = {"start": "checkpoint", **run}
    study = {"kind": kind, "network": network, "parameters": {"beta": beta}, "run": run}
    return statmech_attn.run(study, progress=False)


orbits = compute("trajectory", six, transient=50_000, steps=5000)
phases = compute(
    "bifurcation", six, transient=50_000, steps=20_000, exponents=4, max_doublings=2
)
phases.statmech.table("phase", "period", "lyapunov")

# %%
# The paper reports a torus, a cycle of 44 tokens, chaos, a cycle of 28 tokens, and
# chaos at the last two values.  The same phases are measured here; at 1.27 the orbit
# may end on a cycle of 56 tokens, which coexists with that of 28
# (:doc:`/theory/two_parameters`).

plotting.trajectory_windows(orbits, phases=phases)

# %%

plotting.phase_planes(orbits, phases=phases)

# %%

plotting.spectra(
    orbits.sel(beta=[1.255, 1.27, 1.28]), phases=phases.sel(beta=[1.255, 1.27, 1.28])
)

# %%
# One difference is of convention: :math:`m^{o,\mathrm{SE}}` is here the overlap itself;
# the paper shows :math:`(1-\epsilon)\,m^{o,\mathrm{SE}}`, 2 % less.
#
# Running averages of the exponents
# ---------------------------------
#
# The paper averages exponents over a million tokens and reads off their signs.  How
# long is long enough?  The bands below are one standard error, estimated from the
# scatter between blocks of the same orbit.

file = dmft.load("poclopez-pe2")
net = dmft.network(file.patterns, context=file.context)
parameters = dmft.parameters(six, file.gamma, file.epsilon)
state = dmft.advance(
    net, parameters, dmft.from_checkpoint(net, parameters, file), 50_000
)
spectrum = dynamics.lyapunov_spectrum(
    dmft.system(net),
    state,
    parameters,
    steps=40_000,
    blocks=200,
    exponents=2,
    reorthonormalize_every=4,
)
tokens = np.arange(1, 201) * int(spectrum.steps) // 200
figure, axes = plt.subplots(
    2, 3, figsize=(plotting.DOUBLE, 3.2), layout="constrained", sharex=True, sharey=True
)
for column, axis in enumerate(axes.flat):
    for exponent, colour in enumerate(("#0072B2", "#D55E00")):
        running = np.asarray(spectrum.running[:, exponent, column])
        band = float(spectrum.stderr[exponent, column]) * np.sqrt(tokens[-1] / tokens)
        axis.plot(tokens, running, color=colour, label=rf"$\lambda_{exponent + 1}$")
        axis.fill_between(
            tokens, running - band, running + band, color=colour, alpha=0.25, lw=0
        )
    axis.axhline(0, color="k", lw=0.5)
    axis.set(title=rf"$\beta = {six[column]:g}$", ylim=(-0.12, 0.2))
figure.supxlabel("tokens")
figure.supylabel("nat/token")
axes[0, 0].legend(ncols=2)
plt.show()

# %%
# For the chaotic orbits the errors are some :math:`10^{-3}` nat/token.  At
# :math:`\beta = 1.255` the plain average approaches zero like one over the time, and
# its sign means nothing; a weighted average, which suppresses the ends of the window,
# is zero to rounding:

plain, error = spectrum.exponents[0, 0], spectrum.stderr[0, 0]
print(f"plain {plain:+.1e} ± {error:.1e}, weighted {spectrum.weighted[0, 0]:+.1e}")

# %%
# Bifurcation diagrams
# --------------------
#
# The paper scans 4001 values of :math:`\beta` in [0, 3] and in [1.24, 1.28].  With 129
# values each and windows of 6000 tokens the same structure is visible;
# ``paper_figs/bifurcation_full.py --size paper`` has the published resolution.


def scan(low, high, transient):
    beta = {"start": low, "stop": high, "num": 129}
    run = {"steps": 6000, "exponents": 4, "max_doublings": 1}
    return compute("bifurcation", beta, transient=transient, **run)


full = scan(0.0, 3.0, 5000)
plotting.bifurcation_diagram(full)

# %%

zoom = scan(1.24, 1.28, 20_000)
plotting.bifurcation_diagram(zoom)

# %%
# The torus from :math:`\beta = 1.24344` on, the cycles of 44 and 28 tokens and the
# onset of chaos are reproduced.  Two things differ.  Here every exponent has a standard
# error and every point a phase; and all exponents that can be resolved are shown,
# whereas the published axis cuts off the most negative ones.
#
# The published classifier
# ------------------------
#
# The paper calls an orbit chaotic if :math:`\lambda_1 > 0` after a fixed transient.  A
# zero exponent measured over a finite time is never exactly zero, so that this rule
# needs a threshold, and it takes neither periods nor transients into account.  Where do
# its phases differ from those that rest on all evidence?

plotting.figure(zoom, "classifiers")

# %%
# They differ at few points, black above: on the torus, where the plain average is still
# positive after 6000 tokens, and where a cycle follows a transient.  All evidence
# leaves the grey points open: near the birth of the torus, where the orbit relaxes more
# slowly than the window is long, and where chaos was transient.  A larger correction is
# beyond any classifier with a finite window: of 50 chaotic points among 256 in this
# interval, 15 are transients, which end within :math:`2\cdot10^6` tokens
# (:doc:`04_phases`).
#
# Five positional bits
# --------------------
#
# With five bits the context is 32 tokens.  The paper follows the attractor through 501
# values of :math:`\beta`, upward and downward.  These sweeps take an hour and are kept
# in ``paper_figs/results``; ``paper_figs/pe5.py`` computes them.

results = Path("../../paper_figs/results")
load = lambda name: storage.read(results / f"pe5_{name}-laptop.h5")
cycles = [load("continuation"), load("continuation_locking")]
plotting.sweep_diagram(load("full"), cycles)

# %%

plotting.sweep_diagram(load("torus"), cycles)

# %%
# The published diagrams give no numbers to compare with.  A third one, over [1.364,
# 1.43], shows chaos nearly everywhere; ``paper_figs/pe5.py`` draws it.  New are the
# branches of cycles under the sweeps (continuation finds the first instability at
# :math:`\beta = 1.31821555`, and the cycle of 96 tokens between folds at 1.37024999 and
# 1.40587884), the hysteresis between 1.327 and 1.538, and that the chaos in [1.364,
# 1.43] is a transient of about three million tokens, beyond the windows of any scan.
#
# :doc:`/figures` has, for each figure, the script, the published size and what differs.
#
# Where to go next
# ----------------
#
# * :doc:`04_phases` explains transients and coexistence.
# * :doc:`05_continuation` derives the bifurcations under these diagrams.
# * :doc:`06_theory_and_simulation` compares the mean field with networks of :math:`N`
#   spins.
