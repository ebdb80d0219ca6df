"""Training studies: gradient descent of all weights over widths and temperatures."""

import jax

from statmech_attn.studies import learning
from statmech_attn.studies.bpkr_tables import TrainingStudy
from statmech_attn.training import networks


VARIABLES = networks.VARIABLES


def work(study: TrainingStudy) -> networks.TrainedNetworks:
    """The trainings that a study asks for.

    Raises:
        ValueError: impossible settings, in one line.
    """
    run, network = study.run, study.network
    return networks.TrainedNetworks(
        jax.random.key(run.seed),
        learning.learning(study.task),
        learning.grid(network),
        run.descent,
        restarts=run.restarts,
        variances=network.variances,
    )
