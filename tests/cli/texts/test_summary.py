"""The summary of a file that does not fit into memory."""

import io
import tracemalloc

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from statmech_attn import storage
from statmech_attn.cli.texts import summary
from statmech_attn.comparison import VERDICTS


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


def test_a_large_file_is_summarised_without_reading_all_of_it(scan):
    expected = printed(storage.read(scan))
    decided = int((storage.read(scan).phase <= 4).sum())
    words = f"at {decided} of {decided} points with a verdict"
    assert words in " ".join(expected.split()) and "fixed" in expected
    with storage.opened(scan) as dataset:
        tracemalloc.start()
        found = printed(dataset)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == expected
    assert peak < 4 * 2**20


def test_of_what_is_too_large_to_read_the_sizes_are_said(scan, monkeypatch):
    monkeypatch.setattr(summary, "AT_ONCE", 4000)  # bytes; `phase` alone has so many
    with storage.opened(scan) as dataset:
        found = printed(dataset)
    assert found == "bifurcation: beta 4000, exponent 3, sample 1000\n"


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
    # The first agrees, the second has diverged, the third was not computed.
    assert "at 1 of 1 points with a verdict" in " ".join(said.split())


def test_an_exponent_of_the_spread_stands_beside_what_chance_allows():
    numbers = {
        "verdict": [5],
        "largest_z": [3.0],
        "comparisons": [40],
        "A_spread_slope": [-0.45],
        "A_spread_slope_stderr": [0.004],
        "A_bias_slope": [np.nan],
        "A_bias_slope_stderr": [np.nan],
    }
    found = xr.Dataset(
        {name: ("beta", values) for name, values in numbers.items()}
        | {
            "linear": (("n_spins", "beta", "time"), np.ones((1, 1, 2), bool)),
            "judged": (("beta", "time"), np.ones((1, 2), bool)),
            "least_spins": (("beta", "time"), [[40.0, 50.0]]),
            "n_spins": [60],
        }
        | {"threshold": 5.2, "slope_threshold": 3.9},
        {"beta": [1.4]},
        {"kind": "comparison"},
    )
    found.verdict.attrs["flag_meanings"] = " ".join(VERDICTS)
    said = " ".join(printed(found).split())
    assert "spread differs" in said and "-0.450 ± 0.004" in said
    assert "up to 3.90 errors from -1/2" in said


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
    _, *heading, first, second, third, _ = console.file.getvalue().splitlines()
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
    assert "saddle 0.50 ± 0.05" in said
    assert "exact-law" not in said and "random" not in said
    assert "means over 2 trainings" in said and f"0 ± {14**-0.5:.1g}" in said


def test_linear_noise_holds_for_so_many_spins():
    """Spread of the scores 3 and 30 at N = 1: below 0.3 for N above 100 and 10 000."""
    score = np.full((1, 200), 3.0)
    score[0, 50:60] = 30.0
    overlap = (("beta", "time", "pattern"), np.full((1, 200, 1), 0.5), LABELS)
    found = xr.Dataset(
        {
            "score_noise_std": (("beta", "time"), score, LABELS),
            "A_noise_std": overlap,
            "m_o_se_noise_std": overlap,
        },
        coords={"beta": ("beta", [1.25], LABELS), "gamma": 127.0},
        attrs={"kind": "trajectory"},
    )
    *_, columns, row = [*printed(found).splitlines()[:3]]
    assert columns.split() == ["beta", "10", "steps", "100", "steps", "200", "steps"]
    assert row.split() == ["1.25", "1e+02", "1e+04", "1e+04"]


def test_a_chosen_temperature_at_the_end_of_its_grid_is_marked():
    choice, sets = ["validation", "published"], ["omniglot", "omniglot-validation"]
    per_set = ("width", "choice", "test_set")
    variables = {
        "chosen_temperature": (("width", "choice"), [[0.5, 2.0]]),
        "chosen_at_end": (("width", "choice"), [[False, True]]),
        "chosen_temperature_gp": ("choice", [0.1, 0.5]),
        "chosen_at_end_gp": ("choice", [True, False]),
    }
    for name in ("accuracy_chosen", "accuracy_gain"):
        variables |= {
            n: (per_set, np.full((1, 2, 2), 0.25)) for n in (name, f"{name}_stderr")
        }
    variables["accuracy_chosen_gp"] = (per_set[1:], np.full((2, 2), 0.25))
    point = {name: (("width",), [0.5]) for name in ("accuracy", "gradient_norm")}
    result = {"flag_meanings": "converged"}
    found = xr.Dataset(
        variables
        | point
        | {
            "accuracy_gp": 0.5,
            "iterations": ("width", [3]),
            "result": ("width", np.zeros(1, "i1"), result),
            "outside_support": ("width", [True]),
        },
        {"width": [10.0], "temperature": 0.5, "choice": choice, "test_set": sets},
        {"kind": "order-parameter"},
    )
    text = printed(found)
    rows = [line.split() for line in text.splitlines()]
    chosen = {tuple(row[:2]): row[2] for row in rows if row[1:2] and row[1] in choice}
    assert chosen == {
        ("10", "validation"): "0.5",
        ("10", "published"): "2*",
        ("GP", "validation"): "0.1*",
        ("GP", "published"): "0.5",
    }
    assert "* an end of the grid" in text
    assert "N = 10: below the size of U" in text
