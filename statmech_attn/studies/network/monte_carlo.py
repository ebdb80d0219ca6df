"""Monte Carlo studies: simulations of N spins for several N and beta."""

from functools import partial

import jax

from statmech_attn.montecarlo import Simulations
from statmech_attn.studies.network import models
from statmech_attn.studies.network.tables import MonteCarloStudy


def work(study: MonteCarloStudy, batch: int | None = None) -> Simulations:
    """The simulations that a study asks for."""
    model, options = models.model(study.network), study.run
    axes = models.axes(study.parameters, model.file, study.points)
    axes = axes if axes.columns else models.only_beta(axes, "monte-carlo")
    return Simulations(
        jax.random.key(options.seed),
        model.net,
        model.patterns,
        axes,
        partial(models.starts, options, model),
        n_spins=options.n_spins,
        steps=options.steps,
        runs=options.runs,
        stored=options.stored,
        transient=options.transient,
        mean_field_transient=options.mean_field_transient,
        method=options.method,
        entropy_production=options.entropy_production,
        about={"start": models.describe_start(options, model)},
        batch=batch,
    )
