r"""
Heads of a transformer: scores against ablation
===============================================

Which heads of a trained transformer could be removed?  The theory answers for a network
whose attention is fixed and whose values are linear.  A transformer has an attention
that reads its own hidden state, layer norm, and an MLP, so for its heads a score is a
hypothesis.  This tutorial trains a small transformer on the characters of a text,
scores its heads by the theory and by the gradient of a mask, and compares both scores
with the truth: what the network loses without the head.
"""

# %%
# A task that ships with Python
# -----------------------------
#
# The next character of Python's own documentation, after sixteen of them.

import tempfile
from pathlib import Path
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import statmech_attn
from statmech_attn import bpkr, plotting


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

text = " ".join(" ".join(topics.values()).lower().split())
alphabet, codes = np.unique(list(text), return_inverse=True)
tokens = 16
starts = np.random.default_rng(0).permutation(len(codes) // (tokens + 1))
windows = codes[starts[:9000, None] * (tokens + 1) + np.arange(tokens + 1)]
train, test = windows[:8000], windows[8000:]
print(f"{len(alphabet)} characters; the first window: {''.join(alphabet[train[0]])!r}")

# %%
# The transformer
# ---------------
#
# Two layers of four heads, with layer norm before each block and skip connections
# around it.  ``gates`` multiplies the output of every head: all are one, and zero
# ablates a head.  Besides its logits the function returns what the theory will need:
# the embedded tokens and the attention of both layers.

layers, heads, width, size = 2, 4, 32, 8
all_heads = np.ones((layers, heads), np.float32)
seen = np.tril(np.ones((tokens, tokens), bool))  # a token sees those before it


def initial(key):
    keys = iter(jax.random.split(key, 20))

    def normal(*shape):
        fan_in = shape[-1]
        return jax.random.normal(next(keys), shape, jnp.float32) / np.sqrt(fan_in)

    layer = lambda: {
        "query": normal(heads, size, width),
        "key": normal(heads, size, width),
        "value": normal(heads, size, width),
        "output": normal(heads, width, size),
        "up": normal(2 * width, width),
        "down": normal(width, 2 * width),
    }
    return {
        "embed": normal(len(alphabet), width) * np.sqrt(width),
        "position": normal(tokens, width),
        "layers": [layer() for _ in range(layers)],
        "read": normal(len(alphabet), width),
    }


def normalised(x):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


@jax.jit
def network(weights, x, gates):
    embedded = hidden = weights["embed"][x] + weights["position"]
    attention = []
    for gate, w in zip(gates, weights["layers"]):
        z = normalised(hidden)
        query, key, value = (
            jnp.einsum("pti,hgi->phtg", z, w[name])
            for name in ("query", "key", "value")
        )
        products = jnp.einsum("phtg,phsg->phts", query, key) / np.sqrt(size)
        rows = jax.nn.softmax(jnp.where(seen, products, -jnp.inf), axis=-1)
        of_heads = jnp.einsum("phts,phsg,hig->phti", rows, value, w["output"])
        hidden = hidden + jnp.einsum("phti,h->pti", of_heads, gate)
        hidden = hidden + jax.nn.gelu(normalised(hidden) @ w["up"].T) @ w["down"].T
        attention.append(rows)
    return normalised(hidden) @ weights["read"].T, embedded, attention


def losses(weights, x, y, gates):
    """Cross entropy of every example and token."""
    logits, _, _ = network(weights, x, gates)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y)


optimiser = optax.adam(optax.cosine_decay_schedule(3e-3, 600))


@jax.jit
def trained(weights, batches):
    def step(carry, batch):
        weights, state = carry
        mean = lambda weights: losses(
            weights, batch[:, :-1], batch[:, 1:], all_heads
        ).mean()
        slope = jax.grad(mean)(weights)
        changes, state = optimiser.update(slope, state)
        return (optax.apply_updates(weights, changes), state), None

    return jax.lax.scan(step, (weights, optimiser.init(weights)), batches)[0][0]


start_key, batch_key, resample_key = jax.random.split(jax.random.key(0), 3)
batches = train[jax.random.randint(batch_key, (600, 64), 0, len(train))]
weights = trained(initial(start_key), jnp.asarray(batches))

x_test, y_test = test[:, :-1], test[:, -1]


def on_test(gates):
    """Loss and right answers of the last token, by test example."""
    logits, _, _ = network(weights, x_test, jnp.asarray(gates))
    loss = optax.softmax_cross_entropy_with_integer_labels(logits[:, -1], y_test)
    return np.asarray(loss), np.asarray(logits[:, -1].argmax(axis=-1) == y_test)


whole_loss, whole_right = on_test(all_heads)
print(f"right answers: {whole_right.mean():.3f}, loss {whole_loss.mean():.3f}")
most_common = np.bincount(train[:, -1]).argmax()
print(f"always the most common character: {(y_test == most_common).mean():.3f}")

# %%
# Scores of the theory
# --------------------
#
# The theory takes the attention of the trained network as it is, and asks which paths
# from the embedding to the last token a Bayesian network with these paths would use for
# a task.  The task needs labels that are numbers: whether the next character is a
# vowel.  A path passes each layer by one of its heads or by the skip connection, so
# there are :math:`5 \times 5` of them, and the skip of a layer is scored like a head.

scored = train[:400]
vowel = np.isin(alphabet, list("aeiou"))
Y = np.where(vowel[scored[:, -1]], 1.0, -1.0)
_, embedded, attention = network(weights, scored[:, :-1], all_heads)
omega = bpkr.attention_arrays(
    [np.swapaxes(rows, 0, 1) for rows in attention], queries="rows"
)
xi = bpkr.attended(np.swapaxes(embedded, 1, 2), omega, readout="last", skip=1.0)
problem = bpkr.Problem(
    xi, Y - Y.mean(), heads=omega.heads, skip=1.0, width=width, temperature=0.1
)
scores = bpkr.score(problem, resample_key, resamples=6)
print(scores)
plotting.head_scores(scores.to_dataset())

# %%
# Error bars are those of a jackknife: four fifths of the examples are drawn several
# times, each with a saddle point of its own.  A line across a bar is the floor, the
# score of a head that :math:`f` does not read (:doc:`/data`).
#
# Scores of a gradient
# --------------------
#
# The usual baseline is the gradient of the loss in the gate of the head, as a mean of
# its absolute value over examples (Michel, Levy, Neubig, arXiv:1905.10650).


def of_example(gates):
    """Loss of the last token, by test example."""
    return losses(weights, x_test, test[:, 1:], gates)[:, -1]


# %%
# The truth: ablation
# -------------------
#
# :func:`~statmech_attn.bpkr.ablate` takes losses as a function of the gates, and their
# derivatives.  One head after the other is switched off, without training again, then
# all pairs of heads, and all heads in greedy order.  Errors are those of the mean
# difference on the same test examples.

ablation = bpkr.ablate(
    of_example,
    [heads] * layers,
    gradient=jax.jacfwd(of_example),
    pairs=True,
    greedy=True,
)
plotting.ablation(ablation.to_dataset())

# %%
# Where the loss without two heads is above the sum of both, one of them does the work
# of the other.

plotting.figure(ablation.to_dataset(), "head_interactions")

# %%
names = ablation.names
gained, gained_error = ablation.gained
of_gradient = ablation.gradient.value
of_theory = np.array(
    [s for s, name in zip(scores.score, scores.names) if not name.startswith("skip")]
)
for row in zip(names, of_theory, of_gradient, gained, gained_error):
    print("head {}: theory {:.2f}, gradient {:.3f}, loss {:+.3f} ± {:.3f}".format(*row))

figure, panels = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.6), layout="constrained", sharey=True
)
for panel, values, title in zip(
    panels, (of_theory, of_gradient), ("theory", "gradient")
):
    for layer, marker in zip(range(layers), "os"):
        of_layer = slice(layer * heads, (layer + 1) * heads)
        panel.errorbar(
            values[of_layer],
            gained[of_layer],
            gained_error[of_layer],
            fmt=marker,
            ms=4,
            capsize=2,
            label=f"layer {layer + 1}",
        )
    panel.set(xlabel=f"score by {title}")
    panel.margins(x=0.05)
panels[0].legend()
panels[0].set_ylabel("loss gained without the head")
plt.show()

scores_by_name = {"theory": of_theory, "gradient": of_gradient}
print(agreement := ablation.agreement(scores_by_name))

# %%
# The level is the share of random orders of the heads that agree as well with the
# losses.  Eight heads in any order have a rank correlation of :math:`0 \pm 0.38` with
# the truth, so that one training can tell a good score from none only where the
# correlation is nearly one.
#
# Pruning in the order of a score
# -------------------------------
#
# The heads are switched off one after the other, the lowest score first.  The order of
# the true losses and random orders are the references.


def accuracies(order):
    gates, right = all_heads.copy(), [whole_right.mean()]
    for head in order:
        gates.flat[head] = 0.0
        right.append(on_test(gates)[1].mean())
    return right


random = np.random.default_rng(1)
at_random = [accuracies(random.permutation(layers * heads)) for _ in range(10)]
figure, axis = plt.subplots(figsize=(plotting.SINGLE, 2.5), layout="constrained")
pruned = np.arange(layers * heads + 1)
for label, values in (
    ("ablation", gained),
    ("gradient", of_gradient),
    ("theory", of_theory),
):
    axis.plot(pruned, accuracies(np.argsort(values)), "o-", ms=3, label=label)
axis.plot(pruned, np.mean(at_random, axis=0), color="0.5", label="random orders")
axis.set(xlabel="number of pruned heads", ylabel="accuracy", xticks=pruned)
axis.legend()
plt.show()

# %%
# With greedy order the loss goes up as late as one head at a time can do.

plotting.figure(ablation.to_dataset(), "greedy_pruning")

# %%
# :doc:`The measured comparison </transformer_heads>` says the same of ten trainings on
# each of four tasks with two and four layers: the gradient of a gate orders all heads
# best, the norm of what a head adds does as well within a layer, and the scores of this
# theory are not seen to be better than a random order.  Use them where the
# assumptions hold, for attention with linear values (:doc:`08_own_heads`); of a
# transformer, ablate the heads.
#
# The same from a file
# --------------------
#
# ``statmech-attn score heads.npz --queries rows --skip 1`` reads these arrays, and
# writes the scores with their errors, the order parameters by head, and a figure.

folder = Path(tempfile.mkdtemp())
rows = {f"attention_{l}": np.swapaxes(a, 0, 1) for l, a in enumerate(attention, 1)}
np.savez_compressed(folder / "heads.npz", x=np.swapaxes(embedded, 1, 2), Y=Y, **rows)
print(f"wrote {len(rows)} layers of attention")

# %%
# Where to go next
# ----------------
#
# * :doc:`08_own_heads`: heads and data of your own, pruning, and learning curves.
# * :doc:`/data`: the arrays of a file, masks and padding; means of heads in place of
#   zero.
# * :doc:`/transformer_heads`: eight scores beside ablation, on four tasks; gates on the
#   heads of a model of PyTorch.
