"""What a file found, as short tables."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from statmech_attn import kinds
from statmech_attn.cli.texts.tables import Content, Summary
from statmech_attn.layout import AT_ONCE
from statmech_attn.reporting import duration, span
from statmech_attn.storage import Info


def print_info(info: Info, console: Console) -> None:
    """Provenance of a file."""
    table = Table(show_header=False, box=None, pad_edge=False)
    version = info.package_version
    rows = {
        "kind": info.kind,
        "computed": span(info.started, info.finished),
        "time": _time(info),
        "package": version + (f" ({info.git_describe})" if info.git_describe else ""),
        "compiler": _compiler(info.attributes),
        "device": f"{info.backend} ({info.device_kind}), {info.dtype}",
        "processor": _processor(info.environment),
        "platform": info.platform,
        "versions": ", ".join(f"{k} {v}" for k, v in info.versions.items()),
        "keys": ", ".join(f"{k} = {v}" for k, v in info.keys.items()),
        "command": info.command,
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, value)
    console.print(table)
    console.print("study:")
    for line in info.study.splitlines():
        if not line or line.startswith("#"):
            continue
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _compiler(attributes: Mapping[str, Any]) -> str:
    """What made the programs, and why, where a file tells."""
    if "compiler" not in attributes:
        return ""
    return f"{attributes['compiler']} ({attributes.get('compiler_reason', '?')})"


def _time(info: Info) -> str:
    """Time of the computation, and that of its workers where it was recorded."""
    elapsed = "" if info.elapsed is None else duration(info.elapsed)
    workers = "" if info.busy is None else f"all workers together {duration(info.busy)}"
    return ", ".join(filter(None, (elapsed, workers)))


def _processor(environment: Mapping[str, str]) -> str:
    parts = [environment.get("cpu_model"), environment.get("cpu_instructions")]
    if "cpu_threads" in environment:
        parts.append(f"{environment['cpu_threads']} threads")
    if environment.get("n_devices", "1") != "1":
        parts.append(f"{environment['n_devices']} devices")
    return ", ".join(filter(None, parts))


def print_summary(dataset: xr.Dataset, console: Console) -> None:
    """The main result of any kind of file.

    Only the variables that are needed are read, if they are not in memory yet
    (`storage.opened`), and none where they are very large.

    Args:
        dataset: a result.
        console: where to print.

    Example:
        `print_summary(storage.read("scan.h5"), rich.console.Console())`
    """
    for part in content(dataset):
        if isinstance(part, str):
            console.print(part, highlight=False, markup=False, soft_wrap=True)
        else:
            console.print(part)


def content(dataset: xr.Dataset) -> Content:
    """Tables and sentences of the main result of any kind of file."""
    summary = _summary(dataset)
    needed = _largest_exponents(_printed(dataset, summary))
    if needed.nbytes > AT_ONCE:
        yield _sizes(dataset)
        return
    needed = needed.load()
    if "failure" in needed:
        yield _failures(needed)
    if summary is None:
        yield _sizes(dataset)
    else:
        yield from summary.content(needed)


def _printed(dataset: xr.Dataset, summary: Summary | None) -> xr.Dataset:
    """The variables of which `print_summary` says something."""
    parameters = {name: dataset.attrs.get(name, "") for name in ("free", "second")}
    names = summary.variables.format(**parameters) if summary else ""
    names = ["failure", *names.split()]
    return dataset[[name for name in dataset.variables if _matches(name, names)]]


def _largest_exponents(needed: xr.Dataset) -> xr.Dataset:
    """The largest exponent is enough beside a phase."""
    if "phase" not in needed:
        return needed
    return needed.isel(exponent=slice(1), missing_dims="ignore")


def _summary(dataset: xr.Dataset) -> Summary | None:
    row = kinds.of_file(dataset.attrs.get("kind"), dataset.dims)
    summary = kinds.KINDS.part(row, "summary") if row else None
    if summary is None or (summary.needs and summary.needs not in dataset):
        return None
    return summary


def _matches(name: object, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(str(name), pattern) for pattern in patterns)


def _sizes(dataset: xr.Dataset) -> str:
    shape = ", ".join(f"{name} {size}" for name, size in dataset.sizes.items())
    return f"{dataset.attrs.get('kind')}: {shape}"


def _failures(dataset: xr.Dataset) -> str:
    count = np.count_nonzero(dataset.failure)
    first = np.atleast_1d(dataset.attrs["failure_reasons"])[0]
    return f"{count} of {dataset.failure.size} points have no numbers: {first}"
