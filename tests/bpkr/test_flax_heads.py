"""Gates on parameters of Flax: networks built without the heads."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr


WIDTH, SIZE, TOKENS, EXAMPLES = 6, 3, 4, 5
HEADS = {"layer_2": 2, "layer_10": 3}  # in the order of their numbers
rng = np.random.default_rng(3)


def layer(heads):
    parts = {
        name: {
            "kernel": rng.normal(size=(WIDTH, heads, SIZE)) / 2,
            "bias": rng.normal(size=(heads, SIZE)),
        }
        for name in ("query", "key", "value")
    }
    out = {
        "kernel": rng.normal(size=(heads, SIZE, WIDTH)) / 2,
        "bias": rng.normal(size=WIDTH),
    }
    return parts | {"out": out}


LAYERS = {name: layer(heads) for name, heads in HEADS.items()}
X = rng.normal(size=(EXAMPLES, TOKENS, WIDTH))
PARAMETERS = {"read": {"kernel": np.ones((WIDTH, 1))}, "blocks": LAYERS}


def attention(p, x, of=jnp):
    """What a layer of Flax computes, from its parameters, in JAX or NumPy."""
    query, key, value = (
        of.einsum("pti,ihg->phtg", x, p[n]["kernel"]) + p[n]["bias"][:, None]
        for n in ("query", "key", "value")
    )
    rows = of.exp(of.einsum("phtg,phsg->phts", query, key) / np.sqrt(SIZE))
    heads = of.einsum("phts,phsg->phtg", rows / rows.sum(-1, keepdims=True), value)
    return of.einsum("phtg,hgi->pti", heads, p["out"]["kernel"]) + p["out"]["bias"]


def losses(parameters, of_layer=attention):
    h = X
    for name in HEADS:
        h = h + of_layer(parameters["blocks"][name], h)
    return (h**2).mean(axis=(1, 2))


COMPILED = jax.jit(losses)


def built_without(layer, head):
    """Parameters of a layer with one head less."""
    keep = np.delete(np.arange(HEADS[layer]), head)
    own = LAYERS[layer]
    smaller = {
        name: {"kernel": p["kernel"][:, keep], "bias": p["bias"][keep]}
        for name, p in own.items()
        if name != "out"
    }
    out = own["out"] | {"kernel": own["out"]["kernel"][keep]}
    return {"blocks": LAYERS | {layer: smaller | {"out": out}}}


def test_gates_on_kernels_are_networks_built_without_the_heads():
    heads = bpkr.FlaxHeads(COMPILED, PARAMETERS)
    assert heads.paths == ("blocks/layer_2", "blocks/layer_10")
    ablation = bpkr.ablate(heads, heads.counts)
    in_numpy = partial(attention, of=np)
    whole = losses(PARAMETERS, in_numpy)
    for number, place in ((1, ("layer_2", 1)), (2, ("layer_10", 0))):
        expected = losses(built_without(*place), in_numpy) - whole
        np.testing.assert_allclose(ablation.differences[number], expected, atol=1e-10)
    gates, e = [np.ones(2), np.ones(3)], 1e-4
    slopes = heads.gradient(tuple(gates))
    shifted = [gates[1] + sign * e * np.eye(3)[2] for sign in (1, -1)]
    up, down = (heads((gates[0], shift)) for shift in shifted)
    np.testing.assert_allclose(slopes[1][:, 2], (up - down) / (2 * e), rtol=1e-6)
    one = bpkr.FlaxHeads(COMPILED, PARAMETERS, ["blocks/layer_10"])
    np.testing.assert_allclose(
        one((np.array([1.0, 0, 1]),)), heads((gates[0], np.array([1.0, 0, 1])))
    )
    assert PARAMETERS["blocks"] is LAYERS


KEPT = {  # mean losses of layers of Flax 0.12
    (1, 1, 1, 1, 1): 7.094289833527262,
    (1, 0, 1, 1, 1): 6.582809755453621,
    (1, 1, 0, 1, 0): 2.6379375148481863,
}


@pytest.mark.parametrize("gates", KEPT)
def test_gated_losses_are_those_that_layers_of_flax_had(gates):
    found = bpkr.FlaxHeads(COMPILED, PARAMETERS)(
        (np.array(gates[:2], float), np.array(gates[2:], float))
    )
    np.testing.assert_allclose(found.mean(), KEPT[gates], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("gates", KEPT)
def test_layers_of_linen_have_the_same_gated_losses(gates):
    linen = pytest.importorskip("flax.linen")

    def of_layer(p, h):
        heads = len(p["out"]["kernel"])
        module = linen.MultiHeadDotProductAttention(
            num_heads=heads, qkv_features=heads * SIZE, param_dtype=float
        )
        return module.apply({"params": p}, h)

    both = (np.array(gates[:2], float), np.array(gates[2:], float))
    of_linen = bpkr.FlaxHeads(lambda p: losses(p, of_layer), PARAMETERS)
    of_arrays = bpkr.FlaxHeads(losses, PARAMETERS)
    np.testing.assert_allclose(of_linen(both), of_arrays(both), rtol=1e-10)
    np.testing.assert_allclose(
        losses(built_without("layer_2", 1), of_layer),
        of_linen((np.array([1.0, 0.0]), np.ones(3))),
        rtol=1e-10,
    )


@pytest.mark.slow
def test_layers_of_nnx_have_the_same_gated_losses():
    """To single precision, in which they take the softmax."""
    nnx = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    model = nnx.List(
        nnx.MultiHeadAttention(
            heads, WIDTH, heads * SIZE, decode=False, rngs=rngs, param_dtype=float
        )
        for heads in HEADS.values()
    )
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    for number, own in enumerate(LAYERS.values()):
        nnx.replace_by_pure_dict(state[number], own)

    def of_model(parameters):
        h = X
        for module in nnx.merge(graph, parameters, rest):
            h = h + module(h)
        return (h**2).mean(axis=(1, 2))

    heads = bpkr.FlaxHeads(of_model, nnx.to_pure_dict(state))
    assert heads.paths == ("0", "1") and heads.counts == (2, 3)
    both = (np.array([0.0, 1.0]), np.array([1.0, 0.0, 0.5]))
    of_arrays = bpkr.FlaxHeads(losses, PARAMETERS)
    np.testing.assert_allclose(heads(both), of_arrays(both), rtol=1e-6)
    for found, slopes in zip(heads.gradient(both), of_arrays.gradient(both)):
        np.testing.assert_allclose(found, slopes, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bpkr.FlaxHeads(losses, {"a": 1}), "no layer has kernels of query"),
        (
            lambda: bpkr.FlaxHeads(losses, PARAMETERS, ["blocks/layer_3"]),
            "'blocks/layer_3' is no attention layer; there are blocks/layer_2, ",
        ),
    ],
)
def test_parameters_without_heads_are_refused_in_a_line(call, words):
    with pytest.raises(ValueError, match=words):
        call()
