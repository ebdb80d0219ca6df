"""A figure for the page: its image is inert, and its numbers stand where they are."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from statmech_attn import layout, plotting, storage
from statmech_attn.cli.texts import summary
from statmech_attn.plotting.frame import axis_words, readings, style
from tests.plotting.frame.test_drawing import EXPECTED


KEPT = sorted((Path(__file__).parents[3] / "paper_figs" / "results").glob("*.h5"))
NUMBER = re.compile(r"(−?[\d.]+)(?:·10\^\{(−?\d+)\})?")


def number(text: str) -> float:
    """The number that a text begins with."""
    found = NUMBER.match(text)
    assert found, text
    front, power = (part and part.replace("−", "-") for part in found.groups())
    return float(f"{front}e{power or 0}")


def told(mark, place: int = -1) -> np.ndarray:
    """Numbers of a mark, the last ones of its sentences."""
    return np.array([number(texts[place]) for texts in mark["numbers"]])


def rounding(text: str) -> float:
    """By how much an error lets a number be rounded."""
    digits = NUMBER.match(text)[1].partition(".")[2]  # type: ignore[index]
    return 0.5 * 10.0 ** -len(digits) if "±" in text else 0.0


def panels_of(figure) -> list[dict]:
    """What can be read off a figure, without its image."""
    axes = [axis for axis in figure.axes if not hasattr(axis, "_colorbar")]
    assert all(axis.viewLim for axis in axes)  # are set, as when it is drawn
    return readings._panels(figure, {x: readings._Names(x, axes) for x in axes})


def assert_holds(panels, figure, picture) -> None:
    """The extremes of every line in view are told, as far as the page tells apart."""
    marks = [mark for panel in panels for mark in panel["marks"]]
    texts = [x[-1] for m in marks if len(m["words"]) > 2 for x in m["numbers"]]
    every, rounded = (np.array([f(x) for x in texts]) for f in (number, rounding))
    for axis in figure.axes:
        lines = [getattr(x, "lines", None) for x in axis.containers]
        caps = {id(part) for parts in lines if parts for part in parts[1]}
        to_panel = axis.transData - axis.transAxes
        for line in axis.lines:
            if line.get_transform() is not axis.transData or id(line) in caps:
                continue
            values = np.ma.asarray(line.get_xydata(), float)
            places = to_panel.transform(np.ma.filled(values, np.nan))
            seen = np.flatnonzero((abs(places - 0.5) <= 0.5).all(axis=1))
            for k in {*places[seen, 1].argsort()[[0, -1]]} if seen.size else ():
                apart = 2e-3 if len(seen) < readings.POINTS else 4e-3
                near = places[seen[k]] + [[0, -apart], [0, apart]]
                low, high = np.sort(to_panel.inverted().transform(near)[:, 1])
                inside = (every >= low - rounded) & (every <= high + rounded)
                assert inside.any(), (picture, low, high)


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
        panels = panels_of(figure)
        assert panels and all(panel["marks"] for panel in panels), picture
        assert_holds(panels, figure, picture)


# The first one of a series or a kind has all that the others have.
OTHERS = "-[1-9]-|_(deep|exact|full|locking|turned|wide)"


@pytest.mark.parametrize(
    "path", [x for x in KEPT if not re.search(OTHERS, x.stem)], ids=lambda x: x.stem
)
def test_numbers_of_kept_results_are_told(path):
    dataset = storage.read(path)
    for picture, figure in plotting.pictures(dataset):
        assert_holds(panels_of(figure), figure, picture)


def test_a_bifurcation_is_told_with_its_normal_form():
    (path,) = [path for path in KEPT if path.stem == "pe5_continuation-laptop"]
    branches = storage.read(path)
    (panel,) = panels_of(plotting.continuation_diagram(branches))
    (ending,) = [x["words"][-1] for x in panel["marks"] if x["words"][-1]]
    assert ending.startswith("; period 32 tokens, supercritical, coefficient of the")
    for value in (branches.special_coefficient, branches.special_rotation):
        assert f"{float(value[0]):.6g}" in ending


def test_numbers_stand_where_the_image_shows_them():
    """The marker of the SVG and the place of its number are one point."""
    figure = style.figure(3.4, 2.0)
    first, second = figure.subplots(1, 2)
    first.plot([0, 1], [5, 6])
    second.loglog([1, 10, 100], [2, 30, 400], "s", color="#ff0000")
    content = readings.readable(figure)
    root = ElementTree.fromstring(content["image"])
    _, _, width, height = (float(x) for x in root.attrib["viewBox"].split())
    markers = [x.attrib for x in root.iter() if "#ff0000" in x.get("style", "")]
    drawn = np.array([[float(x["x"]), float(x["y"])] for x in markers if "x" in x])
    panel = content["panels"][1]
    left, top, wide, high = panel["place"]
    (mark,) = panel["marks"]
    assert mark["numbers"] == [["1", "2"], ["10", "30"], ["100", "400"]]
    shown = np.array(mark["places"]) * [wide, high] / 100 + [left, top]
    in_points = shown * [width, height] / 100
    assert abs(in_points - drawn).max() < 0.02  # two digits of a percent of a panel


def test_an_image_runs_and_asks_nothing():
    """Words of files are neither markup nor addresses in it."""
    evil = '</svg><script>alert(1)</script><a href="https://e.org">'
    figure = style.figure(3.4, 2.0)
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], label=evil)
    axis.set_title(evil)
    axis.set_xticks([0, 1], ["javascript:alert(1)", evil])
    figure.legend()
    content = readings.readable(figure)
    parsed = list(ElementTree.fromstring(content["image"]).iter())
    assert not {"script", "a", "foreignObject"} & {x.tag.split("}")[-1] for x in parsed}
    links = [v for x in parsed for name, v in x.attrib.items() if "href" in name]
    assert links and all(x.startswith(("#", "data:image/png;")) for x in links)
    assert not [name for x in parsed for name in x.attrib if name.startswith("on")]
    again = style.figure(3.4, 2.0)
    again.subplots().plot([0, 1])
    images = [readings.readable(again)["image"] for _ in range(2)]
    assert images[0] == images[1], "an exported page is the same each time"


def test_of_many_points_those_that_can_be_told_apart_are_kept():
    """Extremes to a thousandth of the panel, and nothing where there is a gap."""
    y = 5.5 + 0.5 * np.sin(np.arange(40_000.0))
    y[20_000:20_100] = np.nan
    axis = (figure := Figure()).subplots()
    axis.plot(y)
    (line,) = axis.lines
    ((mark,),) = [panel["marks"] for panel in panels_of(figure)]
    x, values = told(mark, 0), told(mark)
    assert len(values) <= readings.POINTS and np.isfinite(values).all()
    assert np.allclose(values, y[x.astype(int)], rtol=1e-5)
    ends = [np.nanmin(y), np.nanmax(y)]
    assert np.allclose([values.min(), values.max()], ends, atol=2e-3)
    assert readings._as_pixels(axis) == [line]


def test_error_bars_ticks_and_shared_words_are_told():
    figure = Figure()
    axis, other = figure.subplots(1, 2, sharey=True)
    low, high = np.array([0.5, np.nan]), np.array([0.25, 0.125])
    axis.errorbar([1, 10], [2, 3], [low, high], fmt="o", label="spins", capsize=2)
    axis.plot([], [], "--", color=style.BLACK, label="theory")
    other.plot([1, 2], [3, 4], "--", color=style.BLACK)
    axis.axhline(2.5, color=style.GREY)
    axis.set_ylabel(r"$m^{o,\mathrm{SE}}_1$")
    axis.set_title("(a)  first", loc="left")
    axis.set_xscale("log")
    axis.set_xticks([1, 10], ["one", "ten"])
    figure.legend()
    first, second = panels_of(figure)
    level, points = sorted(first["marks"], key=lambda x: len(x["places"]))
    assert points["words"] == ["first: spins:  ", ", m^{o,SE}_{1} ", ""]
    assert points["numbers"] == [["one", "2 (1.5 to 2.25)"], ["ten", "3"]]
    assert level["numbers"] == [["2.5"]] and level["behind"] > points["behind"]
    assert level["places"][0][2] == 50.0, "it is told of all over the panel"
    assert first["words"].startswith("first, m^{o,SE}_{1} against")
    assert second["marks"][0]["words"][:2] == ["first: theory:  ", ", m^{o,SE}_{1} "]


def test_a_twin_is_in_the_panel_that_it_lies_over():
    figure = Figure()
    axis = figure.subplots()
    axis.bar([0, 1], [1, 2], yerr=[0.5, 0.25])
    twin = axis.twinx()
    twin.plot([0, 1], [30, 40])
    twin.set_ylabel("right")
    (panel,) = panels_of(figure)
    bars, line = panel["marks"]
    assert [x for _, x in bars["numbers"]] == ["1.0 ± 0.5", "2.0 ± 0.2"]
    assert len(bars["places"][0]) == 4 and len(line["places"][0]) == 2
    assert "right" in line["words"][1] and told(line).tolist() == [30, 40]


@pytest.mark.parametrize("draw", ("imshow", "pcolormesh"))
def test_a_matrix_is_told_with_its_errors_and_words(draw):
    figure = Figure()
    axis = figure.subplots()
    image = getattr(axis, draw)([[1.0, -2.0], [np.nan, 2.0]], cmap="RdBu_r")
    style.with_errors(image, np.full((2, 2), 0.5))
    figure.colorbar(image, label="$U$")
    ((cells,),) = [panel["marks"] for panel in panels_of(figure)]
    assert cells["words"][-2] == ": U "
    assert [x[-1] for x in cells["numbers"]] == ["1.0 ± 0.5", "−2.0 ± 0.5", "2.0 ± 0.5"]
    halves = np.array(cells["places"])[:, 2:]
    assert np.allclose(halves, 25.0)
    rows = np.array(cells["places"])[:, 1]
    assert (rows[0] < rows[-1]) == (draw == "imshow"), "its first row is above"


@pytest.mark.parametrize(
    "add",
    (
        lambda axis: axis.add_patch(Circle((0, 0), 1)),
        lambda axis: axis.pie([1, 2]),
        lambda axis: axis.contour(np.eye(3)),
        lambda axis: axis.add_line(Line2D([0, 1], [0, 1], transform=axis.transAxes)),
        lambda axis: axis.set_yscale("logit"),
        lambda axis: axis.errorbar([1, 2], [1, 2], xerr=1, fmt="o"),
        lambda axis: axis.scatter([1, 2], [np.nan, 3]),
        lambda axis: axis.imshow(np.zeros((2, 2, 3))),
        lambda axis: axis.errorbar([1, 2], [1, np.nan], yerr=1, fmt="o"),
    ),
)
def test_whatever_a_figure_holds_is_shown(add):
    figure = Figure()
    add(figure.subplots())
    assert "<svg" in readings.readable(figure)["image"]


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
    assert axis_words.plain(words) == read
