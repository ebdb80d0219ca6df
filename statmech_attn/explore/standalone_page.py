"""A file as one document that needs no server: the same page with its data inside."""

import base64
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from statmech_attn import storage
from statmech_attn.explore.result_files.files import File, packed
from statmech_attn.explore.serving import page
from statmech_attn.explore.views.line import Scan1D
from statmech_attn.explore.views.plane import Scan2D
from statmech_attn.explore.views.sheets import PictureView, sheet_of
from statmech_attn.reporting import size


SAMPLES = 1_500_000  # that are written one by one; of more, their counts in cells
COLUMNS, ROWS = 4096, 1024  # of these cells
POINTS = 100_000  # of a line that are written one by one; of more, columns of them
NUMBERS = 6_000_000  # of all maps of a plane; of more, every so many rows and columns
TOLD = 1000  # points whose sentences are written
CONTENT = 15 * 2**20  # bytes of the figures of a file, compressed
STEPS = 65535  # of a sample, or of a value of a map, over the range of all


def export(path: str | Path, target: str | Path, *, overwrite: bool = False) -> str:
    """Write the page of a result file, with its data, to one file.

    Args:
        path: of the result.
        target: file that is written.
        overwrite: replace a file that is there.

    Returns:
        How large it is, in words.

    Raises:
        ValueError: a kind without pictures, or more of them than a page holds.
        StorageError: the file cannot be read, or the target is there already.

    Example:
        `export("scan.h5", "scan.html")`
    """
    path, target = Path(path), Path(target)
    storage.require_no_input(target, [path])
    storage.require_replaceable(target, overwrite, _is_page, "page of this command")
    storage.check_place(target)
    file = File(path)
    try:
        header, arrays = MAKERS[file.view](file)
    finally:
        file.close()
    body = base64.b64encode(gzip.compress(packed(header, arrays), 6, mtime=0)).decode()
    text = page.whole(body)
    storage.write_text(target, text)
    return size(len(text.encode()))


def _is_page(path: Path) -> bool:
    start = storage.begins(path)
    return "<title>Explorer</title>" in start and "Content-Security-Policy" in start


def _line(file: File) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    line = Scan1D(file, lambda share: None)
    count = len(line.values)
    width = 1 << (-(-count // POINTS) - 1).bit_length()
    arrays = line.reduced(0, count, width)
    if width == 1:
        arrays.pop("largest", None)
        arrays.pop("production_largest", None)
    for name, cloud in line.clouds.items():
        samples = cloud.levels[0]
        if width == 1 and samples.size <= SAMPLES:
            ordered = np.sort(samples, axis=1)  # within a point: compressed well
            arrays[f"samples_{name}"] = _steps(ordered, cloud.low, cloud.high)
        else:
            arrays[f"counts_{name}"] = _counted(line, name)
    description = file.described() | line.described() | {"why": "", "state": "ready"}
    ranges = {n: [c.low, c.high] for n, c in line.clouds.items()}
    header: dict[str, Any] = {"file": description, "ranges": ranges, "width": width}
    chosen = np.unique(np.linspace(0, count - 1, min(count, TOLD)).round().astype(int))
    header["points"] = line.verdicts(chosen)
    return header, arrays


def _plane(file: File) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    plane = Scan2D(file, lambda share: None)
    cells = len(plane.values[0]) * len(plane.values[1])
    shown = ("phase", "lyap", "period", "entropy")
    names = [n for n in plane.variables if n.startswith(shown)]
    step = int(np.ceil(np.sqrt(max(cells * len(names) / NUMBERS, 1.0))))
    arrays = {"x_edges": _thinned(plane.edges[0], step)}
    arrays["y_edges"] = _thinned(plane.edges[1], step)
    ranges, spans = {}, {}
    for name in names:
        values = plane.map(name)
        spans[name] = _span(values)
        arrays[f"map_{name}"] = _steps(values[::step, ::step], *spans[name])
        ranges[name] = plane.range(name)
    description = file.described() | plane.described() | {"why": "", "state": "ready"}
    description["variables"] = [plane.variables[name] for name in names]
    header = {"file": description, "ranges": ranges, "spans": spans}
    return header | {"points": _told(plane)}, arrays


def _told(plane: Scan2D) -> list[dict[str, Any]]:
    """Verdicts of points all over a plane."""
    side = int(np.sqrt(TOLD))
    places = [
        np.unique(np.linspace(0, len(values) - 1, side).round().astype(int))
        for values in plane.values
    ]
    thinned, (x, y) = plane.thinned(places), plane.names
    across, up = (v[place] for v, place in zip(plane.values, places, strict=True))
    verdicts = [thinned.point({x: float(a), y: float(b)}) for a in across for b in up]
    distinct = {tuple(v["value"] for v in point["values"]): point for point in verdicts}
    return list(distinct.values())


def _sheet(file: File) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """All pictures with all their choices; of many, with the first ones."""
    sheet = sheet_of(file)
    if sheet is None:
        raise ValueError(f"{file.path}: files of kind {file.kind} have no pictures.")
    for keywords in (True, False):
        description = file.described() | sheet.described(keywords)
        contents = _contents(sheet, description["drawings"])
        if contents is not None:
            description |= {"view": "sheet", "why": "", "state": "ready"}
            return {"file": description, "contents": contents}, {}
    raise ValueError(
        f"{file.path}: its pictures are more than {size(CONTENT)}; draw them with "
        "statmech-attn figure."
    )


def _contents(sheet: PictureView, drawings: list[dict]) -> dict[str, Any] | None:
    """Figures by picture and numbers of its choices; none where they are too many."""
    contents, room = {}, CONTENT
    for drawing in drawings:
        names = [choice["name"] for choice in drawing["choices"]]
        counts = [range(len(choice["values"])) for choice in drawing["choices"]]
        for numbers in itertools.product(*counts):
            chosen = dict(zip(names, numbers, strict=True))
            content = sheet.readable(drawing["name"], chosen)
            room -= len(gzip.compress(json.dumps(content).encode()))
            if room < 0:
                return None
            contents["/".join(map(str, [drawing["name"], *numbers]))] = content
    return contents


MAKERS = {"line": _line, "plane": _plane, "pictures": _sheet}


def _span(values: np.ndarray) -> list[float]:
    """The least and the largest of the finite values."""
    finite = values[np.isfinite(values)]
    return [float(finite.min()), float(finite.max())] if finite.size else [0.0, 0.0]


def _steps(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values in 65535 steps of their range, 65535 where there is none."""
    scale = (STEPS - 1) / ((high - low) or 1.0)
    steps = np.where(np.isfinite(values), (values - low) * scale, STEPS)
    return np.round(steps).astype(np.uint16)


def _counted(line: Scan1D, name: str) -> np.ndarray:
    """Counts of samples in cells, (columns, rows), 255 where there are more."""
    cloud = line.clouds[name]
    width = 1 << (-(-len(line.values) // COLUMNS) - 1).bit_length()
    span = cloud.high - cloud.low
    edges = np.linspace(cloud.low, cloud.high + 1e-6 * span, ROWS + 1)
    counts = cloud.counts(0, len(line.values), width, edges)
    return np.minimum(counts, 255).astype(np.uint8)


def _thinned(edges: np.ndarray, step: int) -> np.ndarray:
    """Edges of every so many cells together."""
    return np.append(edges[:-1:step], edges[-1])
