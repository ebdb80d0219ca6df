r"""
First steps in ten lines
========================

The network of the published figures has three patterns and attends to the last four
tokens.  At the output inverse temperature :math:`\beta = 1.28` the overlaps of its
tokens with the patterns never settle.  Is that chaos, and how reliable is the answer?

Ten lines of code answer the question, and a few more draw the same network at all other
:math:`\beta`.
"""

# %%
# Ten lines
# ---------
#
# A *preset* holds the patterns of a network, its context length and the parameters of
# the published figures.  ``trajectory`` iterates the mean-field map, which is exact for
# infinitely many spins; ``classify`` measures Lyapunov exponents along the orbit and
# names the kind of attractor.

import statmech_attn
from statmech_attn import dmft, dynamics


statmech_attn.setup()  # double precision, and compiled programs kept on the disk
file = dmft.load("poclopez-pe2")
network = dmft.network(file.patterns, context=file.context)
parameters = dmft.parameters(1.28, file.gamma, file.epsilon)
start = dmft.from_checkpoint(network, parameters, file)
state, observed = dmft.trajectory(network, parameters, start, steps=10_000)
verdict = dynamics.classify(dmft.system(network), state, parameters, exponents=4)
print(verdict.explain())

# %%
# What the overlaps do
# --------------------
#
# ``observed.m_o_se`` has a row for every token and a column for every pattern: the mean
# of the token's spins times those of the pattern, so that 1 means a token equal to the
# pattern.

import matplotlib.pyplot as plt

from statmech_attn import plotting


plt.rcParams.update(plotting.SETTINGS)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.6), layout="constrained", width_ratios=[1.6, 1]
)
for pattern in range(3):
    overlap = observed.m_o_se[-80:, pattern]
    left.plot(overlap, marker=".", label=f"pattern {pattern + 1}")
left.set(xlabel="token", ylabel=r"overlap $m^{o,\mathrm{SE}}$", ylim=(-0.6, 0.75))
left.legend(ncols=3, loc="upper center")
right.plot(observed.m_o_se[2000:, 0], observed.m_o_se[2000:, 1], "k.", ms=0.8, mew=0)
right.set(xlabel="overlap with pattern 1", ylabel="overlap with pattern 2")
right.set(xlim=(-0.55, 0.55), ylim=(-0.4, 0.45), aspect="equal")
plt.show()

# %%
# The cloud on the right is what the orbit visits in 8000 tokens: neither a curve nor a
# few points.  But a picture proves nothing: the projection of a torus, or a long cycle,
# can look as dense.
#
# What the exponents say
# ----------------------
#
# A Lyapunov exponent is the mean rate, in nats per token, at which a small difference
# between two orbits grows.

spectrum = verdict.spectrum
for number, (value, error) in enumerate(zip(spectrum.exponents, spectrum.stderr), 1):
    print(f"λ_{number} = {value:+.4f} ± {error:.4f} nat/token")

# %%
# The largest one is positive by many standard errors: a difference doubles every
# :math:`\ln 2/\lambda_1 \approx 5` tokens, so that a rounding error of :math:`10^{-16}`
# reaches the size of the attractor after about
# :math:`\ln 10^{16}/\lambda_1 \approx 260` tokens.  Beyond that no computer predicts
# the orbit, yet the *statistics* of the orbit, such as the exponents themselves, remain
# reproducible within their errors.  The error is that of a time average over correlated
# samples (it is estimated from means over blocks of the orbit).
#
# The sum of :math:`\lambda_1` and :math:`\lambda_2` is positive, that of the first
# three is negative: volumes of three dimensions shrink.  Interpolated, the Kaplan–Yorke
# dimension of the attractor follows:

print(f"Kaplan-Yorke dimension {float(spectrum.kaplan_yorke):.3f}")

# %%
# All other temperatures
# ----------------------
#
# A *study* is a table that says what to compute, here the phase at 121 values of
# :math:`\beta`.  The same table, written to a file, is the input of the command line
# (``statmech-attn run study.toml``).  Points are computed in parallel, and every result
# has methods that summarise and draw it.

study = {
    "kind": "bifurcation",
    "network": {"patterns": "poclopez-pe2"},
    "parameters": {"beta": {"start": 1.0, "stop": 1.6, "num": 121}},
    "run": {"start": "checkpoint", "transient": 4000, "steps": 4000, "exponents": 4},
}
scan = statmech_attn.run(study, progress=False)
print(scan.statmech.describe())

# %%

scan.statmech.plot()["bifurcation"]

# %%
# For small :math:`\beta` the overlaps only follow the clock of the positional code: the
# network is at a fixed point.  At :math:`\beta = 1.2434` this fixed point gives way to
# a torus (green), on which the largest exponent is zero: small differences neither grow
# nor shrink along it.  Then chaos and windows of limit cycles alternate.
#
# What looks like chaos within 4000 tokens may be a transient that ends later.  Where
# neighbours have another phase, points are *doubtful*, and are run again for much
# longer before the scan ends.  The summary above says what became of them.
#
# Results are `xarray <https://docs.xarray.dev>`_ data sets.  They can be saved with
# their study, and read again by any program that knows netCDF:

scan.statmech.table("phase", "period", "lyapunov").iloc[::15]

# %%
# Where to go next
# ----------------
#
# * :doc:`04_phases` explains how a phase is determined, and when not to trust it.
# * :doc:`03_own_network` replaces the patterns by your own.
# * :doc:`02_poclopez_aguilera` reproduces the figures of the paper.
# * :doc:`07_tiberi` is the first step into the other theory, Bayesian learning.
