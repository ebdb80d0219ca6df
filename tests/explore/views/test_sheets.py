"""Files as figures: pictures, pages and choices, points between, files beside."""

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from statmech_attn import plotting, storage
from statmech_attn.dynamics import PHASES
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.views import overlays, sheets
from statmech_attn.explore.views.sheets import joined, PictureView, sheet_of
from statmech_attn.plotting.frame import registry, style
from statmech_attn.presentation import quantity


RESULTS = Path(__file__).resolve().parents[3] / "paper_figs" / "results"


@pytest.fixture(scope="module")
def files():
    """Files of the repository, by name."""
    names = ("saddle-0", "exact-0", "weights-0", "theory-0", "pruning", "training")
    opened = {name: File(RESULTS / f"one_shot_{name}-laptop.h5") for name in names}
    yield opened
    for file in opened.values():
        file.close()


def held(dataset: xr.Dataset, source: str = "") -> Any:
    """A file that was never written."""
    return SimpleNamespace(
        dataset=dataset,
        kind=dataset.attrs["kind"],
        lock=threading.RLock(),
        source=source or dataset.attrs["kind"],
        version=1,
        pictures=True,
    )


def told(content: dict[str, Any], words: str = "", panel: int | None = None):
    """Numbers of the marks with these words: of each its texts, as columns."""
    of = content["panels"] if panel is None else [content["panels"][panel]]
    every = [x for one in of for x in one["marks"] if words in "…".join(x["words"])]
    return [list(zip(*mark["numbers"], strict=True)) for mark in every]


def numbers(texts) -> list[float]:
    """Numbers without their errors."""
    plain = (x.split(" ")[0].replace("−", "-") for x in texts)
    return [float(re.sub(r"·10\^\{(.*)\}", r"e\1", x)) for x in plain]


def theory(widths=(10.0, 20.0, 50.0), temperatures=(0.25, 1.0)) -> xr.Dataset:
    """Order parameters of two paths, of made numbers."""
    rng, over = np.random.default_rng(0), ("width", "temperature")
    shape = len(widths), len(temperatures)
    pair = ("path_1", "path_1_pair")
    return xr.Dataset(
        {
            "U_1": ((*over, *pair), rng.normal(size=(*shape, 2, 2))),
            "accuracy": (over, rng.uniform(size=shape)),
            "accuracy_gp": (("temperature",), rng.uniform(size=shape[1])),
            "kernel_overlap": ((*over, "rank"), rng.uniform(size=(*shape, 3))),
            "kernel_overlap_gp": (("rank",), rng.uniform(size=3)),
        },
        {
            "width": list(widths),
            "temperature": list(temperatures),
            "path_1": ["1-1", "2-1"],
            "path_1_pair": ["1-1", "2-1"],
        },
        {"kind": "order-parameter", "task": "{}", "prior": "{}"},
    )


def require_offers(file: File) -> None:
    """It offers its pictures with pages and choices."""
    drawings = sheet_of(file).described()["drawings"]
    assert [row["name"] for row in drawings] == list(plotting.names(file.dataset))
    for row in drawings:
        assert row["told"].endswith(".")
        assert all(len(c["values"]) == len(c["labels"]) for c in row["choices"])


def test_a_kept_result_of_each_kind_offers_its_pictures(files):
    for file in files.values():
        require_offers(file)


def test_a_picture_is_the_figure_of_this_name(files):
    figure = dict(plotting.pictures(storage.read(files["pruning"].path)))[
        "pruned_heads"
    ]
    assert PictureView(files["pruning"]).readable("pruned_heads") == plotting.readable(
        figure
    )


def test_pages_and_keywords_are_chosen_by_number():
    file = held(theory())
    sheet = PictureView(file)
    chosen = {"width": 2, "temperature": 1}
    (cells,) = told(sheet.readable("order_parameters", chosen), "path")
    expected = file.dataset.U_1.sel(width=50, temperature=1.0)
    assert np.allclose(numbers(cells[-1]), expected.values.ravel(), rtol=1e-5)
    bars, limit = told(sheet.readable("alignment", chosen), "overlap")
    assert np.allclose(numbers(bars[1]), file.dataset.kernel_overlap[2, 1], rtol=1e-5)
    of_limit = file.dataset.kernel_overlap_gp
    assert np.allclose(numbers(limit[1]), of_limit, rtol=1e-5)


def test_a_picture_is_drawn_once_for_all_who_ask(monkeypatch):
    sheet = PictureView(held(theory()))
    first = sheet.readable("accuracy", {"temperature": 1})
    monkeypatch.setattr(PictureView, "figure", None)
    assert sheet.beside([]).readable("accuracy", {"temperature": 1}) is first


def test_a_point_that_was_computed_stands_among_stored_ones():
    stored = theory()
    point = (
        theory((33.0,), (0.25,)).isel(width=0, temperature=0).drop_vars("accuracy_gp")
    )
    point["accuracy"] = 0.5
    sheet = PictureView(held(stored))
    content = sheet.readable("accuracy", {"temperature": 0}, point)
    (curve,) = [x for x in told(content, "accuracy") if len(x[0]) == 4]
    assert curve[0] == ("10", "20", "33", "50") and curve[1][2] == "0.5"
    others = np.delete(numbers(curve[1]), 2)
    assert np.allclose(others, stored.accuracy[:, 0], rtol=1e-5)
    ((place,),) = told(content, "computed here")
    assert place == ("33",)
    (cells,) = told(sheet.readable("order_parameters", {}, point), "path")
    assert np.allclose(numbers(cells[-1]), point.U_1.values.ravel(), rtol=1e-5)


def test_at_another_temperature_only_the_point_is_known():
    stored = theory()
    point = theory((33.0,), (0.5,)).isel(width=0, temperature=0)
    together = joined(stored, point)
    assert together.width.values.tolist() == [33.0]
    assert np.isnan(together.accuracy_gp) and together.accuracy == point.accuracy
    assert (together.kernel_overlap_gp == stored.kernel_overlap_gp).all()


@pytest.mark.parametrize(
    "name, chosen, said",
    (
        ("accuracy", {"beta": 0}, "chosen: there is no 'beta'."),
        ("accuracy", {"temperature": 2}, "should be below 2."),
        ("poem", {}, "picture should be one of accuracy, order_parameters"),
    ),
)
def test_choices_that_are_not_there_are_refused_in_one_line(name, chosen, said):
    with pytest.raises(ValueError, match=said) as refusal:
        PictureView(held(theory())).readable(name, chosen)
    assert "\n" not in str(refusal.value)


def test_what_is_larger_than_a_picture_may_be_is_refused(monkeypatch):
    monkeypatch.setattr(sheets, "LARGEST", 100)
    with pytest.raises(ValueError, match="more than fits into a picture"):
        PictureView(held(theory())).readable("accuracy")


def test_estimates_of_one_problem_are_compared(files):
    others = [files[name] for name in ("exact-0", "weights-0")]
    sheet = PictureView(files["saddle-0"]).beside(others)
    content = sheet.readable("comparison/finite_width")
    for words in ("saddle point", "exact law", "weights (NUTS)"):
        assert told(content, f"{words}: "), words
    exact = storage.read(files["exact-0"].path).squeeze()
    (accuracy,) = told(content, "exact law", panel=2)
    expected = quantity(float(exact.accuracy), float(exact.accuracy_stderr))
    assert accuracy[1] == (expected,) and "±" in expected
    assert "comparison/finite_width" not in PictureView(files["saddle-0"]).offers()
    unsampled = [held(theory())]
    other = PictureView(files["theory-0"]).beside(unsampled)
    assert not [name for name in other.offers() if "/" in name]


def test_samples_of_the_same_task_are_drawn_beside_the_theory(monkeypatch):
    monkeypatch.setattr(PictureView, "_comparison", lambda self: None)  # of whole files
    sampled = theory().isel(temperature=[1])[["U_1", "accuracy"]]
    sampled["accuracy_stderr"] = 0.01 * sampled.accuracy
    sampled.attrs |= {"kind": "posterior", "method": "order-parameter"}
    of_another = sampled.assign_attrs(task="another")
    sheet = PictureView(held(theory((10.0,), (1.0,))))
    count = lambda *files: len(told(sheet.beside(files).readable("accuracy"), "width"))
    alone = count()
    assert count(held(sampled)) == alone + 1
    assert count(held(of_another, "other")) == alone


def test_a_file_without_what_its_kind_has_leaves_the_others_alone():
    pytest.importorskip("starlette")
    from statmech_attn.explore.views.served_file import ServedFile

    served, of_samples = ServedFile(Path("theory.h5")), ServedFile(Path("samples.h5"))
    sampled = theory().assign_attrs(kind="posterior", method="order-parameter")
    served.file, of_samples.file = held(theory()), held(sampled)
    served.file.described = dict
    served.view, served.state = PictureView(served.file), "ready"
    assert served.described([])["view"] == "sheet"
    told = served.described([of_samples])  # samples that lack their errors
    assert told["state"] == "failed" and told["error"]


def simulated() -> tuple[xr.Dataset, xr.Dataset]:
    """Theory and simulation of made numbers: one beta, two N, two patterns."""
    rng, point = np.random.default_rng(0), ("beta", "time", "pattern")
    sized = ("n_spins", *point)
    grid = {"beta": [1.5], "pattern": [1, 2], "time": np.arange(6)}
    alike = {"network": "n", "start": "s"}
    overlap, noise = rng.normal(size=(1, 6, 2)), rng.uniform(0.1, 0.5, (1, 6, 2))
    theory = xr.Dataset(
        {"m_o_se": (point, overlap), "m_o_se_noise_std": (point, noise)},
        grid,
        alike | {"kind": "trajectory"},
    )
    names = ("m_o_se_mean", "m_o_se_spread", "A_mean", "A_spread")
    values = {name: (sized, rng.uniform(size=(2, 1, 6, 2))) for name in names}
    simulation = xr.Dataset(
        values, grid | {"n_spins": [100, 400]}, alike | {"kind": "monte-carlo"}
    )
    simulation["all_runs"] = ("all_runs", np.arange(9))
    return theory, simulation


def test_the_noise_band_of_a_theory_is_drawn_beside_a_simulation():
    theory, simulation = simulated()
    sheet = PictureView(held(simulation)).beside([held(theory)])
    half = theory.m_o_se_noise_std.values[0, :, 1] / 20
    bands = lambda sheet: [
        path.vertices
        for axis in sheet.figure("simulation", {"pattern": 1}).axes
        for band in axis.findobj(FillBetweenPolyCollection)
        for path in band.get_paths()
    ]
    outline = bands(sheet)[-1][1:-1, 1]
    assert np.allclose(
        abs(outline[: len(half)] - outline[: -len(half) - 1 : -1]), 2 * half
    )
    content = sheet.readable("simulation", {"pattern": 1})
    mean = simulation.m_o_se_mean.values[1, 0, :, 1]
    same = lambda y: len(y) == len(mean) and np.allclose(numbers(y), mean, rtol=1e-5)
    assert any(same(x[1]) for x in told(content, panel=1))
    elsewhere = held(theory.assign_attrs(start="elsewhere"))
    alone = PictureView(held(simulation)).beside([elsewhere])
    limit = lambda sheet: told(sheet.readable("simulation"), "mean field, N → ∞")
    assert limit(sheet) and not limit(alone)


def test_pages_are_named_after_what_is_on_them():
    _, simulation = simulated()
    many = xr.concat([simulation.assign_coords(beta=[b]) for b in range(8)], "beta")
    offer = PictureView(held(many)).offers()["simulation"]
    (pages,) = [choice for choice in offer.choices if choice.name == "page"]
    assert list(pages.labels) == ["β = 0 to 5", "β = 6 to 7"]


def test_a_figure_that_tells_no_numbers_is_shown(monkeypatch):
    def circle(dataset):
        figure = Figure()
        figure.subplots().add_patch(Circle((0, 0), 1))
        return figure

    circle.__doc__ = "A circle."
    row = registry.Picture("circle", circle)
    monkeypatch.setattr(sheets, "offered", lambda data: [row])
    content = PictureView(held(theory())).readable("circle")
    assert "<svg" in content["image"] and not content["panels"][0]["marks"]


def test_branches_are_drawn_over_scans_of_their_parameter():
    dataset = storage.read(RESULTS / "pe5_continuation-laptop.h5")
    free = str(dataset.attrs["free"])
    layers = overlays.continuation(dataset, (free,))
    drawn = [layer for layer in layers if layer["type"] == "line"]
    stable = dataset.n_unstable.values[0] == 0
    values = {y for layer in drawn if not layer["dashed"] for y in layer["y"]}
    expected = dataset.strobe.values[0][stable & np.isfinite(dataset[free].values[0])]
    assert {float(f"{y:.7g}") for y in expected[np.isfinite(expected)]} <= values
    marks = [layer for layer in layers if layer["type"] == "marks"]
    assert len(marks) == dataset.sizes["special"]
    assert overlays.continuation(dataset, ("another",)) == []


@pytest.mark.parametrize(
    "network, gamma, count",
    (("", 0, 1), ("another", 0, 0), ("", 0.1, 0), (None, None, 1)),
)
def test_only_files_of_the_same_system_are_drawn_over_a_scan(network, gamma, count):
    dataset = storage.read(RESULTS / "pe5_continuation-laptop.h5")
    lock = threading.RLock()
    other = SimpleNamespace(
        path=Path("branches.h5"),
        file=SimpleNamespace(dataset=dataset, kind="continuation", lock=lock),
    )
    attributes, fixed = {}, {}
    if network is not None:
        attributes = {"network": network or dataset.attrs["network"]}
        fixed = {"gamma": float(dataset.gamma) + gamma}
    scan = SimpleNamespace(dataset=xr.Dataset({}, fixed, attributes), axes=("beta",))
    drawn = overlays.over(scan, [other])  # type: ignore[arg-type]
    assert len(drawn) == count


def test_shares_of_basins_add_up():
    shape = (3, 2)
    dataset = xr.Dataset(
        {
            "count": (("beta", "slot"), [[6, 4], [10, 0], [2, 7]]),
            "fraction": (("beta", "slot"), [[0.6, 0.4], [1.0, 0.0], [0.2, 0.7]]),
            "attractor": (("beta", "slot"), [[1, 0], [1, -1], [0, 1]]),
            "phase": (("beta", "slot"), np.ones(shape, int)),
            "period": (("beta", "slot"), np.full(shape, 4)),
            "rotation_number": (("beta", "slot"), np.full(shape, np.nan)),
        },
        {"beta": [1.0, 2.0, 3.0]},
    )
    (layer,) = overlays.basins(dataset, ("beta",))
    cells = layer["cells"]
    assert [cell["x"] for cell in cells] == [[0.5, 1.5], [1.5, 2.5], [2.5, 3.5]]
    tops = [cell["parts"][-1]["share"][1] for cell in cells]
    assert np.allclose(tops, [1.0, 1.0, 0.9])
    assert [part["set"] for part in cells[0]["parts"]] == ["set 0", "set 1"]
    assert cells[1]["parts"][0]["words"] == "periodic, period 4"
    dataset.phase[2, 1] = PHASES.index("chaotic")
    (layer,) = overlays.basins(dataset, ("beta",))
    settled, chaotic = layer["cells"][2]["parts"]
    assert settled["colour"] == layer["cells"][0]["parts"][0]["colour"], "of set 0"
    assert settled["colour"] == style.ATTRACTOR_COLOURS[0]
    assert (chaotic["set"], chaotic["colour"]) == ("chaotic", style.VERMILION)


@pytest.fixture
def served(make_page):
    """The page of two files of one problem."""
    pytest.importorskip("starlette")
    from statmech_attn.explore.explorer import Explorer

    names = ("saddle-0", "exact-0")
    paths = [RESULTS / f"one_shot_{name}-laptop.h5" for name in names]
    with Explorer(paths, warm=False) as explorer:
        page = make_page(explorer.address)
        page.ready()
        yield lambda path, **asked: page.send(f"api/{path}", asked, Origin=page.origin)


def test_the_server_gives_figures_and_overlays(page, served):
    assert page("overlays").told == {"overlays": []}
    assert page("figure").told == {"error": "This file has no figures."}
    saddle, _ = served("files").told["files"]
    assert saddle["view"] == "sheet"
    names = [row["name"] for row in saddle["drawings"]]
    assert names[-1] == "comparison/finite_width"
    asked = dict(file=1, name="order_parameters", chosen={"layer": 1})
    (cells,) = told(served("figure", **asked).told, "path")
    stored = storage.read(RESULTS / "one_shot_exact-0-laptop.h5").squeeze()
    values, errors = stored.U_2.values.ravel(), stored.U_2_stderr.values.ravel()
    expected = [quantity(*x).replace("-", "−") for x in zip(values, errors)]
    assert [*cells[-1]] == expected
    assert served("figure", name="accuracy", chosen={"page": -1}).status == 400
    assert served("figure", name="poem").status == 400
    assert served("overlays").told == {"error": "This file is no scan."}
    values = {"width": 20.0, "temperature": 0.5}
    answer = served("solved", name="accuracy", values=values)
    assert answer.status == 400 and answer.told["error"] == saddle["why"]


@pytest.mark.slow
def test_the_server_gives_pictures_and_their_scripts(served, tmp_path, monkeypatch):
    drawn = served("picture", name="comparison/finite_width", form="svg")
    assert drawn.headers["Content-Type"] == "image/svg+xml" and drawn.status == 200
    for name in ("accuracy", "comparison/finite_width"):
        asked = {"name": name, "form": "png"}
        folder = tmp_path / name.replace("/", "-")
        folder.mkdir()
        monkeypatch.chdir(folder)
        exec(served("script", **asked).told["script"], {})
        (written,) = folder.glob("*.png")
        assert written.read_bytes() == served("picture", **asked).body
