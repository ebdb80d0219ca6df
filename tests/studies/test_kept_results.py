"""What the kept results of one-shot images say; docs/theory/one_shot.md."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from statmech_attn import batches, bpkr, storage, studies
from statmech_attn.training.results import RUNNING


KEPT = pathlib.Path(__file__).resolve().parents[2] / "paper_figs" / "results"
MAIN, VALIDATION = "omniglot", "omniglot-validation"


def kept(name: str) -> xr.Dataset:
    return storage.read(KEPT / f"one_shot_{name}-laptop.h5")


@pytest.fixture(scope="module", params=["", "_turned"], ids=["upright", "turned"])
def variant(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def trained(variant) -> xr.Dataset:
    return kept(f"training{variant}")


@pytest.fixture(scope="module")
def theories(variant, trained) -> list[xr.Dataset]:
    return [kept(f"theory{variant}-{restart}") for restart in trained.restart.values]


def test_every_trained_network_tells_unseen_characters_apart(trained):
    """Four binomial errors of each of twelve networks: by chance once in 2600 times."""
    assert (trained.training_result == RUNNING).all()
    found = trained.sel(test_set=MAIN)
    assert (found.accuracy_sets - 0.5 > 4 * found.accuracy_sets_stderr).all()


def test_turned_characters_are_worth_more_training():
    """Trainings are the samples; by chance less than once in 1000 times (t, 10 dof)."""
    upright, turned = (
        kept(name).accuracy_sets.sel(test_set=MAIN).values
        for name in ("training", "training_turned")
    )
    assert stats.ttest_ind(turned, upright, alternative="greater").pvalue < 1e-3
    assert turned.mean() > 0.78


def test_networks_of_finite_width_are_better_than_their_gp(variant, theories):
    """At the width best on validation characters; trainings are the samples.

    The scatter of their gains holds that of the tasks.  Four upright trainings only
    suggest a gain; eight turned ones have one beyond chance (t of 7 degrees of freedom,
    once in 1000 times).
    """
    gains = []
    for found in theories:
        by = found.sel(choice="validation")
        best = by.accuracy_chosen.sel(test_set=VALIDATION).argmax("width")
        gains.append(float(by.accuracy_gain.sel(test_set=MAIN)[best]))
    chance = {"": 0.2, "_turned": 1e-3}[variant]
    assert stats.ttest_1samp(gains, 0.0, alternative="greater").pvalue < chance


def test_order_parameters_have_blocks_of_the_first_layers_heads(trained, theories):
    """At N = 10 and the temperature that validation characters choose there."""
    heads = json.loads(trained.attrs["task"])["heads"]
    for found in theories:
        narrow = found.sel(width=10)
        T = narrow.chosen_temperature.sel(choice="validation")
        U = narrow.U_1.sel(temperature=T).values
        first, second = bpkr.block_structure(U, heads)
        assert first > 1 and first > second


def test_scores_of_the_saddle_point_tell_which_heads_matter(variant):
    """Scores that say nothing have a mean of zero, error 1 / sqrt(R (n - 1))."""
    found = kept(f"pruning{variant}").sel(test_set=MAIN)
    known = np.isfinite(found.accuracy_drop.values)
    networks, heads = known.shape
    assert known.all()
    score = found.rank_correlation_mean.sel(order="saddle")
    assert score > 2 / np.sqrt(networks * (heads - 1))


def test_the_exact_law_is_that_of_the_weights_and_the_saddle_point_near_it():
    """Below the number of paths: 136 entries, 4.5 errors are chance once in 1000 times.

    Both have draws enough for errors below 4 % of the diagonal.
    """
    saddle, exact, weights = (
        kept(f"{name}-0").squeeze() for name in ("saddle", "exact", "weights")
    )
    assert float(exact.width) < exact.sizes["path_1"]
    error = np.hypot(exact.U_1_stderr, weights.U_1_stderr)
    diagonal = float(np.diag(exact.U_1).mean())
    assert float(error.max()) < 0.04 * diagonal
    assert float((abs(exact.U_1 - weights.U_1) / error).max()) < 4.5
    apart = float(np.sqrt(((saddle.U_1 - exact.U_1) ** 2).mean()))
    assert apart < 0.05 * diagonal


def test_sweeps_of_five_bits_part_above_the_first_instability():
    """Upward on the torus, downward in chaos; docs/figures.md."""
    scan = storage.read(KEPT / "pe5_torus-laptop.h5")
    size = np.abs(scan.strobe).max("strobe_sample").sel(beta=slice(1.33, 1.535))
    upward, downward = size.transpose("start", "beta").values
    assert (upward < 0.15).all()
    assert np.mean(downward > 0.4) > 0.99
    cycle = storage.read(KEPT / "pe5_continuation-laptop.h5")
    assert cycle.special_beta.values == pytest.approx([1.31821555], abs=1e-8)
    locked = storage.read(KEPT / "pe5_continuation_locking-laptop.h5")
    folds = sorted(locked.special_beta.values.tolist())
    assert folds == pytest.approx([1.37024999, 1.40587884], abs=1e-8)


@pytest.mark.parametrize("name", ["pe5_full", "pe5_locking", "pe5_torus"])
def test_kept_sweeps_are_those_of_their_studies(name):
    """Of the time when XLA was the default: no name of a compiler, and not llvm."""
    study, text = studies.load(KEPT.parents[1] / "analysis" / f"{name}.toml")
    file = KEPT / f"{name}-laptop.h5"
    assert studies.holds(file, text)
    stored = storage.info(file).attributes
    assert batches.stored_compiler(study.run.compiler, stored).name == "xla"


@pytest.mark.slow
def test_the_numbers_of_the_documents_can_be_printed():
    """The program prints what stands in docs/validation_learning.md, row by row."""
    root = KEPT.parents[1]
    done = subprocess.run(
        [sys.executable, root / "analysis" / "one_shot_numbers.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    document = (root / "docs" / "validation_learning.md").read_text().replace("−", "-")
    shown = document[document.index("## One-shot images") :]
    for variant in ("two layers of four heads", "trained on turned characters too"):
        of_variant = done.stdout.split(f"{variant}\n", 1)[1]
        for row in (
            "accuracy of gradient descent",
            "accuracy of theory",
            "rank correlation of score and drop",
        ):
            table = of_variant.split(f"{row}\n\n", 1)[1].split("\n\n", 1)[0]
            last = 3 if row == "accuracy of gradient descent" else None  # the mean
            for line in table.splitlines()[2:last]:
                cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
                cells = cells[: cells.index("")] if "" in cells else cells
                if row == "accuracy of theory":
                    cells = cells[:5]  # less the paired error, which is in the text
                assert " | ".join(cells) in shown
