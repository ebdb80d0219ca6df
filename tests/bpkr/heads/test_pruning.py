"""Pruned networks, the orders in which heads go, and rank correlations."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from statmech_attn import bpkr
from statmech_attn.bpkr import prior, pruning


HEADS = (3, 1, 2)
INPUTS = jax.jit(partial(bpkr.attentioned_inputs, readout="mean"))
OUTPUTS = jax.jit(partial(bpkr.forward, readout="mean"))
PARTS = jax.jit(pruning.contributions)


@pytest.fixture(scope="module")
def network():
    """Three layers of unequal heads and widths, 40 inputs, labels of a teacher."""
    draw = np.random.default_rng(3).normal
    heads = tuple(jnp.asarray(draw(size=(H, 5, 5))) for H in HEADS)
    x, widths = jnp.asarray(draw(size=(40, 5, 4))), (6, 5, 4, 7)
    V = (draw(size=(H, n, m)) for H, n, m in zip(HEADS, widths[1:], widths))
    weights = bpkr.Weights(draw(size=(6, 5)), tuple(V), draw(size=7))
    xi = INPUTS(x, heads)
    parts = np.asarray(PARTS(weights, xi))
    return x, heads, weights, parts, np.sign(np.sum(xi, axis=(1, 2)))


def layer_by_layer(weights, x, heads):
    """f of the mean token, in numpy."""
    hidden = np.einsum("ni,pit->pnt", weights.V_0, x) / math.sqrt(x.shape[1])
    for V, layer in zip(weights.V, heads):
        scores = [np.einsum("pis,ij,pjt->pst", x, W, x) for W in layer]
        acting = (v @ hidden @ softmax(s, axis=1) for v, s in zip(V, scores))
        hidden = sum(acting) / math.sqrt(V.shape[2] * len(layer))
    return hidden.mean(axis=2) @ weights.a / math.sqrt(weights.a.size)


OFF = [
    [],
    [(0, 1)],
    [(2, 0)],
    [(0, 0), (0, 2)],
    [(0, 2), (2, 1)],
    [(0, 1), (0, 2), (2, 0)],
]


@pytest.mark.parametrize("off", OFF)
def test_a_pruned_network_is_one_that_never_had_the_heads(network, off):
    """Layer by layer, with the factor (H - n)^(-1/2) of the heads that are left."""
    x, heads, weights, parts, _ = network
    kept = [[h for h in range(H) if (l, h) not in off] for l, H in enumerate(HEADS)]
    smaller = weights._replace(V=tuple(V[np.array(k)] for V, k in zip(weights.V, kept)))
    fewer = [np.asarray(layer)[k] for layer, k in zip(heads, kept)]
    expected = layer_by_layer(smaller, np.asarray(x), fewer)
    found = pruning.pruned_outputs(parts, HEADS, off)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("off", OFF)
def test_zeroed_values_and_the_published_factor_give_the_same(network, off):
    x, heads, weights, parts, _ = network
    V = list(weights.V)
    for layer, head in off:
        V[layer] = np.copy(V[layer])
        V[layer][head] = 0
    f = OUTPUTS(weights._replace(V=tuple(V)), x, heads)
    left = [H - sum(layer == l for layer, _ in off) for l, H in enumerate(HEADS)]
    expected = f * math.sqrt(math.prod(HEADS) / math.prod(left))
    found = pruning.pruned_outputs(parts, HEADS, off)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


SKIP = (0.7, 0, -1.2)
WITH_SKIPS = [
    [],
    [(0, 0)],  # the skip of layer 1
    [(0, 2)],
    [(2, 0), (0, 1)],
    [(0, 1), (0, 2), (0, 3)],  # its skip alone is left of layer 1
    [(0, 0), (0, 3), (2, 2)],
]


@pytest.mark.parametrize("off", WITH_SKIPS)
def test_a_skip_connection_is_pruned_like_a_head(network, off):
    """Layer by layer; a pruned skip has b = 0, a layer without heads its skip alone."""
    x, heads, *_ = network
    draw = np.random.default_rng(4).normal
    V = [jnp.asarray(draw(size=(H, 5, 5))) for H in HEADS]
    ends = jnp.asarray(draw(size=(5, 5))), jnp.asarray(draw(size=5))
    full = bpkr.Weights(ends[0], tuple(V), ends[1], prior.skips(SKIP, 3))
    xi = bpkr.attentioned_inputs(x, heads, readout="mean", skip=SKIP)
    found = pruning.pruned_outputs(pruning.contributions(full, xi), HEADS, off, SKIP)
    layers, left = list(heads), [0 if (l, 0) in off else b for l, b in enumerate(SKIP)]
    for l, H in enumerate(HEADS):
        first = int(SKIP[l] != 0)  # head h of the layer has the number h + first
        kept = [h for h in range(H) if (l, h + first) not in off]
        layers[l], V[l] = heads[l][np.array(kept or [0])], V[l][np.array(kept or [0])]
        V[l] = V[l] if kept else 0 * V[l]
    fewer = bpkr.Weights(ends[0], tuple(V), ends[1], prior.skips(left, 3))
    expected = bpkr.forward(fewer, x, tuple(layers), readout="mean")
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    y = np.sign(np.asarray(expected))
    assert (
        pruning.correct_without_heads(
            pruning.contributions(full, xi), y, HEADS, off, SKIP
        ).mean()
        == 1
    )


def test_without_a_skip_and_all_heads_of_its_layer_there_is_no_output():
    """And until then a network with skips has one more head to lose in each layer."""
    parts, y = np.random.default_rng(5).normal(size=(6, 4 * 3)), np.ones(6)
    off = [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert np.isnan(pruning.pruned_outputs(parts, (3, 3), off, (0.5, 0))).all()
    assert np.isfinite(pruning.pruned_outputs(parts, (3, 3), off[1:], (0.5, 0))).all()
    order = [1, 2, 3, 4, 5, 0, 6]
    curve = pruning.cumulative_accuracy(parts, y, (3, 3), order, (0.5, 0))
    assert curve.shape == (6,) and np.isfinite(curve).all()  # path 0-3 is the last one
    f = parts[:, 2]
    assert curve[-1] == np.mean(np.sign(f) == y)


def test_a_silent_head_costs_a_factor_and_no_accuracy(network):
    """It has the lowest of all scores, and is the only head that costs nothing."""
    x, heads, weights, _, y = network
    shown = np.array([1.0, 0.0, 1.0])[:, None, None]
    silent = weights._replace(V=(weights.V[0] * shown, *weights.V[1:]))
    parts = PARTS(silent, INPUTS(x, heads))
    full, without = (pruning.pruned_outputs(parts, HEADS, o) for o in ([], [(0, 1)]))
    assert np.abs(without - full * math.sqrt(3 / 2)).max() < 1e-12
    before = pruning.correct_without_heads(parts, y, HEADS)
    assert (pruning.correct_without_heads(parts, y, HEADS, [(0, 1)]) == before).all()
    assert (pruning.correct_without_heads(parts, y, HEADS, [(0, 0)]) != before).any()
    (U, *_), _ = jax.jit(bpkr.order_parameters)(silent)
    for scores in (
        np.concatenate(bpkr.head_scores(U, HEADS)),
        pruning.head_magnitudes(silent),
    ):
        assert abs(scores[1]) < 1e-12 and abs(scores.max() - 1) < 1e-15
        assert pruning.ascending(scores)[0] == 1


def test_heads_go_one_after_the_other_until_a_layer_is_empty(network):
    *_, parts, y = network
    order = [4, 0, 2, 1, 5, 3]  # 3.1, 1.1, 1.3, then the last head of layer 1
    found = pruning.cumulative_accuracy(parts, y, HEADS, order)
    assert found.shape == (4,)
    for n, left in enumerate([range(6), (1, 3, 5), (3, 5), (3,)]):
        f = parts[:, list(left)].sum(axis=1)
        assert found[n] == np.mean(np.sign(f) == y)
    emptied = pruning.cumulative_accuracy(parts, y, HEADS, [0, 3, 1, 2, 4, 5])
    assert np.isfinite(emptied[:2]).all() and np.isnan(emptied[2:]).all()
    assert np.isnan(pruning.pruned_outputs(parts, HEADS, [(1, 0)])).all()
    assert np.isnan(pruning.correct_without_heads(parts, y, HEADS, [(1, 0)])).all()


def test_all_but_one_head_of_each_layer_leave_its_path(network):
    """Heads 1.2 and 3.1: the path named 2-1-1."""
    *_, parts, y = network
    path = bpkr.path_names(HEADS).index("2-1-1")
    found = pruning.cumulative_accuracy(parts, y, HEADS, [0, 5, 2, 1, 3, 4])[-1]
    assert found == np.mean(np.sign(parts[:, path]) == y)


def test_magnitudes_are_the_norms_of_the_values(network):
    _, _, weights, _, _ = network
    norms = [math.sqrt((V**2).sum()) for layer in weights.V for V in layer]
    found = pruning.head_magnitudes(weights)
    assert np.abs(found - np.array(norms) / max(norms)).max() < 1e-12


def test_rank_correlation_is_that_of_the_textbook():
    """1 - 6 sum d^2 / n (n^2 - 1) without ties; a monotonous map changes nothing."""
    scores = np.array([0.3, 0.9, 0.1, 1.0, 0.5])
    drops = np.array([0.02, 0.01, -0.03, 0.2, 0.05])
    d = stats.rankdata(scores) - stats.rankdata(drops)
    expected = 1 - 6 * (d**2).sum() / (5 * 24)
    assert abs(pruning.rank_correlation(scores, drops) - expected) < 1e-14
    assert abs(pruning.rank_correlation(scores**3, drops) - expected) < 1e-14
    only = np.append(drops, np.nan)  # of the only head of a layer
    assert pruning.rank_correlation(np.append(scores, 0.7), only) == expected


def test_scores_that_say_nothing_have_rank_correlation_zero_on_average():
    """Over all orders: mean 0, standard deviation 1 / sqrt(n - 1)."""
    drops = np.array([0.0, 0.03, 0.01, 0.2, 0.05])
    found = [
        pruning.rank_correlation(np.array(order), drops)
        for order in itertools.permutations(range(5))
    ]
    assert abs(np.mean(found)) < 1e-12
    assert abs(np.std(found) - 0.5) < 1e-12


def test_no_rank_correlation_of_what_is_all_the_same_or_not_known():
    drops = np.array([0.1, 0.2, 0.3])
    for scores, known in (
        (np.ones(3), drops),
        (drops, np.zeros(3)),
        (np.full(3, np.nan), drops),
        (drops, np.array([0.1, 0.2, np.nan])),
    ):
        assert math.isnan(pruning.rank_correlation(scores, known))


def test_random_orders_are_all_equally_likely():
    """6 orders of 3 heads, 600 draws: chi squared below the 1e-3 quantile."""
    drawn = pruning.random_orders(jax.random.key(1), (2, 1), 600)
    assert (np.sort(drawn, axis=1) == np.arange(3)).all()
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert counts.size == 6
    assert ((counts - 100) ** 2 / 100).sum() < stats.chi2.isf(1e-3, 5)


@pytest.mark.usefixtures("unchecked")
def test_impossible_requests_are_refused(network):
    *_, weights, parts, y = network
    with pytest.raises(ValueError, match="one output; got 2"):
        several = weights._replace(a=np.stack([weights.a, weights.a]))
        pruning.contributions(several, np.ones((1, 5, 6)))
    with pytest.raises(ValueError, match="network's 6 paths; got 4"):
        pruning.contributions(weights, np.ones((1, 5, 4)))
    with pytest.raises(ValueError, match=r"must be \(P, 4\)"):
        pruning.pruned_outputs(parts, (2, 2))
    with pytest.raises(ValueError, match="no head 3 of layer 0"):
        pruning.pruned_outputs(parts, HEADS, [(0, 3)])
    with pytest.raises(ValueError, match="y must be of the size 40 in P"):
        pruning.correct_without_heads(parts, y[:3], HEADS)
    with pytest.raises(ValueError, match="every number from 0 to 5 once"):
        pruning.cumulative_accuracy(parts, y, HEADS, [0, 1, 2, 3, 4, 4])
    with pytest.raises(ValueError, match="must be finite"):
        pruning.ascending([0.1, np.nan])


def test_chance_counts_the_heads_with_a_drop_and_the_trainings_with_a_correlation():
    drops = np.array([[0.1, 0.2, 0.0, np.nan], [0.3, 0.1, 0.1, np.nan]])
    for unknown, trainings in ((-0.5, 2), (np.nan, 1)):
        found = pruning.chance_correlation(np.array([0.5, unknown]), drops)
        assert found == pytest.approx(1 / np.sqrt(trainings * (3 - 1)))
