"""Studies: a TOML file in, a labelled data set out."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr import Learning
    from statmech_attn.options import Count, Positive, Seed, WholeNumber
    from statmech_attn.reporting import Reporter, Silent
    from statmech_attn.studies import files, guard, records, reference, templates
    from statmech_attn.studies.files import compute, holds, produce
    from statmech_attn.studies.matching import rematch
    from statmech_attn.studies.one_shot_tables import PRESETS as ONE_SHOT_PRESETS
    from statmech_attn.studies.running import run, work
    from statmech_attn.studies.spec import dump, load, parse
    from statmech_attn.studies.tables import StudyTable, Table, TaskTable
    from statmech_attn.studies.trained import load_trained, TrainedNetworks, usable


__all__ = [
    "compute",
    "Count",
    "dump",
    "files",
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
