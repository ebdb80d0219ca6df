"""Scores of heads: errors over examples, order parameters by head, trained weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.bpkr import saddle


def drawn_problem(seed):
    """Labels that the second of two heads sees, with a skip that sees little."""
    key, noise = jax.random.split(jax.random.key(seed))
    xi = rng.normal(key, (24, 4, 3)).at[:, :, 0].multiply(0.3)
    Y = jnp.sign(xi[:, 0, 2] + 0.2 * rng.normal(noise, (24,)))
    return bpkr.Problem(xi, Y, heads=(2,), skip=0.5, width=4, temperature=0.1)


@pytest.fixture(scope="module")
def problem():
    return drawn_problem(3)


@pytest.fixture(scope="module")
def scores(problem):
    return bpkr.score(problem, jax.random.key(0), resamples=5)


def test_scores_are_those_of_the_solution_and_errors_those_of_resamples(
    problem, scores
):
    assert scores.names == ("skip 1", "1.1", "1.2") and scores.failed == 0
    (expected,) = problem.solve().head_scores()
    np.testing.assert_allclose(scores.score, expected, rtol=1e-10)
    assert scores.score.argmax() == 2
    np.testing.assert_allclose(scores.stderr, scores.resampled.std(axis=0, ddof=1))
    assert (scores.stderr[:2] > 0).all()


def test_a_resample_is_the_problem_of_the_examples_that_were_drawn(problem, scores):
    key = jax.random.split(jax.random.key(0), 5)[3]
    drawn = np.asarray(jax.random.randint(key, (24,), 0, 24))
    assert len(set(drawn.tolist())) < 24
    again = bpkr.Problem(
        problem.xi[drawn],
        problem.Y[drawn],
        heads=(2,),
        skip=0.5,
        width=4,
        temperature=0.1,
    )
    (expected,) = again.solve().head_scores()
    np.testing.assert_allclose(scores.resampled[3], expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.statistical
def test_bootstrap_errors_are_the_scatter_of_independent_sets():
    """Of the two scores below the largest; a scatter of 60 sets is known to 9 %.

    Resamples hold examples twice, so that their scatter is not quite that of sets.
    """
    found = [
        bpkr.score(drawn_problem(100 + s), jax.random.key(s), resamples=10)
        for s in range(60)
    ]
    scatter = np.std([one.score for one in found], axis=0, ddof=1)
    error = np.sqrt(np.mean([one.stderr**2 for one in found], axis=0))
    assert (abs(np.log(error / scatter))[:2] < 4 * 60**-0.5 / 2**0.5).all()


def test_order_parameters_by_head_are_sums_over_paths():
    U = np.arange(36.0).reshape(6, 6) - 10
    matrix = bpkr.by_head(U, (2, 3))
    paths = [(h, 2 + k) for h in range(2) for k in range(3)]  # heads of both layers
    expected = np.zeros((5, 5))
    for i, first in enumerate(paths):
        for j, other in enumerate(paths):
            for a in first:
                for b in other:
                    expected[a, b] += abs(U[i, j])
    np.testing.assert_allclose(matrix, expected / expected.max(), rtol=1e-14)


def test_trained_weights_stand_beside_the_theory(problem):
    V, a = rng.normal(jax.random.key(1), (2, 4, 4)), jnp.ones(4)
    weights = bpkr.Weights(jnp.eye(4), (V,), a, skip=(0.5,))
    scores = bpkr.score(problem, jax.random.key(0), resamples=0, weights=weights)
    w = np.stack([0.5 * a, *(np.swapaxes(V, 1, 2) @ a / 2)])  # sqrt(N) = 2
    np.testing.assert_allclose(scores.U_trained, w @ w.T / 4, rtol=1e-12)
    found = np.concatenate(bpkr.head_scores(w @ w.T, (3,)))
    np.testing.assert_allclose(scores.score_trained, found, rtol=1e-12)
    assert np.isnan(scores.stderr).all()
    dataset = scores.to_dataset()
    assert dataset.path_1.values.tolist() == ["0", "1", "2"]
    assert "head_score_trained" in dataset and "skip 1" in repr(dataset.attention_head)


@pytest.mark.parametrize(
    "options, words",
    (
        ({"resamples": -1}, "resamples must be >= 0; got -1."),
        ({"names": ("a", "b")}, "names: need one for each of 3 heads and skip conn"),
        (
            {"weights": bpkr.Weights(jnp.eye(2), (jnp.ones((2, 2, 2)),), jnp.ones(2))},
            "weights must be of heads = (2,) with the problem's skip connections",
        ),
    ),
)
def test_what_does_not_fit_is_refused(problem, options, words):
    with pytest.raises(ValueError) as error:
        bpkr.score(problem, jax.random.key(0), **options)
    assert words in str(error.value)


def test_the_largest_number_of_paths_is_where_memory_ends():
    limit = 2**26
    most = bpkr.most_paths(100, 30, 2, limit)
    x, Y = np.zeros((100, 30, most + 1)), np.ones((100, 2))
    posed = lambda paths: bpkr.Problem(
        x[:, :, :paths],
        Y,
        heads=(paths,),
        width=50,
        temperature=1.0,
        memory_limit=limit,
    )
    assert saddle.without_hessian(posed(most))
    assert not saddle.without_hessian(posed(most + 1))
    with pytest.raises(ValueError, match="memory_limit"):
        posed(most + 1).solve()
