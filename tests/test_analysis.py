"""Scripts of `analysis` that ask spins: what they estimate, and files they write.

Those of `benchmarks`: whether they begin, and what is kept of stated errors.
"""

import concurrent.futures
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from statmech_attn import statistics, storage


ROOT = Path(__file__).resolve().parents[1]


def script(name: str):
    spec = importlib.util.spec_from_file_location(
        name, ROOT / "analysis" / f"{name}.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem
)
def test_a_benchmark_has_the_names_that_it_begins_with(path, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))  # they take problems of one another
    begins = "__main__" in path.read_text()
    assert ("main" in runpy.run_path(str(path))) == begins


def test_a_threshold_is_the_load_at_which_half_of_the_samples_retrieve(monkeypatch):
    loads, at, width = np.arange(0.20, 0.32, 0.02), 0.263, 0.01
    chance = 1 / (1 + np.exp((loads - at) / width))
    hits = np.random.default_rng(2).random((len(loads), 100)) < chance[:, None]
    module = script("capacity_spins")
    monkeypatch.setattr(module, "DRAWS", 40)
    threshold = module.threshold
    value, error = threshold(loads, hits, seed=0)
    assert abs(value - at) < 4 * error
    # Information of the logistic law: sum of n p (1 - p) / width^2.
    expected = width / np.sqrt(100 * (chance * (1 - chance)).sum())
    assert error == pytest.approx(expected, rel=0.4)  # of 40 draws: 0.11
    assert np.isnan(threshold(loads, np.ones((len(loads), 9), bool), seed=0)).all()


def test_motion_is_the_spread_in_time_at_equal_places_of_the_clock():
    """A cycle of the clock does not move; a slow wave of amplitude a has a/sqrt 2."""
    time = np.arange(4000)[:, None]
    clock = np.array([0.3, -0.2, 0.5, 0.1])[time % 4]
    wave = 0.2 * np.sin(2 * np.pi * time / 400 + np.array([0.0, 1.0]))
    motion = script("crosstalk_spins").motion
    assert motion(np.repeat(clock, 2, axis=1), 4) < 1e-12
    both = motion(np.stack([clock + wave, clock + 2 * wave]), 4)
    np.testing.assert_allclose(both, np.array([0.2, 0.4]) / np.sqrt(2), rtol=1e-3)


def test_a_line_in_the_inverse_number_of_spins_has_its_limit_and_errors():
    """Of squares 0.01 + 3/N with noise, within five errors."""
    sizes, rng = np.array([300, 600, 1200]), np.random.default_rng(0)
    squares = 0.01 + 3 / sizes[:, None] + 1e-3 * rng.standard_normal((3, 50))
    line = script("crosstalk_spins").limit(sizes, squares)
    for name, value in (("limit", 0.01), ("slope", 3.0)):
        error = line[f"motion_{name}_stderr"]
        assert abs(line[f"motion_{name}"] - value) < 5 * error
    assert line["motion_slope_stderr"] < 0.3 and line["motion_chi2"] < 20
    bent = squares + np.array([[0.01], [0.0], [0.01]])
    assert script("crosstalk_spins").limit(sizes, bent)["motion_chi2"] > 100


@pytest.mark.slow
@pytest.mark.statistical
def test_gaussian_crosstalk_moves_spins_as_literal_patterns_do():
    """A(t) of 600 spins at a large load: means and variances over 1500 samples.

    Tokens up to the memory, so that nothing is forgotten; entries of patterns are signs
    in one, Gaussian in the other, which differ in order 1/N.
    """
    module = script("crosstalk_spins")
    network, tokens, samples, n_spins = module.Published(), 6, 1500, 600
    network.workers = concurrent.futures.ThreadPoolExecutor(1)
    given = 1.27, 0.3, n_spins, tokens, samples
    drawn = [run(*given, 3) for run in (network.literal_spins, network.gaussian_spins)]
    x, y = (A[:, 1:].reshape(samples, -1) for A in drawn)
    centred = [(z - z.mean(0)) ** 2 for z in (x, y)]
    for a, b in ((x, y), centred):
        error = np.sqrt((a.var(0, ddof=1) + b.var(0, ddof=1)) / samples)
        z = (a.mean(0) - b.mean(0)) / error
        assert np.abs(z).max() < statistics.threshold(z.size, samples)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given", "variables"),
    [
        (
            "capacity_spins",
            "--contexts 1 --betas 5 --gammas 0 --sizes 100 --steps 2 --samples 2",
            {"threshold", "threshold_error", "after"},
        ),
        (
            "crosstalk_spins",
            "--sizes 300 600 --loads 0.1 --betas 1.4 --window 40 80 --samples 2",
            {"motion", "motion_spins", "motion_limit", "difference"},
        ),
    ],
)
def test_a_script_writes_a_file_that_can_be_read(name, given, variables, tmp_path):
    """As a command: its processes import the script anew."""
    output = tmp_path / "spins.h5"
    command = [sys.executable, ROOT / "analysis" / f"{name}.py", "--output", output]
    subprocess.run([*command, *given.split()], check=True)
    dataset = storage.read(output)
    assert variables <= set(dataset) and "n_spins" in dataset.coords


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("arrow_of_time", "normal form 0.589.*turns is within 0.2 of the cycle"),
        ("response_and_fluctuation", ""),
        ("critical_fluctuations", "exponent of the rounding"),
        ("band_ends", "fold at 1.26841270"),
        # What a short search misses is among the cycles to which branches come back.
        ("network_cycles", r"(?=.*'closed': ).*not listed: \[4"),
    ],
)
def test_a_script_draws_its_pictures_and_says_what_it_finds(
    name, words, tmp_path, capsys
):
    output = tmp_path if name == "arrow_of_time" else tmp_path / "picture.png"
    script(name).main(["--smoke", "--output", str(output)])
    drawn = [*tmp_path.glob("*.png")]
    assert len(drawn) == (2 if output == tmp_path else 1)
    assert all(path.stat().st_size > 10_000 for path in drawn)
    assert re.search(words, capsys.readouterr().out, re.DOTALL)


def test_an_end_and_its_exponent_are_those_of_the_times_beyond():
    """Times of exponent 0.6 with errors of 3 %, on either side of an end."""
    fit = script("band_ends").power_law
    noise = 0.03 * np.random.default_rng(0).standard_normal(12)
    for way in (1, -1):
        critical = 1.3 + way * 4e-7
        betas = 1.3 + way * np.geomspace(1.5e-6, 3e-4, 12)
        times = 2 * np.abs(betas - critical) ** -0.6 * np.exp(noise)
        bracket = 1.3, 1.3 + way * 1e-6
        times[5] *= 20  # in a window
        law, error, chi2, kept = fit(betas, times, np.full(12, 0.03), bracket)
        assert not kept[5] and kept.sum() == 11
        assert (np.abs(law - [np.log(2), 0.6, critical]) < 4 * error).all()
        assert error[1] < 0.03 and chi2 < 8 + 4 * np.sqrt(16)


def test_the_estimate_of_all_cycles_is_chapmans():
    """Two lists of 9 and 6 cycles that share 4: (10 * 7) / 5 - 1 = 13."""
    module, at = script("network_cycles"), np.arange(11.0)

    def cycles(places):
        points = at[places][:, None, None]
        listed = SimpleNamespace(points=points, counts=np.array([len(points)]))
        listed.where = lambda chosen: cycles(np.array(places)[chosen])
        return listed

    both, estimate = module.shared(cycles(range(9)), cycles([5, 6, 7, 8, 9, 10]))
    assert both.tolist() == [4] and estimate.tolist() == [13.0]


@pytest.fixture(scope="module")
def stated_errors():
    return runpy.run_path(str(ROOT / "benchmarks" / "stated_errors.py"))


def test_the_ratio_of_an_error_is_scatter_over_what_is_stated(stated_errors):
    """Errors of half the scatter, about the truth, the mean, and where all are off."""
    values = np.random.default_rng(0).normal(3.0, 1.0, size=(20_000, 1))
    half = lambda repeats: (values, np.full_like(values, 0.5))
    row = lambda truth: stated_errors["row"]("", "", len(values), truth, half)
    for truth, expected in ((3.0, 2.0), (None, 2.0), (0.0, 2 * 10**0.5)):
        # The scatter of 20 000 is known to 0.5 %.
        assert float(row(truth)["ratio"]) == pytest.approx(expected, rel=0.02)
    assert float(row(3.0)["beyond_2"]) == pytest.approx(0.317, abs=0.015)


def test_the_page_holds_the_kept_errors_and_says_which_are_not_right(stated_errors):
    page = (ROOT / "docs" / "stated_errors.md").read_text("utf-8")
    assert stated_errors["page"]() == page, "python benchmarks/stated_errors.py --page"
    told = page.partition("## Outside")[2].lower()
    for row in stated_errors["kept"]():
        right = 0.8 <= float(row["ratio"]) <= 1.25
        assert right or f"**{row['quantity'].lower()}" in told
