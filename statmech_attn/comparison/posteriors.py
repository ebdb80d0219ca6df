r"""Saddle point, corrected saddle point, exact law and weights, side by side.

Every estimate of a quantity q (U_l, U_a, the mean predictor, the accuracy) at a width
is compared with one reference, the exact law where it is among the files, else the
first posterior file:

    $z = (q - q_{ref}) / \sqrt{s^2 + s_{ref}^2}$

with the Monte Carlo standard errors s, zero for the saddle point.  `largest_z` is over
the entries of the order parameters, the mean and the variance of the predictor; the
threshold accounts for their number, and by Student's law for the effective number of
draws behind the errors.  Draws that have not mixed (`R_HAT`, `N_EFF`) are not judged.
`smallest_error` is the relative error, common to all entries of a quantity, that would
have been found with probability 0.9 by the entry that tells most; an agreement at which
none of 10 % of any quantity would have been found is none.  `smallest_parameter_error`
is the same of the temperature, and of all widths together: $\epsilon$ moves an entry by
$\epsilon\, \partial q / \partial \ln T$, which the theory's file has.  How entries are
correlated is not known, and then no projection on many is surely sharper than the
sharpest entry, $\max_i |\partial q_i / \partial \ln T| / s_i$.

Two ways of sampling one posterior must agree; the saddle point differs from it at
finite width, by what `U_1_rms` and its exponent in N say: -1 at fixed P / N, and -2 for
N >> P at fixed P, as along the widths of one study (docs/theory/bpkr.md, section 6).

    order parameters   U_1 ... U_L, U_a, predictor_mean,     kind order-parameter
                       predictor_variance, accuracy
    posteriors         the same with `_stderr`               kind posterior
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from statmech_attn.bpkr import estimates, quantities
from statmech_attn.comparison import agreement
from statmech_attn.comparison.agreement import TELLS
from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import threshold, visible_alone


SAME = ("task", "prior")  # attributes that all files must have, and alike
VERDICTS = (
    "agrees",
    "differs",
    "reference",
    "nothing_compared",
    "not_mixed",
    "cannot_tell",
)
R_HAT = 1.05  # of the entries of U_1; above, chains do not agree on their mean
N_EFF = 50  # of the entries of U_1; below, standard errors are not to be relied on
RESOLVED = 3.0  # a distance of so many of its errors is one
ROUNDING = 1e-12  # of order parameters and predictors, relative to their size
PARAMETERS = ("temperature", "width")
_POINT = "estimate width temperature"
_U_1 = Variable(
    "U_1",
    f"{_POINT} path_1 path_1_pair",
    "order parameter, overlap of effective weights",
    symbol="U_1",
    parts="_stderr",
    group="",
)
VARIABLES = Variables(
    _U_1,
    _U_1.ended("_z"),
    quantities.order_parameters(_POINT, "_stderr _z", "l > 1", group=None),
    *(row.over(f"{_POINT} test", "_stderr _z") for row in quantities.PREDICTOR),
    quantities.ACCURACY.over(_POINT, "_stderr _z", group=""),
    agreement.rows("largest_z", _POINT),
    agreement.rows("smallest_error", f"quantity {_POINT}"),
    Variable("quantity", "quantity", "what is compared", "1", "q"),
    agreement.rows(
        "smallest_error", f"parameter {_POINT}", name="smallest_parameter_error",
        note=f"{agreement.INF}; with derivatives of the theory",
    ),
    agreement.rows("parameter", "parameter"),
    agreement.rows("comparisons", _POINT),
    agreement.rows("verdict", _POINT, flags=VERDICTS),
    _U_1.ended("_rms").over(_POINT, "_stderr", group=""),
    _U_1.ended("_rms_slope").over(
        "estimate temperature", "_stderr", group=""
    ),
    agreement.rows("threshold"),
    Variable("estimate", "estimate", "what the numbers were estimated by", "1",
             "estimate"),
    quantities.WIDTH,
    quantities.TEMPERATURE,
    *quantities.PATHS,
)  # fmt: skip


def compare(theory: xr.Dataset, posteriors: Sequence[xr.Dataset]) -> xr.Dataset:
    """Put the estimates of all files side by side, at the reference's points.

    Every quantity has the dimension `estimate`, its `_stderr` and `_z`; the
    `largest_z`, the `comparisons`, their `threshold` and a `verdict` are by estimate
    and point.  `U_1_rms` is the root mean square difference of the entries of U_1, NaN
    where it is not resolved, and has an exponent in N.  Its errors take all entries as
    fully correlated: they are twice too large where the four of two paths are
    independent.
    """
    files = _estimates(theory, posteriors)
    reference = (
        estimates.EXACT if estimates.EXACT in files else sampled_by(posteriors[0])
    )
    points = {
        axis: _common(axis, files, reference) for axis in ("width", "temperature")
    }
    files = {name: _selected(file, points) for name, file in files.items()}
    names = _quantities(theory)
    values = {name: _joined(files, name) for name in names}
    errors = {name: _joined(files, f"{name}_stderr", like=name) for name in names}
    result, combined = dict(values), {}
    for name in names:
        q, s = values[name], errors[name]
        scale = float(abs(q).max())
        error = np.hypot(np.hypot(s, s.sel(estimate=reference)), ROUNDING * scale)
        z = (q - q.sel(estimate=reference)) / error
        compared = z.notnull() & (q.estimate != reference)
        combined[name] = xr.where(compared, error, np.nan)
        result |= {f"{name}_stderr": s, f"{name}_z": z}
    dataset = xr.Dataset(result).drop_vars("test", errors="ignore")
    judged = [name for name in names if name != "accuracy"]
    dataset = _judge(dataset, judged, reference, _mixing(files))
    dataset = _seen(dataset, judged, combined, reference, files["saddle"])
    dataset = dataset.assign(_distances(dataset, reference))
    attributes = {key: theory.attrs[key] for key in SAME}
    return agreement.labelled(dataset, VARIABLES, reference=reference, **attributes)


def sampled_by(posterior: xr.Dataset) -> str:
    """The name of the estimate by which a posterior was sampled.

    Args:
        posterior: result of a posterior study.

    Example:
        >>> import xarray as xr
        >>> sampled_by(xr.Dataset(attrs={"method": "order-parameter"}))
        'exact'
    """
    return estimates.of_method(str(posterior.attrs["method"]))


def _estimates(theory, posteriors) -> dict[str, xr.Dataset]:
    """Files by the name of what they estimate; the corrected saddle is one of them."""
    files = {"saddle": theory}
    corrected = [str(n) for n in theory.data_vars if str(n).endswith("_corrected")]
    if corrected:
        plain = {name: name.removesuffix("_corrected") for name in corrected}
        uncorrected = theory.drop_vars([n for n in plain.values() if n in theory])
        files["corrected"] = uncorrected.rename(plain)
    for posterior in posteriors:
        name = sampled_by(posterior)
        if name in files:
            raise ValueError(
                f"compare takes one file of a method; got two files of the method "
                f"{posterior.attrs['method']!r}."
            )
        for key in SAME:
            if posterior.attrs[key] != theory.attrs[key]:
                raise ValueError(
                    f"{key} differs: theory has {theory.attrs[key]}, {name} has "
                    f"{posterior.attrs[key]}."
                )
        files[name] = posterior
    return files


def _common(axis: str, files, reference: str) -> np.ndarray:
    """Widths or temperatures of the theory and of the reference.

    Every other file must have one of them at least.
    """
    values = {name: np.atleast_1d(file[axis].values) for name, file in files.items()}
    shared = np.intersect1d(values["saddle"], values[reference])
    for name, coordinate in values.items():
        if not np.intersect1d(shared, coordinate).size:
            raise ValueError(f"{name}: has no {axis} in common with the others.")
    return shared


def _selected(file: xr.Dataset, points) -> xr.Dataset:
    """A file at all points, NaN where it has none."""
    for axis in points:
        if axis not in file.dims:
            file = file.expand_dims(axis)
    numeric = [name for name in file.data_vars if file[name].dtype.kind == "f"]
    return file[numeric].reindex(points)


def _quantities(theory: xr.Dataset) -> list[str]:
    layers = sum(str(n).startswith("U_") and str(n)[2:].isdigit() for n in theory)
    estimated = ["U_a", "predictor_mean", "predictor_variance", "accuracy"]
    names = [f"U_{l + 1}" for l in range(layers)] + estimated
    return [name for name in names if name in theory]


def _joined(files, name: str, like: str = "") -> xr.DataArray:
    """One quantity of all files; zero for an error that a theory does not have."""
    parts = []
    for file in files.values():
        part = file[name] if name in file else xr.zeros_like(file[like])
        parts.append(part.reset_coords(drop=True).drop_vars("test", errors="ignore"))
    names = xr.IndexVariable("estimate", list(files))
    order = ("estimate", "width", "temperature", ...)
    return xr.concat(parts, names, coords="minimal").transpose(*order)


def _mixing(files) -> xr.Dataset:
    """Worst R-hat and effective number of draws of U_1, by estimate; NaN for theory."""
    diagnostics = {"r_hat": [], "n_eff": []}
    for file in files.values():
        sampled = "U_1_n_eff" in file
        entries = [d for d in file.U_1.dims if str(d).startswith("path")]
        nothing = xr.full_like(file.U_a, np.nan)
        diagnostics["r_hat"].append(file.U_1_r_hat.max(entries) if sampled else nothing)
        diagnostics["n_eff"].append(file.U_1_n_eff.min(entries) if sampled else nothing)
    names = xr.IndexVariable("estimate", list(files))
    plain = lambda x: x.reset_coords(drop=True)
    joined = {
        key: xr.concat(map(plain, parts), names, coords="minimal")
        for key, parts in diagnostics.items()
    }
    return xr.Dataset(joined)


def _judge(dataset, names, reference, mixing) -> xr.Dataset:
    """Largest difference of every estimate and point, and whether chance allows it."""
    point = ("estimate", "width", "temperature")
    over = lambda x: [d for d in x.dims if d not in point]
    z = [dataset[f"{name}_z"] for name in names]
    largest = xr.concat([abs(x).max(over(x)) for x in z], "quantity").max("quantity")
    number = xr.concat([x.notnull().sum(over(x)) for x in z], "quantity")
    number = number.sum("quantity")
    is_reference = dataset.estimate == reference
    count = max(int(number.where(~is_reference, 0).max("estimate").sum()), 1)
    # A standard error from n effective draws has about n degrees of freedom.
    runs = max(int(mixing.n_eff.min()), 2)
    allowed = threshold(count, runs)
    poor = (mixing.r_hat > R_HAT) | (mixing.n_eff < N_EFF)
    poor |= mixing.r_hat.isnull() & mixing.n_eff.notnull()
    poor |= poor.sel(estimate=reference).drop_vars("estimate")
    reasons = {
        "reference": is_reference,
        "nothing_compared": number == 0,
        "not_mixed": poor,
        "agrees": largest <= allowed,
    }
    broadcast = xr.broadcast(*reasons.values())
    reasons = {k: x.transpose(*point) for k, x in zip(reasons, broadcast, strict=True)}
    return dataset.assign(
        largest_z=largest,
        comparisons=number,
        threshold=allowed,
        verdict=(point, agreement.verdict(reasons, "differs", VERDICTS)),
    )


def _seen(dataset, names, errors, reference, theory) -> xr.Dataset:
    """The smallest errors that would be found; where they are large, nothing agrees.

    `errors` are those of the differences from the reference, NaN where nothing is
    compared.
    """
    of_reference = dataset.sel(estimate=reference, drop=True)
    alone = lambda name, slope: _visible(errors[name], slope, float(dataset.threshold))
    smallest = [alone(name, of_reference[name]) for name in names]
    smallest_errors = xr.concat(smallest, "quantity")
    blind = (dataset.verdict == VERDICTS.index("agrees")) & (
        smallest_errors.min("quantity") > TELLS
    )
    verdict = dataset.verdict.where(~blind, VERDICTS.index("cannot_tell"))
    dataset = dataset.assign(
        smallest_error=smallest_errors, verdict=verdict.astype(np.int8)
    )
    dataset = dataset.assign_coords(quantity=list(names))
    slopes = [[(n, f"{n}_by_{p}") for n in names] for p in PARAMETERS]
    if not all(slope in theory for pairs in slopes for _, slope in pairs):
        return dataset
    sharpest = [
        xr.concat([alone(name, theory[slope]) for name, slope in pairs], "entry")
        for pairs in slopes
    ]
    return dataset.assign(
        smallest_parameter_error=xr.concat(sharpest, "parameter").min("entry")
    ).assign_coords(parameter=list(PARAMETERS))


def _visible(error: xr.DataArray, slope: xr.DataArray, bound: float) -> xr.DataArray:
    """The smallest visible relative error at every point of every estimate."""
    point = ("estimate", "width", "temperature")
    error = error.transpose(*point, ...)
    slope = slope.drop_vars("test", errors="ignore").broadcast_like(error)
    slope = slope.fillna(0.0).transpose(*error.dims)
    smallest = np.full(error.shape[:3], np.inf)
    for place in np.ndindex(smallest.shape):
        smallest[place] = visible_alone(error.values[place], slope.values[place], bound)
    return xr.DataArray(smallest, {d: error[d] for d in point}, point)


def _distances(dataset, reference) -> dict:
    """Root mean square difference of U_1, its error, and its exponent in the width."""
    entries = [str(d) for d in dataset.U_1.dims if str(d).startswith("path")]
    difference = dataset.U_1 - dataset.U_1.sel(estimate=reference)
    variance = dataset.U_1_stderr**2 + dataset.U_1_stderr.sel(estimate=reference) ** 2
    # Sampling adds its own variance to the square of a difference.
    square = (difference**2).mean(entries) - variance.mean(entries)
    rms = np.sqrt(square.where(square > 0))
    # Errors of the entries taken as fully correlated, which bounds that of the mean.
    error = (abs(difference) * np.sqrt(variance)).mean(entries) / rms
    resolved = rms > RESOLVED * error
    rms, error = rms.where(resolved), error.where(resolved)
    slope, slope_error = xr.apply_ufunc(
        _power,
        rms,
        error,
        rms.width,
        vectorize=True,
        input_core_dims=[["width"]] * 3,
        output_core_dims=[[], []],
    )
    return {
        "U_1_rms": rms,
        "U_1_rms_stderr": error,
        "U_1_rms_slope": slope,
        "U_1_rms_slope_stderr": slope_error,
    }


def _power(rms, error, widths) -> tuple[float, float]:
    """Exponent of a power law with its error, from two points at least."""
    positive = np.isfinite(rms) & (rms > 0)
    if positive.sum() < 2:
        return np.nan, np.nan
    x, weight = np.log(widths[positive]), (rms[positive] / error[positive]) ** 2
    x = x - np.average(x, weights=weight)
    moment = (weight * x**2).sum()
    return (weight * x * np.log(rms[positive])).sum() / moment, 1 / np.sqrt(moment)
