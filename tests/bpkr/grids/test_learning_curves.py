"""Learning curves: what the theory says of P examples, in one program for all P."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr, storage
from statmech_attn.bpkr.grids import learning_curves, training_sets
from statmech_attn.bpkr.grids.points import Grid
from statmech_attn.bpkr.theory import saddle


INPUTS, PATHS = 4, 2


def task(examples, outputs=None, seed=0):
    """Noisy labels of a linear teacher on normal attentioned inputs."""
    rng = np.random.default_rng(seed)
    xi = rng.normal(size=(examples, INPUTS, PATHS))
    teacher = np.random.default_rng(9).normal(size=(INPUTS, PATHS, outputs or 1))
    Y = np.einsum("pia,iak->pk", xi, teacher) / 2
    Y += 0.5 * rng.normal(size=Y.shape)
    return jnp.asarray(xi), jnp.asarray(Y if outputs else Y[:, 0])


def posed(examples=16, outputs=None, temperature=0.2, **options):
    xi, Y = task(examples, outputs)
    return bpkr.Problem(
        xi, Y, heads=(PATHS,), width=[12, 9], temperature=temperature, **options
    )


@pytest.fixture(scope="module")
def curve():
    return bpkr.learning_curve(
        jax.random.key(3),
        posed(),
        *task(30, seed=1),
        examples=[6, 3],
        training_sets=2,
        corrections=True,
    )


@pytest.mark.slow
def test_a_learning_curve_at_p_is_the_solution_on_p_examples(curve):
    pool, (xi_test, Y_test) = posed(), task(30, seed=1)
    draw_key, _ = jax.random.split(jax.random.key(3))
    chosen, shared = training_sets.drawn_examples(draw_key, 16, 6, 2)
    assert not shared and not curve.shared and curve.examples.values.tolist() == [3, 6]
    for i, P in enumerate(curve.examples.values):
        for s, indices in enumerate(chosen):
            alone = bpkr.Problem(
                pool.xi[indices[:P]],
                pool.Y[indices[:P]],
                heads=(PATHS,),
                width=[12, 9],
                temperature=0.2,
            )
            solution = alone.solve()
            better = alone.corrections(solution)
            point = curve.isel(examples=i, training_set=s)
            assert point.U_1.values == pytest.approx(np.asarray(solution.U[0]), 1e-10)
            assert point.action == pytest.approx(float(solution.action), 1e-10)
            log_evidence = pytest.approx(float(better.log_evidence), 1e-10)
            assert point.log_evidence == log_evidence
            estimates = (alone.gaussian_process(), solution, better)
            for e, estimate in enumerate(estimates):
                f = estimate.predict(xi_test)
                error = ((f.mean - Y_test) ** 2).mean()
                of_set = point.isel(estimate=e)
                assert of_set.error_of_set == pytest.approx(float(error), 1e-10)
                variance = pytest.approx(float(f.variance.mean()), 1e-10)
                assert of_set.variance_of_set == variance


def test_examples_that_are_none_leave_a_constant_of_the_exact_law():
    """With two outputs: n = P K terms of ln 2 pi T."""
    whole = posed(7, outputs=2, form="factors")
    part = training_sets.truncated(whole, 4)
    alone = bpkr.Problem(
        whole.xi[:4],
        whole.Y[:4],
        heads=(PATHS,),
        width=[12, 9],
        temperature=0.2,
        form="factors",
    )
    z = 0.1 * jnp.arange(whole.law().dimension)
    difference = part.law().log_likelihood(z) - alone.law().log_likelihood(z)
    assert float(difference) == pytest.approx(-3 * np.log(2 * np.pi * 0.2), 1e-12)


def test_one_program_solves_for_every_number_of_examples():
    """And for every width and temperature."""
    whole = posed(8, temperature=0.3)
    before = saddle._newton._cached._cache_size()
    for size in (2, 5, 8):
        there = training_sets.truncated(whole, size)
        there.at(width=[12, 9 + size], temperature=0.3 + size).solve()
    assert saddle._newton._cached._cache_size() - before == 1


@pytest.mark.slow
def test_the_exact_law_stands_beside_the_theory():
    """Both of 6 examples at N = 12; errors are squares of f and agree to 1/N."""
    curve = bpkr.learning_curve(
        jax.random.key(1),
        posed(),
        *task(30, seed=1),
        examples=[6],
        training_sets=1,
        corrections=True,
        draws=100,
    )
    estimates = ["gp", "saddle", "corrected", "exact"]
    assert curve.estimate.values.tolist() == estimates
    corrected, exact = curve.error.sel(estimate=estimates[2:]).values.ravel()
    assert exact == pytest.approx(corrected, rel=0.1)


@pytest.mark.slow
def test_a_curve_in_chunks_is_the_same_to_the_last_bit(curve, tmp_path):
    """A file of two curves holds those of each temperature, and is read when there."""
    points = learning_curves.LearningCurves(
        jax.random.key(3),
        posed(),
        *task(30, seed=1),
        examples=[6, 3],
        grid=Grid([[12, 9]], [0.2, 0.4]),
        training_sets=2,
        corrections=True,
    )
    computed = points.run(tmp_path / "curves.h5", points_per_chunk=3)
    alone = computed.sel(temperature=0.2).squeeze("width")
    for name in ("error", "U_1", "log_evidence"):
        np.testing.assert_array_equal(alone[name], curve[name])
    began = (tmp_path / "curves.h5").stat().st_mtime_ns
    assert points.run(tmp_path / "curves.h5").identical(computed)
    assert (tmp_path / "curves.h5").stat().st_mtime_ns == began
    other = learning_curves.LearningCurves(
        jax.random.key(4), posed(), *task(30, seed=1), examples=[3]
    )
    with pytest.raises(storage.StorageError):
        other.run(tmp_path / "curves.h5")


@pytest.mark.slow
def test_the_error_peaks_where_the_kernel_stops_being_invertible():
    """At P = |Pi| N_0 = 8 examples, as T goes to 0; not at a high temperature."""
    curve = lambda T: bpkr.learning_curve(
        jax.random.key(0),
        posed(200, temperature=T),
        *task(200, seed=1),
        examples=[3, 8, 25],
        training_sets=8,
    ).error.transpose("estimate", "examples")
    for below, peak, above in curve(1e-4).values:
        assert peak > 3 * max(below, above)
    for below, peak, above in curve(3.0).values:
        assert below > peak > above


def test_training_sets_are_disjoint_where_there_are_enough_examples():
    key = jax.random.key(0)
    disjoint, shared = training_sets.drawn_examples(key, 13, 4, 3)
    assert len(set(disjoint.ravel())) == 12 and not shared
    overlapping, shared = training_sets.drawn_examples(key, 11, 4, 3)
    assert all(len(set(one)) == 4 for one in overlapping) and shared


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"examples": [3, 99]}, "there are 16 examples to draw from; got 99"),
        ({"examples": [3, 3]}, r"distinct whole numbers.* got \[3, 3\]"),
        ({"examples": []}, "distinct whole numbers"),
        ({"training_sets": 0}, "training_sets must be at least 1; got 0"),
    ],
)
def test_impossible_curves_are_refused(changes, words):
    options = {"examples": [3]} | changes
    with pytest.raises(ValueError, match=words):
        bpkr.learning_curve(jax.random.key(0), posed(), *task(5), **options)


def test_temperature_zero_and_other_labels_are_refused():
    ask = lambda problem, Y: bpkr.learning_curve(
        jax.random.key(0), problem, task(5)[0], Y, examples=[3]
    )
    with pytest.raises(ValueError, match="temperature must be > 0 for a learning"):
        ask(posed(temperature=0.0), np.ones(5))
    with pytest.raises(ValueError, match=r"Y_test must have shape \(5,\)"):
        ask(posed(), np.ones((5, 1)))


def test_errors_of_training_sets_and_of_sampled_means():
    values, examples = np.array([[0.0, 2.0], [1.0, 1.0]]), [5, 10]
    errors = training_sets.over_sets(values, examples, 10)
    np.testing.assert_array_equal(errors, [1.0, np.nan])
    assert training_sets.checked_sizes([20, 5], 40).tolist() == [5, 20]
    mean, variance, y = np.array([0.5]), np.array([0.1]), np.array([1.0])
    found = learning_curves.measured(mean, variance, y, 0.3)
    assert found == pytest.approx((0.5**2 - 0.3**2, 0.1, 1.0))
