import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from statmech_attn import dmft
from statmech_attn.dmft import extensive


ONE = dmft.site_classes(np.ones((4, 1, 1)))


@pytest.fixture(scope="module")
def segments():
    """Two condensed patterns on five segments of sites, with a positional code."""
    patterns = dmft.random_segments(
        jax.random.key(3), n_patterns=2, n_segments=5, n_bits=1
    )
    return dmft.network(patterns, context=2)


def test_without_other_patterns_it_is_the_mean_field_map(segments):
    beta, gamma, epsilon, steps = 1.3, 4.0, 0.1, 5
    params = dmft.parameters(beta, gamma, epsilon)
    start = dmft.from_row(segments, params, 1)
    _, seen = dmft.trajectory(segments, params, start, steps=steps)
    problem = extensive.loaded_network(
        segments, extensive.cycle(), alpha=0, beta=beta, gamma=gamma, epsilon=epsilon
    )
    value = extensive.closed(problem, segments.output[1], steps=steps).value
    for name in ("A", "m_o_se"):
        found, by_map = getattr(value, name)[1:], getattr(seen, name)
        assert np.allclose(found, by_map, rtol=0, atol=3e-15)
    assert np.allclose(value.m[1:, 3], seen.m_k, rtol=0, atol=3e-15)
    # Spins of one site are independent given its class.
    means = jnp.tanh(beta * value.A[:-1] @ segments.output)
    both = means * np.abs(segments.weighted[0, 0]) @ means.T
    off = ~np.eye(steps, dtype=bool)
    assert np.allclose(value.C[1:, 1:][off], both[off], atol=1e-14)


def test_one_token_of_a_cycle_at_zero_temperature_by_hand():
    """C = 1, T = 0: m' = erf(m / sqrt(2 alpha S)), S' = 1 + g^2 S (Duering et al. 1998,
    section 2 of docs/theory/extensive.md)."""
    alpha, m, S = 0.24, [0.6], [1.0]
    for _ in range(5):
        x = m[-1] / np.sqrt(2 * alpha * S[-1])
        g = np.sqrt(2 / (np.pi * alpha * S[-1])) * np.exp(-(x**2))
        m.append(erf(x))
        S.append(1 + g**2 * S[-1])
    net = dmft.network(ONE, context=1)
    problem = extensive.loaded_network(net, extensive.cycle(), alpha=alpha, beta=np.inf)
    value = extensive.closed(problem, [0.6], steps=5).value
    assert np.allclose(value.m_o_se[:, 0], m, atol=1e-14)
    assert np.allclose(np.diag(value.S), S, atol=1e-13)


@pytest.fixture(scope="module")
def independent(segments):
    """A run of patterns whose queries and keys are correlated with the rest."""
    ensemble = extensive.correlated(oq=0.5, ok=-0.3, vq=0.2, vk=0.4, qk=0.2)
    beta = np.full(5, 1.5)  # so that other tests have the same program
    problem = extensive.loaded_network(
        segments, ensemble, alpha=0.3, beta=beta, gamma=6.0, epsilon=0.1
    )
    return problem, extensive.closed(problem, segments.output[0], steps=5)


def attention(problem, value):
    """P of docs/theory/extensive.md as a matrix, from the weights by age."""
    n = len(value.A)
    P = np.zeros((n, n))
    for t in range(n):
        for d in range(min(t + 1, problem.net.context)):
            P[t, t - d] = value.weights[t, d]
    return P


def test_rows_solve_the_closed_equations_of_the_matrices(independent):
    problem, result = independent
    v, rho, alpha = result.value, problem.ensemble.correlations, float(problem.alpha)
    P = 0.9 * attention(problem, v)
    B = {x: rho[i, 0] * v.G @ P for i, x in enumerate("ovqk")}
    C = np.asarray(v.C)
    S_qk = rho[2, 3] * C + B["q"] @ (rho[1, 3] * C) + rho[2, 1] * C @ B["k"].T
    S_qk = S_qk + B["q"] @ C @ B["k"].T
    assert np.allclose(v.S, C, atol=1e-14)
    assert np.allclose(np.tril(v.S_qk), np.tril(S_qk), atol=1e-13)
    assert np.allclose(v.noise, alpha * P @ C @ P.T, atol=1e-13)
    logits = v.m[:, 2] @ v.m[:, 3].T + alpha * 0.81 * S_qk
    odds = np.where(P > 0, np.exp(6.0 * logits), 0)
    assert np.allclose(P, 0.9 * odds / odds.sum(1, keepdims=True), atol=1e-13)
    assert not np.any(v.Gamma)


def test_the_cycle_solves_its_equation_for_the_overlaps(segments):
    problem = extensive.loaded_network(
        segments, extensive.cycle(), alpha=0.3, beta=1.5, gamma=6.0, epsilon=0.1
    )
    v = extensive.closed(problem, segments.output[0], steps=5).value
    R = v.G @ (0.9 * attention(problem, v))
    assert np.allclose(v.S, v.C + R @ v.S @ R.T, atol=1e-13)


def test_beta_may_change_in_time(segments, independent):
    problem, result = independent
    betas = np.array([1.5, 1.5, 0.0, 1.5, 1.5])
    changed = extensive.loaded_network(
        segments, problem.ensemble, alpha=0.3, beta=betas, gamma=6.0, epsilon=0.1
    )
    value = extensive.closed(changed, segments.output[0], steps=5).value
    assert np.allclose(value.m[:3], result.value.m[:3], atol=1e-15)
    assert not np.any(value.m_o_se[3]) and not np.any(value.C[3, :3])
    assert np.all(np.isfinite(value.S)) and np.all(value.m_o_se[4] != 0)


@pytest.mark.slow
def test_parameters_are_batched_by_vmap(independent, segments):
    problem, result = independent
    start = np.asarray(segments.output)[0]
    given = {name: getattr(problem, name) for name in ("beta", "gamma", "epsilon")}
    of = lambda alpha: extensive.closed(
        extensive.loaded_network(segments, problem.ensemble, alpha=alpha, **given),
        start,
        steps=5,
    )
    batch = eqx.filter_jit(jax.vmap(of))(np.array([0.1, 0.3]))
    assert np.allclose(batch.value.C[1], result.value.C, atol=1e-14)


def test_errors_are_those_of_quadrature(independent):
    _, result = independent
    assert 1e-9 < float(result.error.C.max()) < 5e-5
    assert float(result.error.m.max()) < 1e-5
    known = np.abs(result.value.C) * 2.0**-53  # of a token with itself, too
    assert (np.asarray(result.error.C) >= known).all() and (known > 0).any()


def test_noise_loses_positivity_by_no_more_than_quadrature(independent):
    _, result = independent
    noise = np.asarray(result.value.noise)
    lowest = np.linalg.eigvalsh(noise).min()
    assert float(result.jitter) == pytest.approx(max(-lowest, 0.0), abs=1e-15)
    allowed = len(noise) * float(result.error.noise.max())
    assert 0 <= float(result.jitter) <= allowed
    for jitter, positive in ((0.99 * allowed, True), (1.01 * allowed, False)):
        lost = eqx.tree_at(lambda r: r.jitter, result, jnp.array(jitter))
        assert bool(lost.positive) is positive


def test_a_result_reads_as_text_and_as_a_data_set(independent):
    _, result = independent
    assert "attention weights" in repr(result)
    data = result.to_dataset()
    assert data.C.dims == ("time", "time_2") and "C_stderr" in data


def bad(**given):
    net = dmft.network(ONE, context=1)
    return extensive.loaded_network(
        net, **({"ensemble": extensive.cycle(), "alpha": 0.1, "beta": 1.0} | given)
    )


@pytest.mark.parametrize(
    "mistake, words",
    [
        (lambda: bad(alpha=-0.1), "alpha must be at least 0; got -0.1."),
        (lambda: bad(beta=-1.0), "beta must be >= 0"),
        (lambda: bad(epsilon=1.0), "epsilon must lie in [0, 1); got 1."),
        (lambda: bad(gamma=np.nan), "gamma must be finite; got nan."),
        (
            lambda: extensive.correlated(ov=0.9, oq=0.9, vq=0.5),
            "ov = 0.9, vq = 0.5, oq = 0.9 cannot be those of +-1 patterns",
        ),
        (
            lambda: extensive.closed(
                bad(ensemble=extensive.identical()), [1.0], steps=2
            ),
            "the recursion closes for cycle() or ov = 0",
        ),
        (lambda: extensive.closed(bad(), [1.0], steps=0), "steps must be at least 1"),
        (
            lambda: extensive.closed(bad(), [1.0], steps=10**6),
            "1000000 steps take",
        ),
        (
            lambda: extensive.closed(bad(beta=[1.0, 2.0]), [1.0], steps=3),
            "beta must have one value per step (3); got 2.",
        ),
        (
            lambda: extensive.closed(bad(), [0.0], steps=3),
            "start has no overlap with any condensed pattern",
        ),
        (lambda: extensive.closed(bad(), [2.0], steps=3), "start must be at most 1"),
        (
            lambda: extensive.closed(bad(), [1.0, 1.0], steps=3),
            "start must have one mean per site class, shape (1,); got (2,).",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(mistake, words):
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        mistake()
    assert "\n" not in str(caught.value)
