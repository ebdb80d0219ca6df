"""Escape rates and survival against maps whose lifetimes are known exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, norm

from statmech_attn.batches import rng
from statmech_attn.dynamics import escape_rate, escape_times
from statmech_attn.dynamics.attractors.transients import survival


inside = lambda x: (x >= 0) & (x <= 1)


def tent(s):
    return lambda x: s * jnp.minimum(x, 1 - x)


@pytest.fixture(scope="module", params=[2.02, 2.5, 4.0])
def leaving(request):
    """Open tent map of slope s: of uniform starts 2/s stay at each step, exactly."""
    s = request.param
    starts = rng.uniform(jax.random.key(11), (20_000,))
    return s, *escape_times(tent(s), starts, inside, horizon=100)


def test_the_escape_rate_of_the_open_tent_map(leaving):
    s, lifetime, ended = leaving
    found = escape_rate(lifetime, ended, after=0)
    z = (found.rate - np.log(s / 2)) / found.stderr
    assert abs(z) < norm.isf(1e-3 / 2 / 3)
    assert found.events == ended.sum() and found.mean == 1 / found.rate
    if s == 2.02:  # censored runs count with the time they were watched
        assert 0 < (~ended).sum() < 20_000 and lifetime[~ended].min() == 100


def test_survival_falls_by_two_over_s_at_each_step(leaving):
    s, lifetime, ended = leaving
    found = survival(lifetime, ended)
    steps = found.time < min(8 / np.log(s / 2), 100)
    exact = (2 / s) ** found.time[steps]
    error = np.sqrt(exact * (1 - exact) / 20_000)
    z = (found.share[steps] - exact) / error
    assert np.abs(z).max() < norm.isf(1e-3 / 2 / steps.sum())
    many = exact * 20_000 > 100
    width = (found.high - found.low)[steps] / 2
    assert width[many] == pytest.approx(error[many], rel=0.3)


def test_rates_and_their_errors_are_calibrated_with_censoring():
    """300 samples of 60 lifetimes, a third of them cut: z is standard normal."""
    rng = np.random.default_rng(5)
    chance, z = 1e-3, []
    for _ in range(300):
        lifetime = rng.geometric(chance, 60)
        cut = rng.integers(500, 3000, 60)
        found = escape_rate(np.minimum(lifetime, cut), lifetime <= cut, after=0)
        z.append((found.rate + np.log1p(-chance)) / found.stderr)
    assert kstest(z, "norm").pvalue > 1e-3
    assert np.mean(z) == pytest.approx(0, abs=0.3)


def test_the_tail_begins_after_what_is_not_exponential():
    """Everybody needs 500 steps at least; the rate without them is twice too low."""
    rng = np.random.default_rng(6)
    lifetime = 500 + rng.geometric(2e-3, 2000)
    ended = np.ones(2000, bool)
    found = escape_rate(lifetime, ended)
    assert found.after >= 500
    assert abs(found.rate - 2e-3) < 4 * found.stderr
    everything = escape_rate(lifetime, ended, after=0)
    assert abs(everything.constancy) > 10
    assert everything.rate == pytest.approx(1e-3, rel=0.1)


def test_errors_contain_the_choice_of_the_tail():
    """Of 400 orbits 30 % leave at the rate 0.7, the others at 0.05; 200 samples."""
    random, rate, rates = np.random.default_rng(0), 0.05, []
    for _ in range(200):
        own = np.where(random.random(400) < 0.3, 0.7, rate)
        lifetime, ended = random.geometric(-np.expm1(-own)), np.ones(400, bool)
        tails = (escape_rate(lifetime, ended, after=t_0) for t_0 in (None, 20))
        rates.append([(tail.rate - rate) / tail.stderr for tail in tails])
    assert np.abs(np.mean(np.square(rates), axis=0) ** 0.5 - 1).max() < 4 / np.sqrt(400)


def test_halves_that_disagree_widen_an_error_and_so_does_a_later_tail():
    """Against the formula (docs/theory/attractors.md, section 4) of tails by hand."""
    random, factors, later = np.random.default_rng(1), [], []
    for _ in range(50):
        own = np.where(random.random(400) < 0.3, 0.2, 0.05)
        lifetime, ended = random.geometric(-np.expm1(-own)), np.ones(400, bool)
        chosen = escape_rate(lifetime, ended)
        half = float(np.quantile(lifetime, 0.5, method="lower"))
        tail, last = (
            escape_rate(lifetime, ended, after=t) for t in (chosen.after, half)
        )
        remainder = (tail.rate - last.rate) ** 2 - (last.stderr**2 - tail.stderr**2)
        factors.append(max(1, abs(tail.constancy)))
        later.append(max(0, remainder))
        error = np.sqrt((tail.stderr * factors[-1]) ** 2 + later[-1])
        assert (chosen.rate, chosen.stderr) == pytest.approx((tail.rate, error))
    assert 10 < sum(factor > 1.2 for factor in factors) < 50
    assert 10 < np.count_nonzero(later) < 50


def test_units_scale_rate_and_error():
    lifetime, ended = np.array([4, 8, 8, 20]), np.array([True, True, True, False])
    one, four = (
        escape_rate(lifetime // 4, ended, after=0),
        escape_rate(lifetime, ended, after=0, resolution=4),
    )
    assert one.rate == pytest.approx(-np.log(1 - 3 / 10))
    assert four.rate == pytest.approx(one.rate / 4)
    assert four.stderr == pytest.approx(one.stderr / 4)
    assert four.time == 4 * one.time


def test_a_tail_with_as_many_ends_as_steps_has_no_rate():
    """A later tail of this kind adds nothing to the error of the first."""
    tail = escape_rate(np.array([8, 8, 9, 10]), np.ones(4, bool), after=7, resolution=8)
    assert np.isnan(tail.rate) and tail.events == 4
    lifetime = np.array([1, 2, 3, 30, 41, 42, 42, 43])
    whole = escape_rate(lifetime, np.ones(8, bool), resolution=8)
    assert np.isfinite(whole.stderr) and whole.after == 0


def test_nobody_who_left_is_no_rate():
    found = escape_rate(np.full(5, 100), np.zeros(5, bool))
    assert np.isnan(found.rate) and np.isnan(found.stderr) and found.events == 0
    assert survival(np.full(5, 100), np.zeros(5, bool)).share.tolist() == [1.0]


def test_exit_times_are_exact_whatever_the_chunk():
    """2^k leaves (0, 1024) after 10 - k steps; chunks and horizon cut nothing off."""
    starts = 2.0 ** np.arange(12)
    expected = np.maximum(10 - np.arange(12), 0)
    within = lambda x: x < 1024
    for chunk in (1, 3, 4096):
        lifetime, ended = escape_times(
            lambda x: 2 * x, starts, within, horizon=1000, chunk=chunk
        )
        assert lifetime.tolist() == expected.tolist() and ended.all()
    lifetime, ended = escape_times(lambda x: 2 * x, starts, within, horizon=4, chunk=3)
    assert ended.tolist() == (expected <= 4).tolist()
    assert lifetime.tolist() == np.minimum(expected, 4).tolist()


def test_lifetimes_from_tens_to_millions_stop_early():
    """x' = (1 + a) x from 1: out of (0, 2) after ln 2 / ln(1 + a) steps."""
    growth = 10.0 ** -np.arange(1, 7)
    step = lambda z: (z[0] * (1 + z[1]), z[1])
    lifetime, ended = escape_times(
        step, (np.ones(6), growth), lambda z: z[0] < 2, horizon=10_000_000, chunk=65_536
    )
    assert ended.all()
    np.testing.assert_allclose(
        lifetime, np.log(2) / np.log1p(growth), rtol=1e-4, atol=1
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: escape_rate(np.ones(3), np.ones(2, bool)),
            "of the size 3 in n to fit lifetime",
        ),
        (
            lambda: escape_rate(-np.ones(2), np.ones(2, bool)),
            "none of them negative",
        ),
        (lambda: survival(np.ones(0), np.ones(0, bool)), "one number or more"),
        (lambda: survival(np.array([3, 5]), np.array([1, 0])), "ended must be bool"),
        (
            lambda: escape_rate([3, np.inf], [True, True]),
            "lifetime must be finite",
        ),
        (
            lambda: escape_rate(np.ones(2), np.ones(2, bool), resolution=0),
            "resolution must be",
        ),
        (
            lambda: escape_times(lambda x: x, np.ones(2), inside, horizon=0),
            "horizon must be at least 1",
        ),
        (
            lambda: escape_times(lambda x: x, np.ones(2), lambda x: x, horizon=5),
            "inside must return one bool",
        ),
    ],
)
def test_impossible_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("unchecked")
def test_lifetimes_may_be_lists():
    share = survival([1, 2, 2, 5], [True, True, True, False]).share
    assert share.tolist() == [0.75, 0.25, 0.25]
