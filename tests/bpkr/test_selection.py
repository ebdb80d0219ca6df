"""Width and temperature by the evidence, beside the choice on validation data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr


GRID = {"widths": [5, 40], "temperatures": [0.05, 0.3, 1.5]}
TRUE = {"width": 20, "temperature": 0.3}


@pytest.fixture(scope="module")
def inputs():
    return jnp.asarray(np.random.default_rng(0).normal(size=(30, 4, 2)))


def labels(inputs, seed):
    """Of networks from the prior, with noise."""
    draw_key, noise_key = jax.random.split(jax.random.key(seed))
    weights = bpkr.draw_weights(draw_key, n_inputs=4, heads=(2,), width=TRUE["width"])
    noise = np.sqrt(TRUE["temperature"]) * jax.random.normal(noise_key, (30,))
    return np.asarray(bpkr.forward_paths(weights, inputs) + noise)


@pytest.fixture(scope="module")
def problem(inputs):
    return bpkr.Problem(inputs[:16], labels(inputs, 0)[:16], heads=(2,), **TRUE)


def selection(log_evidence, squared_errors, problem):
    """By hand, with one example for each column of the last axis."""
    shape = np.shape(log_evidence)
    return bpkr.ModelSelection(
        problem=problem,
        widths=np.array([5.0, 40.0]),
        temperatures=np.array([0.05, 0.3, 1.5]),
        log_evidence=np.array(log_evidence),
        log_evidence_stderr=np.full(shape, np.nan),
        squared_errors=np.array(squared_errors, float),
        accuracy=np.ones(shape),
        result=np.zeros(shape, int),
    )


def test_choices_are_the_extremes_and_their_difference_is_paired(problem):
    """Four examples; one point has no evidence, and is not ranked."""
    errors = np.array([[1, 5, 5.5], [3, 4, 6]])[..., None] + np.array([0, 2, 4, 6])
    errors[1, 0] = [6, 2, 6, 10]  # the mean is 6
    found = selection([[np.nan, -7.0, -9.0], [-5.0, -6.0, -8.0]], errors, problem)
    assert found.chosen == ((1, 0), (0, 0))
    assert found.chosen_width.tolist() == [40.0, 5.0]
    assert found.chosen_temperature.tolist() == [0.05, 0.05]
    # Differences of the examples: 5, -1, 1, 3.
    assert found.excess == 2.0
    assert found.excess_stderr == pytest.approx(np.std([5, -1, 1, 3], ddof=1) / 2)
    # Errors 8, 8.5, 6, 7, 9 in the order of ln p(Y) = -7, -9, -5, -6, -8.
    ranks = np.array([3, 1, 5, 4, 2]), np.array([3, 2, 5, 4, 1])
    expected = 1 - 6 * np.sum((ranks[0] - ranks[1]) ** 2) / (5 * 24)
    assert found.rank_correlation == pytest.approx(expected)
    data = found.to_dataset()
    assert data.log_evidence.dims == ("width", "temperature")
    assert data.chosen_width.sel(choice="evidence") == 40
    assert "chosen temperature" in str(found)


@pytest.mark.slow
def test_a_grid_holds_laplaces_evidence_and_the_error_of_the_saddle_point(
    problem, inputs
):
    validation = inputs[16:], labels(inputs, 0)[16:]
    found = bpkr.model_selection(problem, *validation, **GRID)
    for i, N in enumerate(GRID["widths"]):
        for j, T in enumerate(GRID["temperatures"]):
            there = problem.at(width=N, temperature=T)
            solution = there.solve()
            value = there.corrections(solution).log_evidence
            assert found.log_evidence[i, j] == pytest.approx(float(value), abs=1e-8)
            mean = np.asarray(solution.predict(validation[0]).mean)
            squares = (mean - validation[1]) ** 2
            np.testing.assert_allclose(found.squared_errors[i, j], squares, atol=1e-7)
    assert np.isnan(found.log_evidence_stderr).all()


@pytest.mark.slow
def test_with_a_key_the_evidence_is_that_of_the_exact_law(problem, inputs):
    """Near Laplace's value at a large width; below the size of U there is one, too."""
    validation = inputs[16:], labels(inputs, 0)[16:]
    ask = lambda **options: bpkr.model_selection(
        problem, *validation, widths=[1, 200], temperatures=[0.3], **options
    )
    laplace, exact = ask(), ask(key=jax.random.key(1), draws=300)
    assert np.isnan(laplace.log_evidence[0, 0])
    assert np.isfinite(exact.log_evidence).all()
    error = exact.log_evidence_stderr[1, 0]
    # Student's law of 3 degrees of freedom: 10 errors once in 470; the next order of
    # Laplace's value is about 1 / N^2 here.
    difference = exact.log_evidence[1, 0] - laplace.log_evidence[1, 0]
    assert error < 0.05 and abs(difference) < 10 * error + 1e-3


@pytest.mark.slow
@pytest.mark.statistical
def test_the_evidence_prefers_the_temperature_of_the_labels(problem, inputs):
    """Gibbs' inequality: on average over labels the true law has the highest ln p."""
    values = []
    for seed in range(30):
        there = problem.at(Y=labels(inputs, seed)[:16])
        row = []
        for T in (0.3 / 4, 0.3, 0.3 * 4):
            point = there.at(temperature=T)
            row.append(float(point.corrections(point.solve()).log_evidence))
        values.append(row)
    values = np.array(values)
    for other in (0, 2):
        gain = values[:, 1] - values[:, other]
        assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_what_cannot_be_chosen_from_is_refused(problem, inputs):
    ask = lambda Y, **grid: bpkr.model_selection(problem, inputs[16:], Y, **GRID | grid)
    with pytest.raises(ValueError, match=r"Y_test must have shape \(14,\)"):
        ask(np.ones((14, 1)))
    with pytest.raises(ValueError, match="temperatures: labels have an evidence at T"):
        ask(np.ones(14), temperatures=[0.0, 0.1])


@pytest.mark.slow
def test_a_grid_without_any_evidence_is_refused(problem, inputs):
    with pytest.raises(ValueError, match="widths of at least 2, .* the exact law"):
        bpkr.model_selection(
            problem, inputs[16:], np.ones(14), widths=[1], temperatures=[0.3]
        )
