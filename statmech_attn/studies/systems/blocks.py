"""Transformer blocks of a study, looped, from a file of weights.

The file has the arrays of `dynamics.transformer_block`; of several layers, which follow
one another in a step, those of layer l end in _l.  An array `input` (T, D) is added at
the beginning of every step.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import dynamics
from statmech_attn.studies.systems.tables import BlockSpec, SystemSpec
from statmech_attn.tasks import array_files


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
        constant, layers = _arrays(Path(str(spec.weights)))
        for number, arrays in sorted(layers.items()):
            stages += dynamics.transformer_block(
                arrays,
                norm=norm,
                activation=ACTIVATIONS[block.activation],
                post=block.post,
                causal=block.causal,
                prefix=f"{number} " if number else "",
            )
        width = layers[min(layers)]["query"].shape[-1]
        for number, arrays in layers.items():
            if arrays["query"].shape[-1] != width:
                raise ValueError(f"query_{number} has another width than {width}.")
    except ValueError as error:
        raise ValueError(f"{spec.name}: {error}") from None
    if len(shape) != 2 or shape[1] != width:
        raise ValueError(
            f"system.initial: a state of {spec.name} has shape (tokens, {width}); got "
            f"{shape}."
        )
    if constant is not None and constant.shape != shape:
        raise ValueError(
            f"{spec.name}: input must have the shape of system.initial, {shape}; got "
            f"{constant.shape}."
        )
    if constant is not None:
        stages.insert(0, {"input": lambda h, p: constant})
    closing = not block.post if block.closing is None else block.closing
    return dynamics.looped(stages, norm=norm if closing else None)


def _arrays(path: Path) -> tuple[jax.Array | None, dict[int, dict[str, np.ndarray]]]:
    """The input of a file, and the weights of its layers by number, 0 without one."""
    file = array_files.opened(path)
    constant = jnp.asarray(file.numbers("input")) if "input" in file else None
    layers: dict[int, dict[str, np.ndarray]] = {}
    for name in file.stored:
        if name == "input":
            continue
        stem, _, number = name.rpartition("_")
        if not re.fullmatch(r"[1-9]\d{0,5}", number):
            stem, number = name, "0"
        layers.setdefault(int(number), {})[stem] = file.numbers(name)
    if not layers or (0 in layers and len(layers) > 1):
        raise ValueError(
            "needs query, key, value and output of one block, or query_1, ... of "
            f"several; there are {file.names()}."
        )
    return constant, layers
