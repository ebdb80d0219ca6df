"""Why a point of a diagram has its phase, in a sentence with the numbers of its file.

A file holds less than a `Classification`: neither the thresholds, nor the exponents of
the halves and quarters of the window, and the sentence says nothing of them.
"""

import numpy as np
import xarray as xr

from statmech_attn.dynamics.diagrams.diagram_variables import INDEX
from statmech_attn.dynamics.motion import phases
from statmech_attn.dynamics.motion.explanations import Verdict
from statmech_attn.dynamics.motion.phases import PHASES, REASONS
from statmech_attn.labels import unit_of, with_count
from statmech_attn.presentation import quantity


def explain(dataset: xr.Dataset, **values: float) -> str | list[str]:
    """Why the point nearest to some values of the scanned parameters has its phase.

    Args:
        dataset: of kind `bifurcation` or `diagram`, with exponents.
        values: of every scanned parameter, by name; of a list of points those of all
            its parameters, or `index`.

    Returns:
        a sentence that begins with the values of the point; of several starts, a list.

    Raises:
        ValueError: another kind of file, or values that do not name a point of it.

    Example:
        explain(scan, a=1.0) of a Hénon map: "a = 1, periodic: the orbit recurs after 4
        steps, to 3e-16 of its size, and λ_1 = -0.161178 nat/step, of the cycle
        itself, is negative; decided in a window of 2048 steps; ..."
    """
    if any(name not in dataset for name in ("section_count", "phase", "reasons")):
        raise ValueError(
            "explain() takes scans of kind bifurcation or diagram, with exponents and "
            f"evidence; got {dataset.attrs.get('kind', 'another data set')}."
        )
    point = _nearest(dataset, values)
    names = listed_parameters(dataset) or values
    place = ", ".join(_place(point[name], values.get(name)) for name in names)
    if "start" not in point.dims:
        return f"{place}, {_explained(point)}."
    starts = range(point.sizes["start"])
    return [f"{place}, start {i}, {_explained(point.isel(start=i))}." for i in starts]


def _place(parameter: xr.DataArray, wanted: float | None) -> str:
    """The value of a parameter at a point, and the one asked for where it differs."""
    at = float(parameter)
    near = wanted is not None and not np.isclose(at, wanted, rtol=1e-6, atol=0.0)
    return f"{parameter.attrs['symbol']} = {at:.6g}" + (
        f" (nearest to {wanted:.6g})" if near else ""
    )


def _nearest(dataset: xr.Dataset, values: dict[str, float]) -> xr.Dataset:
    """The point of a scan nearest to some values, which lie within its range."""
    dims = axes = [str(name) for name in dataset.phase.dims if name != "start"]
    if (columns := listed_parameters(dataset)) and set(values) != {INDEX.name}:
        dims = columns
    elif axes == ["point"]:  # two refined parameters
        dims = [str(n).removesuffix("_grid") for n in dataset.dims if "_grid" in str(n)]
    if set(values) != set(dims):
        raise ValueError(
            f"explain() takes a value of {' and of '.join(dims)}; got "
            f"{', '.join(values) or 'none'}."
        )
    distance, listed = 0.0, dims != axes
    for name, value in values.items():
        low, high = float(dataset[name].min()), float(dataset[name].max())
        if not low <= value <= high:
            raise ValueError(
                f"{name} must lie in the scanned range, {low:g} to {high:g}; got "
                f"{value:g}."
            )
        distance += np.abs(dataset[name].values - value) / ((high - low) or 1.0)
        if not listed:
            dataset = dataset.isel({name: [int(np.argmin(distance))]})
            distance = 0.0
    if listed:
        return dataset.isel({axes[0]: int(np.argmin(distance))})
    return dataset.isel(dict.fromkeys(dims, 0))


def listed_parameters(dataset: xr.Dataset) -> list[str]:
    """Names of the parameters of a list of points; none of another file."""
    along = [str(n) for n, x in dataset.coords.items() if x.dims == (INDEX.name,)]
    return [name for name in along if name not in (INDEX.name, "level")]


def rotation_text(point: xr.Dataset) -> str:
    """The rotation number that a file holds of one orbit, with its error; or nothing.

    A strongest frequency, which cannot tell rho from 1 - rho, says so.
    """
    number = float(point.rotation_number)
    if np.isnan(number):
        return ""
    error = float(point.rotation_error) if "rotation_error" in point else np.nan
    oriented = "rotation_oriented" in point and int(point.rotation_oriented) == 1
    return quantity(number, error) + ("" if oriented else ", or 1 - ρ")


def _explained(point: xr.Dataset) -> str:
    """The phase, why, and how far it was tested, of one point and start."""
    if "failure" in point and int(point.failure):
        return "no phase: the point could not be computed"
    bits = int(point.reasons)
    stored = lambda name: float(point[name]) if name in point else np.nan
    verdict = Verdict(
        phase=PHASES[int(point.phase)],
        period=int(point.period),
        rotation_number=float(point.rotation_number),
        rotation_error=stored("rotation_error"),
        oriented=stored("rotation_oriented") == 1,
        reasons=[text for i, text in enumerate(REASONS) if bits >> i & 1],
        exponents=point.lyapunov.values,
        stderr=point.lyapunov_stderr.values,
        steps=int(point.window),
        recurrence_error=float(point.recurrence_error),
        positive=int(point.n_positive),
        zeros=int(point.get("n_zero", 0)),
        zero_one=float(point.zero_one),
        broadband=float(point.broadband),
        digits=float(point.convergence_digits),
        quarters=float(point.quarter_disagreement),
        drift=float(point.drift),
        unit=unit_of(point.period.attrs),
        of_cycle=_source(point) == "cycle",
    )
    parts = [verdict.sentence, *_tested(point, verdict)]
    return f"{verdict.phase}: {'; '.join(parts)}"


def _source(point: xr.Dataset) -> str:
    """What the leading exponent was taken from, where it is the cycle itself."""
    codes = point.lyapunov_source
    return str(codes.attrs["flag_meanings"].split()[int(codes.isel(exponent=0))])


def _tested(point: xr.Dataset, v: Verdict) -> list[str]:
    """What the verdict has been put to."""
    parts = [
        f"decided in a window of {v.after(v.steps)}",
        f"the phase has lasted for {v.after(int(point.horizon))} or more",
    ]
    if v.phase not in PHASES[: PHASES.index("transient")]:
        parts.pop()
    if "confirmed" in point and int(point.confirmed) >= 0:
        starts = int(point.attrs["confirm_starts"])
        same = f"{int(point.confirmed)} of {starts} perturbed starts"
        parts.append(f"{same} have the same phase")
    if "final_starts" in point and int(point.final_starts) >= 0:
        parts.append(f"the orbit settles on: {_final(point, v)}")
    chance = float(point.get("transient_probability", np.nan))
    if int(point.doubtful):
        parts.append("doubtful, as other kinds of orbits or weaker chaos are near")
    if 0 < chance < 1:
        parts.append(f"it is a transient with probability {chance:.1g}")
    return parts


def _final(point: xr.Dataset, v: Verdict) -> str:
    """What follows a transient."""
    phase, period = PHASES[int(point.final_phase)], int(point.final_period)
    exponent = float(point.final_lyapunov)
    error = float(point.final_lyapunov_stderr)
    with_period = f" with period {period}" if period else ""
    return f"{phase}{with_period}, λ_1 = {exponent:.4g} ± {error:.1g} nat/{v.unit}"


def doubts(dataset: xr.Dataset) -> list[str]:
    """A few sentences on the transients among the verdicts of a scan."""
    if "doubtful" not in dataset:
        return []
    doubtful = dataset.doubtful.values != 0
    lines = []
    if "confirmed" in dataset:
        lines += _run_again(dataset, int(doubtful.sum()))
    elif doubtful.any():
        lines.append(
            f"{doubtful.sum()} chaotic points are doubtful: they may be transients, as "
            "other kinds of orbits or weaker chaos are near; none was run again"
        )
    chaos = np.isin(dataset.phase.values, phases.CHAOS)
    if (sure := chaos & ~doubtful).any() and "horizon" in dataset:
        time = with_count(
            int(dataset.horizon.values[sure].min()), unit_of(dataset.horizon.attrs)
        )
        expectation = ""
        if "transient_probability" in dataset:
            expected = np.nansum(dataset.transient_probability.values[sure])
            expectation = (
                f"; by the lifetimes of the transients seen, {expected:.2g} of them "
                "are expected to be transients"
            )
        lines.append(
            f"{sure.sum()} chaotic points that are not doubtful have lasted for {time} "
            f"or more{expectation}; a longer-lived transient would look the same"
        )
    return lines


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _run_again(dataset: xr.Dataset, doubtful: int) -> list[str]:
    """What became of the points that were run again."""
    run, settled = dataset.confirmed.values >= 0, dataset.final_starts.values
    departed, starts = settled >= 0, int(dataset.attrs["confirm_starts"])
    if not run.any():
        return []
    lines = [
        f"{run.sum()} doubtful points were run again from {starts} perturbed states "
        f"each: {_number(departed.sum(), 'is a transient', 'are transients')}, "
        f"{_number(doubtful, 'stays', 'stay')} doubtful"
    ]
    if departed.any():
        final, exponent = dataset.final_phase.values, dataset.final_lyapunov.values
        ends = []
        for code in np.unique(final[departed]):
            values = exponent[departed & (final == code)]
            low, high = (f"{x:.3g}" for x in (values.min(), values.max()))
            span = f"λ_1 from {low} to {high}" if low != high else f"λ_1 = {low}"
            ends.append(f"{values.size} {PHASES[int(code)]} ({span})")
        line = f"after the transients: {', '.join(ends)}"
        several = departed & (settled < starts - dataset.confirmed.values)
        if several.any():
            line += f"; at {several.sum()} of them one of several attractors"
        lines.append(line)
    return lines
