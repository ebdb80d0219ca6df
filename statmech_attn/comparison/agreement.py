"""What all comparisons share: their quantities, words of verdicts, and thresholds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import threshold


VERDICTS = (
    "agrees",
    "bias_only",
    "differs",
    "one_n_cannot_tell",
    "nothing_compared",
    "spread_differs",
    "cannot_tell",
)
AGREED = ("agrees", "bias_only")  # said only where something would have been seen
TELLS = 0.1  # such as an error of this part of a parameter
INF = "inf where none would"
ROWS = Variables(
    Variable("largest_z", "", "largest difference in standard errors", "1", "max|z|",
             group=""),
    Variable("largest_limit_z", "", "the same, extrapolated to infinite N", "1",
             "max|z_∞|"),
    Variable("spread_slope", "", "exponent of the spread in N", "1", "d ln σ/d ln N",
             "_stderr"),
    Variable("bias_slope", "", "exponent of the bias in N", "1", "d ln Δ/d ln N",
             "_stderr"),
    Variable("comparisons", "", "number of comparisons", "1", "n"),
    Variable("threshold", "", "difference in standard errors that chance allows", "1",
             "z*", group=""),
    Variable("limit_threshold", "", "the same, extrapolated to infinite N", "1",
             "z*_∞"),
    Variable("slope_threshold", "", "the same of exponents of the spread", "1", "z*_s",
             group=""),
    Variable("smallest_error", "", "smallest relative error that would be found with "
             "probability 0.9", "1", "ε*", note=INF),
    Variable("parameter", "parameter", "parameter of the theory", "1", "p"),
    Variable("verdict", "", "verdict", "1", "verdict", group="", flags=VERDICTS),
    Variable("n_spins", "n_spins", "number of spins", "1", "N"),
)  # fmt: skip


def rows(names: str, dims: str = "", **changed: Any) -> Variables:
    """Quantities of comparisons by their names, over such dimensions."""
    return Variables(
        *(ROWS.variable(name).over(dims, **changed) for name in names.split())
    )


def allowed(z, samples: int | None = None) -> float:
    """The difference in standard errors that chance allows among all that there are."""
    return threshold(max(int(np.isfinite(z).sum()), 1), samples)


def verdict(
    reasons: Mapping[str, Any], otherwise: str, words: tuple[str, ...] = VERDICTS
) -> np.ndarray:
    """Codes of the first reason that holds at each point."""
    codes = [words.index(word) for word in reasons]
    holds = [np.asarray(x) for x in reasons.values()]
    return np.select(holds, codes, words.index(otherwise)).astype(np.int8)


def labelled(dataset: xr.Dataset, table: Variables, **attributes: Any) -> xr.Dataset:
    """A comparison with the attributes of the file and of all its variables."""
    for name in dataset.variables:
        dataset[name].attrs = table.attributes(str(name))
    dataset.attrs = {"kind": "comparison"} | attributes
    return dataset
