import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dmft.network import positional_code


def one_class(sign_o, sign_v, sign_q, sign_k):
    signs = np.array([sign_o, sign_v, sign_q, sign_k], float).reshape(4, 1, 1)
    return dmft.site_classes(signs)


def test_one_pattern_one_token_is_curie_weiss_by_hand():
    """M = 1, one class, C = 1, epsilon = 0: A' = W^v tanh(beta W^o A)."""
    net = dmft.network(one_class(1, -1, 1, 1), context=1)
    params = dmft.parameters(0.7, 3.0, 0.0)
    state = dmft.from_row(net, params, 0)
    by_hand = [-1.0]
    for _ in range(6):
        by_hand.append(-np.tanh(0.7 * by_hand[-1]))
    _, seen = dmft.trajectory(net, params, state, steps=6)
    assert float(state.newest[0]) == -1.0
    assert np.allclose(seen.A[:, 0], by_hand[1:], atol=1e-15)
    assert np.allclose(seen.m_o_se[:, 0], -np.array(by_hand[1:]), atol=1e-15)


def test_two_tokens_attend_by_hand():
    """M = 1, C = 2, epsilon = 0: softmax of gamma m^q (m^k_new, m^k_old)."""
    net = dmft.network(one_class(1, 1, 1, -1), context=2)
    beta, gamma = 0.9, 1.7
    params = dmft.parameters(beta, gamma, 0.0)
    state = dmft.from_row(net, params, 0)
    old, new = 1.0, np.tanh(beta * 1.0)
    weight = np.exp(gamma * new * -np.array([new, old]))
    attention = (weight * [new, old]).sum() / weight.sum()
    state = dmft.step(net, params, state)
    assert float(state.newest[0]) == pytest.approx(attention, abs=1e-15)
    assert int(state.clock) == 0 and int(state.tokens) == 2


def test_positional_overlap_enters_with_weight_epsilon():
    patterns = one_class(1, 1, 1, 1)._replace(positional=-np.ones((4, 1, 1)))
    net = dmft.network(patterns, context=2)
    params = dmft.parameters(0.0, 1.0, 0.25)
    state = dmft.from_row(net, params, 0)
    # x_0 = +1 at position 0, code -1: 0.75 * 1 + 0.25 * (-1 * -1)
    assert float(state.v[0, 0]) == pytest.approx(1.0)
    state = dmft.step(net, params, state)
    # beta = 0: no semantic overlap; position 1, code +1.
    assert float(state.v[1, 0]) == pytest.approx(-0.25)


def test_positional_code_counts_in_binary_most_significant_first():
    assert positional_code(4, 2).tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    assert positional_code(4, 1).tolist() == [[-1], [1], [-1], [1]]


@eqx.filter_jit
def trajectory(net, params, start, steps):
    """What an orbit shows, its start included in one program."""
    return dmft.trajectory(net, params, start(net, params), steps=steps)[1]


def correlation_form(patterns, positional, beta, gamma, epsilon, start, steps):
    """The paper's own form for M = 3: sums over sign vectors, window by age."""
    c = dmft.correlations(patterns)
    signs = np.array([(1, *s) for s in itertools.product((1, -1), repeat=2)])
    context, rows = len(positional), []

    def token(A, clock):
        t = np.tanh(beta * signs @ A)
        semantic = (
            np.einsum("s,sb,kba->ka", t, signs, c.pair)
            + np.einsum("s,s,ka->ka", t, signs.prod(1), c.triple)
        ) / 4
        return (1 - epsilon) * semantic + epsilon * positional[clock]

    def attend(tokens):
        logits = np.array([gamma * tokens[-1][2] @ m[3] for m in tokens])
        weights = np.exp(logits - logits.max())
        return weights @ np.array([m[1] for m in tokens]) / weights.sum()

    tokens = [start]
    attention = attend(tokens)
    for t in range(1, steps + 1):
        tokens = (tokens + [token(attention, t % context)])[-context:]
        attention = attend(tokens)
        rows.append(attention)
    return np.array(rows)


@pytest.mark.parametrize("context", (1, 2, 4, 5))
@pytest.mark.parametrize("seed", (0, 1))
def test_site_classes_and_correlations_are_one_map(context, seed):
    p = dmft.random_segments(jax.random.key(seed), n_patterns=3, n_segments=5, n_bits=2)
    net = dmft.network(p, context=context)
    beta, gamma, epsilon = 0.8, 4.0, 0.1
    params = dmft.parameters(beta, gamma, epsilon)
    seen = trajectory(net, params, lambda n, p: dmft.from_row(n, p, 1), 30)
    positional = np.asarray(net.positional)
    semantic = np.einsum("kas,s,s->ka", p.semantic, p.fractions, p.semantic[0, 1])
    first = (1 - epsilon) * semantic + epsilon * positional[0]
    rows = correlation_form(p, positional, beta, gamma, epsilon, first, 30)
    # Two orders of summation, 30 steps of a map with derivatives of order gamma.
    assert np.abs(np.asarray(seen.A) - rows).max() < 1e-11


def test_checkpoint_continues_the_orbit_it_was_taken_from():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=4)
    params = dmft.parameters(1.0, file.gamma, file.epsilon)
    state = dmft.advance(net, params, dmft.from_row(net, params, 2), 11)
    taken = np.asarray(dmft.window(state))
    again = dmft.from_window(net, params, taken, int(state.clock))
    one = dmft.trajectory(net, params, state, steps=20)[1].A
    two = dmft.trajectory(net, params, again, steps=20)[1].A
    assert np.abs(np.asarray(one) - np.asarray(two)).max() < 1e-14


def test_published_checkpoint_is_near_the_orbit_at_small_beta_window():
    """The stored window is (A_t, A_{t-1}, ...), so stepping shifts it by one."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=4)
    params = dmft.parameters(1.255, file.gamma, file.epsilon)
    state = dmft.from_checkpoint(net, params, file)
    before = dmft.window(state)
    after = dmft.window(dmft.step(net, params, state))
    assert np.array_equal(after[1:], before[:-1])
    assert int(state.clock) == 3


@pytest.mark.slow
def test_batches_of_any_shape_give_the_numbers_of_single_points():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=4)
    betas = np.linspace(0.2, 2.0, 6)
    batched = dmft.parameters(betas.reshape(2, 3), file.gamma, file.epsilon)
    state = dmft.from_checkpoint(net, batched, file)
    together = np.asarray(dmft.trajectory(net, batched, state, steps=10)[1].A)

    def single(beta):
        params = dmft.parameters(beta, file.gamma, file.epsilon)
        start = dmft.from_checkpoint(net, params, file)
        return np.asarray(dmft.trajectory(net, params, start, steps=10)[1].A)

    for i, beta in enumerate(betas):
        assert np.abs(single(beta) - together.reshape(10, 3, 6)[..., i]).max() < 1e-12


def test_parameters_can_be_mapped():
    mapped = jax.vmap(lambda beta: dmft.parameters(beta, 9.0, 0.1))(jnp.arange(3.0))
    np.testing.assert_array_equal(mapped.beta, [0, 1, 2])
    np.testing.assert_array_equal(mapped.gamma, [9, 9, 9])


def test_a_new_parameter_value_or_length_does_not_recompile():
    net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
    compiled = []
    for beta, gamma, epsilon, steps in ((1.0, 5.0, 0.1, 3), (1.5, 9.0, 0.0, 7)):
        params = dmft.parameters(beta, gamma, epsilon)
        dmft.advance(net, params, dmft.from_row(net, params, 0), steps)
        compiled.append(dmft.advance._cache_size())
    assert compiled[0] == compiled[1]


def test_networks_of_one_shape_are_one_program():
    def compiled_in(seed):
        drawn = dmft.random_segments(
            jax.random.key(seed), n_patterns=3, n_segments=3, n_bits=2
        )
        system = dmft.system(dmft.network(drawn, context=4))
        return eqx.filter(system, eqx.is_array, inverse=True)

    assert eqx.tree_equal(compiled_in(0), compiled_in(2))


def test_clock_has_the_period_of_the_context_only_when_it_acts():
    net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
    assert dmft.clock_period(net, 0.02) == 4
    assert dmft.clock_period(net, 0.0) == 1
    plain = dmft.network(one_class(1, 1, 1, 1), context=4)
    assert dmft.clock_period(plain, 0.5) == 1


@pytest.mark.parametrize(
    ("context", "n_patterns"),
    (
        (1, 1),
        (8, 6),
    ),
)
def test_attention_stays_within_the_largest_value_overlap(n_patterns, context):
    p = dmft.random_segments(
        jax.random.key(3), n_patterns=n_patterns, n_segments=4, n_bits=3
    )
    net = dmft.network(p, context=context)
    params = dmft.parameters(jnp.array([0.5, 5.0]), 50.0, 0.3)
    start = lambda n, p: dmft.from_random(n, p, jax.random.key(4))
    seen = trajectory(net, params, start, 100)
    assert np.abs(seen.A).max() <= 1.0
    newest = np.abs(seen.A[context:])
    recent = np.stack(
        [np.abs(seen.m_v[i : i + 100 - context]) for i in range(1, context + 1)]
    )
    assert (newest <= recent.max(0) + 1e-15).all()


def test_double_precision_is_required():
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        dmft.parameters(1.0, 1.0, 0.0)
