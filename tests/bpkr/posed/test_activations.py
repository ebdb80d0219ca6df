"""Kernels that are given: those of the linear network, and of nonlinear blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from statmech_attn import bpkr
from statmech_attn.bpkr.grids import training_sets
from statmech_attn.montecarlo import weight_space


P, Q, INPUTS, HEADS, SKIP = 6, 5, 4, (2,), 0.6
NETWORK = {"heads": HEADS, "width": 9, "temperature": 0.2}


@pytest.fixture(scope="module")
def data():
    """Attentioned inputs of three paths, labels, and test inputs."""
    rng = np.random.default_rng(5)
    xi, xi_test = rng.normal(size=(P, INPUTS, 3)), rng.normal(size=(Q, INPUTS, 3))
    return jnp.asarray(xi), jnp.asarray(rng.normal(size=P)), jnp.asarray(xi_test)


@pytest.fixture(scope="module")
def linear(data):
    """The linear network with a skip by its inputs, and by its kernels."""
    xi, Y, _ = data
    kernels = bpkr.activation_kernels("linear", xi, heads=HEADS, skip=SKIP)
    return [bpkr.Problem(x, Y, skip=SKIP, **NETWORK) for x in (xi, kernels)]


@pytest.fixture(scope="module")
def tests(data):
    """Of both."""
    xi, _, xi_test = data
    cross = bpkr.activation_kernels("linear", xi_test, xi, heads=HEADS, skip=SKIP)
    return [xi_test, cross]


@pytest.mark.slow
def test_kernels_of_the_linear_network_give_its_numbers(linear, tests):
    """To 1e-12: saddle point, predictors, corrections, limit and exact law."""
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    answers = []
    for problem, test in zip(linear, tests):
        solution = problem.solve()
        better, theory = problem.corrections(solution), problem.theory(solution)
        law = problem.law()
        answers.append(
            [
                *solution.U,
                solution.U_a,
                solution.action,
                *better.U,
                better.log_evidence,
                *solution.predict(test),
                *better.predict(test),
                theory.mean(test),
                theory.kernel,
                theory.silenced([(0, 1)]).mean(test),
                *problem.gaussian_process().predict(test),
                law.log_likelihood(jnp.full(law.dimension, 0.1)),
            ]
        )
    for by_inputs, by_kernels in zip(*answers, strict=True):
        close(by_inputs, by_kernels)


@pytest.mark.slow
def test_learning_curves_take_kernels(linear, tests):
    curve = lambda problem, test: bpkr.learning_curve(
        jax.random.key(0), problem, test, jnp.ones(Q), examples=[2, 6], training_sets=1
    )
    by_inputs, by_kernels = map(curve, linear, tests)
    for name in ("error", "variance", "accuracy"):
        np.testing.assert_allclose(by_inputs[name], by_kernels[name], rtol=1e-12)
    assert "rank" in by_inputs and "rank" not in by_kernels


def test_a_heuristic_is_called_one(linear, data):
    xi, Y, _ = data
    relu = bpkr.activation_kernels("relu", xi, heads=HEADS, skip=SKIP)
    problem = bpkr.Problem(relu, Y, skip=SKIP, **NETWORK)
    words = "a heuristic: kernels are not of a linear network"
    for result in (problem, problem.solve()):
        assert words in repr(result) and bool(result.to_dataset().heuristic)
    for exact in linear:
        assert words not in repr(exact) and "heuristic" not in exact.to_dataset()


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_activation_kernels_are_means_over_random_weights(activation, data):
    """Of 100 000 rows of V_0, in numpy; 54 pairs of paths and inputs."""
    xi, xi_test = np.asarray(data[0][:2]), np.asarray(data[2][:1])
    variance, count = 1.7, 100_000
    phi = {"relu": lambda u: np.maximum(u, 0), "erf": scipy.special.erf}[activation]
    rows = np.random.default_rng(1).normal(size=(count, INPUTS))
    c = np.array([1, 1 / np.sqrt(2), 1 / np.sqrt(2)])  # the skip, then two heads
    features = lambda x: (
        c * phi(np.sqrt(variance / INPUTS) * np.einsum("ni,pia->npa", rows, x))
    )
    options = {"heads": HEADS, "skip": SKIP, "variance": variance}
    train = bpkr.activation_kernels(activation, xi, **options)
    cross = bpkr.activation_kernels(activation, xi_test, xi, **options)
    here, there = features(xi), features(xi_test)
    z = []
    for left, right, found in ((here, here, train), (there, here, cross)):
        products = np.einsum("npa,nqb->nabpq", left, right)
        stderr = products.std(axis=0) / np.sqrt(count)
        z.append((np.asarray(found.blocks) - products.mean(axis=0)) / stderr)
    z = np.concatenate([x.ravel() for x in z])
    assert np.abs(z).max() < 4.5 and np.sqrt(np.mean(z**2)) < 1.5
    own = bpkr.activation_kernels(activation, xi_test, **options).blocks
    np.testing.assert_allclose(cross.own, own[:, :, [0], [0]], rtol=1e-14)


def test_weight_space_has_the_nonlinear_network(data):
    """f of whitened weights, layer by layer in numpy."""
    xi, Y, xi_test = data
    problem = bpkr.Problem(
        xi,
        Y,
        skip=SKIP,
        variances=[1.7, 0.8, 1.2],
        heads=HEADS,
        width=9,
        temperature=0.2,
    )
    posterior = weight_space.posterior(problem, activation="relu")

    @jax.jit
    def drawn(key):
        z = posterior.draw_start(key)
        inputs = posterior.rotated_inputs(xi_test)
        outputs = posterior.training_outputs(z), posterior.predict(z, inputs)
        return posterior.weights(z), outputs

    weights, outputs = drawn(jax.random.key(2))
    phi = lambda u: np.maximum(u, 0)
    a = np.asarray(weights.a)
    rows = [SKIP * a] + [a @ V / np.sqrt(2 * 9) for V in np.asarray(weights.V[0])]
    V_0 = np.asarray(weights.V_0) / np.sqrt(INPUTS)
    f = lambda x: sum(
        phi(np.asarray(x)[:, :, path] @ V_0.T) @ w / np.sqrt(9)
        for path, w in enumerate(rows)
    )
    for found, x in zip(outputs, (xi, xi_test), strict=True):
        np.testing.assert_allclose(found, f(x), rtol=1e-10)


def test_examples_that_are_none_have_no_kernel(linear, tests):
    """Neither among themselves nor with test inputs, of which they tell nothing."""
    part = training_sets.truncated(linear[1], 4)
    assert not part.xi.blocks[:, :, 4:].any() and not part.xi.blocks[..., 4:].any()
    padded, alone = part, linear[1].subset(np.arange(4))
    for one, other in zip(
        padded.theory(jnp.eye(3)).predict(tests[1]),
        alone.theory(jnp.eye(3)).predict(tests[1].subset(np.arange(4))),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def block(*shape):
    return np.ones(shape)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bpkr.Kernels(block(2, 3, 4, 4)), r"\(paths, paths, Q, P\).*\(2, 3"),
        (lambda: bpkr.Kernels(block(2, 2, 3, 4)), "own: kernels between other inputs"),
        (lambda: bpkr.Kernels(block(1, 1, 3, 4), block(1, 1, 4)), "own must have sha"),
        (lambda: bpkr.Kernels(np.nan * block(1, 1, 2, 2)), "blocks must be finite"),
    ],
)
def test_impossible_kernels_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_kernels_that_do_not_fit_a_problem_are_refused(linear, tests, data):
    xi, Y, xi_test = data
    by_inputs, by_kernels = linear
    good = by_kernels.xi
    pose = lambda x, **changes: bpkr.Problem(
        x, Y, **(NETWORK | {"skip": SKIP} | changes)
    )
    blocks = np.array(good.blocks)
    blocks[0, 1, 0, 0] += 1.0
    skew = bpkr.Kernels(blocks)
    cases = [
        (lambda: pose(good, skip=None), r"must have shape \(2, 2, P, P\)"),
        (lambda: pose(skew), "symmetric.* they differ by up to 1"),
        (lambda: pose(good, variances=[2.0, 1, 1]), "variances: kernels that are giv"),
        (lambda: pose(good, form="factors"), "form: kernels that are given contain"),
        (lambda: by_kernels.gaussian_process().mean(xi_test), "got an array"),
        (lambda: by_kernels.gaussian_process().mean(tests[1].subset([0])), "got .3, 3"),
        (lambda: by_inputs.gaussian_process().mean(tests[1]), "needs attentioned inp"),
        (lambda: weight_space.posterior(by_kernels), "weight space needs attention"),
        (lambda: weight_space.posterior(by_inputs, activation="tanh"), "one of relu"),
        (
            lambda: bpkr.activation_kernels("tanh", xi, heads=HEADS),
            "activation must be",
        ),
        (lambda: bpkr.activation_kernels("relu", xi, heads=HEADS), r"\(P, N_0, 2\)"),
    ]
    for ask, words in cases:
        with pytest.raises(ValueError, match=words):
            ask()
