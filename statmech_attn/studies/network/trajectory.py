"""Trajectory studies of a network, with linear noise where that is asked for."""

from functools import partial

from statmech_attn.dmft import NetworkTrajectories
from statmech_attn.studies.network import models
from statmech_attn.studies.network.tables import TrajectoryStudy


def work(study: TrajectoryStudy, batch: int | None = None) -> NetworkTrajectories:
    """Trajectories of the network of a study.

    `batch` is chosen by the study alone when omitted, not for a device.
    """
    model, options = models.model(study.network), study.run
    axes = models.only_beta(models.axes(study.parameters, model.file), "trajectory")
    return NetworkTrajectories(
        model.net,
        axes,
        partial(models.starts, options, model),
        steps=options.steps,
        transient=options.transient,
        noise=model.patterns if options.noise else None,
        entropy_production=options.entropy_production,
        about={"start": models.describe_start(options, model)},
        batch=batch,
    )
