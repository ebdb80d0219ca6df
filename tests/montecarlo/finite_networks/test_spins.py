"""Every spin is compared with its own 64-bit random number."""

from functools import cache

import jax
import numpy as np
import pytest
from scipy import stats

from statmech_attn.montecarlo.finite_networks.collapsed import draw_counts
from statmech_attn.montecarlo.finite_networks.randomness import (
    address,
    seed_words,
    threefry,
)
from statmech_attn.montecarlo.finite_networks.spins import (
    bernoulli_words,
    draw_spins,
    plan_blocks,
    threshold_words,
)
from statmech_attn.statistics.agreement import threshold


KEY = seed_words(jax.random.key(8))
LANE = tuple(np.asarray(word)[None] for word in KEY)
words_below = jax.jit(bernoulli_words, static_argnames=("size", "axis"))


def flips(p, words, axis=0):
    """Whether each of 32 spins in each of `words` flips with probability p."""
    threshold = jax.jit(threshold_words)(np.array([p]))
    below = words_below(LANE, threshold, 0, size=words, axis=axis)
    return bits_of(np.ravel(below))


@cache
def uniform_integers(words):
    """The 64-bit numbers of 32 spins in each of `words`, as Python integers."""
    index, numbers = np.arange(words, dtype=np.uint32), np.zeros((words, 32), object)
    for pair in np.arange(32, dtype=np.uint32):
        for plane in jax.jit(threefry)(KEY, (index, pair)):
            numbers = 2 * numbers + bits_of(plane)
    return numbers


def bits_of(words):
    return (np.asarray(words)[:, None] >> np.arange(32)) & 1


@pytest.mark.parametrize("p", [0.0, 2.0**-64, 1e-5, 0.1, 0.3333, 0.5 - 2.0**-54, 0.5])
def test_a_spin_flips_exactly_when_its_number_is_below_p(p):
    words = 500
    expected = uniform_integers(words) < int(p * 2.0**64)
    for axis in (0, 1):
        np.testing.assert_array_equal(flips(p, words, axis), expected)


def test_probabilities_close_to_a_drawn_number_are_decided_by_the_last_bit():
    number = next(x for x in uniform_integers(1)[0] if x < 2**63)
    lane = list(uniform_integers(1)[0]).index(number)
    spare = number.bit_length() - 53  # a double has 53 bits
    p = (number >> spare << spare) / 2.0**64
    assert not flips(p, 1)[0, lane]
    assert flips(np.nextafter(p, 1.0), 1)[0, lane]


@pytest.mark.parametrize("counts", [[1], [31, 32, 33], [100, 7000], [300_001, 5, 0]])
def test_blocks_hold_every_spin_once(counts):
    counts = np.array(counts)
    plan = plan_blocks(counts, lanes=16)
    held = np.minimum(plan.spins_left, 32 * plan.block_words)
    assert (held > 0).all()
    totals = np.bincount(plan.site_class, weights=held, minlength=len(counts))
    np.testing.assert_array_equal(totals, counts)


def test_class_sums_are_binomial():
    counts, runs = np.array([50, 333, 2000]), 20_000
    fields = np.array([[0.2], [-1.5], [3.0]]) * np.ones(runs)
    lanes = jax.jit(address)(KEY, np.arange(runs))
    means = np.asarray(jax.jit(draw_spins)(lanes, fields, plan_blocks(counts, runs)))
    allowed = threshold(2 * len(counts))
    for n, h, mean in zip(counts, fields[:, 0], means, strict=True):
        p = 1 / (1 + np.exp(-2 * float(h)))
        law, up = stats.binom(n, p), n * (1 + mean) / 2
        error = np.sqrt((float(law.stats("k")) + 2) / runs)
        assert abs(up.mean() - law.mean()) < allowed * law.std() / np.sqrt(runs)
        assert abs(up.var() / law.var() - 1) < allowed * error


def test_a_saturated_class_and_a_class_at_zero_field():
    lanes = jax.jit(address)(KEY, np.arange(4))
    fields = np.array([[400.0], [-400.0]]) * np.ones(4)
    counts = np.array([1000, 999])
    for draw, plan in ((draw_spins, plan_blocks(counts, 4)), (draw_counts, counts)):
        means = jax.jit(draw)(lanes, fields, plan)
        np.testing.assert_array_equal(means, [[1.0] * 4, [-1.0] * 4])


def test_more_spins_than_words_can_be_numbered_are_refused():
    with pytest.raises(ValueError, match="collapsed"):
        plan_blocks(np.array([2**38]), lanes=1)
