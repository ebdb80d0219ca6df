r"""
Your own data and heads
=======================

You have a transformer with trained attention heads, and a task.  Which of its attention
paths does the task need, how well would a network of width :math:`N` with these heads
predict, which heads can be removed, and what would more examples bring?  This tutorial
answers these questions from arrays: queries and keys of every head, inputs, labels.

The data here are generated, so that the right answer is known.  Replace them by your
own arrays; nothing below depends on where the data come from.
"""

# %%
# Data
# ----
#
# Inputs are an array of examples, features and tokens; labels are :math:`\pm 1` (or
# real numbers, or several outputs).  A sequence of twelve tokens holds one *marked*
# token: its first feature is large. The label is the sign of that token's second
# feature.  Everything else is noise, also the second features of all other tokens.

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import bpkr, plotting


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)
features, tokens = 10, 12


def draw(key, examples):
    noise_key, place_key = jax.random.split(key)
    x = jax.random.normal(noise_key, (examples, features, tokens))
    x = x.at[:, 0].multiply(0.1)
    marked = jax.random.randint(place_key, (examples,), 0, tokens)
    x = x.at[jnp.arange(examples), 0, marked].set(3.0)
    return x, jnp.sign(x[jnp.arange(examples), 1, marked])


x, Y = draw(jax.random.key(0), 80)
x_test, Y_test = draw(jax.random.key(1), 2000)

# %%
# Heads
# -----
#
# A head is a matrix of queries and one of keys, of :math:`G` rows and as many columns
# as there are features; its score for a key token :math:`s` and a query token :math:`t`
# is :math:`x_s^T K^T Q\, x_t/\sqrt G`.  Of a PyTorch or Flax model, these are the
# projection weights of the layer, cut into heads.  Here two layers of three heads: head
# 1 of the first layer attends to the marked token, head 2 to all tokens alike, head 3
# is random; in the second layer head 1 is uniform and the others are random.

G = 4
keys = jax.random.split(jax.random.key(2), 6)
random_head = lambda key: (
    1.5 * jax.random.normal(key, (2, G, features)) / np.sqrt(features)
)
silent = jnp.zeros((2, G, features))
mark = jnp.zeros((G, features)).at[0, 0].set(3.0)  # read by queries and by keys
finder = jnp.stack([mark, mark])
layers = [
    jnp.stack([finder, silent, random_head(keys[0])]),
    jnp.stack([silent, random_head(keys[1]), random_head(keys[2])]),
]
heads = bpkr.heads_from_queries([h[:, 0] for h in layers], [h[:, 1] for h in layers])
print(heads)

# %%
# The problem
# -----------
#
# The network reads out the mean over tokens.  ``attentioned_inputs`` sends every input
# along every path; after that, the theory needs neither heads nor tokens.

xi = bpkr.attentioned_inputs(x, heads, readout="mean")
xi_test = bpkr.attentioned_inputs(x_test, heads, readout="mean")
problem = bpkr.Problem(xi, Y, heads=heads, width=20, temperature=0.05)
solution = problem.solve()
print(solution.reason)
names = bpkr.path_names(bpkr.head_counts(heads))
order = np.argsort(-np.diag(solution.U[0]))
for i in order[:4]:
    print(f"path {names[i]}: U = {float(solution.U[0][i, i]):.2f}")

# %%
# Accuracy against width
# ----------------------
#
# ``problem.at`` moves the same inputs to another width or temperature without computing
# kernels again. The GP limit, in which all paths count alike, is the reference.

widths = [10, 20, 50, 100, 300, 1000]
accuracy = []
previous = None
for width in widths:
    previous = problem.at(width=width).solve(start=previous)
    accuracy.append(float(bpkr.accuracy(previous.predict(xi_test).mean, Y_test)))
limit = float(bpkr.accuracy(problem.gaussian_process().predict(xi_test).mean, Y_test))
error = np.sqrt(np.array(accuracy) * (1 - np.array(accuracy)) / len(Y_test))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.7), layout="constrained", width_ratios=(1.2, 1)
)
left.errorbar(widths, accuracy, error, fmt="o-", capsize=2, label="theory")
left.axhline(limit, color="0.5", ls="--", label="GP limit")
left.set(xscale="log", xlabel="width $N$", ylabel="accuracy", xlim=(8, 1300))
left.legend()
U = np.asarray(solution.U[0])
image = right.imshow(U, cmap="RdBu_r", vmin=-np.abs(U).max(), vmax=np.abs(U).max())
right.set(title="$U_1$ at $N = 20$", xticks=range(9), yticks=range(9))
right.set_xticklabels(names, rotation=90)
right.set_yticklabels(names)
figure.colorbar(image, ax=right)
plt.show()

# %%
# Bars are the binomial error of the 2000 test examples, which all points share:
# neighbouring points may be compared more finely than the bars suggest.  The best width
# lies in between.  A very wide network weighs all nine paths alike, good and useless
# ones; a very narrow one has too few directions to combine several good paths.  (Below
# :math:`N = 9`, the number of paths, the order parameter of the network is singular and
# the saddle point is not to be trusted; ``solution.outside_support`` says so.)
#
# Which heads can be removed?
# ---------------------------
#
# The score of a head is its share of :math:`U_1`, relative to the largest share of all
# heads (``head_scores``); ``silenced`` gives the predictions of the trained network
# without some of its heads.

theory = problem.theory(solution)
full = float(bpkr.accuracy(theory.predict(xi_test).mean, Y_test))
print(f"all heads: {full:.3f} ± {np.sqrt(full * (1 - full) / len(Y_test)):.3f}")
for layer, scores in enumerate(solution.head_scores()):
    for head, score in enumerate(scores):
        without = theory.silenced([(layer, head)]).predict(xi_test).mean
        right_answers = np.asarray(bpkr.correct(without, Y_test), float)
        before = np.asarray(bpkr.correct(theory.predict(xi_test).mean, Y_test), float)
        drop = before - right_answers
        drop_error = drop.std(ddof=1) / np.sqrt(len(drop))
        print(
            f"layer {layer + 1} head {head + 1}: score {float(score):.2f}, without it "
            f"{right_answers.mean():.3f}, drop {drop.mean():+.3f} ± {drop_error:.3f}"
        )

# %%
# The error of a drop is that of a *paired* difference on the same examples, much
# smaller than the error of the difference between two independent accuracies.  The head
# that finds the mark is indispensable.  Without the random head of the first layer,
# whose score is the lowest, the network is *better*, by three errors: such heads are
# what pruning by scores looks for.  A score does not tell everything: the network is
# better without the second head of the second layer, too, whose score is 0.80.  A drop
# within two errors of zero is consistent with none.
#
# Scores have errors as well: other examples of the same task give other scores.
# ``bpkr.score`` solves the problem for sets of four fifths of them.  The line across a
# bar is the floor, the score of a head that :math:`f` does not read.

scores = bpkr.score(problem, jax.random.key(3), resamples=10)
plotting.head_scores(scores.to_dataset())

# %%
# Several heads are removed one after the other, the lowest score first.  The network
# learned again without the heads that were silenced above; here it does not.  Every
# path contributes its part to the mean of :math:`f`, and some parts are left out.
# Orders without a meaning are the reference.

counts = bpkr.head_counts(heads)
parts = bpkr.pruning.mean_contributions(theory, xi_test)
prune = lambda order: bpkr.pruning.cumulative_accuracy(parts, Y_test, counts, order)
by_score = prune(bpkr.pruning.ascending(scores.score))
random_orders = bpkr.pruning.random_orders(jax.random.key(4), counts, 50)
at_random = np.array([prune(order) for order in random_orders])

figure, axis = plt.subplots(figsize=(plotting.SINGLE, 2.5), layout="constrained")
pruned = np.arange(len(by_score))
axis.plot(pruned, by_score, "o-", label="lowest score first")
axis.plot(pruned, np.nanmean(at_random, axis=0), color="0.5", label="random orders")
axis.set(xlabel="number of pruned heads", ylabel="accuracy", xticks=pruned)
axis.legend()
plt.show()

# %%
# ``bpkr.prune_networks`` does the same with errors, also for networks of one's own,
# and a study from a file of arrays: ``statmech-attn new pruning --task arrays``.
# ``statmech-attn score FILE.npz`` gives the scores of any trained model.
#
# How many examples are enough?
# -----------------------------
#
# A learning curve draws training sets anew.  Its examples come from one large problem;
# ``form="factors"`` keeps the kernels of all of them from being built.

x_more, Y_more = draw(jax.random.key(5), 800)
pool = bpkr.Problem(
    bpkr.attentioned_inputs(x_more, heads, readout="mean"),
    Y_more,
    heads=heads,
    width=20,
    temperature=0.05,
    form="factors",
)
curve = bpkr.learning_curve(
    jax.random.key(6),
    pool,
    xi_test,
    Y_test,
    examples=[10, 20, 40, 80, 160],
    training_sets=5,
)
print(curve.accuracy.to_pandas().round(3))
plotting.error_against_examples(curve)

# %%
# The finite network learns which paths count, and the GP limit weighs all of them
# alike: at equal accuracy the limit needs more examples.  The squared error of the
# finite network is not smaller, because its outputs are larger; signs are what it gets
# right more often.
#
# Can the numbers be trusted?
# ---------------------------
#
# The saddle point is exact for large widths at fixed :math:`P/N`.  The size of its
# correction of order :math:`1/N` shows where it is unreliable.

corrected = problem.corrections(solution)
shift = np.abs(np.asarray(corrected.U[0] - solution.U[0])).max()
print(f"largest entry of U_1 {np.abs(U).max():.2f}, largest correction {shift:.2f}")
mean = corrected.predict(xi_test).mean
print(f"accuracy with the correction: {float(bpkr.accuracy(mean, Y_test)):.3f}")

# %%
# Where to go next
# ----------------
#
# * :doc:`09_exact_law` samples the exact law of the same problem, where the correction
#   is large.
# * :doc:`12_plugin` makes a task of yours known to study files and to the command line.
# * :doc:`14_transformer_heads` holds scores against ablation, for a transformer.
# * :doc:`07_tiberi`: the published tasks, and heads that were trained on images.
