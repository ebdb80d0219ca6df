"""Finite networks against the theory: bands, scales in N, thresholds."""

import numpy as np
import pytest

from statmech_attn import plotting
from statmech_attn.plotting.network.comparison import (
    differences_in_time,
    scaled,
    scientific,
)


def test_the_band_is_the_linear_noise_of_the_columns_number_of_spins(
    simulation, theory
):
    figure = plotting.finite_size(simulation, theory, tokens=60)
    for axis, n in zip(figure.axes[:2], (900, 90_000), strict=True):
        band = axis.collections[0].get_paths()[0].vertices
        at = band[np.isclose(band[:, 0], 7.0), 1]
        assert np.ptp(at) == pytest.approx(2 * 3 / np.sqrt(n))
        assert scientific(n) in axis.get_title(loc="right")


def test_mean_field_one_run_and_average_are_all_drawn(simulation, theory):
    axis = plotting.finite_size(simulation, theory, tokens=60).axes[0]
    lines = {str(x.get_label()): x.get_ydata() for x in axis.lines}
    mean_field = theory.m_o_se.sel(beta=1.2, pattern=1).values[:60]
    np.testing.assert_array_equal(lines[r"mean field, $N \to \infty$"], mean_field)
    np.testing.assert_allclose(lines["average of 100 runs"], mean_field + 5 / 900)
    assert len(lines["one run"]) == 60


def test_a_band_wider_than_an_overlap_is_not_drawn_any_further(simulation, theory):
    growing = 3.0 * np.exp(0.2 * theory.time)
    theory = theory.assign(m_o_se_noise_std=theory.m_o_se_noise_std * 0 + growing)
    axis = plotting.finite_size(simulation, theory, tokens=60).axes[0]
    last = axis.collections[0].get_paths()[0].vertices[:, 0].max()
    assert last == np.floor(np.log(np.sqrt(900) / 3.0) / 0.2)


def test_a_line_marks_where_the_softmax_stops_being_linear(simulation, theory):
    # 10 sqrt(6) 0.01 exp(0.1 t) / 30 = 0.3 at t = 36.03
    growing = 0.01 * np.exp(0.1 * theory.time)
    theory = theory.assign(m_o_se_noise_std=theory.m_o_se_noise_std * 0 + growing)
    theory = theory.assign_coords(gamma=10.0)
    axis = plotting.finite_size(simulation, theory, tokens=60).axes[0]
    (line,) = [x for x in axis.lines if x.get_label() == "end of linear regime"]
    assert line.get_xdata()[0] == 1 + np.floor(10 * np.log(0.3 * 30 / 0.1 / 6**0.5))


def test_without_a_theory_the_band_is_the_sampled_spread(simulation):
    axis = plotting.finite_size(simulation, tokens=60).axes[0]
    (legend,) = plotting.finite_size(simulation, tokens=60).legends
    words = [text.get_text() for text in legend.get_texts()]
    assert any("spread over runs" in text for text in words)
    band = axis.collections[0].get_paths()[0].vertices
    assert np.ptp(band[np.isclose(band[:, 0], 7.0), 1]) == pytest.approx(0.2)


def test_spread_falls_as_the_root_of_n_and_bias_as_its_inverse(agreeing):
    found = scaled(agreeing, "A")
    n = agreeing.n_spins.values
    np.testing.assert_allclose(found.spread.sel(beta=1.2), 1 / np.sqrt(n))
    runs = agreeing.attrs["runs"]
    np.testing.assert_allclose(found.bias.sel(beta=1.2), 5 / 3 * np.sqrt(runs / n))
    wider = agreeing.assign(A_spread_ratio=2 * agreeing.A_spread_ratio)
    np.testing.assert_allclose(scaled(wider, "A").bias, 2 * found.bias)


def test_an_n_without_linear_steps_does_not_hide_the_others(agreeing):
    agreeing = agreeing.copy(deep=True)
    agreeing["linear"][0] = False
    found = scaled(agreeing, "A")
    assert np.isnan(found.bias.values[0]).all()
    of_sampling = np.sqrt(agreeing.attrs["runs"] / 90_000)
    np.testing.assert_allclose(found.bias.values[1], 5 / 3 * of_sampling)


def test_agreement_draws_thresholds_and_guides(agreeing):
    differences, spread, bias = plotting.agreement(agreeing).axes
    level = {str(x.get_label()): x.get_ydata() for x in differences.lines}
    assert level["allowed"][0] == 5.0
    assert level[r"allowed, $N \to \infty$"][0] == 4.0
    n = agreeing.n_spins.values
    of_spread, of_bias = (
        {str(line.get_label()): line.get_ydata() for line in axis.lines}
        for axis in (spread, bias)
    )
    np.testing.assert_allclose(of_spread["$N^{-1/2}$"], n**-0.5)
    expected = 5 / 3 * np.sqrt(agreeing.attrs["runs"] / n)
    np.testing.assert_allclose(of_bias["$N^{-1/2}$"], expected)
    np.testing.assert_allclose(of_bias["no bias"], 1)
    assert spread.get_xscale() == spread.get_yscale() == bias.get_xscale() == "log"
    assert bias.get_ylim()[0] == 0 and "sampling error" in bias.get_ylabel()


@pytest.mark.parametrize("widest", (900, 9e8))
def test_spreads_of_less_than_two_decades_have_numbers_between(agreeing, widest):
    n = np.geomspace(100, widest, agreeing.sizes["n_spins"])
    spread = plotting.agreement(agreeing.assign_coords(n_spins=n)).axes[1]
    low, high = spread.get_ylim()
    shown = [
        label.get_text()
        for label in spread.get_yticklabels()
        if label.get_text() and low <= label.get_position()[1] <= high
    ]
    assert len(shown) >= 2 and ("0.05" in shown) == (widest < 1e4)


def test_entropy_production_has_a_panel_with_the_power_of_a_resolved_bias(agreeing):
    """An N without steps that are compared counts for time averages."""
    agreeing = agreeing.copy(deep=True)
    agreeing["linear"][0] = False
    n, over = agreeing.n_spins.values, ("n_spins", "beta")
    bias = np.stack([3 / n, 0 * n + 1e-3], axis=1)
    attributes = {"units": "1", "unit_name": "nat / (token spin)"}
    dataset = agreeing.assign(
        entropy_production_difference=(over, bias, attributes),
        entropy_production_difference_stderr=(over, 0.1 * bias),
        entropy_production_bias_slope=("beta", [-1.0, np.nan]),
    )
    axes = plotting.agreement(dataset).axes
    assert len(axes) == 4
    lines = axes[3].lines
    np.testing.assert_allclose(lines[0].get_ydata(), 3 / n)
    guide = {str(line.get_label()): line.get_ydata() for line in lines}
    np.testing.assert_allclose(guide["$N^{-1}$"], 3 / n)
    assert "nat / (token spin)" in axes[3].get_ylabel()


def test_differences_stand_under_the_verdict_of_their_temperature(agreeing):
    titles = [x.get_title(loc="left") for x in differences_in_time(agreeing).axes]
    said = [title.partition(": ")[2] for title in titles if ": " in title]
    tokens = f"({agreeing.sizes['time']} of {agreeing.sizes['time']} tokens)"
    assert said == [f"agrees {tokens}", f"bias only {tokens}"]


def test_an_n_that_is_compared_nowhere_is_in_no_panel_and_no_legend(agreeing):
    agreeing = agreeing.copy(deep=True)
    agreeing["linear"][0] = False
    agreeing["largest_z"][0] = np.nan
    axes = plotting.agreement(agreeing).axes
    words = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert not any("900" in word.replace("90 000", "") for word in words)
    drawn = [x for axis in axes[1:] for x in axis.lines if x.get_label() != "no bias"]
    assert all(np.min(line.get_xdata()) > 900 for line in drawn)


def test_no_slope_is_drawn_for_a_bias_that_was_not_resolved(agreeing):
    lines = lambda dataset: [
        str(line.get_label()) for line in plotting.agreement(dataset).axes[2].lines
    ]
    assert "$N^{-1/2}$" in lines(agreeing)
    unresolved = agreeing.assign(A_bias_slope=agreeing.A_bias_slope * np.nan)
    assert "$N^{-1/2}$" not in lines(unresolved)


def test_a_step_below_rounding_at_one_n_is_left_out_at_all(agreeing):
    agreeing = agreeing.copy(deep=True)
    agreeing["A_spread_ratio"][0, :, 0] = 40.0
    agreeing["A_spread_ratio"][1, :, 0] = np.nan
    found = scaled(agreeing, "A").spread.sel(beta=1.2)
    np.testing.assert_allclose(found, agreeing.n_spins.values**-0.5)
