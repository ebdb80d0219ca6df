"""Model-selection studies: the choice of the library, on held-out examples."""

import numpy as np
import pytest

from statmech_attn import studies
from statmech_attn.studies.learning import selection, tasks


STUDY = {  # of the sizes of test_learning_curve.py, whose programs it shares
    "kind": "model-selection",
    "task": {
        "n_train": 8,
        "n_test": 20,
        "length": 4,
        "features": 6,
        "heads": [["previous-token", "uniform"]],
    },
    "network": {"width": [8, 1], "temperature": [0.2, 1.0]},
    "run": {"validation": 0.25, "seed": 2},
}


def points(**changes):
    tree = {name: {**STUDY[name], **table} for name, table in changes.items()}
    return selection.work(studies.parse(STUDY | tree))


@pytest.fixture(scope="module")
def computed():
    return points().compute()


def test_a_study_chooses_by_the_labels_that_are_not_held_out(computed):
    """Width 1 has no evidence and can be chosen by validation alone."""
    assert np.isnan(computed.log_evidence[0]).all() and computed.result.max() == 0
    asked = points()
    task = tasks.learning(studies.parse(STUDY).task)
    solution = asked.given["problem"].at(width=8, temperature=0.2).solve()
    f = solution.problem.theory(solution).mean(task.xi_test)
    expected = np.mean((f - task.Y_test) ** 2)
    assert float(computed.error_test[1, 0]) == pytest.approx(float(expected), rel=1e-12)


def test_held_out_examples_are_a_random_part_that_is_not_learned_from():
    whole = tasks.learning(studies.parse(STUDY).task)
    numbers = lambda xi: {tuple(np.ravel(x)) for x in np.asarray(xi)}
    parts = lambda asked: (
        numbers(asked.given["xi"][: len(asked.given["Y"])]),
        numbers(asked.given["problem"].xi),
    )
    held, rest = parts(points())
    assert len(held) == 2 and len(rest) == 6 and held | rest == numbers(whole.xi)
    other, _ = parts(points(run={"validation": 0.25, "seed": 3}))
    assert other != held


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network": {"temperature": [0.0, 1.0]}}, "labels have an evidence at T > 0"),
        ({"network": {"width": [1]}}, "widths of at least 2, the number of paths"),
        ({"run": {"validation": 0.01}}, "0.01 of 8 training examples leaves none"),
        ({"run": {"validation": 1.0}}, "run.validation: should be below 1.0"),
    ],
)
def test_impossible_studies_are_refused_before_anything_is_computed(changes, words):
    with pytest.raises(ValueError, match=words):
        points(**changes)
