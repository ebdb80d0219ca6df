"""Everything that a file of its kind holds, as pictures."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.plotting.basins import basin_fractions, hysteresis, lifetimes
from statmech_attn.plotting.bifurcation import bifurcation_diagram, parameters
from statmech_attn.plotting.comparison import agreement, finite_size
from statmech_attn.plotting.continuation import continuation_diagram, critical_curves
from statmech_attn.plotting.indicators import chaos_indicators, finite_series
from statmech_attn.plotting.learning import (
    accuracy_against_width,
    alignment,
    finite_width,
    growth,
    order_parameter_matrices,
    path_kernels,
)
from statmech_attn.plotting.lyapunov import running_lyapunov
from statmech_attn.plotting.one_shot import one_shot_pictures
from statmech_attn.plotting.phases import classifier_disagreement, phase_diagram
from statmech_attn.plotting.pruning import (
    cumulative_pruning,
    pruned_heads,
    pruning_ranks,
)
from statmech_attn.plotting.style import save
from statmech_attn.plotting.training import training
from statmech_attn.plotting.training_curves import learning_curves
from statmech_attn.plotting.trajectory import phase_planes, spectra, trajectory_windows


PER_PAGE = 6  # values of beta


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
        path
        for name, figure in KINDS[kind](dataset)
        for path in save(figure, folder, name)
    ]


Pictures = Iterator[tuple[str, Figure]]


def _bifurcation(dataset: xr.Dataset) -> Pictures:
    if len(parameters(dataset)) == 2:
        yield "phase_diagram", phase_diagram(dataset)
        return
    yield "bifurcation", bifurcation_diagram(dataset)
    if "phase" in dataset:
        yield "classifiers", classifier_disagreement(dataset)


def _continuation(dataset: xr.Dataset) -> Pictures:
    yield "continuation", continuation_diagram(dataset)
    if "curve_kind" in dataset:
        yield "critical_curves", critical_curves(dataset)


def _trajectory(dataset: xr.Dataset) -> Pictures:
    for suffix, page in _pages(dataset):
        yield f"trajectories{suffix}", trajectory_windows(page)
        yield f"spectra{suffix}", spectra(page)
        if page.sizes["pattern"] > 1:
            yield f"planes{suffix}", phase_planes(page)


def _running_lyapunov(dataset: xr.Dataset) -> Pictures:
    for suffix, page in _pages(dataset):
        yield f"running_lyapunov{suffix}", running_lyapunov(page)


def _chaos_indicators(dataset: xr.Dataset) -> Pictures:
    yield "chaos_indicators", chaos_indicators(dataset)
    yield "finite_series", finite_series(dataset)


def _monte_carlo(dataset: xr.Dataset) -> Pictures:
    for suffix, page in _pages(dataset):
        yield f"simulation{suffix}", finite_size(page)


def _comparison(dataset: xr.Dataset) -> Pictures:
    if "estimate" not in dataset.dims:
        yield "agreement", agreement(dataset)
        return
    for suffix, page in _temperatures(dataset):
        yield f"finite_width{suffix}", finite_width(page)


def _order_parameter(dataset: xr.Dataset) -> Pictures:
    if "accuracy_chosen" in dataset:
        yield from one_shot_pictures([dataset])
        return
    for suffix, page in _temperatures(dataset):
        for name, picture in learning_pictures(page):
            yield f"{name}{suffix}", picture


def learning_pictures(
    dataset: xr.Dataset,
    posteriors: Sequence[xr.Dataset] = (),
    *,
    widths: Sequence[float] | None = None,
) -> Pictures:
    """Every picture of order parameters at one temperature, with its name.

    Args:
        posteriors: samples, drawn beside the accuracies.
        widths: those whose U_1 is drawn, as in `order_parameter_matrices`.

    Example:
        `dict(learning_pictures(storage.read("saddle.h5")))["accuracy"]`
    """
    yield "accuracy", accuracy_against_width(dataset, posteriors)
    yield "order_parameters", order_parameter_matrices(dataset, widths=widths)
    yield "alignment", alignment(dataset)
    if "path_kernel" in dataset:
        yield "kernels", path_kernels(dataset)


def _posterior(dataset: xr.Dataset) -> Pictures:
    for suffix, page in _temperatures(dataset):
        yield f"accuracy{suffix}", accuracy_against_width(page)
        yield f"order_parameters{suffix}", order_parameter_matrices(page)


def _training(dataset: xr.Dataset) -> Pictures:
    if "accuracy_validation" in dataset:
        yield "learning_curves", learning_curves(dataset)
        return
    for suffix, page in _temperatures(dataset):
        yield f"training{suffix}", training(page)


def pruning_pictures(dataset: xr.Dataset) -> Pictures:
    """Every picture of a pruning file, with its name.

    Example:
        `dict(pruning_pictures(storage.read("pruning.h5")))["pruned_heads"]`
    """
    yield "pruned_heads", pruned_heads(dataset)
    yield "pruning_ranks", pruning_ranks(dataset)
    yield "cumulative_pruning", cumulative_pruning(dataset)


def _benchmark(dataset: xr.Dataset) -> Pictures:
    yield "growth", growth(dataset)


def _basins(dataset: xr.Dataset) -> Pictures:
    yield "basins", basin_fractions(dataset)
    yield "lifetimes", lifetimes(dataset)


def _hysteresis(dataset: xr.Dataset) -> Pictures:
    yield "hysteresis", hysteresis(dataset)


def _temperatures(dataset: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """One page for every temperature; a suffix when there are several."""
    if dataset.sizes.get("temperature", 1) == 1:
        yield "", dataset
        return
    for number in range(dataset.sizes["temperature"]):
        yield f"_{number + 1}", dataset.isel(temperature=number)


def _pages(dataset: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Values of beta that fit on a page; a suffix when there are several pages."""
    count = dataset.sizes["beta"]
    for page, first in enumerate(range(0, count, PER_PAGE), start=1):
        suffix = f"_{page}" if count > PER_PAGE else ""
        yield suffix, dataset.isel(beta=slice(first, first + PER_PAGE))


KINDS: dict[str, Callable[[xr.Dataset], Pictures]] = {
    "bifurcation": _bifurcation,
    "continuation": _continuation,
    "trajectory": _trajectory,
    "running-lyapunov": _running_lyapunov,
    "chaos-indicators": _chaos_indicators,
    "monte-carlo": _monte_carlo,
    "comparison": _comparison,
    "order-parameter": _order_parameter,
    "posterior": _posterior,
    "training": _training,
    "pruning": pruning_pictures,
    "benchmark": _benchmark,
    "basins": _basins,
    "hysteresis": _hysteresis,
}
