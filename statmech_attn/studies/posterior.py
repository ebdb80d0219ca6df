"""Posterior studies: samples at finite width over widths and temperatures."""

import jax

from statmech_attn.montecarlo import posteriors
from statmech_attn.studies import learning
from statmech_attn.studies.bpkr_tables import PosteriorStudy


VARIABLES = posteriors.VARIABLES


def work(study: PosteriorStudy) -> posteriors.Posteriors:
    """The posteriors that a study asks for.

    Raises:
        ValueError: impossible settings, in one line.
    """
    posteriors.require_numpyro()
    run, network = study.run, study.network
    return posteriors.Posteriors(
        jax.random.key(run.seed),
        learning.learning(study.task),
        learning.grid(network),
        sampling=run.sampling,
        stored=run.stored,
        variances=network.variances,
    )
