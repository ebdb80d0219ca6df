"""What files about orbits, branches, basins and noise found, as short tables."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
import xarray as xr

from statmech_attn.cli.texts.tables import (
    Content,
    formatted,
    SHOWN,
    Summary,
    tabled,
    with_error,
    word,
)
from statmech_attn.comparison import least_spins, SPREAD_LIMIT
from statmech_attn.dmft import OBSERVABLES, SCORE_LIMIT
from statmech_attn.dynamics import diagrams, PHASES
from statmech_attn.labels import plural, rate, unit_of, with_count
from statmech_attn.statistics import threshold


def _phases(dataset: xr.Dataset) -> Content:
    axis = str(dataset.phase.dims[0])
    if axis == "point":  # of a refined grid
        places = [str(name) for name in dataset.coords if str(name).endswith("_index")]
        axis = places[0].removesuffix("_index")
    exponent = f"largest λ_1 ({rate(unit_of(dataset.lyapunov.attrs))})"
    largest = {exponent: dataset.lyapunov.isel(exponent=0).values}
    if (production := dataset.get("entropy_production")) is not None:
        largest[f"largest σ ({unit_of(production.attrs)})"] = production.values
    phase = dataset.phase.values
    where = dataset[axis].broadcast_like(dataset.phase).values
    computed = np.ones(phase.shape, bool)
    if "failure" in dataset:
        computed = np.broadcast_to(dataset.failure.values == 0, phase.shape)
    chosen = lambda name: (phase == PHASES.index(name)) & computed
    most = lambda values: lambda name: f"{np.nanmax(values[chosen(name)]):.4g}"
    columns = {
        "phase": str,
        "points": lambda name: chosen(name).sum(),
        f"{axis} from": lambda name: f"{where[chosen(name)].min():.6g}",
        "to": lambda name: f"{where[chosen(name)].max():.6g}",
        **{heading: most(values) for heading, values in largest.items()},
    }
    yield tabled("phases", columns, filter(lambda x: chosen(x).any(), PHASES))
    yield from diagrams.doubts(dataset)
    if "phase_paper" not in dataset:
        return
    differ = diagrams.disagreement(phase, dataset.phase_paper.values, ~computed)
    yield _agreement_with_sign_rule(differ)


def _response(dataset: xr.Dataset) -> Content:
    """Per value of beta: the orbit, and where the spectrum of m_v is largest."""
    number, pattern = OBSERVABLES.index("m_v"), dataset.attrs["field_pattern"] - 1
    of_noise = lambda p: p.spectrum.isel(observable=number, pattern=pattern)
    most = lambda p: of_noise(p).isel(frequency=int(np.nanargmax(of_noise(p))))
    columns = {
        "beta": "beta .6g",
        "period": "period .0f",
        "|multiplier|": "multiplier .6g",
        "ω of most noise": lambda p: f"{float(most(p).frequency):.4g}",
        "N S there": lambda p: f"{float(most(p)):.4g}",
    }
    known = lambda p: not np.isnan(of_noise(p)).all()
    yield tabled("response", columns, filter(known, _first(dataset, "beta")))


def _all(dataset: xr.Dataset, axis: str) -> Iterator[xr.Dataset]:
    return (dataset.isel({axis: i}) for i in range(dataset.sizes[axis]))


def _first(dataset: xr.Dataset, axis: str) -> Iterator[xr.Dataset]:
    """The points along an axis, as many as are shown."""
    return islice(_all(dataset, axis), SHOWN)


def _finite_size(dataset: xr.Dataset) -> Content:
    """Spins over theory at every N and distance, and exponents beside theory."""
    name = "passage_time" if "passage_time" in dataset else "mean_square"
    yield (
        f"{dataset.attrs['bifurcation']} at beta = {dataset.attrs['beta_c']:.8g}; "
        f"theory holds there from N = {dataset.attrs['least_spins']:.6g} on"
    )
    theory = dataset[f"{name}_theory"]
    at = lambda i: (
        lambda p: with_error(
            *(p[name + x][i] / p[f"{name}_theory"][i] for x in ("", "_stderr"))
        )
    )
    columns = {"N": "n_spins .6g"}
    columns |= {f"κ = {d:g}": at(i) for i, d in enumerate(dataset.distance.values)}
    yield tabled(
        f"{theory.long_name.split(':')[0]} over theory",
        columns,
        _all(dataset, "n_spins"),
    )
    columns = {
        "quantity": "quantity ?",
        "measured": "exponent ±",
        "theory": "exponent_theory .4f",
    }
    yield tabled("exponents of N", columns, _all(dataset, "quantity"))
    z = dataset[f"{name}_z"].values
    compared = int(np.isfinite(z).sum())
    limit = threshold(max(compared, 1), int(dataset.attrs["runs"]))
    yield (
        f"largest |z| {np.nanmax(np.abs(z), initial=0):.2f} of {compared} comparisons; "
        f"up to {limit:.2f} is consistent with chance; -: outside the theory's limits"
    )


def _continuation(dataset: xr.Dataset) -> Content:
    """Every branch with its end, every bifurcation, every curve with its end."""
    free = dataset.attrs["free"]
    ends = dataset.branch_result.attrs["flag_meanings"].split()
    unit = unit_of(dataset.branch_period.attrs)
    for i, period in enumerate(dataset.branch_period.values):
        low, high = (ends[int(code)] for code in dataset.branch_result[i])
        values = dataset[free][i].values
        yield (
            f"branch {i}: cycle of {with_count(int(period), unit)}, "
            f"{np.isfinite(values).sum()} points, {free} from {np.nanmin(values):.6g} "
            f"to {np.nanmax(values):.6g}; ends: {low}, {high}"
        )
    if "special_kind" in dataset:
        yield from _bifurcations(dataset, free)
    if "degenerate_kind" in dataset:
        yield from _degenerate(dataset, free)


def _bifurcations(dataset: xr.Dataset, free: str) -> Content:
    short = {"none": "-", "supercritical": "super", "subcritical": "sub"}
    criticality = lambda p: word(p.special_criticality)
    columns = {
        "kind": "special_kind ?",
        free: f"special_{free} .10f",
        "branch": "special_branch .0f",
        "period": "special_period .0f",
        "coefficient": "special_coefficient .4g",
        "": lambda p: short.get(criticality(p), criticality(p)),
        "rotation": "special_rotation .6f",
    }
    yield tabled("bifurcations", columns, _all(dataset, "special"))


def _degenerate(dataset: xr.Dataset, free: str) -> Content:
    second = dataset.attrs["second"]
    columns = {
        "kind": "degenerate_kind ?",
        free: f"degenerate_{free} .8f",
        second: f"degenerate_{second} .8f",
        "curve": "degenerate_curve .0f",
        "rotation": "degenerate_rotation .6f",
    }
    yield tabled("on the curves", columns, _all(dataset, "degenerate"))


def _basins(dataset: xr.Dataset) -> Content:
    """Per value: every set with its share, and the mean lifetime before it."""
    axis = str(dataset["count"].dims[0])
    columns = {
        axis: f"{axis} .6g",
        "set": "attractor .0f",
        "phase": lambda p: PHASES[int(p.phase)],
        "period": lambda p: int(p.period) or "-",
        "ρ": lambda p: diagrams.rotation_text(p) or "-",
        "starts": "count .0f",
        "share": lambda p: (
            f"{float(p.fraction):.3f} ({float(p.fraction_low):.3f} to "
            f"{float(p.fraction_high):.3f})"
        ),
        "mean lifetime": _lifetime,
    }
    places = np.argwhere(dataset["count"].values > 0)
    sets = (
        dataset.isel({axis: i, "slot": k}).assign_attrs(first=k == 0)
        for i, k in places[:SHOWN]
    )
    yield tabled("attractors", columns, sets)
    if len(places) > SHOWN:
        yield f"and {len(places) - SHOWN} sets more"
    yield (
        "ρ: rotation number, cycles per clock period; "
        "share with Wilson's interval of one standard error; lifetime in "
        f"{plural(unit_of(dataset.period.attrs))}, of the exponential tail (-: no "
        "event, or no constant rate)"
    )


def _lifetime(point: xr.Dataset) -> str:
    """Expected lifetime 1/κ with its error, once for every value."""
    if not point.attrs["first"]:
        return ""
    rate, error = float(point.escape_rate), float(point.escape_rate_stderr)
    return "-" if np.isnan(rate) else f"{1 / rate:.4g} ± {error / rate**2:.1g}"


def _noise(dataset: xr.Dataset) -> Content:
    """The least N for which the linear noise of the first steps holds."""
    least = dataset.assign(least=least_spins(dataset))
    tokens = dataset.sizes["time"]
    steps = [n for n in (10, 100, 1000) if n < tokens] + [tokens]
    after = lambda n: lambda p: f"{float(p.least[n - 1]):.2g}"
    columns = {"beta": "beta .6g"} | {f"{n} steps": after(n) for n in steps}
    yield tabled("linear noise holds for N above", columns, _first(least, "beta"))
    yield _what_holds("score_noise_std" in dataset)


def _what_holds(exact: bool) -> str:
    """How the linear regime is defined, by the scores' spread or by its bound."""
    bound = "" if exact else ", at most γ √(2M) times that of the overlaps,"
    return (
        f"while the spread of the attention scores, γ included,{bound} stays below "
        f"{SCORE_LIMIT:g} and that of the overlaps below {SPREAD_LIMIT:g}; predicted "
        "variances are off by a part of the order of the square of the scores' spread"
    )


def _noise_of_sizes(dataset: xr.Dataset) -> Content:
    """Steps for which the linear noise holds, for every beta and N, and the N for all.

    In words where no N is large enough for any step, or one alone for the last ones.
    """
    anywhere = dataset.linear.any("n_spins")
    count = lambda i: lambda p: f"{int(p.linear[i].sum())} of {p.sizes['time']}"
    sizes = enumerate(dataset.n_spins.values)
    columns = {"beta": "beta .6g"} | {f"N = {N:g}": count(i) for i, N in sizes}
    columns["all: N ≥"] = lambda p: f"{float(p.least_spins[-1]):.2g}"
    betas = _first(dataset, "beta")
    yield tabled("steps for which linear noise holds", columns, betas)
    yield _what_holds("score_spread" in dataset)
    for i, beta in enumerate(dataset.beta.values[:SHOWN]):
        judged, alone = (int(x[i].sum()) for x in (dataset.judged, anywhere))
        if not alone:
            yield (
                f"beta = {beta:.6g}: nothing is compared; the first token would be "
                f"from N = {dataset.least_spins[i, 0]:.2g} on"
            )
        elif judged < alone:
            yield (
                f"beta = {beta:.6g}: from token {judged + 1} to {alone} one N alone is "
                "in the linear regime, where a difference may be its bias; another N "
                f"from {dataset.least_spins[i, alone - 1]:.2g} on would tell"
            )


def _hysteresis(dataset: xr.Dataset) -> Content:
    axis = str(dataset.differ.dims[0])
    for low, first, last, high in dataset.interval.values:
        agree = [
            words.format(f"{value:.8g}")
            for words, value in (("up to {}", low), ("from {} on", high))
            if not np.isnan(value)
        ]
        yield (
            f"{axis}: up and down differ from "
            f"{_end(first, low, 'first')} to {_end(last, high, 'last')}"
            + (f"; they agree {' and '.join(agree)}" if agree else "")
        )
    if not dataset.sizes["number"]:
        yield "up and down agree everywhere"


def _end(value: float, beyond: float, which: str) -> str:
    """An end of an interval; `beyond` is NaN where it is also one of the values."""
    return f"{value:.8g}" + (f" (the {which} value)" if np.isnan(beyond) else "")


def _agreement_with_sign_rule(differ: np.ndarray) -> str:
    """How often the sign of the largest exponent tells the same class."""
    decided = differ[differ != diagrams.UNDECIDED]
    if decided.size == 0:
        return "no point has a verdict"
    classes = ", ".join(diagrams.CLASSES)
    return (
        f"the sign of λ_1 alone gives the same class ({classes}) at "
        f"{(decided == 0).sum()} of {decided.size} points with a verdict"
    )


def _comparison(dataset: xr.Dataset) -> Content:
    """Per beta: verdict, largest difference in standard errors, exponents in N."""
    columns = {
        "beta": "beta .6g",
        "verdict": "verdict ?",
        "tokens": lambda p: f"{int(p.judged.sum())} of {p.sizes['time']}",
        "compared": lambda p: int(p.comparisons.sum()),
        "largest |z|": lambda p: formatted(p.largest_z.max(), ".2f"),
        "spread ~ N^": partial(_exponent, "A_spread"),
        "bias ~ N^": partial(_exponent, "A_bias"),
    }
    yield tabled("theory against simulation", columns, _all(dataset, "beta"))
    if dataset.comparisons.any():
        yield (
            f"with this many comparisons |z| up to {float(dataset.threshold):.2f} is "
            "consistent with chance, and an exponent of the spread up to "
            f"{float(dataset.slope_threshold):.2f} errors from -1/2; exponents are "
            "fitted to the steps in the linear regime of every N that has any; a bias "
            "falls like N^-1"
        )
    if "smallest_error" in dataset:
        for name, smallest in zip(dataset.parameter.values, dataset.smallest_error.T):
            if np.isfinite(float(least := smallest.min())):
                yield (
                    f"{name}: an error of {100 * float(least):.2g} % would be found "
                    "with probability 0.9 at "
                    f"beta = {float(smallest.idxmin('beta')):.6g}, of "
                    f"{100 * float(smallest.max()):.2g} % at every beta"
                )
    else:
        yield (
            "which errors would have been found is not known: the theory's file has no "
            "derivatives; run it again"
        )
    yield from _noise_of_sizes(dataset)
    if "entropy_production_verdict" in dataset:
        yield from _produced(dataset)


def _produced(dataset: xr.Dataset) -> Content:
    """Per beta: verdict on the entropy production, differences, exponent in N."""
    columns = {
        "beta": "beta .6g",
        "verdict": "entropy_production_verdict ?",
        "largest |z|": lambda p: formatted(abs(p.entropy_production_z).max(), ".2f"),
        "z, N → ∞": "entropy_production_limit_z .2f",
        "bias ~ N^": partial(_exponent, "entropy_production_bias"),
    }
    betas = _all(dataset, "beta")
    yield tabled("entropy production of map and spins", columns, betas)
    bound, limit_bound = (
        float(dataset[f"entropy_production_{name}"])
        for name in ("threshold", "limit_threshold")
    )
    yield (
        f"of its time average |z| up to {bound:.2f} is consistent with chance, and up "
        f"to {limit_bound:.2f} at infinite N"
    )


def _exponent(name: str, point: xr.Dataset) -> str:
    value, error = (float(point[f"{name}_slope{x}"]) for x in ("", "_stderr"))
    return "-" if np.isnan(value) else f"{value:.3f} ± {error:.3f}"


BASINS = Summary(
    _basins,
    "count fraction* attractor phase period rotation* escape_rate escape_rate_stderr",
)
HYSTERESIS = Summary(_hysteresis, "differ interval")
BIFURCATION = Summary(
    _phases,
    "phase phase_paper lyapunov entropy_production horizon doubtful "
    "transient_probability confirmed final_* beta gamma epsilon",
    needs="phase",
)
RESPONSE = Summary(_response, "spectrum period multiplier")
FINITE_SIZE = Summary(
    _finite_size,
    "mean_square* passage_time* exponent* quantity n_spins distance",
)
CONTINUATION = Summary(_continuation, "branch_* special_* degenerate_* {free} {second}")
COMPARISON = Summary(
    _comparison,
    "verdict judged linear least_spins largest_z comparisons threshold "
    "slope_threshold A_*_slope* score_spread smallest_error parameter beta n_spins "
    "entropy_production_*",
)
TRAJECTORY = Summary(_noise, "*_noise_std beta gamma", needs="m_o_se_noise_std")
