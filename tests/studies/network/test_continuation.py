"""Continuation studies of the published network: values, files, and refusals."""

import copy

import numpy as np
import pytest

from statmech_attn import studies


pytestmark = pytest.mark.slow


STUDY = {
    "kind": "continuation",
    "parameters": {"beta": {"start": 1.0, "stop": 1.5}},
    "run": {"transient": 40_000, "at": 1.2, "largest_step": 0.2},
    "curves": {"parameter": "epsilon", "start": 0.015, "stop": 0.025},
}
BIRTH = 1.2434445478150  # of the torus, by continuation from beta = 0.05


def changed(**changes):
    tree = copy.deepcopy(STUDY)
    for path, value in changes.items():
        *tables, key = path.split("__")
        table = tree
        for name in tables:
            table = table[name]
        table[key] = value
    return tree


@pytest.fixture(scope="module")
def found():
    return studies.run(studies.parse(STUDY))


def test_the_torus_is_born_where_it_is_known_to_be(found):
    (kind,) = found.special_kind.values
    assert found.special_kind.attrs["flag_meanings"].split()[kind] == "neimark_sacker"
    assert float(found.special_beta[0]) == pytest.approx(BIRTH, abs=1e-10)
    criticality = found.special_criticality.attrs["flag_meanings"].split()
    assert criticality[int(found.special_criticality[0])] == "supercritical"
    unstable = found.n_unstable[0].values > 0
    np.testing.assert_array_equal(unstable, found.beta[0].values > BIRTH)


def test_the_branch_spans_the_interval_in_order(found):
    beta, length = found.beta[0].values, found.arclength[0].values
    assert (beta[0], beta[-1]) == pytest.approx((1.0, 1.5), abs=1e-12)
    assert (np.diff(beta) > 0).all() and (np.diff(length) > 0).all()
    ends = found.branch_result.attrs["flag_meanings"].split()
    assert [ends[int(code)] for code in found.branch_result[0]] == ["left_range"] * 2
    assert found.branch_period.values.tolist() == [4]


def test_the_curve_goes_through_the_point_it_came_from(found):
    beta, epsilon = found.curve_beta[0].values, found.curve_epsilon[0].values
    start = np.argmin(np.abs(epsilon - 0.02))
    assert epsilon[start] == pytest.approx(0.02, abs=1e-12)
    assert beta[start] == pytest.approx(BIRTH, abs=1e-10)
    there = np.isfinite(epsilon)
    assert (np.diff(epsilon[there]) > 0).all()
    assert epsilon[there][0] < 0.018 and epsilon[there][-1] > 0.022
    rho = found.curve_rotation[0].values[start]
    assert rho == pytest.approx(float(found.special_rotation[0]), abs=1e-10)
    coefficient = found.curve_coefficient[0].values[start]
    assert coefficient == pytest.approx(float(found.special_coefficient[0]), rel=1e-8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parameters__beta": 1.2},
            "parameters: give exactly one of beta, gamma, epsilon and",
        ),
        (
            {"parameters__beta": {"start": 2.0, "stop": 1.0}},
            "parameters.beta: start must be below stop, 1",
        ),
        (
            {"parameters__beta": {"start": 1.0, "stop": 1.2, "num": 3}},
            "parameters.beta.num: unknown key; allowed here: start, stop",
        ),
        ({"parameters__gamma": {"start": 1.0, "stop": 2.0}}, "give exactly one"),
        ({"run__at": 2.0}, "run.at must lie in the interval of beta, 1 to 1.5"),
        ({"run__smallest_step": 1.0}, "smallest_step must not exceed largest_step"),
        ({"run__period": 0}, "run.period: should be at least 1; got 0"),
        ({"run__steps": 10}, "run.steps: unknown key"),
        ({"curves__parameter": "beta"}, "curves.parameter must not be beta"),
        (
            {"curves__parameter": "delta"},
            "curves.parameter: .*'gamma', 'epsilon' or 'redrawn'",
        ),
        (
            {"curves__points": 3},
            "curves.points: unknown key .did you mean 'max_points'",
        ),
        ({"curves__start": 1.0}, "curves: start must be below stop"),
    ],
)
def test_mistakes_are_one_line_that_says_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        studies.parse(changed(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run__period": 2}, "the cycle at beta = 1.2 has 1 drive periods; got 2"),
        ({"run__at": 1.4, "run__period": 3}, "period: (no cycle of|the cycle)"),
        ({"parameters__beta": {"start": -1.0, "stop": 1.5}}, "beta must be >= 0"),
        (
            {"curves__start": 0.022},
            "interval of epsilon must be finite and contain epsilon = 0.02",
        ),
        ({"curves__stop": 1.0}, r"epsilon must lie in \[0, 1\)"),
    ],
)
def test_a_cycle_that_is_not_there_is_said_so(changes, message):
    study = studies.parse(changed(run__transient=4000, **changes))
    with pytest.raises(ValueError, match=message) as caught:
        studies.run(study)
    assert "\n" not in str(caught.value)
