"""Studies of one-shot training: networks, heads included, on classes of images."""

import jax

from statmech_attn.studies.files import spec
from statmech_attn.studies.one_shot.tables import OneShotTrainingStudy
from statmech_attn.studies.tables import chosen
from statmech_attn.tasks import image_sets, one_shot
from statmech_attn.training import Minibatches, one_shot_networks


def work(study: OneShotTrainingStudy) -> one_shot_networks.OneShotNetworks:
    """The trainings that a study asks for."""
    task, run = study.task, study.run
    setting = chosen(one_shot.Setting, task)
    return one_shot_networks.OneShotNetworks(
        jax.random.key(run.seed),
        image_sets.read(setting, task.split, task.elsewhere, task.turned),
        jax.random.key(task.seed),
        chosen(Minibatches, run),
        **study.network.model_dump(),
        gain=run.gain,
        restarts=run.restarts,
        n_test=task.n_test,
        about={"settings": spec.dump(study.model_dump(exclude_none=True))},
    )
