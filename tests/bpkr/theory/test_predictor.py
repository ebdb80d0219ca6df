import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import kernel_overlap


T = 0.05
HEADS = (2, 1, 2)


@pytest.fixture(scope="module")
def data(small, small_inputs):
    xi, y = small_inputs, small[-1]
    return xi[:7], y[:7], xi[7:]


@pytest.fixture(scope="module")
def solved(small, small_inputs):
    """A problem of other tests with its saddle point, and some of its inputs."""
    problem = posed(small_inputs, small[-1])
    return problem, problem.solve(), small_inputs[7:]


def posed(xi, y, variance=1.0, heads=HEADS, temperature=T):
    """A problem whose width, of which nothing here depends, is ten."""
    return Problem(
        xi,
        y,
        heads=heads,
        width=10,
        temperature=temperature,
        variances=[variance, *np.ones(len(heads) + 1)],
    )


def test_prediction_is_the_conditional_gaussian(data):
    xi, y, test = data
    A = rng.normal(jax.random.key(0), (4, 4))
    U = A @ A.T
    found = posed(xi, y, 1.3).theory(U).predict(test)
    both = np.concatenate([xi, test])
    K = np.einsum("pia,ab,qib->pq", both, U, both) * 1.3 / (6 * 4)
    inverse = np.linalg.inv(K[:7, :7] + T * np.eye(7))
    mean = K[7:, :7] @ inverse @ y
    covariance = K[7:, 7:] - K[7:, :7] @ inverse @ K[:7, 7:]
    assert np.abs(found.mean - mean).max() < 1e-10
    assert np.abs(found.variance - np.diag(covariance)).max() < 1e-10


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("r, T", [(1e4, 1e-8), (1e6, 1e-8), (1e6, 1e-3), (1, 1e-14)])
def test_variances_at_the_training_inputs_are_not_lost_in_those_of_the_prior(
    r, T, outputs
):
    """By QR of the features of K, of which 0 <= variance <= T is a consequence."""
    draw = np.random.default_rng(3)
    xi = draw.normal(size=(40, 5, 2))
    xi[:, 0] *= r
    xi = jnp.asarray(xi)
    Y = np.sign(draw.normal(size=(40, outputs))[:, : None if outputs > 1 else 1])
    root = draw.normal(size=(2 * outputs, 2 * outputs))
    problem = posed(xi, Y, heads=(2,), temperature=T)
    found = np.asarray(problem.theory(root @ root.T).predict(xi).variance)
    by_output = root.reshape(2, outputs, -1) / np.sqrt(5 * 2)
    features = np.einsum("pia,akb->pkib", xi, by_output).reshape(40 * outputs, -1)
    noise = np.sqrt(T) * np.eye(features.shape[1])
    R = np.asarray(np.linalg.qr(np.concatenate([features, noise]), mode="r"))
    exact = T * (np.linalg.solve(R.T, features.T) ** 2).sum(axis=0)
    assert (found >= 0).all() and (found <= T * (1 + 1e-6)).all()
    # Rounding of K beside its smaller values: 1e-16 r^2 at most, and its square here.
    np.testing.assert_allclose(found.ravel(), exact, rtol=1e-6)


@pytest.mark.parametrize("size", [1e160, 1e-160])
def test_inputs_whose_kernels_are_no_numbers_are_refused(data, size):
    with pytest.raises(ValueError, match="xi: its largest value must be from 1e-70 to"):
        posed(size * data[0], data[1])


def test_outputs_without_correlation_are_separate_networks(data):
    """U = U_1 x 1: every output is predicted by its own labels alone."""
    xi, y, test = data
    Y = jnp.stack([y, y**2, -y], axis=1)
    together = posed(xi, Y).gaussian_process().predict(test)
    for k in range(3):
        alone = posed(xi, Y[:, k]).gaussian_process()
        mean, variance = alone.predict(test)
        assert np.abs(together.mean[:, k] - mean).max() < 1e-12
        assert np.abs(together.variance[:, k] - variance).max() < 1e-12


def test_the_mean_is_linear_in_what_is_attended_also_of_outputs_that_correlate(data):
    xi, y, test = data
    A = rng.normal(jax.random.key(3), (8, 8))
    theory = posed(xi, jnp.stack([y, y**2], 1), 1.3).theory(A @ A.T)
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


def test_silenced_paths_do_not_act(data):
    """The network of the others alone is the same but for its prefactor."""
    xi, y, test = data
    U, left = np.eye(4) + 0.3, np.array([0, 3])
    part = posed(xi, y, 2.0).theory(jax.device_put(U)).restricted([3, 0])
    seen = [jax.device_put(np.asarray(x)[:, :, left]) for x in (xi, test)]
    full = posed(seen[0], y, heads=(2,)).theory(jax.device_put(U[np.ix_(left, left)]))
    one, two = part.predict(test), full.predict(seen[1])
    assert np.abs(one.mean - two.mean).max() < 1e-11
    assert np.abs(one.variance - two.variance).max() < 1e-11


def test_overlaps_of_all_eigenvectors_add_up_to_one(data):
    xi, y, _ = data
    found = posed(xi, y).gaussian_process()
    assert float((found.overlap() ** 2).sum()) == pytest.approx(1, abs=1e-12)
    K = np.diag([1.0, 3.0, 2.0])
    by_hand = kernel_overlap(K, np.array([3.0, 0, 4.0]))
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
    xi, y, test = data
    A = rng.normal(jax.random.key(3), (4, 4))
    full = posed(xi, y).theory(A @ A.T)
    for off, left in (([(0, 1)], [0, 1]), ([(0, 0), (2, 1)], [2])):
        shown = jnp.isin(jnp.arange(4), jnp.array(left))
        blank = posed(xi * shown, y).theory(A @ A.T)
        one = full.silenced(off).predict(test)
        two = blank.predict(test * shown)
        assert np.abs(one.mean - two.mean).max() < 1e-12
        assert np.abs(one.variance - two.variance).max() < 1e-12
    with pytest.raises(ValueError, match="no path is left"):
        full.silenced([(1, 0)])
    with pytest.raises(ValueError, match="no head 2 of layer 0"):
        full.silenced([(0, 2)])


def test_a_solution_is_taken_where_order_parameters_are(solved):
    """To the last bit: itself, all its order parameters, or U_1."""
    problem, solution, test = solved
    expected = problem.theory(solution.U[0])
    for U in (solution, solution.U):
        assert eqx.tree_equal(problem.theory(U), expected)
        scores = bpkr.head_scores(U, HEADS)
        assert eqx.tree_equal(scores, bpkr.head_scores(solution.U[0], HEADS))
        blocks = bpkr.block_structure(U, HEADS)
        np.testing.assert_equal(blocks, bpkr.block_structure(solution.U[0], HEADS))
    assert eqx.tree_equal(problem.theory(), expected)
    assert eqx.tree_equal(solution.predict(test), expected.predict(test))
    assert eqx.tree_equal(solution.head_scores(), expected.head_scores())
    assert eqx.tree_equal(bpkr.head_scores(solution), expected.head_scores())
    assert eqx.tree_equal(solution.overlap(), expected.overlap())


def test_a_solution_of_another_problem_is_refused(solved):
    """With other data or settings; kernels in another form are no other problem."""
    problem, solution, _ = solved
    xi, y = problem.xi, problem.Y
    again = Problem(xi, y, heads=HEADS, width=10, temperature=T, form="factors")
    again.theory(solution)
    for name, other in {
        "inputs xi": posed(xi[:, :, ::-1], y),
        "labels Y": problem.at(Y=-y),
        "widths": problem.at(width=11),
        "temperature": problem.at(temperature=0.06),
        "labels Y and temperature": problem.at(Y=2 * y, temperature=0.06),
        "variances": posed(xi, y, 1.1),
        "heads and widths and variances": posed(xi, y, heads=(2, 2)),
    }.items():
        for ask in (other.theory, other.corrections, other.evidence_correction):
            with pytest.raises(ValueError, match=f"of one with other {name}: ") as one:
                ask(solution)
            assert "\n" not in str(one.value)


def test_predictions_can_be_compiled_and_mapped(data):
    """A theory and its problem are pytrees: over U, with numbers of one at a time."""
    xi, y, test = data
    problem = posed(xi, y)
    theories = [problem.theory(U) for U in (jnp.eye(4), jnp.eye(4) + 0.3)]
    predict = lambda theory: theory.predict(test).mean
    stack = lambda *leaves: jnp.stack(leaves)
    together = jax.jit(jax.vmap(predict))(jax.tree.map(stack, *theories))
    for one, theory in zip(together, theories):
        np.testing.assert_allclose(one, predict(theory), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused(data):
    xi, y, test = data
    problem = posed(xi, y)
    good = problem.gaussian_process()
    with pytest.raises(ValueError, match="xi_test must have shape"):
        good.predict(test[:, :, :2])
    with pytest.raises(ValueError, match="xi_test must be an array of real numbers"):
        good.predict(test * 1j)
    with pytest.raises(ValueError, match="distinct indices"):
        good.restricted([0, 4])
    with pytest.raises(ValueError, match="positive definite"):
        problem.theory(-jnp.eye(4))
    with pytest.raises(ValueError, match="U must be U_1 of shape"):
        problem.theory(jnp.eye(3))
    with pytest.raises(ValueError, match="4 paths"):
        bpkr.head_scores(jnp.eye(3), HEADS)
    with pytest.raises(ValueError, match="heads per layer beside U"):
        bpkr.head_scores(good.U)
    with pytest.raises(ValueError, match="y must be of the size 7 in Q to fit mean"):
        bpkr.accuracy(y, y[:2])
