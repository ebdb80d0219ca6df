"""A panel of exponents hides none of them and keeps those near zero readable."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn.plotting.dynamics import exponents
from statmech_attn.plotting.dynamics.covariant_vectors import angle_quantiles
from statmech_attn.plotting.dynamics.exponents import draw_spectrum, isolated, round_up
from statmech_attn.plotting.dynamics.lyapunov import running_lyapunov


BETA = np.linspace(1.0, 2.0, 5)


def spectrum(*columns):
    """A file with the given exponents, each a number or one for every beta."""
    values = np.stack([np.broadcast_to(x, BETA.shape) for x in columns], axis=1)
    over = ("beta", "exponent")
    return xr.Dataset(
        {"lyapunov": (over, values), "lyapunov_stderr": (over, np.zeros(values.shape))},
        {"beta": BETA},
    )


def drawn(dataset):
    axis = Figure().subplots()
    draw_spectrum(axis, dataset, "beta")
    return axis


def words(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def height(axis, value):
    """Place of a value on the vertical axis, from 0 at the bottom to 1 at the top."""
    places = axis.transData.transform([(1.0, value), (1.0, axis.get_ylim()[0])])
    _, top = axis.transData.transform((1.0, axis.get_ylim()[1]))
    return (places[0, 1] - places[1, 1]) / (top - places[1, 1])


CHAOTIC = [0.14, 0.1, -0.02, 0.05, 0.12], -0.3, -2.6, -17.4, -24.3
DEEP_CYCLE = -0.01, -0.5, -24.3
CONTRACTING = -3.0, -3.5, -4.0
FLAT = 0.0, 0.0


@pytest.mark.parametrize("columns", [CHAOTIC, DEEP_CYCLE, CONTRACTING, FLAT])
def test_every_finite_exponent_lies_inside_the_axis(columns):
    axis = drawn(spectrum(*columns))
    low, high = axis.get_ylim()
    flat = np.concatenate([np.ravel(x) for x in columns])
    assert low < flat.min() and flat.max() < high and low < 0 < high


def test_an_exponent_near_zero_stays_readable_over_a_deep_spectrum():
    axis = drawn(spectrum(*CHAOTIC))
    assert height(axis, 0.14) - height(axis, 0.0) > 0.1
    assert height(axis, 0.0) - height(axis, -0.02) > 0.01
    assert any("logarithmic below" in word for word in words(axis))


@pytest.mark.parametrize("columns", [(0.1, -0.05, -0.3), CONTRACTING])
def test_a_shallow_spectrum_has_a_linear_axis(columns):
    axis = drawn(spectrum(*columns))
    assert axis.get_yscale() == "linear"
    assert not any("logarithmic" in word for word in words(axis))


def test_the_legend_names_what_is_drawn():
    lost, unresolved = -np.inf, np.nan
    axis = drawn(spectrum(0.1, -0.1, unresolved, -0.2, lost, lost))
    assert words(axis) == [
        r"$\lambda_{1}$",
        r"$\lambda_{2}$",
        r"$\lambda_{4}$",
        r"$\lambda_{5},\lambda_{6} = -\infty$",
    ]


def test_faint_exponents_are_named_by_those_that_are_drawn():
    columns = [-0.1 * i for i in range(1, 7)] + [np.nan]
    assert r"$\lambda_{5},\lambda_{6}$" in words(drawn(spectrum(*columns)))


def test_a_single_resolved_value_between_gaps_is_drawn():
    gap = np.nan
    axis = drawn(spectrum(0.1, [gap, gap, -0.2, gap, gap]))
    points = [line.get_xydata() for line in axis.lines if line.get_marker() == "."]
    assert [[1.5, -0.2]] in [p.tolist() for p in points]


def test_equal_exponents_are_told_apart_by_dashes():
    axis = drawn(spectrum(-0.1, -0.1))
    styles = {h.get_linestyle() for h in axis.get_legend().get_lines()}
    assert styles == {"-", "--"}


def test_running_averages_name_only_exponents_that_have_one(measured):
    measured.lyapunov_running[:, :, 1] = np.nan
    (legend,) = running_lyapunov(measured).legends
    assert [t.get_text() for t in legend.get_texts()] == [r"$\lambda_{1}$"]


@pytest.mark.parametrize("x, expected", [(0.13, 0.2), (0.2, 0.2), (6.0, 10.0)])
def test_thresholds_are_round_numbers(x, expected):
    assert round_up(x) == pytest.approx(expected)


def test_values_without_a_finite_neighbour_are_isolated():
    y = np.array([1.0, np.nan, 2.0, 3.0])
    assert isolated(y).tolist() == [True, False, False, False]


def test_exponents_of_covariant_vectors_have_the_colours_of_all_exponents(along_angles):
    figure = angle_quantiles(along_angles)
    named = {str(line.get_label()): line.get_color() for line in figure.axes[0].lines}
    shown = [named[rf"$\lambda_{{{i + 1}}}$"] for i in range(2)]
    assert shown == [exponents.colour(i) for i in range(2)]
