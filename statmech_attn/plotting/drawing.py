"""Everything that a file of its kind holds, as pictures."""

from collections.abc import Callable, Iterator
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.plotting.bifurcation import bifurcation_diagram, parameters
from statmech_attn.plotting.phases import classifier_disagreement, phase_diagram
from statmech_attn.plotting.style import save


def draw(dataset: xr.Dataset, folder: str | Path) -> list[Path]:
    """Draw all pictures of a result file into a folder, as PNG and PDF.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `draw(storage.read("scan.h5"), "figures")` writes figures/bifurcation.png, ...
    """
    kind = dataset.attrs.get("kind")
    if kind not in KINDS:
        raise ValueError(
            f"no pictures of kind {kind!r}; known kinds: {', '.join(KINDS)}."
        )
    return [
        path for name, made in KINDS[kind](dataset) for path in save(made, folder, name)
    ]


Pictures = Iterator[tuple[str, Figure]]


def _bifurcation(dataset: xr.Dataset) -> Pictures:
    if len(parameters(dataset)) == 2:
        yield "phase_diagram", phase_diagram(dataset)
        return
    yield "bifurcation", bifurcation_diagram(dataset)
    if "phase" in dataset:
        yield "classifiers", classifier_disagreement(dataset)


KINDS: dict[str, Callable[[xr.Dataset], Pictures]] = {"bifurcation": _bifurcation}
