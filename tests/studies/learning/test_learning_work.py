"""Points of learning studies depend on the study alone, however they are cut."""

import numpy as np
import pytest

from statmech_attn import studies
from statmech_attn.bpkr.grids import saddle_points
from statmech_attn.bpkr.theory import predictor, saddle
from statmech_attn.scan.chunks import chunk_computation
from statmech_attn.scan.chunks.work import Chunk, RAISED, Stopped
from statmech_attn.scan.engines.local import in_memory


HEADS = [["previous-token", "uniform"]]
TASK = {"n_train": 10, "n_test": 20, "length": 6, "features": 8, "heads": HEADS}
GRID = {"width": [6, 20], "temperature": [0.1, 0.3, 0.9]}
SADDLES = {"kind": "order-parameter", "task": TASK, "network": GRID}
SAMPLES = {"draws": 20, "warmup": 20, "chains": 2, "stored": 5}
WEIGHTS = {
    "kind": "posterior",
    "task": TASK,
    "network": {"width": 6, "temperature": [0.5, 1.0]},
    "run": SAMPLES | {"method": "weights", "block": 10},
}
EXACT = WEIGHTS | {"run": SAMPLES}


def nothing(points):
    pass


def chunk(first, stop, number=0):
    return Chunk(number, 0, first, stop)


def rows(work, first, stop, tick=nothing, folder=None):
    return work.rows(chunk(first, stop), None, tick, folder)


@pytest.fixture
def saddles():
    """Knows no saddle point yet."""
    return studies.work(studies.parse(SADDLES))


@pytest.fixture(scope="module")
def all_saddles():
    return rows(studies.work(studies.parse(SADDLES)), 0, 6)


@pytest.mark.slow
def test_saddle_points_do_not_depend_on_the_chunk(saddles, all_saddles):
    first, stop = 2, 5  # of two widths
    part = rows(saddles, first, stop)
    assert set(part) == set(all_saddles)
    for name, values in part.items():
        np.testing.assert_array_equal(values, all_saddles[name][first:stop])


@pytest.mark.slow
def test_a_chain_begins_every_saddle_point_at_the_one_before(saddles, all_saddles):
    """To the last bit; begun anew, the last one ends on other bits."""
    start = None
    for number in (5, 4, 3):
        start = saddles.at(number).solve(start=start)
        np.testing.assert_array_equal(start.U[0], all_saddles["U_1"][number])
    cold = saddles.at(3).solve()
    assert (cold.U[0] != all_saddles["U_1"][3]).any()


@pytest.mark.slow
def test_a_point_that_raises_is_marked_and_leaves_its_neighbours(
    saddles, all_saddles, monkeypatch
):
    theory, solve, solved = predictor.theory, saddle.solve, []

    def refused(problem, U):
        if problem.temperature == 0.3:
            raise ValueError("K + T is not positive definite: for a test.")
        return theory(problem, U)

    def counted(problem, **how):
        solved.append(float(problem.temperature))
        return solve(problem, **how)

    def differentiated(*given):
        """Beside the solutions of the grid; those near them are not counted."""
        before = len(solved)
        slopes = derivatives(*given)
        del solved[before:]
        return slopes

    derivatives = saddle_points.derivatives
    monkeypatch.setattr(saddle_points, "derivatives", differentiated)
    monkeypatch.setattr(predictor, "theory", refused)
    monkeypatch.setattr(saddle, "solve", counted)
    found = chunk_computation.compute(
        saddles, chunk(0, 3), lambda _: None, nothing, None
    )
    assert found.failures == {
        1: (RAISED, "K + T is not positive definite: for a test.")
    }
    for name, values in found.arrays.items():
        np.testing.assert_array_equal(values[[0, 2]], all_saddles[name][[0, 2]])
    assert np.isnan(found.arrays["U_1"][1]).all() and found.arrays["result"][1] == -1
    assert solved == [0.9, 0.3, 0.1]  # once each, though the points came one by one


def test_numbers_that_are_lacking_are_told_from_points_without_solution(saddles):
    arrays = {
        "U_1": np.ones((3, 4, 4)),
        "action": np.ones(3),
        "accuracy": np.ones(3),
        "predictor_mean": np.ones((3, 20)),
        "result": np.array([0, 0, 1]),
    }
    arrays["predictor_mean"][1:, 7] = np.inf
    assert saddles.not_finite(arrays).tolist() == [False, True, False]


@pytest.mark.slow
def test_samples_of_a_point_do_not_depend_on_the_others():
    work = studies.work(studies.parse(EXACT))
    found = in_memory(work)
    alone = rows(work, 1, 2)
    assert set(alone) <= set(found)
    for name, values in alone.items():
        np.testing.assert_array_equal(values[0], found[name].values[0, 1])


@pytest.mark.slow
def test_chains_go_on_from_the_block_at_which_they_were_stopped(tmp_path):
    work = studies.work(studies.parse(WEIGHTS))
    straight, ticks = rows(work, 1, 2), []

    def stop_at_the_third(points):
        ticks.append(points)
        if len(ticks) == 3:
            raise Stopped

    with pytest.raises(Stopped):
        rows(work, 1, 2, stop_at_the_third, tmp_path)
    # Two pieces of warm-up and one of draws are stored, out of four.
    assert [path.name for path in tmp_path.rglob("draws-*")] == ["draws-00003.h5"]
    ticks = []
    resumed = rows(work, 1, 2, ticks.append, tmp_path)
    assert ticks == pytest.approx([0.75, 0.25])
    for name, values in resumed.items():
        np.testing.assert_array_equal(values, straight[name])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"width": 6, "temperature": 0.0}, "temperature must be finite and > 0; got 0"),
        ({"width": [6, 6.5], "temperature": 0.1}, "width must be whole in the exact"),
    ],
)
def test_settings_that_no_sampler_takes_are_refused_before_the_first_point(
    network, message
):
    sizes = {"n_train": 8, "length": 4, "features": 6}  # of test_selection.py
    tree = EXACT | {"network": network, "task": TASK | sizes}
    with pytest.raises(ValueError, match=message):
        studies.work(studies.parse(tree))
