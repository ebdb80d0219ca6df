"""Studies: a TOML file in, a labelled data set out."""

import xarray as xr

from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.scan.work import Work
from statmech_attn.studies import bifurcation
from statmech_attn.studies.basins import BasinsWork
from statmech_attn.studies.continuation import ContinuationWork
from statmech_attn.studies.hysteresis import compare_sweeps
from statmech_attn.studies.matching import rematch
from statmech_attn.studies.monte_carlo import MonteCarloWork
from statmech_attn.studies.one_shot_training import OneShotTrainingWork
from statmech_attn.studies.order_parameter import OrderParameterWork
from statmech_attn.studies.posterior import PosteriorWork
from statmech_attn.studies.pruning import PruningWork
from statmech_attn.studies.spec import (
    BasinsStudy,
    BifurcationStudy,
    ContinuationStudy,
    load,
    MonteCarloStudy,
    OneShotTrainingStudy,
    OrderParameterStudy,
    parse,
    PosteriorStudy,
    PruningStudy,
    Study,
    TrainingStudy,
    TrajectoryStudy,
)
from statmech_attn.studies.trained import load_trained, TrainedNetworks
from statmech_attn.studies.training import TrainingWork
from statmech_attn.studies.trajectory import TrajectoryWork


def work(study: Study, batch: int | None = None) -> Work:
    """A study as an engine sees it; double precision must be on.

    Args:
        batch: see `Work`; chosen for this device when omitted.
    """
    if isinstance(study, TrajectoryStudy):
        return TrajectoryWork(study, batch)
    if isinstance(study, BifurcationStudy):
        return bifurcation.work(study, batch)
    if isinstance(study, MonteCarloStudy):
        return MonteCarloWork(study, batch)
    if isinstance(study, BasinsStudy):
        return BasinsWork(study, batch)
    if isinstance(study, ContinuationStudy):
        return ContinuationWork(study)
    if isinstance(study, OrderParameterStudy):
        return OrderParameterWork(study)
    if isinstance(study, PosteriorStudy):
        return PosteriorWork(study)
    if isinstance(study, PruningStudy):
        return PruningWork(study)
    if isinstance(study, OneShotTrainingStudy):
        return OneShotTrainingWork(study)
    return TrainingWork(study)


def run(study: Study, report: Reporter = Silent()) -> xr.Dataset:
    """Compute a study in memory; double precision must be on.

    Example:
        >>> study = parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
        >>> run(study).A.dims
        ('beta', 'time', 'pattern')
    """
    return in_memory(work(study), report)


__all__ = [
    "BasinsStudy",
    "BifurcationStudy",
    "ContinuationStudy",
    "compare_sweeps",
    "load",
    "load_trained",
    "MonteCarloStudy",
    "OneShotTrainingStudy",
    "OrderParameterStudy",
    "parse",
    "PosteriorStudy",
    "PruningStudy",
    "rematch",
    "Reporter",
    "run",
    "Silent",
    "Study",
    "TrainedNetworks",
    "TrainingStudy",
    "TrajectoryStudy",
    "work",
]
