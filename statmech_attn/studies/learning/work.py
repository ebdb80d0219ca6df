"""What studies of learning compute that need no module of their own."""

from typing import Any

import jax

from statmech_attn import bpkr, montecarlo, training
from statmech_attn.scan import Points
from statmech_attn.studies.learning import tables, tasks


def order_parameter(study: tables.OrderParameterStudy) -> Points:
    """The saddle points that a study asks for."""
    return bpkr.SaddlePoints(
        tasks.learning(study.task),
        tasks.grid(study.network),
        variances=study.network.variances,
        **study.run.model_dump(),
    )


def posterior(study: tables.PosteriorStudy) -> Points:
    """The posteriors that a study asks for, at finite width."""
    montecarlo.posteriors.require_numpyro()
    run, network = study.run, study.network
    return montecarlo.posteriors.Posteriors(
        jax.random.key(run.seed),
        tasks.learning(study.task),
        tasks.grid(network),
        sampling=run.sampling,
        stored=run.stored,
        variances=network.variances,
    )


def trainings(study: tables.TrainingStudy) -> Points:
    """The gradient descents of all weights that a study asks for."""
    run, network = study.run, study.network
    return training.networks.TrainedNetworks(
        jax.random.key(run.seed),
        tasks.learning(study.task),
        tasks.grid(network),
        run.descent,
        restarts=run.restarts,
        variances=network.variances,
    )


def pruning(study: tables.LearnedPruningStudy) -> Points:
    """The posterior of a task, whose mean predictor is pruned."""
    task, key = tasks.learning(study.task), jax.random.key(study.run.seed)
    how = pruning_options(study.network, study.run)
    return bpkr.prune_networks(key, task, **how)


def pruning_options(
    network: tables.PruningNetwork, run: tables.PruningRun
) -> dict[str, Any]:
    """Those of `prune_networks` that both kinds of pruning study have."""
    exact = run.model_dump(include={"draws", "warmup", "chains"}) if run.exact else None
    orders = {"random_orders": run.random_orders, "exact": exact}
    return network.model_dump() | orders
