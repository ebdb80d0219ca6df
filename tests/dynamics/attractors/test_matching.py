"""Which set goes on as which: pitchfork, doubling, fold by hand; intervals."""

import numpy as np
import pytest

from statmech_attn.dynamics.along_parameter.hysteresis import intervals, sets_differ
from statmech_attn.dynamics.attractors.basins import most_common
from statmech_attn.dynamics.attractors.matching import (
    directed_distance,
    identities,
    match_by_distance,
    match_by_flow,
    resolution,
    set_distance,
)


def test_the_distance_of_shifted_and_nested_sets():
    line = np.arange(10.0)[:, None]
    assert set_distance(line, line) == 0
    assert set_distance(line, line + 0.3) == pytest.approx(0.3)
    assert set_distance(line, line[::-1]) == 0
    # A part is near the whole, the whole is not near its part.
    assert set_distance(line, line[:1]) == pytest.approx(4.5)
    assert set_distance(line[:1], line) == pytest.approx(4.5)
    assert directed_distance(line[:1], line[1:4:2]) == 1
    # The third neighbour is at 2 inside, at 3 from an end, at 2 from the one beside it.
    assert resolution(line) == pytest.approx((8 * 2 + 2 * 3) / 10)


def test_flow_to_none_of_the_sets_starts_a_new_one():
    between = np.array([[0.1, 0.2], [0.3, 0.05]])
    assert match_by_flow(np.array([1, -1]), between).tolist() == [-1, 0]
    assert match_by_flow(np.array([1, 1]), between).tolist() == [-1, 1]
    assert most_common(np.array([-1, -1])) == -1
    assert match_by_distance(between, 0.06).tolist() == [-1, 1]
    # 0.01 + 2 is more than 1 + 0.99, but neither 2 nor 1 is a match.
    certain = np.array([[0.01, 1.0], [0.99, 2.0]])
    assert match_by_distance(certain, 0.1).tolist() == [0, -1]
    assert match_by_distance(certain).tolist() == [1, 0]
    assert match_by_distance(np.zeros((0, 2))).tolist() == [-1, -1]
    parents = [np.array([-1]), np.array([-1, 0]), np.array([0]), np.array([], int)]
    assert [x.tolist() for x in identities(parents)] == [[0], [1, 0], [1], []]


def test_sets_that_recur_differ_beyond_rounding_others_beyond_their_scatter():
    assert sets_differ(0.1, scatter=0.01, size=1.0, recurs=False)
    assert not sets_differ(0.1, scatter=0.1, size=1.0, recurs=False)
    assert sets_differ(0.1, scatter=0.1, size=1.0, recurs=True)


def test_intervals_at_the_ends_are_open():
    differ = np.array([True, False, True, True])
    expected = [[np.nan, 0, 0, 1], [1, 2, 3, np.nan]]
    np.testing.assert_array_equal(intervals(np.arange(4.0), differ), expected)
