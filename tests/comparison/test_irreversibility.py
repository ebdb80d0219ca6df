"""Entropy production of sampled spins, against the map and against reversibility."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from statmech_attn import comparison, dmft, montecarlo
from statmech_attn.comparison.irreversibility import rate_differences, VERDICTS
from statmech_attn.dmft.noise.irreversibility import rates


def spins(net, patterns, params, start, n_spins, steps, transient, key=0, **how):
    """Simulations of several N, of which so many tokens after a transient count."""
    key = jax.random.key(key)
    steps = transient + steps + net.context
    how |= {"steps": steps, "transient": transient, "stored": 0}
    return [
        montecarlo.simulate(
            net,
            patterns,
            params,
            start,
            n_spins=n,
            entropy_production=True,
            key=jax.random.fold_in(key, i),
            **how,
        )
        for i, n in enumerate(n_spins)
    ]


def mean_and_error(simulation):
    each = simulation.averages.entropy_production
    return each.mean(-1), each.std(-1, ddof=1) / np.sqrt(each.shape[-1])


def verdicts(compared):
    names = compared.verdict.attrs["flag_meanings"].split()
    return [names[code] for code in compared.verdict.values.ravel()]


def published(beta, **changes):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(beta, file.gamma, file.epsilon, **changes)
    return file, net, params, dmft.from_checkpoint(net, params, file)


def dataset(n_spins, runs, steps, transient, settled=0):
    """Simulations of the published network at two temperatures."""
    file, net, _, _ = published(1.2)
    grid = {"beta": [1.2, 1.4], "gamma": file.gamma, "epsilon": file.epsilon}

    def start(params):
        return dmft.advance(
            net, params, dmft.from_checkpoint(net, params, file), settled
        )

    return montecarlo.simulations(
        jax.random.key(0),
        net,
        file.patterns,
        grid,
        start,
        n_spins=n_spins,
        runs=runs,
        steps=transient + steps + net.context,
        transient=transient,
        stored=0,
        entropy_production=True,
    ).compute()


@pytest.fixture(scope="module")
def both():
    """At rest and in chaos: the rates of the map and of spins.

    At rest nearly all of it is bias, 6e-4 at the smallest N over 1e-6 of the map.
    """
    file, net, params, start = published(np.array([1.2, 1.4]))
    start = dmft.advance(net, params, start, 4000)
    theory = dmft.entropy_production(net, params, start, steps=80_000)
    sampled = dataset([30_000, 300_000, 3_000_000], 16, 2000, 500, settled=4000)
    return theory, sampled


@pytest.mark.slow
def test_spins_have_the_rate_of_the_map_and_a_bias_like_one_over_n(both):
    compared = comparison.compare_entropy_production(*both)
    theory, _ = both
    assert (abs(compared.limit_z) < compared.limit_threshold).all()
    assert verdicts(compared) == ["bias_only", "agrees"]
    assert (compared.limit_stderr < [1e-6, 0.01 * theory.mean[1]]).all()
    assert (compared.z[:, 0] > 10).all()  # the bias at rest is seen at every N
    assert abs(compared.bias_slope[0] + 1) < 3 * compared.bias_slope_stderr[0] < 0.1
    assert np.isnan(compared.bias_slope[1])


@pytest.mark.slow
def test_a_rate_that_is_off_by_a_tenth_is_seen(both):
    theory, sampled = both
    wrong = replace(theory, mean=1.1 * theory.mean)
    compared = comparison.compare_entropy_production(wrong, sampled)
    assert abs(compared.limit_z[1]) > 4 * compared.limit_threshold
    assert verdicts(compared) == ["bias_only", "differs"]
    alone = comparison.compare_entropy_production(wrong, sampled.isel(n_spins=[0]))
    assert verdicts(alone) == ["one_n_cannot_tell"] * 2


def test_an_error_of_the_map_is_no_bias_of_spins():
    """All N differ by it alike, by far more than the runs scatter."""
    rates = 0.3 + 1e-6 * np.random.default_rng(0).normal(size=(3, 32))
    sizes = np.array([10**4, 10**6, 10**8])
    found = rate_differences(0.3001, 1e-4, 20, rates, sizes, ())
    assert np.isnan(found["bias_slope"][1])
    assert VERDICTS[found["verdict"][1]] == "agrees"


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [(0.4, "agrees"), (0.5, "one_n_cannot_tell"), (np.nan, "nothing_compared")],
)
def test_runs_that_do_not_scatter_tell_no_limit(rate, verdict):
    scatter = 1e-3 * np.random.default_rng(0).normal(size=8)
    rates = np.stack([np.full(8, rate), 0.4 + scatter])
    found = rate_differences(0.4, 1e-3, 20, rates, [100, 1000], ())
    assert np.isnan(found["limit_z"][1])
    assert VERDICTS[found["verdict"][1]] == verdict


@pytest.fixture(scope="module")
def few():
    """As few runs and tokens as in other tests, with which the program is shared."""
    file, net, params, start = published(np.array([1.2, 1.4]))
    theory = dmft.entropy_production(net, params, start, steps=64)
    return theory, dataset([300, 999], 20, 2, 0)


@pytest.mark.slow
@pytest.mark.parametrize("n_spins", [1000, 1_000_000])
def test_symmetric_networks_of_one_slot_have_no_arrow(n_spins):
    """Little's dynamics is reversible at every N, in an orbit that moves."""
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (4, 2, 8))
    signs[0] = signs[1]
    patterns = dmft.site_classes(signs)
    net = dmft.network(patterns, context=1)
    params = dmft.parameters(1.5, 2.0, 0.0)
    start = dmft.from_row(net, params, 0)
    how = dict(runs=64, steps=2000, transient=200)
    (sampled,) = spins(net, patterns, params, start, [n_spins], **how)
    mean, error = mean_and_error(sampled)
    assert 0 < error < 1e-5 and abs(mean) < 3.5 * error


@pytest.mark.slow
def test_counts_and_single_spins_have_the_same_law():
    file, net, params, start = published(np.array([1.2, 1.4]))
    given = net, file.patterns, params, start, [3000]
    how = dict(runs=32, steps=500, transient=100)
    (counts, its_error), (single, other_error) = (
        mean_and_error(*spins(*given, **how, method=method, key=i))
        for i, method in enumerate(("collapsed", "spins"))
    )
    error = np.hypot(its_error, other_error)
    assert (error < np.array([0.15, 0.01]) * counts).all()
    assert (abs(counts - single) < 3.5 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("redrawn", [None, 0.5])
def test_many_spins_have_the_rates_of_the_tokens_of_the_map(redrawn):
    """Tokens 2 to 7 from the start on, of which 10^12 spins differ by 10^-6."""
    file, net, params, start = published(1.8, redrawn=redrawn)
    (sampled,) = spins(net, file.patterns, params, start, [3 * 10**12], 6, 2, runs=2)
    tokens = rates(net, params, start, 8)
    np.testing.assert_allclose(
        sampled.averages.entropy_production, tokens[2:].mean(), rtol=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["collapsed", "spins"])
def test_averages_are_over_the_kept_tokens_that_the_context_follows(method):
    file, net, params, start = published(1.4)
    given = net, file.patterns, params, start, [300]
    all_tokens, early, late = (
        mean * tokens
        for tokens, transient in ((16, 0), (6, 0), (10, 6))
        for (simulation,) in [spins(*given, tokens, transient, runs=3, method=method)]
        for mean in [simulation.averages.entropy_production]
    )
    np.testing.assert_allclose(early + late, all_tokens, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["collapsed", "spins"])
def test_no_other_number_depends_on_whether_it_is_averaged(method):
    file, net, params, start = published(np.array([1.2, 1.4]))
    how = dict(n_spins=300, runs=3, steps=16, transient=6, stored=2, method=method)
    asked, not_asked = (
        montecarlo.simulate(
            net,
            file.patterns,
            params,
            start,
            **how,
            key=jax.random.key(0),
            entropy_production=whether,
        )
        for whether in (True, False)
    )
    assert not_asked.averages.entropy_production is None
    averages = asked.averages._replace(entropy_production=None)
    of_arrays = lambda x: jax.tree.leaves((x.mean, x.spread, x.sample, x.averages))
    same = of_arrays(asked._replace(averages=averages)), of_arrays(not_asked)
    for x, y in zip(*same, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_run_without_a_token_that_has_a_rate_is_refused():
    file, net, params, start = published(1.0)
    how = dict(n_spins=300, runs=2, steps=6, transient=2, key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"transient \+ context .* 4 follow; got 6"):
        montecarlo.simulate(
            net, file.patterns, params, start, **how, entropy_production=True
        )


def test_simulations_without_rates_are_refused(few):
    theory, sampled = few
    without = sampled.drop_vars("entropy_production_stationary_mean")
    with pytest.raises(ValueError, match="run with entropy_production"):
        comparison.compare_entropy_production(theory, without)


def test_rates_of_other_points_are_refused(few):
    _, sampled = few
    _, net, params, start = published(1.2)
    theory = dmft.entropy_production(net, params, start, steps=64)
    with pytest.raises(ValueError, match="batch shape"):
        comparison.compare_entropy_production(theory, sampled)
