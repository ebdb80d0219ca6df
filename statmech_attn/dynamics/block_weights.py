"""Weights of layers of PyTorch and Flax, as `transformer_block` takes them.

Both write a projection to all heads as one array; of PyTorch, whose linear maps are
(to, from), the heads are blocks of rows, and of columns of the output projection.  All
functions take anything that becomes an array of NumPy, and none needs the package.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float


Arrays = dict[str, Float[np.ndarray, "*shape"]]


def torch_weights(state: Mapping[str, Any], heads: int, *, prefix: str = "") -> Arrays:
    """Weights of a `torch.nn.TransformerEncoderLayer`.

    Such a layer has `layer_norm`, `post=True` unless it has `norm_first`, and
    `jax.nn.relu` for its activation by default.

    Args:
        state: `layer.state_dict()`, on the CPU.
        heads: their number, which the state does not hold.
        prefix: of the layer's names in the state of a larger model, such as
            "layers.0.".

    Returns:
        Arrays for `transformer_block`, in double precision.

    Raises:
        ValueError: arrays that are missing, or do not divide into so many heads.

    Example:
        `torch_weights(layer.state_dict(), layer.self_attn.num_heads)`
    """
    needed = [f"self_attn.{name}" for name in ("in_proj_weight", "out_proj.weight")]
    needed += ["linear1.weight", "linear2.weight"]
    for name in needed:
        if f"{prefix}{name}" not in state:
            raise ValueError(
                "state must be that of a torch.nn.TransformerEncoderLayer; got none "
                f"of {prefix}{name}."
            )
    array = lambda name: np.asarray(state[f"{prefix}{name}"], float)
    output = array("self_attn.out_proj.weight")
    if heads < 1 or len(output) % heads:
        raise ValueError(f"heads must divide the width {len(output)}; got {heads}.")
    inside = array("self_attn.in_proj_weight")
    names = ("query", "key", "value")
    arrays: Arrays = dict(zip(names, inside.reshape(3, heads, -1, len(output))))
    arrays["output"] = output.reshape(len(output), heads, -1).swapaxes(0, 1)
    if f"{prefix}self_attn.in_proj_bias" in state:
        biases = array("self_attn.in_proj_bias").reshape(3, heads, -1)
        arrays |= {f"{n}_bias": bias for n, bias in zip(names, biases)}
    others = {
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
    stored = {ours: n for ours, n in others.items() if f"{prefix}{n}" in state}
    return arrays | {ours: array(name) for ours, name in stored.items()}


def flax_weights(
    attention: Mapping[str, Any],
    up: Mapping[str, Any] | None = None,
    down: Mapping[str, Any] | None = None,
    *,
    attention_norm: Mapping[str, Any] | None = None,
    mlp_norm: Mapping[str, Any] | None = None,
) -> Arrays:
    """Weights of layers of Flax, whose names in a block are their author's.

    A `LayerNorm` of Flax is `functools.partial(layer_norm, epsilon=1e-6)`.

    Args:
        attention: parameters of a `MultiHeadDotProductAttention` (linen) or
            `MultiHeadAttention` (nnx).
        up: of the first `Dense` or `Linear` of the MLP, None of a block without one.
        down: of the second.
        attention_norm: of the norm of the attention, with `scale`, `bias` or both.
        mlp_norm: of the norm of the MLP.

    Returns:
        Arrays for `transformer_block`, in double precision.

    Raises:
        ValueError: a layer without its kernel.

    Example:
        >>> kernel = lambda *shape: {"kernel": np.ones(shape)}
        >>> layer = {name: kernel(8, 2, 3) for name in ("query", "key", "value")}
        >>> arrays = flax_weights(layer | {"out": kernel(2, 3, 8)})
        >>> arrays["query"].shape, arrays["output"].shape
        ((2, 3, 8), (2, 8, 3))
    """
    layers = {
        "query": (attention.get("query"), (1, 2, 0)),
        "key": (attention.get("key"), (1, 2, 0)),
        "value": (attention.get("value"), (1, 2, 0)),
        "output": (attention.get("out"), (0, 2, 1)),
    }
    if up is not None or down is not None:
        layers |= {"up": (up, (1, 0)), "down": (down, (1, 0))}
    arrays = {}
    for name, (stored, axes) in layers.items():
        layer = stored or {}
        kernel = np.asarray(layer.get("kernel", 0.0), float)
        if kernel.ndim != len(axes):
            raise ValueError(f"{name}: needs a kernel of {len(axes)} axes.")
        arrays[name] = kernel.transpose(axes)
        if "bias" in layer:
            arrays[f"{name}_bias"] = np.asarray(layer["bias"], float)
    for part, norm in (("attention", attention_norm), ("mlp", mlp_norm)):
        for ours, theirs in (("gain", "scale"), ("shift", "bias")):
            if norm is not None and theirs in norm:
                arrays[f"{part}_{ours}"] = np.asarray(norm[theirs], float)
    return arrays
