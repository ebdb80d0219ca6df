"""Bifurcation studies: the diagram of a system that a study file asks for."""

from statmech_attn.dynamics import diagrams
from statmech_attn.studies import build, posed
from statmech_attn.studies.dmft_tables import BifurcationStudy
from statmech_attn.studies.posed import Posed
from statmech_attn.studies.system_tables import SystemDiagramStudy
from statmech_attn.studies.tables import chosen


TURNS = 256  # of the clock that the recorded tail of a window holds at least
VARIABLES = posed.NETWORK


def work(
    study: BifurcationStudy | SystemDiagramStudy, batch: int | None = None
) -> diagrams.GridWork:
    """The work that a study asks for.

    Args:
        batch: see `Work`; chosen for this device when omitted.
    """
    return diagrams.diagram_work(diagram(study), batch)


def diagram(study: BifurcationStudy | SystemDiagramStudy) -> diagrams.Diagram:
    """The diagram of a study."""
    problem, options = posed.pose(study), study.run
    if options.refine:
        build.check_refined(problem.axes, options.refine)
    return diagrams.Diagram(
        problem.system,
        problem.axes,
        problem.starts,
        plan(study, problem),
        problem.variables,
        starts=options.starts,
        refine=options.refine,
        sweep=(options.start or "").partition("continue-")[2],
        confirm=chosen(diagrams.Confirm, options.confirm),
        seed=options.seed,
        attributes={"kind": "bifurcation", **problem.attributes},
    )


def plan(study: BifurcationStudy | SystemDiagramStudy, problem: Posed) -> diagrams.Plan:
    """Numerical choices of a diagram from the keys of [run]."""
    options = study.run
    exponents = options.exponents
    if exponents == "all":
        exponents = problem.dimension
    elif "exponents" not in options.model_fields_set:
        exponents = min(exponents, problem.dimension)
    return chosen(
        diagrams.Plan,
        options,
        tail=max(diagrams.Plan.tail, TURNS * problem.turn),
        exponents=exponents,
        max_doublings=options.max_doublings if options.extend else 0,
        **problem.section,
    )
