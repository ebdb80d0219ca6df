"""Many points in chunks that survive: work, folders, claims, sessions, engines."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.scan import (
        earlier_runs as earlier_runs,
        engines as engines,
        forecast as forecast,
        jobs as jobs,
        slurm as slurm,
        status as status,
    )
    from statmech_attn.scan.chunks import folder as folder, signals as signals
    from statmech_attn.scan.chunks.work import (
        Arrays as Arrays,
        Assembled as Assembled,
        Chunk as Chunk,
        COMPUTED as COMPUTED,
        Contents as Contents,
        FAILURE as FAILURE,
        NOT_FINITE as NOT_FINITE,
        OneRound as OneRound,
        Pilot as Pilot,
        RAISED as RAISED,
        Results as Results,
        Tick as Tick,
        Work as Work,
    )
    from statmech_attn.scan.engines.engine import Engine as Engine
    from statmech_attn.scan.engines.local import in_memory as in_memory
    from statmech_attn.scan.fingerprints import fingerprint as fingerprint
    from statmech_attn.scan.over import over as over, Scan as Scan
    from statmech_attn.scan.points import (
        Computation as Computation,
        lacking as lacking,
        Points as Points,
    )


lazy.attach(__name__)
