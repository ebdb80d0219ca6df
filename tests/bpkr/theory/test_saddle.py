from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import block_diag

from statmech_attn import bpkr
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory import minima, saddle
from statmech_attn.bpkr.theory.action import energy as energy_of


# A minimum with gradient <= 1e-9 in relative changes lies within about 1e-9 / (least
# eigenvalue of the Hessian, >= 0.1 here) of the exact one.
CLOSE = 1e-7
ONE_INPUT = np.array([[[1.0], [2.0]]])


@pytest.fixture(scope="module")
def problem(small, small_inputs):
    _, heads, y = small
    return Problem(small_inputs, y, heads=heads, width=5, temperature=0.1)


def changed(problem, **given):
    """The same with other inputs, variances, form ..., which `at` does not change."""
    names = ("xi", "Y", "heads", "temperature", "variances")
    settings = {name: getattr(problem, name) for name in names}
    return Problem(**settings | {"width": problem.widths} | given)


def distance(one, two):
    return max(float(jnp.abs(a - b).max()) for a, b in zip(one.U, two.U))


@pytest.mark.parametrize("N, y", ((2, 0.5), (10, 3.0), (300, 0.0)))
def test_one_path_one_example_solves_a_cubic(N, y):
    """T = 0, U = v^2, k = |xi|^2 / N_0: v^3 - (1 - 1/N) v^2 - y^2 / (N k) = 0."""
    problem = Problem(ONE_INPUT, np.array([y]), heads=(1,), width=N, temperature=0)
    solution = problem.solve()
    roots = np.roots([1, -(1 - 1 / N), 0, -(y**2) / (N * 2.5)])
    v = max(roots[np.abs(roots.imag) < 1e-12].real)
    assert solution.converged
    assert float(solution.U[0][0, 0]) == pytest.approx(v**2, abs=CLOSE)
    assert float(solution.U_a) == pytest.approx(v, abs=CLOSE)


@pytest.mark.slow
def test_the_saddle_point_is_stationary_in_every_order_parameter(problem):
    """U_1^-1 = (1 x U_2)^-1 + dE/dU_1 / N, the same one layer up, and the root U_a."""
    N, T = 7, 0.05
    solution = problem.at(width=N, temperature=T).solve()
    energy = lambda U: energy_of(problem.operator.kernel(U), T, problem.y)
    slope = jax.jit(jax.grad(energy))(solution.U[0])
    U_1, U_2, U_3 = (np.asarray(u) for u in solution.U)
    outer = block_diag(U_2, U_2)
    residual = np.linalg.inv(U_1) - np.linalg.inv(outer) - slope / N
    assert np.abs(residual).max() < CLOSE * np.abs(np.linalg.inv(U_1)).max()
    summed = U_1[:2, :2] + U_1[2:, 2:]
    inverse = np.linalg.inv(U_2)
    residual = inverse @ summed @ inverse + inverse - np.linalg.inv(U_3) - 2 * inverse
    assert np.abs(residual).max() < CLOSE * np.abs(inverse).max()
    U_a = float(solution.U_a)
    assert abs(U_a**2 + (2 - 1) * U_a - np.trace(U_3)) < CLOSE
    assert solution.gradient_norm <= 1e-9
    assert solution.signature.tolist() == [0, 0, solution.point.size]


def test_action_is_entropy_plus_energy_of_the_public_functions(problem):
    widths, variances = (5.0, 9.0, 4.0, 7.0), (0.5, 2.0, 1.0, 3.0, 0.7)
    unequal = changed(problem, width=widths, variances=variances)
    solution = unequal.solve()
    S = unequal.action(solution.U, solution.U_a)
    assert float(solution.action) == pytest.approx(float(S), abs=1e-11)
    total = float(solution.energy + solution.entropy)
    assert total == pytest.approx(float(S), abs=1e-11)
    E = energy_of(unequal.operator.kernel(solution.U[0]), 0.1, unequal.y) / 9
    assert float(solution.energy) == pytest.approx(float(E), abs=1e-11)


def test_exchanging_heads_exchanges_the_order_parameters(problem):
    one = problem.solve()
    two = changed(problem, xi=problem.xi[:, :, [2, 3, 0, 1]]).solve()
    swapped = one.U[0][jnp.ix_(*[jnp.array([2, 3, 0, 1])] * 2)]
    assert np.abs(swapped - two.U[0]).max() < CLOSE * np.abs(swapped).max()
    assert float(one.action) == pytest.approx(float(two.action), abs=1e-12)


def test_variances_of_neighbouring_layers_can_be_traded(problem):
    """sigma_1^2 -> s sigma_1^2 with sigma_0^2 / s: U_1 -> s U_1, the same energy."""
    one = problem.solve()
    two = changed(problem, variances=(0.25, 4, 1, 1, 1)).solve()
    assert np.abs(4 * one.U[0] - two.U[0]).max() < CLOSE * np.abs(two.U[0]).max()
    assert float(one.energy) == pytest.approx(float(two.energy), abs=CLOSE)


def test_units_of_the_labels_change_nothing_but_the_energy(problem):
    """Y -> c Y, T -> c^2 T, sigma_0 -> c sigma_0: the same U, E + P ln c^2."""
    one = problem.solve()
    two = changed(
        problem, Y=3 * problem.Y, temperature=0.9, variances=(9, 1, 1, 1, 1)
    ).solve()
    assert distance(one, two) < CLOSE
    shift = problem.Y.size * np.log(9) / 5
    assert float(two.energy - one.energy) == pytest.approx(shift, abs=CLOSE)


def test_the_iteration_starts_at_the_gp_limit(chart, factors_of):
    variances = np.array([0.3, 2.0, 0.5, 3.0])
    U, U_a = bpkr.gaussian_process_limit((2, 3), variances, 2)
    limit = chart(factors_of(U, U_a, (2, 3)))
    problem = Problem(
        jnp.ones((1, 1, 6)),
        jnp.ones((1, 2)),
        heads=(2, 3),
        width=1,
        temperature=1,
        variances=variances,
    )
    assert np.abs(saddle.starting_point(problem) - limit).max() < 1e-14


def test_the_gp_limit_is_reached_as_one_over_the_width(problem):
    wide, wider = (problem.at(width=N).solve().U[0] - jnp.eye(4) for N in (1e4, 1e5))
    # U = 1 + u / N + O(1/N^2): the second order is as large as the shift itself.
    second = 20 * float(jnp.abs(wide).max())
    assert np.abs(wide - 10 * wider).max() < second * np.abs(wide).max()
    assert 1e-6 < np.abs(wide).max() < 1e-2


def test_a_sweep_gives_the_numbers_of_cold_starts(problem):
    """Though each begins at the next higher temperature."""
    for Y in (problem.Y, -2 * problem.Y[::-1]):
        widths, temperatures = [3, 80], [0.05, 0.3, 0.1]
        rows = problem.at(Y=Y).sweep(widths=widths, temperatures=temperatures)
        assert [len(row) for row in rows] == [3, 3]
        for N, row in zip(widths, rows):
            for T, solution in zip(temperatures, row):
                posed = solution.problem
                assert posed.widths.tolist() == [N] * 4 and posed.temperature == T
                one = problem.at(width=N, temperature=T, Y=Y).solve()
                assert solution.converged
                shift = jnp.abs(solution.U[0] - one.U[0]).max()
                assert shift < CLOSE * jnp.abs(one.U[0]).max()
                assert abs(solution.action - one.action) < 1e-11


def test_a_solution_given_as_start_is_kept(problem):
    one = problem.solve()
    again = problem.solve(start=one)
    assert int(again.iterations) == 0 and distance(again, one) == 0


def test_a_problem_elsewhere_is_the_one_posed_there(problem):
    """Kernels are not computed again, and the numbers are those of a new problem."""
    there = problem.at(width=[5, 9, 4, 7], temperature=0.3, Y=2 * problem.Y)
    kernels = (jax.tree.leaves(p.operator) for p in (problem, there))
    assert all(a is b for a, b in zip(*kernels)) and there.xi is problem.xi
    anew = changed(problem, width=[5, 9, 4, 7], temperature=0.3, Y=2 * problem.Y)
    there.check_same(anew, "problem")
    assert eqx.tree_equal(there.solve(), anew.solve())
    with pytest.raises(ValueError, match=r"Y must have shape \(10,\), as before"):
        problem.at(Y=jnp.ones((10, 2)))


def test_descent_leads_to_the_same_saddle_point(problem, monkeypatch):
    """A problem is called large here, whatever its size."""
    problem = problem.at(width=3, temperature=0.05)
    newton = problem.solve()
    monkeypatch.setattr(saddle, "LARGE", 0)
    monkeypatch.setattr(saddle, "GRADIENTS", 0)
    solution = problem.solve()
    assert solution.converged and distance(solution, newton) < CLOSE
    assert solution.iterations < newton.iterations
    assert solution.signature.tolist() == newton.signature.tolist()


def test_random_starts_find_the_one_minimum(problem):
    many = problem.multi_start(jax.random.key(2), starts=5)
    assert many.counts == [6] and many.failed == 0
    assert distance(many.solutions[0], problem.solve()) < CLOSE


def test_minima_that_differ_are_listed_by_their_action(problem):
    each = [problem.at(temperature=T).solve() for T in (0.1, 1.0, 0.1)]
    solutions, counts = minima.distinct(each, 1e-5)
    actions = [float(s.action) for s in solutions]
    assert actions == sorted(actions) and sorted(counts) == [1, 2]


@pytest.mark.slow
def test_published_widths_converge_in_few_steps(chains):
    xi, y = chains[:2]
    problem = Problem(xi, y, heads=(2, 2), width=10, temperature=0.01)
    for N in (10, 30, 50, 100, 300, 500, 1000):
        solution = problem.at(width=N).solve()
        assert solution.converged and solution.gradient_norm <= 1e-9
        assert solution.iterations <= 15
        assert solution.signature.tolist() == [0, 0, 14]


@pytest.mark.slow
def test_several_outputs_turn_with_the_labels(problem):
    """Y -> Y R with a rotation R: U -> (1 x R)^T U (1 x R), the same action."""
    Y = jnp.stack([problem.Y, problem.Y[::-1] ** 2], axis=1)
    R = jnp.array([[0.6, -0.8], [0.8, 0.6]])
    one, two = (changed(problem, Y=labels, width=6).solve() for labels in (Y, Y @ R))
    turn = jnp.kron(jnp.eye(4), R)
    turned = turn.T @ one.U[0] @ turn
    assert one.converged and two.converged and one.U_a.shape == (2, 2)
    assert float(one.action) == pytest.approx(float(two.action), abs=1e-11)
    assert np.abs(turned - two.U[0]).max() < CLOSE * np.abs(turned).max()


def test_one_output_in_a_column_is_the_scalar_network():
    """Of one path, which compiles faster."""
    posed = partial(Problem, ONE_INPUT, heads=(1,), width=3, temperature=0.01)
    one, two = (posed(Y).solve() for Y in (np.array([3.0]), np.array([[3.0]])))
    assert distance(one, two) == 0 and one.U_a.shape == () and two.U_a.shape == (1, 1)


@pytest.mark.slow
def test_equal_heads_do_not_end_on_a_symmetric_saddle(problem):
    """Two copies of one path: whatever is found is a minimum."""
    twice = jnp.stack([problem.xi[:, :, 0]] * 2, axis=2)
    solution = Problem(
        twice, 5 * problem.Y, heads=(2,), width=3, temperature=0.01
    ).solve()
    assert solution.converged and int(solution.signature[0]) == 0


def test_a_singular_kernel_without_noise_is_a_reason_not_a_number():
    posed = Problem(0 * ONE_INPUT, np.ones(1), heads=(1,), width=5, temperature=0)
    solution = posed.solve()
    assert not solution.converged and "singular" in solution.reason
    assert np.isnan(solution.action) and np.isnan(solution.U[0]).all()


def test_too_few_iterations_are_a_reason_not_a_number():
    """Of one path, which compiles faster."""
    Y = np.array([3.0])
    problem = Problem(ONE_INPUT, Y, heads=(1,), width=3, temperature=0.01)
    solution = problem.solve(solver=bpkr.NewtonSolver(max_iterations=1))
    assert not solution.converged and "iterations" in solution.reason
    numbers = (
        *solution.U,
        solution.U_a,
        solution.action,
        solution.energy,
        solution.entropy,
    )
    assert all(np.isnan(number).all() for number in numbers)
    for ask, about in ((solution.predict, problem.xi), (problem.theory, solution)):
        with pytest.raises(ValueError, match="no saddle point: iterations used up"):
            ask(about)
    assert distance(problem.solve(start=solution), problem.solve()) < CLOSE


def test_a_failed_point_does_not_spoil_the_others(problem):
    """No input and no noise: K is singular at T = 0 alone."""
    silent = changed(problem, xi=jnp.zeros_like(problem.xi))
    (row,) = silent.sweep(widths=[5], temperatures=[0.1, 0.0, 0.2])
    assert [s.converged for s in row] == [True, False, True]
    assert np.isfinite([s.action for s in row]).tolist() == [True, False, True]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "change, message",
    (
        (dict(Y=np.ones(3)), "one row per example"),
        (dict(Y=np.full(10, np.nan)), "Y must be finite"),
        (dict(xi=np.full((10, 6, 4), np.inf)), "xi must be finite"),
        (dict(width=0.5), "width must be"),
        (dict(width=(1, 2)), "N_1"),
        (dict(temperature=-1.0), "temperature must be at least 0"),
        (dict(heads=(2, 1, 3)), "one column per path"),
        (dict(heads=()), "heads"),
        (dict(heads=(2, 0, 2)), "each a whole number >= 1"),
        (dict(variances=(1, 1)), "variances"),
        (dict(form="dense"), "form must be"),
    ),
)
def test_bad_input_is_refused_in_one_line(problem, change, message):
    with pytest.raises(ValueError, match=message) as error:
        changed(problem, **change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change, message",
    (
        (dict(memory_limit=10), "memory_limit"),
        (dict(memory_limit=10, form="factors"), "fewer examples"),
    ),
)
def test_kernels_that_do_not_fit_are_refused_where_they_are_needed(
    problem, change, message
):
    """The limit of large widths needs none of them."""
    large = changed(problem, **change)
    assert np.isfinite(large.gaussian_process().predict(problem.xi).mean).all()
    for ask in (large.solve, large.law):
        with pytest.raises(ValueError, match=message) as error:
            ask()
        assert "\n" not in str(error.value)


def test_impossible_grids_and_starts_are_refused_in_one_line(problem):
    with pytest.raises(ValueError, match="at least one"):
        problem.sweep(widths=[], temperatures=[0.1])
    with pytest.raises(ValueError, match="starts must be"):
        problem.multi_start(jax.random.key(0), starts=0)
    one = Problem(np.ones((1, 2, 1)), np.ones(1), heads=(1,), width=2, temperature=0)
    with pytest.raises(ValueError, match="17 unknowns; got 2"):
        problem.solve(start=one.solve())
