import re

import numpy as np
import pytest
from scipy.special import erf

from statmech_attn import dmft
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive.stationary import chosen_lags


NET = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)


def problem_of(ensemble, alpha=0.2, beta=np.inf, **given):
    return extensive.loaded_network(NET, ensemble, alpha=alpha, beta=beta, **given)


def fold_by_hand(S_of):
    """Largest alpha of m = erf(x), x = m / sqrt(2 alpha S), g = sqrt(2 / (pi alpha S))
    e^{-x^2}, scanned over x."""
    x = np.linspace(0.5, 4, 2_000_001)
    m = erf(x)
    g = 2 * x / (np.sqrt(np.pi) * m) * np.exp(-(x**2))
    alpha = m**2 / (2 * x**2 * S_of(g))
    return alpha[g < 1].max()


@pytest.mark.slow
def test_capacity_of_a_sequence():
    """alpha_c = 0.269 (Duering, Coolen and Sherrington 1998)."""
    found = extensive.capacity(problem_of(extensive.cycle()), [1.0])
    assert found.value == pytest.approx(0.26906, abs=1e-5)
    by_hand = fold_by_hand(lambda g: 1 / (1 - g**2))
    assert found.value == pytest.approx(by_hand, abs=1e-9)
    assert "end of retrieval" in repr(found)


@pytest.mark.slow
def test_capacity_of_static_patterns_at_rest():
    """alpha_c = 0.138 (Amit, Gutfreund and Sompolinsky 1985)."""
    problem = problem_of(extensive.identical(), alpha=0.1)
    found = extensive.capacity(problem, [1.0], at_rest=True)
    assert found.value == pytest.approx(0.13791, abs=1e-5)
    by_hand = fold_by_hand(lambda g: 1 / (1 - g) ** 2)
    assert found.value == pytest.approx(by_hand, abs=1e-9)


def test_one_token_of_context_settles_where_its_equation_says():
    """x = m / sqrt(2 alpha S) at S = 1 / (1 - g^2)."""
    state = extensive.stationary(problem_of(extensive.cycle()), [1.0])
    m, S = float(state.A[0]), float(state.S[0])
    x = m / np.sqrt(2 * 0.2 * S)
    g = np.sqrt(2 / (np.pi * 0.2 * S)) * np.exp(-(x**2))
    assert m == pytest.approx(erf(x), abs=1e-9)
    assert S == pytest.approx(1 / (1 - g**2), abs=1e-9)


@pytest.mark.slow
def test_the_recursion_settles_in_the_stationary_state():
    """Two tokens of context with attention, as at long times of a run."""
    net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=2)
    problem = extensive.loaded_network(
        net, extensive.cycle(), alpha=0.05, beta=2.0, gamma=3.0
    )
    state = extensive.stationary(problem, [1.0], lags=24)
    value = extensive.closed(problem, [1.0], steps=40).value
    assert float(value.A[-1, 0]) == pytest.approx(float(state.A[0]), abs=1e-7)
    lags = np.asarray(value.S)[-1, -1:-12:-1]
    assert np.allclose(lags, state.S[:11], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "mistake, words",
    [
        (lambda: (problem_of(extensive.identical()), {}), "are known for cycle()"),
        (
            lambda: (problem_of(extensive.cycle()), {"at_rest": True}),
            "at rest patterns must be identical() and beta infinite.",
        ),
        (
            lambda: (problem_of(extensive.cycle()), {"free": "epsilon"}),
            "free must be one of alpha, beta, gamma; got 'epsilon'.",
        ),
        (
            lambda: (problem_of(extensive.cycle(), epsilon=0.1), {}),
            "epsilon must be 0 in a stationary state; got 0.1.",
        ),
        (
            lambda: (problem_of(extensive.cycle(), beta=[1.0, 2.0]), {}),
            "beta must be one number in a stationary state.",
        ),
        (
            lambda: (problem_of(extensive.cycle()), {"lags": -1}),
            "lags must be at least 0; got -1.",
        ),
    ],
)
def test_bad_input_is_refused(mistake, words):
    problem, given = mistake()
    with pytest.raises(ValueError, match=re.escape(words)):
        extensive.stationary(problem, [1.0], **given)


@pytest.mark.slow
def test_two_tokens_retrieve_where_one_has_lost_the_pattern():
    """alpha = 0.272 lies between their capacities, 0.2763 and 0.26906."""
    last = []
    for context in (1, 2):
        net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=context)
        problem = extensive.loaded_network(
            net, extensive.cycle(), alpha=0.272, beta=np.inf
        )
        value = extensive.closed(problem, [1.0], steps=200).value
        last.append(float(value.m_o_se[-1, 0]))
    assert last[0] < 1e-3 and last[1] == pytest.approx(0.863, abs=1e-3)


def test_lags_are_those_of_eight_windows():
    net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=3)
    assert (
        chosen_lags(
            extensive.loaded_network(net, extensive.cycle(), alpha=0.1, beta=2.0)
        )
        == 16
    )
