"""How numbers are computed many at once: lanes, programs, memory, double precision."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.batches import compilations, rng, runtime
    from statmech_attn.batches.cached_property import once
    from statmech_attn.batches.lanes import (
        batches,
        Compiled,
        CPU_LANES,
        devices,
        lanes_for,
        lanes_that_fit,
        limited,
        on_cpu,
        require_native,
        run_all,
        Stage,
        usable_cores,
        workers,
    )
    from statmech_attn.batches.memory import available_memory, device_memory
    from statmech_attn.batches.precision import require_double, require_real
    from statmech_attn.batches.sums import (
        add_in_turns,
        add_loop,
        add_products,
        add_up,
        WRITTEN_OUT,
    )
    from statmech_attn.batches.timing import seconds_of


__all__ = [
    "add_in_turns",
    "add_loop",
    "add_products",
    "add_up",
    "available_memory",
    "batches",
    "compilations",
    "Compiled",
    "CPU_LANES",
    "device_memory",
    "devices",
    "lanes_for",
    "lanes_that_fit",
    "limited",
    "on_cpu",
    "once",
    "require_double",
    "require_real",
    "require_native",
    "rng",
    "run_all",
    "seconds_of",
    "runtime",
    "Stage",
    "usable_cores",
    "workers",
    "WRITTEN_OUT",
]
lazy.attach(__name__)
