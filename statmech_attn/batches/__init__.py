"""How numbers are computed many at once: lanes, programs, memory, double precision."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.batches import rng as rng, runtime
    from statmech_attn.batches.compiled import compilations
    from statmech_attn.batches.compiled.cached_property import once
    from statmech_attn.batches.compiled.compilers import (
        AUTO,
        Compiler,
        resolve_compiler,
        stored_compiler,
    )
    from statmech_attn.batches.compiled.kept_programs import Origin
    from statmech_attn.batches.compiled.programs import Compiled, require_native, Stage
    from statmech_attn.batches.hardware import (
        devices,
        limited,
        on_cpu,
        run_all,
        usable_cores,
        workers,
    )
    from statmech_attn.batches.lanes import (
        batches,
        CPU_LANES,
        lanes_for,
        lanes_that_fit,
    )
    from statmech_attn.batches.memory import available_memory, require_memory
    from statmech_attn.batches.precision import require_double, require_real
    from statmech_attn.batches.sums import (
        add_in_turns,
        add_loop,
        add_products,
        add_up,
        WRITTEN_OUT,
    )
    from statmech_attn.batches.timing import seconds_of


lazy.attach(__name__, checks=False)
