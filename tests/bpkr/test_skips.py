"""Networks with skip connections (docs/theory/bpkr_weights.md, section 9)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr import prior
from statmech_attn.bpkr.theory import action, wishart
from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.posterior_samples.weight_sampling import sample_weights
from statmech_attn.reporting import Silent


SKIP = (0.7, -0.5)
VARIANCES = (0.8, 0.5, 2.0, 1.5)


@pytest.fixture(scope="module")
def tokens():
    """Six examples of five tokens, and two layers of two heads."""
    draw = np.random.default_rng(21).normal
    heads = bpkr.heads_from_products([draw(size=(2, 4, 4)) for _ in range(2)])
    return jax.device_put(draw(size=(6, 4, 5))), heads


@pytest.fixture(scope="module")
def problem(tokens):
    x, heads = tokens
    xi = bpkr.attentioned_inputs(x, heads, skip=SKIP)
    return posed(xi[:4], width=12)


def posed(xi, **given):
    """Four examples that skips and heads learn."""
    Y = jnp.array([2.0, -1.0, 0.5, -2.0])[: len(xi)]
    given = dict(temperature=0.3, skip=SKIP, variances=VARIANCES) | given
    return bpkr.Problem(xi, Y, heads=(2, 2), **given)


def drawn(N, draws, *, variances=VARIANCES, skip=SKIP, seed=3):
    """Effective weights (draws, 9, N) of networks of two layers of two heads."""
    random = np.random.default_rng(seed)
    sigma = np.sqrt(variances)
    w = sigma[3] * random.normal(size=(draws, 1, N))
    for s, b in zip(sigma[2:0:-1], skip[::-1]):
        V = s * random.normal(size=(draws, 2, N, N))
        of_heads = [w @ V[:, h] / np.sqrt(N) for h in range(2)]
        w = np.concatenate([b * w, *of_heads], axis=1)
    return w


def kernels(xi, U, variance=VARIANCES[0]):
    """K(x, x') of all inputs, one for each U: written out over pairs of paths."""
    c = np.array(
        [np.sqrt(0.5) ** ((i > 0) + (j > 0)) for i in range(3) for j in range(3)]
    )
    scaled = np.asarray(xi) * c * np.sqrt(variance / xi.shape[1])
    return np.einsum("sab,pia,qib->spq", U, scaled, scaled, optimize=True)


def layer_by_layer(weights, x, heads, skip):
    """f of the last token, in numpy."""
    hidden = np.einsum("ni,pit->pnt", weights.V_0, x) / np.sqrt(x.shape[1])
    for V, layer, b in zip(weights.V, heads, skip):
        new = b * hidden
        for v, W in zip(V, layer):
            scores = np.exp(np.einsum("pis,ij,pjt->pst", x, W, x))
            omega = scores / scores.sum(axis=1, keepdims=True)
            new = new + v @ hidden @ omega / np.sqrt(V.shape[2] * len(layer))
        hidden = new
    return hidden[:, :, -1] @ weights.a / np.sqrt(weights.a.size)


def test_paths_and_layers_are_one_function(tokens):
    x, heads = tokens
    weights = bpkr.draw_weights(
        jax.random.key(1), n_inputs=4, heads=(2, 2), width=5, skip=SKIP
    )
    xi = bpkr.attentioned_inputs(x, heads, skip=SKIP)
    omega = bpkr.attention_of(x, heads)
    np.testing.assert_array_equal(bpkr.attended(x, omega, skip=SKIP), xi)
    expected = layer_by_layer(*jax.tree.map(np.asarray, (weights, x, heads)), SKIP)
    for f in (
        bpkr.forward(weights, x, heads),
        bpkr.forward(weights, x, omega),
        bpkr.forward_paths(weights, xi),
    ):
        np.testing.assert_allclose(f, expected, rtol=0, atol=1e-14)
    assert bpkr.path_names((2, 2), SKIP)[:4] == ["0-0", "0-1", "0-2", "1-0"]
    np.testing.assert_array_equal(xi[:, :, 0], x[:, :, -1])  # skips every layer


def test_a_linear_block_may_be_skipped(tokens):
    x, heads = tokens
    omega = bpkr.attention_of(x, (None, heads[1]))
    random = np.random.default_rng(2)
    arrays = [random.normal(size=shape) for shape in ((3, 4), (1, 3, 3), (2, 7, 3), 7)]
    V_0, *V, a = jax.device_put(arrays)
    weights = bpkr.Weights(V_0, tuple(V), a, skip=(0.4, 0))
    xi = bpkr.attended(x, omega, skip=(0.4, 0))
    f = bpkr.forward(weights, x, omega)
    np.testing.assert_allclose(bpkr.forward_paths(weights, xi), f, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(xi[:, :, :2], xi[:, :, 2:])


def test_a_skip_of_zero_is_none(tokens):
    """The same program with the same numbers, as a pytree too."""
    x, heads = tokens
    xi = bpkr.attentioned_inputs(x, heads, skip=0)
    np.testing.assert_array_equal(xi, bpkr.attentioned_inputs(x, heads))
    without = posed(xi[:4], width=(5, 7, 6), skip=None)
    assert eqx.tree_equal(posed(xi[:4], width=(5, 7, 6), skip=(0, 0)), without)
    assert without.branches == without.heads


def test_a_saddle_point_is_one_of_the_action_in_the_order_parameters(problem):
    """The action written in numpy rises in every direction that keeps b^2 U_2."""
    solution = problem.solve()
    assert solution.converged and problem.solve().signature.tolist()[:2] == [0, 0]
    y, N = np.asarray(problem.Y), 12

    def action(U_1, U_2, U_a):
        total = U_a / VARIANCES[3] - np.log(U_a)
        for U, above, s2 in ((U_2, np.eye(1) * U_a, 2.0), (U_1, U_2, 0.5)):
            n = len(above)
            blocks = [U[i * n : (i + 1) * n, i * n : (i + 1) * n] for i in (1, 2)]
            total += np.trace(np.linalg.solve(above, sum(blocks))) / s2
            schur = U[n:, n:] - U[n:, :n] @ np.linalg.solve(U[:n, :n], U[:n, n:])
            total += 2 * np.linalg.slogdet(above)[1] - np.linalg.slogdet(schur)[1]
        K = kernels(problem.xi, U_1[None])[0] + 0.3 * np.eye(4)
        return total + (np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y)) / N

    def U_at(U_1, U_2, U_a):
        """The chain with its skips' blocks in place."""
        U_2, U_1 = U_2.copy(), U_1.copy()
        U_2[:1, :1] = SKIP[1] ** 2 * U_a
        U_1[:3, :3] = SKIP[0] ** 2 * U_2
        return U_1, U_2, U_a

    there = [np.asarray(u) for u in (*solution.U, solution.U_a)]
    assert action(*there) == pytest.approx(float(solution.action), rel=1e-12)
    random, step = np.random.default_rng(0), 1e-4
    for _ in range(20):
        change = [random.normal(size=u.shape) for u in there]
        change = [step * (d + d.T) for d in change]
        moved = [
            action(*U_at(*(u + s * d for u, d in zip(there, change)))) for s in (-1, 1)
        ]
        slope, bend = (moved[1] - moved[0]) / 2, sum(moved) - 2 * action(*there)
        # The slope is the third order of the step, the bend its second.
        assert bend > 0 and abs(slope) < 0.1 * bend


@pytest.mark.statistical
def test_the_prior_of_the_law_is_that_of_networks():
    """Bounded functions of U_1, whose products have heavy tails; singular at N = 5."""
    draws = 40_000
    w = drawn(5, draws, seed=5)
    expected = np.einsum("san,sbn->sab", w, w) / 5
    law = posed(np.ones((1, 1, 9)), width=5).law()
    random = np.random.default_rng(6)
    parts = []
    for block, degrees, part in law.by_block(np.zeros(law.dimension)):
        k = np.asarray(degrees)
        size = (draws, block.columns)
        diagonal = np.sqrt(2 * k) * np.log(np.sqrt(random.chisquare(k, size) / k))
        diagonal = np.where(k == 1, random.normal(size=size), diagonal)
        parts += [diagonal, random.normal(size=(draws, part.size - block.columns))]
    z = jnp.asarray(np.concatenate(parts, axis=1))
    of_law = np.asarray(jax.jit(jax.vmap(law.order_parameters))(z)[0][0])
    assert np.linalg.matrix_rank(of_law[0]) == 5
    entry = np.tril_indices(9)
    pairs = random.integers(45, size=(2, 46))
    statistics = []
    for U in (of_law, expected):
        flat = U[:, *entry]
        statistics.append(
            np.tanh(np.concatenate([flat, flat[:, pairs[0]] * flat[:, pairs[1]]], 1))
        )
    one, other = statistics
    z = (one.mean(0) - other.mean(0)) / np.sqrt((one.var(0) + other.var(0)) / draws)
    # 91 numbers, correlated: one beyond 4.5 happens once in 1600 times.
    assert np.abs(z).max() < 4.5
    assert 0.5 < np.sqrt((z**2).mean()) < 1.5


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("N", (4, 10))
def test_the_law_is_that_of_networks_from_the_prior(tokens, N):
    """U, f and ln p(Y): numpy networks weighted by the labels; N = 4 is singular."""
    x, heads = tokens
    xi = bpkr.attentioned_inputs(x, heads, skip=SKIP)[:3]
    problem, draws = posed(xi[:2], width=N), 200_000
    w, y, T = drawn(N, draws), np.asarray(problem.Y), 0.3
    U = np.einsum("san,sbn->sab", w, w) / N
    K = kernels(xi, U)
    noisy = K[:, :2, :2] + T * np.eye(2)
    solved = np.linalg.solve(noisy, np.broadcast_to(y[:, None], (draws, 2, 1)))[..., 0]
    logs = -(np.linalg.slogdet(noisy)[1] + solved @ y + 2 * np.log(2 * np.pi)) / 2
    share = np.exp(logs - logs.max())
    evidence = logs.max() + np.log(share.mean())
    evidence_error = share.std() / share.mean() / np.sqrt(draws)
    share /= share.sum()
    f = np.einsum("sp,sp->s", K[:, 2, :2], solved)
    mean = np.einsum("s,sab->ab", share, U)
    error = np.einsum("s,sab->ab", share**2, (U - mean) ** 2)
    found = problem.posterior(jax.random.key(2), draws=800, chains=8)
    total = np.sqrt(error + found.summary[0].stderr ** 2)
    # 45 entries in each of two cases: 4.5 errors are exceeded once in 1600 times.
    assert (np.abs(found.summary[0].mean - mean) < 4.5 * total).all()
    predicted = found.predict(xi[2:])
    total = np.hypot(np.sqrt(share**2 @ (f - share @ f) ** 2), predicted.mean_stderr[0])
    assert abs(predicted.mean[0] - share @ f) < 4.5 * total
    bridged = bpkr.evidence(jax.random.key(3), found)
    # Student's law of 7 degrees of freedom: 6 errors once in 1900.
    assert abs(bridged.value - evidence) < 6 * np.hypot(bridged.stderr, evidence_error)
    assert bridged.stderr < 0.05


@pytest.mark.slow
def test_nothing_is_left_to_correct_without_labels(problem):
    blank = problem.at(temperature=1e14)
    solution = blank.solve()
    better = blank.corrections(solution)
    U, U_a = bpkr.gaussian_process_limit((2, 2), VARIANCES, skip=SKIP)
    for one, other in zip((*better.U, better.U_a), (*U, U_a[0, 0])):
        assert np.abs(one - other).max() < 1e-9
    log_p = better.log_evidence + blank.evidence_correction(solution)
    assert float(log_p) == pytest.approx(-2 * np.log(2 * np.pi * 1e14), abs=1e-9)


@pytest.mark.slow
@pytest.mark.statistical
def test_samples_of_the_weights_have_the_exact_law(tokens):
    x, heads = tokens
    xi = bpkr.attentioned_inputs(x, heads, skip=(0.7, 0))[:3]
    problem = posed(xi[:2], width=(3, 3, 2), skip=(0.7, 0))
    exact = problem.posterior(jax.random.key(8), draws=1000)
    sampled = sample_weights(
        jax.random.key(9),
        weight_space.posterior(problem),
        method="weights",
        xi_test=xi[2:],
        y_test=jnp.ones(1),
        draws=4000,
        warmup=500,
        chains=4,
        block=500,
        folder=None,
        study="",
        report=Silent(),
    )
    found, true = wishart.summary(sampled.U[0]), exact.summary[0]
    error = np.hypot(found.stderr, true.stderr)
    # 21 entries, 5 errors.
    assert (np.abs(found.mean - true.mean) < 5 * error).all()
    f = exact.predict(xi[2:])
    error = np.hypot(sampled.predictor_mean_stderr, f.mean_stderr)
    assert (np.abs(sampled.predictor_mean - f.mean) < 5 * error).all()


def test_a_skip_has_the_score_of_a_head(problem):
    """Every pair of paths once, by hand; and the theory without the skip."""
    random = np.random.default_rng(1)
    root = random.normal(size=(9, 9))
    theory = problem.theory(root @ root.T)
    weight = np.abs(root @ root.T)
    expected = []
    for layer in range(2):
        for head in range(3):
            passes = (
                np.array([p // 3 if layer == 0 else p % 3 for p in range(9)]) == head
            )
            expected.append(weight[passes[:, None] | passes].sum())
    scores = theory.head_scores()
    assert [len(s) for s in scores] == [3, 3]
    np.testing.assert_allclose(np.concatenate(scores), expected / max(expected))
    without = theory.silenced([(0, 0), (1, 0)])
    assert np.flatnonzero(jnp.diagonal(without.U)).tolist() == [4, 5, 7, 8]


def test_ranks_follow_the_width():
    """(A B) where N - m degrees of freedom are left, none at N = 1."""
    assert wishart.blocks(np.full(3, 1), (2, 2), 1, SKIP)[2].columns == 0
    for N in (1, 4):
        law = posed(np.ones((1, 1, 9)), width=N).law()
        z = jax.device_put(np.random.default_rng(10).normal(size=law.dimension))
        (U_1, U_2), _ = eqx.filter_jit(law.order_parameters)(z)
        assert np.linalg.matrix_rank(U_1) == N
        np.testing.assert_allclose(U_1[:3, :3], SKIP[0] ** 2 * U_2, atol=1e-14)


def test_bad_input_is_refused(tokens, problem):
    x, heads = tokens
    xi = bpkr.attentioned_inputs(x, heads, skip=SKIP)[:4]
    with pytest.raises(ValueError, match="layer 2 needs equal widths.*got 12 and 5"):
        posed(xi, width=(12, 12, 5))
    with pytest.raises(ValueError, match="layer 1 needs equal widths"):
        problem.at(width=(12, 10, 10))
    with pytest.raises(ValueError, match="skip: need one finite number"):
        posed(xi, width=12, skip=(0.7, 0.7, 0.7))
    with pytest.raises(ValueError, match="skip must be finite"):
        bpkr.attentioned_inputs(x, heads, skip=np.nan)
    with pytest.raises(ValueError, match="paths? of heads = .2, 2. and skip"):
        posed(xi[:, :, :4], width=12)
    with pytest.raises(ValueError, match="other skip connections"):
        problem.theory(posed(xi, width=12, skip=0.3).solve())


def test_shapes_with_and_without_a_skip_connection():
    assert prior.skips(0.5, 2) == (0.5, 0.5) and prior.skips((1, 0), 2) == (1.0, None)
    skip = (0.5, None)
    assert prior.branches((2, 3), skip) == (3, 3)
    assert prior.path_shares((2, 3), skip).tolist() == [3.0] * 3 + [6.0] * 6
    assert prior.factor_shapes((2, 3), skip) == ((6, 3), (3, 0), (1, 0))
    assert [x.tolist() for x in prior.lower(2, 1)] == [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]
    below = action.below(2 * jnp.eye(1), jnp.array([[3.0, 1.0]]), 1, 0.5)
    assert below.tolist() == [[1.0, 0.0], [6.0, 2.0]]
