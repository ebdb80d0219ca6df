"""Many points in chunks that survive: work, folders, claims, sessions, engines."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.scan import confirm, engines, forecast, signals, slurm
    from statmech_attn.scan.bifurcation import any_width, Outcome, Plan, run, Scan
    from statmech_attn.scan.chunk_file import Damaged
    from statmech_attn.scan.claims import Claims
    from statmech_attn.scan.classes import CLASSES, classes, disagreement, UNDECIDED
    from statmech_attn.scan.engines.engine import Engine
    from statmech_attn.scan.engines.local import in_memory
    from statmech_attn.scan.folder import (
        changed_inputs,
        Folder,
        MANIFEST,
        Manifest,
        remove,
        remove_leftovers,
        SCHEMA_VERSION,
    )
    from statmech_attn.scan.points import Points, Verdicts
    from statmech_attn.scan.refinement import Cells, Grid, on_grid, refine_axis
    from statmech_attn.scan.session import PAUSE, Session
    from statmech_attn.scan.signals import Stop
    from statmech_attn.scan.status import repair, Repairs, Status, status
    from statmech_attn.scan.work import (
        Arrays,
        Assembled,
        Chunk,
        COMPUTED,
        FAILURES,
        NOT_FINITE,
        OneRound,
        Pilot,
        RAISED,
        Results,
        Tick,
        Work,
    )


__all__ = [
    "any_width",
    "Arrays",
    "Assembled",
    "Cells",
    "changed_inputs",
    "Chunk",
    "Claims",
    "CLASSES",
    "classes",
    "COMPUTED",
    "confirm",
    "Damaged",
    "disagreement",
    "Engine",
    "engines",
    "FAILURES",
    "Folder",
    "forecast",
    "Grid",
    "in_memory",
    "MANIFEST",
    "Manifest",
    "NOT_FINITE",
    "on_grid",
    "OneRound",
    "Outcome",
    "PAUSE",
    "Pilot",
    "Plan",
    "Points",
    "RAISED",
    "refine_axis",
    "remove",
    "remove_leftovers",
    "repair",
    "Repairs",
    "Results",
    "run",
    "Scan",
    "SCHEMA_VERSION",
    "Session",
    "signals",
    "slurm",
    "Status",
    "status",
    "Stop",
    "Tick",
    "UNDECIDED",
    "Verdicts",
    "Work",
]
lazy.attach(__name__)
