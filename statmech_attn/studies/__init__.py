"""Studies: a TOML file in, a labelled data set out."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.reporting import Reporter, Silent
    from statmech_attn.studies import files
    from statmech_attn.studies.files import compute, holds, produce
    from statmech_attn.studies.hysteresis import compare_sweeps
    from statmech_attn.studies.matching import rematch
    from statmech_attn.studies.running import run, work
    from statmech_attn.studies.spec import (
        BasinsStudy,
        BifurcationStudy,
        ContinuationStudy,
        dump,
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
    from statmech_attn.studies.trained import load_trained, TrainedNetworks, usable


__all__ = [
    "BasinsStudy",
    "BifurcationStudy",
    "compare_sweeps",
    "compute",
    "ContinuationStudy",
    "dump",
    "files",
    "holds",
    "load",
    "load_trained",
    "MonteCarloStudy",
    "OneShotTrainingStudy",
    "OrderParameterStudy",
    "parse",
    "PosteriorStudy",
    "produce",
    "PruningStudy",
    "rematch",
    "Reporter",
    "run",
    "Silent",
    "Study",
    "TrainedNetworks",
    "TrainingStudy",
    "TrajectoryStudy",
    "usable",
    "work",
]
lazy.attach(__name__)
