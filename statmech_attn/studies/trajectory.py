"""Trajectory studies: of a network with linear noise, or of a system of one's own."""

from functools import partial

from statmech_attn.dmft import NetworkTrajectories
from statmech_attn.dynamics import Trajectories
from statmech_attn.studies import build, posed
from statmech_attn.studies.dmft_tables import TrajectoryStudy
from statmech_attn.studies.system_tables import SystemTrajectoryStudy


def of_network(study: TrajectoryStudy, batch: int | None = None) -> NetworkTrajectories:
    """Trajectories of the network of a study.

    Args:
        batch: see `Work`; chosen by the study alone when omitted.

    Raises:
        ValueError: an impossible setting, in one line.
    """
    model, options = build.model(study.network), study.run
    axes = build.only_beta(build.axes(study.parameters, model.file), "trajectory")
    return NetworkTrajectories(
        model.net,
        axes,
        partial(build.starts, options, model),
        steps=options.steps,
        transient=options.transient,
        noise=model.patterns if options.noise else None,
        about={"start": build.describe_start(options, model)},
        batch=batch,
    )


def of_system(study: SystemTrajectoryStudy, batch: int | None = None) -> Trajectories:
    """Trajectories of the system of a study; else as `of_network`."""
    problem, options = posed.pose(study), study.run
    return Trajectories(
        problem.system,
        posed.only_one(problem.axes, "trajectory"),
        problem.starts,
        steps=options.steps,
        transient=options.transient,
        parameters=problem.parameters,
        observables=problem.observables,
        about=problem.attributes,
        batch=batch,
    )
