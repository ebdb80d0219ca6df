"""Learning curves: what the theory says of P examples, in one program for all P."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr import curves, saddle


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
    chosen, shared = curves.drawn(draw_key, 16, 6, 2)
    assert not shared and not curve.shared and curve.examples.tolist() == [3, 6]
    for i, P in enumerate(curve.examples):
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
            assert curve.U[0][i, s] == pytest.approx(np.asarray(solution.U[0]), 1e-10)
            assert curve.action[i, s] == pytest.approx(float(solution.action), 1e-10)
            assert curve.log_evidence[i, s] == pytest.approx(
                float(better.log_evidence), 1e-10
            )
            estimates = (alone.gaussian_process(), solution, better)
            for e, estimate in enumerate(estimates):
                f = estimate.predict(xi_test)
                error = ((f.mean - Y_test) ** 2).mean()
                assert curve.error[i, e, s] == pytest.approx(float(error), 1e-10)
                assert curve.variance[i, e, s] == pytest.approx(
                    float(f.variance.mean()), 1e-10
                )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["kernels", "factors"])
def test_examples_that_are_none_leave_a_constant_of_the_exact_law(form):
    """With two outputs: n = P K terms of ln 2 pi T."""
    whole = posed(7, outputs=2, form=form)
    part = curves.truncated(whole, 4)
    alone = bpkr.Problem(
        whole.xi[:4],
        whole.Y[:4],
        heads=(PATHS,),
        width=[12, 9],
        temperature=0.2,
        form=form,
    )
    z = 0.1 * jnp.arange(whole.law().dimension)
    difference = part.law().log_likelihood(z) - alone.law().log_likelihood(z)
    assert float(difference) == pytest.approx(-3 * np.log(2 * np.pi * 0.2), 1e-12)


def test_one_program_solves_for_every_number_of_examples():
    whole = posed(8, temperature=0.3)
    before = saddle._newton._cached._cache_size()
    for size in (2, 5, 8):
        curves.truncated(whole, size).at(temperature=0.3 + size).solve()
    assert saddle._newton._cached._cache_size() - before == 1


@pytest.mark.slow
def test_the_error_peaks_where_the_kernel_stops_being_invertible():
    """At P = |Pi| N_0 = 8 examples, as T goes to 0; not at a high temperature."""
    curve = lambda T: bpkr.learning_curve(
        jax.random.key(0),
        posed(200, temperature=T),
        *task(200, seed=1),
        examples=[3, 8, 25],
        training_sets=8,
    ).error.mean(axis=2)
    for below, peak, above in curve(1e-4).T:
        assert peak > 3 * max(below, above)
    for below, peak, above in curve(3.0).T:
        assert below > peak > above


@pytest.mark.slow
def test_the_exact_law_stands_beside_the_theory():
    """Both of 6 examples at N = 12; errors are squares of f and agree to 1/N."""
    found = bpkr.learning_curve(
        jax.random.key(1),
        posed(),
        *task(30, seed=1),
        examples=[6],
        training_sets=1,
        corrections=True,
        draws=100,
    )
    assert found.estimates == ("gp", "saddle", "corrected", "exact")
    assert found.error[0, 3, 0] == pytest.approx(found.error[0, 2, 0], rel=0.1)


def test_a_curve_shows_itself_and_is_a_data_set(curve):
    found = curve.to_dataset()
    assert found.attrs["kind"] == "learning-curve"
    assert found.error.dims == ("examples", "estimate")
    assert found.examples.values.tolist() == [3, 6]
    over = found.error_of_set.sel(estimate="saddle")
    np.testing.assert_allclose(
        found.error.sel(estimate="saddle"), over.mean("training_set")
    )
    stderr = over.std("training_set", ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(found.error_stderr.sel(estimate="saddle"), stderr)
    assert "mean squared test error" in repr(curve) and "gp, saddle" in repr(curve)


def test_training_sets_are_disjoint_where_there_are_enough_examples():
    key = jax.random.key(0)
    disjoint, shared = curves.drawn(key, 13, 4, 3)
    assert len(set(disjoint.ravel())) == 12 and not shared
    overlapping, shared = curves.drawn(key, 11, 4, 3)
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
