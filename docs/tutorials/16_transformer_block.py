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
# at every step.  Any function of state and parameters can be one.

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import dynamics, plotting


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
# ``temperature`` divides what the softmax of the attention is taken of.

print(dynamics.lyapunov_spectrum(block, start, {"scale": 7.0}, steps=4000, exponents=4))

# %%
# From rest to chaos
# ------------------
#
# The larger the scale, the less of its old state the block keeps in a step.
# ``dynamics.classify`` judges the orbits of 46 scales, all side by side.

scales = jnp.linspace(1, 10, 46)
verdicts = jax.vmap(
    lambda scale: dynamics.classify(
        block, start, {"scale": scale}, steps=2000, exponents=1, max_doublings=1
    )
)(scales)
for number in (13, 17, 30):
    print(f"scale {scales[number]:.1f}: {verdicts.explain()[number]}\n")

orbits = jax.vmap(
    lambda scale: dynamics.orbit(
        block, start, {"scale": scale}, samples=100, transient=4000
    )
)(scales)
phases = np.array([dynamics.PHASES[int(phase)] for phase in verdicts.phase])
figure, (upper, lower) = plt.subplots(
    2, figsize=(plotting.DOUBLE, 3.6), layout="constrained", sharex=True
)
for phase in [name for name in dynamics.PHASES if name in phases]:
    at, colour = phases == phase, plotting.PHASE_COLOURS[phase]
    points = np.broadcast_to(scales[at, None], (at.sum(), 100))
    upper.plot(points, orbits[at, :, 0], ".", color=colour, ms=2, mew=0)
    exponents = verdicts.spectrum.exponents[at, 0]
    lower.plot(scales[at], exponents, "o", color=colour, ms=3, label=phase)
lower.axhline(0, color="0.6", lw=0.6, zorder=0)
upper.set(ylabel="first coordinate of token 1")
lower.set(xlabel="scale of the branches", ylabel=r"$\lambda_1$ (nat/step)")
lower.legend(ncols=3)
plt.show()

# %%
# Below a scale of 4 the state rests, from 2.2 on in another place than before.  At 4
# its exponent reaches zero and a torus is born; it ends at rest again, then in a cycle,
# and from 5.6 to 9.2 all orbits are chaotic, with cycles among them beyond.
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
found = jax.vmap(
    lambda scale: dynamics.growth_shares(
        block, start, {"scale": scale}, steps=4000, transient=4000
    )
)(compared)
print("sum less exponent:", found.shares.sum(axis=1) - found.exponent)

figure, axis = plt.subplots(figsize=(plotting.DOUBLE, 2.4), layout="constrained")
places = np.arange(len(found.parts))
for number, scale in enumerate(compared):
    exponent = round(float(found.exponent[number]), 3) + 0.0  # not -0
    axis.bar(
        places + 0.27 * (number - 1),
        found.shares[number],
        0.25,
        yerr=found.stderr[number],
        label=rf"scale {scale}: $\lambda_1 = {exponent:.3f}$",
    )
axis.axhline(0, color="0.3", lw=0.6)
axis.set(xticks=places, xticklabels=found.parts, ylabel="share (nat/step)")
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
# A network of 16 layers with weights of their own is a map with a clock: the state
# holds the number of the next layer.  What a generic small change of the input grows by
# in each layer, until the last one, is a finite-time exponent of its own for every
# input.

layers = 16
networks = [random_weights(random) for _ in range(layers)]
stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *networks)


def layer(state, p):
    h, number = state
    branches = dynamics.transformer_block(
        jax.tree.map(lambda array: array[number], stacked), norm=dynamics.layer_norm
    )
    return dynamics.looped(branches, norm=dynamics.layer_norm).step(h, p), number + 1


network = dynamics.System(layer, unit="layer")
inputs = jnp.asarray(random.normal(size=(512, tokens, width)))
figure, axis = plt.subplots(figsize=(plotting.SINGLE, 2.4), layout="constrained")
for scale in (0.3, 1.0, 3.0):
    growth = jax.vmap(
        lambda h: dynamics.lyapunov_spectrum(
            network,
            (h, jnp.array(0)),
            {"scale": scale},
            steps=layers,
            align=0,
            blocks=4,
            exponents=1,
        )
    )(inputs).exponents[:, 0]
    print(f"scale {scale}: {growth.mean():+.3f}, spread {growth.std():.3f} nat/layer")
    axis.hist(growth, np.linspace(-0.4, 0.5, 37), histtype="step", label=f"{scale}")
axis.set(xlabel=r"$\lambda_1^{(16)}$ (nat/layer)", ylabel="inputs")
axis.legend(title="scale")
plt.show()

# %%
# The same network amplifies the differences of some inputs and forgets those of others.
# At scales 1 and 3 the spread over inputs is larger than the mean, so that one number
# for "the" exponent of 16 layers would mean little.
#
# Weights that somebody trained
# -----------------------------
#
# ``dynamics.torch_weights(layer.state_dict(), heads)`` has the arrays of a
# ``torch.nn.TransformerEncoderLayer``, with biases and with gains of its norms, and
# ``dynamics.flax_weights`` those of layers of Flax.  The norms of PyTorch's layers
# stand after heads and MLP by default (``post=True``), with ``jax.nn.relu`` between the
# two layers of the MLP:
#
# .. code-block:: python
#
#    weights = dynamics.torch_weights(layer.state_dict(), layer.self_attn.num_heads)
#    block = dynamics.transformer_block(
#        weights, norm=dynamics.layer_norm, post=True, activation=jax.nn.relu
#    )
#
# Such a step is what the layer computes, to rounding.  A file of these arrays can be
# scanned without code: ``statmech-attn new bifurcation --task block``
# (:doc:`/systems`).
#
# A language model has another loop, the text itself: ``dynamics.soft_feedback`` makes a
# system of a model that reads the mean embedding of its own next token.
#
# Where to go next
# ----------------
#
# * :doc:`10_own_map` takes any map from its formula to a figure with continuation.
# * :doc:`04_phases` explains how phases are determined and what may mislead.
# * :doc:`14_transformer_heads` trains a transformer, whose arrays of weights are those
#   that ``transformer_block`` takes, and scores its heads.
