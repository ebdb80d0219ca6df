"""Bifurcation studies: the diagram of the attractors of a network."""

from statmech_attn.dynamics import diagrams
from statmech_attn.studies.network import models, studied_system
from statmech_attn.studies.network.studied_system import StudiedSystem
from statmech_attn.studies.network.tables import BifurcationStudy, DiagramRun
from statmech_attn.studies.tables import chosen


TURNS = 256  # of the clock that the recorded tail of a window holds at least
VARIABLES = studied_system.NETWORK


def work(study: BifurcationStudy, batch: int | None = None) -> diagrams.GridWork:
    """The work that a study asks for."""
    studied = studied_system.of_network(study)
    return diagrams.diagram_work(diagram(study.run, studied), batch)


def diagram(options: DiagramRun, studied: StudiedSystem) -> diagrams.Diagram:
    """The diagram that a study asks for, of any system."""
    if options.refine:
        models.check_refined(studied.axes, options.refine)
    return diagrams.Diagram(
        studied.system,
        studied.axes,
        studied.starts,
        plan(options, studied),
        studied.variables,
        starts=options.starts,
        refine=options.refine,
        sweep=(options.start or "").partition("continue-")[2],
        confirm=chosen(diagrams.Confirm, options.confirm),
        seed=options.seed,
        attributes={"kind": "bifurcation", **studied.attributes},
    )


def plan(options: DiagramRun, studied: StudiedSystem) -> diagrams.Plan:
    """Numerical choices of a diagram from the keys of [run]."""
    exponents = options.exponents
    if exponents == "all":
        exponents = studied.dimension
    elif "exponents" not in options.model_fields_set:
        exponents = min(exponents, studied.dimension)
    return chosen(
        diagrams.Plan,
        options,
        tail=max(diagrams.Plan.tail, TURNS * studied.turn),
        exponents=exponents,
        max_doublings=options.max_doublings if options.extend else 0,
        **studied.section,
    )
