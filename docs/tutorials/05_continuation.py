r"""
Continuation from the first instability to chaos
================================================

A scan in :math:`\beta` shows where orbits go.  It does not show what is unstable, where
exactly a cycle is born, or why.  Continuation follows a fixed point or cycle itself,
whether it is stable or not, and solves for its bifurcations.  This tutorial follows the
published network from order to chaos: the fixed point up to its first instability, the
torus that is born there, the cycle on which the torus locks, and the folds and period
doublings at which that cycle ends.
"""

# %%
# The first instability
# ---------------------
#
# A study of kind ``continuation`` simulates the network at one end of an interval,
# refines the fixed point or cycle that it reaches by Newton's method, and follows it in
# pseudo-arclength, so that it also passes folds.  At every step it monitors the
# multipliers, and it solves for the points at which one crosses the unit circle.

import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dmft, dynamics, plotting


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

fixed_point = {
    "kind": "continuation",
    "network": {"patterns": "poclopez-pe2"},
    "parameters": {"beta": {"start": 0.9, "stop": 1.4}},
    "run": {"start": "checkpoint", "transient": 20_000, "largest_step": 0.05},
    "curves": {"parameter": "epsilon", "start": 0.005, "stop": 0.2, "max_points": 25},
}
first = statmech_attn.run(fixed_point, progress=False)
print(first.statmech.describe())

# %%
# The fixed point loses its stability at :math:`\beta = 1.24344454781`, where a pair of
# complex multipliers leaves the unit circle: a Neimark–Sacker bifurcation.  All printed
# digits are correct: the error is that of the last Newton step and of rounding, some
# :math:`10^{-15}`.  A scan, in comparison, only brackets this point between two values
# of its grid.
#
# The coefficient of the normal form is negative, the bifurcation *supercritical*: the
# torus grows continuously, with the radius :math:`\propto \sqrt{\beta - \beta_c}`, and
# turns by :math:`\rho = 0.2419` cycles per clock period.  Both are predictions with
# which an orbit can be compared.

special = first.isel(special=0)
critical, rotation = float(special.special_beta), float(special.special_rotation)
file = dmft.load("poclopez-pe2")
network = dmft.network(file.patterns, context=file.context)
system = dmft.system(network)
print(f"predicted at the bifurcation: {rotation:.6f} cycles per clock period")
for distance in (4e-3, 1e-3):
    parameters = dmft.parameters(critical + distance, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(network, parameters, file)
    torus = dynamics.classify(system, start, parameters, transient=40_000, exponents=2)
    number = float(torus.rotation_number)
    print(f"at β_c + {distance:.0e}: {number:.6f}, difference {number - rotation:+.1e}")

# %%
# The difference vanishes linearly with the distance, as it must: the prediction is the
# value at the bifurcation itself, and the frequency drifts along the branch of tori.
#
# How the instability depends on :math:`\epsilon`
# ------------------------------------------------
#
# With a table ``[curves]`` every bifurcation is followed in a second parameter, here
# the weight :math:`\epsilon` of the positional part.  Along the curve the rotation
# number and the coefficient of the normal form vary; where one reaches a distinguished
# value there is a point of codimension two. At :math:`\epsilon = 0.0300` the rotation
# number is 1/4, a strong resonance.  Between the two Chenciner points the
# coefficient is positive and the bifurcation *subcritical*: there the network jumps to
# a torus of finite size instead of growing one.

plotting.critical_curves(first)

# %%
# A cycle on the torus
# --------------------
#
# As :math:`\beta` grows, the rotation number drifts through rational values, and the
# torus *locks*: on it a stable and an unstable cycle are born together in a fold.  At
# :math:`\beta = 1.27` orbits end on a cycle of 28 tokens, seven periods of the clock,
# which ``period = 7`` follows.

locked = {
    "kind": "continuation",
    "network": {"patterns": "poclopez-pe2"},
    "parameters": {"beta": {"start": 1.26, "stop": 1.28}},
    "run": {
        "start": "checkpoint",
        "transient": 60_000,
        "period": 7,
        "at": 1.27,
        "largest_step": 0.2,
        "max_points": 25,
    },
}
locking = statmech_attn.run(locked, progress=False)
print(locking.statmech.describe())

# %%
# Under the bifurcation diagram
# -----------------------------
#
# A scan of the same interval, with the branches over it.

window = {
    "kind": "bifurcation",
    "network": {"patterns": "poclopez-pe2"},
    "parameters": {"beta": {"start": 1.2655, "stop": 1.2755, "num": 121}},
    "run": {"transient": 20_000, "steps": 4000, "exponents": 2, "max_doublings": 0},
}
scan = statmech_attn.run(window, progress=False)
plotting.continuation_diagram(locking, scan=scan)

# %%
# From the left: chaos ends at :math:`\beta = 1.26696`, where the cycle of 28 tokens is
# born in a fold together with an unstable partner (dashed).  It doubles its period at
# 1.26756, is stable again from 1.26869 to 1.27112 and from 1.27304 on; in between the
# orbits are on the doubled cycle, of 56 tokens, which ``switch = 1`` would follow.  At
# 1.27386 the cycle ends in a second fold, and chaos returns.  Already before that fold
# orbits are chaotic for thousands of tokens until they reach the cycle: inside the
# window of the cycle the chaotic set does not vanish, but it no longer attracts
# (:doc:`04_phases`).
#
# The Lyapunov exponents of the scan agree with this.  The largest one (solid) touches
# zero at the dotted lines, which mark the bifurcations computed by continuation alone.

figure, axes = plt.subplots(
    2,
    figsize=(plotting.DOUBLE, 2.8),
    layout="constrained",
    sharex=True,
    height_ratios=(0.12, 1),
)
plotting.phase_ribbon(scan, ax=axes[0])
plotting.lyapunov_spectrum(scan, ax=axes[1])
for value in locking.special_beta.values[np.isfinite(locking.special_beta.values)]:
    axes[1].axvline(value, color="0.6", lw=0.6, ls=":")
axes[0].set_xlabel("")
figure.legend(*axes[0].get_legend_handles_labels(), ncols=4, loc="outside upper center")
plt.show()

# %%
# Where to go next
# ----------------
#
# * :doc:`10_own_map` uses the same continuation on a map of yours, from Python.
# * :doc:`/theory/continuation` and :doc:`/theory/two_parameters` derive what is solved
#   for.
# * ``analysis/continuation.toml`` and ``analysis/continuation_locking.toml`` are the
#   studies of this page at full resolution.
