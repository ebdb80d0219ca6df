r"""
Change the network
==================

The published figures are those of one network: three patterns, four tokens of context,
one draw of random patterns.  Which of its properties are typical?  This tutorial
changes the patterns, the context and the structure of the network, and ends with a
network of your own in a file that every study can refer to.
"""

# %%
# What a network is made of
# -------------------------
#
# A network has four matrices of :math:`M` patterns of :math:`N` signs each: for outputs
# (``o``), values (``v``), queries (``q``) and keys (``k``).  For :math:`N \to \infty`
# all that matters is which columns of signs occur and what share of the spins has each:
# these are the *site classes*.  Each pattern also has some bits of positional code,
# which give the network a clock of period :math:`C`, the length of the context.

import jax
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dmft, plotting


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

print("presets:", ", ".join(dmft.presets()))
file = dmft.load("poclopez-pe2")
print(file)

# %%
# Other draws of the patterns
# ---------------------------
#
# The patterns of the paper are random: the sites fall into three equal segments, and
# each segment has one random column.  A study can name this generator and a seed, so
# that another seed gives another draw of the same kind of network.  Five such draws are
# scanned in :math:`\beta` at the published :math:`\gamma` and :math:`\epsilon`:

run = {
    "start": "token",
    "transient": 3000,
    "steps": 3000,
    "exponents": 2,
    "max_doublings": 1,
}
beta = {"start": 0.6, "stop": 3.0, "num": 65}


def study(**network):
    parameters = {"beta": beta, "gamma": file.gamma, "epsilon": file.epsilon}
    return {
        "kind": "bifurcation",
        "network": network,
        "parameters": parameters,
        "run": run,
    }


draw = {
    "patterns": "random-segments",
    "n_patterns": 3,
    "n_segments": 3,
    "n_bits": 2,
    "context": 4,
}
scans = {"published": statmech_attn.run(study(patterns="poclopez-pe2"), progress=False)}
for seed in range(1, 6):
    scans[f"seed {seed}"] = statmech_attn.run(study(**draw, seed=seed), progress=False)

figure, axes = plt.subplots(
    len(scans), figsize=(plotting.DOUBLE, 2.6), layout="constrained", sharex=True
)
for axis, (name, scan) in zip(axes, scans.items()):
    plotting.phase_ribbon(scan, ax=axis)
    axis.set_yticks([0.5], [name])
    axis.set_xlabel("")
axes[-1].set_xlabel(r"output inverse temperature $\beta$")
axes[-1].tick_params(labelbottom=True)
entries = {}
for axis in axes:
    handles, labels = axis.get_legend_handles_labels()
    entries |= dict(zip(labels, handles))
figure.legend(
    entries.values(), entries.keys(), ncols=len(entries), loc="outside upper center"
)
plt.show()

# %%
# Networks with three random segments behave very differently from one draw to the next.
# The dynamics depends on the correlations among the patterns, which do not average out,
# since there are only three columns.  The share of :math:`\beta` with a positive
# exponent varies accordingly:

for name, scan in scans.items():
    share = float((scan.lyapunov.sel(exponent=1) > 1e-3).mean())
    print(f"{name:10s} λ_1 > 0.001 nat/token at {share:4.0%} of the β")

# %%
# A statement about a network with random patterns must therefore be one about the
# ensemble of draws; :doc:`12_plugin` makes this ensemble a kind of study.
#
# Structured patterns
# -------------------
#
# The generator ``cycle`` builds patterns that recall one another: the value of pattern
# :math:`a` is the output of pattern :math:`a + 1`, so that a token equal to pattern
# :math:`a + 1` is answered by pattern :math:`a`.  Started from one pattern, the network
# walks through all of them, if :math:`\beta` is large enough to keep the overlaps
# alive.

cyclic = dmft.cycle(jax.random.key(0), n_patterns=5, n_bits=2)
network = dmft.network(cyclic, context=4)
figure, axes = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.0), layout="constrained", sharey=True
)
for axis, value in zip(axes, (1.0, 4.0)):
    parameters = dmft.parameters(value, 20.0, 0.02)
    start = dmft.from_row(network, parameters, 0)
    _, observed = dmft.trajectory(network, parameters, start, steps=60)
    image = axis.imshow(
        observed.m_o_se.T,
        aspect="auto",
        cmap="RdBu_r",
        vmin=-1,
        vmax=1,
        extent=(0, 60, 5.5, 0.5),
    )
    axis.set(title=rf"$\beta = {value:g}$", xlabel="token", yticks=range(1, 6))
axes[0].set_ylabel("pattern")
figure.colorbar(image, ax=axes, label=r"overlap $m^{o,\mathrm{SE}}$", pad=0.01)
plt.show()

# %%
# A longer context
# ----------------
#
# The length of the context is another entry of the same table.  Each positional bit
# doubles the period of the clock, and with it the shortest time after which the orbit
# can recur.  For this draw of the semantic patterns chaos begins and ends at about the
# same :math:`\beta` for both lengths.

longer = draw | {"n_bits": 3, "context": 8, "seed": 3}
contexts = {
    "$C = 4$": scans["seed 3"],
    "$C = 8$": statmech_attn.run(study(**longer), progress=False),
}

figure, axis = plt.subplots(figsize=(plotting.SINGLE, 2.4), layout="constrained")
for words, scan in contexts.items():
    scan.lyapunov.sel(exponent=1).plot(ax=axis, label=words)
axis.axhline(0, color="k", lw=0.5)
axis.set(
    title="", xlabel=r"$\beta$", ylabel=r"$\lambda_1$ (nat/token)", ylim=(-0.3, 0.2)
)
axis.legend()
plt.show()

# %%
# A network of your own
# ---------------------
#
# ``from_matrices`` finds the site classes of any four matrices of signs.  The network
# below recalls a cycle of four patterns like the one above, but imperfectly: a share of
# the signs of its values is wrong.


def noisy_cycle(share_wrong, n_sites=400):
    generator = np.random.default_rng(0)
    o = generator.choice([-1, 1], size=(4, n_sites))
    v = np.roll(o, -1, axis=0) * np.where(
        generator.random(o.shape) < share_wrong, -1, 1
    )
    return dmft.from_matrices(o, v, o, o, positional=np.ones((4, 4, 2)))


figure, axes = plt.subplots(
    1, 3, figsize=(plotting.DOUBLE, 1.9), layout="constrained", sharey=True
)
for axis, share in zip(axes, (0.0, 0.2, 0.4)):
    mine = noisy_cycle(share)
    network, parameters = (
        dmft.network(mine, context=4),
        dmft.parameters(3.0, 20.0, 0.02),
    )
    start = dmft.from_row(network, parameters, 0)
    _, observed = dmft.trajectory(network, parameters, start, steps=40)
    image = axis.imshow(
        observed.m_o_se.T,
        aspect="auto",
        cmap="RdBu_r",
        vmin=-1,
        vmax=1,
        extent=(0, 40, 4.5, 0.5),
    )
    axis.set(title=f"{share:.0%} of signs wrong", xlabel="token", yticks=range(1, 5))
axes[0].set_ylabel("pattern")
figure.colorbar(image, ax=axes, label=r"overlap $m^{o,\mathrm{SE}}$", pad=0.01)
plt.show()
print(mine.n_classes, "site classes of 400 sites")

# %%
# The semantic patterns enter the mean-field map only through the correlations of an odd
# number of output patterns with one pattern of each kind, which ``even_correlations``
# returns.  Two networks with the same correlations have the same mean-field dynamics,
# whatever their sites.  The correlations with the keys are:

for outputs, numbers in dmft.even_correlations(mine).items():
    with_keys = np.round(numbers[3], 2) + 0.0  # no minus before a zero
    print("outputs", [a + 1 for a in outputs], "with keys:", with_keys)

# %%
# Saved as a pattern file, the network is available to every study and every command
# under the name of the file: ``patterns = "mine.json"``.

mine = noisy_cycle(0.2)
dmft.save(
    "mine.json",
    dmft.PatternFile(mine, context=4, epsilon=0.02, gamma=20.0, checkpoint=None),
)
orbit = {
    "kind": "trajectory",
    "network": {"patterns": "mine.json"},
    "parameters": {"beta": [1.5, 3.0]},
    "run": {"transient": 500, "steps": 400},
}
result = statmech_attn.run(orbit, progress=False)
result.statmech.plot()["trajectories"]

# %%
# At :math:`\beta = 1.5` the recall has died out within 500 tokens, and only the
# response to the positional clock is left, with an amplitude of some :math:`10^{-4}`.
# At :math:`\beta = 3` the recall continues.
#
# Where to go next
# ----------------
#
# * :doc:`04_phases`: which of these phases can be trusted, and which attractors
#   coexist.
# * :doc:`06_theory_and_simulation`: how many spins it takes until the mean field holds.
# * :doc:`/patterns` describes the pattern file.
