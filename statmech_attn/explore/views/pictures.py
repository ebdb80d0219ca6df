"""Pictures of publication quality: the figures of the package, of the part in view."""

import io
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import plotting
from statmech_attn.explore.result_files.files import File


FORMS = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}
LARGEST = 2**29  # bytes of what is drawn
DRAWING = threading.RLock()  # matplotlib's settings are those of the process


class Limits(NamedTuple):
    """A window of a picture; None where it is not limited."""

    low: float | None = None
    high: float | None = None
    bottom: float | None = None
    top: float | None = None


def picture(file: File, name: str, form: str, limits: Limits) -> bytes:
    """A picture of a file in any of `FORMS`; the first one where the name is empty."""
    with file.lock:
        part = _part(file, limits)
        if part.nbytes > LARGEST:
            raise ValueError("So many points make no picture; zoom in first.")
        part = part.load()
    chosen = _chosen(file.dataset, name)

    def drawn() -> Figure:
        figure = next(plotting.pictures(part, [chosen]))[1]
        _limit(figure, file, limits)
        return figure

    return written(drawn, form)


def written(draw: Callable[[], Figure], form: str) -> bytes:
    """A figure as the content of a file in any of `FORMS`; one is drawn at a time."""
    if form not in FORMS:
        raise ValueError(f"form should be one of {', '.join(FORMS)}.")
    with DRAWING, mpl.rc_context(plotting.SETTINGS):
        body = io.BytesIO()
        dpi, metadata = plotting.FORMATS[form]
        draw().savefig(body, format=form, dpi=dpi, metadata=metadata)
    return body.getvalue()


def script(file: File, name: str, form: str, limits: Limits) -> str:
    """The program that draws the same picture."""
    chosen = _chosen(file.dataset, name)
    lines = [
        "from statmech_attn import plotting, storage",
        "",
        f"dataset = storage.read({str(Path(file.path).absolute())!r})",
    ]
    for axis, low, high in _ranges(file, limits):
        lines += [
            f"inside = (dataset.{axis} >= {low!r}) & (dataset.{axis} <= {high!r})",
            f"dataset = dataset.isel({_dim(file, axis)}=inside.values.nonzero()[0])",
        ]
    lines += [f"figure = dict(plotting.pictures(dataset, [{chosen!r}]))[{chosen!r}]"]
    if file.view == "line" and limits.bottom is not None and limits.top is not None:
        axis = "figure.axes[1]" if "phase" in file.dataset else "figure.axes[0]"
        lines += [f"{axis}.set_ylim({limits.bottom!r}, {limits.top!r})"]
    lines += [f'plotting.save(figure, ".", {chosen!r}, [{form!r}])', ""]
    return "\n".join(lines)


def _chosen(dataset: xr.Dataset, name: str) -> str:
    available = plotting.names(dataset)
    if name and name not in available:
        raise ValueError(f"name should be one of {', '.join(available)}; got {name!r}.")
    return name or next(iter(available))


def _dim(file: File, axis: str) -> str:
    """Dimension along which values of a parameter are."""
    return str(file.dataset[axis].dims[0])


def _ranges(file: File, limits: Limits) -> list[tuple[str, float, float]]:
    """Scanned parameters with a range that they are limited to."""
    pairs = [(limits.low, limits.high)]
    if file.view == "plane":
        pairs.append((limits.bottom, limits.top))
    ranges = []
    for axis, (low, high) in zip(file.axes, pairs, strict=False):
        if low is not None and high is not None and file.dataset[axis].size > 1:
            ranges.append((axis, low, high))
    return [] if "point" in file.dataset.dims else ranges


def _part(file: File, limits: Limits) -> xr.Dataset:
    """The points of a file that are in the window."""
    dataset = file.dataset
    for axis, low, high in _ranges(file, limits):
        values = dataset[axis].values
        inside = np.flatnonzero((values >= low) & (values <= high))
        if not inside.size:
            raise ValueError("No point is in the window.")
        dataset = dataset.isel({_dim(file, axis): inside})
    return dataset


def _limit(figure: Figure, file: File, limits: Limits) -> None:
    """Show the same range of samples as the page."""
    ends = [
        x for x in (limits.bottom, limits.top) if x is not None and math.isfinite(x)
    ]
    if file.view == "line" and len(ends) == 2:
        figure.axes[1 if "phase" in file.dataset else 0].set_ylim(*ends)
