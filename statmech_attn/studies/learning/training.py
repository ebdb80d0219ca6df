"""Training studies: gradient descent of all weights over widths and temperatures."""

import jax

from statmech_attn.studies.learning import tasks
from statmech_attn.studies.learning.tables import TrainingStudy
from statmech_attn.training import networks


def work(study: TrainingStudy) -> networks.TrainedNetworks:
    """The trainings that a study asks for."""
    run, network = study.run, study.network
    return networks.TrainedNetworks(
        jax.random.key(run.seed),
        tasks.learning(study.task),
        tasks.grid(network),
        run.descent,
        restarts=run.restarts,
        variances=network.variances,
    )
