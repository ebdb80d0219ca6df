"""Random sequential updating: limits of the map, and spins."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft, dynamics, montecarlo, statistics


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)


def given(redrawn, beta=1.4, epsilon=FILE.epsilon):
    gamma = FILE.gamma
    return {"beta": beta, "gamma": gamma, "epsilon": epsilon, "redrawn": redrawn}


def orbit(numbers, samples, transient=0, net=NET):
    start = dmft.sequential_start(net, numbers, net.output[0])
    system = dmft.sequential(net, numbers["epsilon"])
    return dynamics.orbit(system, start, numbers, samples=samples, transient=transient)


def test_all_spins_at_once_are_the_published_map_to_the_last_bit():
    params = dmft.parameters(1.4, FILE.gamma, FILE.epsilon)
    state = dmft.from_row(NET, params, 0)
    _, seen = dmft.trajectory(NET, params, state, steps=30)
    np.testing.assert_array_equal(orbit(given(1.0), 30), seen.A)


def test_a_state_at_rest_is_the_same_however_many_spins_move():
    """m = tanh(beta m) of one pattern; copies of what stays are what is drawn."""
    one = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=3)
    for redrawn in (1.0, 0.3):
        numbers = given(redrawn, beta=1.5, epsilon=0.0)
        ((m,),) = orbit(numbers, 1, transient=400, net=one)
        assert m > 0.5 and m == pytest.approx(np.tanh(1.5 * m), abs=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
def test_spins_that_are_copied_or_redrawn_follow_the_map():
    """At N = 3 10^6 the bias of order 1/N is far below the standard errors."""
    numbers, runs, steps = given(0.4), 100, 8
    found = montecarlo.simulate_sequential(
        NET,
        FILE.patterns,
        numbers,
        NET.output[0],
        n_spins=3_000_000,
        runs=runs,
        steps=steps,
        key=jax.random.key(3),
    )
    z = (found.A - orbit(numbers, steps)) / found.stderr
    assert np.abs(z).max() < statistics.threshold(z.size, runs)
    moved = np.abs(orbit(numbers, steps) - orbit(given(0.5), steps)) / found.stderr
    assert moved.max() > 100


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"given": given(0.0)}, "redrawn must lie in \\(0, 1\\]; got 0"),
        ({"given": given(1.5)}, "redrawn must lie in \\(0, 1\\]; got 1.5"),
        ({"start": [0.5, 1, 1]}, "start must be -1 or 1 in every site class"),
        ({"runs": 1}, "runs must be at least 2; got 1"),
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"n_spins": 100}, "n_spins must be a multiple of 3"),
    ],
)
def test_bad_input_is_refused(change, words):
    arguments = {"given": given(0.5), "start": NET.output[0], "n_spins": 300}
    arguments |= {"runs": 2, "steps": 1, "key": jax.random.key(0)} | change
    with pytest.raises(ValueError, match=words):
        montecarlo.simulate_sequential(NET, FILE.patterns, **arguments)
