"""Options of `statmech-attn figure`."""

import os

import matplotlib.image
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from typer.testing import CliRunner

from statmech_attn import plotting, storage
from statmech_attn.cli import app
from statmech_attn.cli.commands import figures, results


def refined() -> xr.Dataset:
    """A refined scan of three points on a finest grid of five values."""
    return xr.Dataset(
        {"phase": ("point", [0, 1, 2]), "special_beta": ("special", [1.1, 1.9])},
        {
            "beta": ("point", [1.0, 1.5, 2.0]),
            "beta_index": ("point", [0, 2, 4]),
            "beta_grid": ("beta_grid", np.linspace(1.0, 2.0, 5)),
        },
    )


def test_a_range_keeps_points_grid_and_special_points_together():
    part = figures.within(refined(), ["beta=1.25:"])
    assert part.beta.values.tolist() == [1.5, 2.0]
    assert part.beta_grid[part.beta_index].values.tolist() == [1.5, 2.0]
    assert part.special_beta.values.tolist() == [1.9]


def test_points_of_branches_outside_a_range_are_not_drawn():
    dataset = xr.Dataset({"beta": (("branch", "point"), [[1.0, 1.5], [2.0, np.nan]])})
    kept = figures.within(dataset, ["beta=1.2:1.8"]).beta.values
    np.testing.assert_array_equal(kept, [[np.nan, 1.5], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("beta", "such as beta=1.2:1.3"),
        ("beta=a:b", "such as beta=1.2:1.3"),
        ("gamma=1:2", "no axis 'gamma'; this file has beta"),
        ("beta=3:4", r"nothing is there; beta is in \[1, 2\]"),
    ],
)
def test_a_range_that_cannot_be_drawn_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        figures.within(refined(), [text])


@pytest.mark.parametrize("text", ("wide", "0", "3x0", "5x", "1e3"))
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="--size must be"):
        figures.sized(text)


def test_a_size_is_a_column_or_inches():
    assert figures.sized("single") == (3.4, None)
    assert figures.sized("5x3.5") == (5.0, 3.5)


def test_the_command_knows_the_formats_that_are_written():
    assert {form.value for form in results.Format} == {*plotting.FORMATS}


def figure(*words, code=0):
    result = CliRunner().invoke(app, ["figure", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def test_pictures_are_drawn_as_asked(scan, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "_read", lambda file: scan)
    options = ("--format", "png", "--dpi", 100, "--size", "4x3")
    figure("scan.h5", "-o", tmp_path, "--only", "bif*", *options)
    assert os.listdir(tmp_path) == ["bifurcation.png"]
    pixels = matplotlib.image.imread(tmp_path / "bifurcation.png").shape[:2]
    assert pixels == (300, 400)
    by_function = ("--only", "classifier_disagreement", "--format", "svg")
    figure("scan.h5", "-o", tmp_path, *by_function)
    assert sorted(os.listdir(tmp_path)) == ["bifurcation.png", "classifiers.svg"]


def test_a_picture_that_a_file_lacks_is_refused(scan, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "_read", lambda file: scan)
    refused = figure("scan.h5", "-o", tmp_path, "--only", "spectra", code=1)
    assert "this file has bifurcation, classifiers" in refused.stderr


@pytest.mark.parametrize("form", plotting.FORMATS)
def test_a_picture_replaces_pictures_of_this_package_only(tmp_path, form):
    (ours,) = plotting.save(Figure(), tmp_path, "a", [form])
    plotting.save(Figure(figsize=(1, 1)), tmp_path, "a", [form])
    Figure().savefig(ours)
    before = ours.read_bytes()
    with pytest.raises(storage.StorageError, match="no picture of this package"):
        plotting.save(Figure(), tmp_path, "a", [form])
    assert ours.read_bytes() == before
