"""Continuation studies: the bifurcation diagram of the cycles of one's own system."""

import numpy as np

from statmech_attn.dynamics import continuation
from statmech_attn.studies.network.continuation import diagram, first_point, Source
from statmech_attn.studies.systems.studied_system import of_system
from statmech_attn.studies.systems.tables import SystemContinuationStudy


def work(study: SystemContinuationStudy) -> continuation.DiagramPlan:
    """The bifurcation diagram that a study asks for."""
    numbers = {n: x for n, x in study.parameters.items() if isinstance(x, float)}
    values = {n: (numbers | study.begin)[n] for n in study.parameters}
    studied = of_system(study, values)
    system, shown = studied.system, studied.section["value"]
    params = studied.axes.points()
    start = studied.starts(params, np.zeros(1, int))

    def simulated():
        period = system.drive_period
        steps = -(-study.run.transient // period) * period
        state = studied.layout.advance(params, start, steps)
        return studied.layout.array(params, state)[:, 0]

    variables = continuation.diagram_variables(
        studied.parameters,
        unit=system.unit,
        state=continuation.POINT_OF_CYCLE,
        shown=studied.observables[shown],
    )
    turns = continuation.turns_of(system, first_point(start), shown)
    about = dict(studied.attributes)
    return diagram(study, Source(turns, simulated, values, variables, about))
