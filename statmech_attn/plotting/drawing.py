"""Everything that a file of its kind holds, as pictures."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import kinds
from statmech_attn.plotting.style import save


PER_PAGE = 6  # values of beta
Pages = Iterator[tuple[str, xr.Dataset]]
Pictures = Iterator[tuple[str, Figure]]


def _one_page(dataset: xr.Dataset) -> Pages:
    yield "", dataset


def temperatures(dataset: xr.Dataset) -> Pages:
    """One page for every temperature; a suffix when there are several."""
    if dataset.sizes.get("temperature", 1) == 1:
        yield "", dataset
        return
    for number in range(dataset.sizes["temperature"]):
        yield f"_{number + 1}", dataset.isel(temperature=number)


def points(dataset: xr.Dataset) -> Pages:
    """One page for every width and temperature; suffixes where there are several."""
    for number in range(dataset.sizes.get("width", 1)):
        part = dataset.isel(width=number, missing_dims="ignore")
        suffix = f"_{number + 1}" if dataset.sizes.get("width", 1) > 1 else ""
        yield from ((suffix + ending, page) for ending, page in temperatures(part))


def pages_of_beta(dataset: xr.Dataset) -> Pages:
    """Values of beta that fit on a page; a suffix when there are several pages."""
    return _pages(dataset, "beta")


def _pages_of_own(dataset: xr.Dataset) -> Pages:
    """Pages of a scan over the parameter of one's own system."""
    return _pages(dataset, str(dataset.observed.dims[0]))


def _pages_of_points(dataset: xr.Dataset) -> Pages:
    """Points of a study of patterns growing with N that fit on a page."""
    from statmech_attn.plotting import extensive

    return extensive.pages(dataset)


def _pages(dataset: xr.Dataset, name: str) -> Pages:
    count = dataset.sizes[name]
    for page, first in enumerate(range(0, count, PER_PAGE), start=1):
        suffix = f"_{page}" if count > PER_PAGE else ""
        yield suffix, dataset.isel({name: slice(first, first + PER_PAGE)})


class Picture(NamedTuple):
    """A picture of a file.

    Attributes:
        name: of the files that it is saved as, without their endings.
        draw: "module:name" of a function of a data set that gives a figure, or the
            function.
        when: which files have it.
        pages: parts of a file that have one each, with the endings of their names.
    """

    name: str
    draw: Any
    when: Callable[[xr.Dataset], bool] = lambda dataset: True
    pages: Callable[[xr.Dataset], Pages] = _one_page

    @property
    def function(self) -> str:
        """Name of the function that draws it."""
        draw = self.draw
        return draw.rpartition(":")[2] if isinstance(draw, str) else draw.__name__

    def figure(self, page: xr.Dataset, **options: Any) -> Figure:
        """The figure of one page.

        Args:
            page: part of a result that has a figure of its own.
        """
        draw = self.draw
        if isinstance(draw, str):
            module, _, name = draw.partition(":")
            draw = getattr(importlib.import_module(module), name)
        return draw(page, **options)


def draw(dataset: xr.Dataset, folder: str | Path) -> list[Path]:
    """Draw all pictures of a result file into a folder, as PNG and PDF.

    Args:
        dataset: a result.
        folder: where to write; made if it is missing.

    Returns:
        Paths of the files.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `draw(storage.read("scan.h5"), "figures")` writes figures/bifurcation.png, ...
    """
    return [
        path
        for name, figure in pictures(dataset)
        for path in save(figure, folder, name)
    ]


def pictures(dataset: xr.Dataset, only: Sequence[str] | None = None) -> Pictures:
    """All pictures of a result file, with their names.

    Args:
        dataset: a result.
        only: names of those that are drawn; all when omitted.

    Returns:
        Figures by name.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `dict(pictures(storage.read("scan.h5")))["bifurcation"]`
    """
    return _drawn(dataset, _table(dataset), only)


def names(dataset: xr.Dataset) -> dict[str, str]:
    """Names of the pictures of a result file, and of the functions that draw them.

    Names are those of the files, without the numbers of pages.

    Args:
        dataset: a result.

    Raises:
        ValueError: a kind of file that has no pictures.

    Example:
        `names(storage.read("scan.h5"))` gives such as
        `{"bifurcation": "bifurcation_diagram"}`.
    """
    table = _table(dataset)
    return {row.name: row.function for row in table if row.when(dataset)}


def _table(dataset: xr.Dataset) -> Sequence[Picture]:
    kind = dataset.attrs.get("kind")
    row = kinds.of_file(kind, dataset.dims)
    table = kinds.KINDS.part(row, "pictures") if row else None
    if not table:
        names = ", ".join(kinds.KINDS.names())
        raise ValueError(f"no pictures of kind {kind!r}; known kinds: {names}.")
    return table


def _drawn(
    dataset: xr.Dataset, table: Sequence[Picture], only: Sequence[str] | None = None
) -> Pictures:
    for picture in table:
        if not picture.when(dataset) or (only is not None and picture.name not in only):
            continue
        for suffix, page in picture.pages(dataset):
            yield f"{picture.name}{suffix}", picture.figure(page)


def learning_pictures(
    dataset: xr.Dataset,
    posteriors: Sequence[xr.Dataset] = (),
    *,
    widths: Sequence[float] | None = None,
) -> Pictures:
    """Every picture of order parameters at one temperature, with its name.

    Args:
        dataset: a result of kind `order-parameter`.
        posteriors: results of kind `posterior`, drawn beside the accuracies.
        widths: those whose U_1 is drawn, as in `order_parameter_matrices`.

    Example:
        `dict(learning_pictures(storage.read("saddle.h5")))["accuracy"]`
    """
    options = {
        "accuracy": {"posteriors": posteriors},
        "order_parameters": {"widths": widths},
    }
    for picture in ORDER_PARAMETER:
        if picture.when(dataset):
            yield picture.name, picture.figure(dataset, **options.get(picture.name, {}))


def pruning_pictures(dataset: xr.Dataset) -> Pictures:
    """Every picture of a pruning file, with its name.

    Args:
        dataset: a result of kind `pruning`.

    Example:
        `dict(pruning_pictures(storage.read("pruning.h5")))["pruned_heads"]`
    """
    return _drawn(dataset, PRUNING)


def _has(name: str) -> Callable[[xr.Dataset], bool]:
    """Whether a file has a variable."""
    return lambda dataset: name in dataset


def _one_shot(dataset: xr.Dataset) -> bool:
    """Whether a temperature was chosen for each width, on images of a split."""
    from statmech_attn.plotting import images

    return "accuracy_chosen" in dataset and images.are_shown(dataset)


def _plain(dataset: xr.Dataset) -> bool:
    return not _one_shot(dataset)


def _several_sets(dataset: xr.Dataset) -> bool:
    """Whether it is about several test sets of another task."""
    from statmech_attn.plotting import images

    return "accuracy_sets" in dataset and not images.are_shown(dataset)


def _plane(dataset: xr.Dataset) -> bool:
    """Whether two parameters were scanned."""
    from statmech_attn.plotting.bifurcation import parameters

    return len(parameters(dataset)) == 2


def _line(dataset: xr.Dataset) -> bool:
    return not _plane(dataset)


def _own(dataset: xr.Dataset) -> bool:
    from statmech_attn.plotting.labels import is_own

    return is_own(dataset)


def one_shot_accuracy(dataset: xr.Dataset) -> Figure:
    """Accuracies of one file (`statmech_attn.plotting.one_shot`)."""
    from statmech_attn.plotting import one_shot

    return one_shot.one_shot_accuracy([dataset])


_HERE = "statmech_attn.plotting"
TRAJECTORY = (
    Picture(
        "trajectories", f"{_HERE}.trajectory:trajectory_windows", pages=pages_of_beta
    ),
    Picture("spectra", f"{_HERE}.trajectory:spectra", pages=pages_of_beta),
    Picture(
        "planes", f"{_HERE}.trajectory:phase_planes", pages=pages_of_beta,
        when=lambda dataset: dataset.sizes["pattern"] > 1,
    ),
)  # fmt: skip
OWN_TRAJECTORY = (
    Picture("trajectories", f"{_HERE}.systems:trajectories", pages=_pages_of_own),
)
DIAGRAM = (
    Picture("phase_diagram", f"{_HERE}.phases:phase_diagram", _plane),
    Picture("bifurcation", f"{_HERE}.bifurcation:bifurcation_diagram", _line),
)
BIFURCATION = (
    *DIAGRAM,
    Picture(
        "classifiers",
        f"{_HERE}.phases:classifier_disagreement",
        lambda dataset: "phase" in dataset and _line(dataset) and not _own(dataset),
    ),
)
CONTINUATION = (
    Picture("continuation", f"{_HERE}.continuation:continuation_diagram"),
    Picture(
        "critical_curves", f"{_HERE}.continuation:critical_curves", _has("curve_kind")
    ),
)
EXTENSIVE = (
    Picture("overlaps", f"{_HERE}.extensive:overlaps_in_time", pages=_pages_of_points),
    Picture(
        "crosstalk", f"{_HERE}.extensive:crosstalk_in_time", pages=_pages_of_points
    ),
    Picture(
        "correlations", f"{_HERE}.extensive:two_times", _has("C"), _pages_of_points
    ),
)
EXTENSIVE_SIMULATION = (
    Picture("overlaps", f"{_HERE}.extensive:overlaps_in_time", pages=_pages_of_points),
    Picture(
        "correlations", f"{_HERE}.extensive:two_times", _has("C_mean"), _pages_of_points
    ),
)
CAPACITY = (Picture("capacity", f"{_HERE}.extensive:capacities"),)
EXTENSIVE_COMPARED = (Picture("agreement", f"{_HERE}.extensive:extensive_agreement"),)
MONTE_CARLO = (
    Picture("simulation", f"{_HERE}.comparison:finite_size", pages=pages_of_beta),
)
ORDER_PARAMETER = (
    Picture(
        "accuracy", f"{_HERE}.learning:accuracy_against_width", _plain, temperatures
    ),
    Picture(
        "order_parameters", f"{_HERE}.learning:order_parameter_matrices", _plain,
        temperatures,
    ),
    Picture("alignment", f"{_HERE}.learning:alignment", _plain, temperatures),
    Picture(
        "kernels", f"{_HERE}.learning:path_kernels",
        lambda dataset: "path_kernel" in dataset and _plain(dataset), temperatures,
    ),
    Picture("test_sets", f"{_HERE}.several_sets:accuracy_on_sets", _several_sets),
    Picture("accuracy", one_shot_accuracy, _one_shot),
    Picture("order_parameters", f"{_HERE}.one_shot:one_shot_matrices", _one_shot),
    Picture("alignment", f"{_HERE}.one_shot:one_shot_alignment", _one_shot),
    Picture(
        "kernels", f"{_HERE}.one_shot:one_shot_kernels",
        lambda dataset: "path_kernel" in dataset and _one_shot(dataset),
    ),
)  # fmt: skip
POSTERIOR = (
    Picture(
        "accuracy", f"{_HERE}.learning:accuracy_against_width", pages=temperatures
    ),
    Picture(
        "order_parameters", f"{_HERE}.learning:order_parameter_matrices",
        pages=temperatures,
    ),
    Picture(
        "test_sets", f"{_HERE}.several_sets:accuracy_on_sets", _several_sets,
        temperatures,
    ),
)  # fmt: skip
TRAINING = (Picture("training", f"{_HERE}.training:training", pages=temperatures),)
LEARNING_CURVE = (
    Picture(
        "learning_curve", f"{_HERE}.learning_curve:error_against_examples", pages=points
    ),
)
ONE_SHOT_TRAINING = (
    Picture("learning_curves", f"{_HERE}.training_curves:learning_curves"),
)
PRUNING = (
    Picture("pruned_heads", f"{_HERE}.pruning:pruned_heads"),
    Picture("pruning_ranks", f"{_HERE}.pruning:pruning_ranks"),
    Picture("cumulative_pruning", f"{_HERE}.pruning:cumulative_pruning"),
)
MODEL_SELECTION = (
    Picture("model_selection", f"{_HERE}.selection:evidence_and_validation"),
)
HEAD_SCORES = (
    Picture("head_scores", f"{_HERE}.head_scores:head_scores"),
    Picture("heads_together", f"{_HERE}.head_scores:heads_together"),
)
BASINS = (
    Picture("basins", f"{_HERE}.basins:basin_fractions"),
    Picture("lifetimes", f"{_HERE}.basins:lifetimes"),
)
HYSTERESIS = (Picture("hysteresis", f"{_HERE}.basins:hysteresis"),)
COMPARISON = (Picture("agreement", f"{_HERE}.comparison:agreement"),)
POSTERIORS_COMPARED = (
    Picture("finite_width", f"{_HERE}.learning:finite_width", pages=temperatures),
)
RUNNING_LYAPUNOV = (
    Picture(
        "running_lyapunov", f"{_HERE}.lyapunov:running_lyapunov", pages=pages_of_beta
    ),
)
CHAOS_INDICATORS = (
    Picture("chaos_indicators", f"{_HERE}.indicators:chaos_indicators"),
    Picture("finite_series", f"{_HERE}.indicators:finite_series"),
)
BENCHMARK = (Picture("growth", f"{_HERE}.learning:growth"),)
