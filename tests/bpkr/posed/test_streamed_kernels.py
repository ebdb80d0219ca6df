"""Saddle points without the Hessian: the same as Newton's, whatever the slabs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr.heads import left_out_examples
from statmech_attn.bpkr.posed import kernel_forms, streamed_kernels
from statmech_attn.bpkr.posed.newton import RESULTS
from statmech_attn.bpkr.theory import saddle
from statmech_attn.bpkr.theory.action import energy as energy_of, resolvent


def posed(heads=(2, 2), P=14, N_0=3, outputs=None, skip=None, **options):
    rng = np.random.default_rng(0)
    paths = np.prod(bpkr.prior.branches(heads, bpkr.prior.skips(skip, len(heads))))
    xi = rng.normal(size=(P, N_0, paths))
    Y = np.sign(xi[:, 0, : outputs or 1] + rng.normal(size=(P, outputs or 1)))
    return bpkr.Problem(
        jnp.asarray(xi),
        jnp.asarray(Y if outputs else Y[:, 0]),
        heads=heads,
        skip=skip,
        **{"width": 7, "temperature": 0.2} | options,
    )


def positive(d, seed=1):
    root = np.random.default_rng(seed).normal(size=(d, d))
    return root @ root.T / d


def streamed(problem, U, **options):
    """Of a problem at T = 0.2."""
    xi, scale, y = map(np.asarray, (problem.xi, problem.scale, problem.y))
    F = np.linalg.cholesky(U)
    E, derivatives = streamed_kernels.streamed(xi, scale, F, 0.2, y, **options)
    return E, *derivatives()


def of_values(f):
    """The value of a function, and a state without a model."""

    def evaluated(x):
        value, gradient = jax.value_and_grad(f)(x)
        state = x, float(value), np.asarray(gradient), 0.0, x, x, x
        return float(value), lambda: streamed_kernels.State(*state)

    return evaluated


@pytest.mark.parametrize(
    ("outputs", "slab"),
    (
        (2, 1),
        (None, 10**9),
    ),
)
def test_energy_and_slope_are_those_of_the_whole_kernel(outputs, slab, monkeypatch):
    monkeypatch.setattr(streamed_kernels, "SLAB", slab)
    problem = posed(outputs=outputs)
    U = jnp.asarray(positive(problem.sizes[0]))
    E, slope, *_ = streamed(problem, U)
    energy = lambda U: energy_of(problem.operator.kernel(U), 0.2, problem.y)
    expected, gradient = map(np.asarray, jax.jit(jax.value_and_grad(energy))(U))
    assert E == pytest.approx(expected, abs=1e-11)
    np.testing.assert_allclose(slope, (gradient + gradient.T) / 2, atol=1e-11)


@pytest.mark.parametrize("outputs", (None, 2))
def test_single_precision_rounds_the_slope_only(outputs):
    """Of order one here, by more than double precision does and less than 1e-5."""
    problem = posed(outputs=outputs)
    U = positive(problem.sizes[0])
    double, single = (streamed(problem, U, dtype=t) for t in (np.float64, np.float32))
    for one, two in zip(double, single, strict=True):
        assert 1e-12 < np.abs(np.subtract(one, two)).max() < 1e-5 * np.abs(one).max()


def test_the_model_of_the_hessian_is_exact_for_one_feature():
    problem = posed(N_0=1)
    U, V = positive(4), positive(4, seed=2)

    @jax.jit
    def curvature(U):
        K = problem.operator.kernel(U)
        return problem.operator.curvature(*resolvent(K, 0.2, problem.y))

    *_, g, S = streamed(problem, U)
    found = streamed_kernels.model_product(
        jnp.asarray(g), jnp.asarray(S), jnp.asarray(V)
    )
    rows, columns = np.tril_indices(4)
    twice = np.where(rows == columns, 1.0, 2.0)  # entries with their mirror images
    expected = np.asarray(curvature(U)) @ V[rows, columns]
    found = np.asarray(found)[rows, columns]
    np.testing.assert_allclose(twice * found, expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    (
        {"heads": (4, 4), "P": 30, "N_0": 8, "temperature": 0.05},
        {"heads": (2, 2), "skip": 0.7},
        {"heads": (2,), "outputs": 2, "width": [9, 5], "variances": (1, 0.5, 2)},
    ),
)
def test_the_saddle_point_is_that_of_newton(options):
    """To the distance that a gradient of 1e-9 leaves, in one problem and another."""
    problem = posed(**options)
    newton = problem.solve()
    solution = saddle._solve_streamed(
        problem, saddle.starting_point(problem), bpkr.NewtonSolver()
    )
    assert solution.converged and solution.gradient_norm <= 1e-9
    assert solution.signature.tolist() == [-1, -1, -1]
    for one, two in zip([*solution.U, solution.U_a], [*newton.U, newton.U_a]):
        assert np.abs(one - two).max() < 1e-7
    for name in ("action", "energy", "entropy"):
        one, two = getattr(solution, name), getattr(newton, name)
        assert float(one) == pytest.approx(float(two), abs=1e-8)


def test_one_program_solves_the_model_in_every_step():
    """At another temperature too, as a solver that compiles a step takes seconds."""
    before = saddle._model_solved._cached._cache_size()
    for temperature in (0.2, 0.3):
        problem = posed(heads=(3,), temperature=temperature)
        solution = saddle._solve_streamed(
            problem, saddle.starting_point(problem), bpkr.NewtonSolver()
        )
        assert solution.converged and solution.iterations > 2
    assert saddle._model_solved._cached._cache_size() - before == 1


@pytest.mark.parametrize("temperature", (1e-3, 1e-4))
def test_single_precision_is_left_where_it_hides_the_gain(temperature, monkeypatch):
    """More examples than features of all paths: (K + T)^-1 Y is of order 1 / T."""
    problem, evaluated = posed(heads=(3,), temperature=temperature), []
    streamed = streamed_kernels.streamed

    def counted(*arrays, dtype=np.float64):
        evaluated.append(dtype)
        return streamed(*arrays, dtype=dtype)

    monkeypatch.setattr(streamed_kernels, "streamed", counted)
    solution = saddle._solve_streamed(
        problem, saddle.starting_point(problem), bpkr.NewtonSolver()
    )
    assert solution.converged
    # One at the start, four for a step at most, and four where no step is found.
    assert evaluated.count(np.float32) <= 1 + 4 * (int(solution.iterations) + 1)
    _, gradient = saddle.slope_at(problem, solution.point)
    assert np.linalg.norm(gradient) < 1e-9 / temperature


@pytest.mark.slow
def test_a_problem_whose_newton_step_does_not_fit_is_solved_without():
    sixteen = lambda **options: posed((4, 4), 30, 8, **options)
    needed = min(kernel_forms.memory(30, 8, 16).values())
    least = streamed_kernels.memory(30, 8, 16)
    assert least < needed
    whole, problem = sixteen(), sixteen(memory_limit=needed - 1)
    assert saddle.without_hessian(problem) and not saddle.without_hessian(whole)
    solution = problem.solve()
    assert solution.converged
    assert np.abs(solution.U[0] - whole.solve().U[0]).max() < 1e-7
    for refused in (sixteen(memory_limit=least - 1), problem.at(temperature=0.0)):
        with pytest.raises(ValueError, match="more than memory_limit"):
            refused.solve()


@pytest.mark.slow
def test_an_example_left_out_is_predicted_by_a_kernel_in_single_precision(monkeypatch):
    """Its error is of order one, and differs by more than double precision does."""
    problem = posed(P=12)
    solution = problem.solve()
    double = left_out_examples.error_left_out(solution)
    monkeypatch.setattr(left_out_examples, "without_hessian", lambda problem: True)
    single = left_out_examples.error_left_out(solution)
    assert 1e-12 < np.abs(np.subtract(single, double)).max() < 1e-5 * max(double)


def test_no_step_changes_an_unknown_by_more_than_one():
    """However long the model's is; at 1e4 cosh has no value."""
    points = []
    of_cosh = of_values(lambda x: jnp.cosh(x).sum())

    def evaluated(x):
        points.append(np.asarray(x))
        return of_cosh(x)

    _, _, code = streamed_kernels.descend(
        evaluated,
        lambda state, v: 1e4 * v,
        jnp.array([5.0, -3.0]),
        tolerance=1e-9,
        max_iterations=50,
    )
    assert RESULTS[code] == "converged"
    assert np.abs(points[1] - points[0]).max() == pytest.approx(1.0)


def test_only_trials_that_are_taken_have_their_derivatives_computed():
    """Of a parabola whose model is ten times too flat, every first trial is refused."""
    tried, taken = [], []

    def evaluated(x):
        value, state = of_values(lambda x: (x**2).sum() / 2)(x)
        tried.append(value)
        return value, lambda: taken.append(value) or state()

    streamed_kernels.descend(
        evaluated,
        lambda state, v: 10 * v,
        jnp.array([0.1, 0.1]),
        tolerance=1e-9,
        max_iterations=50,
    )
    assert len(tried) > len(taken) and taken == sorted(taken, reverse=True)


def test_a_descent_says_how_it_ended():
    """A convex function, one that ends at -infinity of x, and one without a value."""

    def ended(f, start, **options):
        limits = {"tolerance": 1e-9, "max_iterations": 50} | options
        identity = lambda state, v: v
        return streamed_kernels.descend(
            of_values(f), identity, jnp.array(start), **limits
        )

    bowl = lambda x: jnp.cosh(x).sum() + x[0] * x[1] / 2
    state, _, code = ended(bowl, [1.0, -2.0])
    assert RESULTS[code] == "converged" and np.abs(state.point).max() < 1e-8
    assert "used up" in RESULTS[ended(bowl, [1.0, -2.0], max_iterations=2)[-1]]
    assert "singular" in RESULTS[ended(lambda x: jnp.log(x).sum(), [-1.0])[-1]]
    tiny = ended(lambda x: 1e20 + jnp.cosh(x).sum(), [1e-3], tolerance=1e-30)
    assert RESULTS[tiny[-1]].startswith(("no step", "converged"))


@pytest.mark.parametrize("tolerance", (1e-9, 1e-2))
def test_single_precision_does_not_end_a_descent(tolerance):
    """Its minimum is elsewhere, or it has no value: the end is that of the other."""

    exact, called = jnp.array([1.0, -2.0]), []
    above = lambda minimum: of_values(lambda x: jnp.cosh(x - minimum).sum())

    def evaluated(x):
        called.append(x)
        return above(exact)(x)

    def stalling(x):
        value, state = above(exact)(x)
        return value, lambda: state()._replace(gradient=-np.sinh(x - exact))

    for single in (
        above(exact + 1e-5),  # converges, near the minimum
        of_values(lambda x: jnp.nan * x.sum()),
        stalling,
    ):
        called.clear()
        last, _, code = streamed_kernels.descend(
            evaluated,
            lambda state, v: v,
            jnp.array([2.0, 1.0]),
            tolerance=tolerance,
            max_iterations=50,
            single=single,
        )
        assert RESULTS[code] == "converged" and called
        assert np.linalg.norm(np.sinh(last.point - exact)) <= tolerance
    *_, code = streamed_kernels.descend(
        evaluated,
        lambda state, v: v,
        jnp.array([2.0, 1.0]),
        tolerance=1e-9,
        max_iterations=1,
        single=above(exact),
    )
    assert "used up" in RESULTS[code]


def test_conjugate_gradients_solve():
    H = jnp.diag(jnp.array([1.0, 4.0]))
    x = streamed_kernels.conjugate_gradients(lambda v: H @ v, jnp.ones(2), jnp.ones(2))
    np.testing.assert_allclose(x, [1.0, 0.25], rtol=1e-12)
