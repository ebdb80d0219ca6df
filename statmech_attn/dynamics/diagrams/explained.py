"""Why a point of a diagram has its phase, in a sentence with the numbers of its file.

A file holds less than a `Classification`: neither the thresholds, nor the exponents of
the halves and quarters of the window, and the sentence says nothing of them.
"""

import numpy as np
import xarray as xr

from statmech_attn.dynamics.phases import PHASES, REASONS
from statmech_attn.dynamics.sentences import undecided, Verdict
from statmech_attn.labels import unit_of


def explain(dataset: xr.Dataset, **values: float) -> str | list[str]:
    """Why the point nearest to some values of the scanned parameters has its phase.

    Args:
        dataset: of kind `bifurcation` or `diagram`, with exponents.
        values: of every scanned parameter, by name.

    Returns:
        a sentence that begins with the values of the point; of several starts, a list.

    Raises:
        ValueError: another kind of file, or values that do not name a point of it.

    Example:
        explain(scan, a=1.0) of a Hénon map: "a = 1, periodic: the orbit recurs after 4
        steps, to 3e-16 of its size; λ_1 = -0.1592 ± 1e-15 nat/step, of the cycle
        itself; the window that decided has 2048 steps; ..."
    """
    if "section_count" not in dataset or "phase" not in dataset:
        raise ValueError(
            "explain() takes scans of kind bifurcation or diagram, with exponents; got "
            f"{dataset.attrs.get('kind', 'another data set')}."
        )
    point = _nearest(dataset, values)
    named = (f"{point[n].attrs['symbol']} = {float(point[n]):.6g}" for n in values)
    place = ", ".join(named)
    if "start" not in point.dims:
        return f"{place}, {_explained(point)}."
    starts = range(point.sizes["start"])
    return [f"{place}, start {i}, {_explained(point.isel(start=i))}." for i in starts]


def _nearest(dataset: xr.Dataset, values: dict[str, float]) -> xr.Dataset:
    """The point of a scan nearest to some values, which lie within its range."""
    dims = [str(name) for name in dataset.phase.dims if name != "start"]
    listed = dims == ["point"]  # two refined parameters
    if listed:
        dims = [str(n).removesuffix("_grid") for n in dataset.dims if "_grid" in str(n)]
    if set(values) != set(dims):
        raise ValueError(
            f"explain() takes a value of {' and of '.join(dims)}; got "
            f"{', '.join(values) or 'none'}."
        )
    distance = 0.0
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
        return dataset.isel(point=int(np.argmin(distance)))
    return dataset.isel(dict.fromkeys(dims, 0))


def _explained(point: xr.Dataset) -> str:
    """The phase, why, and how far it was tested, of one point and start."""
    if "failure" in point and int(point.failure):
        return "no phase: the point could not be computed"
    bits = int(point.reasons)
    of = lambda name: point[name].values
    known = lambda name: float(point[name]) if name in point else np.nan
    verdict = Verdict(
        phase=PHASES[int(point.phase)],
        period=int(point.period),
        rotation_number=float(point.rotation_number),
        rotation_error=known("rotation_error"),
        oriented=known("rotation_oriented") == 1,
        reasons=[text for i, text in enumerate(REASONS) if bits >> i & 1],
        exponents=of("lyapunov"),
        stderr=of("lyapunov_stderr"),
        steps=int(point.window),
        recurrence_error=float(point.recurrence_error),
        positive=int(point.n_positive),
        zero_one=float(point.zero_one),
        broadband=float(point.broadband),
        digits=float(point.convergence_digits),
        quarters=float(point.quarter_disagreement),
        drift=float(point.drift),
        unit=unit_of(point.period.attrs),
    )
    parts = [_why(verdict, str(_source(point))), *_tested(point, verdict)]
    return f"{verdict.phase}: {'; '.join(parts)}"


def _source(point: xr.Dataset) -> str:
    """What the leading exponent was taken from, where it is the cycle itself."""
    codes = point.lyapunov_source
    return str(codes.attrs["flag_meanings"].split()[int(codes.isel(exponent=0))])


def _why(v: Verdict, source: str) -> str:
    match v.phase:
        case "fixed" | "periodic":
            of = ", of the cycle itself" if source == "cycle" else ""
            return (
                f"the orbit recurs after {v.after(v.period)}, to "
                f"{v.recurrence_error:.1g} of its size; {v.leading}{of}"
            )
        case "quasiperiodic":
            return (
                f"{v.leading} counts as zero; the orbit does not recur; weighted "
                f"averages agree to {v.digits:.1f} digits; {v.indicators}; "
                f"{v.frequency}"
            )
        case "chaotic" | "hyperchaotic":
            many = f", {v.positive} exponents are" if v.positive > 1 else ""
            errors = ""
            if v.stderr[0] > 0:
                errors = f", {v.exponents[0] / v.stderr[0]:.3g} standard errors"
            return (
                f"{v.leading} is positive{errors}{many}; the orbit does not recur; "
                f"{v.indicators}"
            )
        case "diverged":
            return "the state became infinite or not a number"
    return undecided(v)


def _tested(point: xr.Dataset, v: Verdict) -> list[str]:
    """What the verdict has been put to."""
    parts = [
        f"the window that decided has {v.after(v.steps)}",
        f"the verdict has held for {v.after(int(point.horizon))}",
    ]
    if v.phase not in PHASES[: PHASES.index("transient")]:
        parts.pop()
    confirmed = int(point.confirmed) if "confirmed" in point else -1
    if confirmed >= 0:
        starts = int(point.attrs["confirm_starts"])
        horizon = int(point.attrs["confirm_horizon"])
        parts.append(
            f"{confirmed} of {starts} perturbed starts kept to it for "
            f"{v.after(horizon)}"
        )
    if int(point.doubtful):
        parts.append("a neighbour makes the verdict doubtful")
    return parts
