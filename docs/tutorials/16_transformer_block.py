r"""
A transformer block as a dynamical system
=========================================

Transformers of recurrent depth read their own hidden state again: the same block is
applied many times before a word is written (Geiping et al., `arXiv:2502.05171
<https://arxiv.org/abs/2502.05171>`_).  Does such a block come to rest, turn in cycles,
or amplify every difference?  And which of its heads decide?  This tutorial loops a
random block, follows it from rest to chaos, and divides its largest Lyapunov exponent
among heads, MLP and norm.
"""

# %%
# The block
# ---------
#
# ``transformer_block`` makes the branches of a block from arrays of weights:
# heads that act side by side, then an MLP.  ``looped`` adds them to the hidden state,
# stage by stage, and applies a norm at the end of every step, without which the state
# would grow without bound.  The input is a branch too, which adds the same embeddings
# at every step.  Any function of state and parameters can be a branch.

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dynamics, plotting
from statmech_attn.dynamics.diagrams import Confirm, Plan


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

tokens, width, heads, size = 4, 16, 4, 4


def random_weights(random):
    normal = lambda *shape: random.normal(size=shape) / np.sqrt(shape[-1])
    return {
        "query": 2 * normal(heads, size, width),
        "key": 2 * normal(heads, size, width),
        "value": normal(heads, size, width),
        "output": normal(heads, width, size),
        "up": 2 * normal(2 * width, width),
        "down": normal(width, 2 * width),
    }


random = np.random.default_rng(6)
weights = random_weights(random)
start = jnp.asarray(random.normal(size=(tokens, width)))


def looped(weights):
    branches = dynamics.transformer_block(weights, norm=dynamics.layer_norm)
    given = {"input": lambda h, p: 0.3 * start}
    return dynamics.looped([given, *branches], norm=dynamics.layer_norm)


block = looped(weights)

# %%
# The result is a ``System`` like any other, so that every tool of ``dynamics`` takes
# it.  Two parameters may be given: ``scale`` multiplies all branches, and
# ``temperature`` divides the scores of the attention before their softmax.

print(dynamics.lyapunov_spectrum(block, start, {"scale": 7.0}, steps=4000, exponents=4))

# %%
# From rest to chaos
# ------------------
#
# The larger the scale, the less of its old state the block keeps in a step; the colder
# the attention, the fewer tokens each token looks at.  ``dynamics.classify`` judges
# the orbits of 46 scales, and of 16 temperatures at a scale of 7, all side by side.

scales, temperatures = jnp.linspace(1, 10, 46), jnp.geomspace(0.1, 10, 16)
p = {
    "scale": jnp.concatenate([scales, jnp.full(16, 7.0)]),
    "temperature": jnp.concatenate([jnp.ones(46), temperatures]),
}
verdicts = jax.vmap(
    lambda p: dynamics.classify(
        block, start, p, steps=2000, exponents=1, max_doublings=1
    )
)(p)
for number in (13, 17, 30):
    print(f"scale {scales[number]:.1f}: {verdicts.explain()[number]}\n")

orbits = jax.vmap(
    lambda p: dynamics.orbit(block, start, p, samples=100, transient=4000)
)(p)
phases = np.array([dynamics.PHASES[int(phase)] for phase in verdicts.phase])
figure, axes = plt.subplots(
    2,
    2,
    figsize=(plotting.DOUBLE, 3.6),
    layout="constrained",
    sharex="col",
    sharey="row",
)
for (upper, lower), name, varied in zip(axes.T, p, (slice(46), slice(46, None))):
    for phase in [name for name in dynamics.PHASES if name in phases]:
        at = np.arange(62)[varied][phases[varied] == phase]
        colour, values = plotting.PHASE_COLOURS[phase], p[name][at]
        points = np.broadcast_to(values[:, None], (len(at), 100))
        upper.plot(points, orbits[at, :, 0], ".", color=colour, ms=2, mew=0)
        exponents = verdicts.spectrum.exponents[at, 0]
        lower.plot(values, exponents, "o", color=colour, ms=3, label=phase)
    lower.axhline(0, color="0.6", lw=0.6, zorder=0)
axes[0, 0].set_ylabel("first coordinate of token 1")
axes[1, 0].set(xlabel="scale of the branches", ylabel=r"$\lambda_1$ (nat/step)")
axes[1, 1].set(xlabel="temperature of the attention", xscale="log", xlim=(0.08, 12))
figure.legend(
    *axes[1, 0].get_legend_handles_labels(), ncols=6, loc="outside upper center"
)
plt.show()

# %%
# Below a scale of 4 the state rests, from 2.2 on in another place than before.  At 4
# its exponent reaches zero and a torus is born; it ends at rest again, then in a cycle,
# and from 5.6 to 9.2 all orbits are chaotic, with cycles among them beyond.  At a scale
# of 7 chaos needs attention that is neither sharp nor uniform: colder than 0.4 the
# block alternates between two states, hotter than 2.5 it rests.
#
# This is one block, and its seed was chosen.  Of eight, looked at for six scales each
# from 0.3 to 8, it alone was chaotic, and three more had a largest exponent of zero
# somewhere.  The windows are short, too: ``dynamics.diagram`` scans with longer ones,
# looks again where chaos may be transient, and writes a file.
#
# Which heads decide
# ------------------
#
# A stage turns the leading tangent vector v into :math:`w = v + \sum_b u_b`, with
# :math:`u_b` the change by branch b.  The growth of its length is shared by
#
# .. math:: \ln\frac{|w|}{|v|} = \sum_b \ln\frac{|w|}{|v|}\,
#           \frac{(w + v)\cdot u_b}{|w|^2 - |v|^2},
#
# and the norm has what it stretches the vector by.  ``growth_shares`` averages these
# terms along the orbit.  They add up to :math:`\lambda_1` without remainder
# (:doc:`/theory/indicators`).

compared = jnp.array([3.8, 4.4, 7.0])
growth = jax.vmap(
    lambda scale: dynamics.growth_shares(
        block, start, {"scale": scale}, steps=4000, transient=4000
    )
)(compared)
print("sum less exponent:", growth.shares.sum(axis=1) - growth.exponent)

figure, axis = plt.subplots(figsize=(plotting.DOUBLE, 2.4), layout="constrained")
places = np.arange(len(growth.parts))
for number, scale in enumerate(compared):
    exponent = round(float(growth.exponent[number]), 3) + 0.0  # not -0
    axis.bar(
        places + 0.27 * (number - 1),
        growth.shares[number],
        0.25,
        yerr=growth.stderr[number],
        label=rf"scale {scale}: $\lambda_1 = {exponent:.3f}$",
    )
axis.axhline(0, color="0.3", lw=0.6)
axis.set(xticks=places, xticklabels=growth.parts, ylabel="share (nat/step)")
axis.legend()
plt.show()

# %%
# The input has no share, since it is the same for neighbouring states.  Heads and MLP
# lengthen the vector, and the norm, which divides by the size of a stream that the
# branches have made long, takes nearly all of it back: :math:`\lambda_1` is a small
# difference of large terms.  Between the torus and chaos heads 2 and 3 gain what
# heads 1 and 4 lose.
#
# Is a share what a head is responsible for?  The test is to switch it off.

kept = jnp.concatenate([jnp.ones((1, heads)), 1 - jnp.eye(heads)])


def ablated(kept):
    output = weights["output"] * kept[:, None, None]
    return dynamics.lyapunov_spectrum(
        looped(weights | {"output": output}),
        start,
        {"scale": 7.0},
        steps=4000,
        transient=4000,
        exponents=1,
    )


without = jax.vmap(ablated)(kept)
for name, exponent, error in zip(
    ("all heads", *(f"without head {n}" for n in range(1, heads + 1))),
    without.exponents[:, 0],
    without.stderr[:, 0],
):
    print(f"{name:<15} {exponent:+.3f} ± {error:.3f} nat/step")

# %%
# It is not.  Without head 1, 2 or 4 the block is no longer chaotic, but without head 3,
# which has the largest share, the exponent is nearly twice as large: the other heads
# then act on other states.  Shares are an account of where growth happens along an
# orbit; what a block would do without a head, ablation tells.
#
# Depth as time
# -------------
#
# A network of 16 layers with weights of their own is a map with a clock, which
# ``dynamics.layered`` makes of a list of blocks.  What the most sensitive small change
# of an input grows by, until the last layer, is a finite-time exponent of its own for
# every input: the largest singular value of the Jacobian of all layers
# (:doc:`/theory/depth`).

network = [
    dynamics.looped(
        dynamics.transformer_block(random_weights(random), norm=dynamics.layer_norm),
        norm=dynamics.layer_norm,
    )
    for _ in range(16)
]
inputs = jnp.asarray(random.normal(size=(64, tokens, width)))
figure, (left, right) = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.4), layout="constrained"
)
for scale in (0.3, 1.0, 3.0):
    depth = dynamics.depth_exponents(network, inputs, {"scale": scale})
    print(f"scale {scale}\n{depth}")
    left.hist(depth.values[:, 0], np.linspace(-0.1, 0.6, 22), histtype="step")
    growth, error = depth.by_layer[:, 0], depth.by_layer_stderr[:, 0]
    right.errorbar(range(1, 17), growth, error, fmt="o-", lw=0.5, label=f"{scale}")
left.set(xlabel=r"$\lambda_1^{(16)}$ (nat/layer)", ylabel="inputs")
right.axhline(0, color="0.6", lw=0.6, zorder=0)
right.set(xlabel="layer", ylabel="growth in the layer (nat)")
right.margins(x=0.05)
right.legend(title="scale")
plt.show()

# %%
# The leading direction is one that the first layers amplify most; what they have made
# of it grows little in the layers that follow.  Exponents differ between inputs, at
# scales 1 and 3 by half of their mean, so that one number for "the" exponent of 16
# layers says little of an input.
#
# Weights that somebody trained
# -----------------------------
#
# A file with the arrays of a trained block can be scanned without code:
# ``statmech-attn new bifurcation --task block``.  :doc:`/systems` has its form and the
# names of the arrays in a ``torch.nn.TransformerEncoderLayer``, whose norms stand after
# heads and MLP by default (``post=True``), with ``jax.nn.relu`` between the two layers
# of the MLP.  Such a step is what the layer computes, to rounding.
#
# A language model that reads itself
# ----------------------------------
#
# A language model has another loop, the text itself: ``dynamics.soft_feedback`` makes a
# system of a model that reads the mean embedding of its own next token, in a window of
# four.  Its temperature is that of the softmax over 32 words.  ``dynamics.diagram``
# scans it.

random = np.random.default_rng(5)
weights = random_weights(random)
embedding = jnp.asarray(random.normal(size=(32, width)))
scores = random.normal(size=(32, width)) / 4
places = random.normal(size=(tokens, width))
model = dynamics.looped(
    dynamics.transformer_block(weights, norm=dynamics.layer_norm),
    norm=dynamics.layer_norm,
)
feedback = dynamics.soft_feedback(
    lambda window: scores @ model.step(window + places, {"scale": 2.0})[-1], embedding
)
plan = Plan(transient=2000, steps=1000, exponents=1, max_doublings=0)
scan = dynamics.diagram(
    feedback,
    {"temperature": np.linspace(0.02, 0.48, 47)},
    embedding[:tokens],
    plan,
    confirm=Confirm(0),
)
print(scan.statmech.describe())
figure, (ribbon, upper, lower) = plt.subplots(
    3,
    figsize=(plotting.DOUBLE, 3.8),
    layout="constrained",
    sharex=True,
    height_ratios=[0.06, 1, 0.8],
)
plotting.phase_ribbon(scan, ax=ribbon)
plotting.bifurcation_samples(scan, section=False, ax=upper)
plotting.lyapunov_spectrum(scan, ax=lower)
ribbon.set(xlabel="")
upper.set(xlabel="", ylabel="coordinate of a word")
figure.legend(*ribbon.get_legend_handles_labels(), ncols=5, loc="outside upper center")
plt.show()

# %%
# A cold model is greedy and repeats a cycle of words.  A warm one rests in a mean of
# all words, down to a temperature of 0.35.  From 0.34 to 0.31 its largest exponent is
# near zero, and windows of 1000 tokens do not tell a torus from a slow approach.  From
# 0.3 to 0.1 the text is chaotic, with exponents of 0.15 to 0.3 nat per token.  The seed
# was chosen: of 16, at 24 temperatures each, 12 had chaos somewhere.  Doubtful points
# may be transient; ``confirm=Confirm()``, left out here to save time, runs them again.
#
# Where to go next
# ----------------
#
# * :doc:`10_own_map` takes any map from its formula to a figure with continuation.
# * :doc:`04_phases` explains how phases are determined and what may mislead.
# * :doc:`14_transformer_heads` trains a transformer, whose arrays of weights are those
#   that ``transformer_block`` takes, and scores its heads.
