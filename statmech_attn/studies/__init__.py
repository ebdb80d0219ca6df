"""Studies: a TOML file in, a labelled data set out."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr import Learning
    from statmech_attn.options import Count, Positive, Seed, WholeNumber
    from statmech_attn.reporting import Reporter, Silent
    from statmech_attn.studies.files import (
        guard,
        records,
        reference,
        results,
        templates,
    )
    from statmech_attn.studies.files.results import compute, holds, produce
    from statmech_attn.studies.files.running import run, work
    from statmech_attn.studies.files.spec import dump, load, parse
    from statmech_attn.studies.one_shot.tables import PRESETS as ONE_SHOT_PRESETS
    from statmech_attn.studies.one_shot.trained import (
        load_trained,
        TrainedNetworks,
        usable,
    )
    from statmech_attn.studies.systems.matching import rematch
    from statmech_attn.studies.tables import StudyTable, Table, TaskTable


__all__ = [
    "compute",
    "Count",
    "dump",
    "guard",
    "holds",
    "Learning",
    "load",
    "load_trained",
    "ONE_SHOT_PRESETS",
    "parse",
    "Positive",
    "produce",
    "records",
    "reference",
    "rematch",
    "Reporter",
    "results",
    "run",
    "Seed",
    "Silent",
    "StudyTable",
    "Table",
    "TaskTable",
    "templates",
    "TrainedNetworks",
    "usable",
    "WholeNumber",
    "work",
]
lazy.attach(__name__)
