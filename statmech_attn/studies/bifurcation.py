"""Bifurcation studies: the diagram of a network that a study file asks for."""

import numpy as np

from statmech_attn import dmft
from statmech_attn.comparison import network_digest
from statmech_attn.dmft import Network
from statmech_attn.dynamics import diagrams
from statmech_attn.labels import Variables
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import BifurcationRun, BifurcationStudy
from statmech_attn.studies.tables import chosen


TURNS = 256  # of the clock that the recorded tail of a window holds at least
VARIABLES = Variables(
    diagrams.variables(
        build.PARAMETERS,
        unit="token",
        shown="m_o_se_1",
        section="|m_o_se_2| < tolerance",
        symbol="m^{o,SE}_1",
    ),
    attributes=("section_tolerance",),
)


def work(study: BifurcationStudy, batch: int | None = None) -> diagrams.GridWork:
    """The work that a study asks for.

    Args:
        batch: see `Work`; chosen for this device when omitted.
    """
    return diagrams.diagram_work(diagram(study), batch)


def diagram(study: BifurcationStudy) -> diagrams.Diagram:
    """The diagram of a study."""
    model, options = build.model(study.network), study.run
    axes = build.axes(study.parameters, model.file)
    if options.refine:
        build.check_refined(axes, options.refine)
    start = options.start or ""
    net = model.net
    return diagrams.Diagram(
        dmft.system(net, float(np.max((axes.fixed | axes.scanned)["epsilon"]))),
        axes,
        lambda params, numbers: build.starts(options, model, params, numbers),
        plan(options, net),
        VARIABLES,
        starts=options.starts,
        refine=options.refine,
        sweep=start.partition("continue-")[2],
        confirm=options.confirm and chosen(diagrams.Confirm, options.confirm),
        seed=options.seed,
        attributes=dict(
            kind="bifurcation", network=network_digest(net), context=net.context,
            start=build.describe_start(options, model),
        ),
    )  # fmt: skip


def plan(options: BifurcationRun, net: Network) -> diagrams.Plan:
    """Numerical choices of a diagram from the keys of [run]."""
    exponents = net.dimension if options.exponents == "all" else options.exponents
    return chosen(
        diagrams.Plan,
        options,
        tail=max(diagrams.Plan.tail, TURNS * net.context),
        exponents=exponents,
        max_doublings=options.max_doublings if options.extend else 0,
    )
