"""Trajectory studies of a system of one's own."""

from statmech_attn.dynamics import Trajectories
from statmech_attn.studies.network.studied_system import only_one
from statmech_attn.studies.systems.studied_system import of_system
from statmech_attn.studies.systems.tables import SystemTrajectoryStudy


def work(study: SystemTrajectoryStudy, batch: int | None = None) -> Trajectories:
    """Trajectories of the system of a study.

    `batch` is chosen by the study alone when omitted, not for a device.
    """
    studied, options = of_system(study), study.run
    return Trajectories(
        studied.system,
        only_one(studied.axes, "trajectory"),
        studied.starts,
        steps=options.steps,
        transient=options.transient,
        parameters=studied.parameters,
        observables=studied.observables,
        about=studied.attributes,
        batch=batch,
    )
