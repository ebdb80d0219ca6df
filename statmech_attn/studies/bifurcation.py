"""Bifurcation studies: a scan, its forecast and its data set."""

import resource
import sys
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr

from statmech_attn.comparison import network_digest
from statmech_attn.dmft import clock_period, Network
from statmech_attn.dynamics.phases import PHASES, QUASIPERIODIC
from statmech_attn.labels import attributes, labelled
from statmech_attn.reporting import duration, Reporter, size
from statmech_attn.scan.bifurcation import (
    join,
    Outcome,
    Plan,
    Points,
    run,
    run_continued,
    Scan,
    Verdicts,
)
from statmech_attn.scan.lanes import Compiled, workers
from statmech_attn.scan.refinement import Grid, refine
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import BifurcationRun, BifurcationStudy


TURNS = 256  # of the clock that the recorded tail of a window holds at least


def run_study(study: BifurcationStudy, report: Reporter) -> xr.Dataset:
    """Scan, classify and sample the sections of every point."""
    made = build.model(study.network)
    axes, options = build.axes(study.parameters, made.file), study.run
    job = Job(made, axes, options, plan(options, made.net))
    if options.refine:
        dataset = refined(job, report)
    else:
        along = zip(axes.names, axes.values, strict=True)
        coordinates = {name: ((name,), values) for name, values in along}
        dataset = _dataset(whole(job, report), job, axes.names, coordinates)
    report.note(f"compiled {Compiled.count} times")
    dataset = dataset.assign_attrs(
        kind="bifurcation", network=network_digest(made.net), context=made.net.context,
        start=build.describe_start(options, made), clock_period=job.clock_period,
        section_tolerance=options.section_tolerance, transient=options.transient,
        steps=options.steps, max_doublings=job.plan.max_doublings,
        refine=options.refine,
        direction=(options.start or "").partition("continue-")[2],
    )  # fmt: skip
    return build.with_fixed(dataset, axes)


class Job(NamedTuple):
    """What a scan needs beside its points."""

    made: build.Model
    axes: build.Axes
    options: BifurcationRun
    plan: Plan

    def points(self, axes: build.Axes, index: np.ndarray) -> Points:
        """Points with these indices on the grid of `axes`, with all their starts.

        Padded to a power of two on the way, so that few sizes are compiled.
        """
        repeat, count = self.options.starts, len(index)
        padding = 2 ** (count - 1).bit_length() - count
        index = np.pad(index, ((0, padding), (0, 0)), mode="edge")
        params = axes.at(index, repeat)
        starts = build.start(self.options, self.made, params, repeat)
        on_host = Points(*jax.tree.map(np.asarray, (params, starts)))
        return on_host.take(np.arange(count * repeat))

    @property
    def clock_period(self) -> int:
        scanned = dict(zip(self.axes.names, self.axes.values, strict=True))
        epsilon = (self.axes.fixed | scanned)["epsilon"]
        return clock_period(self.made.net, float(np.max(epsilon)))

    def scan(self, points: Points, most: int | None = None) -> Scan:
        return Scan(self.made.net, self.plan, points, self.clock_period, most)


def whole(job: Job, report: Reporter) -> Outcome:
    """Every point of the grid."""
    points = job.points(job.axes, np.argwhere(np.ones(job.axes.shape, bool)))
    order = _order(job.options.start, job.axes)
    scan = job.scan(points if order is None else points.take(order[0]))
    report.note(forecast(scan, points))
    report.begin("bifurcation", points.count, scan.work_per_point() * points.count)
    if order is None:
        outcome = run(scan, points, report.advance)
    else:
        outcome = run_continued(scan, points, order, report.advance)
    report.finish()
    return outcome


def refined(job: Job, report: Reporter) -> xr.Dataset:
    """The coarse grid, and midpoints where neighbours differ."""
    options = job.options
    grid, finest = (
        Grid(job.axes.shape, options.refine),
        job.axes.refined(options.refine),
    )
    coarse = job.points(finest, grid.coarse())
    most = grid.size * options.starts
    scan = job.scan(coarse, most)
    report.note(forecast(scan, coarse, most))
    outcomes: list[Outcome] = []

    def compute(index: np.ndarray) -> np.ndarray:
        points, step = job.points(finest, index), len(outcomes)
        words = f"refinement {step}" if step else "coarse grid"
        report.begin(words, points.count, scan.work_per_point() * points.count)
        outcomes.append(run(scan, points, report.advance))
        report.finish()
        return labels(outcomes[-1].verdicts).reshape(len(index), options.starts)

    index = refine(grid, compute)
    order = np.lexsort(index.T[::-1])
    index = index[order]
    report.note(f"{len(index)} of {grid.size} points of the finest grid computed")
    one_by_one = np.arange(len(index) * options.starts).reshape(len(index), -1)
    outcome = join(outcomes, one_by_one[order].ravel())
    return _dataset(outcome, job, *_computed(grid, finest, index))


def labels(verdicts: Verdicts | None) -> np.ndarray:
    """One number for each point; neighbours with different ones are refined.

    They differ by phase, by period, and on tori by the number of zero exponents.
    """
    assert verdicts is not None
    phase, period = np.asarray(verdicts.phase), np.asarray(verdicts.period)
    zeros = np.where(phase == QUASIPERIODIC, verdicts.evidence.zeros, 0)
    return (period * (1 + verdicts.exponents.shape[0]) + zeros) * len(PHASES) + phase


def _computed(grid: Grid, finest: build.Axes, index: np.ndarray):
    """Dimensions and coordinates of computed points: a line, or a list of points."""
    level = grid.level_of(index).astype(np.int8)
    dims = finest.names if len(finest.names) == 1 else ("point",)
    coordinates: Coordinates = {"level": (dims, level)}
    for name, values, column in zip(finest.names, finest.values, index.T, strict=True):
        coordinates[name] = (dims, values[column])
        if dims == ("point",):
            coordinates[f"{name}_index"] = (dims, column.astype(np.int32))
            coordinates[f"{name}_grid"] = ((f"{name}_grid",), values)
    return dims, coordinates


def plan(options: BifurcationRun, net: Network) -> Plan:
    """Numerical choices of a scan from the keys of [run]."""
    exponents = net.dimension if options.exponents == "all" else options.exponents
    return Plan(
        tail=max(Plan().tail, TURNS * net.context),
        transient=options.transient,
        steps=options.steps,
        exponents=exponents,
        max_doublings=options.max_doublings if options.extend else 0,
        section_tolerance=options.section_tolerance,
        section_samples=options.section_samples,
        strobe_samples=options.strobe_samples,
    )


def _order(start: str | None, axes: build.Axes):
    """Groups of points to follow for a continuation along the first axis."""
    if start not in ("continue-up", "continue-down"):
        return None
    groups = np.arange(np.prod(axes.shape)).reshape(axes.shape[0], -1)
    upward = np.argsort(axes.values[0])
    return list(groups[upward if start == "continue-up" else upward[::-1]])


def forecast(scan: Scan, points: Points, most: int | None = None) -> str:
    """Time, memory and file size from a short pilot, in one line.

    Args:
        most: points of a finest grid, when some of them may be computed as well.
    """
    seconds = scan.pilot(points.take(np.zeros(scan.lanes, int)))
    parallel = min(workers(), -(-points.count // scan.lanes))
    rounds = lambda count: -(-count // (scan.lanes * parallel))
    results = (most or points.count) * scan.bytes_per_point()
    unit = 2**10 if sys.platform != "darwin" else 1
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    memory = resident + parallel * scan.working_memory() + 3 * results
    longest = f" to {duration(rounds(most) * seconds)}" if most else ""
    finest = f", refined to at most {most}" if most else ""
    return (
        f"{points.count} points{finest}, {scan.lanes} lanes on {parallel} "
        f"{jax.default_backend()} worker(s): about "
        f"{duration(rounds(points.count) * seconds)}{longest} "
        f"without extensions, {size(memory)} of memory, "
        f"a file of at most {size(results)}"
    )


Coordinates = dict[str, tuple[tuple[str, ...], np.ndarray]]


def _dataset(
    outcome: Outcome, job: Job, dims: tuple[str, ...], coordinates: Coordinates
) -> xr.Dataset:
    starts = job.options.starts
    shape = tuple(len(coordinates["level" if d == "point" else d][1]) for d in dims)
    own = {
        "sample": np.arange(job.plan.section_samples),
        "strobe_sample": np.arange(job.plan.strobe_samples),
    }
    if starts > 1:
        dims, shape = (*dims, "start"), (*shape, starts)
        own["start"] = np.arange(starts)
    reshape = lambda x, *rest: np.asarray(x).reshape(shape + rest)
    variables = {
        "section": (dims + ("sample",), reshape(outcome.section, -1)),
        "section_count": (dims, reshape(outcome.section_count)),
        "strobe": (dims + ("strobe_sample",), reshape(outcome.strobe, -1)),
    }
    if outcome.verdicts is not None:
        own["exponent"] = np.arange(1, job.plan.exponents + 1)
        variables |= _verdict_variables(outcome.verdicts, dims, reshape)
    labelled_coordinates = {
        name: (along, values, attributes(name))
        for name, (along, values) in coordinates.items()
    }
    return labelled(variables, own).assign_coords(labelled_coordinates)


def _verdict_variables(verdicts, dims, reshape):
    found = verdicts.evidence
    by_exponent = {
        "lyapunov": verdicts.exponents,
        "lyapunov_weighted": verdicts.weighted,
        "lyapunov_stderr": verdicts.stderr,
    }
    by_point = {
        "phase": verdicts.phase.astype(np.int8),
        "phase_paper": verdicts.phase_paper.astype(np.int8),
        "reasons": verdicts.reasons.astype(np.int32),
        "period": verdicts.period,
        "rotation_number": verdicts.rotation_number,
        "n_resolved": verdicts.resolved,
        "n_positive": found.positive,
        "n_zero": found.zeros,
        "recurrence_error": found.recurrence_error,
        "zero_one": found.zero_one,
        "broadband": found.broadband,
        "convergence_digits": found.digits,
        "quarter_disagreement": found.quarters,
        "drift": found.drift,
        "window": verdicts.window,
    }
    k = len(verdicts.exponents)
    return {
        name: (dims + ("exponent",), reshape(values.T, k))
        for name, values in by_exponent.items()
    } | {name: (dims, reshape(values)) for name, values in by_point.items()}
