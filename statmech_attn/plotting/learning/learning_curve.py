"""Learning curves: test error and accuracy against the number of examples.

Takes data sets of kind `learning-curve` (docs/hdf5.md) at one width and temperature.
"""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from statmech_attn.plotting.frame import notes, sheets, style
from statmech_attn.plotting.frame.registry import has_variable, picture, points
from statmech_attn.plotting.frame.sheets import PanelAxes
from statmech_attn.plotting.learning.order_parameters import look, named


SINGLE = ("width", "temperature")
LIMIT = "gp"
WORDS = {
    "error": "mean squared test error",
    "accuracy": "test accuracy",
    "variance": "posterior variance of $f$",
}
WIDE = 10  # largest over smallest P from which their axis is logarithmic


@picture("learning_curve", "learning-curve", pages=points)
@style.styled
def error_against_examples(dataset: xr.Dataset, *, axes: PanelAxes = None) -> Figure:
    """Test error and accuracy against P: theory, samples, and the GP limit.

    Bands and bars are standard errors over training sets; a vertical line is at
    P = |Pi| N_0, where the error has its peak at a low temperature.

    Args:
        dataset: a result of kind `learning-curve`.
        axes: two to draw on, for errors and accuracies.

    Raises:
        ValueError: the result holds several widths or temperatures.
    """
    sheet = sheets.panels(axes, style.DOUBLE, 2.9, 1, 2)
    curves = _alone(dataset)
    for axis, name in zip(sheet.axes, ("error", "accuracy"), strict=True):
        _against_examples(axis, curves, name)
    sheet.axes[0].set_yscale("log")
    return sheet.finish(_note(curves), 4)


@picture(
    "posterior_variance", "learning-curve", when=has_variable("variance"), pages=points
)
@style.styled
def variance_against_examples(dataset: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Posterior variance of f against P, mean over the test set."""
    sheet = sheets.single(ax, style.SINGLE, 2.7)
    curves = _alone(dataset)
    _against_examples(sheet.axes[0], curves, "variance")
    sheet.axes[0].set_yscale("log")
    return sheet.finish(_note(curves), 2)


def _alone(dataset: xr.Dataset) -> xr.Dataset:
    """The curves of the one width and temperature that a result holds."""
    for name in SINGLE:
        if dataset.sizes.get(name, 1) > 1:
            raise ValueError(
                f"this picture shows one {name}; select one of "
                f"{dataset[name].values.tolist()}."
            )
    return dataset.squeeze([n for n in SINGLE if n in dataset.dims])


def _against_examples(axis: Axes, curves: xr.Dataset, name: str) -> None:
    """Every estimate of a quantity over the number of examples."""
    for estimate in curves.estimate.values:
        _drawn(axis, curves.sel(estimate=estimate), name, str(estimate))
    _peak(axis, curves)
    axis.set_xlabel("training examples $P$")
    axis.set_ylabel(WORDS[name])
    axis.margins(0.03, 0.06)


def _note(curves: xr.Dataset) -> str:
    sets = curves.sizes["training_set"]
    bars = f"standard errors over {sets} training sets" if sets > 1 else ""
    bars += " with examples in common" if bars and curves.shared else ""
    return notes.joined(bars, *notes.fixed(curves), _missing(curves))


def _missing(dataset: xr.Dataset) -> str:
    """Numbers of examples without a saddle point in some training set."""
    converged = (dataset.result == 0).all("training_set").values
    P = ", ".join(str(P) for P in dataset.examples.values[~converged])
    return f"no saddle point found at $P = {P}$" if P else ""


def _drawn(axis: Axes, curve: xr.Dataset, name: str, estimate: str) -> None:
    """Mean over training sets; a band of theory, bars of samples."""
    mean, error = curve[name].values, curve[f"{name}_stderr"].values
    (colour, marker), label = look(estimate), named(estimate)
    P = curve.examples.values
    if marker:
        axis.errorbar(
            P,
            mean,
            error,
            fmt=marker,
            color=colour,
            label=label,
            zorder=3,
            **style.OPEN,
        )
        return
    dashes = {LIMIT: "--", "corrected": (0, (4, 2))}.get(estimate, "-")
    axis.plot(P, mean, color=colour, ls=dashes, marker=".", ms=5, label=label)
    axis.fill_between(P, mean - error, mean + error, color=colour, alpha=0.15, lw=0)


def _peak(axis: Axes, dataset: xr.Dataset) -> None:
    """A line at P = |Pi| N_0 where it lies among the examples."""
    P = dataset.examples.values
    if P[-1] >= WIDE * P[0]:
        axis.set_xscale("log")
        style.log_ticks(axis.xaxis)
    if "rank" in dataset and P[0] <= (rank := float(dataset["rank"])) <= P[-1]:
        words = r"$P = |\Pi| N_0$"
        axis.axvline(rank, color=style.GREY, lw=0.8, ls=":", zorder=0, label=words)
