"""What the kept results of one-shot images say; docs/theory/one_shot.md."""

import json
import pathlib

import numpy as np
import pytest
import xarray as xr

from statmech_attn import bpkr, storage, training


KEPT = pathlib.Path(__file__).resolve().parents[2] / "paper_figs" / "results"
MAIN, VALIDATION = "omniglot", "omniglot-validation"


def kept(name: str) -> xr.Dataset:
    return storage.read(KEPT / f"one_shot_{name}-laptop.h5")


@pytest.fixture(scope="module")
def trained() -> xr.Dataset:
    return kept("training")


@pytest.fixture(scope="module")
def theories(trained) -> list[xr.Dataset]:
    return [kept(f"theory-{restart}") for restart in trained.restart.values]


def test_every_trained_network_tells_unseen_characters_apart(trained):
    """Four binomial errors of each of four networks: by chance once in 8000 times."""
    assert (trained.training_result == training.RUNNING).all()
    found = trained.sel(test_set=MAIN)
    assert (found.accuracy_sets - 0.5 > 4 * found.accuracy_sets_stderr).all()


def test_networks_of_finite_width_are_no_worse_than_their_gp(theories):
    """At the width that is best on validation characters.

    Trainings are the samples: the scatter of their gains holds that of the tasks.
    """
    gains = []
    for found in theories:
        by = found.sel(choice="validation")
        best = by.accuracy_chosen.sel(test_set=VALIDATION).argmax("width")
        gains.append(float(by.accuracy_gain.sel(test_set=MAIN)[best]))
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) >= -2 * error


def test_order_parameters_have_blocks_of_the_first_layers_heads(trained, theories):
    """At N = 10 and the temperature that validation characters choose there."""
    heads = json.loads(trained.attrs["task"])["heads"]
    for found in theories:
        narrow = found.sel(width=10)
        T = narrow.chosen_temperature.sel(choice="validation")
        U = narrow.U_1.sel(temperature=T).values
        first, second = bpkr.block_structure(U, heads)
        assert first > 1 and first > second


def test_scores_of_the_saddle_point_tell_which_heads_matter():
    """Scores that say nothing have a mean of zero, error 1 / sqrt(R (n - 1))."""
    found = kept("pruning").sel(test_set=MAIN)
    known = np.isfinite(found.accuracy_drop.values)
    networks, heads = known.shape
    assert known.all()
    score = found.rank_correlation_mean.sel(order="saddle")
    assert score > 2 / np.sqrt(networks * (heads - 1))
