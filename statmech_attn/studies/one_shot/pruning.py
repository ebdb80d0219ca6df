"""Pruning studies: trained networks without some of their heads."""

import json

import jax

from statmech_attn.bpkr import pruned_networks
from statmech_attn.scan import Scan
from statmech_attn.studies.learning.work import pruning_options
from statmech_attn.studies.one_shot import examples
from statmech_attn.studies.one_shot.trained import load_trained
from statmech_attn.studies.one_shot.trained_tables import PruningStudy
from statmech_attn.training import value_weights


def work(study: PruningStudy) -> Scan:
    """Every network of a trained file, with the examples that its heads attend."""
    trained, network = load_trained(study.task.trained), study.network
    examples.learned(trained, study.task.trained)
    if study.run.exact:  # before images are read
        width, temperature = network.width, network.temperature
        pruned_networks.check_exact_law(width, temperature, trained.heads)
    source = examples.source(study.task, trained)
    return pruned_networks.prune_networks(
        jax.random.key(study.run.seed),
        source.attended,
        list(map(value_weights, trained.transformers)),
        sets=source.images.tested,
        about={"task": json.dumps(source.description)},
        **pruning_options(study.network, study.run),
    )
