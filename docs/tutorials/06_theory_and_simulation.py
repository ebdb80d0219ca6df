r"""
Theory against simulation
=========================

Mean-field theory is exact in the limit of infinitely many spins, and a network has a
finite number :math:`N` of them.  This tutorial simulates networks of up to
:math:`3\cdot10^{9}` spins from the same initial condition as the theory.  It tests, in
standard errors, whether the mean overlaps agree, whether their spread between runs is
the one that linear-noise theory predicts, and for how many tokens.
"""

# %%
# Two studies
# -----------
#
# The theory is a trajectory with ``noise = true``: beside the mean-field orbit it
# computes the covariance of small fluctuations, which decrease like :math:`N^{-1/2}`.
# The simulation runs many networks of each size.  It does not store :math:`N` spins:
# spins of one class are exchangeable, so that only the number of up spins is drawn,
# from a binomial distribution.  This *collapsed* simulation is exact, and as fast for
# :math:`10^{12}` spins as for a thousand.

import matplotlib.pyplot as plt

import statmech_attn
from statmech_attn import comparison, dmft, plotting


statmech_attn.setup()
plt.rcParams.update(plotting.SETTINGS)

shared = {
    "network": {"patterns": "poclopez-pe2"},
    "parameters": {"beta": [0.5, 1.0, 1.4]},
}
theory = statmech_attn.run(
    {
        "kind": "trajectory",
        **shared,
        "run": {"start": "checkpoint", "steps": 100, "noise": True},
    },
    progress=False,
)
simulation = statmech_attn.run(
    {
        "kind": "monte-carlo",
        **shared,
        "run": {
            "start": "checkpoint",
            "method": "collapsed",
            "n_spins": [300_000, 30_000_000, 3_000_000_000],
            "runs": 600,
            "stored": 1,
            "steps": 100,
            "seed": 1,
        },
    },
    progress=False,
)

# %%
# One run, many runs, and the theory
# ----------------------------------

plotting.finite_size(simulation, theory, tokens=60)

# %%
# The band is the predicted spread of single runs.  At :math:`\beta = 0.5` and 1 the
# orbit is a cycle of the clock and fluctuations die out.  At :math:`\beta = 1.4` the
# motion is chaotic, and every difference grows: with :math:`\lambda_1 = 0.074`
# nat/token, a run of :math:`N` spins leaves the mean-field orbit after about
# :math:`\ln N / (2 \lambda_1)` tokens.  The dotted line marks where fluctuations may
# be too large for linear noise; beyond it nothing is compared.

for n in simulation.n_spins.values:
    horizon = dmft.predictability_horizon(n, 0.074)
    print(f"N = {n:.0e}: predictable for about {horizon:.0f} tokens")

# %%
# Agreement in standard errors
# ----------------------------
#
# Agreement by eye is no test.  ``compare`` computes the difference of every mean from
# the theory in units of its standard error over runs, extrapolates it to
# :math:`N \to \infty`, and fits the exponents with which spread and bias fall with
# :math:`N`.

agreement = comparison.compare(theory, simulation)
print(agreement.statmech.describe())

# %%

plotting.agreement(agreement)

# %%
# How to read it:
#
# * With hundreds of comparisons some differences exceed two standard errors by chance
#   alone.  The threshold accounts for their number: in all comparisons of a study
#   together, chance crosses it with a probability of :math:`10^{-3}`.
# * Linear-noise theory holds as long as fluctuations change the attention scores
#   little.  Attention multiplies overlaps by :math:`\gamma = 127` before its softmax,
#   so that this ends after two to eight tokens at :math:`\beta = 1.4` (second table,
#   and the dotted line above).  The verdict rests on the tokens before (column
#   *tokens*), and at the largest size alone where a difference there may be its bias.
# * The spread falls like :math:`N^{-1/2}`; its exponent has an error, and a deviation
#   beyond it would be reported as ``spread_differs``.
# * A difference that is significant at finite :math:`N` and falls like :math:`1/N` is
#   no disagreement: the mean of a nonlinear function of noisy overlaps is biased by
#   their variance.  The verdict is then ``bias_only``.
# * The last lines say which relative error of each parameter a single mean would show
#   with probability 0.9.  Where no error of 10 % would be found the verdict is
#   ``cannot_tell``, and never ``agrees``.  They are tiny where attention is saturated:
#   at the first token it fluctuates by :math:`10^{-7} / \sqrt N`, and the theory there
#   moves with the parameters (why it does so was not looked into).
#
# Would a mistake be detected?
# ----------------------------
#
# A test that cannot fail shows nothing.  We therefore compare the same simulation with
# a theory whose :math:`\beta` is wrong by one part in a thousand.

wrong = theory.copy(deep=True)
shifted = dict(shared, parameters={"beta": [b * 1.001 for b in (0.5, 1.0, 1.4)]})
other = statmech_attn.run(
    {
        "kind": "trajectory",
        **shifted,
        "run": {"start": "checkpoint", "steps": 100, "noise": True},
    },
    progress=False,
)
for name in other.data_vars:
    if "beta" in other[name].dims:
        wrong[name] = other[name].assign_coords(beta=theory.beta)
noticed = comparison.compare(wrong, simulation)
words = comparison.VERDICTS
for beta in noticed.beta.values:
    right, shifted = (
        words[int(result.verdict.sel(beta=beta))] for result in (agreement, noticed)
    )
    print(f"β = {beta}: {right}; with β wrong by 0.1 %: {shifted}")

# %%
# Where to go next
# ----------------
#
# * :doc:`09_exact_law` asks the same of the other theory: what a network of finite
#   width learns.
# * :doc:`04_phases`: chaotic transients, which the noise of a finite network can end.
# * ``simulations/finite_size.toml`` goes to :math:`3\cdot10^{10}` spins;
#   :doc:`/theory/dmft` derives the mean field and its linear noise.
