import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import block_diag

from statmech_attn import bpkr
from statmech_attn.bpkr import minima, saddle
from statmech_attn.bpkr.action import factors_of


# A minimum with gradient <= 1e-9 in relative changes lies within about 1e-9 / (least
# eigenvalue of the Hessian, >= 0.1 here) of the exact one.
CLOSE = 1e-7


@pytest.fixture(scope="module")
def data(small):
    x, heads, y = small
    return bpkr.attentioned_inputs(x, heads), y, bpkr.head_counts(heads)


def distance(one, two):
    return max(float(jnp.abs(a - b).max()) for a, b in zip(one.U, two.U))


@pytest.mark.parametrize("N, y", ((2, 0.5), (10, 3.0), (300, 0.0)))
def test_one_path_one_example_solves_a_cubic(N, y):
    """T = 0, U = v^2, k = |xi|^2 / N_0: v^3 - (1 - 1/N) v^2 - y^2 / (N k) = 0."""
    xi = jnp.array([[[1.0], [2.0]]])
    found = bpkr.solve(xi, jnp.array([y]), width=N, temperature=0, heads=(1,))
    roots = np.roots([1, -(1 - 1 / N), 0, -(y**2) / (N * 2.5)])
    v = max(roots[np.abs(roots.imag) < 1e-12].real)
    assert found.converged
    assert float(found.U[0][0, 0]) == pytest.approx(v**2, abs=CLOSE)
    assert float(found.U_a) == pytest.approx(v, abs=CLOSE)


def test_the_saddle_point_is_stationary_in_every_order_parameter(data):
    """U_1^-1 = (1 x U_2)^-1 + dE/dU_1 / N, the same one layer up, and the root U_a."""
    xi, y, heads = data
    N, T = 7, 0.05
    found = bpkr.solve(xi, y, width=N, temperature=T, heads=heads)
    operator = bpkr.path_kernels(xi)
    slope = jax.grad(lambda U: bpkr.energy(operator.kernel(U), T, y))(found.U[0])
    U_1, U_2, U_3 = (np.asarray(u) for u in found.U)
    outer = block_diag(U_2, U_2)
    residual = np.linalg.inv(U_1) - np.linalg.inv(outer) - slope / N
    assert np.abs(residual).max() < CLOSE * np.abs(np.linalg.inv(U_1)).max()
    summed = U_1[:2, :2] + U_1[2:, 2:]
    inverse = np.linalg.inv(U_2)
    residual = inverse @ summed @ inverse + inverse - np.linalg.inv(U_3) - 2 * inverse
    assert np.abs(residual).max() < CLOSE * np.abs(inverse).max()
    U_a = float(found.U_a)
    assert abs(U_a**2 + (2 - 1) * U_a - np.trace(U_3)) < CLOSE
    assert found.gradient_norm <= 1e-9
    assert found.signature.tolist() == [0, 0, found.point.size]


def test_action_is_entropy_plus_energy_of_the_public_functions(data):
    xi, y, heads = data
    widths, variances = (5.0, 9.0, 4.0, 7.0), (0.5, 2.0, 1.0, 3.0, 0.7)
    problem = dict(temperature=0.1, heads=heads, variances=variances)
    found = bpkr.solve(xi, y, width=widths, **problem)
    operator = bpkr.path_kernels(xi, variance=0.5)
    S = bpkr.action(found.U, found.U_a, operator, y, widths=np.array(widths), **problem)
    assert float(found.action) == pytest.approx(float(S), abs=1e-11)
    assert float(found.energy + found.entropy) == pytest.approx(float(S), abs=1e-11)
    E = bpkr.energy(operator.kernel(found.U[0]), 0.1, y) / 9
    assert float(found.energy) == pytest.approx(float(E), abs=1e-11)


def test_no_nearby_order_parameter_has_less_action(data):
    xi, y, heads = data
    problem = dict(temperature=0.1, heads=heads, variances=np.ones(5))
    found = bpkr.solve(xi, y, width=4, **problem)
    operator = bpkr.path_kernels(xi)
    rest = dict(widths=np.full(4, 4.0), **problem)
    least = bpkr.action(found.U, found.U_a, operator, y, **rest)
    for key in jax.random.split(jax.random.key(0), 10):
        near = []
        for k, U in zip(jax.random.split(key, 3), found.U):
            A = jnp.eye(len(U)) + 0.05 * jax.random.normal(k, U.shape)
            near.append(A @ U @ A.T)
        assert bpkr.action(near, found.U_a * 1.02, operator, y, **rest) > least


def test_exchanging_heads_exchanges_the_order_parameters(data):
    xi, y, heads = data
    problem = dict(width=5, temperature=0.1, heads=heads)
    one = bpkr.solve(xi, y, **problem)
    two = bpkr.solve(xi[:, :, [2, 3, 0, 1]], y, **problem)
    swapped = one.U[0][jnp.ix_(*[jnp.array([2, 3, 0, 1])] * 2)]
    assert np.abs(swapped - two.U[0]).max() < CLOSE * np.abs(swapped).max()
    assert float(one.action) == pytest.approx(float(two.action), abs=1e-12)


def test_variances_of_neighbouring_layers_can_be_traded(data):
    """sigma_1^2 -> s sigma_1^2 with sigma_0^2 / s: U_1 -> s U_1, the same energy."""
    xi, y, heads = data
    problem = dict(width=5, temperature=0.1, heads=heads)
    one = bpkr.solve(xi, y, variances=(1, 1, 1, 1, 1), **problem)
    two = bpkr.solve(xi, y, variances=(0.25, 4, 1, 1, 1), **problem)
    assert np.abs(4 * one.U[0] - two.U[0]).max() < CLOSE * np.abs(two.U[0]).max()
    assert float(one.energy) == pytest.approx(float(two.energy), abs=CLOSE)


def test_units_of_the_labels_change_nothing_but_the_energy(data):
    """Y -> c Y, T -> c^2 T, sigma_0 -> c sigma_0: the same U, E + P ln c^2."""
    xi, y, heads = data
    problem = dict(width=5, heads=heads)
    one = bpkr.solve(xi, y, temperature=0.1, **problem)
    two = bpkr.solve(
        xi, 3 * y, temperature=0.9, variances=(9, 1, 1, 1, 1), **problem
    )  # fmt: skip
    assert distance(one, two) < CLOSE
    shift = len(y) * np.log(9) / 5
    assert float(two.energy - one.energy) == pytest.approx(shift, abs=CLOSE)


def test_the_iteration_starts_at_the_gp_limit():
    variances = np.array([0.3, 2.0, 0.5, 3.0])
    U, U_a = bpkr.gaussian_process_limit((2, 3), variances, 2)
    limit = saddle.chart(factors_of(U, U_a, (2, 3)))
    start = saddle.starting_point(None, (2, 3), variances, 2)
    assert np.abs(start - limit).max() < 1e-14


def test_the_gp_limit_is_reached_as_one_over_the_width(data):
    xi, y, heads = data
    problem = dict(temperature=0.1, heads=heads)
    many = bpkr.solve_many(xi, y, width=[1e4, 1e5], **problem)
    shift = many.U[0] - jnp.eye(4)
    # U = 1 + u / N + O(1/N^2): the second order is as large as the shift itself.
    second = 20 * float(jnp.abs(shift[0]).max())
    assert np.abs(shift[0] - 10 * shift[1]).max() < second * np.abs(shift[0]).max()
    assert 1e-6 < np.abs(shift[0]).max() < 1e-2


def test_lanes_and_sweeps_give_the_numbers_of_single_problems(data):
    xi, y, heads = data
    widths, temperatures = [3, 10, 80], [0.05, 0.1, 0.3]
    many, swept = (
        bpkr.solve_many(
            xi, y, width=widths, temperature=temperatures, heads=heads, warm=warm
        )
        for warm in (False, True)
    )
    assert many.converged and swept.converged
    for i, (N, T) in enumerate(zip(widths, temperatures)):
        one = bpkr.solve(xi, y, width=N, temperature=T, heads=heads)
        for found in (many, swept):
            assert np.abs(found.U[0][i] - one.U[0]).max() < CLOSE
    again = bpkr.solve(xi, y, width=80, temperature=0.3, heads=heads, start=one)
    assert int(again.iterations) == 0 and distance(again, one) == 0


def test_a_sweep_gives_the_numbers_of_cold_starts(data):
    """Whatever way the snake takes, and for every label vector."""
    xi, y, heads = data
    labels = jnp.stack([y, -2 * y[::-1]])
    widths, temperatures = [3, 80], [0.05, 0.3, 0.1]
    found = bpkr.sweep(
        xi, labels, widths=widths, temperatures=temperatures, heads=heads,
        many_labels=True,
    )  # fmt: skip
    assert found.converged and found.U[0].shape == (2, 2, 3, 4, 4)
    for i, Y in enumerate(labels):
        for j, N in enumerate(widths):
            for k, T in enumerate(temperatures):
                one = bpkr.solve(xi, Y, width=N, temperature=T, heads=heads)
                shift = jnp.abs(found.U[0][i, j, k] - one.U[0]).max()
                assert shift < CLOSE * jnp.abs(one.U[0]).max()
                assert abs(found.action[i, j, k] - one.action) < 1e-11


def test_label_vectors_widths_and_temperatures_go_together(data):
    xi, y, heads = data
    labels = [jnp.stack([y, y**2], axis=1), jnp.stack([-y, y], axis=1)]
    many = bpkr.solve_many(
        xi, jnp.stack(labels), width=[4, 9], temperature=[0.1, 0.2], heads=heads,
        many_labels=True,
    )  # fmt: skip
    assert many.U_a.shape == (2, 2, 2)
    for i, (N, T) in enumerate(((4, 0.1), (9, 0.2))):
        one = bpkr.solve(xi, labels[i], width=N, temperature=T, heads=heads)
        assert np.abs(many.U[0][i] - one.U[0]).max() < CLOSE


def test_descent_leads_to_the_same_saddle_point(data, monkeypatch):
    """A problem is called large here, whatever its size."""
    xi, y, heads = data
    problem = dict(width=3, temperature=0.05, heads=heads)
    newton = bpkr.solve(xi, y, **problem)
    monkeypatch.setattr(saddle, "LARGE", 0)
    monkeypatch.setattr(saddle, "GRADIENTS", 0)
    found = bpkr.solve(xi, y, **problem)
    assert found.converged and distance(found, newton) < CLOSE
    assert found.iterations < newton.iterations
    assert found.signature.tolist() == newton.signature.tolist()


def test_random_starts_find_the_one_minimum(data):
    xi, y, heads = data
    problem = dict(width=5, temperature=0.1, heads=heads)
    found = bpkr.multi_start(jax.random.key(2), xi, y, starts=5, **problem)
    one = bpkr.solve(xi, y, **problem)
    assert found.counts == [6] and found.failed == 0
    assert distance(found.solutions[0], one) < CLOSE


def test_minima_that_differ_are_listed_by_their_action(data):
    xi, y, heads = data
    many = bpkr.solve_many(
        xi, y, width=5, temperature=[0.1, 1.0, 0.1], heads=heads
    )  # fmt: skip
    each = [jax.tree.map(lambda a: a[i], many) for i in range(3)]
    solutions, counts = minima.distinct(each, 1e-5)
    actions = [float(s.action) for s in solutions]
    assert actions == sorted(actions) and sorted(counts) == [1, 2]


def test_the_form_of_the_kernel_does_not_matter(data):
    xi, y, heads = data
    problem = dict(width=5, temperature=0.1, heads=heads)
    one, two = (bpkr.solve(xi, y, form=f, **problem) for f in ("kernels", "factors"))
    assert distance(one, two) < CLOSE * float(jnp.abs(one.U[0]).max())


def test_published_widths_converge_in_few_steps(chains):
    xi, y = chains[:2]
    widths = [10, 30, 50, 100, 300, 500, 1000]
    found = bpkr.solve_many(xi, y, width=widths, temperature=0.01, heads=(2, 2))
    assert found.converged and found.gradient_norm.max() <= 1e-9
    assert found.iterations.max() <= 15
    assert (found.signature == jnp.array([0, 0, 14])).all()


def test_several_outputs_turn_with_the_labels(data):
    """Y -> Y R with a rotation R: U -> (1 x R)^T U (1 x R), the same action."""
    xi, y, heads = data
    Y = jnp.stack([y, y[::-1] ** 2], axis=1)
    R = jnp.array([[0.6, -0.8], [0.8, 0.6]])
    problem = dict(width=6, temperature=0.1, heads=heads)
    one, two = (bpkr.solve(xi, labels, **problem) for labels in (Y, Y @ R))
    turn = jnp.kron(jnp.eye(4), R)
    turned = turn.T @ one.U[0] @ turn
    assert one.converged and two.converged and one.U_a.shape == (2, 2)
    assert float(one.action) == pytest.approx(float(two.action), abs=1e-11)
    assert np.abs(turned - two.U[0]).max() < CLOSE * np.abs(turned).max()


def test_one_output_in_a_column_is_the_scalar_network(data):
    xi, y, heads = data
    problem = dict(width=6, temperature=0.1, heads=heads)
    one, two = (bpkr.solve(xi, labels, **problem) for labels in (y, y[:, None]))
    assert distance(one, two) == 0 and one.U_a.shape == ()


def test_equal_heads_do_not_end_on_a_symmetric_saddle(data):
    """Two copies of one path: whatever is found is a minimum."""
    xi, y, _ = data
    twice = jnp.stack([xi[:, :, 0]] * 2, axis=2)
    found = bpkr.solve(twice, 5 * y, width=3, temperature=0.01, heads=(2,))
    assert found.converged and int(found.signature[0]) == 0


def test_a_singular_kernel_without_noise_is_a_reason_not_a_number():
    xi = jnp.ones((3, 1, 1))
    found = bpkr.solve(xi, jnp.ones(3), width=5, temperature=0, heads=(1,))
    assert not found.converged and "singular" in found.reason
    assert np.isnan(found.action) and np.isnan(found.U[0]).all()


def test_too_few_iterations_are_a_reason_not_a_number(data):
    xi, y, heads = data
    found = bpkr.solve(
        xi, y, width=3, temperature=0.01, heads=heads,
        solver=bpkr.NewtonSolver(max_iterations=1),
    )  # fmt: skip
    assert not found.converged and "iterations" in found.reason
    numbers = (*found.U, found.U_a, found.action, found.energy, found.entropy)
    assert all(np.isnan(number).all() for number in numbers)
    problem = dict(width=3, temperature=0.01, heads=heads)
    resumed = bpkr.solve(xi, y, start=found, **problem)
    assert distance(resumed, bpkr.solve(xi, y, **problem)) < CLOSE


def test_a_failed_point_does_not_spoil_the_others(data):
    """Twice the same example and no noise: K is singular at T = 0 alone."""
    xi, y, heads = data
    twice, labels = jnp.concatenate([xi, xi]), jnp.concatenate([y, y])
    found = bpkr.solve_many(
        twice, labels, width=5, temperature=[0.1, 0.0, 0.2], heads=heads, warm=True
    )
    assert found.result.tolist()[::2] == [0, 0] and found.result[1] != 0
    assert np.isnan(found.action[1]) and np.isfinite(found.action[::2]).all()


@pytest.mark.parametrize(
    "change, message",
    (
        (dict(Y=np.ones(3)), "one row per example"),
        (dict(Y=np.full(10, np.nan)), "Y must be finite"),
        (dict(xi=np.full((10, 6, 4), np.inf)), "xi must be finite"),
        (dict(width=0.5), "width must be"),
        (dict(width=np.nan), "width must be"),
        (dict(width=None), "width must be"),
        (dict(width=(1, 2)), "N_1"),
        (dict(temperature=-1.0), "0 where K"),
        (dict(temperature=[0.1, 0.2]), "temperature"),
        (dict(temperature=np.nan), "temperature"),
        (dict(heads=(2, 3)), "one column per path"),
        (dict(heads=()), "heads"),
        (dict(variances=(1, 1)), "variances"),
        (dict(form="dense"), "form must be"),
        (dict(memory_limit=10), "memory_limit"),
        (dict(memory_limit=10, form="factors"), "fewer examples"),
    ),
)
def test_bad_input_is_refused_in_one_line(data, change, message):
    xi, y, heads = data
    call = dict(xi=xi, Y=y, width=5, temperature=0.1, heads=heads) | change
    with pytest.raises(ValueError, match=message) as error:
        bpkr.solve(**call)
    assert "\n" not in str(error.value)


def test_batches_that_do_not_fit_are_refused_in_one_line(data):
    xi, y, heads = data
    for many, message in (
        (dict(width=[3, 4], temperature=[0.1, 0.2, 0.3]), "got 2, 3 and 1"),
        (dict(width=[], temperature=0.1), "got 0, 1 and 1"),
        (dict(width=3, temperature=0.1, many_labels=True), "many_labels"),
    ):
        with pytest.raises(ValueError, match=message):
            bpkr.solve_many(xi, y, heads=heads, **many)
    with pytest.raises(ValueError, match="at least one"):
        bpkr.sweep(xi, y, widths=[], temperatures=[0.1], heads=heads)
    with pytest.raises(ValueError, match="starts must be"):
        bpkr.multi_start(
            jax.random.key(0), xi, y, starts=0, width=3, temperature=1, heads=heads
        )
