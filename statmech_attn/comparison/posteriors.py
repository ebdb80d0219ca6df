r"""Saddle point, corrected saddle point, exact law and weights, side by side.

Every estimate of a quantity q (U_l, U_a, the mean predictor, the accuracy) at a width
is held against one reference, the exact law where it is among the files, else the first
posterior file:

    $z = (q - q_{ref}) / \sqrt{s^2 + s_{ref}^2}$

with the Monte Carlo standard errors s, zero for the saddle point.  `largest_z` is over
the entries of the order parameters and the predictor; the threshold accounts for their
number.  Two ways of sampling one posterior must agree; the saddle point differs from it
at finite width, by what `U_1_rms` and its exponent in N say.

    order parameters   U_1 ... U_L, U_a, predictor_mean, accuracy   kind order-parameter
    posteriors         the same with `_stderr`                      kind posterior
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from statmech_attn.labels import attributes
from statmech_attn.montecarlo.agreement import threshold


METHODS = {"order-parameter": "exact", "weights": "weights", "langevin": "langevin"}
SAME = ("task", "prior")  # attributes that all files must have, and alike
VERDICTS = ("agrees", "differs", "reference", "nothing_compared")
ROUNDING = 1e-12  # of order parameters and predictors, relative to their size


def compare(theory: xr.Dataset, posteriors: Sequence[xr.Dataset]) -> xr.Dataset:
    """Put the estimates of all files side by side, over the widths that they share.

    Returns:
        Every quantity with the dimension `estimate`, its `_stderr` and `_z`; the
        `largest_z`, the `comparisons`, their `threshold` and a `verdict` by estimate
        and point; `U_1_rms`, the root mean square difference of the entries of U_1,
        NaN where it is below `U_1_rms_noise`, that of sampling; its exponent in N.

    Raises:
        ValueError: files of different tasks or priors, without common points, or two
            of one method.
    """
    files = _estimates(theory, posteriors)
    points = {axis: _common(axis, files) for axis in ("width", "temperature")}
    files = {name: _selected(file, points) for name, file in files.items()}
    names = _quantities(theory)
    values = {name: _joined(files, name) for name in names}
    errors = {name: _joined(files, f"{name}_stderr", like=name) for name in names}
    reference = "exact" if "exact" in files else _method(posteriors[0])
    result = dict(values)
    for name in names:
        q, s = values[name], errors[name]
        scale = float(abs(q).max())
        both = np.hypot(np.hypot(s, s.sel(estimate=reference)), ROUNDING * scale)
        z = (q - q.sel(estimate=reference)) / both
        result |= {f"{name}_stderr": s, f"{name}_z": z}
    dataset = xr.Dataset(result).drop_vars("test", errors="ignore")
    dataset = _judge(dataset, [n for n in names if n != "accuracy"], reference)
    dataset = dataset.assign(_distances(dataset, reference))
    dataset.attrs = {"kind": "comparison", "reference": reference} | {
        key: theory.attrs[key] for key in SAME
    }
    for name in dataset.variables:
        dataset[name].attrs = attributes(str(name))
    dataset.verdict.attrs |= {
        "flag_values": np.arange(len(VERDICTS), dtype=np.int8),
        "flag_meanings": " ".join(VERDICTS),
    }
    return dataset


def _method(posterior: xr.Dataset) -> str:
    return METHODS[posterior.attrs["method"]]


def _estimates(theory, posteriors) -> dict[str, xr.Dataset]:
    """Files by the name of what they estimate; the corrected saddle is one of them."""
    files = {"saddle": theory}
    corrected = [str(n) for n in theory.data_vars if str(n).endswith("_corrected")]
    if corrected:
        plain = {name: name.removesuffix("_corrected") for name in corrected}
        kept = theory.drop_vars([n for n in plain.values() if n in theory])
        files["corrected"] = kept.rename(plain)
    for posterior in posteriors:
        kind = posterior.attrs.get("kind")
        if kind != "posterior":
            raise ValueError(
                f"order parameters are compared with posterior files; got {kind!r}."
            )
        name = _method(posterior)
        if name in files:
            raise ValueError(f"two files of the method {posterior.attrs['method']!r}.")
        for key in SAME:
            if posterior.attrs[key] != theory.attrs[key]:
                raise ValueError(
                    f"{key} differs: theory has {theory.attrs[key]}, {name} has "
                    f"{posterior.attrs[key]}."
                )
        files[name] = posterior
    return files


def _common(axis: str, files) -> np.ndarray:
    """Values of width or temperature that all files have."""
    shared = None
    for file in files.values():
        values = np.atleast_1d(file[axis].values)
        shared = values if shared is None else np.intersect1d(shared, values)
    if shared is None or not shared.size:
        raise ValueError(f"the files have no {axis} in common.")
    return shared


def _selected(file: xr.Dataset, points) -> xr.Dataset:
    if "temperature" not in file.dims:
        file = file.expand_dims("temperature")
    return file.sel(points)


def _quantities(theory: xr.Dataset) -> list[str]:
    layers = sum(str(n).startswith("U_") and str(n)[2:].isdigit() for n in theory)
    return [f"U_{l + 1}" for l in range(layers)] + ["U_a", "predictor_mean", "accuracy"]


def _joined(files, name: str, like: str = "") -> xr.DataArray:
    """One quantity of all files; zero for an error that a theory does not have."""
    parts = []
    for file in files.values():
        part = file[name] if name in file else xr.zeros_like(file[like])
        parts.append(part.reset_coords(drop=True).drop_vars("test", errors="ignore"))
    names = xr.IndexVariable("estimate", list(files))
    order = ("estimate", "width", "temperature", ...)
    return xr.concat(parts, names, coords="minimal").transpose(*order)


def _judge(dataset, names, reference) -> xr.Dataset:
    """Largest difference of every estimate and point, and whether chance allows it."""
    point = ("estimate", "width", "temperature")
    over = lambda x: [d for d in x.dims if d not in point]
    z = [dataset[f"{name}_z"] for name in names]
    largest = [abs(x).max(over(x)) for x in z]
    number = xr.concat([x.notnull().sum(over(x)) for x in z], "quantity")
    number = number.sum("quantity")
    largest = xr.concat(largest, "quantity").max("quantity")
    per_estimate = number.where(dataset.estimate != reference, 0)
    allowed = threshold(max(int(per_estimate.max("estimate").sum()), 1))
    verdict = np.select(
        [
            np.broadcast_to(
                (dataset.estimate == reference).values[:, None, None], number.shape
            ),
            number.transpose(*point).values == 0,
            largest.transpose(*point).values <= allowed,
        ],
        [VERDICTS.index(x) for x in ("reference", "nothing_compared", "agrees")],
        VERDICTS.index("differs"),
    )
    return dataset.assign(
        largest_z=largest, comparisons=number, threshold=allowed,
        verdict=(point, verdict.astype(np.int8)),
    )  # fmt: skip


def _distances(dataset, reference) -> dict:
    """Root mean square difference of U_1 and its exponent in the width."""
    entries = [str(d) for d in dataset.U_1.dims if str(d).startswith("path")]
    difference = dataset.U_1 - dataset.U_1.sel(estimate=reference)
    noise = dataset.U_1_stderr**2 + dataset.U_1_stderr.sel(estimate=reference) ** 2
    noise = noise.mean(entries)
    # Sampling adds its own variance to the square of a difference.
    square = (difference**2).mean(entries) - noise
    rms = np.sqrt(square.where(square > noise))
    return {
        "U_1_rms": rms,
        "U_1_rms_noise": np.sqrt(noise),
        "U_1_rms_slope": _slope(rms),
    }


def _slope(rms: xr.DataArray) -> xr.DataArray:
    """Exponent in the width between the first and the last that are resolved."""

    def fit(values, widths):
        known = np.isfinite(values) & (values > 0)
        if known.sum() < 2:
            return np.nan
        return np.polyfit(np.log(widths[known]), np.log(values[known]), 1)[0]

    return xr.apply_ufunc(
        fit, rms, rms.width, input_core_dims=[["width"], ["width"]], vectorize=True
    )
