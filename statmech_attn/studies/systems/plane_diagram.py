"""Studies of basins on a plane of initial states along a parameter."""

import numpy as np

from statmech_attn.dynamics import plane_diagram_variables, PlaneDiagram, Search
from statmech_attn.studies.network import models
from statmech_attn.studies.network.studied_system import only_one
from statmech_attn.studies.systems.studied_system import of_system
from statmech_attn.studies.systems.tables import PlaneDiagramStudy
from statmech_attn.studies.tables import chosen


def work(study: PlaneDiagramStudy) -> PlaneDiagram:
    """The planes that a study asks for.

    Raises:
        ValueError: an impossible setting.
    """
    studied, run, plane = of_system(study), study.run, study.plane
    about = {name: x for name, x in studied.attributes.items() if name != "start"}
    return PlaneDiagram(
        studied.system,
        np.asarray(study.system.initial, float),
        models.numbers(plane.x),
        models.numbers(plane.y),
        only_one(studied.axes, "plane-diagram"),
        along=plane.along,
        seeds=run.seeds,
        search=chosen(Search, run),
        coarse=run.coarse,
        box=run.box,
        furthest=run.furthest,
        observables=studied.observables,
        variables=plane_diagram_variables(studied.parameters, studied.system.unit),
        about=about,
    )
