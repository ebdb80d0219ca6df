"""Many points in chunks that survive: work, folders, claims, sessions, engines."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.scan import (
        earlier_runs as earlier_runs,
        engines as engines,
        forecast as forecast,
        slurm as slurm,
    )
    from statmech_attn.scan.chunks import signals as signals
    from statmech_attn.scan.chunks.chunk_file import Damaged as Damaged
    from statmech_attn.scan.chunks.claims import Claims as Claims
    from statmech_attn.scan.chunks.folder import (
        changed_inputs as changed_inputs,
        Folder as Folder,
        MANIFEST as MANIFEST,
        Manifest as Manifest,
        remove as remove,
        SCHEMA_VERSION as SCHEMA_VERSION,
    )
    from statmech_attn.scan.chunks.session import Session as Session
    from statmech_attn.scan.chunks.signals import Stop as Stop
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
    from statmech_attn.scan.jobs import (
        chunks_of as chunks_of,
        compute as compute,
        holds as holds,
        Incomplete as Incomplete,
        Job as Job,
        merge as merge,
    )
    from statmech_attn.scan.over import over as over, Scan as Scan
    from statmech_attn.scan.points import (
        Computation as Computation,
        lacking as lacking,
        Points as Points,
    )
    from statmech_attn.scan.status import (
        repair as repair,
        Repairs as Repairs,
        Status as Status,
        status as status,
    )


lazy.attach(__name__)
