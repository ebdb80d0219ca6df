"""Basin studies: attractors of a system of one's own along a parameter."""

from statmech_attn.dynamics import basin_variables, BasinDiagram
from statmech_attn.labels import STEP
from statmech_attn.studies.network import basins
from statmech_attn.studies.systems.studied_system import of_system
from statmech_attn.studies.systems.tables import SystemBasinsStudy


VARIABLES = basin_variables((), unit=STEP)


def work(study: SystemBasinsStudy) -> BasinDiagram:
    """The basins that a study asks for."""
    studied = of_system(study)
    variables = basin_variables(studied.parameters, unit=studied.system.unit)
    return basins.diagram(study.run, studied, variables)
