"""Scripts of `analysis` that ask spins: what they estimate, and files they write."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from statmech_attn import storage


ROOT = Path(__file__).resolve().parents[1]


def script(name: str):
    spec = importlib.util.spec_from_file_location(
        name, ROOT / "analysis" / f"{name}.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
            "--sizes 300 --loads 0.01 --tokens 120 --samples 2",
            {"motion", "motion_spins", "difference"},
        ),
    ],
)
def test_a_script_writes_a_file_that_can_be_read(
    name, given, variables, tmp_path, monkeypatch
):
    output = tmp_path / "spins.h5"
    arguments = [name, "--output", str(output), *given.split()]
    monkeypatch.setattr(sys, "argv", arguments)
    script(name).main()
    dataset = storage.read(output)
    assert variables <= set(dataset) and "n_spins" in dataset.coords
