"""Width and temperature by the evidence, beside the choice on validation data."""

import jax
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr.grids.selection import chosen


GRID = {"widths": [5, 40], "temperatures": [0.05, 0.3, 1.5]}
TRUE = {"width": 20, "temperature": 0.3}


@pytest.fixture(scope="module")
def inputs():
    return jax.device_put(np.random.default_rng(0).normal(size=(30, 4, 2)))


def labels(inputs, seed):
    """Of networks from the prior, with noise."""
    draw_key, noise_key = jax.random.split(jax.random.key(seed))
    weights = bpkr.draw_weights(draw_key, n_inputs=4, heads=(2,), width=TRUE["width"])
    noise = np.sqrt(TRUE["temperature"]) * jax.random.normal(noise_key, (30,))
    return np.asarray(bpkr.forward_paths(weights, inputs) + noise)


@pytest.fixture(scope="module")
def problem(inputs):
    return bpkr.Problem(inputs[:16], labels(inputs, 0)[:16], heads=(2,), **TRUE)


def test_choices_are_the_extremes_and_their_difference_is_paired():
    """Four examples; one point has no evidence, and is not ranked."""
    errors = np.array([[1, 5, 5.5], [3, 4, 6]])[..., None] + np.array([0, 2, 4, 6])
    errors[1, 0] = [6, 2, 6, 10]  # the mean is 6
    log_evidence = np.array([[np.nan, -7.0, -9.0], [-5.0, -6.0, -8.0]])
    choice = chosen(log_evidence, errors)
    assert choice.places == ((1, 0), (0, 0))
    # Differences of the examples: 5, -1, 1, 3.
    assert choice.excess == 2.0
    assert choice.excess_stderr == pytest.approx(np.std([5, -1, 1, 3], ddof=1) / 2)
    # Errors 8, 8.5, 6, 7, 9 in the order of ln p(Y) = -7, -9, -5, -6, -8.
    ranks = np.array([3, 1, 5, 4, 2]), np.array([3, 2, 5, 4, 1])
    expected = 1 - 6 * np.sum((ranks[0] - ranks[1]) ** 2) / (5 * 24)
    assert choice.rank_correlation == pytest.approx(expected)


@pytest.mark.slow
def test_a_grid_holds_laplaces_evidence_and_the_error_of_the_saddle_point(
    problem, inputs
):
    validation = inputs[16:], labels(inputs, 0)[16:]
    selection = bpkr.model_selection(
        problem, *validation, grid=bpkr.Grid(**GRID)
    ).compute()
    smallest, highest = np.inf, -np.inf
    for i, N in enumerate(GRID["widths"]):
        for j, T in enumerate(GRID["temperatures"]):
            there = problem.at(width=N, temperature=T)
            solution = there.solve()
            value = there.corrections(solution).log_evidence
            log_evidence = selection.log_evidence[i, j]
            assert log_evidence == pytest.approx(float(value), abs=1e-8)
            mean = np.asarray(solution.predict(validation[0]).mean)
            squares = (mean - validation[1]) ** 2
            np.testing.assert_allclose(selection.error[i, j], squares.mean(), 1e-7)
            smallest = min(smallest, squares.mean())
            if value > highest:
                highest, place = value, (N, T)
    assert np.isnan(selection.log_evidence_stderr).all()
    by_evidence = selection.sel(choice="evidence")
    assert (by_evidence.chosen_width, by_evidence.chosen_temperature) == place
    price = selection.error.sel(width=place[0], temperature=place[1]) - smallest
    assert selection.excess == pytest.approx(float(price), abs=1e-7)


@pytest.mark.slow
def test_with_a_key_the_evidence_is_that_of_the_exact_law(problem, inputs):
    """Near Laplace's value at a large width; below the size of U there is one, too."""
    validation = inputs[16:], labels(inputs, 0)[16:]
    ask = lambda **options: bpkr.model_selection(
        problem, *validation, grid=bpkr.Grid([1, 200], [0.3]), **options
    ).compute()
    laplace, exact = ask(), ask(key=jax.random.key(1), draws=300)
    assert np.isnan(laplace.log_evidence[0, 0])
    assert np.isfinite(exact.log_evidence).all()
    error = exact.log_evidence_stderr[1, 0]
    # Student's law of 3 degrees of freedom: 10 errors once in 470; the next order of
    # Laplace's value is about 1 / N^2 here.
    difference = exact.log_evidence[1, 0] - laplace.log_evidence[1, 0]
    assert error < 0.05 and abs(difference) < 10 * error + 1e-3


def test_what_cannot_be_chosen_from_is_refused(inputs):
    problem = bpkr.Problem(inputs[:16], np.ones(16), heads=(2,), **TRUE)
    ask = lambda Y, **grid: bpkr.model_selection(
        problem, inputs[16:], Y, grid=bpkr.Grid(**GRID | grid)
    )
    with pytest.raises(ValueError, match=r"Y_test must have shape \(14,\)"):
        ask(np.ones((14, 1)))
    with pytest.raises(ValueError, match="temperatures: labels have an evidence at T"):
        ask(np.ones(14), temperatures=[0.0, 0.1])


def test_a_grid_without_any_evidence_is_refused(problem, inputs):
    with pytest.raises(ValueError, match="widths of at least 2, .* the exact law"):
        bpkr.model_selection(
            problem, inputs[16:], np.ones(14), grid=bpkr.Grid([1], [0.3])
        )
