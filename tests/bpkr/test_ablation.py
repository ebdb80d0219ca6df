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


def losses(weights, gates, x=X, y=Y):
    """Squared errors of two layers of attention with skip connections."""
    h = jnp.asarray(x)
    for w, gate in zip(weights, gates):
        q, k, v = (
            jnp.einsum("pti,hgi->phtg", h, w[n]) for n in ("query", "key", "value")
        )
        rows = jax.nn.softmax(jnp.einsum("phtg,phsg->phts", q, k), axis=-1)
        heads = jnp.einsum("phts,phsg,hig->phti", rows, v, w["output"])
        h = h + jnp.einsum("phti,h->pti", heads, jnp.asarray(gate))
    return (h.mean(axis=(1, 2)) - y) ** 2


def loss(gates):
    return losses(WEIGHTS, gates)


def without(*removed):
    """Losses of the network built without some heads (layer, head)."""
    kept = [
        [h for h in range(H) if (layer, h) not in removed]
        for layer, H in enumerate(HEADS)
    ]
    weights = [
        {name: x[chosen] for name, x in w.items()} for w, chosen in zip(WEIGHTS, kept)
    ]
    return np.asarray(losses(weights, [np.ones(len(chosen)) for chosen in kept]))


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


def test_standard_errors_are_the_scatter_over_independent_sets_of_examples():
    """200 sets of 60 examples: a standard deviation is known to 5 %, four of it."""
    draws = np.random.default_rng(1)
    means, errors = [], []
    for _ in range(200):
        x = draws.normal(size=(EXAMPLES, TOKENS, WIDTH))
        y = draws.normal(size=EXAMPLES)
        gained = bpkr.ablate(lambda gates: losses(WEIGHTS, gates, x, y), HEADS).gained
        means.append(gained.value)
        errors.append(gained.stderr)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(means, axis=0, ddof=1)
    assert abs(ratio - 1).max() < 0.25


def test_a_file_holds_all_of_it(ablation, tmp_path):
    path = tmp_path / "ablation.h5"
    storage.write(path, ablation.to_dataset(), study="", kind="ablation")
    dataset = storage.read(path)
    layout.require_layout(dataset, path)
    np.testing.assert_array_equal(dataset.loss_gained, ablation.gained.value)
    assert dataset.pruned_head.values.tolist() == [
        ablation.names[head] for head in ablation.order
    ]


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
        (lambda: bpkr.ablate(lambda _: 1.0, HEADS), "loss of every example"),
        (lambda: bpkr.ablate(lambda _: np.array([np.nan]), HEADS), "1 of 1 examples"),
        (lambda: bpkr.ablate(undefined, HEADS), "without head 2.3 is not finite for 2"),
        (lambda: bpkr.ablate(loss, (2, 0)), "number >= 1 for every layer"),
        (lambda: bpkr.ablate(loss, HEADS, names=["a"]), "one for each of 5 heads"),
        (
            lambda: bpkr.ablate(loss, HEADS, gradient=lambda _: [np.ones((3, 2))] * 2),
            "gradient must return shapes",
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_gates_on_a_model_of_torch_are_heads_removed_from_it():
    """Ablation against columns set to zero, derivatives against differences."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, dtype=torch.float64
    )
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    of_model = lambda: (model(x)[:, 0, 0] - y) ** 2
    heads = bpkr.TorchHeads(of_model, model.modules())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gates = np.array([1.0, 0.0]), np.ones(2)
    found = heads(gates)
    slopes = heads.gradient((np.ones(2), np.ones(2)))
    everything = heads((np.ones(2), np.ones(2)))
    assert abs(slopes[1]).max() > 0.01 and abs(found - everything).max() > 0.01
    assert list(before) == list(model.state_dict())
    assert all(torch.equal(before[n], v) for n, v in model.state_dict().items())
    step = 1e-5
    for number in range(2):
        up, down = (
            heads((np.ones(2), 1.0 + sign * step * np.eye(2)[number]))
            for sign in (1, -1)
        )
        np.testing.assert_allclose(
            slopes[1][:, number], (up - down) / (2 * step), atol=1e-8
        )
    half = heads((np.array([1.0, 0.5]), np.ones(2)))
    for gated, factor in ((half, 0.5), (found, 0.0)):
        with torch.no_grad():
            model.layers[0].self_attn.out_proj.weight[:, 4:] *= factor
            np.testing.assert_allclose(gated, of_model().numpy(), atol=1e-12)
    with pytest.raises(ValueError, match="none of them is a torch"):
        bpkr.TorchHeads(lambda: None, torch.nn.Linear(2, 2).modules())


@pytest.mark.slow
def test_gates_on_kernels_of_flax_are_heads_removed_from_it():
    """The kernel of the output projection has the heads first."""
    linen = pytest.importorskip("flax.linen")
    layer = linen.MultiHeadDotProductAttention(num_heads=2, param_dtype=float)
    params = layer.init(jax.random.key(0), X)["params"]

    def of_gates(gates):
        kernel = params["out"]["kernel"] * gates[0][:, None, None]
        gated = params | {"out": params["out"] | {"kernel": kernel}}
        return (layer.apply({"params": gated}, X).mean(axis=(1, 2)) - Y) ** 2

    def built_without(head):
        smaller = linen.MultiHeadDotProductAttention(
            num_heads=1, qkv_features=4, param_dtype=float
        )
        keep = np.array([1 - head])
        kept = {
            name: {"kernel": p["kernel"][:, keep], "bias": p["bias"][keep]}
            for name, p in params.items()
            if name != "out"
        }
        kept["out"] = params["out"] | {"kernel": params["out"]["kernel"][keep]}
        return (smaller.apply({"params": kept}, X).mean(axis=(1, 2)) - Y) ** 2

    ablation = bpkr.ablate(of_gates, (2,), gradient=jax.jacfwd(of_gates))
    whole = of_gates([np.ones(2)])
    for head in range(2):
        gained = np.asarray(built_without(head) - whole)
        np.testing.assert_allclose(ablation.differences[head], gained, atol=1e-6)
