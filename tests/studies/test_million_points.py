"""What the kept plane of a million points says; docs/performance.md."""

import pathlib

import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage, studies
from statmech_attn.dynamics import PHASES


ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXED, PERIODIC, CHAOTIC = map(PHASES.index, ("fixed", "periodic", "chaotic"))
NEIMARK_SACKER = 1.2434445478  # beta, gamma = 127.02; test_continuation.py


@pytest.fixture(scope="module")
def plane() -> xr.Dataset:
    return storage.read(ROOT / "paper_figs" / "results" / "million_points-laptop.h5")


def test_leading_exponents_have_the_signs_of_the_phases(plane):
    phase, leading = plane.phase, plane.lyapunov.isel(exponent=0)
    assert phase.shape == (1000, 1000)
    assert (leading.where(phase.isin([FIXED, PERIODIC]), -1) < 0).all()
    assert (leading.where(phase == CHAOTIC, 1) > 0).all()


def test_the_clocks_fixed_point_ends_at_the_neimark_sacker_point(plane):
    """To one cell, at the nearest gamma: next to it convergence takes too long."""
    published = plane.sel(gamma=127.017, method="nearest")
    first = published.beta[int((published.phase != FIXED).argmax("beta"))]
    cell = float(plane.beta[1] - plane.beta[0])
    assert float(first) == pytest.approx(NEIMARK_SACKER, abs=cell)


@pytest.mark.slow
def test_points_of_the_plane_by_the_other_compiler(plane):
    """64 points: the same phase, and exponents within 4 errors or the kept digits.

    Where a verdict is doubtful, attractors coexist or chaos is transient, and rounding
    chooses.
    """
    part = plane.isel(beta=slice(62, None, 125), gamma=slice(62, None, 125))
    names = ("beta", "gamma")
    settings = [f"parameters.{name}={part[name].values.tolist()}" for name in names]
    study, _ = studies.load(
        ROOT / "analysis" / "million_points.toml", [*settings, "run.compiler=xla"]
    )
    anew = studies.run(study).isel(exponent=slice(1))
    sure = part.doubtful == 0
    assert int(sure.sum()) >= 48
    assert (anew.phase == part.phase).where(sure, True).all()
    error = 4 * np.hypot(anew.lyapunov_stderr, part.lyapunov_stderr)
    same = abs(anew.lyapunov - part.lyapunov) <= error + 2**-10 * abs(part.lyapunov)
    assert same.where(sure, True).all()
