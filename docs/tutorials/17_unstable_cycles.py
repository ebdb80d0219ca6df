r"""
From a flow to its unstable cycles
==================================

Chaos is held together by cycles that no orbit stays on.  This tutorial takes a flow to
a map and finds all cycles of the map up to a length.  The flow is that of Rössler,

.. math:: x' = -y - z, \qquad y' = x + a y, \qquad z' = b + z (x - c),

with a = b = 0.2.
"""

# %%
# From the flow to a map
# ----------------------
#
# Seen only where it crosses a surface, a flow becomes a map, which ``section`` makes: a
# ``System`` like any other, whose step goes to the next crossing.  Limit cycles of the
# flow are cycles of this map.

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dynamics, plotting
from statmech_attn.dynamics.diagrams import Confirm, Plan, WITHOUT_SECTION


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)


def rossler(u, p):
    x, y, z = u
    return jnp.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - p["c"])])


flow = dynamics.flow(rossler, time=1.0, substeps=20)
plane = dynamics.section(flow, (0, 0.0), direction="down")
start = jnp.array([0.0, 6.0, 1.0])

# %%
# What the map does depends on c: one return, two, four, then chaos with windows.  The
# diagram needs short windows only, as a section forgets its start within a few returns.

plan = Plan(transient=300, steps=400, exponents=1, strobe_samples=64, **WITHOUT_SECTION)
values = {"c": np.linspace(2, 6, 129)}
scan = dynamics.diagram(plane, values, start, plan, confirm=Confirm(0))
plotting.bifurcation_samples(scan)

# %%
# At c = 5.7 it is chaotic.  The exponent of the map is per return; divided by the mean
# time of a return it is that of the flow, 0.0714 in the literature.

chaos = {"c": jnp.array(5.7)}
verdict = dynamics.classify(plane, start, chaos, steps=4000, transient=200, exponents=1)
orbit = dynamics.returns(plane, verdict.state, chaos, samples=2000)
print(verdict.explain())
print(dynamics.per_unit_time(verdict.spectrum, orbit.mean, orbit.stderr))

# %%
# All cycles up to three returns
# ------------------------------
#
# ``unstable_cycles`` starts where an orbit nearly returns, and follows flows that are
# built such that the cycles are their stable fixed points.  Each cycle is listed once.

cycles = dynamics.unstable_cycles(
    plane, verdict.state, chaos, period=3, steps=400, starts=40, exponents=1
)
print(cycles.counts, "cycles of 1, 2 and 3 returns")
for length, sign, exponent, hits in zip(
    cycles.length, cycles.signs[:, 0], cycles.exponents[:, 0], cycles.hits, strict=True
):
    multiplier = sign * np.exp(length * exponent)
    print(f"{length} returns, multiplier {multiplier:.6f}, reached from {hits} starts")

# %%
# The first two multipliers are published as -2.403953527 and -3.512006980 (`G. Simon
# <http://cns.physics.gatech.edu/ChaosBook/extras/simon/Roessler.html>`_).  Negative
# ones reverse the growing direction, since the map folds.
#
# Cycles of a map
# ---------------
#
# Cycles of many more steps are as easy for maps.  These are Hénon's, up to nine steps:

henon = lambda x: jnp.stack([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])
of_henon = dynamics.unstable_cycles(henon, jnp.array([0.1, 0.2]), period=9)
inside = of_henon.where(of_henon.distance < 0.02)  # without a fixed point elsewhere
print(inside)
plotting.figure(inside.to_dataset(), "unstable_cycles")

# %%
# Where to go next
# ----------------
#
# * :doc:`/howto/attractors`: cycles of repellers and of driven maps, edges of basins
# * :doc:`/howto/continuation`: follow one of the cycles in a parameter
# * :doc:`/howto/maps`: sections by planes and functions of the state
# * :doc:`/theory/indicators`: how cycles are searched for
