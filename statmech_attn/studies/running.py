"""Every kind of study as the work of an engine, and run in memory."""

import xarray as xr

from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import in_memory, Work
from statmech_attn.studies import bifurcation
from statmech_attn.studies.basins import BasinsWork
from statmech_attn.studies.continuation import ContinuationWork
from statmech_attn.studies.monte_carlo import MonteCarloWork
from statmech_attn.studies.one_shot_training import OneShotTrainingWork
from statmech_attn.studies.order_parameter import OrderParameterWork
from statmech_attn.studies.posterior import PosteriorWork
from statmech_attn.studies.pruning import PruningWork
from statmech_attn.studies.spec import (
    BasinsStudy,
    BifurcationStudy,
    ContinuationStudy,
    MonteCarloStudy,
    OneShotTrainingStudy,
    OrderParameterStudy,
    PosteriorStudy,
    PruningStudy,
    Study,
    TrajectoryStudy,
)
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
        >>> from statmech_attn.studies import parse
        >>> study = parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
        >>> run(study).A.dims
        ('beta', 'time', 'pattern')
    """
    return in_memory(work(study), report)
