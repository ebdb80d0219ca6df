import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from statmech_attn import bpkr


P, INPUTS, HEADS = 60, 3, (2, 2)


def posed(T=0.1, *, outputs=None, examples=P, seed=11, width=10, **options):
    """More examples than the rank 12 of their kernel, labels without structure."""
    g = np.random.default_rng(seed)
    xi = g.standard_normal((examples, INPUTS, 4))
    Y = g.standard_normal((examples, outputs) if outputs else examples)
    problem = dict(heads=HEADS, width=width, temperature=T) | options
    return bpkr.Problem(xi, Y, **problem)


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
    """Scaling labels, temperature and prior variances together changes no U / s^2."""
    problem = posed(0.1)
    large = problem.at(Y=1e4 * problem.Y).solve()
    assert large.converged
    scaled = posed(0.1 / 1e8, variances=(1, 1, 1, 1)).solve()
    assert scaled.converged


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


def test_the_evidence_is_the_density_of_the_labels():
    """At wide widths ln p(Y) is that of a normal law of P dimensions, to order 1/N."""
    errors = []
    for width in (10**6, 10**7):
        problem = posed(0.1, width=width)
        K = np.asarray(problem.gaussian_process().kernel)
        exact = stats.multivariate_normal(np.zeros(P), K + 0.1 * np.eye(P))
        corrected = problem.corrections(problem.solve()).log_evidence
        errors.append(float(corrected - exact.logpdf(np.asarray(problem.Y))))
    assert abs(errors[0]) < 1e-2 and abs(errors[1]) < 0.2 * abs(errors[0]) + 1e-6


def test_the_law_has_the_density_of_all_labels():
    problem = posed(0.2)
    law = problem.law()
    z = np.random.default_rng(3).standard_normal(law.dimension)
    U, _ = law.order_parameters(jnp.asarray(z))
    covariance = np.asarray(problem.operator.kernel(U[0])) + 0.2 * np.eye(P)
    exact = stats.multivariate_normal(np.zeros(P), covariance).logpdf(problem.Y)
    assert np.isclose(law.log_likelihood(jnp.asarray(z)), exact, rtol=1e-12)
