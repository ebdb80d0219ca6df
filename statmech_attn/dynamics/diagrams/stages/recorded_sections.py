"""Samples of orbits on a section, of a batch of points, while they are recorded.

A sample is the displayed value where another one is within a tolerance of a level, or
crosses it from below, interpolated between two steps.  On an accelerator the samples
are chosen there, since a record takes longer to be moved than to be computed.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import Compiled, on_cpu
from statmech_attn.dynamics.options import Plan


def crossings(before, after, values, next_values) -> tuple[np.ndarray, np.ndarray]:
    """Values where another one (`before`, `after` a step) crosses zero from below.

    Returns interpolated values, and where there is a crossing.
    """
    crossed = (before < 0) & (after >= 0)
    share = -before / np.where(crossed, after - before, 1.0)
    return values + share * (next_values - values), crossed


class SectionBuffer:
    """The first samples of each lane, NaN-padded, and how many there were."""

    def __init__(self, plan: Plan, lanes: int):
        self._plan = plan
        self._last = np.empty((2, 0, lanes))  # values of the step before
        self.values = np.full((plan.section_samples, lanes), np.nan)
        self.count = np.zeros(lanes, int)

    def add(self, first: Any, second: Any, length: int) -> None:
        """Take in the next steps: values (time, lane), of which so many rows count."""
        first, second = np.asarray(first)[:length], np.asarray(second)[:length]
        level, tolerance = self._plan.level, self._plan.section_tolerance
        if tolerance is None:
            first, second = np.concatenate([self._last, [first, second]], axis=1)
            self._last = np.stack([first[-1:], second[-1:]])
            on = second - level
            first, hit = crossings(on[:-1], on[1:], first[:-1], first[1:])
        else:
            hit = np.abs(second - level) < tolerance
        times, lanes = np.nonzero(hit)
        rank = np.cumsum(hit, axis=0)[times, lanes] - 1 + self.count[lanes]
        fits = rank < len(self.values)
        self.values[rank[fits], lanes[fits]] = first[times[fits], lanes[fits]]
        self.count += hit.sum(axis=0)

    def rows(self, values: Any, places: np.ndarray) -> np.ndarray:
        """Some rows of a record (time, lane)."""
        return np.asarray(values)[places]


class DeviceBuffer:
    """The same on an accelerator: pairs of steps are chosen, and interpolated last."""

    def __init__(self, plan: Plan, lanes: int, take: Callable):
        self._plan, self._take = plan, take
        self._kept = empty(plan, lanes)

    def add(self, first: Any, second: Any, length: int) -> None:
        """Take in the next steps: values (time, lane), of which so many rows count."""
        self._kept = self._take(*self._kept, first, second, np.asarray(length))

    def rows(self, values: Any, places: np.ndarray) -> np.ndarray:
        """Some rows of a record (time, lane), of which no others are moved."""
        return np.asarray(values[places])

    @property
    def count(self) -> np.ndarray:
        """Number of samples."""
        return np.asarray(self._kept[1]).astype(int)

    @property
    def values(self) -> np.ndarray:
        """The first of them."""
        pairs = np.asarray(self._kept[0])
        if self._plan.section_tolerance is None:
            return crossings(*pairs)[0]
        return pairs[0]


def empty(plan: Plan, lanes: int) -> tuple[np.ndarray, ...]:
    """Pairs that are kept of each lane, how many were met, and the step before."""
    parts = 4 if plan.section_tolerance is None else 1
    pairs = np.full((parts, plan.section_samples, lanes), np.nan)
    return pairs, np.zeros(lanes, np.int32), np.full((2, lanes), np.nan)


def taken(plan: Plan) -> Callable:
    """The step of a buffer: (pairs, count, last, first, second, length) -> new ones."""

    def take(pairs, count, last, first, second, length):
        first, second = (
            jnp.concatenate([last[i][None], x]) for i, x in enumerate((first, second))
        )
        on = second - plan.level
        if plan.section_tolerance is None:
            hit = (on[:-1] < 0) & (on[1:] >= 0)
            parts = on[:-1], on[1:], first[:-1], first[1:]
        else:
            hit = jnp.abs(on[1:]) < plan.section_tolerance
            parts = (first[1:],)
        hit &= (jnp.arange(len(hit)) < length)[:, None]
        rank = jnp.cumsum(hit, axis=0, dtype=count.dtype) - 1 + count
        place = jnp.where(hit, rank, plan.section_samples)
        lanes = jnp.arange(count.size)
        put = lambda kept, part: kept.at[place, lanes].set(part, mode="drop")
        pairs = jnp.stack([put(*x) for x in zip(pairs, parts, strict=True)])
        last = jnp.stack([first[length], second[length]])
        return pairs, count + hit.sum(axis=0, dtype=count.dtype), last

    return take


class Sections:
    """Makes buffers where batches are computed.

    On an accelerator batches have `lanes`, and so many `steps` are added at a time.
    """

    def __init__(self, plan: Plan, lanes: int, steps: int):
        self._plan, rows = plan, jax.ShapeDtypeStruct((steps, lanes), float)
        examples = (*empty(plan, lanes), rows, rows, np.asarray(steps))
        self._take = None if on_cpu() else Compiled(taken(plan), *examples)

    @property
    def bytes(self) -> int:
        """Memory of an accelerator for a batch."""
        return self._take.bytes if self._take else 0

    def buffer(self, lanes: int) -> SectionBuffer | DeviceBuffer:
        """An empty buffer."""
        if self._take is None:
            return SectionBuffer(self._plan, lanes)
        return DeviceBuffer(self._plan, lanes, self._take)
