"""How numbers are computed many at once: lanes, programs, memory, double precision."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.batches import rng as rng, runtime as runtime
    from statmech_attn.batches.compiled import compilations as compilations
    from statmech_attn.batches.compiled.cached_property import once as once
    from statmech_attn.batches.compiled.compilers import (
        AUTO as AUTO,
        Compiler as Compiler,
        resolve_compiler as resolve_compiler,
        stored_compiler as stored_compiler,
    )
    from statmech_attn.batches.compiled.kept_programs import Origin as Origin
    from statmech_attn.batches.compiled.programs import (
        Compiled as Compiled,
        require_native as require_native,
        Stage as Stage,
    )
    from statmech_attn.batches.hardware import (
        devices as devices,
        limited as limited,
        on_cpu as on_cpu,
        run_all as run_all,
        usable_cores as usable_cores,
        workers as workers,
    )
    from statmech_attn.batches.lanes import (
        batches as batches,
        CPU_LANES as CPU_LANES,
        lanes_for as lanes_for,
        lanes_that_fit as lanes_that_fit,
    )
    from statmech_attn.batches.memory import (
        available_memory as available_memory,
        require_memory as require_memory,
    )
    from statmech_attn.batches.precision import (
        require_double as require_double,
        require_real as require_real,
    )
    from statmech_attn.batches.sums import (
        add_in_turns as add_in_turns,
        add_loop as add_loop,
        add_products as add_products,
        add_up as add_up,
        WRITTEN_OUT as WRITTEN_OUT,
    )
    from statmech_attn.batches.timing import seconds_of as seconds_of


lazy.attach(__name__, checks=False)
