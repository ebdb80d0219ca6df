"""Pictures of learning show the numbers of their files."""

import numpy as np
import pytest

from statmech_attn import plotting
from statmech_attn.comparison import compare
from statmech_attn.plotting.learning import order_parameters
from statmech_attn.plotting.learning.learning_curve import variance_against_examples
from statmech_attn.plotting.learning.order_parameters import (
    accuracy_against_width,
    alignment,
    finite_width,
    order_parameter_matrices,
    path_kernels,
)
from statmech_attn.plotting.learning.selection import evidence_and_validation
from statmech_attn.plotting.learning.several_sets import accuracy_on_sets


def labelled_lines(axis):
    return {str(line.get_label()): line for line in axis.lines}


def test_accuracy_has_theory_correction_samples_and_three_limits(learned, sampled):
    (axis,) = accuracy_against_width(learned, [sampled]).axes
    lines = labelled_lines(axis)
    theory = lines["saddle point"]
    np.testing.assert_array_equal(theory.get_xdata(), learned.width)
    np.testing.assert_array_equal(theory.get_ydata(), learned.accuracy)
    corrected = lines["saddle point + $1/N$"].get_ydata()
    np.testing.assert_array_equal(corrected, learned.accuracy_corrected)
    assert lines["GP, all paths"].get_ydata()[0] == 0.84
    assert lines["GP, path 1-1"].get_ydata()[0] == 0.9
    assert lines["GP, paths 1-1, 2-1"].get_ydata()[0] == 0.95
    ((points, _, bars),) = axis.containers
    np.testing.assert_array_equal(points.get_ydata(), sampled.accuracy)
    ends = np.array(bars[0].get_segments())[:, :, 1]
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * sampled.accuracy_stderr)


def test_of_arrays_no_path_is_known_to_be_good_and_bars_are_those_of_the_tests(learned):
    learned.attrs["task"] = '{"name": "arrays"}'
    (axis,) = accuracy_against_width(learned).axes
    limits = [name for name in labelled_lines(axis) if name.startswith("GP")]
    assert limits == ["GP"]
    (bars,) = axis.collections
    heights = [np.ptp(ends[:, 1]) for ends in bars.get_segments()]
    p, n = learned.accuracy.values, learned.sizes["test"]
    wilson = np.sqrt(p * (1 - p) / n + 1 / (2 * n) ** 2) / (1 + 1 / n)
    np.testing.assert_allclose(heights, 2 * wilson)


def test_the_denoising_path_helps_the_good_one_most(learned):
    assert learned.path_1.values[order_parameters.denoising_path(learned)] == "2-1"


def test_matrices_are_those_of_the_widths_with_their_numbers(learned):
    figure = order_parameter_matrices(learned, widths=(10, 1000))
    images = [axis for axis in figure.axes if axis.images]
    for axis, width in zip(images, (10, 1000), strict=True):
        U = learned.U_1.sel(width=width).values
        np.testing.assert_array_equal(axis.images[0].get_array(), U)
        low, high = axis.images[0].get_clim()
        assert low == -high  # white is zero
        words = [text.get_text() for text in axis.texts]
        assert len(words) == 16
        assert float(words[2].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            U[0, 2], abs=0.005
        )


def test_alignment_has_the_leading_thirty_of_both(learned):
    (axis,) = alignment(learned, width=100).axes
    here, limit = axis.containers
    heights = [bar.get_height() for bar in here]
    np.testing.assert_array_equal(heights, learned.kernel_overlap[1, :30])
    heights = [bar.get_height() for bar in limit]
    np.testing.assert_array_equal(heights, learned.kernel_overlap_gp[:30])


def test_kernels_show_the_first_and_the_last_examples_by_class_on_one_scale(learned):
    figure = path_kernels(learned)
    shown = [axis.images[0] for axis in figure.axes if axis.images]
    assert len(shown) == 6  # four paths, the limit, the smallest width
    examples = np.r_[0:25, 35:60]
    seen = np.ix_(examples, examples)
    _, vectors = np.linalg.eigh(learned.kernel[0].values[seen])
    first = abs(vectors[:, -1])
    of_classes = [np.argsort(-first[:25]), 25 + np.argsort(-first[25:])]
    order = np.concatenate(of_classes)
    limit = learned.kernel_gp.values
    expected = limit[seen][np.ix_(order, order)] / np.mean(np.diag(limit))
    np.testing.assert_allclose(shown[4].get_array(), expected)
    assert len({image.get_clim() for image in shown}) == 1


def test_finite_width_has_every_estimate_and_the_distance(side_by_side):
    entries, distance, accuracy = finite_width(side_by_side).axes
    saddle = side_by_side.sel(estimate="saddle").squeeze()
    np.testing.assert_array_equal(entries.lines[0].get_ydata(), saddle.U_1[:, 0, 0])
    # The strongest pair beside the diagonal is named too; names rise with the values.
    names = [text.get_text() for text in entries.texts]
    assert names == ["1-1, 2-1", "2-2", "1-2", "2-1", "1-1"]
    heights = [text.get_position()[1] for text in entries.texts]
    assert (np.diff(heights) >= order_parameters.NAME_HEIGHT - 1e-12).all()
    np.testing.assert_allclose(distance.lines[0].get_ydata(), saddle.U_1_rms)
    # At N = 1000 the distance of 0.005 is below the sampling error of 0.01.
    expected = np.sqrt(np.array([0.5, 0.05]) ** 2 - 0.01**2)
    np.testing.assert_allclose(saddle.U_1_rms[:2], expected)
    assert np.isnan(saddle.U_1_rms[2])
    names = labelled_lines(accuracy)
    assert {"saddle point", "saddle point + $1/N$"} <= set(names)
    assert len(accuracy.containers) == 1


def test_one_width_shows_every_estimate_by_a_mark(side_by_side):
    figure = finite_width(side_by_side.isel(width=[0]))
    entries, _, accuracy = figure.axes
    marks = [line.get_marker() for line in entries.lines[:1] + accuracy.lines[:1]]
    assert marks == ["_", "_"] and accuracy.get_xscale() == "linear"


def test_an_estimate_without_a_first_width_keeps_the_saddles_entries(learned, sampled):
    """The correction does not exist where N is below the number of paths."""
    for name in ("U_1_corrected", "U_a_corrected", "accuracy_corrected"):
        learned[name] = learned[name].where(learned.width > 10)
    found = compare(learned, sampled)
    entries = finite_width(found).axes[0]
    corrected = found.sel(estimate="corrected").squeeze()
    pair = entries.lines[9].get_ydata()  # five entries of the saddle point come first
    np.testing.assert_array_equal(pair, corrected.U_1[:, 0, 2])


def test_no_resolved_distance_is_said_in_words(learned, sampled):
    noisy = sampled.assign(U_1_stderr=sampled.U_1_stderr * 0 + 10.0)
    distance = finite_width(compare(learned, noisy)).axes[1]
    assert [text.get_text() for text in distance.texts] == ["none is resolved"]


def test_several_temperatures_are_refused_with_those_at_hand(learned):
    several = learned.expand_dims(temperature=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"select one of \[0.1, 0.2\]"):
        alignment(several)


def test_a_learning_curve_has_bands_of_theory_bars_of_samples_and_the_peak(curve):
    errors, accuracies = plotting.error_against_examples(curve).axes
    error = curve.error.isel(width=0)
    lines = labelled_lines(errors)
    assert {"GP limit", "saddle point", "saddle point + $1/N$"} <= set(lines)
    np.testing.assert_array_equal(lines["saddle point"].get_ydata(), error[:, 1])
    band = errors.collections[1].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(4.4) and band.min() == pytest.approx(0.27)
    (bars,) = errors.containers
    np.testing.assert_array_equal(bars[0].get_ydata(), error[:, 3])
    verticals = [line for line in errors.lines if line.get_linestyle() == ":"]
    assert [line.get_xdata()[0] for line in verticals] == [8]
    assert lines[r"$P = |\Pi| N_0$"] is verticals[0]
    assert errors.get_xscale() == "log" and accuracies.get_ylabel() == "test accuracy"
    (variances,) = variance_against_examples(curve).axes
    of_theory = labelled_lines(variances)["saddle point"].get_ydata()
    np.testing.assert_array_equal(of_theory, curve.variance.isel(width=0)[:, 1])
    several = curve.isel(width=[0, 0]).assign_coords(width=[10, 20])
    with pytest.raises(ValueError, match=r"one width; select one of \[10, 20\]"):
        plotting.error_against_examples(several)


def test_a_learning_curve_says_where_it_has_no_saddle_point(curve):
    said = [text.get_text() for text in plotting.error_against_examples(curve).texts]
    assert any("no saddle point found at $P = 30$" in text for text in said)


def bars(axis):
    """Lengths of the error bars, NaN where none is drawn."""
    (drawn,) = [x.errorbar for x in axis.containers if getattr(x, "errorbar", None)]
    ends = [path.vertices[:, 1] for path in drawn.lines[2][0].get_paths()]
    return [np.ptp(pair) if len(pair) else np.nan for pair in ends]


def test_a_score_without_an_error_has_no_error_bar(scored):
    """The last head has none: a bar of length zero would say that it is exact."""
    (axis,) = plotting.head_scores(scored).axes
    expected = 2 * scored.head_score_stderr.values
    np.testing.assert_allclose(bars(axis), expected, atol=1e-12)


def test_a_line_across_each_bar_is_the_score_of_a_head_that_is_not_read(scored):
    (axis,) = plotting.head_scores(scored).axes
    (lines,) = [x for x in axis.collections if x.get_label() == "floor"]
    heights = [path.vertices[:, 1] for path in lines.get_paths()]
    np.testing.assert_array_equal(
        heights, scored.head_score_floor.values[:, None] * [1, 1]
    )
    old = plotting.head_scores(scored.drop_vars("head_score_floor"))
    assert "floor" not in [x.get_label() for x in old.axes[0].collections]


def test_the_axis_of_heads_says_layer_and_head_only_where_names_do(scored):
    label = lambda data: plotting.head_scores(data).axes[0].get_xlabel()
    assert label(scored) == "head (layer.head)"
    words = [f"head {n}" for n in range(scored.sizes["attention_head"])]
    assert label(scored.assign_coords(attention_head=words)) == "head"


def test_one_temperature_is_drawn_against_the_width(selected):
    one = selected.isel(temperature=[1])
    figure = evidence_and_validation(one)
    for axis, name in zip(figure.axes, ("log_evidence", "error"), strict=True):
        ((line, *_),) = axis.containers
        np.testing.assert_array_equal(line.get_xdata(), one.width)
        np.testing.assert_array_equal(line.get_ydata(), one[name].squeeze())
        assert axis.get_xlabel() == "width $N$" and line.get_linestyle() == "-"


def test_rings_are_at_the_choices_of_evidence_and_validation(selected):
    figure = evidence_and_validation(selected)
    words = [axis.get_ylabel() for axis in figure.axes]
    assert [label.split()[0] for label in words] == ["$\\ln", "mean"]
    for axis, name, place in zip(figure.axes, ("log_evidence", "error"), (1, 0)):
        for bars, width in zip(axis.containers, selected.width, strict=True):
            values = selected[name].sel(width=width)
            np.testing.assert_array_equal(bars[0].get_ydata(), values)
        ring = labelled_lines(axis)["chosen"]
        chosen = selected[name].isel(width=place, temperature=1)
        assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (0.1, float(chosen))
    (note,) = [t.get_text() for t in figure.texts if "rank" in t.get_text()]
    assert "0.10 ± 0.03 above the least" in note and note.endswith(
        "rank correlation 0.50"
    )


def test_every_choice_shows_the_accuracy_on_every_set_with_its_error(of_sets):
    axes = accuracy_on_sets(of_sets).axes
    for axis, by in zip(axes, of_sets.choice.values, strict=True):
        for bars, name in zip(axis.containers, of_sets.test_set.values, strict=True):
            chosen = of_sets.sel(choice=by, test_set=name)
            line, _, (errors,) = bars.lines
            np.testing.assert_array_equal(line.get_ydata(), chosen.accuracy_chosen)
            assert bars.get_label() == name
            lengths = [np.ptp(segment[:, 1]) for segment in errors.get_segments()]
            np.testing.assert_allclose(lengths, 2 * chosen.accuracy_chosen_stderr)
    titles = [axis.get_title() for axis in axes]
    assert titles == [
        f"$T$ chosen by the accuracy on {x}" for x in ("validation", "test")
    ]
    one_set = of_sets.drop_vars("accuracy_sets")
    with pytest.raises(ValueError, match="must have several test sets"):
        accuracy_on_sets(one_set)
