"""Studies: a TOML file in, a labelled data set out."""

from pathlib import Path

import xarray as xr

from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.studies import (
    basins,
    bifurcation,
    continuation,
    monte_carlo,
    trajectory,
)
from statmech_attn.studies.hysteresis import compare_sweeps
from statmech_attn.studies.matching import rematch
from statmech_attn.studies.order_parameter import OrderParameterWork
from statmech_attn.studies.posterior import PosteriorWork
from statmech_attn.studies.spec import (
    BasinsStudy,
    BifurcationStudy,
    ContinuationStudy,
    load,
    MonteCarloStudy,
    OrderParameterStudy,
    parse,
    PosteriorStudy,
    Study,
    TrajectoryStudy,
)


def run(
    study: Study, report: Reporter = Silent(), workspace: Path | None = None
) -> xr.Dataset:
    """Compute a study; double precision must be on.

    Args:
        workspace: folder where sampling of weights keeps what it has drawn, so that
            the same study goes on from there after an interruption.

    Example:
        >>> study = parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
        >>> run(study).A.dims
        ('beta', 'time', 'pattern')
    """
    if isinstance(study, TrajectoryStudy):
        return trajectory.run(study, report)
    if isinstance(study, BifurcationStudy):
        return bifurcation.run_study(study, report)
    if isinstance(study, ContinuationStudy):
        return continuation.run(study, report)
    if isinstance(study, MonteCarloStudy):
        return monte_carlo.run(study, report)
    if isinstance(study, OrderParameterStudy):
        return in_memory(OrderParameterWork(study), report)
    if isinstance(study, BasinsStudy):
        return basins.run(study, report)
    return in_memory(PosteriorWork(study), report)


__all__ = [
    "BasinsStudy",
    "BifurcationStudy",
    "ContinuationStudy",
    "compare_sweeps",
    "load",
    "MonteCarloStudy",
    "OrderParameterStudy",
    "parse",
    "PosteriorStudy",
    "rematch",
    "Reporter",
    "run",
    "Silent",
    "Study",
    "TrajectoryStudy",
]
