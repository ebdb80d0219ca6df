"""Transformer blocks of a study, looped, from a file of weights.

The file has the arrays of `dynamics.transformer_block`; of several layers, which follow
one another in a step, those of layer l end in _l.  An array `input` (T, D) is added at
the beginning of every step.
"""

import re
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp

from statmech_attn import dynamics
from statmech_attn.studies.systems.tables import BlockSpec, SystemSpec
from statmech_attn.tasks import array_files


Layers = dict[int, dict[str, str]]
PARAMETERS = ("scale", "temperature")
NORMS = {"layer": dynamics.layer_norm, "rms": dynamics.rms_norm}
ACTIVATIONS = {
    "gelu": jax.nn.gelu,
    "exact-gelu": partial(jax.nn.gelu, approximate=False),
    "relu": jax.nn.relu,
}


def looped(
    spec: SystemSpec, parameters: Sequence[str], shape: tuple[int, ...]
) -> dynamics.System:
    """The system of the weights that a study names; reads arrays, and runs no code."""
    for name in parameters:
        if name not in PARAMETERS:
            raise ValueError(
                f"parameters.{name}: a block of weights has {' and '.join(PARAMETERS)}."
            )
    block = spec.block or BlockSpec()
    norm = partial(NORMS[block.norm], epsilon=block.epsilon)
    stages: list = []
    try:
        file = array_files.opened(str(spec.weights))
        layers = _layers(file)
        _require_shapes(file, layers, shape)
        if "input" in file:
            constant = jnp.asarray(file.numbers("input"))
            stages.append({"input": lambda h, p: constant})
        for number, names in sorted(layers.items()):
            stages += dynamics.transformer_block(
                {stem: file.numbers(name) for stem, name in names.items()},
                norm=norm,
                activation=ACTIVATIONS[block.activation],
                post=block.post,
                causal=block.causal,
                prefix=f"{number} " if number else "",
            )
    except ValueError as error:
        raise ValueError(f"{spec.name}: {error}") from None
    closing = not block.post if block.closing is None else block.closing
    return dynamics.looped(stages, norm=norm if closing else None)


def _layers(file: array_files.ArrayFile) -> Layers:
    """Names in a file of the weights of its layers by number, 0 without one."""
    layers: Layers = {}
    for name in file.stored:
        if name == "input":
            continue
        stem, _, number = name.rpartition("_")
        if not re.fullmatch(r"[1-9]\d{0,5}", number):
            stem, number = name, "0"
        layers.setdefault(int(number), {})[stem] = name
    if not layers or (0 in layers and len(layers) > 1):
        raise ValueError(
            "needs query, key, value and output of one block, or query_1, ... of "
            f"several; there are {file.names()}."
        )
    return layers


def _require_shapes(
    file: array_files.ArrayFile, layers: Layers, shape: tuple[int, ...]
) -> None:
    """Refuse arrays that do not fit each other or the state, before they are read."""
    fits = lambda weights: bool(dynamics.transformer_block(weights))
    of = lambda name: jax.ShapeDtypeStruct(file.require_real(name), float)
    for names in layers.values():
        jax.eval_shape(fits, {stem: of(name) for stem, name in names.items()})
        width = file.shape(names["query"])[-1]
        if len(shape) != 2 or shape[1] != width:
            raise ValueError(
                f"system.initial must have the shape (tokens, {width}), as of "
                f"{names['query']}; got {shape}."
            )
    if "input" in file and (given := file.shape("input")) != shape:
        raise ValueError(
            f"input must have the shape of system.initial, {shape}; got {given}."
        )
