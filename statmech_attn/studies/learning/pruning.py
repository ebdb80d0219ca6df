"""Pruning studies: the mean network of a posterior without some of its heads."""

from typing import Any

import jax

from statmech_attn.bpkr import pruned_networks
from statmech_attn.scan import Scan
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.learning.tables import (
    LearnedPruningStudy,
    PruningNetwork,
    PruningRun,
)


def work(study: LearnedPruningStudy) -> Scan:
    """The posterior of a task, whose mean predictor is pruned."""
    task, key = tasks.learning(study.task), jax.random.key(study.run.seed)
    return pruned_networks.prune_networks(
        key, task, **options(study.network, study.run)
    )


def options(network: PruningNetwork, run: PruningRun) -> dict[str, Any]:
    """Those of `prune_networks` that both kinds of study have."""
    exact = run.model_dump(include={"draws", "warmup", "chains"}) if run.exact else None
    orders = {"random_orders": run.random_orders, "exact": exact}
    return network.model_dump() | orders
