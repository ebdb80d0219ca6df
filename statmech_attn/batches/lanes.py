"""Many points in batches of a fixed number of lanes.

The last batch is padded, so that everything compiles once.  The lanes are the trailing
axis of every array.  On a CPU a batch is small enough to stay in its cache; an
accelerator takes one wide batch, and several share its lanes evenly, each with the
program of its own part: they never exchange a number.
The numbers of a point do not depend on its lane or on its neighbours.  Nor do they on
the lanes of its batch where all sums over the coordinates of a point are written out
(`sums`) and `runtime.FUSED` makes the loops, so that few points may go into a narrower
one.  Elsewhere XLA may order terms, or round, by the shape of the batch, and a study
keeps to one width.
"""

from collections.abc import Iterator

import numpy as np

from statmech_attn.batches.hardware import devices, on_cpu, workers
from statmech_attn.batches.memory import device_memory
from statmech_attn.batches.runtime import has_fused
from statmech_attn.reporting import size


# An odd multiple of 8 doubles: whole AVX-512 vectors, and rows that do not all fall
# into the same cache sets, as rows of 128 would.
CPU_LANES = 136
ACCELERATOR_LANES = 131_072  # of each device at most
SHARE = 0.4  # of the free memory of an accelerator for a batch; two may be on their way


def lanes_for(n_points: int, *, any_width: bool = True) -> int:
    """Lanes of a batch: 8, 16, ... on each device, and work for every worker."""
    parts = len(devices())
    widest = CPU_LANES if on_cpu() else ACCELERATOR_LANES
    any_width &= has_fused() or not on_cpu()
    share = -(-n_points // (parts * (workers() if any_width else 1)))
    return parts * min(widest, -(-share // 8) * 8)


def lanes_that_fit(lanes: int, n_bytes: int) -> int:
    """Lanes that an accelerator has memory for, where so many take `n_bytes`."""
    chosen = devices()
    free = None if on_cpu() else device_memory(chosen)
    if free is None or n_bytes <= SHARE * free:
        return lanes
    least = 8 * len(chosen)
    fit = int(lanes * SHARE * free / n_bytes) // least * least
    if not fit:
        raise ValueError(
            f"8 points take {size(n_bytes * least / lanes)} on a device that has "
            f"{size(free)} left; use a CPU (JAX_PLATFORMS=cpu) or a larger device."
        )
    return fit


def batches(indices: np.ndarray, lanes: int) -> Iterator[tuple[np.ndarray, int]]:
    """Cut indices into batches of `lanes`, padding the last one with its last index.

    Yields the padded indices and how many of them are real.
    """
    for first in range(0, len(indices), lanes):
        part = indices[first : first + lanes]
        yield np.pad(part, (0, lanes - len(part)), mode="edge"), len(part)
