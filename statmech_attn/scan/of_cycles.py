"""Exponents of the cycles of a scan: rounds of many cycles in batches."""

from typing import Any

import numpy as np

from statmech_attn.batches import batches, on_cpu, Stage
from statmech_attn.dmft import Network, Parameters, TangentMap
from statmech_attn.dynamics import cycles, frames, phases
from statmech_attn.scan.points import Bend, joined, Points, put, Verdicts


LANES = 16  # on a CPU: a wide batch waits for its longest cycle
PATIENCE = 4  # rounds in which the frame of a window gains a factor of two on a cycle


def stage(net: Network, exponents: int, points: Points, lanes: int, **options) -> Stage:
    """The compiled round of a batch of cycles, with one guard beside the frame."""
    columns = min(exponents + 1, net.dimension)
    kicks = np.zeros((cycles.SPREAD, net.dimension, 1 + columns))
    examples = lambda lanes: (
        net, kicks, *points.take(np.zeros(lanes, int)),
        np.zeros((net.dimension, lanes)), np.zeros((net.dimension, columns, lanes)),
        np.ones(lanes, int),
    )  # fmt: skip
    width = min(LANES, lanes) if on_cpu() else lanes
    return Stage(_round, examples, width, shared=2, **options)


def _round(net, kicks, params, state, vector, frame, period):
    system = TangentMap(net, params)
    return cycles.go_round(system, state, vector, frame, kicks, period)


def with_cycles(
    stage: Stage, net: Network, params: Parameters, bends: Bend, verdicts: Verdicts
) -> Verdicts:
    """Verdicts with the exponents of the cycles themselves, where orbits are periodic.

    The averages stay where Newton or the spans of the frame did not converge.
    """
    k, system = len(verdicts.exponents), TangentMap(net, params)
    cyclic = np.flatnonzero(np.isin(verdicts.phase, (phases.FIXED, phases.PERIODIC)))
    periods = cycles.whole_period(system, np.asarray(verdicts.period)[cyclic])
    order = np.argsort(periods, kind="stable")  # neighbours in a batch end together
    cyclic, periods = cyclic[order], periods[order]
    if not cyclic.size:
        return verdicts
    places = Points(params, bends.state).take(cyclic)
    guarded = min(k + 1, net.dimension)
    frame = frames.completed(np.asarray(bends.frame)[..., cyclic], guarded)

    def once(which, vectors, frames, periods, kicks):
        lanes = stage.width(len(which), float(periods.sum()))

        def job(item, stop) -> Any:
            rows, _ = item
            return stage(
                lanes, net, kicks, *places.take(which[rows]), vectors[..., rows],
                frames[..., rows], periods[rows],
            )  # fmt: skip

        return joined(job, list(batches(np.arange(len(which)), lanes)))

    vectors = np.asarray(places.starts.attention).reshape(net.dimension, -1)
    spectrum = cycles.spectra(
        once, vectors, frame, periods, k, rank=system.rank, patience=PATIENCE
    )
    replace = lambda old, new: put(
        old, np.where(spectrum.settled, new, old[..., cyclic]), cyclic
    )
    return verdicts._replace(
        exponents=replace(verdicts.exponents, spectrum.exponents),
        weighted=replace(verdicts.weighted, spectrum.exponents),
        stderr=replace(verdicts.stderr, spectrum.stderr),
        source=replace(verdicts.source, cycles.SOURCES.index("cycle")),
    )
