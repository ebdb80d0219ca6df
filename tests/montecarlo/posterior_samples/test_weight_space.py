"""All weights of small networks: their posterior against the exact law of U."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal, stats

from statmech_attn import bpkr
from statmech_attn.bpkr import Problem
from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.posterior_samples.weight_sampling import (
    sample_weights,
    STRETCHES_HELD,
    StretchMeans,
)
from statmech_attn.reporting import Silent
from statmech_attn.statistics.diagnostics import summary


HEADS, VARIANCES, T = (2, 2), (0.7, 0.5, 2.0, 1.5), 0.2
STUDY = 'kind = "test"'


@pytest.fixture(scope="module")
def data():
    """Three inputs and labels; two of the inputs and three others as test inputs."""
    xi = normal(3, (6, 15, 4))
    return xi[:3], 2 * normal(4, (3,)), xi[1:]


def normal(seed, shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), float)


def problem(xi, Y, width, **given):
    settings = dict(heads=HEADS, temperature=T, variances=VARIANCES)
    return Problem(xi, Y, width=width, **settings | given)


def posterior_of(xi, Y, width):
    return weight_space.posterior(problem(xi, Y, width))


def sampled(posterior, xi_test, *, seed=1, **changes):
    settings = dict(
        method="weights",
        draws=1000,
        warmup=300,
        chains=4,
        block=100,
        folder=None,
        study=STUDY,
        report=Silent(),
    )
    y_test = jnp.ones(xi_test.shape[:1] + posterior.Y.shape[1:])
    return sample_weights(
        jax.random.key(seed),
        posterior,
        xi_test=xi_test,
        y_test=y_test,
        **settings | changes,
    )


def networks():
    """Three layers of 2, 1 and 2 heads on tokens, with unequal widths and variances."""
    heads = bpkr.heads_from_products([normal(11, (H, 6, 6)) for H in (2, 1, 2)])
    x = normal(12, (10, 6, 5))
    settings = dict(
        width=(4, 3, 5, 2),
        temperature=0.1,
        heads=(2, 1, 2),
        variances=(0.7, 0.5, 2.0, 1.3, 1.5),
    )
    return x, heads, settings


def test_contracted_paths_give_the_function_of_the_layers():
    x, heads, settings = networks()
    xi = jax.jit(bpkr.attentioned_inputs)(x, heads)
    Y = normal(13, (10,))
    posterior = weight_space.posterior(Problem(xi, Y, **settings))

    @jax.jit
    def of_both(key):
        z = posterior.draw_prior(key)
        weights = posterior.weights(z)
        f, U = bpkr.forward(weights, x, heads), bpkr.order_parameters(weights)
        predicted = posterior.predict(z, posterior.rotated_inputs(xi))
        outputs = posterior.training_outputs(z), predicted
        density = posterior.log_density(z)
        return z, f, U, outputs, posterior.order_parameters(z), density

    z, f, expected, outputs, order_parameters, density = of_both(jax.random.key(11))
    # Sums of some hundred terms of order one.
    close = dict(rtol=0, atol=1e-12)
    for found in outputs:
        np.testing.assert_allclose(found, f, **close)
    for U, other in zip(jax.tree.leaves(order_parameters), jax.tree.leaves(expected)):
        np.testing.assert_allclose(U, other, **close)
    log_density = stats.norm.logpdf(z).sum()
    log_density += stats.norm.logpdf(Y, f, np.sqrt(0.1)).sum()
    assert float(density) == pytest.approx(log_density, rel=1e-12)


@pytest.mark.parametrize(("rows", "rank"), ((300, 12), (300, 7), (5, 5)))
def test_principal_axes_are_the_right_singular_vectors(rows, rank):
    """More rows than columns, fewer, and rows that span less."""
    flat = np.asarray(normal(1, (rows, rank))) @ normal(2, (rank, 12))
    axes, found = weight_space.principal_axes(jnp.asarray(flat[:, :, None], float))
    assert found == rank
    close = dict(rtol=0, atol=1e-12 * np.linalg.norm(flat))
    np.testing.assert_allclose(axes.T @ axes, np.eye(12), **close)
    strengths = np.linalg.svd(flat, compute_uv=False)[:rank]
    along = np.linalg.norm(flat @ axes, axis=0)
    np.testing.assert_allclose(along[:rank], strengths, **close)
    np.testing.assert_allclose(along[rank:], 0, **close)


def test_principal_axes_need_the_memory_of_the_inputs():
    """600 examples of 64 paths; all left singular vectors would take 11 GiB."""
    flat = jax.ShapeDtypeStruct((600 * 64, 192), float)
    compiled = weight_space.right_singular_vectors.lower(flat).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 3 * flat.size * 8


def test_few_inputs_leave_dimensions_to_the_prior(data):
    """One example: V_0 acts on the four dimensions of its four paths only."""
    xi, Y, xi_test = data
    posterior = posterior_of(xi[:1], Y[:1], 3)
    assert posterior.free_directions == 11
    assert posterior.dimension == 3 * 4 + 2 * 2 * 3 * 3 + 3

    @jax.jit
    def of_both(key):
        z = posterior.draw_prior(key)
        weights = posterior.weights(z, key)
        inputs = posterior.rotated_inputs(xi_test)
        found = posterior.training_outputs(z), posterior.predict(z, inputs, key)
        given = xi[:1], xi_test
        return z, found, [bpkr.forward_paths(weights, xi) for xi in given]

    z, found, expected = of_both(jax.random.key(5))
    for f, of_layers in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, of_layers, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="give a key"):
        posterior.weights(z)


@pytest.mark.slow
@pytest.mark.statistical
def test_weights_of_the_prior_have_its_moments(data):
    """V_0 in all dimensions, the free ones included, and the other layers."""
    xi, Y, _ = data
    posterior = posterior_of(xi[:1], Y[:1], 3)
    draw = lambda key: posterior.weights(
        posterior.draw_prior(key), jax.random.fold_in(key, 1)
    )
    many = jax.vmap(draw)(jax.random.split(jax.random.key(6), 20_000))
    layers = [many.V_0, *many.V, many.a]
    for layer, variance in zip(layers, VARIANCES, strict=True):
        flat = np.asarray(layer).reshape(20_000, -1)
        covariance = flat.T @ flat / 20_000
        error = variance * (1 + np.eye(flat.shape[1])) ** 0.5 / np.sqrt(20_000)
        # At most 171 entries in each of four layers: 5.5 errors once in 20 000 times.
        deviation = np.abs(covariance - variance * np.eye(flat.shape[1]))
        assert (deviation < 5.5 * error).all()
        assert (np.abs(flat.mean(0)) < 5.5 * np.sqrt(variance / 20_000)).all()


@pytest.mark.statistical
@pytest.mark.slow
def test_a_start_has_the_law_of_v_0_given_the_other_weights(data):
    """Misfit of the labels given w: Gaussian of mean and variance of the regression."""
    xi, Y, _ = data
    posed = problem(xi, Y, 4)
    posterior = weight_space.posterior(posed)
    # The same other weights each time: V_0 is redrawn from the law given them.
    keys = jax.random.split(jax.random.key(7), 4000)
    z = jax.lax.map(posterior.draw_start, keys)
    U = jax.vmap(lambda z: posterior.order_parameters(z)[0][0])(z)
    f = jax.vmap(posterior.training_outputs)(z)

    def whitened(U, f):
        K = posed.operator.kernel(U)
        gain = K @ jnp.linalg.inv(K + T * jnp.eye(3))
        root = jnp.linalg.cholesky(K - gain @ K)
        return jax.scipy.linalg.solve_triangular(root, f - gain @ Y, lower=True)

    scores = np.asarray(jax.vmap(whitened)(U, f))
    # Three means and six second moments of 4000 normal numbers: 4.5 errors each.
    assert (np.abs(scores.mean(0)) < 4.5 / np.sqrt(4000)).all()
    error = np.sqrt((1 + np.eye(3)) / 4000)
    assert (np.abs(scores.T @ scores / 4000 - np.eye(3)) < 4.5 * error).all()


@pytest.fixture(scope="module")
def exact(request, data):
    """Width, mean and errors of U and of f by the exact law; 3 < |Pi| is singular."""
    xi, Y, xi_test = data
    posed = problem(xi, Y, request.param)
    draws = posed.posterior(jax.random.key(0), draws=1000, warmup=200)
    U = draws.U[0].reshape(-1, 4, 4)

    def predict(U):
        k = cross(xi_test, xi, U)
        M = jnp.linalg.inv(cross(xi, xi, U) + T * jnp.eye(3))
        return k @ M @ Y, jnp.diagonal(cross(xi_test, xi_test, U) - k @ M @ k.T)

    mean, variance = jax.vmap(predict)(U)
    moments = jnp.concatenate([mean, variance + mean**2], axis=1)
    return request.param, summary(draws.U[0]), summary(moments.reshape(4, 1000, 10))


def cross(left, right, U):
    scaled = VARIANCES[0] / (left.shape[1] * left.shape[2])
    return scaled * jnp.einsum("pia,ab,qib->pq", left, U, right)


@pytest.mark.slow  # tests/cli/test_learning.py has the same claim of the files
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("exact", "method"),
    ((5, "weights"), (5, "langevin"), (3, "weights")),
    indirect=["exact"],
)
def test_the_posterior_of_the_weights_is_the_exact_law(data, exact, method):
    xi, Y, xi_test = data
    width, U, f = exact
    posterior = posterior_of(xi, Y, width)
    found = sampled(posterior, xi_test, method=method)
    first = summary(found.U[0])
    # 26 numbers in each of three cases: 4.5 errors once in 1800 times.
    assert (np.abs(first.mean - U.mean) < 4.5 * np.hypot(first.stderr, U.stderr)).all()
    error = np.hypot(found.predictor_mean_stderr, f.stderr[:5])
    assert (np.abs(found.predictor_mean - f.mean[:5]) < 4.5 * error).all()
    expected = f.mean[5:] - f.mean[:5] ** 2
    error = np.hypot(found.predictor_variance_stderr, f.stderr[5:])
    error = np.hypot(error, 2 * f.mean[:5] * f.stderr[:5])
    assert (np.abs(found.predictor_variance - expected) < 4.5 * error).all()
    assert first.r_hat.max() < 1.02
    assert (found.bfmi > 0.5).all() if method == "weights" else found.bfmi is None


def merged(blocks, keep=0.5):
    """f = 3 + 2 z of four chains of AR(1) numbers z, and its moments by stretches."""
    noise = np.random.default_rng(9).normal(size=(4, 20 * blocks + 100, 5))
    z = signal.lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], noise, axis=1)[:, 100:]
    f = 3 + 2 * z
    stretches = lambda x: x.reshape(4, blocks, 10, 2, 5).mean(axis=3)
    first, second = stretches(f), stretches(f**2)
    means = StretchMeans(10 * blocks)
    for number in range(blocks):
        means.add(first[:, number], second[:, number])
    return f, first.reshape(4, -1, 5), second.reshape(4, -1, 5), means.predictor()


@pytest.mark.parametrize("blocks", (3, 10, 11, 137, 400))
def test_merged_stretches_give_the_moments_of_all_draws(blocks):
    f, *_, found = merged(blocks)
    mean = f.mean(axis=(0, 1))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    variance = (f**2).mean(axis=(0, 1)) - mean**2
    np.testing.assert_allclose(found.variance, variance, rtol=1e-10)


@pytest.mark.parametrize("blocks", (3, 10))
def test_few_stretches_are_not_merged(blocks):
    _, first, second, found = merged(blocks)
    same = dict(rtol=1e-10)
    np.testing.assert_allclose(found.mean_stderr, summary(first).stderr, **same)
    spread = summary(second - 2 * found.mean * first)
    np.testing.assert_allclose(found.variance_stderr, spread.stderr, **same)


@pytest.mark.statistical
@pytest.mark.parametrize("blocks", (11, 137, 400))
def test_errors_of_merged_stretches_are_those_of_the_chains(blocks):
    """tau of an AR(1) chain is (1 + r) / (1 - r), and of its squares with r^2."""
    *_, found = merged(blocks, keep=0.5)
    draws = 80 * blocks
    # Sokal: tau of n >= 200 stretches with window W = 2 is known to
    # sqrt(2 (2 W + 1) / n), the error to half of that; 30 comparisons, 4.5 errors each.
    allowed = 4.5 * np.sqrt(2 * 5 / 200) / 2
    expected = 2 * np.sqrt(3 / draws)
    assert np.abs(np.log(found.mean_stderr / expected)).max() < allowed
    expected = 4 * np.sqrt(2 * 5 / 3 / draws)
    assert np.abs(np.log(found.variance_stderr / expected)).max() < allowed


@pytest.mark.parametrize("blocks", (10, 137, 4000))
def test_stretches_that_are_held_do_not_grow_with_the_blocks(blocks):
    means = StretchMeans(10 * blocks)
    block = np.ones((2, 10, 3))
    for _ in range(blocks):
        means.add(block, block)
    held = sum(a.nbytes for a in vars(means).values() if isinstance(a, np.ndarray))
    assert held <= block.nbytes * 2 * (STRETCHES_HELD + 1) / 10
    np.testing.assert_allclose(means.predictor().mean, 1.0)


def test_bad_input_is_refused(data):
    xi, Y, xi_test = data
    with pytest.raises(ValueError, match="whole"):
        posterior_of(xi, Y, 2.5)
    for width in (1e5, 1e10, 1e308):
        with pytest.raises(ValueError, match="more weights than 2147483648"):
            posterior_of(xi, Y, width)
    with pytest.raises(ValueError, match="temperature"):
        weight_space.posterior(problem(xi, Y, 2, temperature=0.0))
    posterior = posterior_of(xi, Y, 2)
    refused = (
        ("method", {"method": "gibbs"}),
        ("block", {"block": 15}),
        ("draws", {"draws": 150}),
        ("warmup", {"warmup": 0}),
        ("chains", {"chains": 0}),
        ("step_size", {"step_size": 0.1}),
        ("step_size", {"method": "langevin", "step_size": -0.1}),
    )
    for word, change in refused:
        with pytest.raises(ValueError, match=word):
            sampled(posterior, xi_test, **change)
    with pytest.raises(ValueError, match="xi_test"):
        sampled(posterior, xi_test[:, :, :2])
