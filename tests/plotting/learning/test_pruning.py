"""Pictures of pruning show what the file holds."""

import json

import numpy as np
import pytest
import xarray as xr

from statmech_attn.bpkr import pruning
from statmech_attn.plotting.learning.pruning import (
    cumulative_pruning,
    drops_by_rank,
    pruned_heads,
    pruning_ranks,
)


ORDERS = ["saddle", "exact-law", "trained", "magnitude", "random"]
SETS = ["omniglot", "omniglot-validation", "fashion-mnist", "mnist"]
HEADS = ["1.1", "1.2", "1.3", "2.1"]
OF_SCORES = (
    "pruning_score",
    "rank_correlation",
    "rank_correlation_mean",
    "rank_correlation_mean_stderr",
    "accuracy_cumulative",
)
SIZES = {"restart": 3, "order": 5, "attention_head": 4, "test_set": 4, "n_pruned": 3}


def forget(found, order, names=OF_SCORES, restart=slice(None)):
    """Take numbers of one order away."""
    for name in names:
        values = found[name]
        only = {"order": order} | (
            {"restart": restart} if "restart" in values.dims else {}
        )
        values.loc[only] = np.nan


@pytest.fixture
def dataset():
    """Three trainings, the second without numbers; one order empties a layer early."""
    draw = np.random.default_rng(2).uniform
    head, n = ("restart", "attention_head", "test_set"), "n_pruned"
    curve = ("restart", "order", n, "test_set")
    variables = {
        "pruning_score": (("restart", "order", "attention_head"), 0.1, 1.0),
        "accuracy_sets": (("restart", "test_set"), 0.7, 0.8),
        "accuracy_pruned": (head, 0.6, 0.7),
        "accuracy_pruned_stderr": (head, 0.01, 0.02),
        "accuracy_drop": (head, 0.0, 0.2),
        "accuracy_drop_stderr": (head, 0.01, 0.02),
        "accuracy_cumulative": (curve, 0.5, 0.8),
        "accuracy_cumulative_stderr": (curve, 0.0, 0.1),
        "rank_correlation": (("restart", "order", "test_set"), -1.0, 1.0),
        "rank_correlation_mean": (("order", "test_set"), -1.0, 1.0),
        "rank_correlation_mean_stderr": (("order", "test_set"), 0.0, 0.2),
    }
    found = xr.Dataset(
        {
            name: (dims, draw(low, high, [SIZES[d] for d in dims]))
            for name, (dims, low, high) in variables.items()
        },
        {
            "restart": range(3),
            "order": ORDERS,
            "attention_head": HEADS,
            "test_set": SETS,
            "n_pruned": range(3),
        },
    )
    for name in found:
        if "restart" in found[name].dims:
            found[name][1] = np.nan
    found.accuracy_cumulative[2, 3, 2] = np.nan
    forget(found, "random", ["pruning_score", "rank_correlation"])
    found["failure"] = ("restart", [0, 2, 0])
    training = {"patch": 8, "channels": 3, "characters": 77}
    task = {"n_test": 100, "n_train": 50, "training": training}
    return found.assign_attrs(kind="pruning", task=json.dumps(task))


def drawn_points(container):
    return container.lines[0].get_ydata()


def test_heads_stand_at_their_scores_and_what_they_cost_in_each_training(dataset):
    axes = pruned_heads(dataset).axes
    assert len(axes) == 2  # none for the training without numbers
    for axis, number in zip(axes, (0, 2), strict=True):
        one = dataset.isel(restart=number, test_set=0)
        for points, order in zip(axis.containers, ("saddle", "exact-law"), strict=True):
            scores = one.pruning_score.sel(order=order)
            assert (points.lines[0].get_xdata() == scores).all()
            assert (drawn_points(points) == one.accuracy_drop).all()
        bars, none = (points.lines[2] for points in axis.containers)
        assert len(bars) == 1 and not none
        named = {text.get_text(): text.xy for text in axis.texts}
        for head, (score, end) in named.items():
            of = one.sel(attention_head=head)
            assert score == of.pruning_score.sel(order="saddle")
            error = float(of.accuracy_drop_stderr)
            assert abs(end - float(of.accuracy_drop)) == pytest.approx(error)
        assert sorted(named) == HEADS
        assert axis.get_title(loc="left").endswith(f"restart {number}")
        correlation = float(one.rank_correlation.sel(order="saddle"))
        assert axis.get_title(loc="right").endswith(f"{correlation:.2f}")


def test_a_name_stands_beyond_the_bars_that_it_would_meet(dataset):
    dataset.pruning_score.loc[{"order": "saddle"}] = 0.5 + 0.001 * np.arange(4)
    one = dataset.isel(restart=0, test_set=0)
    drops, errors = one.accuracy_drop, one.accuracy_drop_stderr
    ends = {float((drops + errors).max()), float((drops - errors).min())}
    assert {text.xy[1] for text in pruned_heads(dataset).axes[0].texts} == ends


@pytest.mark.parametrize("draw", (pruned_heads, pruning_ranks, cumulative_pruning))
def test_every_picture_states_its_data(dataset, draw):
    words = draw(dataset).get_supxlabel().replace("\n", " ")
    assert words.endswith(
        "77 training characters (published: 1028), $P = 50$, $N_0 = 192$, 2 trainings"
    )
    assert words.count("one standard error") == 1


def test_drops_are_averaged_at_equal_rank_of_the_score(dataset):
    mean, error = drops_by_rank(dataset, "saddle")
    drops = []
    for number in (0, 2):
        one = dataset.isel(restart=number, order=0, test_set=0)
        drops.append(one.accuracy_drop.sortby(one.pruning_score).values)
    assert np.abs(mean - np.mean(drops, axis=0)).max() < 1e-15
    assert np.abs(error - np.abs(drops[0] - drops[1]) / 2).max() < 1e-15
    one = dataset.drop_vars("failure").isel(restart=[2])
    assert (drops_by_rank(one, "saddle")[0] == drops[1]).all()
    ranks = one.pruning_score[0, 0].argsort().values
    binomial = one.accuracy_drop_stderr[0, ranks, 0]
    assert (drops_by_rank(one, "saddle")[1] == binomial).all()


def test_rank_correlations_stand_beside_what_chance_gives(dataset):
    left, right = pruning_ranks(dataset).axes
    _, *of_sets = right.containers  # the first are the bars of chance
    for points, name in zip(of_sets, SETS, strict=True):
        stored = dataset.rank_correlation_mean.sel(test_set=name)[:4]
        assert (drawn_points(points) == stored).all()
    for band in right.patches:
        assert band.get_height() == pytest.approx(2 / np.sqrt(3 * 2))
    assert len(left.containers) == 2  # saddle point and exact law


def test_the_only_head_of_a_layer_does_not_count_for_chance(dataset):
    dataset.accuracy_drop.loc[{"attention_head": "2.1"}] = np.nan
    _, right = pruning_ranks(dataset).axes
    for band in right.patches:  # one s.d. is 1 / sqrt(R (n - 1)), R = 2 and n = 3
        assert band.get_height() == pytest.approx(2 / np.sqrt(2 * 2))


def test_published_drops_are_drawn_beside_those_of_the_same_heads(dataset):
    """Tiberi et al. (NeurIPS 2024): 83.8 % with all heads."""
    names = [f"{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
    eight = dataset.isel(attention_head=[0, 1, 2, 3] * 2)
    left, _ = pruning_ranks(eight.assign_coords(attention_head=names)).axes
    (crosses,) = [line for line in left.lines if line.get_marker() == "x"]
    drops = [0.020, 0.008, 0.043, 0.084, 0.078, 0.073, 0.095, 0.089]
    assert np.abs(crosses.get_ydata() - drops).max() < 1e-12
    assert crosses.get_label() == "published, 1028 characters"
    assert round(pruning.rank_correlation(np.arange(8), drops), 3) == 0.857
    left, _ = pruning_ranks(dataset).axes
    assert not [line for line in left.lines if line.get_marker() == "x"]


@pytest.mark.parametrize("draw", (pruned_heads, pruning_ranks, cumulative_pruning))
def test_without_any_numbers_the_error_says_so(dataset, draw):
    dataset["failure"] = ("restart", [2, 2, 2])
    with pytest.raises(ValueError, match="no training of this file has numbers"):
        draw(dataset)


def test_orders_without_numbers_are_left_out(dataset):
    forget(dataset, "exact-law")
    left, right = pruning_ranks(dataset).axes
    assert len(left.containers) == 1 and len(right.patches) == 3
    assert "exact\nlaw" not in [text.get_text() for text in right.get_xticklabels()]
    assert not drops_by_rank(dataset, "exact-law")[0].size
    (legend,) = cumulative_pruning(dataset).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "saddle point",
        "trained network",
        "magnitude",
        "random",
        "chance",
        "one more empties a layer",
    ]


def test_drops_and_curves_are_of_the_trainings_of_the_correlations(dataset):
    """The exact law is known for the last training only."""
    forget(dataset, "exact-law", OF_SCORES, restart=0)
    one = dataset.isel(restart=2, test_set=0).sel(order="exact-law")
    mean, _ = drops_by_rank(dataset, "exact-law")
    assert (mean == one.accuracy_drop.sortby(one.pruning_score)).all()
    left, right = pruning_ranks(dataset).axes
    labels = left.get_legend_handles_labels()[1]
    assert "score of the exact law, 1 of 2" in labels
    heights = [band.get_height() for band in right.patches]
    assert heights == pytest.approx(2 / np.sqrt(3 * np.array([2, 1, 2, 2])))
    curves = dict(
        zip(*cumulative_pruning(dataset).axes[0].get_legend_handles_labels()[::-1])
    )
    drawn = drawn_points(curves["exact law, 1 of 2"])
    assert (drawn == one.accuracy_cumulative).all()
    heads = pruned_heads(dataset.isel(restart=[0, 2]))
    names = [text.get_text() for text in heads.legends[0].get_texts()]
    assert "score of the exact law" in names  # it is in the second panel only


def test_a_curve_ends_where_a_training_has_lost_a_layer(dataset):
    omniglot, fashion = cumulative_pruning(dataset).axes
    for axis, name in ((omniglot, "omniglot"), (fashion, "fashion-mnist")):
        here = dataset.sel(test_set=name).isel(restart=[0, 2]).accuracy_cumulative
        expected = here.values.mean(axis=0)  # NaN where one of them is
        curves = [drawn_points(c) for c in axis.containers]
        for curve, mean in zip(curves, expected[:4], strict=True):
            assert np.array_equal(np.ma.filled(curve, np.nan), mean, equal_nan=True)
        assert np.isnan(expected[3]).tolist() == [False, False, True]
        (end,) = [x.get_xydata() for x in axis.lines if x.get_marker() == "x"][:1]
        assert end[0] == pytest.approx([1, expected[3, 1]], abs=0.1)
        assert end[0, 1] == expected[3, 1]
        (random,) = [line for line in axis.lines if line.get_label() == "random"]
        assert (random.get_ydata() == expected[4]).all()


def test_a_correlation_without_an_error_has_no_error_bar(dataset):
    """One training says nothing of the scatter, which is not the same as none."""
    dataset.rank_correlation_mean_stderr[:] = np.nan
    axis = pruning_ranks(dataset).axes[1]
    bars = [part for part in axis.containers if getattr(part, "has_yerr", False)]
    assert len(bars) == dataset.sizes["test_set"]
    for bar in bars:
        caps = np.concatenate([np.asarray(c.get_ydata(), float) for c in bar.lines[1]])
        assert caps.size and not np.isfinite(caps).any()
