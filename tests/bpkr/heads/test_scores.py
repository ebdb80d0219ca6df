"""Scores of heads: errors over examples, order parameters by head, trained weights."""

import io
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.bpkr.heads.scores import by_head
from statmech_attn.bpkr.posed.kernel_forms import most_paths
from statmech_attn.bpkr.theory import saddle
from statmech_attn.cli import print_summary


def drawn_problem(seed, examples=24):
    """Labels that the second of two heads sees, with a skip that sees little."""
    key, noise = jax.random.split(jax.random.key(seed))
    xi = rng.normal(key, (examples, 4, 3)).at[:, :, 0].multiply(0.3)
    Y = jnp.sign(xi[:, 0, 2] + 0.2 * rng.normal(noise, (examples,)))
    return bpkr.Problem(xi, Y, heads=(2,), skip=0.5, width=4, temperature=0.1)


def two_outputs(problem, second):
    """The same inputs with a second column of labels."""
    Y = jnp.stack([problem.Y, second], axis=1)
    return bpkr.Problem(problem.xi, Y, heads=(2,), skip=0.5, width=4, temperature=0.1)


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
    assert (scores.stderr > 0).all()  # that of the top head, too


def test_errors_are_those_of_a_jackknife_without_five_examples(problem, scores):
    """Five of 24: sqrt(19 / 5) times the spread of shares, over the largest share."""
    shares = []
    for key in jax.random.split(jax.random.key(0), 5):
        kept = np.asarray(jax.random.choice(key, 24, (19,), replace=False))
        assert len(set(kept.tolist())) == 19
        again = bpkr.Problem(
            problem.xi[kept],
            problem.Y[kept],
            heads=(2,),
            skip=0.5,
            width=4,
            temperature=0.1,
        )
        (found,) = again.solve().head_scores()
        shares.append(found / found.sum())
    largest = float((scores.score / scores.score.sum()).max())
    expected = np.sqrt(19 / 5) * np.std(shares, axis=0, ddof=1) / largest
    np.testing.assert_allclose(scores.stderr, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", (None, 2))
@pytest.mark.parametrize("variances", (None, (1.0, 0.5, 2.0, 1.3)))
def test_a_head_whose_output_is_zero_scores_its_floor(outputs, variances):
    """Exactly, in either layer, for heads and for a skip connection."""
    branches = (3, 3)
    xi = rng.normal(jax.random.key(0), (12, 4, 9))
    Y = rng.normal(jax.random.key(1), (12, outputs) if outputs else (12,))
    for layer, head in ((0, 0), (0, 1), (1, 0), (1, 2)):
        silent = bpkr.paths_through(branches, layer, head)
        solution = bpkr.Problem(
            xi.at[:, :, silent].set(0),
            Y,
            heads=(2, 3),
            skip=(0.7, None),
            width=15,
            temperature=0.1,
            variances=variances,
        ).solve()
        scores, floors = solution.head_scores(), solution.head_floors()
        # The gradient is below 1e-9, with respect to relative changes of U.
        np.testing.assert_allclose(scores[layer][head], floors[layer][head], rtol=1e-8)
        others = np.delete(np.concatenate(scores), 3 * layer + head)
        far = np.delete(np.concatenate(floors), 3 * layer + head)
        assert (abs(others / far - 1) > 1e-3).all()


def test_without_labels_every_score_is_its_floor(problem):
    """In the limit of large widths nothing moves U, and the floor is the prior."""
    silent = problem.at(Y=1e-8 * np.eye(24)[0], width=1e9, temperature=1.0)
    scores = bpkr.score(silent, jax.random.key(1), resamples=0)
    np.testing.assert_allclose(scores.floor, scores.score, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("examples", "outputs"), ((24, 1), (24, 2), (9, 1), (9, 2)))
def test_the_error_of_examples_left_out_is_that_of_problems_without_them(
    examples, outputs
):
    """At the same U_1, by hand: K of the others, one example after the other.

    Of 12 features of all paths, so that rows take the place of 24 examples.
    """
    problem = drawn_problem(3, examples)
    if outputs > 1:
        problem = two_outputs(problem, jnp.sin(jnp.arange(float(examples))))
    assert (problem.compressed is None) == (examples == 9)
    scores = bpkr.score(problem, jax.random.key(0), resamples=0)
    K = np.asarray(problem.theory(scores.solution).kernel)
    y, squares = np.asarray(problem.y), []
    for out in np.arange(len(y)).reshape(examples, -1):
        rest = np.delete(np.arange(len(y)), out)
        noise = 0.1 * np.eye(len(rest))
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + noise, y[rest])
        squares.append(np.mean((y[out] - K[np.ix_(out, rest)] @ alpha) ** 2))
    np.testing.assert_allclose(scores.error_left_out, np.mean(squares), rtol=1e-8)
    error = np.std(squares, ddof=1) / np.sqrt(examples)
    np.testing.assert_allclose(scores.error_left_out_stderr, error, rtol=1e-8)
    variance = np.mean(np.var(np.asarray(problem.Y), axis=0))
    np.testing.assert_allclose(scores.label_variance, variance, rtol=1e-12)


@pytest.mark.slow
def test_several_outputs_are_scored_at_once():
    """The second head tells both labels."""
    problem = drawn_problem(3, examples=400)
    problem = two_outputs(problem, jnp.sign(problem.xi[:, 1, 2]))
    scores = bpkr.score(problem, jax.random.key(0), resamples=3)
    assert scores.score.argmax() == 2
    assert (scores.stderr > 0).all() and scores.resampled.shape == (3, 3)
    assert 0 < scores.error_left_out < scores.label_variance
    assert scores.to_dataset().U_1.shape == (6, 6)


@pytest.mark.slow
def test_one_example_has_no_error_and_labels_that_are_all_the_same_are_said(problem):
    with pytest.warns(UserWarning, match="all labels are the same"):
        alone = bpkr.score(problem.subset(jnp.array([3])), jax.random.key(0))
    assert np.isnan(alone.stderr).all() and alone.failed == 0
    with pytest.warns(UserWarning, match="all labels are the same"):
        bpkr.score(problem.at(Y=jnp.ones(24)), jax.random.key(0), resamples=0)


def test_saddle_points_of_large_problems_are_all_sought_alike(problem, monkeypatch):
    """Those of fewer examples, too."""
    solve, tolerances = bpkr.Problem.solve, []

    def solved(self, solver, **options):
        tolerances.append(solver.tolerance)
        return solve(self, **options)  # to another tolerance, whose program is there

    monkeypatch.setattr(bpkr.Problem, "solve", solved)
    large = "statmech_attn.bpkr.heads.scores.without_hessian"
    monkeypatch.setattr(large, lambda problem: True)
    bpkr.score(problem, jax.random.key(0), resamples=2)
    assert tolerances == [1e-2] * (1 + 2)


@pytest.mark.slow
def test_scores_without_newton_steps_are_those_with_them():
    """A gradient of 0.01 moves an unknown by 0.005, and a score by twice that."""
    key, noise = jax.random.split(jax.random.key(3))
    xi = rng.normal(key, (60, 8, 4)).at[:, :, 0].multiply(0.3)
    Y = jnp.sign(xi[:, 0, 3] + 0.5 * rng.normal(noise, (60,)))
    options = {"heads": (2, 2), "width": 8, "temperature": 0.1}
    limited = bpkr.Problem(xi, Y, memory_limit=100_000, **options)
    assert saddle.without_hessian(limited)
    coarse, close = (
        bpkr.score(posed, jax.random.key(0), resamples=0)
        for posed in (limited, bpkr.Problem(xi, Y, **options))
    )
    assert 1e-9 < coarse.solution.gradient_norm <= 1e-2
    np.testing.assert_allclose(coarse.score, close.score, atol=1e-2)


def interpolated(seed):
    """Fewer examples than features, at a low temperature."""
    key, noise = jax.random.split(jax.random.key(seed))
    xi = rng.normal(key, (24, 20, 3)).at[:, :, 0].multiply(0.3)
    Y = jnp.sign(xi[:, 0, 2] + 0.2 * rng.normal(noise, (24,)))
    return bpkr.Problem(xi, Y, heads=(3,), width=20, temperature=0.01)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("drawn", (drawn_problem, interpolated))
def test_errors_are_no_smaller_than_the_scatter_of_independent_sets(drawn):
    """A jackknife is too large rather than too small (Efron and Stein 1981).

    By less than a factor of two here.  The scatter of 60 sets is known to 9 %, of which
    four are allowed; two scores make three of these shares differ at most.
    """
    sets = [
        bpkr.score(drawn(100 + s), jax.random.key(s), resamples=20) for s in range(60)
    ]
    shares = np.array([one.score / one.score.sum() for one in sets])
    scatter = shares.std(axis=0, ddof=1) / shares.max(axis=1).mean()
    error = np.sqrt(np.mean([one.stderr**2 for one in sets], axis=0))
    allowed = 4 * 60**-0.5 / 2**0.5
    assert (np.log(error / scatter) > -allowed).all()
    assert (np.log(error / scatter) < np.log(2) + allowed).all()


def test_order_parameters_by_head_are_sums_over_paths():
    U = np.arange(36.0).reshape(6, 6) - 10
    matrix = by_head(U, (2, 3))
    paths = [(h, 2 + k) for h in range(2) for k in range(3)]  # heads of both layers
    expected = np.zeros((5, 5))
    for i, first in enumerate(paths):
        for j, other in enumerate(paths):
            for a in first:
                for b in other:
                    expected[a, b] += abs(U[i, j])
    np.testing.assert_allclose(matrix, expected / expected.max(), rtol=1e-14)


def test_scores_without_errors_and_of_too_narrow_networks_say_so(scores):
    dataset = scores.to_dataset()
    dataset["head_score_stderr"] = np.nan * dataset.head_score_stderr
    console = Console(file=io.StringIO(), width=200)
    print_summary(dataset.assign_coords(width=dataset.width / 2), console)
    said = " ".join(console.file.getvalue().split())
    assert "without errors, which need two resamples" in said
    assert "N = 2: below 3, the size of U, so the saddle point lies outside" in said


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
    console = Console(file=io.StringIO(), width=200)
    print_summary(dataset, console)
    said = console.file.getvalue()
    assert "trained weights have none: it is that of their initial values" in said


@pytest.mark.parametrize(
    "options, words",
    (
        ({"resamples": -1}, "resamples must be at least 0; got -1."),
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


@pytest.mark.slow
def test_without_a_saddle_point_the_temperature_that_works_is_named():
    """Pairs of examples that differ by 1e-9, with labels of their own."""
    g = np.random.default_rng(5)
    first = g.standard_normal((4, 12, 1))
    xi = np.concatenate([first, first + 1e-9 * g.standard_normal(first.shape)])
    Y = g.standard_normal(8)
    posed = bpkr.Problem(xi, Y, heads=(1,), width=10, temperature=1e-10)
    with pytest.raises(ValueError, match="no saddle point: no step lowers") as error:
        bpkr.score(posed, jax.random.key(0), resamples=0)
    (named,) = re.findall("; T = ([^ ]*) works", str(error.value))
    bpkr.score(posed.at(temperature=float(named)), jax.random.key(0), resamples=0)


def test_the_largest_number_of_paths_is_where_memory_ends():
    limit = 2**22
    most = most_paths(100, 30, 2, limit)
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
