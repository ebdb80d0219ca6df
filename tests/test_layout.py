"""Codes of kept files that no word belongs to, of every variable that has words."""

from pathlib import Path

import pytest
import xarray as xr

from statmech_attn import kinds, layout, storage


RESULTS = Path(__file__).parents[1] / "paper_figs/results"


@pytest.mark.parametrize("file", ["pe5_torus-laptop.h5", "pe5_continuation-laptop.h5"])
def test_codes_without_a_word_are_refused(file):
    dataset = storage.read(RESULTS / file)
    layout.require_layout(dataset, file)
    names = [n for n, x in dataset.variables.items() if "flag_meanings" in x.attrs]
    assert len(names) > 2
    for name in names:
        for code in (-1, 126 if "flag_values" in dataset[name].attrs else 2**30):
            changed = dataset.assign({name: dataset[name].astype(int)})
            changed[name][..., 0] = code
            with pytest.raises(ValueError, match=f"{name} has codes without a meaning"):
                layout.require_layout(changed, file)


@pytest.mark.parametrize("name", ["beta", "rotation_number"])
def test_text_in_place_of_numbers_is_named(name):
    dataset = storage.read(RESULTS / "pe5_torus-laptop.h5")
    changed = dataset.assign_coords if name in dataset.coords else dataset.assign
    words = dataset[name].astype(str)
    with pytest.raises(ValueError, match=f"{name} holds text in place of numbers"):
        layout.require_layout(changed({name: words}), "here")


def test_names_on_an_axis_may_have_words_beside_them():
    words = {"observable": ["x"], "observable_words": ("observable", ["place"])}
    dataset = storage.read(RESULTS / "pe5_torus-laptop.h5").assign_coords(words)
    layout.require_layout(dataset, "here")


def test_minus_one_says_that_nothing_was_computed():
    dataset = storage.read(RESULTS / "one_shot_saddle-0-laptop.h5")
    dataset["result"][..., 0] = -1
    layout.require_layout(dataset, "here")


@pytest.mark.parametrize(("axis", "whole"), [("slot", True), ("beta", False)])
def test_a_slot_without_an_attractor_has_no_phase(axis, whole):
    phase = xr.Variable(axis, [0, -1], {"flag_meanings": "fixed periodic"})
    assert layout._has_words("phase", phase, None) is whole


def test_finite_sizes_have_the_attributes_that_their_summary_reads():
    kind = kinds.of_file("finite-size")
    assert kind is not None
    table = kinds.KINDS.part(kind, "variables")
    said = list(layout._lacking(xr.Dataset(), table))
    for name in ("bifurcation", "beta_c", "least_spins"):
        assert f"it has no attribute {name}" in said
