"""Linear noise against closed forms, against simulations, and its growth rate."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dmft import linear_noise
from statmech_attn.dmft.noise.fluctuations import (
    noise_dimension,
    noise_start,
    noise_steps,
    predictability_horizon,
    SCORE_LIMIT,
)
from statmech_attn.montecarlo import simulate
from statmech_attn.statistics.agreement import threshold


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)
NAMES = ("A", "m_o_se", "m_v", "m_q", "m_k")


def noise(beta, steps, *, gamma=FILE.gamma, start="token", **given):
    params = dmft.parameters(beta, gamma, FILE.epsilon)
    state = _start(params, start)
    return (
        params,
        state,
        linear_noise(NET, FILE.patterns, params, state, steps=steps, **given),
    )


def _start(params, start):
    if start == "token":
        return dmft.from_row(NET, params, 0)
    return dmft.from_checkpoint(NET, params, FILE)


@pytest.fixture(scope="module")
def joint():
    """The covariance of all observables at two values of beta."""
    return noise([0.5, 1.27], 30, covariance=True)


def test_covariance_of_the_first_token_is_its_closed_form(joint):
    _, state, band = joint
    h = 1.27 * np.asarray(state.newest)[:, 1] @ np.asarray(NET.output)
    shrink = 1 - np.tanh(h) ** 2
    _, v, q, k = W = FILE.patterns.semantic * (1 - FILE.epsilon)
    columns = np.concatenate([W[0] / (1 - FILE.epsilon), v, q, k])
    expected = np.einsum(
        "ic,c,jc->ij", columns, FILE.patterns.fractions * shrink, columns
    )
    covariance = np.asarray(band.covariance)[0, 3:, 3:, 1]
    np.testing.assert_allclose(covariance, expected, atol=1e-14)


def test_std_is_the_diagonal_of_the_covariance(joint):
    _, _, band = joint
    std = np.concatenate([getattr(band.std, name) for name in NAMES], axis=1)
    diagonal = np.einsum("tiib->tib", band.covariance)
    np.testing.assert_allclose(std**2, diagonal, rtol=1e-10, atol=1e-300)


@pytest.mark.slow
def test_covariance_over_runs_is_the_linear_noise():
    runs, steps, n_spins = 4000, 6, 6 * 10**9
    params, state, band = noise(1.27, steps, covariance=True)
    sample = simulate(
        NET,
        FILE.patterns,
        params,
        state,
        n_spins=n_spins,
        runs=runs,
        steps=steps,
        key=jax.random.key(12),
        stored=runs,
    ).sample
    for t in (0, 2, 5):
        x = np.concatenate([getattr(sample, name)[t] for name in NAMES])
        expected = np.asarray(band.covariance[t]) / n_spins
        scale = np.outer(*[np.sqrt(np.diag(expected))] * 2)
        # A covariance of unit Gaussians has variance (1 + rho^2) / runs <= 2 / runs.
        allowed = threshold(3 * 120) * np.sqrt(2 / runs)
        assert np.abs((np.cov(x) - expected) / scale).max() < allowed


def test_an_empty_class_makes_no_noise():
    """The class beside it has the noise of two halves that are alike."""
    columns = np.ones((4, 1, 2))
    params = dmft.parameters(0.7, 1.0, 0.0)
    bands = []
    for patterns in (
        dmft.site_classes(columns * [1, -1], [1.0, 0.0]),
        dmft.site_classes(columns, [0.5, 0.5]),
    ):
        net = dmft.network(patterns, context=2)
        state = dmft.from_row(net, params, 0)
        bands.append(linear_noise(net, patterns, params, state, steps=5).std.A)
    np.testing.assert_allclose(*bands, rtol=1e-12)


def test_noise_that_leaves_the_range_of_doubles_is_infinite_never_nan():
    _, _, band = noise(1.28, 6000, start="checkpoint")
    std = np.asarray(band.std.A)
    assert not np.isnan(std).any()
    assert np.isinf(std[-1]).all()
    assert (std >= 0).all()


@pytest.mark.slow
def test_noise_grows_at_the_rate_of_the_largest_exponent():
    """On one chaotic orbit, ln std / t tends to lambda_1.

    The exponent is taken along the states that the noise went through: two programs
    would leave each other on such an orbit.
    """
    steps = 2000
    params = dmft.parameters(1.28, FILE.gamma, FILE.epsilon)
    tangent = dmft.TangentMap(NET, params)
    start = noise_start(NET, FILE.patterns, params, _start(params, "checkpoint"))

    def push(carry, _):
        noise, frame = carry
        state = noise.state
        window = (x[..., 0] for x in (state.v, state.k, state.attention))
        here = dmft.State(*window, state.clock, state.tokens)
        _, frame = tangent.push(tangent.lift(here), frame)
        noise, band = noise_steps(NET, noise, steps=1)
        norm = jax.numpy.linalg.norm(frame)
        return (noise, frame / norm), (band.std.A[0, :, 0].max(), jax.numpy.log(norm))

    frame = jax.numpy.ones((NET.dimension, 1)) / np.sqrt(NET.dimension)
    _, (std, growth) = jax.lax.scan(push, (start, frame), None, length=steps)
    rate = np.log(std[-400:]).mean() / (steps - 200)
    exponent = np.cumsum(growth)[-400:].mean() / (steps - 200)
    # The two differ by the logarithm of bounded factors (e^10 is generous) over time.
    assert abs(rate - exponent) < 10 / steps
    assert exponent > 0.1


def test_horizon_is_the_time_to_grow_from_one_spin():
    assert predictability_horizon(10**6, 0.1) == pytest.approx(np.log(1e6) / 0.2)
    np.testing.assert_array_equal(
        predictability_horizon(100, [0.0, -1, -np.inf]), np.inf
    )
    assert predictability_horizon([10, 100], 0.5).shape == (2,)


@pytest.mark.parametrize("bad", [0, -5, np.inf, np.nan])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(ValueError, match="n_spins must be finite"):
        predictability_horizon(bad, 0.1)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        predictability_horizon(10, np.nan)
    with pytest.raises(ValueError, match="steps must"):
        noise(1.0, 0)
    other = dmft.cycle(jax.random.key(0), n_patterns=3, n_bits=2)
    params = dmft.parameters(1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="^patterns must be "):
        linear_noise(NET, other, params, dmft.from_row(NET, params, 0), steps=1)


def test_spread_of_the_scores_is_that_of_the_attention_logits(joint):
    """From the joint covariance of m^q and m^k of the only token in the window."""
    params = dmft.parameters(1.27, FILE.gamma, FILE.epsilon)
    net = dmft.network(FILE.patterns, context=1)
    state = dmft.from_row(net, params, 0)
    alone = linear_noise(net, FILE.patterns, params, state, steps=3).score
    np.testing.assert_array_equal(alone, 0)  # one slot: its weight cannot change
    _, seen = dmft.trajectory(NET, params, _start(params, "token"), steps=1)
    band = joint[2]
    # Two slots hold a token: the row's without noise, k = k_0, and the generated one.
    q, k = np.asarray(seen.m_q)[0], np.asarray(seen.m_k)[0]
    k_0 = np.asarray(_start(params, "token").k[0])
    gradient = FILE.gamma * np.concatenate([k - k_0, q])
    covariance = np.asarray(band.covariance)[0, 9:, 9:, 1]
    spread = np.sqrt(gradient @ covariance @ gradient)  # of the difference of the two
    logits = FILE.gamma * np.array([q @ k_0, q @ k])
    weight = 1 / (1 + np.exp(-np.abs(np.diff(logits)[0])))  # of the larger one
    assert float(band.score[0, 1]) == pytest.approx(spread * weight, rel=1e-10)


@pytest.mark.slow
def test_the_spread_of_the_scores_says_where_linear_noise_ends():
    """At beta = 1 from a token: N = 60 000 is too small, 100 times as many are not.

    The measure bounds the error by a part of order its square: over one at steps 9 and
    13 of the small network, where variances are three times the predicted ones.
    """
    runs, steps, late = 2000, 13, [8, 12]
    params, state, band = noise(1.0, steps)
    score = np.asarray(band.score)
    ratios = {}
    for n_spins in (60_000, 6_000_000):
        result = simulate(
            NET,
            FILE.patterns,
            params,
            state,
            n_spins=n_spins,
            runs=runs,
            steps=steps,
            key=jax.random.key(13),
            stored=0,
        )
        ratios[n_spins] = result.spread.A**2 * n_spins / np.asarray(band.std.A) ** 2
    small, large = (score / np.sqrt(n_spins) for n_spins in ratios)
    assert (small[late] > 1).all() and (large < SCORE_LIMIT / 2).all()
    assert (ratios[60_000][late].max(axis=1) > 2).all()
    # Two parts: chance, sqrt(2 / runs) for a variance, and the square of the measure.
    chance = threshold(steps * 3) * np.sqrt(2 / runs)
    error = np.abs(ratios[6_000_000] - 1).max(axis=1)
    assert (error < chance + 2 * np.maximum.accumulate(large) ** 2).all()


def test_deviations_have_the_coordinates_of_the_state():
    """(2 C + 1) M of three patterns and a context of 4."""
    net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
    assert noise_dimension(net, dmft.parameters(1.4, 127.0, 0.02)) == 27
