"""Pictures of one-shot learning show the numbers of their files."""

import json

import numpy as np
import pytest
import xarray as xr

from statmech_attn import plotting
from statmech_attn.plotting.frame import image_words
from statmech_attn.plotting.learning import one_shot
from statmech_attn.plotting.learning.one_shot import (
    one_shot_accuracy,
    one_shot_alignment,
    one_shot_matrices,
)


WIDTHS = np.array([10.0, 100.0, 1000.0])
TEMPERATURES = np.array([0.1, 0.5])
SETS = ["omniglot", "omniglot-validation", "fashion-mnist", "mnist"]
PATHS = [f"{a}-{b}" for a in range(1, 5) for b in range(1, 5)]
P, N_0 = 40, 64
TRAINED = {
    "name": "one-shot",
    "image_size": 32,
    "patch": 8,
    "channels": 1,
    "split": "small",
    "characters": 179,
    "heads": [4, 4],
    "width": 64,
    "key_size": 32,
}


def of_network(restart: int, *, n_train: int = P, **changed) -> dict[str, str]:
    """Attributes of a file about the network of one training."""
    task = {
        "name": "one-shot",
        "n_train": n_train,
        "training": TRAINED | changed,
        "attention_sha256": f"of network {restart}",
    }
    study = f"[task]\nrestart = {restart}\n"
    return {"task": json.dumps(task), "study": study}


def matrix(seed: int) -> np.ndarray:
    """A positive definite matrix over 16 paths, larger among equal first heads."""
    factor = np.random.default_rng(seed).normal(size=(16, 12))
    blocks = np.kron(np.eye(4), np.ones((4, 4)))
    return factor @ factor.T / 12 * (0.3 + 0.7 * blocks) + np.eye(16)


def theory_of(restart: int) -> xr.Dataset:
    """Order parameters with the heads of one training."""
    rng = np.random.default_rng(restart)
    point, grid = ("width", "temperature"), (3, 2)
    choice = np.array([[0.5, 0.1], [0.1, 0.1], [0.1, 0.5]])
    U = np.stack([[matrix(restart + 10 * i + j) for j in range(2)] for i in range(3)])
    return xr.Dataset(
        {
            "U_1": ((*point, "path_1", "path_1_pair"), U),
            "accuracy_sets": ((*point, "test_set"), rng.uniform(0.5, 1, (*grid, 4))),
            "accuracy_chosen": (
                ("width", "choice", "test_set"),
                rng.uniform(0.5, 1, (3, 2, 4)),
            ),
            "chosen_temperature": (("width", "choice"), choice),
            "accuracy_chosen_gp": (("choice", "test_set"), rng.uniform(0.5, 1, (2, 4))),
            "kernel_overlap": ((*point, "rank"), rng.uniform(size=(*grid, P))),
            "kernel_overlap_gp": ("rank", rng.uniform(size=P)),
            "y": ("example", np.ones(P)),
        },
        {
            "width": WIDTHS,
            "temperature": TEMPERATURES,
            "test_set": SETS,
            "choice": ["validation", "published"],
            "path_1": PATHS,
            "path_1_pair": PATHS,
        },
        {"kind": "order-parameter"} | of_network(restart),
    )


@pytest.fixture
def theories():
    return [theory_of(restart) for restart in (0, 1, 3)]


@pytest.fixture
def sampled():
    """The exact law with the heads of training 1, at N = 10 and T = 0.5."""
    return xr.Dataset(
        {
            "U_1": (("width", "path_1", "path_1_pair"), matrix(5)[None]),
            "accuracy_sets": (("width", "test_set"), [[0.8, 0.7, 0.6, 0.55]]),
            "accuracy_sets_stderr": (("width", "test_set"), [[0.02, 0.03, 0.04, 0.05]]),
            "y": ("example", np.ones(P)),
        },
        {
            "width": [10.0],
            "temperature": 0.5,
            "test_set": SETS,
            "path_1": PATHS,
            "path_1_pair": PATHS,
        },
        {"kind": "posterior", "method": "order-parameter"} | of_network(1),
    )


@pytest.fixture
def trained():
    accuracy = np.random.default_rng(9).uniform(0.5, 1, (4, 4))
    return xr.Dataset(
        {
            "U_1": (
                ("restart", "path_1", "path_1_pair"),
                1e-3 * np.stack([matrix(20 + r) for r in range(4)]),
            ),
            "accuracy_sets": (("restart", "test_set"), accuracy),
        },
        {"restart": range(4), "test_set": SETS, "path_1": PATHS, "path_1_pair": PATHS},
        {"kind": "training", "task": json.dumps(TRAINED)},
    )


def lines_of(axis):
    return {str(line.get_label()): line for line in axis.lines}


@pytest.mark.parametrize("panel, name", list(enumerate(one_shot.SHOWN)))
def test_accuracy_is_the_mean_over_trainings_with_its_error(theories, panel, name):
    axis = one_shot_accuracy(theories).axes[panel]
    lines = lines_of(axis)
    over = np.stack([t.accuracy_chosen.sel(test_set=name) for t in theories])
    mean, error = over.mean(0), over.std(0, ddof=1) / np.sqrt(3)
    for i, words in enumerate(("", ", published choice of $T$")):
        line = lines[f"saddle point{words}"]
        assert line.get_linestyle() == ("--" if words else "-")
        np.testing.assert_array_equal(line.get_xdata(), WIDTHS)
        np.testing.assert_allclose(line.get_ydata(), mean[:, i])
    band = axis.collections[0].get_paths()[0].vertices
    at = band[np.isclose(band[:, 0], 100.0), 1]
    edges = mean[1, 0] + error[1, 0] * np.array([-1, 1])
    np.testing.assert_allclose([at.min(), at.max()], edges)
    limit = np.mean([t.accuracy_chosen_gp.sel(test_set=name)[0] for t in theories])
    assert lines["GP limit"].get_ydata()[0] == pytest.approx(limit)


def test_temperatures_at_an_end_of_their_grid_have_circles(theories):
    """Where a training has one; files of earlier versions do not say."""
    ends = np.zeros((3, 3, 2), bool)
    ends[1, 0, 0] = ends[2, 2, 0] = ends[0, 1, 1] = True
    marked = [
        theory.assign(chosen_at_end=(("width", "choice"), end))
        for theory, end in zip(theories, ends, strict=True)
    ]
    axis = one_shot_accuracy(marked).axes[0]
    circles = [line for line in axis.lines if line.get_marker() == "o"]
    places = [list(line.get_xdata()) for line in circles]
    assert places == [[10.0, 1000.0], [100.0]]
    mean = np.mean([t.accuracy_chosen.sel(test_set="omniglot") for t in theories], 0)
    np.testing.assert_allclose(circles[0].get_ydata(), mean[::2, 0])
    words = "chosen $T$ at an end of its grid"
    assert [line.get_label() == words for line in circles] == [True, False]
    assert words not in lines_of(one_shot_accuracy(theories).axes[0])


def test_samples_stand_beside_the_saddle_point_of_their_own_training(
    theories, sampled, trained
):
    axes = one_shot_accuracy(theories, [sampled], trained).axes
    for axis, name in zip(axes, one_shot.SHOWN, strict=True):
        exact, descent = axis.containers
        here = float(sampled.accuracy_sets.sel(test_set=name)[0])
        assert list(exact[0].get_ydata()) == [here]
        (ends,) = exact[2][0].get_segments()
        error = float(sampled.accuracy_sets_stderr.sel(test_set=name)[0])
        assert np.ptp(ends[:, 1]) == pytest.approx(2 * error)
        own = lines_of(axis)["saddle point of these samples"]
        expected = theories[1].accuracy_sets.sel(width=10, temperature=0.5)
        assert list(own.get_ydata()) == [float(expected.sel(test_set=name))]
        assert descent[0].get_xdata() == TRAINED["width"]
        mean = trained.accuracy_sets.sel(test_set=name).mean()
        assert descent[0].get_ydata()[0] == pytest.approx(float(mean))


def test_samples_of_other_data_say_so_and_have_no_saddle_point(theories, sampled):
    sampled.attrs |= of_network(1, n_train=20)
    figure = one_shot_accuracy(theories, [sampled.isel(example=slice(20))])
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert "exact law, $P = 20$" in words
    assert "saddle point of these samples" not in words


def test_samples_of_other_data_stand_beside_a_saddle_point_of_their_own(
    theories, sampled
):
    saddle = theory_of(7).isel(width=[0], temperature=1)
    for file in (saddle, sampled):
        file.attrs |= of_network(1, n_train=20)
    figures = plotting.one_shot_pictures(theories, [sampled], saddle=saddle)
    pictures = dict(figures)
    own = lines_of(pictures["accuracy"].axes[0])["saddle point of these samples"]
    assert list(own.get_ydata()) == list(saddle.accuracy_sets[:, 0])
    image = pictures["order_parameters"].axes[0].images[0]
    U = saddle.U_1[0]
    np.testing.assert_allclose(image.get_array(), U / np.trace(U) * 16)


def test_samples_of_other_data_have_a_panel_over_test_sets(theories, sampled):
    """So that they are not read as a refutation of curves of more examples."""
    saddle = theory_of(7).isel(width=[0], temperature=1)
    few = sampled.isel(example=slice(20))
    for file in (saddle, few):
        file.attrs |= of_network(1, n_train=20)
    *curves, own = one_shot_accuracy(theories, [few], saddle=saddle).axes
    assert len(curves) == 3 and not any(axis.containers for axis in curves)
    for i, (points, name) in enumerate(zip(own.containers, one_shot.SHOWN)):
        np.testing.assert_array_equal(points[0].get_xdata(), [i])
        drawn = points[0].get_ydata()
        np.testing.assert_array_equal(drawn, few.accuracy_sets.sel(test_set=name))
    crosses = [line.get_ydata()[0] for line in own.lines if line.get_marker() == "x"]
    expected = saddle.accuracy_sets.sel(test_set=list(one_shot.SHOWN))[0]
    np.testing.assert_array_equal(crosses, expected)
    assert "$P = 20$" in own.get_title()
    names = [text.get_text() for text in own.get_xticklabels()]
    assert names == ["Omniglot", "FashionMNIST", "MNIST"]


def test_a_single_training_has_no_error(theories):
    axis = one_shot_accuracy(theories[:1]).axes[0]
    mean, error = one_shot.over_trainings([theories[0].accuracy_chosen])
    np.testing.assert_array_equal(mean, theories[0].accuracy_chosen)
    assert np.isnan(error).all()
    assert len(axis.patches) == 0  # no band of the GP limit


def test_order_parameters_share_a_scale_and_a_mean_diagonal_of_one(
    theories, sampled, trained
):
    figure = one_shot_matrices(theories[1], [sampled], trained)
    shown = [axis for axis in figure.axes if axis.images]
    images = [axis.images[0] for axis in shown]
    expected = [
        theories[1].U_1.sel(width=10, temperature=0.5),
        sampled.U_1[0],
        trained.U_1.sel(restart=1),
    ]
    assert [axis.get_title().split(",")[0] for axis in shown] == [
        "saddle point",
        "exact law",
        "gradient descent",
    ]
    for image, U in zip(images, expected, strict=True):
        drawn = np.asarray(image.get_array())
        np.testing.assert_allclose(drawn, U / np.trace(U) * 16)
        low, high = image.get_clim()
        assert low == -high and (low, high) == images[0].get_clim()
    largest = max(np.abs(image.get_array()).max() for image in images)
    assert images[0].get_clim()[1] == largest
    separators = [line.get_ydata()[0] for line in shown[0].lines[::2]]
    assert separators == [3.5, 7.5, 11.5]
    names = [label.get_text() for label in shown[0].get_yticklabels()]
    assert names == PATHS


def test_a_saddle_point_that_was_not_found_has_no_panel(theories, sampled):
    theory = theories[1]
    theory.U_1.loc[{"width": 10, "temperature": 0.5}] = np.nan
    alone = theory.sel(width=[10.0], temperature=0.5).copy(deep=True)
    alone.chosen_temperature[:] = np.nan
    for saddle in (theory, alone):
        figure = one_shot_matrices(saddle, [sampled])
        (axis,) = [axis for axis in figure.axes if axis.images]
        assert axis.get_title().startswith("exact law")
        assert np.isfinite(axis.images[0].get_clim()).all()
    with pytest.raises(ValueError, match="none of saddle point, .*N = 10.* was found"):
        one_shot_matrices(theory)


def test_without_any_saddle_point_the_error_says_so(theories):
    theory = theories[0]
    theory.chosen_temperature[:] = np.nan
    for draw in (one_shot_matrices, one_shot_alignment):
        with pytest.raises(ValueError, match="no width has a saddle point"):
            draw(theory)


def test_files_of_fewer_test_sets_are_drawn_where_they_have_them(
    theories, sampled, trained
):
    """MNIST is in the first and third theory only, FashionMNIST in no other file."""
    fewer = theories[1].sel(test_set=SETS[:3])
    files = [theories[0], fewer, theories[2]]
    others = [file.sel(test_set=SETS[:2]) for file in (sampled, trained)]
    axes = one_shot_accuracy(files, others[:1], others[1]).axes
    assert len(axes) == 3
    for axis, name, used in zip(axes, one_shot.SHOWN, (files, files, files[::2])):
        over = [t.accuracy_chosen.sel(test_set=name, choice="validation") for t in used]
        drawn = lines_of(axis)["saddle point"].get_ydata()
        np.testing.assert_allclose(drawn, np.mean(over, axis=0))
        assert len(axis.containers) == (2 if name == "omniglot" else 0)
    assert len(one_shot_accuracy([fewer, *theories]).axes) == 3


def test_kernels_that_were_kept_are_drawn(theories):
    """At the temperature chosen for the smallest width."""
    theory, rng = theories[0], np.random.default_rng(3)
    pair = ("example", "example_pair")
    factor = rng.normal(size=(3, 2, P, P))
    kernel = factor @ np.swapaxes(factor, -1, -2)
    theory["kernel"] = (("width", "temperature", *pair), kernel)
    theory["path_kernel"] = (("path_1", *pair), rng.normal(size=(16, P, P)))
    theory["kernel_gp"] = (pair, rng.normal(size=(P, P)))
    pictures = dict(plotting.one_shot_pictures([theory]))
    axes = {axis.get_title(): axis for axis in pictures["kernels"].axes}
    assert f"path {PATHS[-1]}" in axes
    shown = axes["$N = 10$"].images[0].get_array()
    chosen = kernel[0, 1] / np.mean(np.diag(kernel[0, 1]))
    np.testing.assert_allclose(np.sort(np.ravel(shown)), np.sort(np.ravel(chosen)))


def test_without_samples_the_temperature_is_the_one_chosen_on_validation(theories):
    figure = one_shot_matrices(theories[0])
    (axis,) = [axis for axis in figure.axes if axis.images]
    assert axis.get_title() == "saddle point, $N = 10$, $T = 0.5$"
    axis = one_shot_alignment(theories[0], width=1000).axes[0]
    heights = [bar.get_height() for bar in axis.containers[0]]
    expected = theories[0].kernel_overlap.sel(width=1000, temperature=0.1)
    np.testing.assert_array_equal(heights, expected[: one_shot.RANKS])


def test_a_file_of_one_temperature_has_all_pictures(theories):
    theory = theories[0].isel(temperature=1)
    figures = dict(plotting.one_shot_pictures([theory]))
    (axis,) = [axis for axis in figures["order_parameters"].axes if axis.images]
    assert axis.get_title() == "saddle point, $N = 10$, $T = 0.5$"
    assert figures["alignment"].axes[0].get_title() == "$T = 0.5$"


def test_every_picture_states_its_data(theories, sampled, trained):
    pictures = dict(plotting.one_shot_pictures(theories, [sampled], trained))
    assert set(pictures) == {"accuracy", "order_parameters", "alignment"}
    for name, figure in pictures.items():
        words = figure.get_supxlabel().replace("\n", " ")
        assert "179 training characters (published: 1028), " in words
        assert ("one standard error" in words) == (name == "accuracy")
        assert f"$P = {P}$" in words and f"$N_0 = {N_0}$" in words
        assert words.endswith("3 trainings" if name == "accuracy" else "1 training")


def test_the_published_size_is_not_compared_with_itself(theories):
    theory = theories[0]
    theory.attrs |= of_network(0, characters=1028, channels=3)
    words = image_words.size_words(theory, 2)
    assert words == "1028 training characters, $P = 40$, $N_0 = 192$, 2 trainings"


def test_a_matrix_is_shown_over_the_mean_of_its_diagonal():
    shown = one_shot.over_diagonal(np.diag([1.0, 3.0]))
    assert shown.tolist() == [[0.5, 0.0], [0.0, 1.5]]
