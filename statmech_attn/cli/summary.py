"""What a file found, as short tables."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

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
        _estimates(dataset, console)
    elif kind == "comparison":
        _comparison(dataset, console)
    elif kind == "order-parameter":
        _order_parameters(dataset, console)
    elif kind == "posterior":
        _posterior(dataset, console)
    elif kind == "pruning":
        _pruning(dataset, console)
    elif kind == "training" and "test_set" in dataset.dims:
        _networks(dataset, console)
    elif kind == "training":
        _training(dataset, console)
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
    table = _table(
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
            str(int(one.special_period)), _number(one.special_coefficient, ".4g"),
            shown[words[int(one.special_criticality)]],
            _number(one.special_rotation, ".6f"),
        )  # fmt: skip
    console.print(table)


def _degenerate(dataset: xr.Dataset, console: Console, free: str) -> None:
    second = dataset.attrs["second"]
    table = _table("on the curves", ("kind", free, second, "curve", "rotation"))
    kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
    for i in range(dataset.sizes["degenerate"]):
        one = dataset.isel(degenerate=i)
        table.add_row(
            kinds[int(one.degenerate_kind)].replace("_", " "),
            f"{float(one[f'degenerate_{free}']):.8f}",
            f"{float(one[f'degenerate_{second}']):.8f}",
            str(int(one.degenerate_curve)), _number(one.degenerate_rotation, ".6f"),
        )  # fmt: skip
    console.print(table)


SHOWN = 40  # rows of a table


def _basins(dataset: xr.Dataset, console: Console) -> None:
    """Per value: every set with its share, and the mean lifetime before it."""
    axis = str(dataset["count"].dims[0])
    columns = (axis, "set", "phase", "period", "starts", "share", "mean lifetime")
    table = _table("attractors", columns)
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


def _order_parameters(dataset: xr.Dataset, console: Console) -> None:
    """Per width and temperature: accuracy, and how the saddle point was reached."""
    columns = ("N", "T", "accuracy", "with 1/N", "GP", "steps", "gradient", "result")
    table = _table("order parameters", columns)
    reasons = [*dataset.result.attrs["flag_meanings"].split(), "not_computed"]
    for here in _points(dataset):
        table.add_row(
            f"{float(here.width):g}", f"{float(here.temperature):g}",
            _number(here.accuracy, ".3f"),
            _number(here.get("accuracy_corrected"), ".3f"),
            _number(here.accuracy_gp, ".3f"), str(int(here.iterations)),
            _number(here.gradient_norm, ".1e"),
            reasons[int(here.result)].replace("_", " "),
        )  # fmt: skip
    console.print(table)
    if np.isnan(dataset.get("accuracy_corrected", 0.0)).any():
        console.print(
            "no 1/N correction where a width is below the number of paths, where there "
            "is no saddle point, or where it needs too much memory",
            highlight=False,
        )
    if "accuracy_chosen" in dataset:
        _chosen(dataset, console)


def _chosen(dataset: xr.Dataset, console: Console) -> None:
    """Per width and choice of the temperature: accuracy on every test set."""
    sets = [str(name) for name in dataset.test_set.values]
    table = _table("accuracy at the chosen temperature", ("N", "by", "T", *sets))
    rows = [(f"{float(w):g}", dataset.sel(width=w), "") for w in dataset.width]
    for name, here, ending in [*rows, ("GP", dataset, "_gp")]:
        for by in dataset.choice.values:
            one = here.sel(choice=by)
            values = one[f"accuracy_chosen{ending}"].values
            table.add_row(
                name, str(by), _number(one[f"chosen_temperature{ending}"], "g"),
                *(_number(x, ".3f") for x in values),
            )  # fmt: skip
    console.print(table)
    console.print(
        "standard errors of accuracies, for other tasks of the same classes, up to "
        f"{float(dataset.accuracy_chosen_stderr.max()):.3f}",
        highlight=False,
    )


def _posterior(dataset: xr.Dataset, console: Console) -> None:
    """Per width and temperature: accuracy, and how far the draws can be trusted."""
    columns = (
        "N", "T", "accuracy", "least n_eff", "largest R-hat", "divergences", "BFMI",
    )  # fmt: skip
    evidence = "log_evidence" in dataset
    table = _table(f"posterior by {dataset.attrs['method']}", columns)
    if evidence:
        table.add_column("ln p(Y)", justify="right")
    for here in _points(dataset):
        row = [
            f"{float(here.width):g}", f"{float(here.temperature):g}",
            f"{float(here.accuracy):.3f} ± {float(here.accuracy_stderr):.1g}",
            f"{float(here.U_1_n_eff.min()):.0f}", f"{float(here.U_1_r_hat.max()):.3f}",
            f"{int(here.divergences)}", _number(here.get("bfmi"), ".2f"),
        ]  # fmt: skip
        if evidence:
            error = float(here.log_evidence_stderr)
            row.append(f"{float(here.log_evidence):.3f} ± {error:.1g}")
        table.add_row(*row)
    console.print(table)
    console.print(
        "n_eff and R-hat are of the entries of U_1; R-hat above 1.01 or a BFMI below "
        "0.3 asks for longer chains",
        highlight=False,
    )


def _training(dataset: xr.Dataset, console: Console) -> None:
    """Per width and temperature: the best of all restarts, and how they ended."""
    columns = (
        "N", "T", "test accuracy", "training", "least loss", "gradient", "result",
    )  # fmt: skip
    table = _table("training", columns)
    reasons = dataset.training_result.attrs["flag_meanings"].split()
    for here in _points(dataset):
        last = here.loss.isel(step=-1)
        codes, counts = np.unique(here.training_result, return_counts=True)
        words = [*reasons, "not_computed"]
        table.add_row(
            f"{float(here.width):g}", f"{float(here.temperature):g}",
            _number(here.accuracy.mean(), ".3f"),
            _number(here.accuracy_train.mean(), ".3f"), _number(last.min(), ".5g"),
            _number(here.loss_gradient_norm.max(), ".1e"),
            ", ".join(
                f"{count} × {words[code].replace('_', ' ')}"
                for code, count in zip(codes, counts, strict=True)
            ),
        )  # fmt: skip
    console.print(table)
    finite = np.isfinite(dataset.accuracy).sum("restart")
    few, many = int(finite.min()), int(finite.max())
    count = f"{many}" if few == many else f"{few} to {many}"
    console.print(
        f"accuracies are means over {count} initial weights, the gradient is the "
        "largest",
        highlight=False,
    )


def _networks(dataset: xr.Dataset, console: Console) -> None:
    """Per restart: accuracies of the best weights, and how the training ended."""
    sets = [str(name) for name in dataset.test_set.values]
    columns = ("restart", "best step", "validation", *sets, "least loss", "result")
    table = _table("accuracy of trained networks", columns)
    words = [*dataset.training_result.attrs["flag_meanings"].split(), "not_computed"]
    for number in dataset.restart.values:
        here = dataset.sel(restart=number)
        table.add_row(
            str(number), str(int(here.best_step)),
            _number(here.accuracy_validation.max(), ".3f"),
            *(_number(x, ".3f") for x in here.accuracy_sets),
            _number(here.loss.min(), ".4f"),
            words[int(here.training_result)].replace("_", " "),
        )  # fmt: skip
    console.print(table)
    console.print(
        f"of the weights at the best step; standard errors up to "
        f"{float(dataset.accuracy_sets_stderr.max()):.3f}",
        highlight=False,
    )


def _estimates(dataset: xr.Dataset, console: Console) -> None:
    """Per width, temperature and estimate: accuracy, distance, verdict."""
    columns = ("N", "T", "estimate", "accuracy", "rms ΔU_1", "largest |z|", "verdict")
    table = _table(f"against the {dataset.attrs['reference']} posterior", columns)
    words = dataset.verdict.attrs["flag_meanings"].split()
    for here in _points(dataset):
        for name in here.estimate.values:
            one = here.sel(estimate=name)
            table.add_row(
                f"{float(one.width):g}", f"{float(one.temperature):g}", str(name),
                _number(one.accuracy, ".3f"),
                _with_error(one.U_1_rms, one.U_1_rms_stderr),
                _number(one.largest_z, ".2f"),
                words[int(one.verdict)].replace("_", " "),
            )  # fmt: skip
    console.print(table)
    console.print(
        f"|z| up to {float(dataset.threshold):.2f} is chance for the number of "
        "comparisons made; a saddle point differs from the posterior at finite width, "
        "two ways of sampling it must not",
        highlight=False,
    )
    saddle = dataset.sel(estimate="saddle")
    for slope, error in zip(
        saddle.U_1_rms_slope.values, saddle.U_1_rms_slope_stderr.values, strict=True
    ):
        if np.isfinite(slope):
            console.print(
                f"the saddle point's rms ΔU_1 goes like N^({slope:.2f} ± {error:.2f}); "
                "at fixed P it tends to -2 for N >> P",
                highlight=False,
            )


def _pruning(dataset: xr.Dataset, console: Console) -> None:
    """Per order: how its scores go with what the heads are worth."""
    sets = dataset.test_set.values
    table = _table("rank correlation of score and accuracy lost", ["order", *sets])
    for order in dataset.order.values[:-1]:  # the last one is random
        here = dataset.sel(order=order)
        pairs = zip(here.rank_correlation_mean, here.rank_correlation_mean_stderr)
        table.add_row(order, *(_with_error(*pair) for pair in pairs))
    console.print(table)
    trainings = np.isfinite(dataset.accuracy_sets[:, 0].values)
    chance = 1 / np.sqrt((dataset.sizes["attention_head"] - 1) * trainings.sum())
    console.print(
        f"means over {trainings.sum()} trainings with their standard errors; scores "
        f"that say nothing give 0 ± {chance:.1g}",
        highlight=False,
    )


def _points(dataset: xr.Dataset):
    """Every width and temperature of a learning file, temperatures fastest."""
    if "temperature" not in dataset.dims:
        dataset = dataset.expand_dims("temperature")
    for width in range(dataset.sizes["width"]):
        for temperature in range(dataset.sizes["temperature"]):
            yield dataset.isel(width=width, temperature=temperature)


def _table(title: str, columns) -> Table:
    table = Table(title=title, box=None, pad_edge=False)
    for column in columns:
        words = column in ("estimate", "kind", "order", "phase", "result", "verdict")
        table.add_column(column, justify="left" if words else "right")
    return table


def _with_error(value, error) -> str:
    """A number with its error, or a dash where it is not resolved."""
    if np.isnan(float(value)):
        return "-"
    if np.isnan(float(error)):
        return f"{float(value):.2g}"
    return f"{float(value):.2g} ± {float(error):.1g}"


def _number(value, form: str) -> str:
    """A number, or a dash where there is none."""
    if value is None or np.isnan(float(value)):
        return "-"
    return format(float(value), form)
