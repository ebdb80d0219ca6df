"""Posterior studies: samples at finite width over widths and temperatures."""

import jax

from statmech_attn.montecarlo import posteriors
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.learning.tables import PosteriorStudy


def work(study: PosteriorStudy) -> posteriors.Posteriors:
    """The posteriors that a study asks for."""
    posteriors.require_numpyro()
    run, network = study.run, study.network
    return posteriors.Posteriors(
        jax.random.key(run.seed),
        tasks.learning(study.task),
        tasks.grid(network),
        sampling=run.sampling,
        stored=run.stored,
        variances=network.variances,
    )
