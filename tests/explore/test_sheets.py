"""Panels of theories, comparisons and pruning hold what the files hold."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from statmech_attn import comparison, storage
from statmech_attn.explore import overlays
from statmech_attn.explore.files import File
from statmech_attn.explore.learning import Learned, SOLVED
from statmech_attn.explore.sheets import Sheet, sheet_of
from statmech_attn.explore.time_series import Growing, InTime


RESULTS = Path(__file__).resolve().parents[2] / "paper_figs" / "results"


@pytest.fixture(scope="module")
def sheets():
    """Sheets of files of the repository, by name."""
    names = ("saddle-0", "exact-0", "weights-0", "theory-0", "pruning_exact")
    files = {name: File(RESULTS / f"one_shot_{name}-laptop.h5") for name in names}
    yield {name: sheet_of(file) for name, file in files.items()}
    for file in files.values():
        file.close()


def captions(panels: list[dict[str, Any]]) -> list[str]:
    return [panel["caption"] for panel in panels]


def test_estimates_of_one_problem_are_told_together(sheets):
    others = [sheets[name] for name in ("exact-0", "theory-0", "weights-0")]
    panels = sheets["saddle-0"].beside(others).panels({"matrix": 1})
    matrix, scores = panels[0], panels[1]
    words = ["saddle point", "exact law", "weights (NUTS)"]
    assert [layer["words"] for layer in matrix["layers"]] == words
    assert [row["words"] for row in scores["rows"]] == words
    assert matrix["rows"] == matrix["columns"] == [str(i) for i in range(1, 5)]
    exact = storage.read(RESULTS / "one_shot_exact-0-laptop.h5").squeeze()
    values, error = (
        np.array(matrix["layers"][1][name]) for name in ("values", "error")
    )
    assert np.allclose(values, exact.U_2, rtol=1e-6)
    assert np.allclose(error, exact.U_2_stderr, rtol=1e-6)


def test_a_point_that_was_computed_stands_beside_stored_ones(sheets):
    sheet = sheets["theory-0"]
    stored = storage.read(RESULTS / "one_shot_theory-0-laptop.h5")
    point = stored.isel(width=1, temperature=1)[["U_1", "accuracy", "head_score"]]
    point = point.assign(head_score_floor=0.5 * point.head_score)
    point = point.assign_coords(width=33.0, temperature=0.3)
    point = point.assign(accuracy=0.5).assign_attrs({SOLVED: 1})
    panels = sheet.panels({}, point)
    assert [x["words"] for x in panels[0]["layers"]] == [f"saddle point, {SOLVED}"]
    (scores,) = [x for x in panels if x["caption"] == "Head scores"]
    *_, floor = scores["rows"]
    assert floor["words"] == "floor: f does not read the head"
    assert np.allclose(floor["y"], point.head_score_floor, rtol=1e-5)
    assert captions(panels)[1:3] == [
        "Test accuracy against width, nearest stored temperature 0.25",
        "Test accuracy against temperature, nearest stored width 20",
    ]
    *_, ring = panels[1]["rows"]
    assert (ring["look"], ring["x"], ring["y"]) == ("ring", [33.0], [0.5])
    assert panels[1]["rows"][0]["x"] == stored.width.values.tolist()
    accuracy = stored.accuracy.sel(temperature=0.25).values
    assert np.allclose(panels[1]["rows"][0]["y"], accuracy)


def test_a_comparison_of_estimates_has_their_verdicts(sheets):
    files = [sheets[name].file.dataset for name in ("saddle-0", "exact-0")]
    compared = comparison.compare(*(file.load() for file in files))
    file = SimpleNamespace(dataset=compared, kind="comparison", lock=threading.RLock())
    panels = Learned(file).panels({})  # type: ignore[arg-type]
    assert [x["words"] for x in panels[0]["layers"]][0] == "saddle point"
    *_, last = panels
    assert last["names"][0] == "saddle point" and "exact law: reference" in last["note"]
    z = compared.largest_z.squeeze().values
    assert np.allclose(last["rows"][0]["y"], z)


def test_pruning_is_shown_training_by_training(sheets):
    stored = storage.read(RESULTS / "one_shot_pruning_exact-laptop.h5")
    panels = sheets["pruning_exact"].panels({"restart": 2, "test_set": 3})
    part = stored.sel(restart=2, test_set="mnist")
    assert panels[1]["levels"] == [["all heads", float(part.accuracy_sets)]]
    assert np.allclose(panels[1]["rows"][0]["y"], part.accuracy_pruned)
    by_words = {row["words"]: row for row in panels[0]["rows"]}
    assert list(by_words) == [
        "saddle point",
        "exact law",
        "trained network",
        "magnitude",
    ]
    trained = part.pruning_score.sel(order="trained")
    assert np.allclose(by_words["trained network"]["y"], trained)


@pytest.mark.parametrize(
    "chosen, said",
    (
        ({"beta": 0}, "chosen: there is no 'beta'."),
        ({"matrix": 2}, "should be below 2."),
    ),
)
def test_choices_that_are_not_there_are_refused(sheets, chosen, said):
    with pytest.raises(ValueError, match=said):
        sheets["saddle-0"].panels(chosen)


def held(kind: str, variables: dict[str, Any], **attributes: Any) -> InTime:
    """A sheet of a file that was never written, of one beta."""
    coordinates: dict[str, Any] = {"beta": [1.5], "pattern": [1, 2]}
    if kind != "trajectory":
        coordinates["n_spins"] = [100, 400]
    dataset = xr.Dataset(variables, coordinates)
    dataset.attrs = {"network": "n", "start": "s", "kind": kind} | attributes
    file = SimpleNamespace(
        dataset=dataset, kind=kind, lock=threading.RLock(), source=kind
    )
    return InTime(file)  # type: ignore[arg-type]


def test_theory_and_simulation_are_shown_with_band_errors_and_verdict():
    rng, shape = np.random.default_rng(0), (1, 6, 2)
    point, sized = ("beta", "time", "pattern"), ("n_spins", "beta", "time", "pattern")
    A, noise = rng.normal(size=shape), rng.uniform(0.5, 1, shape)
    mean, stderr, spread, z = rng.uniform(size=(4, 2, *shape))
    theory = held("trajectory", {"A": (point, A), "A_noise_std": (point, noise)})
    simulation = held(
        "monte-carlo",
        {
            "A_mean": (sized, mean),
            "A_stderr": (sized, stderr),
            "A_spread": (sized, spread),
        },
        runs=40,
    )
    linear = np.ones((2, 1, 6), bool)
    linear[:, :, 4:] = False
    compared = held(
        "comparison",
        {
            "A_z": (sized, z),
            "linear": (("n_spins", "beta", "time"), linear),
            "threshold": 3.5,
            "verdict": (("beta",), [0]),
            "largest_z": (("n_spins", "beta"), [[1.0], [2.0]]),
            "largest_limit_z": (("beta",), [0.7]),
        },
    )
    sheet = simulation.beside([compared, theory])
    chosen = {"n_spins": 1, "pattern": 1}
    means, differences, spreads, against_n = sheet.panels(chosen)
    band, line, dots = means["rows"]
    assert np.allclose(band["error"], noise[0, :, 1] / 20)
    assert np.allclose(line["y"], A[0, :, 1])
    assert np.allclose(dots["y"], mean[1, 0, :, 1])
    assert np.allclose(dots["error"], stderr[1, 0, :, 1])
    assert np.allclose(differences["rows"][0]["y"], z[1, 0, :, 1])
    assert differences["shaded"] == [["not linear", 4, 6]]
    assert "agrees" in differences["note"] and "at 4 steps" in differences["note"]
    assert np.allclose(spreads["rows"][0]["y"], spread[1, 0, :, 1])
    assert against_n["rows"][0]["y"] == [1.0, 2.0]
    assert len(theory.panels({})) == 1  # alone it has no simulation
    other = held("trajectory", {"A": (point, A)}, start="elsewhere")
    assert len(simulation.beside([other]).panels(chosen)[0]["rows"]) == 1


def test_growing_patterns_are_compared_by_their_own_errors():
    rng, shape = np.random.default_rng(1), (2, 5, 2)
    A, error = rng.uniform(size=(2, *shape))
    mean, stderr, spread = rng.uniform(size=(3, 2, *shape))
    point = ("alpha", "time", "pattern")
    sized = ("n_spins", *point)
    grid = {"alpha": [0.1, 0.2], "pattern": [1, 2]}
    alike = {"network": "n", "ensemble": "e", "start": "s", "context": 4, "samples": 9}

    def sheet(kind, variables, **more):
        dataset = xr.Dataset(variables, grid | more, alike)
        lock = threading.RLock()
        return Growing(SimpleNamespace(dataset=dataset, kind=kind, lock=lock))  # type: ignore[arg-type]

    theory = sheet("extensive", {"A": (point, A), "A_error": (point, error)})
    measured = {"A_mean": mean, "A_stderr": stderr, "A_spread": spread}
    variables = {name: (sized, values) for name, values in measured.items()}
    simulation = sheet("extensive-simulation", variables, n_spins=[100, 400])
    chosen = {"alpha": 1, "pattern": 1, "n_spins": 1}
    means, spreads, differences = theory.beside([simulation]).panels(chosen)
    assert np.allclose(means["rows"][0]["error"], error[1, :, 1])
    assert np.allclose(means["rows"][1]["y"], mean[1, 1, :, 1])
    assert np.allclose(spreads["rows"][0]["y"], spread[1, 1, :, 1])
    z = (mean[1, 1] - A[1]) / np.hypot(stderr[1, 1], error[1])
    assert np.allclose(differences["rows"][0]["y"], z[:, 1])
    assert len(theory.panels({"alpha": 1})) == 1


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
    assert [part["set"] for part in cells[0]["parts"]] == [0, 1]
    assert cells[1]["parts"][0]["words"] == "periodic, period 4"


def test_the_server_gives_panels_and_overlays(page, make_page):
    pytest.importorskip("starlette")
    from statmech_attn.explore.explorer import Explorer

    assert page("overlays").told == {"overlays": []}
    assert page("panels").told == {"error": "This file has no panels."}
    paths = [RESULTS / f"one_shot_{name}-laptop.h5" for name in ("saddle-0", "exact-0")]
    with Explorer(paths, warm=False) as explorer:
        asking = make_page(explorer.address)
        file, _ = asking.ready()
        assert file["view"] == "sheet" and file["choices"][0]["values"] == [10.0]
        (told, *_) = asking("panels", chosen={"matrix": 1}).told["panels"]
        assert [layer["words"] for layer in told["layers"]] == [
            "saddle point",
            "exact law",
        ]
        assert asking("panels", chosen={"matrix": -1}).status == 400
        assert asking("overlays").told == {"error": "This file is no scan."}
        values = {"width": 20.0, "temperature": 0.5}
        answer = asking("solved", values=values)  # trained networks are not there
        assert answer.status == 400 and answer.told["error"] == file["why"]


def test_the_page_offers_what_the_files_together_have():
    pytest.importorskip("starlette")
    from statmech_attn.explore.served_file import ServedFile

    values = np.zeros((1, 6, 2))
    measured = {
        "A_mean": (("n_spins", "beta", "time", "pattern"), np.zeros((2, 1, 6, 2)))
    }
    theory, simulation = ServedFile(Path("theory.h5")), ServedFile(Path("spins.h5"))
    theory.view = held("trajectory", {"A": (("beta", "time", "pattern"), values)})
    simulation.view = held("monte-carlo", measured, runs=2)
    theory.file = SimpleNamespace(described=dict)  # type: ignore[assignment]
    theory.state = "ready"
    alone, both = theory.described([]), theory.described([simulation])
    names = lambda told: [choice["name"] for choice in told["choices"]]
    assert "n_spins" in names(both) and "n_spins" not in names(alone)


def test_every_sheet_says_what_can_be_chosen(sheets):
    for sheet in sheets.values():
        assert isinstance(sheet, Sheet)
        choices = sheet.described()["choices"]
        assert all(choice["values"] for choice in choices)
