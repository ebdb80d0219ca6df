import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive.moving_recall import FINE, Moving, moving_capacity


ONE = dmft.site_classes(np.ones((4, 1, 1)))


def problem_of(context, alpha, beta, gamma=0.0, ensemble=None, **given):
    net = dmft.network(ONE, context=context)
    kinds = ensemble or extensive.cycle()
    return extensive.loaded_network(
        net, kinds, alpha=alpha, beta=beta, gamma=gamma, **given
    )


def test_averages_over_signs_are_sums_over_all_of_them():
    """Three patterns and two noises, enumerated and integrated by Gauss and Hermite."""
    beta, alpha, gamma = 1.3, 0.4, 2.0
    state = {"m": jnp.array([0.8, 0.3, 0.1]), "S": jnp.array([1.4, 0.3, 0.1])}
    parameters = {"alpha": alpha, "beta": beta, "gamma": gamma}
    after = eqx.filter_jit(Moving(2, 2, FINE))(state, parameters)
    m, S = (np.asarray(state[name]) for name in ("m", "S"))
    logits = [m @ m + alpha * S[0], m[1:] @ m[:-1] + alpha * S[1]]
    p = np.exp(gamma * np.array(logits)) / np.exp(gamma * np.array(logits)).sum()
    a = p[0] * m + p[1] * np.append(0.0, m[:-1])
    at = lambda lag: np.append(S, [0.0, 0.0])[abs(lag)]
    passed = [
        sum(p[d] * p[e] * at(lag - d + e) for d in (0, 1) for e in (0, 1))
        for lag in (0, 1)
    ]
    z, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    signs = np.array(np.meshgrid(*[[1.0, -1.0]] * 4)).reshape(4, -1)
    sigma = np.sqrt(alpha * passed[0])
    one = np.tanh(beta * (a @ signs[:3] + sigma * z[:, None]))
    assert np.allclose(after["m"], signs[:3] @ (w @ one) / 16, rtol=0, atol=1e-9)
    g = beta * (w @ (1 - one**2)).mean()
    r = passed[1] / passed[0]
    noise = r * z[:, None] + np.sqrt(1 - r**2) * z
    two = np.tanh(beta * ((a @ signs[1:]) + sigma * noise[..., None]))
    C = np.einsum("i,j,is,ijs->", w, w, one, two) / 16
    assert float(after["S"][0]) == pytest.approx(1 + g**2 * passed[0], abs=1e-9)
    assert float(after["S"][1]) == pytest.approx(C + g**2 * passed[1], abs=1e-9)


def test_one_token_of_context_moves_as_it_stays():
    """C = 1: the equations of a static pattern."""
    problem = problem_of(1, 0.2, np.inf)
    moved, stayed = extensive.moving(problem), extensive.stationary(problem, [1.0])
    assert float(moved.m[0]) == pytest.approx(float(stayed.A[0]), abs=1e-9)
    assert float(moved.S[0]) == pytest.approx(float(stayed.S[0]), abs=1e-9)


@pytest.mark.slow
def test_the_recursion_of_a_cycle_settles_in_moving_recall():
    """Two tokens of context, condensed patterns recalled one after another."""
    patterns = dmft.cycle(jax.random.key(0), n_patterns=8, n_bits=0)
    net = dmft.network(patterns, context=2)
    problem = extensive.loaded_network(
        net, extensive.cycle(), alpha=0.15, beta=3.0, gamma=5.0
    )
    value = extensive.closed(problem, net.output[7], steps=7).value
    state = extensive.moving(problem, lags=6)
    now = np.asarray(value.m_o_se[7])
    assert np.allclose(now[[0, 1, 2]], state.m[:3], rtol=0, atol=2e-4)
    assert np.asarray(state.m)[1] > 1e-4
    assert np.allclose(value.S[7, [7, 6, 5]], state.S[:3], rtol=0, atol=2e-3)


@pytest.mark.slow
def test_capacity_of_a_sequence_that_moves():
    """C = 1: 0.269 (Duering, Coolen and Sherrington 1998), from the general code."""
    found = moving_capacity(problem_of(1, 0.1, np.inf))
    assert found.value == pytest.approx(0.26906, abs=1e-5)
    assert 0 < found.noise < 1


@pytest.mark.slow
@pytest.mark.parametrize("beta", (4.0, 8.0, np.inf))
def test_two_formulations_have_one_capacity_to_their_stated_errors(beta):
    """Equations of other variables, solved by other code, agree to rounding."""
    problem = problem_of(1, 0.1, beta)
    one = extensive.capacity(problem, [1.0])
    other = moving_capacity(problem)
    assert abs(one.value - other.value) <= np.hypot(one.error, other.error)
    assert 2.0**-53 * one.value < one.error < 1e-14


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ensemble": extensive.independent()}, "recall moves along the patterns of"),
        ({"alpha": 0.0}, "alpha must be positive where beta is infinite."),
        ({"epsilon": 0.1}, "epsilon must be 0 in a stationary state; got 0.1."),
    ],
)
def test_bad_input_is_refused(given, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        extensive.moving(
            problem_of(**{"context": 1, "alpha": 0.1, "beta": np.inf} | given)
        )
