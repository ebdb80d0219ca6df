"""Many points in chunks that survive: work, folders, claims, sessions, engines."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.scan import earlier_runs, engines, forecast, jobs, slurm, status
    from statmech_attn.scan.chunks import folder, signals
    from statmech_attn.scan.chunks.work import (
        Arrays,
        Assembled as Assembled,
        Chunk as Chunk,
        COMPUTED,
        Contents,
        FAILURE,
        NOT_FINITE,
        OneRound,
        Pilot as Pilot,
        RAISED,
        Results as Results,
        Tick,
        Work as Work,
    )
    from statmech_attn.scan.engines.engine import Engine
    from statmech_attn.scan.engines.local import in_memory as in_memory
    from statmech_attn.scan.fingerprints import fingerprint
    from statmech_attn.scan.over import over as over, Scan as Scan
    from statmech_attn.scan.points import (
        Computation as Computation,
        lacking,
        Points as Points,
    )


lazy.attach(__name__)
