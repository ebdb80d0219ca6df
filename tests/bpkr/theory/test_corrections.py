import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr.posed.newton import ITERATIONS
from statmech_attn.bpkr.problem import Problem


HEADS = (2, 1, 2)


@pytest.fixture(scope="module")
def data(small):
    """Seven examples to learn and three to test."""
    x, heads, y = small
    xi = bpkr.attentioned_inputs(x, heads)
    return xi[:7], xi[7:], 4 * y[:7]


def one_path(N, examples):
    """Exact means of U_1 and U_a and ln p(Y) where K = U 1 and all labels are 3/2.

    U = u v, N u and N v chi^2 with N degrees of freedom: quadrature in ln u and ln v.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    log_u, weights = 12 * np.sqrt(2 / N) * nodes, weights
    prior = weights * np.exp(N / 2 * (log_u - np.exp(log_u) + 1))
    prior /= prior.sum()
    U = np.exp(log_u[:, None] + log_u)
    logs = -examples / 2 * (np.log(2 * np.pi * (U + 0.1)) + 1.5**2 / (U + 0.1))
    joint = prior[:, None] * prior * np.exp(logs - logs.max())
    U_a = (joint * np.exp(log_u)[:, None]).sum() / joint.sum()
    evidence = logs.max() + np.log(joint.sum())
    return (joint * U).sum() / joint.sum(), U_a, evidence


def one_path_problem(N, P, **given):
    xi, Y = np.sqrt(P) * jnp.eye(P)[:, :, None], jnp.full(P, 1.5)
    return Problem(xi, Y, heads=(1,), width=N, temperature=0.1, **given)


def errors(N, P):
    """Errors of (U, U_a, ln p) at the saddle point, and with their corrections."""
    problem = one_path_problem(N, P)
    saddle = problem.solve()
    better = problem.corrections(saddle)
    log_p = better.log_evidence
    next_order = log_p + problem.evidence_correction(saddle)
    first = np.array([saddle.U[0][0, 0], saddle.U_a, log_p])
    second = np.array([better.U[0][0, 0], better.U_a, next_order])
    return np.abs(first - one_path(N, P)), np.abs(second - one_path(N, P))


@pytest.mark.slow
def test_orders_of_one_path_at_fixed_examples():
    """The saddle point is off by 1/N^2: its first order is exact."""
    wide, wider = errors(1280, 4), errors(2560, 4)
    # The next order changes the slope by P^2 / N and smaller.
    assert np.abs(np.log2(wide[0] / wider[0]) - 2).max() < 0.1
    assert (wide[1] < wide[0] / 100).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_corrected_means_are_those_of_the_exact_law(data):
    xi, test, y = data
    Y = jnp.stack([y, y[::-1]], axis=1)
    problem = Problem(
        xi,
        Y,
        heads=HEADS,
        width=(40, 30, 50, 60),
        temperature=0.2,
        variances=(1.0, 0.5, 2.0, 1.5, 0.8),
    )
    saddle = problem.solve()
    better = problem.corrections(saddle)
    draws = problem.posterior(jax.random.key(0), draws=1500)
    exact = draws.predict(test)
    found, moved = [], []
    for U, first, true in zip(
        (*better.U, better.U_a), (*saddle.U, saddle.U_a), draws.summary
    ):
        size = np.abs(U - first).max()
        # What is left out is smaller than the correction by another 1/N.
        allowed = 4.5 * true.stderr + 5 * size / 30
        found.append((np.abs(U - true.mean) / allowed).max())
        moved.append(size / true.stderr.max())
    assert max(found) < 1
    assert max(moved) > 5  # the saddle point itself is seen to be off
    prediction = better.predict(test)
    shift = np.abs(prediction.mean - saddle.predict(test).mean).max()
    allowed = 4.5 * exact.mean_stderr + 5 * shift / 30
    assert (np.abs(prediction.mean - exact.mean) < allowed).all()
    spread = np.abs(prediction.variance - exact.variance)
    assert (spread < 4.5 * exact.variance_stderr + 0.05 * exact.variance).all()


@pytest.mark.slow
def test_a_saddle_point_known_less_well_is_accepted():
    """Of a solver with a wide tolerance, and with kernels of another form."""
    problem = one_path_problem(20, 4)
    rough = problem.solve(solver=bpkr.NewtonSolver(tolerance=0.1))
    assert float(rough.gradient_norm) > 1e-3
    problem.corrections(rough)
    full, factors = (one_path_problem(20, 4, form=f) for f in ("kernels", "factors"))
    one, two = (p.corrections(full.solve()) for p in (full, factors))
    for a, b in zip(jax.tree.leaves(one.U), jax.tree.leaves(two.U)):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused(data):
    xi, test, y = data
    problem = Problem(xi, y, heads=HEADS, width=3, temperature=0.1)
    narrow = problem.solve()  # U_1 has the size 4
    assert narrow.outside_support
    assert not problem.at(width=4).solve().outside_support
    with pytest.raises(ValueError, match="at least"):
        problem.corrections(narrow)
    wide = problem.at(width=9)
    solution = wide.solve()
    lost = eqx.tree_at(lambda s: s.result, solution, jnp.asarray(ITERATIONS))
    with pytest.raises(ValueError, match="iterations used up"):
        wide.corrections(lost)
    with pytest.raises(ValueError, match="xi_test must have shape"):
        wide.corrections(solution).predict(test[:, :2])
    small = Problem(xi, y, heads=HEADS, width=9, temperature=0.1, memory_limit=2**15)
    with pytest.raises(ValueError, match="kernels need .* more than memory_limit"):
        small.corrections(small.solve())


@pytest.mark.slow
def test_third_derivatives_that_do_not_fit_are_refused():
    problem = Problem(
        jnp.ones((2, 1, 16)),
        jnp.ones(2),
        heads=(16,),
        width=20,
        temperature=0.1,
        memory_limit=2**24,
    )
    # A saddle point as far as its numbers of unknowns and its result tell.
    solution = eqx.tree_at(lambda s: s.result, problem.solve(), jnp.asarray(0))
    with pytest.raises(ValueError, match="third derivatives in 137 unknowns"):
        problem.evidence_correction(solution)


G, B, LABEL, T = np.array([1.0, -0.7]), -0.6, 1.5, 0.1


def two_layers(N, examples):
    """Exact means of K = k 1 and U_a, and ln p(Y); widths 2 N, N, N.

    A head below a layer with one head and the skip b = -0.6: k = g U_1 g = u q v with
    N u ~ chi^2_N, q = (b g_0 + a g_1)^2 + g_1^2 t, a ~ N(0, 1 / N), N t ~ chi^2_{N - 1}
    and 2 N v ~ chi^2_{2 N}: quadrature over a, ln t, ln u, ln v.
    """
    nodes, weights = np.polynomial.legendre.leggauss(44)
    log, finer, a = (9 * s / np.sqrt(N) * nodes for s in (np.sqrt(2), 1.0, 1.0))
    exponents = [
        -N / 2 * a**2,
        ((N - 1) * log - N * np.exp(log)) / 2,
        N / 2 * (log - np.exp(log)),
        N * (finer - np.exp(finer)),
    ]
    prior = [weights * np.exp(e - e.max()) for e in exponents]
    joint = np.einsum("i,j,k,l->ijkl", *(p / p.sum() for p in prior))
    u, q = np.exp(log), (B * G[0] + a * G[1])[:, None] ** 2 + G[1] ** 2 * np.exp(log)
    k = np.einsum("ij,k,l->ijkl", q, u, np.exp(finer))
    logs = -examples / 2 * (np.log(2 * np.pi * (k + T)) + LABEL**2 / (k + T))
    joint *= np.exp(logs - logs.max())
    total = joint.sum()
    means = (joint * k).sum() / total, np.einsum("ijkl,k->", joint, u) / total
    return *means, logs.max() + np.log(total)


def errors_of_two_layers(N):
    """Of k, U_a and ln p(Y), at leading order and with 1/N; kernels, P = N / 2."""
    P = N // 2
    kernels = bpkr.Kernels(np.einsum("a,b,pq->abpq", G, G, np.eye(P)), linear=True)
    options = {"heads": (1, 1), "width": (2 * N, N, N), "skip": (0, B)}
    problem = bpkr.Problem(kernels, np.full(P, LABEL), temperature=T, **options)
    solution = problem.solve()
    better, exact = problem.corrections(solution), two_layers(N, P)
    next_order = better.log_evidence + problem.evidence_correction(solution)
    found = [(solution, better.log_evidence), (better, next_order)]
    return np.abs(
        [np.array([G @ s.U[0] @ G, s.U_a, log_p]) - exact for s, log_p in found]
    )


@pytest.mark.slow
def test_orders_with_a_skip_hold_at_unequal_widths_and_for_given_kernels():
    """At fixed P / N the leading order is off by 1/N, the next one by 1/N^2."""
    slopes = np.log2(errors_of_two_layers(40) / errors_of_two_layers(80))
    # The next order changes a slope by some 1/N of order one.
    assert np.abs(slopes - [[1], [2]]).max() < 4 / 40
