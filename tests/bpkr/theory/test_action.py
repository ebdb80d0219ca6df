from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from statmech_attn import bpkr
from statmech_attn.bpkr import prior
from statmech_attn.bpkr.posed import kernel_forms, kernels
from statmech_attn.bpkr.posed.kernel_forms import PathFactors, PathKernels
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory import saddle
from statmech_attn.bpkr.theory.action import (
    energy as energy_of,
    entropies,
    order_parameters_of,
    sum_over_head,
)


HEADS = (2, 3)


def random_order_parameters(seed, heads, outputs=1):
    random, chain = np.random.default_rng(seed), []
    for d in prior.sizes(heads, outputs):
        A = random.normal(size=(d, 2 * d))
        chain.append(A @ A.T / (2 * d) + 0.1 * np.eye(d))
    *U, U_a = map(jax.device_put, chain)
    return tuple(U), U_a


def random_problem(seed, outputs=1, **given):
    """Five examples of six paths, with widths and variances of their own."""
    random = np.random.default_rng(seed)
    settings = dict(
        heads=HEADS, width=(3, 9, 5), variances=(1.7, 0.5, 3, 0.7), temperature=0.2
    )
    xi = random.normal(size=(5, 4, 6))
    y = random.normal(size=(5, outputs) if outputs > 1 else 5)
    return Problem(jax.device_put(xi), jax.device_put(y), **settings | given)


def test_entropies_at_the_gp_limit_are_the_sizes():
    for heads, total in (((2, 3), 10), ((3, 2, 2), 12 + 4 + 2 + 1)):
        L = len(heads)
        U, U_a = bpkr.gaussian_process_limit(heads, np.ones(L + 2))
        of_layers = jax.jit(partial(entropies, heads=heads))
        parts = of_layers(U, U_a, widths=np.ones(L + 1), variances=np.ones(L + 2))
        assert float(parts.sum()) == total


@pytest.mark.parametrize("u", (0.3, 1.0, 4.0))
def test_one_path_is_the_deep_linear_network(u):
    """L = H = 1: minimised over U_a = sqrt(U), the entropy is 2 sqrt(U) - ln U."""
    entropy = lambda a, u: entropies(
        (jnp.full((1, 1), u),), a, (1,), np.ones(2), np.ones(3)
    ).sum()
    value, slope = jax.jit(jax.value_and_grad(entropy))(np.sqrt(u), u)
    assert float(value) == pytest.approx(2 * np.sqrt(u) - np.log(u))
    assert abs(float(slope)) < 1e-14


def test_entropy_in_the_chart_is_that_in_the_order_parameters(chart, factors_of):
    U, U_a = random_order_parameters(0, HEADS, 2)
    problem = random_problem(1, 2)
    factors = factors_of(U, U_a, HEADS)
    again, again_a = order_parameters_of(factors, HEADS, (None,) * len(HEADS))
    for one, two in zip((*U, U_a), (*again, again_a)):
        assert np.abs(one - two).max() < 1e-13
    one = entropies(U, U_a, HEADS, problem.widths, problem.variances)
    two = saddle.entropy_at(problem, chart(factors))
    assert float(two) == pytest.approx(float(one.sum()), rel=1e-12)


def test_entries_off_the_diagonal_may_be_large():
    """With variances of 10^6 they are thousands, whose exponential is infinite."""
    problem = Problem(
        jnp.ones((2, 1, 2)),
        jnp.ones(2),
        heads=(2,),
        width=1,
        temperature=0.2,
        variances=np.full(3, 1e6),
    )
    point = jnp.array([1.0, 3e3, 2.0, 0.5])  # C_1 has 3000 below its diagonal
    slope = jax.jit(jax.grad(lambda point: saddle.entropy_at(problem, point)))(point)
    expected = 2 * 3e3 / 1e6
    assert float(slope[1]) == pytest.approx(expected, rel=1e-14)
    assert np.isfinite(slope).all()


def test_sum_over_head_sums_blocks_of_equal_first_index():
    U = np.arange(36.0).reshape(6, 6)
    by_hand = U[:3, :3] + U[3:, 3:]
    assert np.array_equal(sum_over_head(jnp.asarray(U), 2), by_hand)


def test_gradient_of_the_energy_is_the_closed_form():
    """dE/dU_ab = sigma_0^2 Tr[A X_a X_b^T] / (N_0 |Pi|), written out pair by pair."""
    problem = random_problem(1)
    U, _ = random_order_parameters(2, HEADS)
    y, T, operator = problem.y, 0.1, problem.operator
    found = jax.jit(jax.grad(lambda U: energy_of(operator.kernel(U), T, y)))(U[0])
    X = np.sqrt(1.7 / (4 * 6)) * np.asarray(problem.xi)
    K = np.einsum("pia,ab,qib->pq", X, U[0], X)
    M = np.linalg.inv(K + T * np.eye(5))
    A = M - np.outer(M @ y, M @ y)
    for a in range(6):
        for b in range(6):
            by_hand = np.trace(A @ X[:, :, a] @ X[:, :, b].T)
            assert float(found[a, b]) == pytest.approx(by_hand, rel=1e-10, abs=1e-11)


def test_energy_is_the_gaussian_log_likelihood():
    problem = random_problem(3)
    K, y = problem.operator.kernel(jnp.eye(6)), problem.y
    normal: Any = stats.multivariate_normal
    log_density = normal(np.zeros(5), np.asarray(K) + 0.1 * np.eye(5)).logpdf(y)
    expected = -2 * log_density - 5 * np.log(2 * np.pi)
    assert float(energy_of(K, 0.1, y)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", (1, 2))
@pytest.mark.parametrize("features", (1, 3))  # of four: with and without a rest
def test_kernels_by_slabs_of_features_are_those_of_all(features, outputs, monkeypatch):
    """Of an indefinite U, compiled and not, with derivatives, which are symmetric.

    To rounding of sums of 24.
    """
    problem = random_problem(4, outputs)
    xi, test = problem.xi, problem.xi[::2] + 1
    (U, *_), _ = random_order_parameters(5, HEADS, outputs)
    U = U - jnp.trace(U) / len(U) * jnp.eye(len(U))
    symmetric = lambda f: lambda U: f((U + U.T) / 2)
    weights = jax.random.normal(jax.random.key(6), (len(problem.y),) * 2)
    weights = weights + weights.T
    own = lambda U: kernels.self_kernel(xi, U)
    cross = lambda U: kernels.cross_kernel(test, xi, U)
    slope = lambda U: jax.grad(symmetric(lambda U: (weights * own(U)).sum()))(U)
    compiled = lambda U: jax.jit(own)(U)
    whole = [f(U) for f in (own, compiled, cross, slope)]
    slab = features * xi.shape[0] * xi.shape[2] * outputs**2
    monkeypatch.setattr(kernels, "SLAB", slab)
    assert kernels.slab_width(xi.shape, U) == features < xi.shape[1]
    for one, f in zip(whole, (own, compiled, cross, slope)):
        assert np.abs(f(U) - one).max() < 1e-13 * np.abs(one).max()
    np.testing.assert_array_equal(own(U), own(U).T)


def test_both_forms_of_the_kernel_give_the_same_numbers():
    problem = random_problem(4, 2)
    xi, y = problem.xi, problem.y
    U, _ = random_order_parameters(5, HEADS, 2)
    full, factors = (
        kernel_forms.path_kernels(problem.xi, problem.scale, form=form)
        for form in kernel_forms.FORMS
    )
    # By hand: index (example, output), U over (path, output).
    xi = np.asarray(xi)
    by_output = np.asarray(U[0]).reshape(6, 2, 6, 2)
    K = np.einsum("pia,akbl,qib->pkql", xi, by_output, xi) * 1.7 / (4 * 6)
    K = K.reshape(y.size, y.size)
    for operator in (full, factors):
        assert np.abs(np.asarray(operator.kernel(U[0])) - K).max() < 1e-13
    A = np.random.default_rng(6).normal(size=K.shape)
    A = jax.device_put(A + A.T)
    curvature = jax.jit(lambda operator: operator.curvature(A, y))
    one, two = map(np.asarray, (curvature(full), curvature(factors)))
    assert one.shape == (6 * 13,) * 2
    assert np.abs(one - two).max() < 1e-12 * np.abs(one).max()


def test_the_newton_hessian_is_that_of_jax(chart, factors_of):
    problem = random_problem(7, 2, form="factors")
    U, U_a = random_order_parameters(8, HEADS, 2)
    point = chart(factors_of(U, U_a, HEADS))
    slope = jax.value_and_grad(lambda point: saddle.action_at(problem, point))

    @jax.jit
    def both(point):
        columns = jax.vmap(lambda along: jax.jvp(slope, (point,), (along,)))
        (value, gradient), (_, hessian) = columns(jnp.eye(len(point)))
        of_jax = value[0], gradient[0], hessian
        return saddle.derivatives(problem, point), of_jax

    (value, gradient, hessian), exact = jax.tree.map(np.asarray, both(point))
    assert float(value) == pytest.approx(float(exact[0]), rel=1e-13)
    assert np.abs(gradient - exact[1]).max() < 1e-11
    assert np.abs(hessian - exact[2]).max() < 1e-11 * np.abs(exact[2]).max()


def test_the_form_follows_the_memory_at_hand():
    needed = kernel_forms.memory(20, 3, 16)["kernels"]

    def posed(**given):
        return Problem(
            jnp.ones((20, 3, 16)),
            jnp.ones(20),
            heads=(4, 4),
            width=9,
            temperature=1,
            **given,
        )

    assert isinstance(posed().operator, PathFactors)
    one = posed(form="kernels", memory_limit=needed)
    assert isinstance(one.operator, PathKernels) and one.fitted() is one
    with pytest.raises(ValueError, match="memory_limit") as error:
        posed(form="kernels", memory_limit=needed - 1).fitted()
    assert "\n" not in str(error.value) and 'form="factors"' in str(error.value)
    with pytest.raises(ValueError, match="memory_limit"):
        one.fitted(steps=2)


def test_no_number_outside_the_cone():
    problem = random_problem(9)
    assert np.isnan(energy_of(problem.operator.kernel(-jnp.eye(6)), 0.0, problem.y))


def test_unexplained_variance_is_a_squared_distance_of_features():
    left, right = jnp.array([[[3.0]]]), jnp.array([[[1.0]]])
    one = jnp.ones((1, 1))
    assert kernels.unexplained_variances(left, right, one, one).tolist() == [4.0]
