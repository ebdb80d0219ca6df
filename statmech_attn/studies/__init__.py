"""Studies: a TOML file in, a labelled data set out."""

import xarray as xr

from statmech_attn.studies import bifurcation, monte_carlo, order_parameter, trajectory
from statmech_attn.studies.reporting import Reporter, Silent
from statmech_attn.studies.spec import (
    BifurcationStudy,
    load,
    MonteCarloStudy,
    parse,
    Study,
    TrajectoryStudy,
)


def run(study: Study, report: Reporter = Silent()) -> xr.Dataset:
    """Compute a study; double precision must be on.

    Example:
        >>> study = parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
        >>> run(study).A.dims
        ('beta', 'time', 'pattern')
    """
    if isinstance(study, TrajectoryStudy):
        return trajectory.run(study, report)
    if isinstance(study, BifurcationStudy):
        return bifurcation.run_study(study, report)
    if isinstance(study, MonteCarloStudy):
        return monte_carlo.run(study, report)
    return order_parameter.run(study, report)


__all__ = [
    "BifurcationStudy",
    "load",
    "MonteCarloStudy",
    "parse",
    "Reporter",
    "run",
    "Silent",
    "Study",
    "TrajectoryStudy",
]
