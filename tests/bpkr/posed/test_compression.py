import re
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, optimize, stats

from statmech_attn import bpkr
from statmech_attn.bpkr.grids import training_sets
from statmech_attn.bpkr.posed import compression, kernel_forms, rounding
from statmech_attn.bpkr.posed.compression import EPSILON
from statmech_attn.bpkr.posed.rounding import (
    KNOWN,
    rounding_of_kernels,
    rounding_of_predictor,
)
from statmech_attn.bpkr.theory import saddle
from statmech_attn.bpkr.theory.action import energy as energy_of


P, INPUTS, HEADS = 60, 3, (2, 2)


def posed(T=0.1, *, outputs=None, examples=P, seed=11, width=10):
    """More examples than the rank 12 of their kernel, labels without structure."""
    g = np.random.default_rng(seed)
    xi = g.standard_normal((examples, INPUTS, 4))
    Y = g.standard_normal((examples, outputs) if outputs else examples)
    return bpkr.Problem(xi, Y, heads=HEADS, width=width, temperature=T)


def test_the_action_is_that_of_all_examples():
    """E of an (n, n) kernel; a factor of the constant terms would show."""
    problem = posed(0.3, outputs=2)
    d = 4 * problem.outputs
    A = np.random.default_rng(0).standard_normal((d, d))
    U = A @ A.T / d
    K, y = np.asarray(problem.operator.kernel(jnp.asarray(U))), np.asarray(problem.y)
    B = K + 0.3 * np.eye(len(y))
    E = np.linalg.slogdet(B)[1] + y @ np.linalg.solve(B, y)
    chain = (U, np.eye(2 * problem.outputs)), np.eye(problem.outputs)

    @jax.jit
    def parts(U, U_a):
        of_rows = problem.rows.operator.kernel(U[0])
        energy = energy_of(of_rows, problem.temperature, problem.rows.y)
        return problem.action(U, U_a), problem.rows.action(U, U_a), energy

    whole, rows, energy = map(float, parts(*chain))
    # n eps times the condition number of B and the size of E
    tolerance = len(y) * 2e-16 * np.linalg.cond(B) * abs(E)
    assert problem.rows.y.size == 12 * problem.outputs
    assert abs((whole - rows) * 10 + energy - E) < tolerance


@pytest.mark.parametrize("T", (1e-3, 1e-10))
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
    scaled = jax.jit(
        lambda c: rows.action([c * U for U in solution.U], c * solution.U_a)
    )
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


def test_the_law_has_the_density_of_all_labels():
    problem = posed(0.2, outputs=2)
    law = problem.law()
    z = np.random.default_rng(3).standard_normal(law.dimension)
    both = jax.jit(lambda z: (law.order_parameters(z)[0][0], law.log_likelihood(z)))
    U, value = both(z)
    K = np.asarray(problem.operator.kernel(U))
    exact = density(problem.y, K + 0.2 * np.eye(len(K)))
    assert np.isclose(value, exact, rtol=1e-12)


def compared(outputs, heads=HEADS):
    """A problem with rows, and one that has none although its numbers are the same.

    Examples with input and label zero fill the features: nothing is compressed.
    """
    paths = int(np.prod(heads))
    g, examples, features = np.random.default_rng(11), 4 * paths, 5 * paths
    xi = g.standard_normal((examples, INPUTS, paths))
    Y = g.standard_normal((examples, outputs) if outputs else examples)
    pads = ((0, paths * (features - 1) - examples), (0, features - INPUTS), (0, 0))
    posed = partial(bpkr.Problem, heads=heads, width=10, temperature=0.3)
    many = posed(
        np.pad(xi, pads),
        np.pad(Y, (pads[0], *[(0, 0)] * (Y.ndim - 1))),
        variances=(features / INPUTS, *[1] * (len(heads) + 1)),
    )
    problem = posed(xi, Y)
    assert problem.compressed is not None and many.compressed is None
    test = jnp.asarray(g.standard_normal((4, INPUTS, paths)))
    return problem, many, test, jnp.pad(test, ((0, 0), *pads[1:]))


def of_pads(problem, many, T=0.3):
    """ln of the density of labels that are zero and have no input."""
    return -(many.Y.size - problem.Y.size) * np.log(2 * np.pi * T) / 2


@pytest.mark.slow
def test_each_answer_is_that_of_all_examples():
    problem, many, test, padded = compared(2, (2,))
    one, other = problem.solve(), many.solve()
    better, direct = problem.corrections(one), many.corrections(other)
    n, pads = problem.y.size, of_pads(problem, many)
    none = many.y.size - n
    rank = problem.rows.y.size
    pairs = [
        (one.U[0], other.U[0]),
        (one.action, other.action - none * np.log(0.3) / 10),
        (better.U[0], direct.U[0]),
        (better.U_a_std, direct.U_a_std),
        (better.log_evidence, direct.log_evidence - pads),
        (problem.evidence_correction(one), many.evidence_correction(other)),
        (one.overlap()[:rank], other.overlap()[:rank]),
        (problem.theory(one).kernel, many.theory(other).kernel[:n, :n]),
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


@pytest.mark.parametrize("T", (1e-3, 1e-1))
def test_a_bound_on_rounding_needs_no_eigenvalues(T, monkeypatch):
    """Above the sum over eigenvalues, and far enough below what is allowed."""
    g = np.random.default_rng(0)
    R, Y = g.standard_normal((50, 80)) / 80**0.5, 3 * g.standard_normal((50, 1))
    values, V = np.linalg.eigh(R @ R.T)
    squares = ((V.T @ Y) ** 2).sum(axis=1)
    exact = compression._gradient_error(values[::-1], squares[::-1], T, 4.0)
    exact += EPSILON * values[-1] * (1 / (values + T)).sum() / 4
    assert exact <= compression._bounded(R @ R.T, Y, T, 4.0)
    monkeypatch.setattr(np.linalg, "eigh", None)
    problem = partial(bpkr.Problem, R[:, :, None], Y[:, 0], heads=(1,), width=4)
    assert problem(temperature=T).compressed is None


def test_single_precision_bounds_rounding_where_double_does():
    """U reaches 280 and one triangle of K has a norm of 6.5, so that T / U is ten times
    rounding above T = 2e-3.
    """
    g = np.random.default_rng(0)
    R, Y = g.standard_normal((50, 80)) / 80**0.5, 3 * g.standard_normal((50, 1))
    inputs = kernel_forms.PathFactors(jnp.asarray(R[:, :, None]), jnp.ones(1))
    temperatures = 10.0 ** np.arange(-6, 0)
    single = [
        compression._bounded_in_single(inputs, 1.0, Y, T, 4.0) for T in temperatures
    ]
    double = [compression._bounded(R @ R.T, Y, T, 4.0) for T in temperatures]
    assert single == [False] * 4 + [True] * 2
    assert [bound <= compression.INPUT_ROUNDING_LIMIT for bound in double] == [
        False
    ] + [True] * 5


def line(points=100):
    """ReLU kernels of points on a line, full rank at a condition number of 1e9."""
    x = np.linspace(-1, 1, points)
    xi = np.stack([x, np.ones(points)], 1)[:, :, None]
    return bpkr.activation_kernels("relu", xi, heads=(1,)), np.sign(np.sin(5 * x))


@pytest.mark.slow
@pytest.mark.parametrize("T", (1e-2, 1e-6))
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


@pytest.mark.parametrize("noise", (2.0**-30, 2.0**-24, 2.0**-17))
@pytest.mark.parametrize("T", (1e-2, 1e-8))
def test_near_duplicates_are_solved_to_rounding(noise, T):
    """Rows of a Hadamard matrix, once as they are and once with a little of another.

    All is exact in binary, G has blocks [[1, 1], [1, 1 + noise^2]], and the slope of S
    in ln U vanishes at U.  Turned rows are known to eps, which changes the slope by
    2 eps U |alpha| |X^T alpha| / N for each example.
    """
    H = linalg.hadamard(16).astype(float)
    xi = np.concatenate([H[:4], H[:4] + noise * H[4:8]])[:, :, None]
    Y = np.random.default_rng(6).standard_normal(8)
    problem = bpkr.Problem(xi, Y, heads=(1,), width=10, temperature=T)
    assert problem.compressed is not None or T == 1e-2
    upper = (2 + noise**2 + np.sqrt(4 + noise**4)) / 2
    values = np.repeat([upper, noise**2 / upper], 4)
    size = np.hypot(1, upper - 1)
    squares = np.concatenate([Y[:4] + (upper - 1) * Y[4:], (upper - 1) * Y[:4] - Y[4:]])
    squares = (squares / size) ** 2

    def slope(log_U):
        K = np.exp(log_U) * values
        of_labels = (K / (K + T) - K * squares / (K + T) ** 2).sum()
        return np.exp(log_U / 2) - 1 + of_labels / 10

    solution = problem.solve()
    assert solution.converged
    log_U = float(np.log(solution.U[0][0, 0]))
    U, alpha = np.exp(log_U), squares / (np.exp(log_U) * values + T) ** 2
    rounding = 2 * EPSILON * U * np.sqrt(alpha.sum() * (values * alpha).sum()) / 10
    expected = optimize.brentq(slope, log_U - 1, log_U + 1, xtol=1e-15)
    curvature = np.exp(log_U / 2) / 2
    assert abs(log_U - expected) < (saddle.TOLERANCE + 8 * rounding) / curvature


@pytest.mark.slow
def test_where_no_answer_changes_examples_are_left_as_they_are():
    """Labels of size one: at T = 0.1 duplicates need no rows, far below they do."""
    xi, _, Y = duplicates(1e-9)
    at = partial(bpkr.Problem, xi, Y, heads=(2,), width=10)
    high, low = at(temperature=0.1), at(temperature=1e-6)
    assert high.compressed is None and low.compressed is not None
    assert high.at(temperature=1e-6).compressed is not None
    assert low.at(temperature=0.1).compressed is None
    again = low.at(temperature=0.1).solve()
    assert (again.U[0] == high.solve().U[0]).all()
    alone = bpkr.Problem(xi[:20], Y[:20], heads=(2,), width=10, temperature=1e-6)
    assert alone.compressed is None  # no duplicates
    assert (training_sets.truncated(low, 20).solve().U[0] == alone.solve().U[0]).all()


@pytest.mark.slow
def test_rows_of_duplicates_have_the_answers_of_the_examples():
    """At a temperature where both ways are possible: T = 1e-3."""
    xi, _, _ = duplicates(1e-9)
    g = np.random.default_rng(8)
    Y = g.standard_normal((40, 2))
    problem = bpkr.Problem(xi, Y, heads=(2,), width=10, temperature=1e-3)
    whole = eqx.tree_at(
        lambda p: p.compressed, problem, None, is_leaf=lambda x: x is None
    )
    assert problem.compressed is not None
    test = jnp.asarray(g.standard_normal((5, 30, 2)))
    one, other = problem.solve(), whole.solve()
    better, direct = problem.corrections(one), whole.corrections(other)
    z = jnp.asarray(0.1 * g.standard_normal(problem.law().dimension))
    pairs = [
        (one.U[0], other.U[0]),
        (one.action, other.action),
        (one.overlap()[:20], other.overlap()[:20]),  # the others are near zero
        (better.U[0], direct.U[0]),
        (better.log_evidence, direct.log_evidence),
        (problem.law().log_likelihood(z), whole.law().log_likelihood(z)),
        *zip(one.predict(test), other.predict(test)),
        *zip(better.predict(test), direct.predict(test)),
    ]
    for a, b in pairs:
        assert np.allclose(a, b, rtol=1e-7, atol=1e-7 * abs(b).max())


def duplicates(noise):
    """Kernels of twenty examples and twenty near them, with labels of their own."""
    g = np.random.default_rng(5)
    first = g.standard_normal((20, 30, 2))
    xi = np.concatenate([first, first + noise * g.standard_normal(first.shape)])
    Y = g.standard_normal(40)
    kernels = bpkr.activation_kernels("linear", xi, heads=(2,))
    return xi, kernels, Y


@pytest.mark.parametrize("T", (1e-4, 1e-6))
def test_kernels_of_near_duplicates_have_the_numbers_of_the_inputs(T):
    """Inputs resolve what kernels round: examples of zeros let them be compressed."""
    xi, kernels, Y = duplicates(1e-9)
    posed_of = partial(bpkr.Problem, heads=(2,), width=10, temperature=T)
    problem = posed_of(kernels, Y)
    solution = problem.solve()
    xi, Y = np.pad(xi, ((0, 25), (0, 0), (0, 0))), np.pad(Y, (0, 25))
    exact = posed_of(xi, Y).solve()
    assert solution.converged and exact.converged
    bound = rounding_of_kernels(problem, solution.U[0]) + saddle.TOLERANCE
    assert abs(solution.U[0] - exact.U[0]).max() < bound


@pytest.mark.parametrize(
    "given, noise, T",
    (
        (True, 1e-9, 1e-8),
        (False, 1e-9, 1e-10),
    ),
)
def test_a_refusal_names_the_lowest_temperature_that_works(given, noise, T):
    xi, kernels, Y = duplicates(noise)
    inputs = kernels if given else xi
    problem = bpkr.Problem(inputs, Y, heads=(2,), width=10, temperature=T)
    refused = problem.solve()
    assert not refused.converged and np.isnan(refused.U[0]).all()
    named = saddle.lowest_temperature(problem)
    assert named is not None and float(f"{named:.2g}") == named
    assert f"T = {named:.2g} works" in saddle.unsolved(refused)
    assert problem.at(temperature=named).solve().converged
    assert not problem.at(temperature=named / 2).solve().converged


@pytest.mark.parametrize(
    "decided, ask, T",
    (
        ("f", lambda p: p.gaussian_process(), 1e-12),
        ("f", lambda p: p.theory(2 * jnp.eye(2)), 1e-12),
        ("the likelihood", lambda p: p.law(), 1e-8),
    ),
)
def test_rounding_of_kernels_is_refused_wherever_it_decides(decided, ask, T):
    """Inputs, which are not rounded, have these answers."""
    xi, kernels, Y = duplicates(1e-9)
    problem = bpkr.Problem(kernels, Y, heads=(2,), width=10, temperature=T)
    ask(bpkr.Problem(xi, Y, heads=(2,), width=10, temperature=T))
    with pytest.raises(ValueError, match=f"kernels decides {decided} at T = ") as error:
        ask(problem)
    (named,) = re.findall("T = ([^ ]*) works", str(error.value))
    ask(problem.at(temperature=float(named)))
    with pytest.raises(ValueError, match="rounding of the kernels decides"):
        ask(problem.at(temperature=float(named) / 2))


@pytest.mark.parametrize("noise, T", ((1e-9, 1e-6), (1e-9, 1e-10), (1e-5, 1e-11)))
def test_f_of_kernels_that_are_rounded_is_that_of_inputs(noise, T):
    """To the part of |Y| that the refusal is about, and so its variance."""
    xi, kernels, Y = duplicates(noise)
    posed_of = partial(bpkr.Problem, heads=(2,), width=10, temperature=T)
    problem = posed_of(kernels, Y)
    f = problem.gaussian_process().predict(kernels)
    exact = posed_of(xi, Y).gaussian_process().predict(jnp.asarray(xi))
    bound = rounding_of_predictor(problem, jnp.eye(2))
    assert bound < KNOWN and abs(f.mean - exact.mean).max() < bound * abs(Y).max()
    assert abs(f.variance / exact.variance - 1).max() < bound


def test_a_solution_whose_predictor_is_refused_says_so():
    """Labels in the range of a kernel that is singular to rounding: f is not known."""
    r = abs(np.subtract.outer(np.arange(8), np.arange(8))) * 1e-3
    kernels = bpkr.Kernels(jnp.asarray((1 + r + r**2 / 3) * np.exp(-r))[None, None])
    Y = np.asarray(kernels.blocks)[0, 0].mean(axis=0)
    problem = bpkr.Problem(kernels, Y, heads=(1,), width=1000, temperature=0.0)
    solution = problem.solve()
    with pytest.raises(ValueError, match="rounding of the kernels decides f") as error:
        solution.predict(kernels)
    assert solution.reason == f"converged, but {error.value}"


def test_the_lowest_temperature_is_one_that_was_tried():
    lowest = rounding.lowest_of(lambda T: T > 3e-5, 1e-7, 1e-3)
    assert lowest == pytest.approx(5e-5)
