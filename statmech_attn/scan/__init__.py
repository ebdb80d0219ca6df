"""Many points in chunks that survive: work, folders, claims, sessions, engines."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.scan import engines, forecast, signals, slurm
    from statmech_attn.scan.chunk_file import Damaged
    from statmech_attn.scan.claims import Claims
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
    from statmech_attn.scan.jobs import (
        chunks_of,
        compute,
        holds,
        Incomplete,
        Job,
        merge,
    )
    from statmech_attn.scan.points import Computation, fingerprint, lacking, Points
    from statmech_attn.scan.session import PAUSE, Session
    from statmech_attn.scan.signals import Stop
    from statmech_attn.scan.status import repair, Repairs, Status, status
    from statmech_attn.scan.work import (
        Arrays,
        Assembled,
        Chunk,
        COMPUTED,
        Contents,
        FAILURE,
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
    "Arrays",
    "Assembled",
    "changed_inputs",
    "Chunk",
    "chunks_of",
    "Claims",
    "Computation",
    "compute",
    "COMPUTED",
    "Contents",
    "Damaged",
    "Engine",
    "engines",
    "FAILURE",
    "FAILURES",
    "fingerprint",
    "Folder",
    "forecast",
    "holds",
    "in_memory",
    "Incomplete",
    "Job",
    "lacking",
    "MANIFEST",
    "Manifest",
    "merge",
    "NOT_FINITE",
    "OneRound",
    "PAUSE",
    "Pilot",
    "Points",
    "RAISED",
    "remove",
    "remove_leftovers",
    "repair",
    "Repairs",
    "Results",
    "SCHEMA_VERSION",
    "Session",
    "signals",
    "slurm",
    "Status",
    "status",
    "Stop",
    "Tick",
    "Work",
]
lazy.attach(__name__)
