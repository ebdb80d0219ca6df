"""Doubtful verdicts: which they are, and what a longer look makes of them."""

import numpy as np
import pytest

from statmech_attn import studies
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams.confirm import doubtful, edges


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


@pytest.fixture(scope="module")
def zoom():
    """Seven of the 256 beta in [1.24, 1.28]: a cycle, four transients, a cycle, one."""
    at = lambda i: 1.24 + 0.04 * i / 255
    study = {
        "kind": "bifurcation",
        "parameters": {"beta": {"start": at(215), "stop": at(221), "num": 7}},
        "run": {
            "start": "checkpoint", "transient": 30_000, "steps": 10_000,
            "exponents": 1, "confirm": {"starts": 2, "horizon": 2_000_000},
        },
    }  # fmt: skip
    return studies.run(studies.parse(study))


@pytest.mark.slow
def test_transients_that_pass_for_chaos_are_found_out(zoom):
    """216 to 219 end on cycles of period 64; the inner ones are asked after the outer.

    The outer ones, 216 and 219, lie beside cycles.  221 leaves for weak chaos.
    """
    names = [PHASES[int(code)] for code in zoom.phase]
    assert names == ["periodic", *["transient"] * 4, "periodic", "transient"]
    assert not zoom.doubtful.any()  # nothing is left to doubt
    ends = [PHASES[int(code)] for code in zoom.final_phase]
    assert ends == ["periodic"] * 6 + ["chaotic"]
    assert zoom.final_period.values[1:5].tolist() == [64] * 4
    assert (zoom.final_lyapunov[1:5] < 0).all() and 0 < zoom.final_lyapunov[6] < 0.03
    assert (zoom.transient_probability.values[[1, 2, 3, 4, 6]] == 1).all()
    confirmed = zoom.confirmed.values
    assert (confirmed[[0, 5]] == -1).all() and (confirmed[[1, 2, 3, 4, 6]] == 0).all()
    assert (zoom.attrs["confirm_starts"], zoom.attrs["confirm_horizon"]) == (2, 2e6)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"refine": 1}, {"start": "continue-up"}])
def test_what_stays_has_the_longer_horizon(more):
    """Every kind of scan: confirmed rows keep their verdict and all other numbers."""
    study = {
        "kind": "bifurcation",
        "parameters": {"beta": {"start": 1.262, "stop": 1.35, "num": 2}},
        "run": {
            "start": "checkpoint", "transient": 2000, "steps": 4000, "exponents": 1,
            "max_doublings": 1, **more,
        },
    }  # fmt: skip
    study["run"]["confirm"] = {"starts": 0}
    plain = studies.run(studies.parse(study))
    study["run"]["confirm"] = {"starts": 2, "horizon": 20_000}
    longer = studies.run(studies.parse(study))
    asked = (longer.confirmed >= 0).values
    assert "confirmed" not in plain and asked[plain.doubtful.values == 1].all()
    kept = (longer.confirmed == 2).values
    assert kept.any() and (longer.phase == plain.phase).values[~asked | kept].all()
    assert (longer.phase == TRANSIENT).values[asked & ~kept].all()
    gain = (longer.horizon - plain.horizon).values
    sure = kept & (longer.transient_probability.values < 0.05)
    assert np.isin(gain[kept], (5000, 20_000)).all() and (gain[~kept] == 0).all()
    assert (gain[kept & ~sure] == 20_000).all()
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
