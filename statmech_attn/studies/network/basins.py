"""Basin studies: attractors of a network along a parameter, and their basins."""

from statmech_attn import dmft
from statmech_attn.dynamics import (
    basin_variables,
    BasinDiagram,
    BasinPlan,
    diagrams,
    Search,
)
from statmech_attn.labels import Variable, Variables
from statmech_attn.studies.network.studied_system import (
    of_network,
    only_one,
    StudiedSystem,
)
from statmech_attn.studies.network.tables import BasinsStudy, SearchRun
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
VARIABLES = basin_variables(
    (*dmft.PARAMETERS, diagrams.INDEX), unit="token", of_states=WINDOWS
)


def work(study: BasinsStudy) -> BasinDiagram:
    """The basins that a study asks for."""
    return diagram(study.run, of_network(study), VARIABLES)


def diagram(
    run: SearchRun, studied: StudiedSystem, variables: Variables
) -> BasinDiagram:
    """The attractors of a system along a parameter, and their basins."""
    named = "exponents" in run.model_fields_set
    return BasinDiagram(
        studied.system,
        studied.starts,
        only_one(studied.axes, "basins"),
        count=run.starts,
        search=chosen(Search, run),
        plan=chosen(BasinPlan, run, exponents=run.exponents if named else None),
        layout=studied.layout,
        observables=studied.observables,
        variables=variables,
        about=studied.attributes,
    )
