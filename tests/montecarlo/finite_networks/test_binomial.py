import itertools
from fractions import Fraction
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from statmech_attn.montecarlo.finite_networks.binomial import (
    _Hat,
    any_count,
    LIMIT,
    rare_count,
)
from statmech_attn.montecarlo.finite_networks.randomness import (
    address,
    seed_words,
    threefry,
    uniform,
)


DRAWS = 200_000
SIZES = [1, 7, 60, 1000, 10**6, 10**9, 10**12]
FEW = [60, 10**12]
PROBABILITIES = [1e-9, 0.003, 0.2, 0.5, 0.83]
CASES = list(itertools.product(SIZES, PROBABILITIES))


@jax.jit
def log_ratio(n, p, j):
    """ln f(m + j) / f(m), m the mode of Binomial(n, p)."""
    return _Hat(jnp.float64(n), jnp.float64(p)).log_ratio(j)


@jax.jit
def ratio_to_hat(n, p, u):
    """Distribution over hat where u proposes; zero outside."""
    hat = _Hat(n, p)
    k, height = hat.propose(u)
    inside = (k >= -hat.mode) & (k <= n - hat.mode)
    ratio = jnp.exp(hat.log_ratio(jnp.where(inside, k, 0.0))) / height
    return jnp.where(inside, ratio, 0.0)


@jax.jit
def binomial(key, n, p):
    """DRAWS numbers of one count, each with a key of its own."""
    lanes = address(seed_words(key), jnp.arange(DRAWS, dtype=jnp.uint32))
    return any_count(lanes, jnp.asarray(n, float), jnp.asarray(p, float))


@cache
def sample(n, p):
    key = jax.random.fold_in(jax.random.key(20), CASES.index((n, p)))
    return np.asarray(binomial(key, n, p))


@pytest.fixture(scope="module")
def samples():
    return {case: sample(*case) for case in CASES}


def test_cipher_is_the_one_of_jax():
    counter = jnp.arange(64, dtype=jnp.uint32) * np.uint32(2654435761)
    expected = threefry_2x32(jnp.array([13, 37], jnp.uint32), counter)
    got = threefry((jnp.uint32(13), jnp.uint32(37)), (counter[:32], counter[32:]))
    np.testing.assert_array_equal(np.concatenate(got), expected)


def test_uniform_numbers_are_uniform_and_open():
    u = np.asarray(uniform(seed_words(jax.random.key(1)), jnp.arange(10**6)))
    assert 0 < u.min() and u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("n", "p", "k"), [(0, 0.3, 0), (10**12, 0.0, 0), (10**12, 1.0, 10**12), (0, 1.0, 0)]
)
def test_certain_outcomes_are_exact(n, p, k):
    assert (np.asarray(binomial(jax.random.key(0), n, p)) == k).all()


@pytest.mark.slow
def test_distribution_is_binomial_by_chi_square(samples):
    level = 1e-3 / len(CASES)
    for (n, p), k in samples.items():
        assert (k == np.floor(k)).all() and (k >= 0).all() and (k <= n).all()
        law = stats.binom(n, p)
        edges = np.unique(_quantiles(n, p, np.arange(1, 40) / 40))
        expected = np.diff(law.cdf(edges), prepend=0.0, append=1.0) * DRAWS
        counts = np.bincount(np.searchsorted(edges, k), minlength=len(edges) + 1)
        counts, expected = _pool(counts, expected)
        if len(counts) > 1:
            assert stats.chisquare(counts, expected).pvalue > level, (n, p)


@pytest.mark.parametrize("n", FEW)
def test_tails_have_their_binomial_weight(n):
    level = 1e-3 / (4 * len(CASES))
    for p, z in itertools.product(PROBABILITIES, (3.0, 4.0)):
        k = sample(n, p)
        law, reach = stats.binom(n, p), z * np.sqrt(n * p * (1 - p))
        high, low = np.floor(n * p + reach), np.floor(n * p - reach)
        for seen, weight in (
            ((k > high).sum(), law.sf(high)),
            ((k <= low).sum(), law.cdf(low)),
        ):
            test = stats.binomtest(int(seen), DRAWS, float(weight))
            assert test.pvalue > level, (n, p, z)


@pytest.mark.parametrize(
    ("n", "p"), [(20, 0.5), (50, 0.25), (1000, 0.3), (10**12, 0.3), (10**12, 1e-9)]
)
def test_log_ratio_to_the_mode_is_the_product_of_exact_ratios(n, p):
    m, odds = int((n + 1) * Fraction(p)), Fraction(p) / (1 - Fraction(p))
    for sign in (1, -1):
        steps = np.arange(1, min(n - m if sign > 0 else m, 2000) + 1)
        if sign > 0:
            factors = [Fraction(n - m - int(i) + 1, m + int(i)) * odds for i in steps]
        else:
            factors = [Fraction(m - int(i) + 1, n - m + int(i)) / odds for i in steps]
        # ln(1 + (f - 1)) keeps the digits that float(f) would lose.
        expected = np.cumsum([np.log1p(float(f - 1)) for f in factors])
        got = np.asarray(log_ratio(n, p, sign * jnp.asarray(steps, float)))
        near = expected > -50
        # One rounding of p moves ln f by z sqrt(n p q) 2^-53, z spreads from the mode.
        moved = 10 * np.sqrt(n * p * (1 - p)) * 2.0**-53 + 1e-12
        assert np.abs(got - expected)[near].max() < moved


@pytest.mark.parametrize("p", [0.5, 0.37, 0.1, 1e-3, 1e-8])
def test_hat_covers_the_distribution(p):
    n = np.ceil(10 / p * np.array([1.0, 1.1, 1.7, 3.0, 10.0, 1e3, 1e6]))
    n = n[n < LIMIT][:, None]
    u = jnp.asarray(np.linspace(-0.5, 0.5, 20_003)[1:-1])[None]
    ratio = ratio_to_hat(np.resize(n, (7, 1)), p, u)
    assert float(ratio.max()) <= 1.0


def test_numbers_of_a_lane_do_not_depend_on_the_batch():
    lanes = jax.jit(address)(seed_words(jax.random.key(3)), np.arange(100))
    lanes = tuple(map(np.asarray, lanes))
    n = np.resize([5.0, 1e3, 1e12], 100)
    p = np.resize([0.01, 0.2, 0.4, 0.5], 100)
    count = jax.jit(rare_count)
    together = np.asarray(count(lanes, n, p))
    for i in (0, 17, 99):
        alone = count(tuple(x[i] for x in lanes), n[i], p[i])
        assert float(alone) == together[i]


def _quantiles(n, p, q):
    """Whole numbers near the quantiles; any cells will do."""
    guess = n * p + np.sqrt(n * p * (1 - p)) * stats.norm.ppf(q)
    return np.clip(np.floor(guess), 0, n)


def _pool(counts, expected):
    """Join cells that expect fewer than ten with their neighbour."""
    cells, seen = [0.0], [0]
    for c, e in zip(counts, expected, strict=True):
        if cells[-1] >= 10:
            cells.append(0.0)
            seen.append(0)
        cells[-1] += e
        seen[-1] += c
    if cells[-1] < 10 and len(cells) > 1:
        last, count = cells.pop(), seen.pop()
        cells[-1] += last
        seen[-1] += count
    return np.array(seen), np.array(cells)
