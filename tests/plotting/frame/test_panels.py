"""The panels of a figure hold what the figure shows, in numbers and words."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from statmech_attn import layout, plotting, storage
from statmech_attn.cli.texts import summary
from statmech_attn.plotting.frame import style
from tests.plotting.frame.test_drawing import EXPECTED


panels = importlib.import_module("statmech_attn.plotting.frame.panels")
KEPT = sorted((Path(__file__).parents[3] / "paper_figs" / "results").glob("*.h5"))


def numbers(values) -> list[float | None]:
    return [float(f"{x:.7g}") if np.isfinite(x) else None for x in np.ravel(values)]


def assert_holds(content, figure) -> None:
    """Every line, bar and matrix of the figure is among the marks of its panels."""
    marks = [mark for panel in content["panels"] for mark in panel["marks"]]
    lines = [mark["y"] for mark in marks if mark["type"] == "line"]
    tops = [top for mark in marks if mark["type"] == "bars" for top in mark["top"]]
    cells = [mark for mark in marks if mark["type"] == "cells"]
    axes = [axis for axis in figure.axes if not hasattr(axis, "_colorbar")]
    caps = {
        id(part)
        for axis in axes
        for container in axis.containers
        for part in (container.lines[1] if hasattr(container, "lines") else ())
    }
    for axis in axes:
        for line in axis.lines:
            inside = line.get_transform() == axis.transData and id(line) not in caps
            y = np.ma.filled(np.ma.asarray(line.get_ydata(False), float), np.nan)
            if inside and np.isfinite(y).any() and len(y) <= panels.POINTS:
                assert numbers(y) in lines
        for bar in (p for c in axis.containers for p in getattr(c, "patches", ())):
            assert numbers([bar.get_y() + bar.get_height()])[0] in tops
    images = [x for axis in axes for x in [*axis.images, *axis.collections]]
    arrays = [x.get_array() for x in images if x.get_array() is not None]
    assert len(arrays) == len(cells)
    for array in arrays:
        if array.size <= panels.CELLS:
            flat = numbers(np.ma.filled(np.ma.asarray(array, float), np.nan))
            assert flat in [sum(mark["values"], []) for mark in cells]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_results_are_whole_and_have_pictures(path):
    with storage.opened(path) as dataset:
        layout.require_layout(dataset, path.name)
        assert plotting.offered(dataset)
        assert list(summary.content(dataset))


def test_whole_figures_are_reached_by_the_kind_of_their_files():
    folder = KEPT[0].parent
    read = lambda stem: storage.read(folder / f"{stem}-laptop.h5")
    of = lambda stem: {*plotting.names(read(stem)).values()}
    assert of("crosstalk") == {"phase_diagram", "phases_against_load"}
    assert of("crosstalk_spins") == {"motion_against_size"}
    assert of("capacity_spins") == {"capacities_of_spins"}
    assert "sweep_diagram" in of("pe5_torus")


def test_a_file_that_lacks_a_part_says_who_wrote_it():
    (path,) = [path for path in KEPT if path.stem == "crosstalk-laptop"]
    lacking = storage.read(path).drop_vars("lyapunov_stderr")
    told = "lacking: .* no variable lyapunov_stderr; .* version af73b0e: compute it"
    with pytest.raises(ValueError, match=told):
        layout.require_layout(lacking, "lacking")


@pytest.mark.parametrize("name", EXPECTED)
def test_panels_of_every_kind_hold_the_numbers_of_its_figures(name, request):
    for picture, figure in plotting.pictures(request.getfixturevalue(name)):
        content = panels.panels(figure)
        assert content["panels"], picture
        assert all(panel["marks"] for panel in content["panels"]), picture
        assert_holds(content, figure)


@pytest.mark.parametrize(
    "path",
    [
        # The first one of a series or a kind has all that the others have.
        pytest.param(path, marks=pytest.mark.slow)
        if re.search("-[1-9]-|_(deep|exact|full|locking|turned|wide)", path.stem)
        else path
        for path in KEPT
    ],
    ids=lambda path: path.stem,
)
def test_kept_results_are_panels(path):
    dataset = storage.read(path)
    for _, figure in plotting.pictures(dataset):
        assert_holds(panels.panels(figure), figure)


def test_a_bifurcation_is_told_with_its_normal_form():
    (path,) = [path for path in KEPT if path.stem == "pe5_continuation-laptop"]
    branches = storage.read(path)
    (panel,) = panels.panels(plotting.continuation_diagram(branches))["panels"]
    (told,) = [mark["told"] for mark in panel["marks"] if "told" in mark]
    assert told.startswith("period 32 tokens, supercritical, coefficient of the normal")
    for number in (branches.special_coefficient, branches.special_rotation):
        assert f"{float(number[0]):.6g}" in told


def test_a_long_line_keeps_its_extremes_and_its_gaps():
    """All numbers lie in [5, 6] but for a gap, which is no extreme at 0."""
    y = 5.5 + 0.5 * np.sin(np.arange(40_000.0))
    y[20_000:20_100] = np.nan
    axis = (figure := Figure()).subplots()
    axis.plot(y)
    (mark,) = panels.panels(figure)["panels"][0]["marks"]
    numbers = np.array(mark["y"], float)
    assert len(numbers) < 15_000 and np.isnan(numbers).any()
    low, high = np.nanmin(y), np.nanmax(y)
    assert np.allclose([np.nanmin(numbers), np.nanmax(numbers)], [low, high], rtol=1e-6)
    x = np.array(mark["x"])
    for first in range(0, 40_000, 8):  # two of every eight points at least
        window = (x >= first) & (x < first + 8)
        part, kept = y[first : first + 8], numbers[window]
        if np.isfinite(part).any():
            ends = [np.nanmin(kept), np.nanmax(kept)]
            assert np.allclose(ends, [np.nanmin(part), np.nanmax(part)], rtol=1e-6)


def test_error_bars_bands_and_entries_of_legends_are_data():
    figure = Figure()
    axis, other = figure.subplots(1, 2, sharey=True)
    low, high = np.array([0.5, np.nan]), np.array([0.25, 0.125])
    axis.errorbar([1, 10], [2, 3], [low, high], fmt="o", label="spins", capsize=2)
    axis.fill_between([1, 10], [1, 2], [4, 3], color=style.SKY, label="noise")
    axis.plot([], [], "--", color=style.BLACK, label="theory")
    other.plot([1, 2], [3, 4], "--", color=style.BLACK)
    axis.axhline(2.5, color=style.GREY)
    axis.set_ylabel(r"$m^{o,\mathrm{SE}}_1$")
    axis.set_title("(a)  first", loc="left")
    axis.set_xscale("log")
    axis.set_xticks([1, 10], ["one", "ten"])
    figure.legend()
    content = panels.panels(figure)
    first, second = content["panels"]
    marks = {mark["type"]: mark for mark in first["marks"]}
    band, points, level = (marks[name] for name in ("band", "line", "level"))
    assert points["error"] == [[1.5, None], [2.25, 3.125]]
    assert (band["low"], band["high"]) == ([1.0, 2.0], [4.0, 3.0])
    assert level["value"] == 2.5
    assert first["x"]["kind"] == "log" and first["x"]["ticks"][1] == [10.0, "ten"]
    assert first["title"] == "first" and second["y"]["words"] == "m^{o,SE}_{1}"
    assert [entry["words"] for entry in content["legend"]] == [
        "noise",
        "theory",
        "spins",
    ]
    assert second["marks"][0]["words"] == "theory"  # as the legend has its look


def test_a_twin_is_in_the_panel_that_it_lies_over():
    figure = Figure()
    axis = figure.subplots()
    axis.bar([0, 1], [1, 2], yerr=[0.5, 0.25])
    axis.twinx().plot([0, 1], [30, 40])
    (panel,) = panels.panels(figure)["panels"]
    bars, line = panel["marks"]
    assert bars["error"] == [[0.5, 1.75], [1.5, 2.25]] and line["twin"]
    assert panel["right"]["range"][1] > 30 > panel["y"]["range"][1]


def test_a_matrix_is_told_with_its_errors_and_colours():
    figure = Figure()
    image = figure.subplots().imshow([[1.0, -2.0], [np.nan, 2.0]], cmap="RdBu_r")
    style.with_errors(image, np.full((2, 2), 0.5))
    figure.colorbar(image, label="$U$")
    ((cells,),) = [panel["marks"] for panel in panels.panels(figure)["panels"]]
    assert cells["values"] == [[1.0, -2.0], [None, 2.0]] and cells["words"] == "U"
    assert cells["errors"] == [[0.5] * 2] * 2 and cells["range"] == [-2.0, 2.0]
    assert cells["x"] == [-0.5, 0.5, 1.5] and len(cells["stops"]) == panels.STOPS


def test_of_many_points_the_extremes_are_kept(monkeypatch):
    monkeypatch.setattr(panels, "POINTS", 100)
    figure = Figure()
    values = np.random.default_rng(0).normal(size=5000)
    figure.subplots().plot(values)
    ((line,),) = [panel["marks"] for panel in panels.panels(figure)["panels"]]
    assert len(line["y"]) <= 100
    assert {max(line["y"]), min(line["y"])} == set(
        numbers([values.max(), values.min()])
    )


@pytest.mark.parametrize(
    "add",
    (
        lambda axis: axis.add_patch(Circle((0, 0), 1)),
        lambda axis: axis.pie([1, 2]),
        lambda axis: axis.contour(np.eye(3)),
        lambda axis: axis.add_line(Line2D([0, 1], [0, 1], transform=axis.transAxes)),
        lambda axis: axis.set_yscale("logit"),
    ),
)
def test_what_is_not_read_is_refused(add):
    figure = Figure()
    add(figure.subplots())
    with pytest.raises(panels.Unread):
        panels.panels(figure)


@pytest.mark.parametrize(
    "words, read",
    (
        (r"$\mathdefault{1.0}$", "1.0"),
        (r"$s_N[A]/\sigma_1$", "s_{N}[A]/σ_{1}"),
        (r"$P_\mathrm{test} = 3 \times 10^{-4}$", "P_{test} = 3 × 10^{−4}"),
        (r"$\langle\phi(t)\rangle$, $U_{\pi\pi^\prime}$", "⟨φ(t)⟩, U_{ππ′}"),
        ("costs $5", "costs $5"),
    ),
)
def test_formulas_are_characters(words, read):
    assert panels.plain(words) == read
