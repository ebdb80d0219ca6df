"""Pruning studies: trained networks, or the mean over a posterior, without heads."""

import json
from typing import Any

import jax

from statmech_attn.bpkr import pruned_networks
from statmech_attn.studies import learning, one_shot
from statmech_attn.studies.pruning_table import LearnedPruningStudy, PruningStudy
from statmech_attn.studies.trained import load_trained
from statmech_attn.training import value_weights


VARIABLES = pruned_networks.VARIABLES


def work(study: LearnedPruningStudy) -> pruned_networks.PrunedNetworks:
    """The posterior of a task, whose mean predictor is pruned.

    Raises:
        ValueError: impossible settings, in one line.
    """
    task, key = learning.learning(study.task), jax.random.key(study.run.seed)
    return pruned_networks.PrunedNetworks(key, task, **_options(study))


def of_trained(study: PruningStudy) -> pruned_networks.PrunedNetworks:
    """Every network of a trained file, with the examples that its heads attend.

    Raises:
        ValueError: impossible settings, in one line.
    """
    trained, network = load_trained(study.task.trained), study.network
    one_shot.learned(trained, study.task.trained)
    if study.run.exact:  # before images are read
        width, temperature = network.width, network.temperature
        pruned_networks.check_exact_law(width, temperature, trained.heads)
    source = one_shot.source(study.task, trained)
    return pruned_networks.PrunedNetworks(
        jax.random.key(study.run.seed),
        source.attended,
        list(map(value_weights, trained.transformers)),
        sets=source.images.tested,
        about={"task": json.dumps(source.description)},
        **_options(study),
    )


def _options(study: LearnedPruningStudy | PruningStudy) -> dict[str, Any]:
    """Those of `PrunedNetworks` that both kinds of study have."""
    run = study.run
    exact = run.model_dump(include={"draws", "warmup", "chains"}) if run.exact else None
    orders = {"random_orders": run.random_orders, "exact": exact}
    return study.network.model_dump() | orders
