r"""Theory against simulation: step by step, in spread, in stationary averages, in N.

Each step's difference is given in standard errors of the mean over runs, with the
threshold set from the number of comparisons.  Because of the O(1/N) bias
(`montecarlo.agreement`) the verdict rests on the difference extrapolated to
N -> infinity where several N are at hand.  Steps are compared before the predictability
horizon, ln N / (2 lambda_1) or where the predicted spread of A or m^o reaches
`SPREAD_LIMIT`; past it two trajectories of one law differ, and only stationary
averages are compared.  Verdict and exponents use the steps where the series in 1/N has
begun: `linear`, from N = `least_spins` on, where the spread of the attention's scores
is below `SCORE_LIMIT`.  It is `score_noise_std` of the theory's file, or where this has
none its bound $\gamma \sqrt{2M} \sigma$, with sigma the largest spread of m^o.

Spreads are compared where they stand above the rounding of doubles (`smallest_spread`);
a saturated token fluctuates less than that.  The exponent of the spread is fitted to
the steps that count at every N with any, and theory and simulation agree only if it is
-1/2 within what chance allows.

    theory       A, m_o_se, ... and A_noise_std, ... (beta, time, pattern)
    simulation   as `montecarlo.simulations` gives it
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.comparison import agreement, irreversibility
from statmech_attn.comparison.agreement import AGREED, TELLS, VERDICTS
from statmech_attn.dmft import (
    OBSERVABLE_LABELS,
    OBSERVABLES,
    predictability_horizon,
    PRODUCTION,
    SCORE_LIMIT,
    TIME,
)
from statmech_attn.dynamics.diagrams import listed_parameters
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo import stationary
from statmech_attn.statistics import (
    bias_slope,
    block_stderr,
    in_standard_errors,
    limit_difference,
    linear_until,
    spread_ratio,
    spread_slope,
    standard_error,
    visible_alone,
)


SCORE = "score_noise_std"
SPREAD_LIMIT = 0.1  # of overlaps, which lie in [-1, 1]
BLOCKS = 20  # of the theory's time average
SLOPE = 1e-7  # below, differences of doubles are no derivative
PARAMETERS = ("beta", "gamma", "epsilon")
ROUNDING = 1e-15  # of an overlap, in doubles
SAME = ("network", "start")  # attributes that both files must have, and alike
SAME_NUMBERS = ("gamma", "epsilon")
AT_ONCE = xr.DataArray(1.0)  # redrawn, where all spins are


def compare(theory: xr.Dataset, simulation: xr.Dataset) -> xr.Dataset:
    """Compare a trajectory file with a Monte Carlo file.

    Per observable X the differences in standard errors `X_z`, extrapolated ones
    `X_limit_z`, spread ratios `X_spread_ratio`, and exponents in N; a `verdict` for
    every beta, and one of its own for `entropy_production_*` where both files have its
    rate, as `compare_entropy_production`.
    """
    theory, simulation = _match(theory, simulation)
    compared = _compared(theory, simulation)
    in_time = theory.isel(time=slice(compared.sizes["time"]))
    in_time = in_time.assign_coords(time=compared.time)
    least = least_spins(in_time)
    linear = (compared & (simulation.n_spins >= least)).transpose(*compared.dims)
    runs = int(simulation.attrs["runs"])
    result: dict[str, Any] = {"compared": compared, "linear": linear}
    result["least_spins"] = least
    if SCORE in theory:
        score = in_time[SCORE]
        spread = score / np.sqrt(simulation.n_spins)
        result["score_spread"] = spread.transpose(*compared.dims)
    for name in _observables(theory):
        result |= _stepwise(theory, simulation, name, compared, linear, runs)
    for name in ("A", "m_o_se"):
        result |= _stationary(theory, simulation, name)
    result |= _entropy_production(theory, simulation)
    dataset = xr.Dataset(result).assign_coords(n_spins=simulation.n_spins)
    dataset = _judge(dataset, _observables(theory), runs)
    dataset = _told(dataset, theory)
    attributes = {key: simulation.attrs[key] for key in (*SAME, "method")}
    return agreement.labelled(dataset, VARIABLES, runs=runs, **attributes)


def _observables(theory) -> list[str]:
    """Observables with a predicted spread."""
    return [x for x in OBSERVABLES if f"{x}_noise_std" in theory]


def _match(theory, simulation):
    """The common beta and steps of two files that belong together."""
    if listed_parameters(simulation):
        raise ValueError("simulation: is along a list of points, not along beta.")
    for name, dataset, needed in (
        ("theory", theory, ("A", "m_o_se", "A_noise_std", "m_o_se_noise_std")),
        ("simulation", simulation, ("A_mean", "A_stderr", "A_spread", "m_o_se_mean")),
    ):
        missing = [x for x in needed if x not in dataset]
        if missing:
            raise ValueError(
                f"{name}: no variable {missing[0]!r}; is it the right file?"
            )
        for key in SAME_NUMBERS:
            if key not in dataset.coords:
                raise ValueError(f"{name}: the coordinate {key!r} is missing.")
            if set(dataset[key].dims) - {"beta"}:
                raise ValueError(f"{name}: select one {key} before comparing.")
        for key in SAME:
            if key not in dataset.attrs:
                raise ValueError(f"{name}: the attribute {key!r} is missing.")
    require_same(SAME, theory, simulation)
    if int(simulation.attrs["runs"]) < 2:
        raise ValueError("simulation: a standard error needs at least 2 runs; got 1.")
    if simulation.sizes["pattern"] != theory.sizes["pattern"]:
        raise ValueError(
            "theory and simulation must be of one network; got "
            f"{theory.sizes['pattern']} and {simulation.sizes['pattern']} patterns."
        )
    theory = theory.sel(beta=_common_beta(theory, simulation))
    for name in SAME_NUMBERS:
        _same_number(name, theory[name], simulation[name])
    redrawn = (x.coords.get("redrawn", AT_ONCE) for x in (theory, simulation))
    _same_number("redrawn", *redrawn)
    return theory, simulation


def _common_beta(theory, simulation):
    """The simulated beta, all of which the theory must hold."""
    absent = np.setdiff1d(simulation.beta, theory.beta)
    if absent.size:
        raise ValueError(
            f"beta = {absent[0]:g} is in the simulation but not in the theory, which "
            f"has {theory.sizes['beta']} values in [{theory.beta.values.min():g}, "
            f"{theory.beta.values.max():g}]."
        )
    return simulation.beta.values


def _same_number(name: str, theory: xr.DataArray, simulation: xr.DataArray) -> None:
    if (theory.values != simulation.values).any():
        raise ValueError(
            f"{name} differs: theory has {theory.values}, simulation "
            f"{simulation.values}."
        )


def least_spins(theory: xr.Dataset) -> xr.DataArray:
    """N from which all steps up to each are in the linear regime: (..., time).

    Args:
        theory: a trajectory with its noise, of any batch.

    Returns:
        Spins of N; it grows along `time`.

    Example:
        `least_spins(storage.read("theory.h5")).isel(time=-1)` is the N from which the
        noise of all steps is linear.
    """
    overlap = theory.m_o_se_noise_std.max("pattern")
    bound = abs(theory.gamma) * np.sqrt(2 * theory.sizes["pattern"]) * overlap
    score = theory[SCORE] if SCORE in theory else bound
    larger = lambda *pair: xr.apply_ufunc(np.maximum, *pair)
    widest = larger(overlap, theory.A_noise_std.max("pattern"))
    least = larger(score / SCORE_LIMIT, widest / SPREAD_LIMIT) ** 2
    least = least.transpose(..., "time")
    return least.copy(data=np.maximum.accumulate(least.values, axis=-1))


def _compared(theory, simulation) -> xr.DataArray:
    """Steps before the horizon: (n_spins, beta, time)."""
    steps = min(theory.sizes["time"], simulation.sizes["time"])
    largest = lambda v: theory[v].transpose("beta", "time", "pattern").values.max(-1)
    A, m = largest("A_noise_std")[:, :steps], largest("m_o_se_noise_std")[:, :steps]
    n_spins = simulation.n_spins.values
    keep = linear_until(np.maximum(A, m), n_spins, SPREAD_LIMIT)
    if "lyapunov" in theory:
        largest = theory.lyapunov
        largest = largest.isel(exponent=0) if "exponent" in largest.dims else largest
        horizon = predictability_horizon(n_spins[:, None], largest.values)
        keep &= np.arange(steps) < horizon[:, :, None]
    coords = {
        "n_spins": n_spins,
        "beta": simulation.beta.values,
        "time": np.arange(steps),
    }
    return xr.DataArray(keep, coords, ("n_spins", "beta", "time"))


def _stepwise(theory, simulation, name, compared, linear, runs):
    """Differences, their limits, spreads and exponents of one observable."""
    steps = compared.sizes["time"]
    order = ("n_spins", "beta", "time", "pattern")
    read = lambda d, v: (
        d[v].isel(time=slice(steps)).transpose(*order, missing_dims="ignore").values
    )
    n_spins = simulation.n_spins.values
    root = np.sqrt(n_spins.astype(float))[:, None, None, None]
    predicted = read(theory, f"{name}_noise_std") / root
    fill = lambda x: np.broadcast_to(x.values[..., None], predicted.shape)
    compared_filled, mask = fill(compared), fill(linear)
    difference = read(simulation, f"{name}_mean") - read(theory, name)
    stderr, spread = (
        read(simulation, f"{name}_stderr"),
        read(simulation, f"{name}_spread"),
    )
    # Overlaps are computed in doubles, whatever the number of spins.
    stderr = np.where(stderr > 0, np.hypot(stderr, ROUNDING), stderr)
    floor = np.where(np.isfinite(predicted), predicted, 0.0) / np.sqrt(runs)
    floor = np.where(floor > 0, np.hypot(floor, ROUNDING), floor)
    z = in_standard_errors(difference, stderr, floor)
    error = np.where(stderr > 0, stderr, floor)
    limit, limit_error, used = limit_difference(n_spins, difference, error, mask)
    above = predicted > smallest_spread(runs)
    ratio, ratio_z = spread_ratio(np.where(above, spread, np.nan), predicted, runs)
    only = lambda x: np.where(compared_filled, x, np.nan)
    point = ("beta", "time", "pattern")
    result = {
        f"{name}_z": (order, only(z)),
        f"{name}_limit": (point, limit),
        f"{name}_limit_stderr": (point, limit_error),
        f"{name}_limit_sizes": (point, used),
        f"{name}_spread_ratio": (order, only(ratio)),
        f"{name}_spread_z": (order, only(ratio_z)),
    }
    slopes = {
        "spread_slope": spread_slope(n_spins, spread, mask & above, runs, (2, 3)),
        "bias_slope": bias_slope(n_spins, difference, error, mask, (2, 3)),
    }
    for key, slope in slopes.items():
        result[f"{name}_{key}"] = (("beta",), slope.value)
        result[f"{name}_{key}_stderr"] = (("beta",), slope.stderr)
    return result


def smallest_spread(runs: int) -> float:
    """Spread that rounding raises by no more than its sampling error over the runs.

    Rounding adds its variance, r^2/(2 s^2) of the spread s; the sampling error is
    1/sqrt(2 (R - 1)) of it.
    """
    return ROUNDING * ((runs - 1) / 2) ** 0.25


def _series(theory, simulation, name):
    """What time averages are taken of, time last; nothing where it is too short."""
    order = ("beta", "pattern", "time")
    series = theory[name].transpose(*order, missing_dims="ignore").values
    series = series[..., int(simulation.attrs["transient"]) :]
    return series if series.shape[-1] >= BLOCKS else None


def _entropy_production(theory, simulation):
    """Comparison of the averages of the entropy production rate after the transient."""
    if PRODUCTION not in theory or stationary(PRODUCTION) not in simulation:
        return {}
    if (series := _series(theory, simulation, PRODUCTION)) is None:
        return {}
    rates = simulation[stationary(PRODUCTION)].transpose("n_spins", "beta", "all_runs")
    of_map = series.mean(-1), block_stderr(series, BLOCKS), BLOCKS
    differences = irreversibility.rate_differences(
        *of_map, rates, simulation.n_spins.values, ("beta",)
    )
    return {f"{PRODUCTION}_{name}": values for name, values in differences.items()}


def _stationary(theory, simulation, name):
    """Time averages after the transient, mean and second moment."""
    if (series := _series(theory, simulation, name)) is None:
        return {}
    result = {}
    for part, values in (("mean", series), ("square", series**2)):
        per_run = simulation[f"{name}_stationary_{part}"]
        per_run = per_run.transpose("n_spins", "beta", "pattern", "all_runs").values
        combined = np.hypot(standard_error(per_run), block_stderr(values, BLOCKS))
        difference = per_run.mean(-1) - values.mean(-1)
        dims = ("n_spins", "beta", "pattern")
        result[f"{name}_stationary_{part}_difference"] = (dims, difference)
        result[f"{name}_stationary_{part}_z"] = (
            dims,
            in_standard_errors(difference, combined),
        )
    return result


def _judge(dataset, names, runs) -> xr.Dataset:
    """Thresholds from the number of comparisons, and a verdict for every beta.

    Where a single N is in the linear regime a difference may be its bias: if there is
    one, the verdict rests on the steps that have several N.
    """
    over = ["pattern", "time"]
    join = lambda kind: xr.concat([dataset[f"{x}_{kind}"] for x in names], "observable")
    z, sizes = join("z").where(dataset.linear), join("limit_sizes")
    allowed = agreement.allowed(z, runs)
    limit_z = xr.apply_ufunc(in_standard_errors, join("limit"), join("limit_stderr"))
    limit_z = limit_z.where(sizes > 1)
    limit_allowed = agreement.allowed(limit_z, runs)
    of_step = lambda x: x.any(["observable", "pattern"])
    exceeds = of_step((abs(z) > allowed).any("n_spins"))
    alone = dataset.linear.sum("n_spins") == 1
    judged = dataset.linear.any("n_spins") & ~(alone & (exceeds & alone).any("time"))
    any_of = lambda x: x.any("time").values
    slope_z = _spread_slopes(dataset, names)
    slope_allowed = agreement.allowed(slope_z)
    reasons = {
        "nothing_compared": ~dataset.linear.any(["n_spins", "time"]),
        "differs": any_of(of_step(abs(limit_z) > limit_allowed)),
        "spread_differs": (abs(slope_z) > slope_allowed).any("observable"),
        "one_n_cannot_tell": ~any_of(judged),
        "agrees": ~any_of(exceeds & judged),
    }
    return dataset.assign(
        threshold=allowed,
        limit_threshold=limit_allowed,
        slope_threshold=slope_allowed,
        largest_z=abs(z).max(["observable", *over]),
        largest_limit_z=abs(limit_z).max(["observable", *over]),
        largest_slope_z=abs(slope_z).max("observable"),
        comparisons=z.notnull().sum(["observable", *over]),
        judged=judged,
        verdict=("beta", agreement.verdict(reasons, "bias_only")),
    )


def _told(dataset, theory) -> xr.Dataset:
    """Which errors of the parameters the differences would show, and verdicts that can.

    As far as the theory's file has derivatives.
    """
    names = [x for x in ("A", "m_o_se") if f"{x}_by_beta" in theory]
    if not names:
        return dataset
    several = (dataset[f"{names[0]}_limit_sizes"] > 1).any().item()
    bound = float(dataset.limit_threshold if several else dataset.threshold)
    steps = dataset.sizes["time"]
    order = ("beta", "time", "pattern")
    read = lambda data, name: data[name].transpose(*order).values[:, :steps]
    above = lambda slope: np.where(abs(slope) > SLOPE, slope, 0.0)
    smallest = np.full((dataset.sizes["beta"], len(PARAMETERS)), np.inf)
    for place in np.ndindex(smallest.shape):
        row, parameter = place[0], PARAMETERS[place[1]]
        smallest[place] = min(
            visible_alone(
                read(dataset, f"{name}_limit_stderr")[row],
                above(read(theory, f"{name}_by_{parameter}")[row]),
                bound,
            )
            for name in names
        )
    agreed = np.isin(dataset.verdict, [VERDICTS.index(x) for x in AGREED])
    blind = agreed & (smallest.min(1) > TELLS)
    verdict = np.where(blind, VERDICTS.index("cannot_tell"), dataset.verdict)
    return dataset.assign(
        smallest_error=(("beta", "parameter"), smallest),
        verdict=("beta", verdict.astype(np.int8)),
    ).assign_coords(parameter=list(PARAMETERS))


def _spread_slopes(dataset, names) -> xr.DataArray:
    """Exponents of the spread less -1/2, in standard errors: (observable, beta)."""
    values = lambda kind: np.stack([dataset[f"{x}_{kind}"].values for x in names])
    deviations = (values("spread_slope") + 0.5) / values("spread_slope_stderr")
    return xr.DataArray(deviations, dims=("observable", "beta"))


STEPWISE, LIMIT, POINT = "n_spins beta time pattern", "beta time pattern", "beta"
AVERAGED = "n_spins beta pattern"
ENDINGS = {  # dimensions, words, symbol of what is said of an observable
    "_z": (STEPWISE, "simulation minus theory in standard errors", r"z({})"),
    "_spread_ratio": (
        STEPWISE, "spread over runs divided by linear noise",
        r"s_{{{0}}}/\sigma_{{{0}}}",
    ),
    "_spread_z": (
        STEPWISE, "spread against linear noise in standard errors", r"z(s_{{{}}})",
    ),
    "_limit": (LIMIT, "difference extrapolated to infinite N", r"b_0[{}]"),
    "_limit_stderr": (LIMIT, "error of the extrapolated difference", r"s(b_0[{}])"),
    "_limit_sizes": (LIMIT, "number of N in the extrapolation", "K"),
    "_spread_slope": (POINT, "exponent of the spread in N",
    r"d\ln\sigma_{{{}}}/d\ln N"),
    "_spread_slope_stderr": (
        POINT, "error of the exponent of the spread", r"s(d\ln\sigma_{{{}}}/d\ln N)",
    ),
    "_bias_slope": (POINT, "exponent of the bias in N", r"d\ln\Delta {}/d\ln N"),
    "_bias_slope_stderr": (
        POINT, "error of the exponent of the bias", r"s(d\ln\Delta {}/d\ln N)",
    ),
    "_stationary_mean_difference": (
        AVERAGED, "time average, simulation minus theory",
        r"\Delta\langle {} \rangle_t",
    ),
    "_stationary_mean_z": (
        AVERAGED, "time average, difference in standard errors",
        r"z(\langle {} \rangle_t)",
    ),
    "_stationary_square_difference": (
        AVERAGED, "time average of the square, simulation minus theory",
        r"\Delta\langle {}^2 \rangle_t",
    ),
    "_stationary_square_z": (
        AVERAGED, "time average of the square, difference in standard errors",
        r"z(\langle {}^2 \rangle_t)",
    ),
}  # fmt: skip
SHOWN = {
    f"A_{part}_slope{end}" for part in ("spread", "bias") for end in ("", "_stderr")
}
VARIABLES = Variables(
    *(
        Variable(
            observable + ending, dims, f"{observable}: {words}", "1",
            symbol.format(OBSERVABLE_LABELS[observable][1]),
            group="" if observable + ending in SHOWN else None,
        )
        for observable in OBSERVABLES
        for ending, (dims, words, symbol) in ENDINGS.items()
    ),
    *(
        row._replace(
            name=f"{PRODUCTION}_{row.name}",
            dims=row.dims if "threshold" in row.name else f"{row.dims} beta".strip(),
            long_name=f"entropy production: {row.long_name}",
            group=PRODUCTION,
        )
        for row in irreversibility.DIFFERENCES
    ),
    Variable(
        "compared", "n_spins beta time", "step before the predictability horizon", "1",
        "t < t_N",
    ),
    Variable(
        "linear", "n_spins beta time",
        "step in the linear regime", "1", "t < t_lin", group="",
    ),
    Variable(
        "judged", "beta time", "step that the verdict rests on", "1", "judged",
        group="",
    ),
    Variable(
        "least_spins", "beta time", "N from which the step is in the linear regime",
        "1", "N_lin", group="",
    ),
    Variable(
        "score_spread", "n_spins beta time",
        "largest linear-noise spread of an attention score", "1", r"\sigma_s",
    ),
    agreement.rows("largest_z", "n_spins beta"),
    agreement.rows("largest_limit_z", "beta"),
    Variable(
        "largest_slope_z", "beta",
        "largest deviation of an exponent of the spread from -1/2, in standard errors",
        "1", r"\max|z_s|",
    ),
    agreement.rows("comparisons", "n_spins beta", group=""),
    agreement.rows("verdict", "beta"),
    agreement.rows("threshold limit_threshold slope_threshold"),
    agreement.rows("smallest_error", "beta parameter", group="derivatives"),
    agreement.rows("parameter", "parameter", group="derivatives"),
    agreement.ROWS.variable("n_spins"),
    Variable("beta", "beta", "inverse temperature", "1", r"\beta"),
    Variable("gamma", "", "inverse temperature of attention", "1", r"\gamma"),
    Variable("epsilon", "", "weight of the positional part", "1", r"\epsilon"),
    Variable("redrawn", "", "probability with which a spin is redrawn", "1", r"\Delta"),
    TIME,
    Variable("pattern", "pattern", "pattern", "1", "a"),
)  # fmt: skip


def require_same(
    attributes: Sequence[str], theory: xr.Dataset, simulation: xr.Dataset
) -> None:
    """Raise `ValueError` unless both files have the same attributes."""
    for key in attributes:
        if theory.attrs[key] != simulation.attrs[key]:
            raise ValueError(
                f"{key} differs: theory has {theory.attrs[key]}, simulation "
                f"{simulation.attrs[key]}."
            )
