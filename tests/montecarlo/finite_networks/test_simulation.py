"""The drivers, and the law of the collapsed simulation against that of single spins."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.batches import runtime
from statmech_attn.montecarlo import simulate
from statmech_attn.montecarlo.finite_networks import run_blocks
from statmech_attn.montecarlo.finite_networks.collapsed import class_counts
from statmech_attn.montecarlo.finite_networks.run_blocks import rows_per_call


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)
METHODS = ("collapsed", "spins")


def run(method, beta, *, gamma=FILE.gamma, key=0, start=None, **given):
    params = dmft.parameters(beta, gamma, FILE.epsilon)
    start = dmft.from_row(NET, params, 0) if start is None else start(NET, params)
    key = jax.random.key(key)
    return simulate(NET, FILE.patterns, params, start, key=key, method=method, **given)


def spin_by_spin(rng, runs, n_spins, steps, beta, gamma):
    """A literal network in NumPy: N columns of W, N spins, sums over spins."""
    columns = np.repeat(
        FILE.patterns.semantic, class_counts(FILE.patterns, n_spins), axis=2
    )
    bits = 2 * ((np.arange(4)[:, None] >> np.array([1, 0])) & 1) - 1
    positional = np.einsum("kaj,tj->tka", FILE.patterns.positional, bits) / 2
    x = np.broadcast_to(columns[0, 0], (runs, n_spins))
    history, seen = [], []
    for t in range(steps + 1):
        semantic = np.einsum("kai,ri->rka", columns, x) / n_spins
        m = (1 - FILE.epsilon) * semantic + FILE.epsilon * positional[t % 4]
        history = [*history, m][-4:]
        logits = np.stack([gamma * (m[:, 2] * past[:, 3]).sum(1) for past in history])
        weights = np.exp(logits - logits.max(0))
        weights /= weights.sum(0)
        A = sum(
            w[:, None] * past[:, 1] for w, past in zip(weights, history, strict=True)
        )
        seen.append((A, semantic[:, 0]))
        up = 1 / (1 + np.exp(-2 * beta * A @ columns[0]))
        x = np.where(rng.random(up.shape) < up, 1.0, -1.0)
    A, m_o = (np.stack([s[i] for s in seen[1:]]) for i in (0, 1))
    return A, m_o


def features(A, m_o, times):
    """Attention and overlaps of every run at several times: (runs, numbers)."""
    chosen = np.concatenate([np.asarray(A)[times], np.asarray(m_o)[times]], axis=1)
    return chosen.reshape(-1, chosen.shape[-1]).T


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [FILE.gamma, 8.0])
def test_collapsed_spins_and_a_literal_network_have_one_joint_law(gamma, two_samples):
    times, runs, beta, n_spins = [0, 1, 4, 12], 700, 1.27, 300
    rng = np.random.default_rng(5)
    literal = spin_by_spin(rng, runs, n_spins, 13, beta, gamma)
    samples = [features(literal[0].swapaxes(1, 2), literal[1].swapaxes(1, 2), times)]
    given = dict(gamma=gamma, n_spins=n_spins, runs=runs, steps=13, stored=runs)
    for key, method in enumerate(METHODS):
        result = run(method, beta, key=key, **given)
        samples.append(features(result.sample.A, result.sample.m_o_se, times))
    level = 1e-3 / 12  # two networks, three pairs, two tests
    permutations = 20_000
    for i, j in ((0, 1), (0, 2), (1, 2)):
        test = two_samples.two_sample_test(
            samples[i][:350], samples[j][350:], seed=i, permutations=permutations
        )
        assert test.energy_p > level, (i, j)
        assert test.marginal_p > level, (i, j)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_run_does_not_depend_on_the_runs_and_points_beside_it(method):
    given = dict(n_spins=3000, steps=6)
    beta = np.array([0.5, 1.27, 1.4])
    many = run(method, beta, runs=50, stored=50, **given).sample
    alone = run(method, beta[1:2], runs=3, stored=3, points=[1], **given).sample
    # A spin that differs would be 1 / 3000 of some number, rounding of six steps 1e-15.
    rounding = 0 if runtime.has_fused() else 1e-13
    np.testing.assert_allclose(alone.A, many.A[:, :, 1:2, :3], rtol=0, atol=rounding)


def test_moments_of_a_block_do_not_depend_on_how_many_are_beside_it():
    """Of many patterns, so that XLA adds large arrays in another order than small."""
    values = np.random.default_rng(0).normal(size=(5, 7, 16, 16))
    moments = jax.jit(run_blocks._moments)
    every = moments(values, np.ones((16, 16), bool))
    for rows in (1, 3):
        some = moments(values[:, :, :rows], np.ones((rows, 16), bool))
        for x, y in zip(some, every, strict=True):
            np.testing.assert_array_equal(x, y[..., :rows])


@pytest.mark.parametrize("method", METHODS)
def test_few_runs_are_not_simulated_beside_others_that_nobody_asked_for(method):
    rows = functools.partial(rows_per_call, method=method, n_spins=3000)
    full = rows(1, blocks=10**6)
    assert [rows(4, blocks=1), rows(4, blocks=3), rows(1, blocks=5)] == [1, 3, 5]
    assert rows(1, blocks=1) == 2  # one lane alone is rounded in another way
    assert rows(1, blocks=full + 2) == full // 2 + 1
    assert rows_per_call(1, "spins", 2**28, blocks=9) == 1  # in memory for one


def test_threads_compute_on_the_device_that_was_chosen(monkeypatch):
    class Called(Exception):
        pass

    def call(*given):
        raise Called(jax.config.jax_default_device)

    monkeypatch.setattr(run_blocks.Simulator, "__call__", call)
    device = jax.devices()[0]
    with jax.default_device(device), pytest.raises(Called) as caught:
        run("collapsed", 1.0, n_spins=300, runs=2, steps=2)
    assert caught.value.args == (device,)


@pytest.mark.slow
def test_runs_points_and_keys_are_independent():
    given = dict(n_spins=3000, steps=1, runs=2000, stored=2000)
    first = run("collapsed", [1.0, 1.0], **given).sample.A[0, 0]
    other = run("collapsed", [1.0, 1.0], key=1, **given).sample.A[0, 0]
    lanes = np.concatenate([first, other])
    correlation = np.corrcoef(lanes)[np.triu_indices(4, 1)]
    neighbours = np.corrcoef(lanes[0, :-1], lanes[0, 1:])[0, 1]
    assert np.abs([*correlation, neighbours]).max() < 4.3 / np.sqrt(2000)  # 7 at 1e-4


def test_statistics_are_those_of_the_trajectories():
    result = run(
        "collapsed",
        [0.5, 1.3],
        n_spins=300,
        runs=23,
        steps=9,
        stored=23,
        transient=4,
    )
    sample = result.sample
    np.testing.assert_allclose(result.mean.m_q, sample.m_q.mean(-1), atol=1e-14)
    np.testing.assert_allclose(result.spread.A, sample.A.std(-1, ddof=1), atol=1e-14)
    np.testing.assert_allclose(
        result.stderr.m_k, sample.m_k.std(-1, ddof=1) / np.sqrt(23), atol=1e-14
    )
    kept = sample.A[4:]
    np.testing.assert_allclose(result.averages.A_mean, kept.mean(0), atol=1e-14)
    np.testing.assert_allclose(result.averages.A_square, (kept**2).mean(0), atol=1e-14)
    assert result.averages.m_o_se_mean.shape == (3, 2, 23)


@pytest.mark.slow
def test_one_run_has_no_spread():
    result = run("collapsed", 1.0, n_spins=300, runs=1, steps=2)
    assert np.isnan(result.spread.A).all()
    np.testing.assert_array_equal(result.mean.A, result.sample.A[..., 0])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("n_spins", "message"),
    [
        (100, "multiple of 3.*nearest is 99"),
        (1, "nearest is 3"),
        (10**12, "nearest is 999999999999"),
        (0, "whole number"),
        (2.5, "whole number"),
        (2**60, "whole number"),
        (True, "whole number"),
    ],
)
def test_numbers_of_spins_that_cannot_be_are_refused(n_spins, message):
    with pytest.raises(ValueError, match=message):
        class_counts(FILE.patterns, n_spins)


def test_class_counts_of_other_fractions():
    columns = np.ones((4, 1, 3))
    counts = lambda w, n: class_counts(dmft.site_classes(columns, w), n)
    np.testing.assert_array_equal(counts([0.5, 0.3, 0.2], 10**12), [5e11, 3e11, 2e11])
    np.testing.assert_array_equal(counts([1.0, 0.0, 0.0], 7), [7, 0, 0])
    drawn = dmft.random_independent(
        jax.random.key(1), n_patterns=2, n_sites=997, n_bits=1
    )
    assert class_counts(drawn, 997).sum() == 997
    with pytest.raises(ValueError, match="no N"):
        counts([1 / np.pi, 0.5, 0.5 - 1 / np.pi], 100)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"runs": 0}, "runs must"),
        ({"steps": 0}, "steps must"),
        ({"transient": 5}, "transient must"),
        ({"stored": 9}, "stored must"),
        ({"method": "spin"}, "method must be 'collapsed' or 'spins'; got 'spin'"),
        ({"points": [1, 2]}, "points must"),
    ],
)
def test_bad_arguments_are_refused(changed, message):
    given = dict(method="collapsed", n_spins=300, runs=4, steps=5) | changed
    with pytest.raises(ValueError, match=message):
        run(given.pop("method"), 1.0, **given)


def test_patterns_of_another_network_are_refused():
    other = dmft.cycle(jax.random.key(0), n_patterns=3, n_bits=2)
    params = dmft.parameters(1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="patterns must be of the size 3 in S"):
        simulate(
            NET,
            other,
            params,
            dmft.from_row(NET, params, 0),
            n_spins=8,
            runs=1,
            steps=1,
            key=jax.random.key(0),
        )


@pytest.mark.slow
def test_an_empty_class_and_many_classes():
    patterns = dmft.site_classes(np.ones((4, 2, 3)) * [[[1, -1, 1]]], [0.5, 0.5, 0.0])
    net = dmft.network(patterns, context=2)
    params = dmft.parameters(1.0, 2.0, 0.0)
    start = dmft.from_row(net, params, 0)
    for method in METHODS:
        result = simulate(
            net,
            patterns,
            params,
            start,
            n_spins=50,
            runs=3,
            steps=4,
            method=method,
            key=jax.random.key(0),
        )
        assert jnp.isfinite(result.mean.A).all()
