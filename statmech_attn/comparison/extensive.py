r"""Patterns growing with N: theory against simulation, in standard errors.

Errors of the simulation are those of means over samples of the patterns, with that of
the theory added in squares.  Means differ from the theory by a series in 1/N
(`statistics.agreement`), so the verdict rests on the differences extrapolated to
N -> infinity where there are several N.  Deviations of single samples fall like
N^{-1/2}: the exponent of the sample-to-sample spread is fitted, and must be that.

Samples are independent and tokens are not, so what is summed over tokens has the law of
whole samples (`statistics.power`): the rms difference, and the relative error of each
parameter by which the theory would differ as it does.  `detectable_errors` says which
errors would have been found; without any that would, there is no agreement.

    theory       m_o_se, A, weights, C, S and ..._error   (..., time, ...)
                 ..._by_alpha, ...                        derivatives in ln alpha, ...
    simulation   ..._mean, ..._stderr, ..._spread         (n_spins, ..., time, ...)
                 ..._samples                              with sample before time

where ... are the parameters that were scanned.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.comparison import agreement, detectable_errors
from statmech_attn.comparison.trajectories import require_same
from statmech_attn.dmft import extensive
from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import (
    bias_slope,
    Deviations,
    extrapolation,
    in_standard_errors,
    limit_difference,
    log_spread_error,
    spread_slope,
    threshold,
)


SAME = ("network", "ensemble", "start", "context")
GROUP = "overlaps"  # name of what is summed over these; others are summed alone
SPREAD = 0.1  # of overlaps, which lie in [-1, 1]
ROUNDED_SPREAD = 1e-9  # spread of what does not vary, as it is rounded
VARIABLES = Variables(
    agreement.rows("largest_z", "n_spins observable"),
    Variable("rms_difference", "n_spins observable",
             "root mean square of simulation minus theory", "1", "Δ", group=""),
    Variable("rms_spread", "n_spins observable",
             "root mean square of the sample-to-sample spread", "1", "σ", group=""),
    agreement.rows("largest_limit_z spread_slope bias_slope", "observable"),
    agreement.rows("comparisons threshold limit_threshold verdict", group=""),
    detectable_errors.VARIABLES,
    Variable("observable", "observable", "what is compared", "1", "X"),
    agreement.ROWS.variable("n_spins"),
    extensive.points.LOADED,
)  # fmt: skip


def compare(theory: xr.Dataset, simulation: xr.Dataset) -> xr.Dataset:
    """Compare a file of kind extensive with one of kind extensive-simulation.

    The theory has all points of the simulation, which is of one N or several.  For
    every point a `verdict`, and for every observable the largest differences in
    standard errors, at every N and extrapolated, and exponents in N.
    """
    theory = _matched(theory, simulation)
    steps = min(theory.sizes["time"], simulation.sizes["time"])
    names = [
        n
        for n in extensive.points.MEASURED
        if n in theory and f"{n}_mean" in simulation
    ]
    over = tuple(n for n in extensive.points.SCANNED if n in simulation.dims)
    compared = [_point(theory, simulation, name, over, steps) for name in names]
    dataset = xr.concat(compared, "observable", join="exact")
    dataset = dataset.assign_coords(observable=names, n_spins=simulation.n_spins)
    dataset = _judged(dataset, int(simulation.attrs["samples"]))
    dataset = detectable_errors.judged(
        dataset, _deviations(theory, simulation, over, steps)
    )
    attributes = {key: simulation.attrs[key] for key in (*SAME, "samples", "runs")}
    return agreement.labelled(dataset, VARIABLES, **attributes)


def _matched(theory: xr.Dataset, simulation: xr.Dataset) -> xr.Dataset:
    """The theory at the points of the simulation."""
    require_same(SAME, theory, simulation)
    for name in extensive.points.SCANNED:
        simulated, theoretical = (
            np.atleast_1d(x[name].values) for x in (simulation, theory)
        )
        if absent := sorted(set(simulated) - set(theoretical)):
            raise ValueError(
                f"{name} = {absent[0]:g} is in the simulation but not in the theory."
            )
        if name in theory.dims:
            chosen = np.searchsorted(
                theoretical, simulated, sorter=np.argsort(theoretical)
            )
            chosen = np.argsort(theoretical)[chosen]
            single = name not in simulation.dims
            theory = theory.isel({name: int(chosen[0]) if single else chosen})
        elif name in simulation.dims:
            theory = theory.expand_dims({name: simulated})
    return theory


def _point(
    theory: xr.Dataset, simulation: xr.Dataset, name: str, over, steps: int
) -> xr.Dataset:
    """What is said of one observable at every point."""
    cut = {"time": slice(steps), "time_2": slice(steps)}
    order = (*over, *(d for d in theory[name].dims if d not in over))
    read = lambda data, key, *first: (
        data[key].isel(cut, missing_dims="ignore").transpose(*first, *order).values
    )
    expected = read(theory, name)
    predicted = read(theory, f"{name}_error")
    difference = read(simulation, f"{name}_mean", "n_spins") - expected
    sampled = read(simulation, f"{name}_stderr", "n_spins")
    spread = read(simulation, f"{name}_spread", "n_spins")
    n_spins = simulation.n_spins.values
    flat = lambda x: x.reshape(*x.shape[: x.ndim - 2], -1)
    if order[-1] == "time_2":  # both halves are the same
        rows, columns = np.tril_indices(steps)
        flat = lambda x: x[..., rows, columns]
    difference, sampled, spread = map(flat, (difference, sampled, spread))
    predicted = np.broadcast_to(flat(predicted), sampled.shape)  # shared by all N
    error = np.hypot(sampled, predicted)
    varies = sampled > ROUNDED_SPREAD
    z = np.where(varies, in_standard_errors(difference, error), np.nan)
    limit, of_limit, _ = limit_difference(n_spins, difference, sampled, varies)
    limit_error = np.hypot(of_limit, predicted[0])
    limit_z = np.where(limit_error > 0, limit / limit_error, np.nan)
    samples = int(simulation.attrs["samples"])
    last = (difference.ndim - 1,)
    contents: dict[str, Any] = {
        "largest_z": (("n_spins", *over), _largest(z)),
        "rms_difference": (("n_spins", *over), _rms(difference, varies)),
        "rms_spread": (("n_spins", *over), _rms(spread, varies)),
        "compared": (over, varies.sum((0, -1))),
        "comparisons": (over, varies.any(0).sum(-1)),
    }
    if len(n_spins) > 1:
        contents["largest_limit_z"] = over, _largest(limit_z)
        rare = 0.0
        if f"{name}_samples" in simulation and samples > 2:
            by_sample = flat(read(simulation, f"{name}_samples", "n_spins", "sample"))
            rare = log_spread_error(by_sample, varies, ROUNDED_SPREAD)
        slope = spread_slope(n_spins, spread, varies, samples, last, rare)
        contents["spread_slope"], contents["spread_slope_stderr"] = (
            (over, part) for part in slope
        )
        by_point = lambda x: x.reshape(len(n_spins), -1, x.shape[-1])
        *columns, shared = map(by_point, (difference, sampled, varies, predicted))
        bias = bias_slope(n_spins, *columns, axes=(2,), shared=shared)
        shape = difference.shape[1:-1]
        contents["bias_slope"], contents["bias_slope_stderr"] = (
            (over, np.asarray(part).reshape(shape)) for part in bias
        )
    coordinates = {name: simulation[name].values for name in over}
    fixed = {n: simulation[n].values for n in extensive.points.SCANNED if n not in over}
    return xr.Dataset(contents, coordinates | fixed)


def _deviations(
    theory: xr.Dataset, simulation: xr.Dataset, over, steps: int
) -> dict[str, dict[tuple[int, ...], Deviations]] | None:
    """Differences of theory and samples, by group and point; None without samples."""
    slope = f"_by_{extensive.points.SCANNED[0]}"
    with_theory = [
        n
        for n in extensive.points.MEASURED
        if f"{n}_samples" in simulation and n + slope in theory
    ]
    if not with_theory:
        return None
    one_time = [n for n in extensive.points.ONE_TIME if n in with_theory]
    groups = {GROUP: one_time} | {n: [n] for n in with_theory if n not in one_time}
    deviations: dict[str, dict[tuple[int, ...], Deviations]] = {x: {} for x in groups}
    for place in np.ndindex(tuple(simulation.sizes[name] for name in over)):
        at = dict(zip(over, place, strict=True))
        theory_there, spins = theory.isel(at), simulation.isel(at)
        sizes = _sizes_that_count(theory_there, spins, one_time, steps)
        for group, names in groups.items():
            point = _summed(theory_there, spins, names, steps, sizes)
            if point is not None:
                deviations[group][place] = point
    return deviations


def _rows(data: xr.Dataset, names: Sequence[str], form: str, steps: int) -> np.ndarray:
    """Numbers of several observables one after the other, a row for every time series.

    Those of two times are rows of one later token, NaN beyond it.
    """
    rows = []
    for name in names:
        x = data[form.format(name)].isel(time=slice(steps))
        last = "time"
        if "time_2" in x.dims:
            x = x.isel(time_2=slice(steps)).where(x.time_2 <= x.time)
            last = "time_2"
        x = x.transpose("n_spins", "sample", ..., last, missing_dims="ignore").values
        lead = x.shape[:2] if "sample" in data[form.format(name)].dims else ()
        rows.append(x.reshape(*lead, -1, steps))
    return np.concatenate(rows, axis=-2)


def _sizes_that_count(theory, simulation, names, steps: int) -> np.ndarray:
    """How many N, the largest ones, count at each token; zero where none does.

    Those at which deviations, of the smallest N that counts, have not reached `SPREAD`:
    from there on samples part, and their mean is no series in 1/N.  Where there are
    several N, no mean of one counts, which has a bias of the order 1/N.  Squares about
    the theory decide, which know nothing of the mean: rotations leave them as they are.
    """
    n_spins = simulation.n_spins.values
    total = len(n_spins)
    deviations = _rows(simulation, names, "{}_samples", steps)
    deviations = deviations - _rows(theory, names, "{}", steps)
    count = np.zeros(steps, int)
    for k in range(min(2, total), total + 1):
        factor = extrapolation(n_spins, np.arange(total) >= total - k)
        unit = np.sqrt((factor**2 * n_spins[-k] / n_spins).sum())
        limit = np.tensordot(factor, deviations, 1)
        square = np.sqrt((limit**2).mean(0)).max(0) / unit
        count[np.maximum.accumulate(square) <= SPREAD] = k
    return count


def _summed(theory, simulation, names, steps: int, sizes) -> Deviations | None:
    """Deviations of one point in the limit of infinite N, where any number varies."""
    n_spins = simulation.n_spins.values
    row = lambda form: _rows(theory, names, form, steps)
    deviations = _rows(simulation, names, "{}_samples", steps) - row("{}")
    later = sizes[:, None] if "time_2" in theory[names[0]].dims else sizes
    count = np.broadcast_to(later, deviations.shape[-2:])
    largest = np.arange(len(n_spins), 0, -1)[:, None, None] <= count
    factor = extrapolation(n_spins, largest)
    finite = np.isfinite(deviations)
    known = np.where(finite, deviations, 0.0)  # `used` leaves out the others
    samples = (np.where(largest, factor, 0.0)[:, None] * known).sum(0)
    used = (count > 0) & finite.all((0, 1)) & (samples.std(0) > ROUNDED_SPREAD)
    lengths = used.sum(1)
    ends = np.cumsum(lengths)
    series = [slice(a, b) for a, b in zip(ends - lengths, ends) if b > a]
    if not series:
        return None
    slopes = np.array(
        [row(f"{{}}_by_{name}")[used] for name in extensive.points.SCANNED]
    )
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    return Deviations(samples[:, used], series, row("{}_error")[used], slopes)


def _judged(dataset: xr.Dataset, samples: int) -> xr.Dataset:
    """Thresholds from the number of comparisons, and a verdict for every point."""
    total, limits = (int(dataset[n].sum()) for n in ("compared", "comparisons"))
    allowed = threshold(max(total, 1), samples)
    limit_allowed = threshold(max(limits, 1), samples)
    exceeds = (dataset.largest_z > allowed).any(["n_spins", "observable"])
    several = "largest_limit_z" in dataset
    wrong = exceeds & False
    slow = wrong
    if several:
        wrong = (dataset.largest_limit_z > limit_allowed).any("observable")
        off = abs(dataset.spread_slope + 0.5) / dataset.spread_slope_stderr
        slow = (off > agreement.allowed(off)).any("observable")
    reasons = {
        "nothing_compared": dataset.comparisons.sum("observable") == 0,
        "differs": wrong,
        "spread_differs": slow,
        "agrees": ~exceeds,
    }
    otherwise = "bias_only" if several else "one_n_cannot_tell"
    verdict = agreement.verdict(reasons, otherwise)
    return dataset.assign(
        verdict=(dataset.comparisons.isel(observable=0).dims, verdict),
        comparisons=dataset.comparisons.sum("observable"),
        threshold=allowed,
        limit_threshold=limit_allowed,
    ).drop_vars("compared")


def _largest(z: np.ndarray) -> np.ndarray:
    """Largest size along the last axis; NaN where there is none."""
    finite = np.isfinite(z)
    largest = np.where(finite, np.abs(z), 0.0).max(-1, initial=0.0)
    return np.where(finite.any(-1), largest, np.nan)


def _rms(x: np.ndarray, used: np.ndarray) -> np.ndarray:
    count = used.sum(-1)
    total = np.where(used, x**2, 0.0).sum(-1)
    ratio = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    return np.sqrt(ratio)
