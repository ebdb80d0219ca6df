import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr import kernels, prior, saddle
from statmech_attn.bpkr.action import (
    factors_of,
    order_parameters_of,
    sum_over_head,
)


HEADS = (2, 3)


def random_order_parameters(key, heads, outputs=1):
    keys = jax.random.split(key, len(heads) + 1)
    found = []
    for k, d in zip(keys, prior.sizes(heads, outputs)):
        A = jax.random.normal(k, (d, 2 * d))
        found.append(A @ A.T / (2 * d) + 0.1 * jnp.eye(d))
    return tuple(found[:-1]), found[-1]


def random_data(key, P=5, N_0=4, n_paths=6, outputs=1):
    x_key, y_key = jax.random.split(key)
    xi = jax.random.normal(x_key, (P, N_0, n_paths))
    return xi, jax.random.normal(y_key, (P * outputs,))


def test_entropies_at_the_gp_limit_are_the_sizes():
    for heads, total in (((2, 2), 7), ((2, 3), 10), ((3, 2, 2), 12 + 4 + 2 + 1)):
        L = len(heads)
        U, U_a = bpkr.gaussian_process_limit(heads, np.ones(L + 2))
        parts = bpkr.entropies(U, U_a, heads, np.ones(L + 1), np.ones(L + 2))
        assert float(parts.sum()) == total


@pytest.mark.parametrize("u", (0.3, 1.0, 4.0))
def test_one_path_is_the_deep_linear_network(u):
    """L = H = 1: minimised over U_a = sqrt(U), the entropy is 2 sqrt(U) - ln U."""
    entropy = lambda a: bpkr.entropies(
        (jnp.full((1, 1), u),), a, (1,), jnp.ones(2), jnp.ones(3)
    ).sum()
    assert float(entropy(np.sqrt(u))) == pytest.approx(2 * np.sqrt(u) - np.log(u))
    assert abs(float(jax.grad(entropy)(np.sqrt(u)))) < 1e-14


@pytest.mark.parametrize("outputs", (1, 2))
def test_entropy_in_the_chart_is_that_in_the_order_parameters(outputs):
    U, U_a = random_order_parameters(jax.random.key(0), HEADS, outputs)
    widths, variances = jnp.array([3.0, 9.0, 5.0]), jnp.array([2.0, 0.5, 3.0, 0.7])
    factors = factors_of(U, U_a, HEADS)
    again, again_a = order_parameters_of(factors, HEADS)
    for one, two in zip((*U, U_a), (*again, again_a)):
        assert np.abs(one - two).max() < 1e-13
    one = bpkr.entropies(U, U_a, HEADS, widths, variances)
    xi, y = random_data(jax.random.key(1), outputs=outputs)
    problem = saddle.Problem(
        bpkr.path_kernels(xi, outputs=outputs), y, jnp.asarray(0.2), widths, variances
    )
    two = saddle.entropy_at(problem, saddle.chart(factors), problem.sizes(HEADS))
    assert float(two) == pytest.approx(float(one.sum()), rel=1e-12)


def test_entries_off_the_diagonal_may_be_large():
    """With variances of 10^6 they are thousands, whose exponential is infinite."""
    problem = saddle.Problem(
        bpkr.path_kernels(jnp.ones((2, 1, 2))), jnp.ones(2), jnp.asarray(0.2),
        jnp.ones(2), jnp.full(3, 1e6),
    )  # fmt: skip
    point = jnp.array([1.0, 3e3, 2.0, 0.5])  # C_1 has 3000 below its diagonal
    slope = jax.grad(lambda point: saddle.entropy_at(problem, point, (2, 1)))(point)
    expected = 2 * 3e3 / 1e6
    assert float(slope[1]) == pytest.approx(expected, rel=1e-14)
    assert np.isfinite(slope).all()


def test_sum_over_head_sums_blocks_of_equal_first_index():
    U = np.arange(36.0).reshape(6, 6)
    by_hand = U[:3, :3] + U[3:, 3:]
    assert np.array_equal(sum_over_head(jnp.asarray(U), 2), by_hand)


def test_gradient_of_the_energy_is_the_closed_form():
    """dE/dU_ab = Tr[A X_a X_b^T] / (N_0 |Pi|), written out pair by pair."""
    xi, y = random_data(jax.random.key(1))
    U, _ = random_order_parameters(jax.random.key(2), HEADS)
    T = 0.1
    operator = bpkr.path_kernels(xi)
    found = jax.grad(lambda U: bpkr.energy(operator.kernel(U), T, y))(U[0])
    X = np.asarray(xi)
    K = np.einsum("pia,ab,qib->pq", X, U[0], X) / (4 * 6)
    M = np.linalg.inv(K + T * np.eye(5))
    A = M - np.outer(M @ y, M @ y)
    for a in range(6):
        for b in range(6):
            by_hand = np.trace(A @ X[:, :, a] @ X[:, :, b].T) / (4 * 6)
            assert float(found[a, b]) == pytest.approx(by_hand, rel=1e-10, abs=1e-11)


def test_energy_is_the_gaussian_log_likelihood():
    xi, y = random_data(jax.random.key(3))
    K = bpkr.path_kernels(xi).kernel(jnp.eye(6))
    expected = -2 * jax.scipy.stats.multivariate_normal.logpdf(
        y, jnp.zeros(5), K + 0.1 * jnp.eye(5)
    ) - 5 * np.log(2 * np.pi)
    assert float(bpkr.energy(K, 0.1, y)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("outputs", (1, 2))
def test_both_forms_of_the_kernel_give_the_same_numbers(outputs):
    xi, y = random_data(jax.random.key(4), outputs=outputs)
    U, _ = random_order_parameters(jax.random.key(5), HEADS, outputs)
    full, factors = (
        bpkr.path_kernels(xi, variance=1.7, outputs=outputs, form=form)
        for form in ("kernels", "factors")
    )
    # By hand: index (example, output), U over (path, output).
    by_output = np.asarray(U[0]).reshape(6, outputs, 6, outputs)
    K = np.einsum("pia,akbl,qib->pkql", xi, by_output, xi) * 1.7 / (4 * 6)
    K = K.reshape(y.size, y.size)
    assert np.abs(full.kernel(U[0]) - K).max() < 1e-13
    assert np.abs(factors.kernel(U[0]) - K).max() < 1e-13
    A = jax.random.normal(jax.random.key(6), K.shape)
    A = A + A.T
    one, two = full.curvature(A, y), factors.curvature(A, y)
    assert one.shape == (3 * outputs * (6 * outputs + 1),) * 2
    assert np.abs(one - two).max() < 1e-12 * np.abs(one).max()


@pytest.mark.parametrize(
    "form, outputs",
    (
        ("kernels", 1),
        ("factors", 2),
        # The same numbers come from both forms: see the test above.
        pytest.param("kernels", 2, marks=pytest.mark.slow),
        pytest.param("factors", 1, marks=pytest.mark.slow),
    ),
)
def test_the_newton_hessian_is_that_of_jax(form, outputs):
    xi, y = random_data(jax.random.key(7), outputs=outputs)
    operator = bpkr.path_kernels(xi, outputs=outputs, form=form)
    problem = saddle.Problem(
        operator, y, jnp.asarray(0.2), jnp.array([3.0, 9.0, 5.0]), jnp.ones(4)
    )
    U, U_a = random_order_parameters(jax.random.key(8), HEADS, outputs)
    point = saddle.chart(factors_of(U, U_a, HEADS))
    f = jax.jit(lambda point: saddle.action_at(problem, point, HEADS))
    of_point = jax.jit(lambda point: saddle.derivatives(problem, point, HEADS))
    value, gradient, hessian = of_point(point)
    assert float(value) == pytest.approx(float(f(point)), rel=1e-13)
    assert np.abs(gradient - jax.grad(f)(point)).max() < 1e-11
    exact = jax.jit(jax.hessian(f))(point)
    assert np.abs(hessian - exact).max() < 1e-11 * np.abs(exact).max()


def test_the_form_follows_the_memory_at_hand():
    xi = jnp.ones((20, 3, 16))
    needed = kernels.memory(20, 3, 16)
    assert isinstance(bpkr.path_kernels(xi), bpkr.PathFactors)
    one = bpkr.path_kernels(xi, form="kernels", memory_limit=needed["kernels"])
    assert isinstance(one, bpkr.PathKernels)
    with pytest.raises(ValueError, match="memory_limit") as error:
        bpkr.path_kernels(xi, form="kernels", memory_limit=needed["kernels"] - 1)
    assert "\n" not in str(error.value) and 'form="factors"' in str(error.value)


def test_no_number_outside_the_cone():
    xi, y = random_data(jax.random.key(9))
    operator = bpkr.path_kernels(xi)
    assert np.isnan(bpkr.energy(operator.kernel(-jnp.eye(6)), 0.0, y))
