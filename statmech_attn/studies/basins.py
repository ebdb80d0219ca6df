"""Basin studies: attractors along a parameter, their shares, lifetimes of transients.

At every value of the parameter many random starts are followed until they settle
(docs/theory/attractors.md).  The sets on which they ended get their phase from the
exponents of one orbit each, and numbers that go on along the parameter.
"""

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import dmft
from statmech_attn.comparison import network_digest
from statmech_attn.dynamics import phases
from statmech_attn.dynamics.attractors import CYCLE, follow_with, IRREGULAR
from statmech_attn.dynamics.basins import (
    Attractors,
    distinguish,
    DIVERGED,
    NOT_SETTLED,
    wilson,
)
from statmech_attn.dynamics.following import Follower, take
from statmech_attn.dynamics.transients import escape_rate
from statmech_attn.labels import labelled
from statmech_attn.reporting import duration, Reporter, size
from statmech_attn.scan.bifurcation import Plan, Points, run as run_scan, Scan
from statmech_attn.scan.lanes import workers
from statmech_attn.studies import build
from statmech_attn.studies.basins_table import BasinsRun, BasinsStudy
from statmech_attn.studies.matching import matched, mean_field, search


INEXACT = 0.1  # share of the arrivals that may have an upper bound as their lifetime
STATES = 8  # states kept of every set, a drive period apart: where it flows from


def run(study: BasinsStudy, report: Reporter) -> xr.Dataset:
    """Follow the starts, group them, classify and match the sets."""
    made = build.model(study.network)
    axes, options = build.axes(study.parameters, made.file), study.run
    if len(axes.names) > 1:
        raise ValueError(
            f"parameters.{axes.names[1]}: a basins study scans one parameter; give one "
            "number."
        )
    plan = _plan(options)
    plan.check(made.net)
    params = axes.points(options.starts)
    starts = build.start(options, made, params, options.starts)
    period = dmft.clock_period(made.net, float(jnp.max(params.epsilon)))
    follower = Follower(mean_field(made.net, period), search(options), params, starts)
    report.note(forecast(follower, params, starts))
    work = follower.looks * follower.steps_per_look * params.beta.size
    report.begin("basins", params.beta.size, work)
    orbits = follow_with(follower, starts, params, report.advance)
    report.finish()
    rows = np.arange(params.beta.size).reshape(-1, options.starts)
    found = [distinguish(orbits.take(row)) for row in rows]
    leaders = np.concatenate([r[x.leader] for r, x in zip(rows, found, strict=True)])
    sets = _sets(found, options)
    if leaders.size:
        chosen = take((params, orbits.state), leaders)
        points = Points(*jax.tree.map(jnp.asarray, chosen))
        sets |= _classified(made.net, points, plan, period, found)
    dataset = _dataset(axes, options, period, found, sets)
    dataset = dataset.assign_attrs(
        kind="basins", network=network_digest(made.net), context=made.net.context,
        clock_period=period, horizon=options.horizon, capture=options.capture,
        start=build.describe_start(options, made),
    )  # fmt: skip
    dataset = build.with_fixed(dataset, axes)
    net = made.net if options.matching == "flow" else None
    return matched(dataset, net, options.furthest, follower)


def forecast(follower: Follower, params, starts) -> str:
    """Time and memory if nobody settles, from one look of one batch."""
    count = params.beta.size
    lanes = np.arange(min(follower.lanes, count))
    for _ in range(2):
        clock = time.perf_counter()
        list(follower.look(params, starts, lanes))
        seconds = time.perf_counter() - clock
    batches = -(-count // follower.lanes)
    rounds = -(-batches // min(workers(), batches))
    cloud = 8 * follower.search.record * params.beta.size * len(follower.see(starts))
    return (
        f"{count} starts, {follower.lanes} lanes, looks of {follower.steps_per_look} "
        f"steps: {duration(rounds * seconds)} each, at most "
        f"{duration(rounds * seconds * follower.looks)} if nobody settles before the "
        f"horizon; {size(3 * cloud)} of memory"
    )


def _sets(found: list[Attractors], options: BasinsRun) -> dict[str, np.ndarray]:
    """What is known of every set, those of all values one after the other."""
    each = lambda pick: np.concatenate([np.asarray(pick(x)) for x in found])
    low, high = wilson(each(lambda x: x.count), options.starts)
    distinct = each(lambda x: x.orbits.distinct[x.leader])
    return {
        "count": each(lambda x: x.count),
        "fraction": each(lambda x: x.fraction),
        "fraction_low": low,
        "fraction_high": high,
        "period": each(lambda x: x.period),
        "points": each(lambda x: _some_points(x, options.points)),
        "n_points": np.minimum(distinct, options.points),
    }


def _some_points(found: Attractors, count: int) -> np.ndarray:
    """Points of every set: all of a cycle, repeated, or evenly chosen ones."""
    clouds = np.empty((len(found.leader), count, found.orbits.points.shape[2]))
    for k, leader in enumerate(found.leader):
        points = found.orbits.set_of(leader)
        evenly = np.linspace(0, len(points) - 1, count).astype(int)
        clouds[k] = points[evenly] if len(points) > count else np.resize(
            points, clouds[k].shape
        )  # fmt: skip
    return clouds


def _plan(options: BasinsRun) -> Plan:
    """How the phase of a set is found, from one orbit on it."""
    return Plan(
        transient=0, steps=options.steps, exponents=options.exponents, max_doublings=2,
        section_samples=1, strobe_samples=1,
    )  # fmt: skip


def _classified(net, points: Points, plan: Plan, period: int, found):
    """Phases and exponents from one orbit on every set, and states along it."""
    verdicts = run_scan(Scan(net, plan, points, period), points).verdicts
    assert verdicts is not None
    kind, cycle, left = (
        np.concatenate([getattr(x, name) for x in found])
        for name in ("kind", "period", "transient")
    )
    phase = np.where(kind == CYCLE, phases.PERIODIC, verdicts.phase)
    phase = np.where(cycle == period, phases.FIXED, phase)
    return {
        "phase": np.where(left, phases.TRANSIENT, phase).astype(np.int8),
        "rotation_number": np.where(kind == CYCLE, np.nan, verdicts.rotation_number),
        "lyapunov": np.asarray(verdicts.exponents).T,
        "lyapunov_stderr": np.asarray(verdicts.stderr).T,
        "states": np.asarray(_states(net, points, period=period)),
    }


@partial(jax.jit, static_argnames="period")
def _states(net, points: Points, *, period: int):
    """Attention windows (sets, states, C, M) of states one clock period apart."""

    def turn(state, _):
        after = dmft.advance(net, points.params, state, period)
        return after, dmft.window(state)

    _, windows = jax.lax.scan(turn, points.starts, None, length=STATES)
    return jnp.moveaxis(windows, -1, 0)


EMPTY = {"count": 0, "period": 0, "n_points": 0, "fraction": 0.0, "phase": -1}
DIMS = {"points": ("point", "pattern"), "states": ("turn", "age", "pattern"),
        "lyapunov": ("exponent",), "lyapunov_stderr": ("exponent",)}  # fmt: skip


def _dataset(axes: build.Axes, options: BasinsRun, period: int, found, sets):
    """The slot k of a value of the parameter holds its k-th set."""
    name, values = axes.names[0], axes.values[0]
    ends = np.cumsum([len(x.count) for x in found])[:-1]
    slots = max(max(len(x.count) for x in found), 1)
    variables: dict[str, Any] = {
        key: (
            (name, "slot", *DIMS.get(key, ())),
            np.array(
                [
                    _padded(part, slots, EMPTY.get(key, np.nan))
                    for part in np.split(x, ends)
                ]
            ),
        )
        for key, x in sets.items()
    }
    rates = [arrival_rate(x, period) for x in found]
    for key in rates[0]:
        variables[key] = (name,), [rate[key] for rate in rates]
    for label, key in ((NOT_SETTLED, "unsettled"), (DIVERGED, "diverged")):
        counts = [int(np.sum(x.label == label)) for x in found]
        variables[f"count_{key}"] = (name,), counts
    for key in ("lifetime", "ended", "exact"):
        stored = key if key == "lifetime" else f"lifetime_{key}"
        table = np.array([getattr(x.orbits, key) for x in found])
        variables[stored] = (name, "start"), table
    variables["label"] = (name, "start"), np.array([x.label for x in found])
    coordinates = {
        dim: np.arange(1, 1 + size) for dim, size in _sizes(variables).items()
    }
    return labelled(variables, coordinates | {name: values})


def _sizes(variables) -> dict[str, int]:
    return {
        dim: length
        for dims, x in variables.values()
        for dim, length in zip(dims, np.shape(x), strict=True)
    }


def arrival_rate(found: Attractors, period: int) -> dict[str, float]:
    """Rate at which transients end, and the evidence that there is one.

    Starts that diverged are left out, and so are those on a set that does not recur and
    that nobody was seen to leave.  A lifetime that is only an upper bound is no event;
    with more than `INEXACT` of them, and where the rate is not constant, it is NaN.
    """
    orbits = found.orbits
    was_left = np.append(found.transient, [False, False])[found.label]
    stays = (orbits.kind == IRREGULAR) & ~was_left
    on_the_way = (found.label != DIVERGED) & ~stays
    known = on_the_way & orbits.exact
    inexact = int(np.sum(on_the_way & ~orbits.exact))
    lifetime, ended = orbits.lifetime[known], orbits.ended[known]
    if not known.any():
        lifetime, ended = np.zeros(1), np.array([False])
    fit = escape_rate(lifetime, ended, unit=period)
    if abs(fit.constancy) > 2 or inexact > INEXACT * (inexact + ended.sum()):
        fit = fit._replace(rate=np.nan, stderr=np.nan)
    return {
        "escape_rate": fit.rate, "escape_rate_stderr": fit.stderr,
        "escape_events": fit.events, "escape_after": fit.after,
        "escape_constancy": fit.constancy, "count_inexact": inexact,
    }  # fmt: skip


def _padded(x: np.ndarray, length: int, empty) -> np.ndarray:
    return np.concatenate([x, np.full((length - len(x), *x.shape[1:]), empty, x.dtype)])
