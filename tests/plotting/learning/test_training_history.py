"""Learning curves show every training that there is."""

import json

import numpy as np
import pytest
import xarray as xr

from statmech_attn.plotting.frame import style
from statmech_attn.plotting.learning.training_history import learning_curves


STEPS = np.arange(0, 500, 50)


def trainings(*levels: float) -> xr.Dataset:
    """Restarts whose losses fall from 9 to a level at once; NaN: not computed."""
    level = np.array(levels)[:, None]
    along = ("restart", "step")
    loss = np.where(STEPS == 0, 9.0, level) + 0 * level
    accuracy = np.where(np.isfinite(loss), 0.6, np.nan)
    task = {"characters": 77, "channels": 1, "patch": 8}
    return xr.Dataset(
        {
            "loss": (along, loss),
            "loss_validation": (along, 1.1 * loss),
            "accuracy_validation": (along, accuracy),
            "accuracy_sets": (("restart", "test_set"), accuracy[:, :1]),
            "best_step": ("restart", np.full(len(levels), 50)),
        },
        {"restart": np.arange(len(levels)), "step": STEPS, "test_set": ["omniglot"]},
        {"kind": "training", "task": json.dumps(task)},
    )


@pytest.mark.parametrize("levels", ((0.7,), (0.7, 0.9), (0.7, 2.0), (3.0,), (1e6, 0.5)))
def test_most_of_every_curve_can_be_seen(levels):
    axis = learning_curves(trainings(*levels)).axes[0]
    low, high = axis.get_ylim()
    curves = [line.get_ydata() for line in axis.lines if len(line.get_ydata()) > 2]
    assert len(curves) == 2 * len(levels)
    for curve in curves:
        assert np.mean((low < curve) & (curve < high)) > 0.5
    assert axis.get_yscale() == ("log" if max(levels) > 1.3 else "linear")


def test_the_caption_counts_the_trainings_that_are_drawn():
    figure = learning_curves(trainings(0.7, np.nan, 0.8))
    assert figure.get_supxlabel() == (
        "77 training characters (published: 1028), $N_0 = 64$, 2 trainings"
    )
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[-2:] == ["restart 0", "restart 2"]


def test_trainings_that_are_more_than_the_colours_are_grey_and_not_named():
    figure = learning_curves(trainings(*np.linspace(0.6, 0.9, 7)))
    (legend,) = figure.legends
    assert not any("restart" in text.get_text() for text in legend.get_texts())
    for axis in figure.axes:
        curves = [line for line in axis.lines if len(line.get_ydata()) > 2]
        assert {line.get_color() for line in curves} == {style.DARK}
