"""Bifurcation studies: a scan, its forecast and its data set."""

import resource
import sys

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn.comparison import network_digest
from statmech_attn.dmft import clock_period
from statmech_attn.labels import labelled
from statmech_attn.reporting import duration, Reporter, size
from statmech_attn.scan.bifurcation import (
    Outcome,
    Plan,
    Points,
    run,
    run_continued,
    Scan,
)
from statmech_attn.scan.lanes import Compiled, workers
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import BifurcationRun, BifurcationStudy


def run_study(study: BifurcationStudy, report: Reporter) -> xr.Dataset:
    """Scan, classify and sample the sections of every point."""
    made = build.model(study.network)
    axes, options = build.axes(study.parameters, made.file), study.run
    params = axes.points(options.starts)
    points = Points(params, build.start(options, made, params, options.starts))
    scan_plan = plan(options, made.net.dimension)
    order = _order(options.start, axes)
    period = clock_period(made.net, float(jnp.max(params.epsilon)))
    first = points if order is None else points.take(order[0])
    scan = Scan(made.net, scan_plan, first, period)
    report.note(forecast(scan, points))
    report.begin("bifurcation", points.count, scan.work_per_point() * points.count)
    if order is None:
        outcome = run(scan, points, report.advance)
    else:
        outcome = run_continued(scan, points, order, report.advance)
    report.finish()
    report.note(f"compiled {Compiled.count} times")
    dataset = _dataset(outcome, axes, options, scan_plan).assign_attrs(
        kind="bifurcation", network=network_digest(made.net), context=made.net.context,
        start=build.describe_start(options, made), clock_period=period,
        section_tolerance=options.section_tolerance, transient=options.transient,
        steps=options.steps, max_doublings=scan_plan.max_doublings,
    )  # fmt: skip
    return build.with_fixed(dataset, axes)


def plan(options: BifurcationRun, dimension: int) -> Plan:
    """Numerical choices of a scan from the keys of [run]."""
    exponents = dimension if options.exponents == "all" else options.exponents
    return Plan(
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


def forecast(scan: Scan, points: Points) -> str:
    """Time, memory and file size from a short pilot, in one line."""
    seconds = scan.pilot(points.take(np.zeros(scan.lanes, int)))
    batches = -(-points.count // scan.lanes)
    parallel = min(workers(), batches)
    rounds = -(-batches // parallel)
    results = points.count * scan.bytes_per_point()
    unit = 2**10 if sys.platform != "darwin" else 1
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    memory = resident + parallel * scan.working_memory() + 3 * results
    return (
        f"{points.count} points, {scan.lanes} lanes on {parallel} "
        f"{jax.default_backend()} worker(s): about {duration(rounds * seconds)} "
        f"without extensions, {size(memory)} of memory, "
        f"a file of at most {size(results)}"
    )


def _dataset(
    outcome: Outcome, axes: build.Axes, options: BifurcationRun, made: Plan
) -> xr.Dataset:
    several = options.starts > 1
    dims = axes.names + (("start",) if several else ())
    shape = axes.shape + ((options.starts,) if several else ())
    reshape = lambda x, *rest: np.asarray(x).reshape(shape + rest)
    variables = {
        "section": (dims + ("sample",), reshape(outcome.section, -1)),
        "section_count": (dims, reshape(outcome.section_count)),
        "strobe": (dims + ("strobe_sample",), reshape(outcome.strobe, -1)),
    }
    coordinates = dict(zip(axes.names, axes.values, strict=True)) | {
        "sample": np.arange(made.section_samples),
        "strobe_sample": np.arange(made.strobe_samples),
    }
    if several:
        coordinates["start"] = np.arange(options.starts)
    if outcome.verdicts is not None:
        coordinates["exponent"] = np.arange(1, made.exponents + 1)
        variables |= _verdict_variables(outcome.verdicts, dims, reshape)
    return labelled(variables, coordinates)


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
