"""Which attractor an orbit is beside, and when it has arrived (attractors.md, 7)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn.dynamics.attractors.basins import (
    Attractors,
    DIVERGED,
    NOT_SETTLED,
    UNSTABLE,
)
from statmech_attn.dynamics.attractors.settled_orbits import CYCLE, furthest
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.options import Search


LOOK = 4  # steps between two looks at an orbit, in whole periods of the drive
STAYS = 3  # looks in a row in one neighbourhood that are an arrival
SPARSE = 4  # every so many points of a set that does not recur are looked at


class Targets(NamedTuple):
    """Attractors on which orbits stay, and how near an orbit has arrived.

    Attributes:
        number: of each among all attractors, (K,).
        points: of the sets, repeated to one length, (K, P, d).
        reach: size of their neighbourhoods, (K,).
    """

    number: np.ndarray
    points: np.ndarray
    reach: np.ndarray

    @classmethod
    def of(cls, attractors: Attractors, search: Search) -> "Targets":
        """Those of the attractors that orbits do not leave."""
        stays = ~attractors.transient
        if attractors.stability is not None:
            stays &= attractors.stability != UNSTABLE
        if not stays.any():
            raise ValueError(
                "no attractor on which orbits stay: all seeds diverge, or the horizon "
                f"of {search.horizon} steps is too short."
            )
        sets = [attractors.orbits.set_of(k) for k in attractors.leader[stays]]
        cycles = attractors.kind[stays] == CYCLE
        samples = [x if cycle else x[::SPARSE] for x, cycle in zip(sets, cycles)]
        holes = [furthest(x, near) for x, near in zip(sets, samples)]
        size = [1 + np.abs(x).max() for x in sets]
        most = max(map(len, samples))
        return cls(
            np.flatnonzero(stays),
            np.stack([np.resize(x, (most, x.shape[1])) for x in samples]),
            np.maximum(search.capture * np.array(size), holes),
        )

    def nearest(self, seen: Float[Array, "d lanes"]) -> Int[Array, " lanes"]:
        """The set whose neighbourhood each orbit is in; -1: in none, -2: diverged."""
        points = jnp.asarray(self.points)

        def nearer(i, least):
            gaps = jnp.abs(points[:, i, :, None] - seen)
            return jnp.minimum(least, jnp.max(gaps, axis=1))

        least = jnp.full((len(points), seen.shape[-1]), jnp.inf)
        distance = jax.lax.fori_loop(0, points.shape[1], nearer, least)
        share = distance / jnp.asarray(self.reach)[:, None]
        there = jnp.min(share, axis=0) <= 1
        nearest = jnp.where(there, jnp.argmin(share, axis=0), NOT_SETTLED)
        return jnp.where(jnp.isfinite(seen).all(axis=0), nearest, DIVERGED)


def steps_of_look(system: System) -> int:
    """Steps between two looks at the orbits of a system."""
    return -(-LOOK // system.drive_period) * system.drive_period
