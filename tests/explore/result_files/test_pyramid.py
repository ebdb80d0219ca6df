"""Counts of any window are those of numpy's histogram, on every level."""

import h5py
import numpy as np
import pytest

from statmech_attn import kept_files
from statmech_attn.explore.result_files import pyramid


def histogram(samples, first, stop, width, edges):
    """Cells hold their lower edge, and the last one not its upper."""
    columns = -(-(stop - first) // width)
    counts = np.zeros((columns, len(edges) - 1), int)
    for column in range(columns):
        low = first + column * width
        values = np.ravel(samples[low : min(low + width, stop)])
        values = values[values < edges[-1]]
        counts[column] = np.histogram(values, edges)[0]
    return counts


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    """Of 5000 points: a band, a cycle of four, and points without any."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(5000, 12)).astype(np.float32)
    values[1000:2000] = np.tile([0.1, -0.25, 0.5, 0.75], 3)
    values[rng.random(values.shape) < 0.1] = np.nan
    values[7] = np.nan
    values[8] = np.inf
    return values


@pytest.fixture
def stored(samples, tmp_path, monkeypatch):
    """Its pyramid in a file, with levels that small scans have none of."""
    monkeypatch.setattr(pyramid, "IN_MEMORY", 1000)
    monkeypatch.setattr(pyramid, "DIRECT", 1000)
    read = lambda first, stop: samples[first:stop]
    place = tmp_path / "scan.h5.section.pyramid"
    make = lambda source="a": pyramid.pyramid(5000, 12, read, place, source)
    return place, make


@pytest.mark.parametrize("window", ((0, 5000), (128, 4096), (64, 100), (4992, 5000)))
@pytest.mark.parametrize("width", (1, 4, 8, 16, 64))
def test_counts_are_those_of_numpy(stored, samples, window, width):
    made = stored[1]()
    assert len(made.levels) == 2 and made.points == 5000
    first, stop = window
    first -= first % width
    edges = np.linspace(-1, 1, 41, dtype=np.float32)  # 0.1, -0.25 ... are edges
    counts = made.counts(first, stop, width, edges)
    assert np.array_equal(counts, histogram(samples, first, stop, width, edges))
    assert counts.sum() > 0


def test_a_pyramid_is_made_once_and_anew_for_another_scan(stored):
    place, make = stored
    make()
    made = place.stat().st_mtime_ns
    make()
    assert place.stat().st_mtime_ns == made
    make("another scan")
    assert place.stat().st_mtime_ns > made
    made = place.stat().st_mtime_ns
    make("another scan")
    assert place.stat().st_mtime_ns == made


def test_a_file_of_others_is_never_replaced(stored, samples):
    place, make = stored
    place.write_text("mine")
    assert make().low == samples[np.isfinite(samples)].min()
    assert place.read_text() == "mine"


def _lose_a_level(file):
    del file["level_1"]


def _change_a_sample(file):
    file["level_1"][3, 5] += 0.5


def _flatten_the_density(file):
    file["level_0"][...] = 0.0


def _store_in_chunks(file):
    values = file["level_0"][...]
    del file["level_0"]
    file.create_dataset("level_0", data=values, chunks=(10, 12))


def _cut_the_points(file):
    values = file["level_0"][:100]
    del file["level_0"]
    file["level_0"] = values


def _hold_text(file):
    del file["level_0"]
    file["level_0"] = "text"


def _be_a_group(file):
    del file["level_0"]
    file.create_group("level_0")


@pytest.mark.parametrize(
    "damage",
    (
        _lose_a_level,
        _change_a_sample,
        _flatten_the_density,
        _store_in_chunks,
        _cut_the_points,
        _hold_text,
        _be_a_group,
    ),
)
def test_a_changed_pyramid_is_made_anew(stored, samples, damage):
    place, make = stored
    edges = np.linspace(-1, 1, 11, dtype=np.float32)
    expected = histogram(samples, 0, 5000, 8, edges)
    make()
    with h5py.File(place, "r+") as file:
        damage(file)
    assert np.array_equal(make().counts(0, 5000, 8, edges), expected)


def test_a_pyramid_of_another_user_is_made_anew(stored, monkeypatch):
    place, make = stored
    make()
    made = place.stat().st_mtime_ns
    monkeypatch.setattr(kept_files, "secret", lambda: bytes(kept_files.SECRET))
    make()
    assert place.stat().st_mtime_ns > made


def test_a_cut_pyramid_is_made_anew(stored, samples):
    place, make = stored
    make()
    place.write_bytes(place.read_bytes()[:-1000])
    assert make().low == samples[np.isfinite(samples)].min()


@pytest.mark.parametrize("columns", (1, 7, 500, 10_000))
def test_columns_are_powers_of_two_and_lie_on_a_grid(columns):
    for first, stop in ((0, 1), (3, 5000), (123, 124), (4000, 4999)):
        width, start = pyramid.width_for(first, stop, columns)
        assert width & (width - 1) == 0 and start % width == 0
        assert start <= first and -(-(stop - first) // width) <= columns
