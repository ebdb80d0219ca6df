"""Which errors of a theory a comparison would have found, and what it says of them.

Deviations of whole samples are summed at every point, and errors of the parameters at
all points together as well, where a parameter is off by the same part of itself
(`statistics.power`).  An agreement at which no error of `TELLS` of any parameter would
have been found is none.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from statmech_attn.comparison import agreement
from statmech_attn.comparison.agreement import AGREED, TELLS, VERDICTS
from statmech_attn.dmft import extensive
from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import (
    Deviations,
    in_errors,
    law,
    LEVEL,
    noise,
    smallest_visible,
    Sums,
    sums,
)


DRAWS = 4000  # of the noise, for the power
PARAMETERS = extensive.points.SCANNED
SMALLEST = agreement.ROWS.variable("smallest_error")
VARIABLES = Variables(
    Variable(
        "pooled_z", "summed",
        "largest difference in standard errors, pooled over neighbouring tokens", "1",
        "max|z|", group="summed",
    ),
    Variable("rms_z", "summed", "root mean square difference in standard errors", "1",
             "rms z", group="summed"),
    Variable(
        "relative_error", "summed parameter",
        "by which part of itself the theory's parameter seems too large", "1", "ε",
        group="summed",
    ),
    Variable("relative_error_stderr", "summed parameter", "its standard error", "1",
             "s(ε)", group="summed"),
    SMALLEST.over("summed parameter", group="summed"),
    Variable("relative_error_all", "summed parameter",
             "the same of all points together", "1", "ε", group="summed"),
    Variable("relative_error_all_stderr", "summed parameter", "its standard error", "1",
             "s(ε)", group="summed"),
    SMALLEST.over("summed parameter", group="summed", name="smallest_error_all",
                  long_name="the same of all points together"),
    Variable("pooled_z_threshold", "summed", "pooled_z that chance allows", "1",
             "z_max", group="summed"),
    Variable("rms_z_threshold", "summed", "rms_z that chance allows", "1", "z_max",
             group="summed"),
    Variable("relative_error_threshold", "summed", "the same of relative_error, of one "
             "point", "1", "z_max", group="summed"),
    Variable("relative_error_all_threshold", "summed", "the same of all points",
             "1", "z_max", group="summed"),
    Variable("summed", "summed", "what is summed: overlaps, attention and weights, or "
             "one observable", "1", "X", group="summed"),
    agreement.rows("parameter", "parameter", group="summed"),
)  # fmt: skip


def judged(
    dataset: xr.Dataset,
    groups: Mapping[str, Mapping[tuple[int, ...], Deviations]] | None,
) -> xr.Dataset:
    """A comparison with what summed differences say, and with verdicts that can tell.

    The level is divided among the groups: by name, deviations at the points where there
    are any, by their place; None where the files have no samples or derivatives.
    """
    over, verdict = dataset.verdict.dims, dataset.verdict.values.copy()
    detectable = np.full(verdict.shape, False)
    if groups := {name: points for name, points in (groups or {}).items() if points}:
        level = LEVEL / len(groups)
        parts = [_summed(dataset.verdict, x, level) for x in groups.values()]
        summed = xr.concat([part for part, _ in parts], "summed")
        dataset = dataset.merge(summed.assign_coords(summed=list(groups)))
        wrong = np.any([wrong for _, wrong in parts], axis=0)
        nothing = verdict == VERDICTS.index("nothing_compared")
        word = "differs" if dataset.sizes["n_spins"] > 1 else "one_n_cannot_tell"
        verdict[wrong & ~nothing] = VERDICTS.index(word)
        smallest = np.fmin(dataset.smallest_error, dataset.smallest_error_all)
        detectable = (
            (smallest.min(["summed", "parameter"]) <= TELLS).transpose(*over).values
        )
    verdict[np.isin(verdict, [VERDICTS.index(x) for x in AGREED]) & ~detectable] = (
        VERDICTS.index("cannot_tell")
    )
    return dataset.assign(verdict=(over, verdict))


def _summed(verdict: xr.DataArray, points, level: float):
    """The summed statistics of every point, and where they exceed chance."""
    over, shape = verdict.dims, verdict.shape
    bound, rng = law([*points.values()], level), np.random.default_rng(1)
    empty = lambda *more: np.full((*shape, *more), np.nan)
    count = len(PARAMETERS)
    z, rms, error, stderr = empty(), empty(), empty(count), empty(count)
    smallest = np.full((*shape, count), np.inf)
    of_samples, of_noise, wrong = [], [], np.full(shape, False)
    for place, point in points.items():
        of_samples.append(sum_of_point := sums(point, point.samples.mean(0)[None]))
        of_noise.append(noise(point, DRAWS, rng))
        z[place], rms[place] = abs(sum_of_point.z).max(), sum_of_point.rms_z[0]
        error[place], stderr[place] = _error(sum_of_point)
        smallest[place] = _smallest(of_noise[-1], bound.point)
        t = abs(in_errors(sum_of_point.shift, sum_of_point.variance)).max()
        wrong[place] = z[place] > bound.z or rms[place] > bound.rms_z or t > bound.point
    together, scattered = _added(of_samples), _added(of_noise)
    t = abs(in_errors(together.shift, together.variance)).max()
    error_all, stderr_all = _error(together)
    over_parameter, of_parameter = (*over, "parameter"), ("parameter",)
    contents = {
        "pooled_z": (over, z),
        "rms_z": (over, rms),
        "relative_error": (over_parameter, error),
        "relative_error_stderr": (over_parameter, stderr),
        "smallest_error": (over_parameter, smallest),
        "relative_error_all": (of_parameter, error_all),
        "relative_error_all_stderr": (of_parameter, stderr_all),
        "smallest_error_all": (of_parameter, _smallest(scattered, bound.all)),
        "pooled_z_threshold": bound.z,
        "rms_z_threshold": bound.rms_z,
        "relative_error_threshold": bound.point,
        "relative_error_all_threshold": bound.all,
    }
    parameter = {"parameter": list(PARAMETERS)}
    return xr.Dataset(contents, parameter), wrong | (t > bound.all)


def _added(parts: list[Sums]) -> Sums:
    """Sums of all points together."""
    add = lambda name: sum(getattr(part, name) for part in parts)
    return parts[0]._replace(
        shift=add("shift"), information=add("information"), variance=add("variance")
    )


def _error(sums: Sums) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors of the parameters and their standard errors."""
    shift, information, variance = (x[:, 0] for x in sums[2:])
    positive = np.where(information > 0, information, np.nan)
    return -shift / positive, np.sqrt(variance) / positive


def _smallest(sums: Sums, bound: float) -> list[float]:
    return [smallest_visible(*x, bound) for x in zip(*sums[2:], strict=True)]
