"""The summary of a file that does not fit into memory."""

import io
import tracemalloc

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from statmech_attn import storage
from statmech_attn.cli import summary


LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
POINTS, SAMPLES = 4000, 1000


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    """A bifurcation file with a section of 32 MB."""
    path = tmp_path_factory.mktemp("scan") / "scan.h5"
    rng = np.random.default_rng(0)
    phase = rng.integers(0, 8, POINTS).astype("i1")
    small = xr.Dataset(
        {
            "phase": ("beta", phase, LABELS),
            "phase_paper": ("beta", phase, LABELS),
            "lyapunov": (("beta", "exponent"), rng.normal(size=(POINTS, 3)), LABELS),
        },
        coords={"beta": ("beta", np.linspace(1, 2, POINTS), LABELS)},
    )
    block = np.zeros((500, SAMPLES))
    section = storage.Column(
        ("beta", "sample"),
        (POINTS, SAMPLES),
        block.dtype,
        LABELS,
        lambda: iter([block] * (POINTS // 500)),
    )
    study = 'kind = "bifurcation"'
    storage.write(path, small, study=study, columns={"section": section})
    return path


def printed(dataset: xr.Dataset) -> str:
    text = io.StringIO()
    summary.print_summary(dataset, Console(file=text, width=120))
    return text.getvalue()


def test_a_large_file_is_summarised_without_reading_all_of_it(scan, monkeypatch):
    expected = printed(storage.read(scan))
    assert "agrees at 100.0 %" in expected and "fixed" in expected
    monkeypatch.setattr(summary, "AT_ONCE", 0)
    with storage.opened(scan) as dataset:
        tracemalloc.start()
        found = printed(dataset)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == expected
    assert peak < 4 * 2**20


def test_points_that_failed_are_counted_and_have_no_phase():
    along = lambda values: ("beta", values, LABELS)
    phase = np.array([0, 7, 7], "i1")
    found = xr.Dataset(
        {
            "phase": along(phase),
            "phase_paper": along(np.array([0, 7, 0], "i1")),
            "lyapunov": (
                ("beta", "exponent"),
                np.array([[1.0], [2.0], [np.nan]]),
                LABELS,
            ),
            "failure": along(np.array([0, 0, 2], "i1")),
        },
        coords={"beta": along(np.arange(3.0))},
        attrs={"kind": "bifurcation", "failure_reasons": ["it broke (1 points)"]},
    )
    console = Console(file=io.StringIO(), width=40)
    summary.print_summary(found, console)
    said = console.file.getvalue()
    assert "1 of 3 points have no numbers: it broke (1 points)\n" in said
    assert "agrees at 100.0 %" in " ".join(said.split())


SETS = ["omniglot", "omniglot-validation", "fashion-mnist", "mnist"]


def test_networks_fit_a_line_of_80_columns_each():
    meanings = "step_limit_reached converged diverged vanished"
    restarts, sets = ("restart", np.arange(3)), ("restart", "test_set")
    found = xr.Dataset(
        {
            "best_step": ("restart", [10000, 250, 0]),
            "accuracy_validation": (("restart", "step"), np.full((3, 2), 0.75)),
            "accuracy_sets": (sets, np.full((3, 4), 0.61)),
            "accuracy_sets_stderr": (sets, np.full((3, 4), 0.012)),
            "loss": (("restart", "step"), np.full((3, 2), 0.6543)),
            "training_result": ("restart", [0, 3, -1], {"flag_meanings": meanings}),
        },
        {"restart": restarts, "test_set": SETS},
        {"kind": "training"},
    )
    console = Console(file=io.StringIO(), width=80)
    summary.print_summary(found, console)
    _, *heading, first, second, third, _, _ = console.file.getvalue().splitlines()
    assert [line.split()[0] for line in (first, second, third)] == ["0", "1", "2"]
    ends = ["step limit", "vanished", "not run"]
    for line, end in zip((first, second, third), ends, strict=True):
        assert line.rstrip().endswith(end)
    words = " ".join(heading).split()
    assert "…" not in "".join(words) and words.count("omniglot") == 2


def correlations(mean):
    """Of three trainings with eight heads; the second was not pruned."""
    orders, sets = ["saddle", "exact-law", "random"], ("order", "test_set")
    each = np.stack([mean, np.full((3, 4), np.nan), mean])
    drops = np.where(np.isnan(each[:, 0, 0])[:, None, None], np.nan, np.ones((3, 8, 4)))
    return xr.Dataset(
        {
            "rank_correlation": (("restart", *sets), each),
            "rank_correlation_mean": (sets, mean),
            "rank_correlation_mean_stderr": (sets, 0.1 * mean),
            "accuracy_drop": (("restart", "attention_head", "test_set"), drops),
        },
        {"order": orders, "test_set": SETS, "attention_head": range(8)},
        {"kind": "pruning"},
    )


def test_chance_is_that_of_scores_and_heads_with_numbers():
    """A score without a correlation on one set, and the only head of a layer."""
    mean = np.full((3, 4), np.nan)
    mean[:2], mean[1, 2] = 0.5, np.nan
    found = correlations(mean)
    found.accuracy_drop[:, 7] = np.nan
    said = " ".join(printed(found).split())
    assert "means over 2 trainings" in said and f"0 ± {12**-0.5:.1g}" in said
    assert printed(correlations(np.full((3, 4), np.nan))).strip() == ""


def test_orders_without_scores_are_left_out():
    mean = np.full((3, 4), np.nan)
    mean[0] = 0.5
    found = correlations(mean)
    said = " ".join(printed(found).split())
    assert "saddle 0.5 ± 0.05" in said
    assert "exact-law" not in said and "random" not in said
    assert "means over 2 trainings" in said and f"0 ± {14**-0.5:.1g}" in said
