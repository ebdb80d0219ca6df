"""Networks without some of their heads: by hand, beside other networks, in files."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from statmech_attn import bpkr, storage
from statmech_attn.batches import rng
from statmech_attn.bpkr import LearningTask, prune_networks, pruning
from statmech_attn.bpkr.grids.pruned_networks import (
    ORDERS,
    RANDOM_ORDERS,
    without_heads,
)


HEADS, SKIP = (2, 2), (0.7, -0.5)
EACH = [(layer, head) for layer in range(2) for head in range(3)]  # skips first
POSTERIOR = {"width": 9, "temperature": 0.5}
INPUTS = jax.jit(partial(bpkr.attentioned_inputs, readout="mean", skip=SKIP))
OUTPUTS = jax.jit(partial(bpkr.forward, readout="mean"))
KEYS = jax.random.split(jax.random.key(0), 5)
X = rng.normal(KEYS[0], (60, 5, 4))


def network(key):
    """Weights and heads of its own, drawn at random."""
    keys = jax.random.split(key, 3)
    draw = lambda key: tuple(3 * rng.normal(key, (2, 5, 5)))
    weights = bpkr.draw_weights(keys[0], n_inputs=5, heads=HEADS, width=9, skip=SKIP)
    return weights, bpkr.heads_from_products([*map(jnp.stack, map(draw, keys[1:]))])


NETWORKS = [network(key) for key in KEYS[1:4]]


def outputs(number, head=None):
    """f of a network, or of one that never had a head."""
    weights, heads = NETWORKS[number]
    V, skips, heads = list(weights.V), list(SKIP), list(heads)
    if head and head[1] == 0:
        skips[head[0]] = None
    elif head:
        layer, left = head[0], np.array([2 - head[1]])
        V[layer], heads[layer] = V[layer][left], heads[layer][left]
    fewer = weights._replace(V=tuple(V), skip=tuple(skips))
    return OUTPUTS(fewer, X, tuple(heads))


@pytest.fixture(scope="module")
def y():
    """Labels by the first network."""
    return jnp.sign(outputs(0))


@pytest.fixture(scope="module")
def attended(y):
    """The examples as the heads of a network attend them; the last one has none.

    Four train, as in the tests of skip connections, with which the program is shared.
    """

    def attended(number):
        if number == 2:
            raise ValueError("network 2 is out.")
        xi = INPUTS(X, NETWORKS[number][1])
        return LearningTask(xi[:4], y[:4], xi[20:], y[20:], HEADS, skip=SKIP)

    return attended


@pytest.fixture(scope="module")
def pruned(attended):
    weights = [weights for weights, _ in NETWORKS]
    return prune_networks(KEYS[4], attended, weights, **POSTERIOR, random_orders=3)


@pytest.fixture(scope="module")
def dataset(pruned):
    return pruned.compute()


@pytest.mark.slow
def test_accuracies_are_those_of_networks_that_never_had_the_heads(dataset, y):
    """Heads of their own, and skips, included."""
    assert dataset.accuracy_sets[0].item() == 1.0
    names = [f"{layer + 1}.{head}" for layer, head in EACH]
    assert dataset.attention_head.values.tolist() == names
    for number in (0, 1):
        for place, head in enumerate(EACH):
            f = np.asarray(outputs(number, head))[20:]
            right = np.mean(np.sign(f) == np.asarray(y)[20:])
            assert dataset.accuracy_pruned[number, place].item() == right
    assert len(np.unique(dataset.accuracy_pruned[:2])) > 4


def test_scores_are_those_of_weights_and_of_the_saddle_point(dataset, attended):
    for number in (0, 1):
        weights, problem = NETWORKS[number][0], attended(number).posed(**POSTERIOR)
        U, _ = bpkr.order_parameters(weights)
        expected = {
            "saddle": np.concatenate(problem.solve().head_scores()),
            "trained": np.concatenate(bpkr.head_scores(U[0], (3, 3))),
            "magnitude": pruning.head_magnitudes(weights),
        }
        for order, scores in expected.items():
            stored = dataset.pruning_score[number].sel(order=order)
            np.testing.assert_allclose(stored, scores, rtol=1e-7)


def test_random_orders_have_a_key_for_every_network(dataset):
    for number in (0, 1):
        key = rng.key_for(KEYS[4], RANDOM_ORDERS, number)
        first = pruning.random_orders(key, (3, 3), 3)[:, 0]
        expected = dataset.accuracy_pruned[number, first].mean()
        curve = dataset.accuracy_cumulative[number].sel(order="random", n_pruned=1)
        assert curve.item() == pytest.approx(expected.item(), abs=1e-12)


def test_a_file_holds_what_is_computed_and_is_of_these_networks_alone(
    pruned, dataset, attended, tmp_path
):
    """A network without examples has no numbers, and the file says why."""
    path = tmp_path / "pruned.h5"
    stored = pruned.run(path, points_per_chunk=1)
    xr.testing.assert_equal(stored, dataset)
    assert stored.failure.values.tolist() == [0, 0, 2]
    assert "network 2 is out" in stored.attrs["failure_reasons"]
    before = path.read_bytes()
    pruned.run(path)
    assert path.read_bytes() == before
    weights = [weights for weights, _ in NETWORKS[::-1]]
    others = prune_networks(KEYS[4], attended, weights, **POSTERIOR, random_orders=3)
    with pytest.raises(storage.StorageError):
        others.run(path)


def test_without_weights_the_mean_over_the_posterior_is_pruned(attended):
    """Its accuracy on every set is that of the theory, and its heads have names."""
    task = attended(1)
    sets = {"near": (task.xi_test, task.Y_test), "same": task.data}
    names = ("skip", "a", "b", "other", "c", "d")
    task = task._replace(sets=sets, names=names, description='{"name": "mine"}')
    dataset = prune_networks(KEYS[4], task, **POSTERIOR, random_orders=2).compute()
    theory = task.posed(**POSTERIOR).theory(task.posed(**POSTERIOR).solve())
    expected = [bpkr.accuracy(theory.mean(xi), labels) for xi, labels in task.tests]
    np.testing.assert_array_equal(dataset.accuracy_sets, [expected])
    assert dataset.test_set.values.tolist() == ["near", "same"]
    assert dataset.attention_head.values.tolist() == list(names)
    assert dataset.attrs == {"kind": "pruning", "task": '{"name": "mine"}'}
    assert np.isnan(dataset.pruning_score.sel(order="trained")).all()


def test_impossible_networks_are_refused(attended, monkeypatch):
    whole, fewer = NETWORKS[0][0], NETWORKS[0][0]._replace(V=NETWORKS[0][0].V[:1])
    for task, weights, width, message in (
        (attended, [whole, fewer], 9, "all networks must have the same heads"),
        (attended, None, 9, "needs weights of networks"),
        (attended, [whole], 9.5, "width must be whole in the exact law"),
    ):
        with pytest.raises(ValueError, match=message):
            prune_networks(
                KEYS[4], task, weights, width=width, temperature=0.1, exact={}
            )


def test_heads_are_taken_out_of_the_sum_over_paths():
    """Alone and one after the other, by hand for four paths."""
    draws = np.random.default_rng(0)
    parts, y = draws.normal(size=(50, 4)), np.repeat([1.0, -1.0], 25)
    scores = np.full((len(ORDERS), 4), np.nan)
    scores[0] = [0.3, 1.0, 0.2, 0.9]
    orders = np.array([[0, 3, 1, 2], [1, 0, 2, 3], [2, 1, 3, 0]])
    found = without_heads(parts, y, HEADS, scores, orders)
    # Paths 1-1, 1-2, 2-1, 2-2; what is left of them without each head.
    left = {0: [2, 3], 1: [0, 1], 2: [1, 3], 3: [0, 2]}
    right = lambda paths: np.sign(parts[:, paths].sum(axis=1)) == y
    full = right([0, 1, 2, 3])
    alone = np.array([right(left[head]).mean() for head in range(4)])
    binomial = lambda a: np.sqrt(a * (1 - a) / 50 + 1 / 100**2) / (1 + 1 / 50)
    nothing = np.full(3, np.nan)
    cumulative = np.array([nothing] * len(ORDERS))
    cumulative[0] = [full.mean(), alone[2], right([3]).mean()]
    each = np.array(
        [
            [full.mean(), alone[0], right([2]).mean()],
            [full.mean(), alone[1], np.nan],  # no head of layer 1 is left
            [full.mean(), alone[2], right([1]).mean()],
        ]
    )
    cumulative[-1] = [full.mean(), each[:, 1].mean(), (each[0, 2] + each[2, 2]) / 2]
    errors = binomial(cumulative)
    errors[-1] = [
        0,
        each[:, 1].std(ddof=1) / np.sqrt(3),
        abs(each[0, 2] - each[2, 2]) / 2,
    ]
    lost = [full.astype(int) - right(left[head]) for head in range(4)]
    rank = np.full(len(ORDERS), np.nan)
    rank[0] = pruning.rank_correlation(scores[0], np.mean(lost, axis=1))
    expected = {
        "accuracy_sets": full.mean(),
        "accuracy_sets_stderr": binomial(full.mean()),
        "accuracy_pruned": alone,
        "accuracy_pruned_stderr": binomial(alone),
        "accuracy_drop": full.mean() - alone,
        # Half of Wilson's interval of none where nothing is lost.
        "accuracy_drop_stderr": [
            np.std(x, ddof=1) / np.sqrt(50) or 1 / 102 for x in lost
        ],
        "accuracy_cumulative": cumulative,
        "accuracy_cumulative_stderr": errors,
        "rank_correlation": rank,
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-14, err_msg=name)
