"""Studies: a TOML file in, a labelled data set out."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr import LearningTask as LearningTask
    from statmech_attn.options import (
        Count as Count,
        Positive as Positive,
        Seed as Seed,
        WholeNumber as WholeNumber,
    )
    from statmech_attn.reporting import Reporter as Reporter, Silent as Silent
    from statmech_attn.studies.files import (
        records as records,
        reference as reference,
        results as results,
        templates as templates,
    )
    from statmech_attn.studies.files.results import (
        compute as compute,
        holds as holds,
        produce as produce,
    )
    from statmech_attn.studies.files.running import run as run, work as work
    from statmech_attn.studies.files.spec import (
        dump as dump,
        load as load,
        parse as parse,
    )
    from statmech_attn.studies.one_shot.tables import (
        ONE_SHOT_PRESETS as ONE_SHOT_PRESETS,
    )
    from statmech_attn.studies.one_shot.trained import (
        load_trained as load_trained,
        TrainedNetworks as TrainedNetworks,
        usable as usable,
    )
    from statmech_attn.studies.tables import (
        StudyTable as StudyTable,
        Table as Table,
        TaskTable as TaskTable,
    )


lazy.attach(__name__)
