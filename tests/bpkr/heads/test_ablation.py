"""Losses without heads: those of networks built without them, and their errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr, layout, storage


HEADS = (2, 3)
TOKENS, WIDTH, SIZE, EXAMPLES = 5, 8, 4, 60
rng = np.random.default_rng(5)
WEIGHTS = [
    {
        name: rng.normal(size=(H, SIZE, WIDTH)) / np.sqrt(WIDTH)
        for name in ("query", "key", "value")
    }
    | {"output": rng.normal(size=(H, WIDTH, SIZE)) / np.sqrt(SIZE)}
    for H in HEADS
]
X = rng.normal(size=(EXAMPLES, TOKENS, WIDTH))
Y = rng.normal(size=EXAMPLES)
ALL = tuple(np.ones(H, np.float32) for H in HEADS)


def losses(weights, gates, x=X, y=Y, of=np):
    """Squared errors of two layers of attention with skip connections."""
    h = x
    for w, gate in zip(weights, gates):
        q, k, v = (
            of.einsum("pti,hgi->phtg", h, w[n]) for n in ("query", "key", "value")
        )
        rows = of.exp(of.einsum("phtg,phsg->phts", q, k))
        values = of.einsum("phsg,hig->phsi", v, w["output"])
        heads = of.einsum("phts,phsi->phti", rows / rows.sum(-1, keepdims=True), values)
        h = h + of.einsum("phti,h->pti", heads, gate)
    return (h.mean(axis=(1, 2)) - y) ** 2


@jax.jit
def loss(gates):
    return losses(WEIGHTS, gates, of=jnp)


def without(*removed):
    """Losses of the network built without some heads (layer, head)."""
    kept = [
        [h for h in range(H) if (layer, h) not in removed]
        for layer, H in enumerate(HEADS)
    ]
    weights = [
        {name: x[chosen] for name, x in w.items()} for w, chosen in zip(WEIGHTS, kept)
    ]
    return losses(weights, [np.ones(len(chosen)) for chosen in kept])


@pytest.fixture(scope="module")
def ablation():
    return bpkr.ablate(loss, HEADS, gradient=jax.jacfwd(loss), pairs=True, greedy=True)


def test_losses_are_those_of_networks_built_without_the_heads(ablation):
    whole = without()
    places = [(layer, h) for layer, H in enumerate(HEADS) for h in range(H)]
    assert ablation.names == ("1.1", "1.2", "2.1", "2.2", "2.3")
    for number, place in enumerate(places):
        gained = without(place) - whole
        np.testing.assert_allclose(ablation.differences[number], gained, atol=1e-12)
        np.testing.assert_allclose(ablation.gained.value[number], gained.mean())
        expected = gained.std(ddof=1) / np.sqrt(EXAMPLES)
        np.testing.assert_allclose(ablation.gained.stderr[number], expected)
    for i, first in enumerate(places):
        for j, second in enumerate(places[:i]):
            both = without(first, second) - whole
            np.testing.assert_allclose(ablation.pairs.value[i, j], both.mean())
            excess = both - ablation.differences[i] - ablation.differences[j]
            np.testing.assert_allclose(
                ablation.interaction.value[j, i], excess.mean(), atol=1e-12
            )
    np.testing.assert_array_equal(np.diag(ablation.pairs.value), ablation.gained.value)


def test_greedy_pruning_takes_the_head_of_least_loss_each_time(ablation):
    places = [(layer, h) for layer, H in enumerate(HEADS) for h in range(H)]
    removed, whole = [], without()
    for number, loss_along in zip(ablation.order, ablation.pruned.value):
        left = [place for place in places if place not in removed]
        gained = {p: (without(*removed, p) - whole).mean() for p in left}
        np.testing.assert_allclose(loss_along, min(gained.values()), atol=1e-12)
        assert places[number] == min(gained, key=gained.get)
        removed.append(places[number])
    assert sorted(ablation.order) == list(range(5))


def test_derivatives_are_the_first_order_of_small_gates(ablation):
    """Central differences with a step of 1e-4: errors of its square."""
    e = 1e-4
    for number in range(5):
        shifted = []
        for sign in (1, -1):
            gates = np.concatenate(ALL).astype(float)
            gates[number] += sign * e
            shifted.append(np.asarray(loss(np.split(gates, [2]))))
        slope = (shifted[0] - shifted[1]) / (2 * e)
        np.testing.assert_allclose(
            ablation.gradient.value[number], abs(slope).mean(), rtol=1e-5
        )
        np.testing.assert_allclose(
            ablation.linear.value[number], -slope.mean(), rtol=1e-5
        )


def test_a_file_holds_all_of_it(ablation, tmp_path):
    path = tmp_path / "ablation.h5"
    storage.write(path, ablation.to_dataset(), study="", kind="ablation")
    dataset = storage.read(path)
    layout.require_layout(dataset, path)
    np.testing.assert_array_equal(dataset.loss_gained, ablation.gained.value)
    assert dataset.pruned_head.values.tolist() == [
        ablation.names[head] for head in ablation.order
    ]


def test_examples_that_carry_a_mean_are_counted():
    """All of equal losses, one of one, 1/3 of normal ones: <d^4> = 3 <d^2>^2."""
    normal = np.random.default_rng(0).normal(size=10**5)
    rare, none = np.eye(1, 10**5)[0], np.zeros(10**5)
    gained = np.array([np.full(10**5, 1e-200), rare, normal, none])
    with pytest.warns(UserWarning, match="no loss changes without d"):
        found = bpkr.ablate(
            lambda gates: (1 - gates[0]) @ gained, (4,), names=[*"abcd"]
        )
    # <d^4> of normal losses is known to sqrt(32 / 3 n), and twice <d^2> to sqrt(8 / n).
    expected = [
        1e5,
        1,
        pytest.approx(1e5 / 3, rel=0.03),
        pytest.approx(np.nan, nan_ok=True),
    ]
    assert found.effective_examples.tolist() == expected
    assert "that carry the loss gained" in repr(found)


def test_heads_that_nothing_reads_are_named():
    deaf = lambda gates: loss((ALL[0] * [1, 0], gates[1]))
    with pytest.warns(UserWarning, match=r"without 1\.1, 1\.2: the gate is not read"):
        assert bpkr.ablate(deaf, HEADS).silent == ("1.1", "1.2")


def noisy():
    draws = np.random.default_rng(0)
    return lambda gates: np.asarray(loss(gates)) + draws.normal(size=EXAMPLES)


def undefined(gates):
    return np.where(gates[1][2] > 0, np.ones(4), [1.0, np.nan, 2.0, np.inf])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bpkr.ablate(noisy(), HEADS), "differs between two calls"),
        (lambda: bpkr.ablate(lambda _: np.ones(3), HEADS), "not change with any gate"),
        (lambda: bpkr.ablate(lambda _: np.array([np.nan]), HEADS), "1 of 1 examples"),
        (lambda: bpkr.ablate(undefined, HEADS), "without head 2.3 is not finite for 2"),
        (lambda: bpkr.ablate(loss, HEADS, names=["a"]), "one for each of 5 heads"),
        (
            lambda: bpkr.ablate(loss, HEADS, gradient=lambda _: [np.ones((3, 2))] * 2),
            "gradient must return shapes",
        ),
        (
            lambda: bpkr.ablate(
                loss, HEADS, gradient=lambda _: [np.zeros((EXAMPLES, H)) for H in HEADS]
            ),
            "gradient is zero in every gate",
        ),
        (
            lambda: bpkr.ablate(lambda g: np.ones(int(2 + g[0][0])), HEADS),
            "as many losses for all gates",
        ),
    ],
)
def test_losses_that_say_nothing_are_refused_in_a_line(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
