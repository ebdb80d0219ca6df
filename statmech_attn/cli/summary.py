"""What a file found, as short tables."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from statmech_attn.cli import learning_summary
from statmech_attn.cli.tables import formatted, titled
from statmech_attn.dynamics import PHASES
from statmech_attn.storage import Info


def print_info(found: Info, console: Console) -> None:
    """Provenance of a file."""
    table = Table(show_header=False, box=None, pad_edge=False)
    version = found.package_version
    rows = {
        "kind": found.kind,
        "computed": f"{found.started or '?'} to {found.finished}"
        + (f", {found.elapsed:.6g} s" if found.elapsed is not None else ""),
        "package": version + (f" ({found.git_describe})" if found.git_describe else ""),
        "device": f"{found.backend} ({found.device_kind}), {found.dtype}",
        "processor": _processor(found.environment),
        "platform": found.platform,
        "versions": ", ".join(f"{k} {v}" for k, v in found.versions.items()),
        "keys": ", ".join(f"{k} = {v}" for k, v in found.keys.items()),
        "command": found.command,
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, value)
    console.print(table)
    console.print("study:")
    for line in found.study.strip().splitlines():
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _processor(environment: Mapping[str, str]) -> str:
    parts = [environment.get("cpu_model"), environment.get("cpu_instructions")]
    if "cpu_threads" in environment:
        parts.append(f"{environment['cpu_threads']} threads")
    if environment.get("n_devices", "1") != "1":
        parts.append(f"{environment['n_devices']} devices")
    return ", ".join(filter(None, parts))


AT_ONCE = 2**28  # bytes


def print_summary(dataset: xr.Dataset, console: Console) -> None:
    """The main result of any kind of file.

    Of a large file that is not in memory (`storage.opened`), only the variables that
    are needed are read, one after the other.
    """
    if dataset.nbytes <= AT_ONCE:
        dataset = dataset.load()
    if "failure" in dataset:
        _failures(dataset, console)
    kind = dataset.attrs.get("kind")
    if kind == "basins":
        _basins(dataset, console)
    elif kind == "hysteresis":
        _hysteresis(dataset, console)
    elif "phase" in dataset:
        _phases(dataset, console)
    elif kind == "continuation":
        _continuation(dataset, console)
    elif kind == "comparison" and "estimate" in dataset.dims:
        learning_summary.estimates(dataset, console)
    elif kind == "comparison":
        _comparison(dataset, console)
    elif kind == "order-parameter":
        learning_summary.order_parameters(dataset, console)
    elif kind == "posterior":
        learning_summary.posterior(dataset, console)
    elif kind == "pruning":
        learning_summary.pruning(dataset, console)
    elif kind == "training" and "test_set" in dataset.dims:
        learning_summary.networks(dataset, console)
    elif kind == "training":
        learning_summary.training(dataset, console)
    else:
        shape = ", ".join(f"{name} {size}" for name, size in dataset.sizes.items())
        console.print(f"{kind}: {shape}", highlight=False)


def _failures(dataset: xr.Dataset, console: Console) -> None:
    count = np.count_nonzero(dataset.failure)
    first = np.atleast_1d(dataset.attrs["failure_reasons"])[0]
    console.print(
        f"{count} of {dataset.failure.size} points have no numbers: {first}",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


def _phases(dataset: xr.Dataset, console: Console) -> None:
    axis = str(dataset.phase.dims[0])
    if axis == "point":  # of a refined grid
        axis = next(name for name in ("beta", "gamma") if name in dataset.coords)
    table = Table(title="phases", box=None, pad_edge=False)
    for column in ("phase", "points", f"{axis} from", "to", "largest λ_1 (nat/token)"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    phase = dataset.phase.values
    where = np.broadcast_to(
        dataset[axis].values.reshape((-1,) + (1,) * (phase.ndim - 1)), phase.shape
    )
    leading = dataset.lyapunov.isel(exponent=0).values
    there = dataset.failure.values == 0 if "failure" in dataset else True
    for code, name in enumerate(PHASES):
        chosen = (phase == code) & there
        if chosen.any():
            table.add_row(
                name, str(chosen.sum()), f"{where[chosen].min():.6g}",
                f"{where[chosen].max():.6g}", f"{np.nanmax(leading[chosen]):.4g}",
            )  # fmt: skip
    console.print(table)
    agree = (_coarse(phase) == _coarse(dataset.phase_paper.values)).mean(where=there)
    console.print(
        f"the paper's classifier agrees at {100 * agree:.1f} % of the points",
        highlight=False,
    )


def _continuation(dataset: xr.Dataset, console: Console) -> None:
    """Every branch with its end, every bifurcation, every curve with its end."""
    free = dataset.attrs["free"]
    ends = dataset.branch_result.attrs["flag_meanings"].split()
    for i, period in enumerate(dataset.branch_period.values):
        low, high = (ends[int(code)] for code in dataset.branch_result[i])
        values = dataset[free][i].values
        console.print(
            f"branch {i}: cycle of {int(period)} tokens, "
            f"{np.isfinite(values).sum()} points, {free} from {np.nanmin(values):.6g} "
            f"to {np.nanmax(values):.6g}; ends: {low}, {high}",
            highlight=False,
        )  # fmt: skip
    if "special_kind" in dataset:
        _bifurcations(dataset, console, free)
    if "degenerate_kind" in dataset:
        _degenerate(dataset, console, free)


def _bifurcations(dataset: xr.Dataset, console: Console, free: str) -> None:
    table = titled(
        "bifurcations",
        ("kind", free, "branch", "tokens", "coefficient", "", "rotation"),
    )
    kinds, words = (
        dataset[name].attrs["flag_meanings"].split()
        for name in ("special_kind", "special_criticality")
    )
    shown = {"none": "-", "supercritical": "super", "subcritical": "sub"}
    for i in range(dataset.sizes["special"]):
        one = dataset.isel(special=i)
        table.add_row(
            kinds[int(one.special_kind)].replace("_", " "),
            f"{float(one[f'special_{free}']):.10f}", str(int(one.special_branch)),
            str(int(one.special_period)), formatted(one.special_coefficient, ".4g"),
            shown[words[int(one.special_criticality)]],
            formatted(one.special_rotation, ".6f"),
        )  # fmt: skip
    console.print(table)


def _degenerate(dataset: xr.Dataset, console: Console, free: str) -> None:
    second = dataset.attrs["second"]
    table = titled("on the curves", ("kind", free, second, "curve", "rotation"))
    kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
    for i in range(dataset.sizes["degenerate"]):
        one = dataset.isel(degenerate=i)
        table.add_row(
            kinds[int(one.degenerate_kind)].replace("_", " "),
            f"{float(one[f'degenerate_{free}']):.8f}",
            f"{float(one[f'degenerate_{second}']):.8f}",
            str(int(one.degenerate_curve)), formatted(one.degenerate_rotation, ".6f"),
        )  # fmt: skip
    console.print(table)


SHOWN = 40  # rows of a table


def _basins(dataset: xr.Dataset, console: Console) -> None:
    """Per value: every set with its share, and the mean lifetime before it."""
    axis = str(dataset["count"].dims[0])
    columns = (axis, "set", "phase", "period", "starts", "share", "mean lifetime")
    table = titled("attractors", columns)
    places = np.argwhere(dataset["count"].values > 0)
    for i, k in places[:SHOWN]:
        value, here = dataset.isel({axis: i}), dataset.isel({axis: i, "slot": k})
        table.add_row(
            f"{float(value[axis]):.6g}", str(int(here.attractor)),
            PHASES[int(here.phase)], str(int(here.period) or "-"),
            str(int(here["count"])),
            f"{float(here.fraction):.3f} ({float(here.fraction_low):.3f} to "
            f"{float(here.fraction_high):.3f})",
            _lifetime(value) if k == 0 else "",
        )  # fmt: skip
    console.print(table)
    if len(places) > SHOWN:
        console.print(f"and {len(places) - SHOWN} sets more", highlight=False)
    console.print(
        "share with Wilson's interval of one standard error; lifetime in tokens, of "
        "the exponential tail (-: no event, or no constant rate)",
        highlight=False,
    )


def _lifetime(value: xr.Dataset) -> str:
    """Expected lifetime 1/κ with its error."""
    rate, error = float(value.escape_rate), float(value.escape_rate_stderr)
    return "-" if np.isnan(rate) else f"{1 / rate:.4g} ± {error / rate**2:.1g}"


def _hysteresis(dataset: xr.Dataset, console: Console) -> None:
    axis = str(dataset.differ.dims[0])
    for low, first, last, high in dataset.interval.values:
        agree = [
            words.format(f"{value:.8g}")
            for words, value in (("up to {}", low), ("from {} on", high))
            if not np.isnan(value)
        ]
        console.print(
            f"{axis}: up and down differ from "
            f"{_end(first, low, 'first')} to {_end(last, high, 'last')}"
            + (f"; they agree {' and '.join(agree)}" if agree else ""),
            highlight=False,
        )
    if not dataset.sizes["number"]:
        console.print("up and down agree everywhere", highlight=False)


def _end(value: float, beyond: float, which: str) -> str:
    """An end of an interval; `beyond` is NaN where it is also one of the values."""
    return f"{value:.8g}" + (f" (the {which} value)" if np.isnan(beyond) else "")


def _coarse(phase: np.ndarray) -> np.ndarray:
    """Fixed with periodic, chaotic with hyperchaotic: what the paper tells apart."""
    groups = np.array([0, 0, 1, 2, 2, 3, 3, 3], np.int8)
    return groups[phase]


def _comparison(dataset: xr.Dataset, console: Console) -> None:
    """Per beta: verdict, largest difference in standard errors, exponents in N."""
    table = Table(title="theory against simulation", box=None, pad_edge=False)
    for column in (
        "beta",
        "verdict",
        "compared",
        "largest |z|",
        "spread ~ N^",
        "bias ~ N^",
    ):
        table.add_column(column, justify="left" if column == "verdict" else "right")
    names = dataset.verdict.attrs["flag_meanings"].split()
    for i, beta in enumerate(dataset.beta.values):
        here = dataset.isel(beta=i)
        largest = here.largest_z.values
        table.add_row(
            f"{beta:.6g}",
            names[int(here.verdict)].replace("_", " "),
            str(int(here.comparisons.sum())),
            "-" if np.isnan(largest).all() else f"{np.nanmax(largest):.2f}",
            _exponent(here, "spread"),
            _exponent(here, "bias"),
        )
    console.print(table)
    console.print(
        f"|z| up to {float(dataset.threshold):.2f} is chance for the number of "
        "comparisons made; spread should fall like N^-0.5, bias like N^-1",
        highlight=False,
    )


def _exponent(here: xr.Dataset, what: str) -> str:
    value = float(here[f"A_{what}_slope"])
    error = float(here[f"A_{what}_slope_stderr"])
    return "-" if np.isnan(value) else f"{value:.3f} ± {error:.3f}"
