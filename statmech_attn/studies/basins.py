"""Basin studies: attractors along a parameter of a network, or of one's own system."""

from statmech_attn import dmft
from statmech_attn.dynamics import basin_variables, BasinDiagram, BasinPlan, Search
from statmech_attn.labels import STEP, Variable
from statmech_attn.studies import posed
from statmech_attn.studies.basins_table import BasinsStudy, SystemBasinsStudy
from statmech_attn.studies.tables import chosen


WINDOWS = (
    Variable(
        "points",
        "slot point pattern",
        "A on the set at the clock's phase 0",
        symbol="A",
    ),
    Variable(
        "states",
        "slot turn age pattern",
        "attention windows on the set, newest first",
        symbol="z",
    ),
    Variable("pattern", "pattern", "feature pattern", symbol="a"),
    Variable(
        "age", "age", "age of the attention vector in the window", "token", symbol="τ"
    ),
)
VARIABLES = basin_variables(dmft.PARAMETERS, unit="token", of_states=WINDOWS)
SYSTEM_VARIABLES = basin_variables((), unit=STEP)


def work(study: BasinsStudy | SystemBasinsStudy) -> BasinDiagram:
    """The basins that a study asks for.

    Raises:
        ValueError: an impossible setting.
    """
    problem, run = posed.pose(study), study.run
    variables = VARIABLES
    if isinstance(study, SystemBasinsStudy):
        variables = basin_variables(problem.parameters, unit=problem.system.unit)
    given = "exponents" in run.model_fields_set
    return BasinDiagram(
        problem.system,
        problem.starts,
        posed.only_one(problem.axes, "basins"),
        count=run.starts,
        search=chosen(Search, run),
        plan=chosen(BasinPlan, run, exponents=run.exponents if given else None),
        layout=problem.layout,
        observables=problem.observables,
        variables=variables,
        about=problem.attributes,
    )
