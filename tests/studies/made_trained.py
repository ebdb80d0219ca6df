"""Files of one-shot trainings, for tests that need no training."""

import json
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np

from statmech_attn import storage
from statmech_attn.tasks.one_shot import Setting
from statmech_attn.training import Transformer
from statmech_attn.training.one_shot_networks import named, VARIABLES
from statmech_attn.training.transformer import initial


SIZES = {"heads": [2, 2], "width": 6, "key_size": 5}
STRENGTH = 3.0  # of queries and keys drawn at random: attention that is not uniform


def drawn_network(setting: Setting, seed: int, **sizes) -> Transformer:
    """Weights before training, with a gain."""
    key, sizes = jax.random.key(seed), SIZES | sizes
    return initial(key, n_inputs=setting.n_inputs, gain=STRENGTH, **sizes)


def write_trained(
    path: Path, networks: list[Transformer], setting: Setting, codes: list[int]
) -> Path:
    """The variables that `load_trained` reads, as a training leaves them.

    Args:
        codes: indices into `training.RESULTS`, one for each network.
    """
    rows = [named(network) for network in networks]
    variables = {
        name: (VARIABLES.dims(name), np.stack([row[name] for row in rows]))
        for name in rows[0]
    }
    variables["training_result"] = (("restart",), np.asarray(codes, np.int8))
    sizes = {
        "heads": list(networks[0].heads),
        "width": networks[0].a.size,
        "key_size": networks[0].keys[0].shape[1],
    }
    task = {"name": "one-shot"} | asdict(setting) | {"split": "small"} | sizes
    dataset = VARIABLES.labelled(variables, {"restart": np.arange(len(networks))})
    dataset = dataset.assign_attrs(kind="training", task=json.dumps(task))
    storage.write(path, dataset, study='kind = "training"\n', overwrite=True)
    return path
