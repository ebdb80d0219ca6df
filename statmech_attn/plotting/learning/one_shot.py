r"""One-shot images: accuracy on three data sets, order parameters, alignment.

Takes files of kind `order-parameter` of the one-shot task, one for every training,
with files of kind `posterior` and `training` beside them (docs/hdf5.md).  Curves are
means over trainings, bands their standard error.  Order parameters U of different
estimates share a scale, each over its own mean diagonal entry Tr U / |\Pi|: no prior
sets the size of U of gradient descent.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.comparison import sampled_by
from statmech_attn.plotting.frame import image_words, notes, sheets, style
from statmech_attn.plotting.frame.image_words import (
    chance_level,
    network_task,
    SETS,
    size_words,
)
from statmech_attn.plotting.frame.registry import picture, values_of
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.plotting.learning.order_parameters import (
    alignment,
    look,
    named,
    path_kernels,
    SAMPLED,
)
from statmech_attn.statistics import mean_of_known
from statmech_attn.storage import toml


SHOWN = ("omniglot", "fashion-mnist", "mnist")  # test sets, a panel each
RANKS = 50  # eigenvectors whose overlap with the labels is drawn
SPREAD = 0.16  # of the samples of one width, in powers of e
NAMED = 16  # paths that have room for their names
TRAINED = "gradient descent"


def one_shot_pictures(
    theories: Sequence[xr.Dataset],
    posteriors: Sequence[xr.Dataset] = (),
    trained: xr.Dataset | None = None,
    saddle: xr.Dataset | None = None,
) -> Iterator[tuple[str, Figure]]:
    """Every picture of a one-shot network, with its name.

    Args:
        theories: order parameters, one file for every training.
        posteriors: samples with the heads of one of them.
        trained: the trainings.
        saddle: order parameters of the examples that were sampled, where they are
            others than those of the theories.

    Raises:
        ValueError: no theory, or none with a saddle point.

    Example:
        `dict(one_shot_pictures([storage.read("theory.h5")]))["accuracy"]`
    """
    if not theories:
        raise ValueError("theories must hold one file of order parameters; got none.")
    beside = theories[0] if saddle is None else saddle
    yield "accuracy", one_shot_accuracy(theories, posteriors, trained, saddle)
    yield "order_parameters", one_shot_matrices(beside, posteriors, trained)
    yield "alignment", one_shot_alignment(theories[0])
    if "path_kernel" in theories[0]:
        yield "kernels", one_shot_kernels(theories[0])


@picture(
    "accuracy",
    "order-parameter",
    when=image_words.are_chosen,
    beside={"posteriors": SAMPLED},
)
@style.styled
def one_shot_accuracy(
    theories: xr.Dataset | Sequence[xr.Dataset],
    posteriors: Sequence[xr.Dataset] = (),
    trained: xr.Dataset | None = None,
    saddle: xr.Dataset | None = None,
    *,
    axes: PanelAxes = None,
) -> Figure:
    """Accuracy against N on every test set: theory, GP limit, samples, descent.

    The temperature of a width is the one with the best accuracy on the validation
    classes (solid), or as published on the Omniglot test classes themselves (dashed).
    Where it is an end of its grid in some training, a better one may lie beyond: the
    point has a circle.
    Samples have a temperature of their own, and stand side by side around their width;
    the cross is the saddle point at that temperature, with the same heads and examples.
    Those of another number of examples have a panel of their own, over test sets.
    A file without one of the test sets is left out of its panel.
    """
    if isinstance(theories, xr.Dataset):
        theories = [theories]
    files = [*theories] if saddle is None else [*theories, saddle]
    shown = [name for name in SHOWN if _with(theories, name)]
    same = [file for file in posteriors if not _other_size(file, theories[0])]
    others = [file for file in posteriors if _other_size(file, theories[0])]
    count = len(shown) + bool(others)
    columns = 2 if count == 4 else count
    rows = count // columns
    size = (2.2 * count + 0.4, 3.2) if rows == 1 else (style.DOUBLE, 5.4)
    sheet = sheets.panels(axes, *size, rows, columns, sharey=True)
    for axis, name in zip(sheet.axes, shown, strict=False):
        _theory(axis, _with(theories, name))
        for file, aside in zip(same, _asides(same), strict=True):
            for of_set in _with([file], name):
                x = of_set.width * np.exp(aside)
                _samples(axis, of_set, _with(files, name), x, of_set.width)
        for file in _with([trained] if trained is not None else [], name):
            _descent(axis, file)
        chance_level(axis)
        axis.set_xscale("log")
        axis.set_xlabel(style.WORDS["width"])
        axis.set_title(SETS[name])
        axis.margins(0.04, 0.06)
    if others:
        _over_sets(sheet.axes[-1], others, files, shown)
    for axis in sheet.axes[::columns]:
        axis.set_ylabel("accuracy")
    several = "bands and bars: one standard error over trainings"
    bands = [several] * (len(theories) > 1)
    bands += ["bars of samples: errors of sampling"] * bool(posteriors)
    return sheet.finish(notes.joined(*bands, size_words(theories[0], len(theories))), 3)


def _asides(files: Sequence[xr.Dataset]) -> np.ndarray:
    """Where samples of several files stand around their place."""
    return SPREAD * (np.arange(len(files)) - (len(files) - 1) / 2)


def _over_sets(
    axis: Axes,
    posteriors: Sequence[xr.Dataset],
    files: Sequence[xr.Dataset],
    shown: Sequence[str],
) -> None:
    """Samples and their saddle points over the test sets."""
    for i, name in enumerate(shown):
        for file, aside in zip(posteriors, _asides(posteriors), strict=True):
            for of_set in _with([file], name):
                at = xr.full_like(of_set.width, i)
                _samples(axis, of_set, _with(files, name), at + aside, at)
    chance_level(axis)
    axis.set_xticks(range(len(shown)), [re.split("[ ,]", SETS[n])[0] for n in shown])
    axis.set_xlim(-0.5, len(shown) - 0.5)
    widths = np.unique(np.concatenate([np.ravel(file.width) for file in posteriors]))
    sizes = np.unique([file.sizes["example"] for file in posteriors])
    values = lambda x: ", ".join(f"{v:g}" for v in x)
    axis.set_title(f"samples, $N = {values(widths)}$, $P = {values(sizes)}$")
    axis.set_xlabel("test set")


def _with(files: Sequence[xr.Dataset], name: str) -> list[xr.Dataset]:
    """What those files that have a test set say of it."""
    return [file.sel(test_set=name) for file in files if name in file.test_set.values]


def _theory(axis: Axes, theories: Sequence[xr.Dataset]) -> None:
    """Finite widths and the GP limit, at the temperatures chosen on validation."""
    for choice, dashes in (("validation", "-"), ("published", (0, (4, 2)))):
        chosen = [theory.accuracy_chosen.sel(choice=choice) for theory in theories]
        mean, error = over_trainings(chosen)
        width, first = mean.width.values, choice == "validation"
        axis.plot(
            width,
            mean,
            color=style.BLACK,
            ls=dashes,
            lw=1.2 if first else 0.7,
            label="saddle point" if first else "saddle point, published choice of $T$",
        )
        _ends(axis, theories, choice, mean)
        if first:
            axis.fill_between(
                width, mean - error, mean + error, color=style.BLACK, alpha=0.15, lw=0
            )
    limits = [theory.accuracy_chosen_gp.sel(choice="validation") for theory in theories]
    mean, error = map(float, over_trainings(limits))
    axis.axhline(mean, color=style.BLUE, lw=0.9, ls="-.", label="GP limit")
    if np.isfinite(error):
        axis.axhspan(mean - error, mean + error, color=style.BLUE, alpha=0.15, lw=0)


def _ends(
    axis: Axes, theories: Sequence[xr.Dataset], choice: str, mean: xr.DataArray
) -> None:
    """Circles where the chosen temperature is an end of its grid in some training."""
    at_end = [
        t.chosen_at_end.sel(choice=choice) for t in theories if "chosen_at_end" in t
    ]
    ends = np.any(at_end, axis=0) if at_end else np.zeros(mean.shape, bool)
    if ends.any():
        taken = axis.get_legend_handles_labels()[1]
        label = "chosen $T$ at an end of its grid"
        axis.plot(
            mean.width.values[ends],
            mean.values[ends],
            "o",
            color=style.BLACK,
            ms=4,
            mfc="none",
            mew=0.7,
            label=None if label in taken else label,
        )


def _samples(
    axis: Axes,
    posterior: xr.Dataset,
    theories: Sequence[xr.Dataset],
    place: xr.DataArray,
    own_place: xr.DataArray,
) -> None:
    """Points of a posterior, and crosses of the saddle point they belong to."""
    method = sampled_by(posterior)
    colour, marker = look(method)
    label = named(method) + _other_size(posterior, theories[0])
    posterior = posterior.assign(place=place, own_place=own_place)
    sampled = _flat(posterior)
    axis.errorbar(
        sampled.place,
        sampled.accuracy_sets,
        sampled.accuracy_sets_stderr,
        fmt=marker,
        ms=4,
        color=colour,
        mfc="white",
        mew=0.9,
        elinewidth=0.8,
        capsize=1.5,
        label=label,
        zorder=4,
    )
    same_problem = _own_theory(posterior, theories)
    if same_problem is None:
        return
    same_problem = _flat(same_problem)
    both = np.intersect1d(same_problem.point, sampled.point)
    taken = axis.get_legend_handles_labels()[1]
    label = "saddle point of these samples"
    axis.plot(
        sampled.own_place.sel(point=both),
        same_problem.accuracy_sets.sel(point=both),
        "x",
        color=style.BLACK,
        ms=4,
        zorder=5,
        label=None if label in taken else label,
    )


def _descent(axis: Axes, trained: xr.Dataset) -> None:
    """Mean over trainings at the width of the trained network."""
    mean, error = over_trainings(list(trained.accuracy_sets))
    width = network_task(trained)["width"]
    axis.errorbar(
        width,
        mean,
        error,
        fmt="D",
        ms=4,
        color=style.ORANGE,
        capsize=1.5,
        elinewidth=0.8,
        label=TRAINED,
        zorder=4,
    )


def over_trainings(
    values: Sequence[xr.DataArray],
) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean and standard error over trainings; NaN for the error of a single one."""
    joined = xr.concat(values, "training", coords="minimal", compat="override")
    mean, error = mean_of_known(joined.values)
    return joined[0].copy(data=mean), joined[0].copy(data=error)


@picture(
    "order_parameters",
    "order-parameter",
    when=image_words.are_chosen,
    beside={"posteriors": SAMPLED},
)
@style.styled
def one_shot_matrices(
    theory: xr.Dataset,
    posteriors: Sequence[xr.Dataset] = (),
    trained: xr.Dataset | None = None,
    *,
    axes: PanelAxes = None,
) -> Figure:
    """U_1 of theory, samples and gradient descent, over its mean diagonal entry.

    All are of one training.  The theory is shown at the smallest width and temperature
    of the samples, or at its smallest width and the temperature chosen there.  What has
    no U, such as a saddle point that was not found, has no panel.
    """
    matrices = dict(_matrices(theory, posteriors, trained))
    panels = {name: U for name, U in matrices.items() if np.isfinite(U).all()}
    if not panels:
        raise ValueError(f"order parameters: none of {'; '.join(matrices)} was found.")
    columns = 1 if len(panels) == 1 else 2
    rows = -(-len(panels) // columns)
    size = 2.75 * columns + 0.7, 2.8 * rows + 0.5
    sheet = sheets.panels(axes, *size, rows, columns, len(panels))
    scaled = {name: over_diagonal(U.values) for name, U in panels.items()}
    reach = max(np.abs(U).max() for U in scaled.values())
    names = [str(name) for name in theory.path_1.values]
    image = None
    for axis, (name, U) in zip(sheet.axes, scaled.items(), strict=True):
        image = axis.imshow(U, cmap="RdBu_r", vmin=-reach, vmax=reach)
        axis.set_title(name, fontsize="small")  # beside the letter of the panel
        _group(axis, names)
    sheet.figure.colorbar(
        image,  # type: ignore
        ax=sheet.axes,
        shrink=0.6,
        pad=0.02,
        label=r"$U_{\pi\pi'} \, / \, (\mathrm{Tr}\, U / |\Pi|)$",
    )
    return sheet.finish(size_words(theory, 1))


def over_diagonal(U: np.ndarray) -> np.ndarray:
    """A matrix over the mean of its diagonal."""
    return U / np.mean(np.diag(U))


def _matrices(
    theory: xr.Dataset, posteriors: Sequence[xr.Dataset], trained: xr.Dataset | None
) -> Iterator[tuple[str, xr.DataArray]]:
    point = _point(theory, posteriors)
    words = "$N = {:g}$, $T = {:g}$".format(*point)
    yield f"saddle point, {words}", _flat(theory).U_1.sel(point=point)
    for posterior in posteriors:
        sampled = _flat(posterior)
        if point not in sampled.point.values.tolist():
            continue
        label = named(sampled_by(posterior))
        label += _other_size(posterior, theory)
        yield f"{label}, {words}", sampled.U_1.sel(point=point)
    if trained is not None:
        task, restart = network_task(trained), training_of(theory)
        U = trained.U_1.sel(restart=restart)
        yield f"{TRAINED}, $N = {task['width']}$", U


def _point(theory: xr.Dataset, posteriors: Sequence[xr.Dataset]) -> tuple[float, float]:
    """Smallest width and temperature of samples that the theory has too."""
    wanted = sorted({p for file in posteriors for p in _flat(file).point.values})
    points = set(_flat(theory).point.values)
    beside = [point for point in wanted if point in points]
    if beside:
        return beside[0]
    width = smallest_width(theory)
    return width, chosen_temperature(theory, width)


def _group(axis: Axes, names: Sequence[str]) -> None:
    """Lines between first-layer heads; names of paths where there is room for them."""
    first = [name.split("-")[0] for name in names]
    starts = [i for i in range(len(first)) if i == 0 or first[i] != first[i - 1]]
    for start in starts[1:]:
        for line in (axis.axhline, axis.axvline):
            line(start - 0.5, color=style.BLACK, lw=0.5)
    centres = (np.array(starts) + np.array([*starts[1:], len(first)]) - 1) / 2
    heads = [first[start] for start in starts]
    axis.set_xticks(centres, heads)
    axis.set_xlabel(r"first-layer head of path $\pi'$")
    if len(names) <= NAMED:
        axis.set_yticks(range(len(names)), names, fontsize=7)
        axis.set_ylabel(r"path $\pi$")
    else:
        axis.set_yticks(centres, heads)
        axis.set_ylabel(r"first-layer head of path $\pi$")
    axis.tick_params(length=0)


@picture(
    "alignment",
    "order-parameter",
    when=image_words.are_chosen,
    choices={"width": values_of("width")},
)
@style.styled
def one_shot_alignment(
    theory: xr.Dataset, *, width: float | None = None, ax: Axes | None = None
) -> Figure:
    """Overlap of 50 leading kernel eigenvectors with the labels, at one N and GP."""
    width = smallest_width(theory) if width is None else width
    at_width = _at_chosen(theory, width)
    sheet = sheets.single(ax, style.SINGLE, 2.7)
    alignment(at_width, width=width, ranks=RANKS, ax=sheet.axes[0])
    sheet.axes[0].set_title(f"$T = {float(at_width.temperature):g}$")
    return sheet.finish(size_words(theory, 1))


@picture(
    "kernels",
    "order-parameter",
    when=lambda dataset: "path_kernel" in dataset and image_words.are_chosen(dataset),
)
@style.styled
def one_shot_kernels(theory: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Kernels of the paths, of the GP limit, and at the smallest width."""
    width = smallest_width(theory)
    return path_kernels(_at_chosen(theory, width), width=width, axes=axes)


def _at_chosen(theory: xr.Dataset, width: float) -> xr.Dataset:
    """The theory at the temperature that was chosen for a width."""
    if "temperature" not in theory.dims:
        return theory
    return theory.sel(temperature=chosen_temperature(theory, width))


def chosen_temperature(theory: xr.Dataset, width: float) -> float:
    """The temperature with the best validation accuracy at a width."""
    return float(theory.chosen_temperature.sel(width=width, choice="validation"))


def smallest_width(theory: xr.Dataset) -> float:
    """The smallest width at which a temperature could be chosen."""
    known = theory.chosen_temperature.sel(choice="validation").notnull()
    if not known.any():
        raise ValueError(
            "one-shot theory: no width has a saddle point, so that no temperature was "
            "chosen."
        )
    return float(theory.width[known].min())


def training_of(dataset: xr.Dataset) -> int:
    """Number of the training whose heads a file uses."""
    return toml.loads(dataset.attrs["study"])["task"].get("restart", 0)


def _other_size(posterior: xr.Dataset, theory: xr.Dataset) -> str:
    size = posterior.sizes["example"]
    return "" if size == theory.sizes["example"] else f", $P = {size}$"


def _own_theory(
    posterior: xr.Dataset, theories: Sequence[xr.Dataset]
) -> xr.Dataset | None:
    """The theory of the task that was sampled."""
    task = posterior.attrs["task"]
    return next((theory for theory in theories if theory.attrs["task"] == task), None)


def _flat(dataset: xr.Dataset) -> xr.Dataset:
    """Widths and temperatures as one dimension of pairs."""
    for name in ("width", "temperature"):
        if name not in dataset.dims:
            dataset = dataset.expand_dims(name)
    return dataset.stack(point=("width", "temperature"))
