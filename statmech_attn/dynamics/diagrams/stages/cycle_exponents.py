"""Exponents of the cycles of a scan: rounds of many cycles in batches."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.batches import batches, on_cpu, Origin, Stage
from statmech_attn.dynamics.diagrams.stages.lanes import (
    joined,
    Points,
    put,
    Verdicts,
    WindowEnd,
)
from statmech_attn.dynamics.exponents import cycles, frames
from statmech_attn.dynamics.maps.systems import System
from statmech_attn.dynamics.motion import phases


LANES = 16  # on a CPU: a wide batch waits for its longest cycle
SURE = 6.0  # standard errors by which the exponent of another cycle differs
ROUNDS_TO_HALVE = 4  # in which the frame of a window gains a factor of two


def stage(
    system: System,
    exponents: int,
    points: Points,
    lanes: int,
    origin: Origin | None = None,
) -> Stage:
    """The compiled round of a batch of cycles, with one guard beside the frame."""
    arrays, system_of = system.split()
    width = min(LANES, lanes) if on_cpu() else lanes
    dimension = _coordinates(system, points.take(np.zeros(1, int)), width).shape[0]
    columns = min(exponents + 1, dimension)
    kicks = np.zeros((cycles.SPREAD, dimension, 1 + columns))
    examples = lambda lanes: (
        arrays,
        kicks,
        *points.take(np.zeros(lanes, int)),
        np.zeros((dimension, lanes)),
        np.zeros((dimension, columns, lanes)),
        np.ones(lanes, int),
    )

    def once(arrays, kicks, params, state, vector, frame, period):
        map = system_of(arrays).beside(params)
        return cycles.go_round(map, state, vector, frame, kicks, period)

    free = system.any_width
    return Stage(once, examples, width, shared=2, any_width=free, origin=origin)


def _coordinates(system: System, points: Points, lanes: int) -> np.ndarray:
    """Coordinates (dim, points) of states; of so many at a time, to compile once."""
    parts = []
    for chosen, real in batches(np.arange(points.size), lanes):
        params, state = jax.tree.map(jnp.asarray, tuple(points.take(chosen)))
        parts.append(np.asarray(system.beside(params).vector(state))[:, :real])
    return np.concatenate(parts, axis=1)


def with_cycles(
    stage: Stage,
    system: System,
    params,
    bends: WindowEnd,
    verdicts: Verdicts,
    rank: int | None,
) -> Verdicts:
    """Verdicts with the exponents of the cycles themselves, where orbits are periodic.

    The averages stay where Newton or the spans of the frame did not converge, and where
    Newton came to another cycle, as it does where two states look alike in what is
    observed and the period is a part of the true one: an unstable cycle whose largest
    exponent is above the average by `SURE` errors is not what the orbit settled on.
    `rank` is `finite_exponents` of the system.
    """
    k, map = len(verdicts.exponents), system.beside(params)
    cyclic = np.flatnonzero(np.isin(verdicts.phase, (phases.FIXED, phases.PERIODIC)))
    periods = cycles.whole_period(map, np.asarray(verdicts.period)[cyclic])
    order = np.argsort(periods, kind="stable")  # neighbours in a batch end together
    cyclic, periods = cyclic[order], periods[order]
    if not cyclic.size:
        return verdicts
    places = Points(*jax.tree.map(np.asarray, (params, bends.state))).take(cyclic)
    vectors = _coordinates(system, places, stage.lanes)
    guarded = min(k + 1, len(vectors))
    arrays, _ = system.split()
    frame = frames.completed(np.asarray(bends.frame)[..., cyclic], guarded)

    def once(which, vectors, frames, periods, kicks):
        lanes = stage.width(len(which), float(periods.sum()))

        def job(item, stop) -> Any:
            rows, _ = item
            return stage(
                lanes,
                arrays,
                kicks,
                *places.take(which[rows]),
                vectors[..., rows],
                frames[..., rows],
                periods[rows],
            )

        return joined(job, list(batches(np.arange(len(which)), lanes)))

    spectrum = cycles.spectra(
        once, vectors, frame, periods, k, rank=rank, patience=ROUNDS_TO_HALVE
    )
    largest, stderr = verdicts.exponents[0, cyclic], verdicts.stderr[0, cyclic]
    above = spectrum.exponents[0] > largest + SURE * stderr
    another = above & (spectrum.exponents[0] > 0)
    settled = spectrum.settled & ~another
    replace = lambda old, new: put(
        old, np.where(settled, new, old[..., cyclic]), cyclic
    )
    return verdicts._replace(
        exponents=replace(verdicts.exponents, spectrum.exponents),
        weighted=replace(verdicts.weighted, spectrum.exponents),
        stderr=replace(verdicts.stderr, spectrum.stderr),
        source=replace(verdicts.source, cycles.SOURCES.index("cycle")),
    )
