"""Doubtful verdicts: which they are, and what a longer look makes of them."""

import numpy as np
import pytest

from statmech_attn import studies
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams.confirmation.doubtful_verdicts import (
    doubtful,
    edges,
)


FIXED, TORUS, CHAOS, TRANSIENT = (
    PHASES.index(name) for name in ("fixed", "quasiperiodic", "chaotic", "transient")
)


def on_a_line(*rows):
    """Doubts among (phase, exponent, error) of points side by side."""
    index = np.arange(len(rows))[:, None]
    return doubtful(np.array(rows, float).T, edges(index)).tolist()


def test_chaos_is_doubtful_beside_anything_else():
    assert on_a_line((CHAOS, 0.1, 0.01), (FIXED, -0.1, 0.0)) == [True, False]
    assert on_a_line((CHAOS, 0.1, 0.01), (TORUS, 0.0, 0.0)) == [True, True]
    assert on_a_line((TORUS, 0.0, 0.0), (FIXED, -0.1, 0.0)) == [False, False]


def test_collapsed_directions_raise_no_doubt():
    collapsed = (FIXED, -np.inf, np.nan)
    assert on_a_line(collapsed, collapsed, (CHAOS, 0.1, 0.01)) == [False, False, True]


def test_chaos_is_doubtful_beside_chaos_of_another_size():
    """By more than six errors and half of the larger exponent."""
    strong, weak = (CHAOS, 0.14, 0.005), (CHAOS, 0.015, 0.001)
    assert on_a_line(strong, weak, weak) == [True, True, False]
    assert on_a_line(strong, (CHAOS, 0.10, 0.001)) == [False, False]
    assert on_a_line((CHAOS, 0.14, 0.05), weak) == [False, False]


def test_doubt_goes_along_the_whole_run_beside_what_left():
    """However fine the grid: each of these has a neighbour like itself."""
    strong, weak = (CHAOS, 0.14, 0.003), (CHAOS, 0.015, 0.0005)
    assert on_a_line((FIXED, -0.1, 0.0), *[strong] * 6) == [False] + [True] * 6
    assert on_a_line((TRANSIENT, 0.1, 0.0), *[strong] * 6) == [False] + [True] * 6
    # What lies far above makes its neighbour doubtful, and no more of the weak run.
    assert on_a_line(*[weak] * 4, *[strong] * 4) == [False] * 3 + [True] * 5
    assert on_a_line(*[strong] * 9) == [False] * 9


def test_doubt_goes_along_both_axes_of_a_plane():
    said = np.tile(np.array([[CHAOS], [0.1], [0.001]], float), (1, 12))
    said[0, 5] = FIXED
    index = np.indices((3, 4)).reshape(2, -1).T
    assert doubtful(said, edges(index)).tolist() == [i != 5 for i in range(12)]


def test_a_torus_is_doubtful_beside_an_orbit_that_left():
    assert on_a_line((TORUS, 0.0, 0.0), (TRANSIENT, 0.1, 0.0)) == [True, False]


def test_neighbours_lie_on_one_line():
    whole = np.indices((3, 4)).reshape(2, -1).T
    assert len(edges(whole)) == 2 * 4 + 3 * 3
    # Of a refined grid: the midpoint takes the place between the coarse points.
    assert edges(np.array([[0], [4], [2]])).tolist() == [[0, 2], [2, 1]]


# Means of 4 other starts after 2e6 tokens, in windows of 160 000; errors of the means.
CRISIS = {
    812: (0.00627, 7e-5),
    813: (0.01104, 7e-5),
    814: (0.01240, 9e-5),
    815: (0.01255, 1.3e-4),
    816: (0.01493, 1.2e-4),
    817: (0.01460, 1e-4),
    818: (0.01483, 1.3e-4),
    819: (0.01412, 2.3e-4),
    820: (0.01752, 1.4e-4),
    821: (0.00992, 2.5e-4),
    822: (0.01721, 1.7e-4),
    823: (0.01650, 2e-4),
    824: (0.01772, 1.3e-4),
    825: (0.01974, 1e-4),
    826: (0.02187, 1.1e-4),
    827: (0.02189, 1.2e-4),
    828: (0.02437, 1.1e-4),
    829: (0.1396, 1.0e-3),
    830: (0.1404, 1.1e-3),
    831: (0.1427, 0.8e-3),
    832: (0.1413, 1.2e-3),
    833: (0.1420, 0.7e-3),
}


@pytest.mark.slow
def test_neighbouring_transients_before_a_crisis_do_not_hide_one_another():
    """Of 1088 beta in [1.2, 1.3]: strong chaos lasts from 1.27626 on, weak before it.

    Twelve rows or so before it look like strong chaos, up to seven in a row.  What they
    settle on, and what the others are, has the exponent of long runs within 5 errors.
    """
    beta = np.linspace(1.2, 1.3, 1088)[list(CRISIS)]
    study = {
        "kind": "bifurcation",
        "parameters": {"beta": beta.tolist()},
        "run": {"start": "checkpoint", "exponents": 1},
    }
    scan = studies.run(studies.parse(study))
    exponent, error = np.array(list(CRISIS.values())).T
    weak = exponent < 0.1
    fooled = weak & (scan.lyapunov[:, 0].values > 0.1)
    assert fooled.sum() >= 8
    assert ((scan.phase == TRANSIENT).values == fooled).all()
    assert (scan.final_phase == CHAOS).all()
    error = np.hypot(error, scan.final_lyapunov_stderr.values)
    assert (np.abs(scan.final_lyapunov.values - exponent) < 5 * error).all()
    chance = scan.transient_probability.values
    assert (chance[fooled] == 1).all() and (chance[~fooled] < 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"refine": 1}, {"start": "continue-up"}])
def test_what_stays_has_the_longer_horizon(more):
    """Every kind of scan: confirmed rows keep their verdict and all other numbers."""
    study = {
        "kind": "bifurcation",
        "parameters": {"beta": {"start": 1.262, "stop": 1.35, "num": 2}},
        "run": {
            "start": "checkpoint",
            "transient": 2000,
            "steps": 4000,
            "exponents": 1,
            "max_doublings": 1,
            **more,
        },
    }
    study["run"]["confirm"] = {"starts": 0}
    plain = studies.run(studies.parse(study))
    study["run"]["confirm"] = {"starts": 2, "horizon": 100_000}
    longer = studies.run(studies.parse(study))
    asked = (longer.confirmed >= 0).values
    assert "confirmed" not in plain and asked[plain.doubtful.values == 1].all()
    kept = (longer.confirmed == 2).values
    assert kept.any() and (longer.phase == plain.phase).values[~asked | kept].all()
    assert (longer.phase == TRANSIENT).values[asked & ~kept].all()
    gain = (longer.horizon - plain.horizon).values
    unsure = kept & (longer.transient_probability.values >= 0.05)
    assert np.isin(gain[kept], (72_000, 100_000)).all() and (gain[~kept] == 0).all()
    assert (gain[unsure] == 100_000).all()
    for name in ("lyapunov", "section", "strobe", "period"):
        assert np.array_equal(plain[name], longer[name], equal_nan=True)


def test_confirm_needs_verdicts():
    study = {
        "kind": "bifurcation",
        "parameters": {"beta": 1.0},
        "run": {"exponents": 0, "confirm": {}},
    }
    with pytest.raises(ValueError, match="confirm repeats verdicts"):
        studies.parse(study)
