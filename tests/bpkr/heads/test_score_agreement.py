"""Rank correlations of scores with ablations, their errors and levels."""

import math

import numpy as np
import pytest
from scipy import stats

from statmech_attn.bpkr.heads.score_agreement import score_agreement


def drawn(seed=0, heads=12, examples=100, noise=1.0):
    """Losses gained, of means 0 to 1 with noise of every example."""
    rng = np.random.default_rng(seed)
    mean = np.linspace(0, 1, heads)
    return mean, mean[:, None] + noise * rng.normal(size=(heads, examples))


def test_correlations_are_those_of_spearman_over_all_heads_and_within_layers():
    _, gained = drawn()
    score = np.random.default_rng(1).normal(size=12)
    agreement = score_agreement({"mine": score}, gained, (5, 7))
    mean = gained.mean(axis=1)
    expected = stats.spearmanr(score, mean).statistic
    np.testing.assert_allclose(agreement.correlation, expected)
    layers = [
        stats.spearmanr(score[s], mean[s]).statistic for s in (slice(5), slice(5, 12))
    ]
    np.testing.assert_allclose(agreement.within, np.mean(layers))
    by_layer = score_agreement({"mine": np.split(score, [5])}, gained, (5, 7))
    assert repr(by_layer) == repr(agreement)


def test_levels_are_those_of_scipy_and_uniform_for_random_scores():
    """The p of random scores: Kolmogorov-Smirnov at 1e-3."""
    rng = np.random.default_rng(2)
    gained = drawn()[1]
    scores = {f"{i}": rng.normal(size=12) for i in range(30)}
    levels = [
        score_agreement({name: score}, gained, (12,), resamples=2).level[0]
        for name, score in scores.items()
    ]
    assert stats.kstest(levels, "uniform").pvalue > 1e-3
    mean = gained.mean(axis=1)
    p = [stats.spearmanr(score, mean).pvalue for score in scores.values()]
    # 0.01 by t for twelve ranks, and 4.2 errors of a share of 800 orders, 0.018
    np.testing.assert_allclose(levels, p, atol=0.085)
    few = score_agreement({n: scores[n] for n in "123"}, gained, (12,))
    assert few.explain().startswith("told from random orders: none of the scores")


@pytest.mark.slow
def test_errors_are_the_scatter_over_independent_sets_of_examples():
    """Of 300 sets; the bootstrap adds noise to noise, which pulls ranks together."""
    score = np.arange(12.0)
    found = [
        score_agreement({"s": score}, drawn(seed)[1], (12,), resamples=200)
        for seed in range(300)
    ]
    scatter = np.std([f.correlation[0] for f in found], ddof=1)
    assert 0.8 < np.mean([f.stderr[0] for f in found]) / scatter < 1.8


def test_a_score_that_orders_the_heads_is_told_from_random_orders():
    mean, gained = drawn(noise=0.01)
    agreement = score_agreement({"true": mean, "none": -mean}, gained, (12,))
    assert agreement.correlation.tolist() == [1.0, -1.0]
    assert "true (over all heads and within layers)" in agreement.explain()
    assert "none (" not in agreement.explain()
    assert agreement.to_dataset().score_correlation.sel(head_score_name="true") == 1


def test_what_has_no_ranks_is_nan_or_refused():
    gained = drawn(heads=4)[1]
    few = score_agreement({"s": [1, 2, 3, 4]}, gained, (2, 2))
    assert math.isnan(few.within[0]) and not math.isnan(few.correlation[0])
    same = score_agreement({"s": [1, 1, 1, 1]}, gained, (4,))
    assert math.isnan(same.correlation[0]) and math.isnan(same.level[0])
    for scores in ({}, {"s": [1, 2]}, {"s": [1, 2, 3, math.nan]}):
        with pytest.raises(ValueError, match="score"):
            score_agreement(scores, gained, (4,))
