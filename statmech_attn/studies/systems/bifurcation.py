"""Bifurcation studies: the diagram of the attractors of a system of one's own."""

from statmech_attn.dynamics import diagrams
from statmech_attn.studies.network import bifurcation
from statmech_attn.studies.systems.studied_system import of_system
from statmech_attn.studies.systems.tables import SystemDiagramStudy


def work(study: SystemDiagramStudy, batch: int | None = None) -> diagrams.GridWork:
    """The work that a study asks for."""
    diagram = bifurcation.diagram(study.run, of_system(study))
    return diagrams.diagram_work(diagram, batch)
