r"""
Patterns growing with N, and capacity
=====================================

The network of the first tutorials stores a handful of patterns in :math:`N \to \infty`
spins.  What if it stores :math:`\alpha N` more?  Those on which no token condenses act
as noise, the crosstalk, which has a memory: it depends on all tokens so far.  This
tutorial computes the theory of it, compares it with spins, and asks how many patterns
can be stored: the capacity, and whether attention over several tokens raises it.

The equations are in :doc:`/theory/extensive`.
"""

# %%
# One pattern among many
# ----------------------
#
# The network condenses on one pattern, whose outputs, values, queries and keys are the
# same.  The :math:`\alpha N` others are a sequence: what is read at one index is
# written at the next.  The first token has the overlap 0.5 with the pattern.

import jax
import numpy as np

import statmech_attn
from statmech_attn import comparison, dmft, dynamics, plotting, studies
from statmech_attn.dmft import extensive


statmech_attn.setup()

pattern = dmft.site_classes(np.ones((4, 1, 1)))  # kinds, patterns, site classes
net = dmft.network(pattern, context=2)
problem = extensive.loaded_network(
    net, extensive.cycle(), alpha=0.25, beta=10.0, gamma=4.0
)
result = extensive.solve(problem, [0.5], steps=40)
print(result)

# %%
# Overlaps, attention weights, and the order parameters of two times come with errors,
# here those of quadrature: for a sequence the equations close.
#
# Recovery, for a while
# ---------------------
#
# A study does the same at several :math:`\alpha`, and another one for networks of
# spins, whose patterns are drawn anew for every sample.  Both are also files for the
# command line (``analysis/extensive.toml``, ``simulations/extensive_spins.toml``).

network = {"patterns": "cycle", "n_patterns": 1, "n_bits": 0, "context": 2, "seed": 0}
common = {
    "network": network,
    "parameters": {
        "alpha": [0.15, 0.25, 0.3, 0.4],
        "beta": 10.0,
        "gamma": 4.0,
        "epsilon": 0.0,
    },
}
run = {"overlap": 0.5, "steps": 40}
theory = studies.run(studies.parse({"kind": "extensive", **common, "run": run}))
spins = studies.run(
    studies.parse(
        {
            "kind": "extensive-simulation",
            **common,
            "run": run | {"n_spins": [500, 2000], "samples": 60, "runs": 32},
        }
    )
)
plotting.figure(theory, "overlaps", simulation=spins)

# %%
# Lines are the theory, markers spins.  Below the capacity the pattern is recovered.
# Above it the overlap rises at first all the same, and is lost later: the crosstalk
# needs some tokens to build up.  At finite :math:`N` the spins near the capacity,
# :math:`\alpha = 0.25`, stay below the theory, because some samples lose the pattern.

agreement = comparison.compare(theory, spins)
print(agreement.statmech.describe())

# %%
# Differences are in standard errors over samples of the patterns, extrapolated to
# :math:`N \to \infty`.  Compared number by number, so few samples are a weak test.
# Sums over tokens and :math:`\alpha` tell more: which relative error each parameter of
# the theory seems to have, and which one would have been found with probability 0.9.
# Every sample is an average over 32 runs, each with a start and spins of its own.
# Overlaps are summed together, and :math:`C` and :math:`S` each alone; the lines name
# what tells most.
#
# Summed are only tokens before the samples part, at which both :math:`N` count.  One
# :math:`N` alone has a bias of order :math:`1/N`, which looks like an :math:`\alpha`
# that is wrong by half a per cent.
#
# A test that cannot fail shows nothing.  We give the theory an :math:`\alpha` that is
# wrong by 3 %:

parameters = common["parameters"] | {"alpha": [0.1545, 0.2575, 0.309, 0.412]}
wrong = studies.run(
    studies.parse({"kind": "extensive", **common, "parameters": parameters, "run": run})
)
noticed = comparison.compare(wrong.assign_coords(alpha=theory.alpha), spins)
print(noticed.statmech.describe())

# %%
# What the crosstalk remembers
# ----------------------------
#
# Tokens that the network has left behind still determine the noise.  The correlations
# of tokens :math:`t` and :math:`t'` show it: a block of tokens that stay alike where
# the pattern is retrieved, a narrow diagonal where it is lost.

figure = plotting.figure(theory.sel(alpha=[0.15, 0.3]), "correlations")
figure.set_size_inches(plotting.DOUBLE, 3.2)
figure

# %%
# The width of the noise, and the attention to the newest and to the previous token:

plotting.figure(theory, "crosstalk")

# %%
# Where retrieval is lost, attention turns to the newest token: queries find the keys of
# the same token, whose crosstalk is the same.
#
# The capacity
# ------------
#
# ``capacity`` settles in the state that retrieves and follows it in :math:`\alpha` to
# the fold where it ends.  For one token of context without thermal noise this is the
# published :math:`\alpha_c = 0.269` of sequences (A. Düring, A. C. C. Coolen and D.
# Sherrington, 1998).

cold = extensive.loaded_network(
    dmft.network(pattern, context=1), extensive.cycle(), alpha=0.2, beta=np.inf
)
print(extensive.capacity(cold, [1.0]))

# %%
# Does attention over more tokens store more?  A study answers for contexts and
# temperatures.

capacities = studies.run(
    studies.parse(
        {
            "kind": "capacity",
            "network": network,
            "parameters": {"beta": [10.0, 5.0, 3.0, 2.0], "gamma": 4.0},
            "run": {"contexts": [1, 2]},
        }
    )
)
plotting.capacities(capacities)

# %%
# It does, and the more the warmer it is: an average over tokens has less of the thermal
# noise, and less of the crosstalk, which is not the same for all of them.
#
# Spins lose the pattern where the theory does, after as many tokens: the gallery of
# ``plotting.capacities`` shows both.
#
# Recall that moves
# -----------------
#
# A token that condenses on a pattern of the cycle draws the next one. In the frame that
# moves along, one pattern a token, this is a stationary state as well, with overlaps
# with the patterns recalled now, one token ago, and so on. With more than one token of
# context attention must find the newest: at small gamma recall does not move on.

sequence = extensive.loaded_network(
    net, extensive.cycle(), alpha=0.15, beta=3.0, gamma=5.0
)
print(np.round(extensive.moving(sequence, lags=4).m, 5))

# %%
# ``moving_capacity`` follows it to its end; ``run.moving`` does so in a study.
#
# The published network among further patterns
# --------------------------------------------
#
# A window of the newest tokens makes a map of the recursion, ``extensive.system``, that
# every tool of ``dynamics`` takes: here the largest exponent of the published network
# at beta = 1.4 with one further pattern for every ten spins.

published = dmft.load("poclopez-pe2")
few = dmft.network(published.patterns, context=published.context)
given = {"alpha": 0.1, "beta": 1.4}
given |= {"gamma": published.gamma, "epsilon": published.epsilon}
kinds = extensive.independent()
start = extensive.system_start(few, kinds, given, memory=8)
spectrum = dynamics.lyapunov_spectrum(
    extensive.system(few, kinds), start, given, steps=1000, exponents=1
)
print(spectrum.exponents, "+-", spectrum.stderr)

# %%
# It is chaotic still; ``analysis/crosstalk.py`` says at which loads the chaos and the
# torus of the six published values end, ``analysis/crosstalk_spins.py`` how spins move
# there, and ``plotting.phases_against_load`` shows both.
#
# Spins that act back on themselves
# ---------------------------------
#
# In a sequence the response of the network never returns to the site from which it
# came.  With identical kinds, as in a Hopfield network, it does: a spin meets its own
# past through the self-interaction :math:`\Gamma`.  ``solve`` then samples effective
# trajectories until the errors are as small as asked.

hopfield = extensive.loaded_network(
    net, extensive.identical(), alpha=0.1, beta=2.0, gamma=4.0
)
sampled = extensive.solve(hopfield, [0.5], steps=5, key=jax.random.key(0), error=5e-3)
print(sampled.trajectories, "trajectories")
print(np.round(sampled.value.Gamma, 4))

# %%
# On the command line
# -------------------
#
# .. code-block:: sh
#
#     statmech-attn new extensive --output study.toml     # every key, with its meaning
#     statmech-attn run analysis/extensive.toml --output theory.h5
#     statmech-attn run simulations/extensive_spins.toml --output spins.h5
#     statmech-attn compare theory.h5 spins.h5 --output agreement.h5
#     statmech-attn run analysis/capacity.toml --output capacity.h5
#     statmech-attn figure capacity.h5 --output figures
#
# Where to go next
# ----------------
#
# * :doc:`06_theory_and_simulation` compares the theory of finitely many patterns with
#   spins.
# * :doc:`05_continuation` explains branches and folds.
