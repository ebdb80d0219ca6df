import re

import jax
import numpy as np
import pytest

from statmech_attn import dmft, montecarlo, statistics
from statmech_attn.dmft import extensive
from statmech_attn.montecarlo.finite_networks import extensive as spins


PARTLY = extensive.correlated(ov=0.6, oq=0.3, ok=0.1, vq=0.2, vk=0.4, qk=0.5)
KEY = jax.random.key(5)


def case(ensemble, alpha=0.2, **given):
    """Two condensed patterns on four segments of sites, two tokens of context."""
    patterns = dmft.random_segments(
        jax.random.key(2), n_patterns=2, n_segments=4, n_bits=1
    )
    net = dmft.network(patterns, context=2)
    settings = {"beta": 1.2, "gamma": 5.0, "epsilon": 0.1} | given
    return extensive.loaded_network(net, ensemble, alpha=alpha, **settings), patterns


def differences(summed, ensemble, n_spins, samples, steps=3, **given):
    """Spins less theory, and standard errors, of all that both have."""
    problem, patterns = case(ensemble, **given)
    start = problem.net.output[0]
    run = montecarlo.simulate_extensive(
        problem, patterns, start, n_spins=n_spins, samples=samples, steps=steps, key=KEY
    )
    if problem.ensemble.is_closed:
        theory = extensive.closed(problem, start, steps=steps).value
    else:
        theory = summed(problem, start, steps=steps).value
    known = [
        np.ravel(np.stack([getattr(x, name) for x in (run.mean, run.stderr, theory)]))
        for name in run.mean._fields
    ]
    mean, error, limit = np.concatenate([x.reshape(3, -1) for x in known], axis=1)
    varies = error > 1e-9
    return (mean - limit)[varies], error[varies]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "ensemble",
    [extensive.cycle(), extensive.identical(), PARTLY, extensive.independent()],
    ids=["cycle", "identical", "partly", "independent"],
)
def test_spins_agree_with_the_theory(ensemble, histories):
    """At N = 800 and 1600, extrapolated in 1/N."""
    (small, small_error), (large, large_error) = (
        differences(histories.summed, ensemble, n_spins, 40) for n_spins in (800, 1600)
    )
    limit = 2 * large - small
    error = np.hypot(2 * large_error, small_error)
    z = np.abs(limit) / error
    assert z.size > 30
    assert z.max() < statistics.threshold(z.size, 40)


@pytest.fixture(scope="module")
def small():
    problem, patterns = case(extensive.identical(), alpha=0.25)
    return montecarlo.simulate_extensive(
        problem,
        patterns,
        problem.net.output[0],
        n_spins=400,
        samples=3,
        steps=3,
        key=KEY,
        runs=2,
    )


def test_a_sample_has_the_exact_values_of_its_start(small):
    assert np.allclose(small.samples.m_o_se[:, 0, 0], 1)
    assert np.allclose(np.diagonal(small.samples.C, axis1=1, axis2=2), 1)
    assert np.all(np.linalg.eigvalsh(small.samples.S) > -1e-6)
    assert np.allclose(small.samples.weights.sum(-1), 1)


def test_identical_patterns_give_the_first_step_of_hopfield_networks(small):
    """E m(1) with crosstalk: the mean of tanh over its Gaussian field, to N^-1/2.

    Of one token, with 1 - epsilon of its overlaps and of the crosstalk.
    """
    problem, _ = case(extensive.identical(), alpha=0.25)
    output, weighted = np.asarray(problem.net.output), np.asarray(problem.net.weighted)
    A = 0.9 * weighted[1] @ output[0] + 0.1 * np.asarray(problem.net.positional)[0, 1]
    z, w = np.polynomial.hermite_e.hermegauss(16)
    own = A @ output + 0.25 * 0.9 * output[0]
    fields = own[:, None] + np.sqrt(0.25) * 0.9 * z
    m = weighted[0, 0] @ np.tanh(1.2 * fields) @ w / w.sum()
    assert abs(small.mean.m_o_se[1, 0] - m) < 6 * np.sqrt(0.25 / 400)


def test_a_result_reads_as_text_and_as_a_data_set(small):
    assert "correlations of the spins" in repr(small)
    assert small.to_dataset().C.dims == ("time", "time_2")


def test_counted_bits_are_sums_over_the_signs():
    """Of 67 patterns at 70 sites, which fill no words."""
    columns = spins._columns(extensive.cycle())
    x = np.random.default_rng(1).choice([-1, 1], (70, 3))

    @jax.jit
    def counted(key, x):
        bits = spins._draw(columns, key, 67, 70)
        overlaps = spins._overlaps(columns, bits, x)
        return bits, overlaps, spins._fields(columns, bits, overlaps[0])

    bits, overlaps, fields = counted(KEY, x.astype(np.float32))
    ones = np.unpackbits(np.asarray(bits.by_site).view(np.uint8), -1, bitorder="little")
    o, v, q, k = (2 * ones[..., :70].astype(int) - 1)[list(columns.place)]
    for found, signs in zip(overlaps, (v, q, k), strict=True):
        np.testing.assert_array_equal(found, signs @ x)
    passed = np.roll(v @ x, 1, axis=0) if columns.is_cycle else v @ x
    np.testing.assert_array_equal(fields, o.T @ passed)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"n_spins": 404}, "alpha N must be a whole number; got 80.8."),
        ({"samples": 1}, "samples must be at least 2; got 1."),
        ({"steps": 0}, "steps must be at least 1; got 0."),
        ({"runs": 0}, "runs must be at least 1; got 0."),
        ({"n_spins": 10**7}, "take fewer."),
        ({"start": [1.0]}, "start must have one mean in [-1, 1] per site class (4)."),
    ],
)
def test_bad_input_is_refused_in_one_line(given, words):
    problem, patterns = case(PARTLY)
    settings = {"n_spins": 400, "samples": 2, "steps": 2} | given
    start = settings.pop("start", problem.net.output[0])
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        montecarlo.simulate_extensive(problem, patterns, start, key=KEY, **settings)
    assert "\n" not in str(caught.value)
