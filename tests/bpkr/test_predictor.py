import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr


T = 0.05


@pytest.fixture(scope="module")
def data(small):
    x, heads, y = small
    xi = bpkr.attentioned_inputs(x, heads)
    return xi[:7], y[:7], xi[7:], bpkr.head_counts(heads)


def test_prediction_is_the_conditional_gaussian(data):
    xi, y, test, _ = data
    A = jax.random.normal(jax.random.key(0), (4, 4))
    U = A @ A.T
    found = bpkr.theory(xi, y, U, temperature=T, variance=1.3).predict(test)
    both = np.concatenate([xi, test])
    K = np.einsum("pia,ab,qib->pq", both, U, both) * 1.3 / (6 * 4)
    inverse = np.linalg.inv(K[:7, :7] + T * np.eye(7))
    mean = K[7:, :7] @ inverse @ y
    covariance = K[7:, 7:] - K[7:, :7] @ inverse @ K[:7, 7:]
    assert np.abs(found.mean - mean).max() < 1e-10
    assert np.abs(found.variance - np.diag(covariance)).max() < 1e-10


def test_outputs_without_correlation_are_separate_networks(data):
    """U = U_1 x 1: every output is predicted by its own labels alone."""
    xi, y, test, heads = data
    Y = jnp.stack([y, y**2, -y], axis=1)
    together = bpkr.gaussian_process(xi, Y, heads=heads, temperature=T).predict(test)
    for k in range(3):
        alone = bpkr.gaussian_process(xi, Y[:, k], heads=heads, temperature=T)
        mean, variance = alone.predict(test)
        assert np.abs(together.mean[:, k] - mean).max() < 1e-12
        assert np.abs(together.variance[:, k] - variance).max() < 1e-12


def test_the_mean_is_linear_in_what_is_attended_also_of_outputs_that_correlate(data):
    xi, y, test, _ = data
    A = jax.random.normal(jax.random.key(3), (8, 8))
    theory = bpkr.theory(
        xi, jnp.stack([y, y**2], 1), A @ A.T, temperature=T, variance=1.3
    )  # fmt: skip
    expected = theory.predict(test).mean
    assert expected.shape == (3, 2) and float(jnp.abs(expected).min()) > 1e-3
    np.testing.assert_allclose(theory.mean(test), expected, atol=1e-11)
    both = theory.mean(2 * test - xi[:3])
    np.testing.assert_allclose(both, 2 * expected - theory.mean(xi[:3]), atol=1e-10)


def test_blocks_of_a_layer_stand_out_of_u_by_their_strength():
    """U = 1 + (a - 1) [h_l = h_l'], for one layer after the other."""
    ones, own = np.ones((3, 3)), np.eye(3)
    first = np.kron(ones + 4 * own, np.ones((2, 2)))
    second = np.kron(np.ones((2, 2)), ones + 4 * own)
    assert bpkr.block_structure(jnp.asarray(first), (3, 2))[0] == pytest.approx(5)
    assert bpkr.block_structure(jnp.asarray(-second), (2, 3))[1] == pytest.approx(5)
    flat = bpkr.block_structure(jnp.ones((6, 6)) + 7 * jnp.eye(6), (3, 2))
    assert flat == (1.0, 1.0)
    assert np.isnan(bpkr.block_structure(jnp.ones((3, 3)), (3, 1))).all()


@pytest.mark.slow
def test_average_over_wide_random_networks_has_the_variance_of_the_prior(data):
    """Without labels the variance is K(x, x): compared with drawn networks."""
    xi, _, test, heads = data
    draws, N = 4000, 64
    keys = jax.random.split(jax.random.key(5), draws)

    def f(key):
        weights = bpkr.draw_weights(key, n_inputs=6, heads=heads, width=N)
        return bpkr.forward_paths(weights, test)

    drawn = jax.jit(jax.vmap(f))(keys)
    hot = bpkr.gaussian_process(xi, jnp.zeros(7), heads=heads, temperature=1e12)
    expected = hot.predict(test).variance
    found = (drawn**2).mean(axis=0)
    # f is a product of four Gaussian layers; errors from the scatter of f^2 itself.
    error = (drawn**2).std(axis=0) / np.sqrt(draws)
    assert (np.abs(found - expected) < 4 * error).all()


def test_silenced_paths_do_not_act(data):
    xi, y, test, heads = data
    """The network of the others alone is the same but for its prefactor."""
    U, left = jnp.eye(4) + 0.3, np.array([0, 3])
    part = bpkr.theory(xi, y, U, temperature=T, variance=2.0).restricted([3, 0])
    xi, test_left, U = xi[:, :, left], test[:, :, left], U[np.ix_(left, left)]
    full = bpkr.theory(xi, y, U, temperature=T, variance=1.0)
    one, two = part.predict(test), full.predict(test_left)
    assert np.abs(one.mean - two.mean).max() < 1e-11
    assert np.abs(one.variance - two.variance).max() < 1e-11


def test_overlaps_of_all_eigenvectors_add_up_to_one(data):
    xi, y, _, heads = data
    found = bpkr.gaussian_process(xi, y, heads=heads, temperature=T)
    assert float((found.overlap() ** 2).sum()) == pytest.approx(1, abs=1e-12)
    K = np.diag([1.0, 3.0, 2.0])
    by_hand = bpkr.kernel_overlap(K, np.array([3.0, 0, 4.0]))
    assert np.abs(by_hand - np.array([0, 0.8, 0.6])).max() < 1e-15


def test_head_scores_count_every_pair_once():
    U = np.arange(1.0, 17.0).reshape(4, 4) * (-1) ** np.arange(4)
    scores = []
    for layer in (0, 1):
        for head in (0, 1):
            on = [divmod(path, 2)[layer] == head for path in range(4)]
            pairs = [abs(U[a, b]) for a in range(4) for b in range(4) if on[a] or on[b]]
            scores.append(sum(pairs))
    found = np.concatenate(bpkr.head_scores(jnp.asarray(U), (2, 2)))
    assert np.allclose(found, np.array(scores) / max(scores), rtol=1e-14)


def test_accuracy_counts_signs_or_largest_outputs():
    assert bpkr.accuracy(np.array([0.1, -2, 3]), np.array([1.0, 1, 1])) == 2 / 3
    Y = np.eye(3)
    assert bpkr.accuracy(Y[[0, 2, 2]] * 0.1, Y) == 2 / 3


def test_a_silenced_head_is_one_whose_paths_show_nothing(data):
    """heads (2, 1, 2): without a head, its paths' inputs may as well be zero."""
    xi, y, test, heads = data
    A = jax.random.normal(jax.random.key(3), (4, 4))
    full = bpkr.theory(xi, y, A @ A.T, temperature=T)
    for off, left in (([(0, 1)], [0, 1]), ([(0, 0), (2, 1)], [2])):
        shown = jnp.isin(jnp.arange(4), jnp.array(left))
        blank = bpkr.theory(xi * shown, y, A @ A.T, temperature=T)
        one = full.silenced(heads, off).predict(test)
        two = blank.predict(test * shown)
        assert np.abs(one.mean - two.mean).max() < 1e-12
        assert np.abs(one.variance - two.variance).max() < 1e-12
    with pytest.raises(ValueError, match="no path is left"):
        full.silenced(heads, [(1, 0)])
    with pytest.raises(ValueError, match="6 paths"):
        full.silenced((2, 3), [(0, 0)])


def test_bad_input_is_refused(data):
    xi, y, test, heads = data
    good = bpkr.gaussian_process(xi, y, heads=heads, temperature=T)
    with pytest.raises(ValueError, match="xi_test must have shape"):
        good.predict(test[:, :, :2])
    with pytest.raises(ValueError, match="distinct indices"):
        good.restricted([0, 4])
    with pytest.raises(ValueError, match="positive definite"):
        bpkr.theory(xi, y, -jnp.eye(4), temperature=T)
    with pytest.raises(ValueError, match="U must have shape"):
        bpkr.theory(xi, y, jnp.eye(3), temperature=T)
    with pytest.raises(ValueError, match="4 paths"):
        bpkr.head_scores(jnp.eye(3), heads)
    with pytest.raises(ValueError, match="one shape"):
        bpkr.accuracy(y, y[:2])
