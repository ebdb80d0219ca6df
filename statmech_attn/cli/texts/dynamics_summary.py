"""What files about orbits, branches, basins and noise found, as short tables."""

import numpy as np
import xarray as xr

from statmech_attn.cli.texts.tables import (
    Content,
    formatted,
    SHOWN,
    Summary,
    titled,
    with_error,
)
from statmech_attn.comparison import least_spins, SPREAD_LIMIT
from statmech_attn.dmft import OBSERVABLES, SCORE_LIMIT
from statmech_attn.dynamics import diagrams, PHASES
from statmech_attn.labels import counted, plural, rate, unit_of
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
    table = titled("phases", ("phase", "points", f"{axis} from", "to", *largest))
    phase = dataset.phase.values
    where = dataset[axis].broadcast_like(dataset.phase).values
    computed = np.ones(phase.shape, bool)
    if "failure" in dataset:
        computed = np.broadcast_to(dataset.failure.values == 0, phase.shape)
    for code, name in enumerate(PHASES):
        chosen = (phase == code) & computed
        if chosen.any():
            table.add_row(
                name,
                str(chosen.sum()),
                f"{where[chosen].min():.6g}",
                f"{where[chosen].max():.6g}",
                *(f"{np.nanmax(values[chosen]):.4g}" for values in largest.values()),
            )
    yield table
    yield from diagrams.doubts(dataset)
    if "phase_paper" not in dataset:
        return
    differ = diagrams.disagreement(phase, dataset.phase_paper.values, ~computed)
    yield _by_sign_alone(differ)


def _response(dataset: xr.Dataset) -> Content:
    """Per value of beta: the orbit, and where the spectrum of m_v is largest."""
    table = titled(
        "response", ("beta", "period", "|multiplier|", "ω of most noise", "N S there")
    )
    overlap = dataset.spectrum.isel(observable=OBSERVABLES.index("m_v"))
    for i, beta in enumerate(dataset.beta.values[:SHOWN]):
        spectrum = overlap.isel(beta=i, pattern=dataset.attrs["field_pattern"] - 1)
        if np.isnan(spectrum).all():
            continue
        most = spectrum.isel(frequency=int(np.nanargmax(spectrum)))
        table.add_row(
            f"{beta:.6g}",
            str(int(dataset.period[i])),
            f"{float(dataset.multiplier[i]):.6g}",
            f"{float(most.frequency):.4g}",
            f"{float(most):.4g}",
        )
    yield table


def _finite_size(dataset: xr.Dataset) -> Content:
    """Spins over theory at every N and distance, and exponents beside theory."""
    name = "passage_time" if "passage_time" in dataset else "mean_square"
    yield (
        f"{dataset.attrs['bifurcation']} at beta = {dataset.attrs['beta_c']:.8g}; "
        f"theory holds there from N = {dataset.attrs['least_spins']:.6g} on"
    )
    value, error, theory = (dataset[name + x] for x in ("", "_stderr", "_theory"))
    distances = [f"κ = {d:g}" for d in dataset.distance.values]
    table = titled(f"{theory.long_name.split(':')[0]} over theory", ("N", *distances))
    for n, *rows in zip(dataset.n_spins.values, value / theory, error / theory):
        cells = (with_error(v, e) for v, e in zip(*rows, strict=True))
        table.add_row(f"{n:.6g}", *cells)
    yield table
    table = titled("exponents of N", ("quantity", "measured", "theory"))
    names = dataset.quantity.attrs["flag_meanings"].split()
    for code, at in zip(dataset.quantity.values, range(dataset.sizes["quantity"])):
        row = dataset.isel(quantity=at)
        measured = with_error(row.exponent, row.exponent_stderr)
        table.add_row(names[code], measured, f"{float(row.exponent_theory):.4f}")
    yield table
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
            f"branch {i}: cycle of {counted(int(period), unit)}, "
            f"{np.isfinite(values).sum()} points, {free} from {np.nanmin(values):.6g} "
            f"to {np.nanmax(values):.6g}; ends: {low}, {high}"
        )
    if "special_kind" in dataset:
        yield from _bifurcations(dataset, free)
    if "degenerate_kind" in dataset:
        yield from _degenerate(dataset, free)


def _bifurcations(dataset: xr.Dataset, free: str) -> Content:
    table = titled(
        "bifurcations",
        ("kind", free, "branch", "period", "coefficient", "", "rotation"),
    )
    kinds, words = (
        dataset[name].attrs["flag_meanings"].split()
        for name in ("special_kind", "special_criticality")
    )
    short = {"none": "-", "supercritical": "super", "subcritical": "sub"}
    short["degenerate"] = "degenerate"
    for i in range(dataset.sizes["special"]):
        special = dataset.isel(special=i)
        table.add_row(
            kinds[int(special.special_kind)].replace("_", " "),
            f"{float(special[f'special_{free}']):.10f}",
            str(int(special.special_branch)),
            str(int(special.special_period)),
            formatted(special.special_coefficient, ".4g"),
            short[words[int(special.special_criticality)]],
            formatted(special.special_rotation, ".6f"),
        )
    yield table


def _degenerate(dataset: xr.Dataset, free: str) -> Content:
    second = dataset.attrs["second"]
    table = titled("on the curves", ("kind", free, second, "curve", "rotation"))
    kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
    for i in range(dataset.sizes["degenerate"]):
        point = dataset.isel(degenerate=i)
        table.add_row(
            kinds[int(point.degenerate_kind)].replace("_", " "),
            f"{float(point[f'degenerate_{free}']):.8f}",
            f"{float(point[f'degenerate_{second}']):.8f}",
            str(int(point.degenerate_curve)),
            formatted(point.degenerate_rotation, ".6f"),
        )
    yield table


def _basins(dataset: xr.Dataset) -> Content:
    """Per value: every set with its share, and the mean lifetime before it."""
    axis = str(dataset["count"].dims[0])
    columns = (axis, "set", "phase", "period", "ρ", "starts", "share", "mean lifetime")
    table = titled("attractors", columns)
    places = np.argwhere(dataset["count"].values > 0)
    for i, k in places[:SHOWN]:
        value, attractor = dataset.isel({axis: i}), dataset.isel({axis: i, "slot": k})
        table.add_row(
            f"{float(value[axis]):.6g}",
            str(int(attractor.attractor)),
            PHASES[int(attractor.phase)],
            str(int(attractor.period) or "-"),
            diagrams.rotation_text(attractor) or "-",
            str(int(attractor["count"])),
            f"{float(attractor.fraction):.3f} ({float(attractor.fraction_low):.3f} to "
            f"{float(attractor.fraction_high):.3f})",
            _lifetime(value) if k == 0 else "",
        )
    yield table
    if len(places) > SHOWN:
        yield f"and {len(places) - SHOWN} sets more"
    yield (
        "ρ: rotation number, cycles per clock period; "
        "share with Wilson's interval of one standard error; lifetime in "
        f"{plural(unit_of(dataset.period.attrs))}, of the exponential tail (-: no "
        "event, or no constant rate)"
    )


def _lifetime(value: xr.Dataset) -> str:
    """Expected lifetime 1/κ with its error."""
    rate, error = float(value.escape_rate), float(value.escape_rate_stderr)
    return "-" if np.isnan(rate) else f"{1 / rate:.4g} ± {error / rate**2:.1g}"


def _noise(dataset: xr.Dataset) -> Content:
    """The least N for which the linear noise of the first steps holds."""
    least = least_spins(dataset).values
    steps = [n for n in (10, 100, 1000) if n < least.shape[1]] + [least.shape[1]]
    table = titled(
        "linear noise holds for N above", ("beta", *map("{} steps".format, steps))
    )
    least = least[:, np.array(steps) - 1]
    for beta, row in list(zip(dataset.beta.values, least, strict=True))[:SHOWN]:
        table.add_row(f"{beta:.6g}", *(f"{N:.2g}" for N in row))
    yield table
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
    sizes = [f"N = {N:g}" for N in dataset.n_spins.values]
    table = titled("steps for which linear noise holds", ("beta", *sizes, "all: N ≥"))
    count, steps = dataset.linear.sum("time"), dataset.sizes["time"]
    anywhere = dataset.linear.any("n_spins")
    for i, beta in enumerate(dataset.beta.values[:SHOWN]):
        row = (f"{int(n)} of {steps}" for n in count.isel(beta=i))
        table.add_row(f"{beta:.6g}", *row, f"{dataset.least_spins[i, -1]:.2g}")
    yield table
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


def _by_sign_alone(differ: np.ndarray) -> str:
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
    columns = "beta", "verdict", "tokens", "compared", "largest |z|"
    columns = *columns, "spread ~ N^", "bias ~ N^"
    table = titled("theory against simulation", columns)
    names = dataset.verdict.attrs["flag_meanings"].split()
    for i, beta in enumerate(dataset.beta.values):
        at_beta = dataset.isel(beta=i)
        table.add_row(
            f"{beta:.6g}",
            names[int(at_beta.verdict)].replace("_", " "),
            f"{int(at_beta.judged.sum())} of {at_beta.sizes['time']}",
            str(int(at_beta.comparisons.sum())),
            formatted(at_beta.largest_z.max(), ".2f"),
            _exponent(at_beta, "A_spread"),
            _exponent(at_beta, "A_bias"),
        )
    yield table
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
    columns = ("beta", "verdict", "largest |z|", "z, N → ∞", "bias ~ N^")
    table = titled("entropy production of map and spins", columns)
    names = dataset.entropy_production_verdict.attrs["flag_meanings"].split()
    for i, beta in enumerate(dataset.beta.values):
        at_beta = dataset.isel(beta=i)
        table.add_row(
            f"{beta:.6g}",
            names[int(at_beta.entropy_production_verdict)].replace("_", " "),
            formatted(abs(at_beta.entropy_production_z).max(), ".2f"),
            formatted(at_beta.entropy_production_limit_z, ".2f"),
            _exponent(at_beta, "entropy_production_bias"),
        )
    yield table
    bound, limit_bound = (
        float(dataset[f"entropy_production_{name}"])
        for name in ("threshold", "limit_threshold")
    )
    yield (
        f"of its time average |z| up to {bound:.2f} is consistent with chance, and up "
        f"to {limit_bound:.2f} at infinite N"
    )


def _exponent(point: xr.Dataset, name: str) -> str:
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
