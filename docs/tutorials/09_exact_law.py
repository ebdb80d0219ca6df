r"""
Exact law and samples at finite width
=====================================

The theory of attention paths is a saddle point: exact for large widths.  How large is
large?  The package answers in two ways.  It samples the *exact law* of the order
parameters at any width, which a change of variables makes cheap, and it samples *all
weights* of the network by Hamiltonian Monte Carlo, which makes no assumption about the
order parameters.  This tutorial compares the saddle point, its correction of order
:math:`1/N`, the exact law and the samples of all weights.
"""

# %%
# A problem with a known difficulty
# ---------------------------------
#
# The four-path task of :doc:`07_tiberi` with fewer examples, at a width of ten.  The
# saddle point is exact for :math:`N \to \infty` at fixed :math:`P/N`; with
# :math:`P = 60` examples at :math:`N = 10` it cannot be expected to be accurate.

import jax
import matplotlib.pyplot as plt
import numpy as np

import statmech_attn
from statmech_attn import bpkr, comparison, plotting
from statmech_attn.tasks import hidden_markov


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

head_key, train_key, test_key, draw_key = jax.random.split(jax.random.key(1), 4)
setting = hidden_markov.preset("four-paths", head_key)
x, Y = hidden_markov.draw(train_key, setting.task, examples=60)
x_test, Y_test = hidden_markov.draw(test_key, setting.task, examples=1000)
xi = bpkr.attentioned_inputs(x, setting.heads)
xi_test = bpkr.attentioned_inputs(x_test, setting.heads)
problem = bpkr.Problem(xi, Y, heads=setting.heads, width=10, temperature=0.01)
print(problem)

# %%
# Three estimates of :math:`U`
# ----------------------------
#
# ``solve`` minimises the action, ``corrections`` adds the next order, ``posterior``
# draws from the exact law by the No-U-Turn sampler.  Draws come with the diagnostics
# that decide whether they may be used: the effective number of draws of every entry,
# the split R-hat of the chains, divergences.

solution = problem.solve()
corrected = problem.corrections(solution)
draws = problem.posterior(draw_key, draws=300, chains=4)
least, largest = float(draws.n_eff.min()), float(draws.r_hat.max())
print(f"effective draws at least {least:.0f} of 1200, R-hat at most {largest:.3f}")
print("divergences:", int(draws.divergences))

mean, stderr = np.asarray(draws.summary[0].mean), np.asarray(draws.summary[0].stderr)
names = bpkr.path_names(bpkr.head_counts(setting.heads))
print("diagonal of U_1:  saddle point   with 1/N   exact law")
for i, name in enumerate(names):
    saddle, first = float(solution.U[0][i, i]), float(corrected.U[0][i, i])
    law = f"{mean[i, i]:.3f} ± {stderr[i, i]:.3f}"
    print(f"  path {name}:     {saddle:11.3f} {first:10.3f}   {law}")

# %%
# The errors of the exact law are Monte Carlo errors of the mean; they shrink with more
# draws.  They are not the spread of :math:`U` over the posterior, which is a property
# of the network and does not shrink: at :math:`N = 10` the order parameters differ from
# network to network.

i, j = 0, 0
samples = np.asarray(draws.U[0])[..., i, j].ravel()
figure, (left, right) = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.6), layout="constrained"
)
left.hist(samples, bins=40, density=True, color="#56B4E9", label="exact law")
left.axvline(float(solution.U[0][i, j]), color="k", label="saddle point")
left.axvline(float(corrected.U[0][i, j]), color="#D55E00", ls="--", label="with $1/N$")
left.axvline(mean[i, j], color="#0072B2", ls=":", lw=1.5, label="mean of the law")
left.set(xlabel=f"$U$ of path {names[i]} with itself", ylabel="density")
left.legend()
right.scatter(
    samples[::2], np.asarray(draws.U[0])[..., 2, 2].ravel()[::2], s=3, c="#0072B2", lw=0
)
right.set(xlabel="$U$ of path 1-1 with itself", ylabel="$U$ of path 2-1 with itself")
plt.show()

# %%
# How fast does the error fall?
# -----------------------------
#
# At fixed :math:`P` and :math:`N \gg P` the saddle point approaches the exact law like
# :math:`N^{-2}`, since with :math:`P/N` its own deviation from the GP limit vanishes
# too.  Below the width is smaller than :math:`P = 60`, and the fall is still slower.

widths = [5, 10, 20, 40]
distance = {"saddle point": [], "with $1/N$": []}
floor, accuracies = [], []
for number, width in enumerate(widths):
    there = problem.at(width=width)
    point = there.solve()
    law = there.posterior(jax.random.fold_in(draw_key, number), draws=300, chains=4)
    exact, error = np.asarray(law.summary[0].mean), np.asarray(law.summary[0].stderr)
    rms = lambda U: np.sqrt(np.mean((np.asarray(U) - exact) ** 2))
    distance["saddle point"].append(rms(point.U[0]))
    distance["with $1/N$"].append(rms(there.corrections(point).U[0]))
    floor.append(np.sqrt(np.mean(error**2)))
    predicted = law.predict(xi_test).mean
    accuracies.append(
        [
            float(bpkr.accuracy(f, Y_test))
            for f in (point.predict(xi_test).mean, predicted)
        ]
    )

figure, (left, right) = plt.subplots(
    1, 2, figsize=(plotting.DOUBLE, 2.6), layout="constrained"
)
for (words, values), look in zip(distance.items(), ("o-", "s--")):
    left.loglog(widths, values, look, label=words)
left.fill_between(widths, 1e-5, floor, color="0.85", lw=0, label="Monte Carlo error")
guide = distance["saddle point"][1] * (np.array(widths[1:]) / widths[1]) ** -2.0
left.loglog(widths[1:], guide, "k:", lw=0.7, label="$N^{-2}$")
left.set(xlabel="width $N$", ylabel="rms error of $U_1$", ylim=(min(floor) / 3, None))
for axis in (left, right):
    axis.set(xscale="log", xlim=(4.5, 45))
    axis.set_xticks(widths, [str(width) for width in widths])
    axis.set_xticks([], minor=True)
left.legend()
accuracies = np.array(accuracies)
error = np.sqrt(accuracies[:, 1] * (1 - accuracies[:, 1]) / len(Y_test))
right.errorbar(widths, accuracies[:, 1], error, fmt="o", capsize=2, label="exact law")
right.plot(widths, accuracies[:, 0], "k-", label="saddle point")
right.axhline(
    float(bpkr.accuracy(problem.gaussian_process().predict(xi_test).mean, Y_test)),
    color="0.5",
    ls="--",
    label="GP limit",
)
right.set(xlabel="width $N$", ylabel="accuracy")
right.legend()
plt.show()

# %%
# Where a curve dips into the grey band, the difference is within what these draws
# resolve, and no statement about a slope is possible there.  The order parameters may
# be off by tens of per cent while accuracies agree within their binomial errors: a
# classifier depends on the *relative* weight of the paths.
#
# Evidence
# --------
#
# The exact law also gives the evidence :math:`\ln p(Y)`, by which models may be
# compared, with an error from the scatter over chains.  Laplace's approximation comes
# with the saddle point.

evidence = bpkr.evidence(jax.random.key(5), draws)
print(f"ln p(Y) = {evidence.value:.3f} ± {evidence.stderr:.3f} by the exact law")
print(f"          {float(corrected.log_evidence):.3f} by Laplace")

# %%
# All weights
# -----------
#
# The exact law rests on a derivation, the sampling of all weights does not.  As
# studies, both are compared with the theory by ``compare``, in standard errors, and
# only where the draws have mixed.

study = {
    "task": {
        "preset": "four-paths",
        "seed": 1,
        "n_train": 12,
        "n_test": 100,
        "length": 6,
        "features": 10,
    },
    "network": {"width": 6, "temperature": 0.05},
}
theory = statmech_attn.run({"kind": "order-parameter", **study}, progress=False)
run = {"draws": 300, "warmup": 150, "chains": 4}
exact, weights = (
    statmech_attn.run(
        {"kind": "posterior", **study, "run": {"method": method, **run}}, progress=False
    )
    for method in ("order-parameter", "weights")
)
agreement = comparison.compare(theory, exact, weights)
print(agreement.statmech.describe())

# %%

agreement.statmech.plot()

# %%
# The two samplers agree within their errors, although one draws :math:`U` from its law
# and the other draws all weights without any use of that law.  The saddle point agrees
# with neither at this width, as expected.  Twelve examples teach
# nothing (the accuracy is at chance); they are few so that sampling is fast.
#
# Where to go next
# ----------------
#
# * :doc:`08_own_heads` poses a problem from arrays of your own.
# * :doc:`06_theory_and_simulation` is the same question for the dynamics.
# * :doc:`/theory/bpkr` derives saddle point, corrections and exact law.
