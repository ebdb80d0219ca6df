"""What other files say of a scan: branches, curves, sweeps and basins over it.

A file can be drawn over a scan of the same system if it was computed along a parameter
of the scan, with the same fixed parameters: branches of cycles and sweeps over a scan
of one parameter, curves of bifurcations over one of two, basins as shares of the starts
below a scan of one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.dynamics import diagrams, PHASES
from statmech_attn.explore.result_files.files import cell_edges, File, rounded
from statmech_attn.explore.views.served_file import ServedFile
from statmech_attn.plotting.dynamics.basins import set_colour, set_colours, set_name
from statmech_attn.plotting.dynamics.continuation import (
    curve_parts,
    DEGENERATE,
    either_side,
    followed,
    KINDS,
)


Layer = dict[str, Any]
UPWARD, DOWNWARD = "#8A3FE0", "#E69F00"  # of no phase


def over(file: File, others: Sequence[ServedFile]) -> list[dict[str, Any]]:
    """What can be drawn over a scan, a file each."""
    overlays = []
    for other in others:
        make = MAKERS.get(other.file.kind) if other.file else None
        if make is None or other.file is None or not alike(file, other.file):
            continue
        with other.file.lock:
            layers = make(other.file.dataset, file.axes)
        if layers:
            overlays.append({"name": other.path.name, "layers": layers})
    return overlays


def alike(file: File, second: File) -> bool:
    """Whether a file is of the system of a scan, with its fixed parameters."""
    scan, beside = file.dataset, second.dataset
    for key in ("network", "system"):
        named = {x.attrs[key] for x in (scan, beside) if key in x.attrs}
        if len(named) > 1:
            return False
    fixed = (n for n, x in scan.coords.items() if not x.ndim and n in beside.coords)
    same = lambda name: bool(np.isclose(beside[name], scan[name]).all())
    return all(same(name) for name in fixed if scan[name].dtype.kind in "fi")


def lines(words: str, x, y, colour: str, *, dashed: bool = False) -> Layer:
    """A line, broken where a number is not finite."""
    points = {"x": rounded(x), "y": rounded(y)}
    return {"type": "line", "words": words, "colour": colour, "dashed": dashed} | points


def marks(words: str, x, y, colour: str, *, hollow: bool = False, name: str = ""):
    """Points with their words, and a name beside each."""
    points = {"x": rounded(x), "y": rounded(y), "name": name}
    return {
        "type": "marks",
        "words": words,
        "colour": colour,
        "hollow": hollow,
    } | points


def continuation(dataset: xr.Dataset, axes: tuple[str, ...]) -> list[Layer]:
    """Branches over a scan of the free parameter, curves over one of two."""
    free = dataset.attrs["free"]
    if axes == (free,):
        return [*_branches(dataset, free), *_special(dataset, free)]
    if "curve_kind" in dataset and set(axes) == {free, dataset.attrs.get("second")}:
        return _curves(dataset, axes)
    return []


def _branches(dataset: xr.Dataset, free: str) -> list[Layer]:
    layers = []
    for number in range(dataset.sizes["branch"]):
        x, samples, stable = followed(dataset, number, free)
        for code, words in ((1, "stable cycles"), (0, "unstable cycles")):
            ends = either_side(stable == code)
            layers.extend(
                lines(words, x, y, "ink", dashed=code == 0)
                for y in np.where(ends[:, None], samples, np.nan).T
                if np.isfinite(y).any()
            )
    return layers


def _special(dataset: xr.Dataset, free: str) -> list[Layer]:
    if "special_kind" not in dataset:
        return []
    kinds = dataset.special_kind.attrs["flag_meanings"].split()
    critical = dataset.special_criticality.attrs["flag_meanings"].split()
    layers = []
    for number, code in enumerate(dataset.special_kind.values):
        point = dataset.isel(special=number)
        y = point.special_strobe.values
        colour, _, words = KINDS[kinds[int(code)]]
        subcritical = critical[int(point.special_criticality)] == "subcritical"
        x = np.full(y.shape, float(point[f"special_{free}"]))
        layers.append(marks(words, x, y, colour, hollow=subcritical))
    return layers


def _curves(dataset: xr.Dataset, axes: tuple[str, ...]) -> list[Layer]:
    kinds = dataset.curve_kind.attrs["flag_meanings"].split()
    layers = []
    for number, code in enumerate(dataset.curve_kind.values):
        kind = kinds[int(code)]
        colour, _, words = KINDS[kind]
        x, *parts = curve_parts(dataset.isel(curve=number), kind, *axes)
        for y, ending in zip(parts, ("", ", subcritical"), strict=True):
            if np.isfinite(y).any():
                dashed = bool(ending)
                layers.append(lines(words + ending, x, y, colour, dashed=dashed))
    if "degenerate_kind" in dataset:
        kinds = dataset.degenerate_kind.attrs["flag_meanings"].split()
        for number, code in enumerate(dataset.degenerate_kind.values):
            name, words = DEGENERATE[kinds[int(code)]]
            x, y = ([float(dataset[f"degenerate_{n}"][number])] for n in axes)
            layers.append(marks(words or name, x, y, "ink", hollow=True, name=name))
    return layers


def hysteresis(dataset: xr.Dataset, axes: tuple[str, ...]) -> list[Layer]:
    """Samples of both sweeps, and where they differ."""
    name = str(dataset.differ.dims[0])
    if axes != (name,):
        return []
    layers: list[Layer] = []
    for low, first, last, high in dataset.interval.values:
        begin, end = (float(np.nanmean(x)) for x in ([low, first], [last, high]))
        layers.append({"type": "range", "words": "sweeps differ", "x": [begin, end]})
    for way, colour in (("up", UPWARD), ("down", DOWNWARD)):
        y = dataset[f"strobe_{way}"].transpose(name, ...).values
        x = np.broadcast_to(dataset[name].values[:, None], y.shape)
        words = f"followed {way}ward"
        dots = {"type": "dots", "words": words, "colour": colour}
        layers.append(dots | {"x": rounded(x.ravel()), "y": rounded(y.ravel())})
    return layers


def basins(dataset: xr.Dataset, axes: tuple[str, ...]) -> list[Layer]:
    """Shares of the starts by the set on which they end, stacked, in cells along x."""
    names = [str(d) for d in dataset["count"].dims if d != "slot"]
    if tuple(names) != axes or len(axes) != 1:
        return []
    dataset = dataset.sortby(names[0])
    edges = cell_edges(dataset[names[0]].values.astype(float))
    cells, colours = [], set_colours(dataset)
    for number in range(len(edges) - 1):
        column = dataset.isel({names[0]: number})
        parts, bottom = [], 0.0
        order = np.argsort(column.attractor.values, kind="stable")
        for slot in order[column["count"].values[order] > 0]:
            attractor = column.isel(slot=slot)
            share, period = float(attractor.fraction), int(attractor.period)
            phase = PHASES[int(attractor.phase)]
            turns = diagrams.rotation_text(attractor)
            more = f", period {period}" if period else ""
            more += f", rotation number {turns}" if turns else ""
            parts.append(
                {
                    "share": [bottom, bottom + share],
                    "set": set_name(attractor),
                    "colour": set_colour(attractor, colours),
                    "words": phase + more,
                }
            )
            bottom += share
        cells.append(
            {"x": [float(edges[number]), float(edges[number + 1])], "parts": parts}
        )
    return [{"type": "shares", "words": "share of the starts by set", "cells": cells}]


MAKERS: dict[str, Callable[[xr.Dataset, tuple[str, ...]], list[Layer]]] = {
    "continuation": continuation,
    "hysteresis": hysteresis,
    "basins": basins,
}
