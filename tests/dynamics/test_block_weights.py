"""Blocks with the weights of layers of PyTorch (docs/systems.md): one forward pass."""

from functools import partial

import jax
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.dynamics import layer_norm, looped, transformer_block


TOKENS, WIDTH, HEADS, HIDDEN = 4, 6, 2, 5
rng = np.random.default_rng(11)
X = rng.normal(size=(TOKENS, WIDTH))
SHAPES = {  # of layers of PyTorch, in the order in which a layer has them
    "self_attn.in_proj_weight": (3 * WIDTH, WIDTH),
    "self_attn.in_proj_bias": (3 * WIDTH,),
    "self_attn.out_proj.weight": (WIDTH, WIDTH),
    "self_attn.out_proj.bias": (WIDTH,),
    "linear1.weight": (HIDDEN, WIDTH),
    "linear1.bias": (HIDDEN,),
    "linear2.weight": (WIDTH, HIDDEN),
    "linear2.bias": (WIDTH,),
    "norm1.weight": (WIDTH,),
    "norm1.bias": (WIDTH,),
    "norm2.weight": (WIDTH,),
    "norm2.bias": (WIDTH,),
}
STATE = {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
NAMES = {  # what layers of PyTorch call arrays that are stored alike
    "output_bias": "self_attn.out_proj.bias",
    "up": "linear1.weight",
    "up_bias": "linear1.bias",
    "down": "linear2.weight",
    "down_bias": "linear2.bias",
    "attention_gain": "norm1.weight",
    "attention_shift": "norm1.bias",
    "mlp_gain": "norm2.weight",
    "mlp_shift": "norm2.bias",
}


def arrays(state):
    """Weights for `transformer_block` of the state of a layer of PyTorch."""
    output = state["self_attn.out_proj.weight"].reshape(WIDTH, HEADS, -1)
    found = {"output": output.swapaxes(0, 1)}
    for part, axes in {"weight": (-1, WIDTH), "bias": (-1,)}.items():
        if (inside := state.get(f"self_attn.in_proj_{part}")) is not None:
            ending = "_bias" if part == "bias" else ""
            for name, array in zip(("query", "key", "value"), np.split(inside, 3)):
                found[f"{name}{ending}"] = array.reshape(HEADS, *axes)
    return found | {ours: state[name] for ours, name in NAMES.items() if name in state}


ARRAYS = arrays(STATE)
EXACT = partial(jax.nn.gelu, approximate=False)
LAYERS = {  # options of the block, and what PyTorch 2.13 had of token 2
    "post": (
        {"post": True, "activation": jax.nn.relu},
        [-1.131133644080304, 0.40631955019359484, 0.5575717879821772],
    ),
    "pre": (
        {"activation": EXACT, "causal": True},
        [6.625261512273357, -7.9168391371681714, 10.110600989434284],
    ),
}


def stepped(block):
    return jax.jit(lambda x: looped(block).step(x))(X)


def of_block(arrays, **options):
    return stepped(transformer_block(arrays, norm=layer_norm, **options))


@pytest.mark.parametrize("name", LAYERS)
def test_blocks_give_what_layers_of_pytorch_gave(name):
    options, kept = LAYERS[name]
    np.testing.assert_allclose(of_block(ARRAYS, **options)[1, :3], kept, rtol=1e-9)


def test_norms_after_the_branches_are_parts_and_are_counted():
    layer = partial(transformer_block, ARRAYS, norm=layer_norm, post=True)
    parts = ("head 1", "head 2", "bias", "norm 1", "mlp", "norm 2")
    assert looped(layer()).step.parts == parts
    two = looped([*layer(prefix="1 "), *layer(prefix="2 ")])
    assert two.step.parts[-3:] == ("norm 3", "2 mlp", "norm 4")


@pytest.mark.slow
def test_shares_of_a_block_with_norms_after_the_branches_add_up():
    """Norms are parts like branches, and a bias has no share."""
    layer = partial(transformer_block, ARRAYS, norm=layer_norm, post=True)
    growth = dynamics.growth_shares(looped(layer()), X, steps=16)
    shares = dict(zip(growth.parts, growth.shares.tolist(), strict=True))
    assert [*shares] == ["head 1", "head 2", "bias", "norm 1", "mlp", "norm 2"]
    assert shares["bias"] == 0.0 != shares["norm 1"]
    assert abs(growth.shares.sum() - growth.exponent) < 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: transformer_block({"mlp_gain": X[0]}),
            "weights must be query, key, value, output, up, down, and may be query_b",
        ),
        (
            lambda: transformer_block(ARRAYS | {"up_bias": X[0]}),
            r"up_bias must have axes \(M\) of the lengths of the .*; got \[6\]",
        ),
    ],
)
def test_layers_that_are_no_block_are_refused_in_a_line(call, words):
    with pytest.raises(ValueError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)
