"""Pictures of patterns growing with N."""

import numpy as np
import pytest

from statmech_attn import plotting
from statmech_attn.plotting import extensive


def labelled_lines(axis):
    return {line.get_label(): line for line in axis.lines}


def test_spins_lie_on_the_theory_of_their_own_load(growing, spins_of_growing):
    (axis,) = plotting.overlaps_in_time(growing, spins_of_growing).axes
    line = labelled_lines(axis)[r"$\alpha = 0.4$"]
    np.testing.assert_array_equal(line.get_ydata(), growing.m_o_se[1, :, 0])
    bars = axis.containers[1]
    assert bars[0].get_color() == line.get_color()
    np.testing.assert_array_equal(bars[0].get_ydata(), growing.m_o_se[1, :, 0] + 0.01)
    note = axis.figure.get_supxlabel()
    assert r"$\beta = \infty$" in note and "$N = 400$, 20 samples" in note


def test_every_age_has_its_dashes_and_every_load_its_colour(growing):
    noise, weights = plotting.crosstalk_in_time(growing).axes
    lines = labelled_lines(noise)
    np.testing.assert_array_equal(
        lines[r"$\alpha = 0.1$"].get_ydata(), growing.noise_std[0]
    )
    drawn = {(line.get_color(), line.get_linestyle()) for line in weights.lines[:4]}
    assert len(drawn) == 4


def test_two_times_have_a_panel_for_every_load_and_one_scale(growing):
    figure = plotting.two_times(growing)
    images = [axis.collections[0] for axis in figure.axes[:2]]
    for image, C in zip(images, growing.C, strict=True):
        np.testing.assert_array_equal(image.get_array(), C)
        assert image.get_clim() == (0.0, 1.0)
    with pytest.raises(ValueError, match="no order parameter 'S'.*this file has C"):
        plotting.two_times(growing, "S")


def test_capacities_are_drawn_against_gamma_or_else_the_temperature(loads):
    (axis,) = plotting.capacities(loads).axes
    assert axis.get_xlabel().startswith("attention inverse temperature")
    assert {r"$\beta = 2$", r"$\beta = \infty$", "$C = 1$", "$C = 2$"} <= {
        text.get_text() for text in axis.figure.legends[0].get_texts()
    }
    (axis,) = plotting.capacities(loads.isel(gamma=0)).axes
    np.testing.assert_array_equal(axis.containers[0][0].get_xdata(), [0.5, 0.0])


def test_many_points_are_spread_over_pages(growing):
    many = growing.isel(alpha=[0, 1] * 4)
    suffixes, parts = zip(*extensive.pages(many), strict=True)
    assert suffixes == ("_1", "_2")
    assert [part.sizes["point"] for part in parts] == [6, 2]
