from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from statmech_attn import bpkr
from statmech_attn.bpkr import curves, saddle
from statmech_attn.bpkr.compression import rounding_of_kernels


P, INPUTS, HEADS = 60, 3, (2, 2)


def posed(T=0.1, *, outputs=None, examples=P, seed=11, width=10):
    """More examples than the rank 12 of their kernel, labels without structure."""
    g = np.random.default_rng(seed)
    xi = g.standard_normal((examples, INPUTS, 4))
    Y = g.standard_normal((examples, outputs) if outputs else examples)
    return bpkr.Problem(xi, Y, heads=HEADS, width=width, temperature=T)


@pytest.mark.parametrize("outputs", (None, 2))
def test_the_action_is_that_of_all_examples(outputs):
    """E of an (n, n) kernel; a factor of the constant terms would show."""
    problem = posed(0.3, outputs=outputs)
    d = 4 * problem.outputs
    A = np.random.default_rng(0).standard_normal((d, d))
    U = A @ A.T / d
    K, y = np.asarray(problem.operator.kernel(jnp.asarray(U))), np.asarray(problem.y)
    B = K + 0.3 * np.eye(len(y))
    E = np.linalg.slogdet(B)[1] + y @ np.linalg.solve(B, y)
    chain = (jnp.asarray(U), jnp.eye(2 * problem.outputs))
    whole = problem.action(chain, jnp.eye(problem.outputs))
    rows = problem.rows.action(chain, jnp.eye(problem.outputs))
    # n eps times the condition number of B and the size of E
    tolerance = len(y) * 2e-16 * np.linalg.cond(B) * abs(E)
    assert problem.rows.y.size == 12 * problem.outputs
    assert abs(float((whole - rows) * 10 + _energy(problem, U)) - E) < tolerance


def _energy(problem, U):
    rows = problem.rows
    return bpkr.energy(
        rows.operator.kernel(jnp.asarray(U)), problem.temperature, rows.y
    )


@pytest.mark.parametrize("T", (1e-3, 1e-4, 1e-5, 1e-6, 1e-10))
def test_low_temperatures_are_solved_in_few_steps(T):
    """The limit T -> 0 is reached linearly, as U depends on T through K + T."""
    solution, limit = posed(T).solve(), posed(0.0).solve()
    assert solution.converged and int(solution.iterations) <= 6
    assert limit.converged and limit.action == jnp.inf
    assert abs(solution.U[0] - limit.U[0]).max() <= 10 * T


def test_large_labels_are_solved():
    """At the saddle point the action is stationary in the size of all U together."""
    problem = posed(0.1)
    problem = problem.at(Y=1e4 * problem.Y)
    solution = problem.solve()
    assert solution.converged
    rows = problem.rows
    scaled = lambda c: rows.action([c * U for U in solution.U], c * solution.U_a)
    # a change of the size by 1e-3 adds a second order, below S of the rows
    assert abs(scaled(1.001) - scaled(0.999)) < 1e-6 * abs(scaled(1.0))


def test_rows_of_examples_may_be_turned():
    """An orthogonal matrix on all examples changes no number of the theory."""
    problem, T = posed(0.2), 0.2
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((P, P)))[0]
    turned = bpkr.Problem(
        np.tensordot(Q, problem.xi, 1),
        Q @ problem.Y,
        heads=HEADS,
        width=10,
        temperature=T,
    )
    one, other = problem.solve(), turned.solve()
    assert np.allclose(one.U[0], other.U[0], rtol=0, atol=1e-9)
    assert np.isclose(one.action, other.action, rtol=1e-12)
    test = jnp.asarray(np.random.default_rng(2).standard_normal((5, INPUTS, 4)))
    for a, b in zip(one.predict(test), other.predict(test)):
        assert np.allclose(a, b, rtol=0, atol=1e-9)


def density(Y, covariance):
    """ln of the normal density of the labels, of all examples."""
    normal: Any = stats.multivariate_normal
    return normal(np.zeros(len(Y)), covariance).logpdf(np.asarray(Y))


def test_the_evidence_is_the_density_of_the_labels():
    """At wide widths ln p(Y) is that of a normal law of P dimensions, to order 1/N."""
    errors = []
    for width in (10**6, 10**7):
        problem = posed(0.1, width=width)
        K = np.asarray(problem.gaussian_process().kernel)
        exact = density(problem.Y, K + 0.1 * np.eye(P))
        corrected = problem.corrections(problem.solve()).log_evidence
        errors.append(float(corrected - exact))
    assert abs(errors[0]) < 1e-2 and abs(errors[1]) < 0.2 * abs(errors[0]) + 1e-6


def test_the_law_has_the_density_of_all_labels():
    problem = posed(0.2)
    law = problem.law()
    z = np.random.default_rng(3).standard_normal(law.dimension)
    U, _ = law.order_parameters(jnp.asarray(z))
    covariance = np.asarray(problem.operator.kernel(U[0])) + 0.2 * np.eye(P)
    exact = density(problem.Y, covariance)
    assert np.isclose(law.log_likelihood(jnp.asarray(z)), exact, rtol=1e-12)


def test_each_answer_is_that_of_all_examples():
    """Examples with input and label zero fill the features: nothing is compressed."""
    problem, none = posed(0.3, examples=16), 12 * 5
    many = bpkr.Problem(
        jnp.pad(problem.xi, ((0, none), (0, 17), (0, 0))),
        jnp.pad(problem.Y, (0, none)),
        heads=HEADS,
        width=10,
        temperature=0.3,
        variances=(20 / 3, 1, 1, 1),
    )
    assert problem.compressed is not None and many.compressed is None
    test = jnp.asarray(np.random.default_rng(2).standard_normal((4, INPUTS, 4)))
    padded = jnp.pad(test, ((0, 0), (0, 17), (0, 0)))
    one, other = problem.solve(), many.solve()
    better, direct = problem.corrections(one), many.corrections(other)
    pads = none * np.log(2 * np.pi * 0.3) / 2
    pairs = [
        (one.U[0], other.U[0]),
        (one.action, other.action - none * np.log(0.3) / 10),
        (better.U[0], direct.U[0]),
        (better.U_a_std, direct.U_a_std),
        (better.log_evidence, direct.log_evidence + pads),
        (problem.evidence_correction(one), many.evidence_correction(other)),
        (one.overlap()[:12], other.overlap()[:12]),
        (problem.theory(one).kernel, many.theory(other).kernel[:16, :16]),
    ]
    for f, g in ((one, other), (better, direct)):
        pairs += zip(f.predict(test), g.predict(padded))
    for a, b in pairs:
        assert np.allclose(a, b, rtol=1e-8, atol=1e-8)
    assert np.isclose((one.overlap() ** 2).sum(), 1, rtol=1e-12)


def test_programs_do_not_depend_on_the_number_of_examples():
    def programs(examples):
        problem = posed(examples=examples)
        fitted = problem.fitted().rows
        return jax.make_jaxpr(saddle.derivatives)(fitted, saddle.starting_point(fitted))

    assert str(programs(30)) == str(programs(300))


def test_examples_up_to_the_rank_are_left_as_they_are():
    assert posed(examples=12).compressed is None
    assert posed(examples=13).rows.shape == (12, INPUTS, 4, 1)


def test_a_learning_curve_has_no_rows_for_examples():
    """`truncated` takes examples of the problem, below and above the rank."""
    whole = posed(0.3, examples=40)
    for size in (5, 12, 30):
        part = curves.truncated(whole, size)
        alone = whole.among(np.arange(size)).solve()
        assert np.allclose(part.solve().U[0], alone.U[0], rtol=0, atol=1e-9)
        assert part.rows.shape[0] == 12


def line(points=100):
    """ReLU kernels of points on a line, full rank at a condition number of 1e9."""
    x = np.linspace(-1, 1, points)
    xi = np.stack([x, np.ones(points)], 1)[:, :, None]
    return bpkr.activation_kernels("relu", xi, heads=(1,)), np.sign(np.sin(5 * x))


@pytest.mark.parametrize("T", (1e-2, 1e-4, 1e-6))
def test_ill_conditioned_kernels_are_solved_in_their_eigenvectors(T):
    """One path: S is a function of one U, minimised in the eigenvalues of G.

    The rounding of an entry, 8 eps, over the smallest eigenvalue bounds the error.
    """
    kernels, Y = line()
    solution = bpkr.Problem(kernels, Y, heads=(1,), width=10, temperature=T).solve()
    G = np.asarray(kernels.blocks[0, 0])
    values, V = np.linalg.eigh(G)
    squares = (V.T @ Y) ** 2

    def action(log_U):
        K = np.exp(log_U) * values + T
        U = np.exp(log_U)
        return 2 * np.sqrt(U) - log_U + (np.log(K) + squares / K).sum() / 10

    best: Any = optimize.minimize_scalar(
        action, bracket=(0.0, 10.0), options={"xtol": 1e-10}
    )
    assert solution.converged
    # a minimum is known to the root of the rounding of S, about 1e-7
    assert abs(np.log(float(solution.U[0][0, 0])) - best.x) < 1e-5


def duplicates(noise):
    """Kernels of twenty examples and twenty near them, with labels of their own."""
    g = np.random.default_rng(5)
    first = g.standard_normal((20, 30, 2))
    xi = np.concatenate([first, first + noise * g.standard_normal(first.shape)])
    Y = g.standard_normal(40)
    kernels = bpkr.activation_kernels("linear", xi, heads=(2,))
    return xi, kernels, Y


@pytest.mark.parametrize("noise", (1e-9, 1e-7))
@pytest.mark.parametrize("T", (1e-4, 1e-6))
def test_kernels_of_near_duplicates_have_the_numbers_of_the_inputs(noise, T):
    """Inputs resolve what kernels round: examples of zeros let them be compressed."""
    xi, kernels, Y = duplicates(noise)
    posed_of = partial(bpkr.Problem, heads=(2,), width=10, temperature=T)
    problem = posed_of(kernels, Y)
    solution = problem.solve()
    xi, Y = np.pad(xi, ((0, 25), (0, 0), (0, 0))), np.pad(Y, (0, 25))
    exact = posed_of(xi, Y).solve()
    assert solution.converged and exact.converged
    bound = rounding_of_kernels(problem, solution.U[0]) + saddle.TOLERANCE
    assert abs(solution.U[0] - exact.U[0]).max() < bound


@pytest.mark.parametrize("noise, T", ((1e-9, 1e-8), (1e-7, 1e-7), (1e-6, 1e-7)))
def test_a_refusal_names_the_lowest_temperature_that_works(noise, T):
    _, kernels, Y = duplicates(noise)
    problem = bpkr.Problem(kernels, Y, heads=(2,), width=10, temperature=T)
    refused = problem.solve()
    assert not refused.converged and np.isnan(refused.U[0]).all()
    named = saddle.lowest_temperature(problem)
    assert named is not None
    assert f"T = {named:.2g} works" in refused.reason
    assert problem.at(temperature=float(f"{named:.2g}")).solve().converged
    assert not problem.at(temperature=named / 2).solve().converged
