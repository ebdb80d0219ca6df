"""`statmech-attn export`: tables with one row per point, and Zarr stores."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from statmech_attn import storage


BETA = np.array([0.5, 1.0, 1.5])


@pytest.fixture
def scan(tmp_path):
    """A bifurcation file as the library writes it, of three points."""
    path = tmp_path / "scan.h5"
    lyapunov = np.array([[0.1, -1 / 3], [-0.2, -np.inf], [np.nan, np.nan]])
    words = "fixed periodic quasiperiodic chaotic"
    flags = {"flag_values": np.arange(4, dtype=np.int8), "flag_meanings": words}
    dataset = xr.Dataset(
        {
            "lyapunov": (("beta", "exponent"), lyapunov, {"units": "nat / token"}),
            "phase": ("beta", np.array([3, 1, 0], np.int8), flags),
            "section_count": ("beta", np.array([5, 6, 7])),
            "section": (("beta", "sample"), np.ones((3, 100))),
        },
        {"beta": BETA, "exponent": [1, 2], "gamma": 20.0},
        {"kind": "bifurcation"},
    )
    for variable in dataset.variables.values():
        said = {"long_name": "a number", "units": "1", "symbol": "x"}
        variable.attrs = said | variable.attrs
    storage.write(path, dataset, study='kind = "bifurcation"\n')
    return path


@pytest.fixture(autouse=True)
def any_layout(monkeypatch):
    """Files of the tests hold a part of what files of their kinds hold."""
    monkeypatch.setattr(
        "statmech_attn.cli.commands.exports.require_layout", lambda *_: None
    )


def test_a_csv_file_has_one_row_per_point_and_every_bit(call, scan, tmp_path):
    said = call("export", scan, "--csv", tmp_path / "scan.csv").stdout
    assert "3 rows" in said and "not in the table" in said and "section" in said
    table = pd.read_csv(tmp_path / "scan.csv")
    assert table.beta.tolist() == BETA.tolist() and set(table.gamma) == {20.0}
    assert table.phase.tolist() == ["chaotic", "periodic", "fixed"]
    assert table.lyapunov_2[0] == -1 / 3 and table.lyapunov_2[1] == -np.inf
    assert np.isnan(table.lyapunov_1[2]) and "section_1" not in table


def test_a_json_file_says_its_units_and_is_json(call, scan, tmp_path):
    call("export", scan, "--json", tmp_path / "scan.json")
    refuse = lambda text: pytest.fail(text)
    found = json.loads((tmp_path / "scan.json").read_text(), parse_constant=refuse)
    assert found["kind"] == "bifurcation" and len(found["points"]) == 3
    assert found["columns"]["lyapunov_1"]["units"] == "nat / token"
    assert found["points"][1]["lyapunov_2"] == "-inf"
    assert found["points"][2]["lyapunov_1"] is None


def test_a_row_may_stand_for_other_dimensions(call, scan, tmp_path):
    out = tmp_path / "long.csv"
    call("export", scan, "--csv", out, "--rows", "beta,exponent")
    table = pd.read_csv(out)
    assert table.exponent.tolist() == 3 * [1, 2]
    refused = call("export", scan, "--csv", tmp_path / "o", "--rows", "time", code=1)
    assert "no dimension 'time'; this file has beta, exponent, sample" in refused.stderr


def test_a_file_without_samples_is_a_table():
    codes = xr.DataArray([1, 0], dims="beta", attrs={"flag_values": [0, 1]})
    dataset = xr.Dataset(
        {"section": (("beta", "sample"), np.zeros((2, 0))), "phase": codes},
        {"beta": [0.5, 1.0], "sample": np.zeros(0, int)},
        {"kind": "bifurcation"},
    )
    dataset.phase.attrs["flag_meanings"] = "fixed periodic"
    frame = storage.tables.tabulate(dataset).frame
    assert frame.to_dict("list") == {"beta": [0.5, 1.0], "phase": ["periodic", "fixed"]}


def test_a_file_that_another_program_changed_is_not_exported(call, scan, tmp_path):
    with h5py.File(scan, "a") as file:
        file["lyapunov"][0, 0] += 1e-6
    for reader in (["export", "--csv", tmp_path / "bad.csv"], ["info"]):
        assert "it has no seal" in call(*reader, scan, code=1).stderr
    assert not (tmp_path / "bad.csv").exists()


def test_the_ending_of_an_output_says_its_format(call, scan, tmp_path):
    call("export", scan, "--csv", tmp_path / "a.csv")
    call("export", scan, "-o", tmp_path / "b.csv", "--json", tmp_path / "c.json")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    for more in (["-o", "d.txt"], ["-o", "d.csv", "--csv", "e.csv"]):
        assert "each once" in call("export", scan, *more, code=2).stderr


def test_a_folder_for_figures_is_not_called_like_a_picture(call, scan, tmp_path):
    said = call("figure", scan, "-o", tmp_path / "plane.pdf", code=1).stderr
    assert "would be a folder" in said and not (tmp_path / "plane.pdf").exists()


def test_padding_is_no_row():
    """Branches of two points and of one, as continuations store them."""
    dataset = xr.Dataset(
        {"arclength": (("branch", "point"), [[0.0, 2.0], [3.0, np.nan]])},
        attrs={"kind": "continuation"},
    )
    assert storage.tables.tabulate(dataset).frame.arclength.tolist() == [0.0, 2.0, 3.0]


def test_nothing_is_replaced_unasked(call, scan, tmp_path):
    out = tmp_path / "scan.csv"
    call("export", scan, "--csv", out)
    assert "already exists" in call("export", scan, "--csv", out, code=1).stderr
    call("export", scan, "--csv", out, "--overwrite")
    before = scan.read_bytes()
    assert call("export", scan, "--csv", scan, "--overwrite", code=1).stderr
    assert scan.read_bytes() == before
    assert "--csv" in call("export", scan, code=2).stderr
