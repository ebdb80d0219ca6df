r"""
Your own map, from function to paper figure
===========================================

Everything that the package does for its attention network it does for any map that is a
JAX function.  This tutorial takes the delayed logistic map,

.. math:: x_{t+1} = a\, x_t (1 - x_{t-1}),

from its formula to a figure for a paper: phases with reasons, a bifurcation diagram
with exponents, the branch of its fixed point with the bifurcation at which it ends, and
the torus that is born there.  The map is a good test, because its first bifurcation is
known exactly: the fixed point :math:`1 - 1/a` loses its stability at :math:`a = 2` in a
Neimark–Sacker bifurcation with rotation number :math:`1/6`.
"""

# %%
# The function
# ------------
#
# A map takes a state and its parameters, and returns the next state.  The state may be
# any tree of arrays; here it is :math:`(x_t, x_{t-1})`.  Use ``jax.numpy``, and
# ``jnp.where`` instead of ``if``.

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dynamics, plotting
from statmech_attn.dynamics.continuation import follow_cycle, Problem
from statmech_attn.dynamics.diagrams import Plan


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)


def step(state, p):
    x, before = state
    return jnp.stack([p["a"] * x * (1 - before), x])


# %%
# Phases
# ------
#
# One call classifies an orbit.  ``jax.vmap`` classifies many at once, and the result
# has the methods of a single one, with one entry for each orbit.

values = jnp.array([1.9, 2.01, 2.2, 2.27])
start = jnp.array([0.4, 0.45])
verdicts = jax.vmap(lambda a: dynamics.classify(step, start, {"a": a}, steps=8000))(
    values
)
for a, sentence in zip(values, verdicts.explain()):
    print(f"a = {a:.2f}  {sentence}\n")

# %%
# Below :math:`a = 2` the orbit is at rest.  Just above it moves on a closed curve,
# which is what a torus of a map is: its largest exponent is zero within
# :math:`2\cdot10^{-5}` nat/step, weighted averages converge to the five digits that
# the classification asks for and that averages over chaos never reach, and its rotation
# number is still close to :math:`1/6`.  At :math:`a = 2.27` there is chaos with
# :math:`\lambda_1 = 0.18`; J. C. Sprott lists 0.1831 in his *Chaos and Time-Series
# Analysis* (2003).

print("rotation number at a = 2.01:", float(verdicts.rotation_number[1]))
print(
    "exponents at a = 2.27:",
    verdicts.spectrum.exponents[3],
    "±",
    verdicts.spectrum.stderr[3],
)

# %%
# A diagram
# ---------
#
# ``dynamics.diagram`` scans one or two parameters.  A ``Plan`` holds the numerical
# choices; with ``sweep="up"`` every point begins where its neighbour ended, so that the
# orbit stays on one attractor.  With ``file="diagram.h5"`` the same call writes chunks
# as it goes and resumes after a kill; this one is small enough for memory.

plan = Plan(transient=2000, steps=4000, exponents=2, max_doublings=1)
scan = dynamics.diagram(step, {"a": np.linspace(1.9, 2.27, 128)}, start, plan)
print(scan.statmech.describe())

# %%
# The branch of the fixed point
# -----------------------------
#
# A scan shows where orbits go.  Continuation follows the fixed point itself, also where
# it is unstable, and locates its bifurcations by Newton's method to ten digits.

problem = Problem(step, jnp.zeros(2), {"a": 1.5}, "a")
branch = follow_cycle(problem, jnp.array([1 / 3, 1 / 3]), 1.5, within=(1.2, 2.27)).run()
(birth,) = [point for point in branch.special if point.kind == "neimark_sacker"]
print(birth)
print(f"a = {birth.value:.12f}, off by {abs(birth.value - 2):.0e}")

# %%
# The coefficient of the normal form says that the bifurcation is supercritical: a
# stable torus grows out of the fixed point continuously, like :math:`\sqrt{a - 2}`.
#
# A figure
# --------
#
# Every drawing function of ``plotting`` takes axes, so that panels of the package and
# your own stand in one figure, at the size of a column.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.9), layout="constrained", width_ratios=[1.7, 1]
)
plotting.bifurcation_samples(scan, section=False, ax=left)
for stable, look, words in (
    (True, "k-", "fixed point, stable"),
    (False, "k--", "unstable"),
):
    chosen = branch.stable == stable
    a = np.append(branch.values[chosen], birth.value)
    x = np.append(branch.x[chosen, 0], birth.x[0])
    left.plot(np.sort(a), x[np.argsort(a)], look, lw=1, label=words)
left.plot(birth.value, birth.x[0], "o", color="#D55E00", ms=4, label="Neimark–Sacker")
left.set(xlim=(1.9, 2.27), ylim=(0, 1.25), xlabel="growth rate $a$", ylabel="$x$")
left.legend(ncols=2, loc="upper left", handletextpad=0.4)
for a, colour in zip((2.27, 2.2, 2.1, 2.01), ("0.6", "#0072B2", "#009E73", "#D55E00")):
    orbit = dynamics.orbit(step, start, {"a": a}, samples=6000, transient=4000)
    size = 6 if a == 2.2 else 1  # a cycle of seven points
    right.plot(*orbit.T, ".", color=colour, ms=size, mew=0, label=f"{a}")
right.set(xlabel="$x_t$", ylabel="$x_{t-1}$", xlim=(-0.02, 1.05), ylim=(-0.02, 1.35))
legend = right.legend(
    title="$a$", ncols=4, loc="upper left", handletextpad=0, columnspacing=0.8
)
for handle in legend.legend_handles:
    handle.set_markersize(5)
figure.savefig("delayed_logistic.pdf")

# %%
# The same on the command line
# ----------------------------
#
# Save the function as ``delayed.py``, and beside it a study:
#
# .. code-block:: toml
#
#     kind = "bifurcation"
#
#     [system]
#     function = "delayed.py:step"
#     initial = [0.4, 0.45]
#     observables = ["x", "before"]
#
#     [parameters]
#     a = { start = 1.9, stop = 2.27, num = 1481 }
#
#     [labels]
#     a = { words = "growth rate" }
#     x = { words = "population" }
#
#     [run]
#     exponents = 2
#     refine = 2
#
# Then ``statmech-attn run study.toml -o scan.h5`` forecasts the time of the scan and
# computes it in chunks, which are kept when the run is interrupted and may be shared
# between machines; ``statmech-attn figure scan.h5`` draws it.
#
# Where to go next
# ----------------
#
# * :doc:`05_continuation` follows cycles through several bifurcations, and curves of
#   them in two parameters.
# * :doc:`04_phases` explains how phases are determined and what may mislead.
# * :doc:`11_cluster` takes a scan to a cluster.
