"""What the page is told of a file: numbers, cells, words."""

import numpy as np
import xarray as xr

from statmech_attn.explore.result_files.files import cell_edges, labelled, rounded
from statmech_attn.explore.views.line import names_of_starts


def test_cells_end_half_way_between_values():
    assert cell_edges(np.array([0.0, 1.0, 3.0])).tolist() == [-0.5, 0.5, 2.0, 4.0]


def test_numbers_have_seven_digits_or_are_none():
    assert rounded([1 / 3, float("nan")]) == [0.3333333, None]


def test_symbols_are_letters():
    gamma = {"long_name": "of attention", "units": "1", "symbol": r"\gamma"}
    file = xr.Dataset({"gamma": ((), 1.0, gamma)})
    assert labelled(file, "gamma")["symbol"] == "γ"


def test_starts_of_a_scan_are_numbered_from_one():
    names = names_of_starts(xr.Dataset(coords={"start": [0, 1, 2]}))
    assert names == ["start 1", "start 2", "start 3"]
