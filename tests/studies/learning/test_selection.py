"""Model-selection studies: the choice of the library, on held-out examples."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from statmech_attn import plotting, storage, studies
from statmech_attn.cli.texts.summary import print_summary
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


@pytest.mark.slow
def test_its_file_is_described_and_drawn(computed, tmp_path):
    storage.write(tmp_path / "selection.h5", computed, study=studies.dump(STUDY))
    with storage.opened(tmp_path / "selection.h5") as lazily:
        print_summary(lazily, Console(file=(shown := io.StringIO()), width=100))
    assert "test error" in shown.getvalue() and "rank correlation" in shown.getvalue()
    assert json.loads(computed.attrs["task"])["name"] == "hidden-markov"
    again = storage.read(tmp_path / "selection.h5")
    assert plotting.draw(again, tmp_path)[0].stem == "model_selection"


@pytest.mark.slow
def test_the_exact_law_has_an_evidence_below_the_number_of_paths():
    run = {"run": {"validation": 0.25, "exact": True, "draws": 100}}
    exact = points(network={"width": [1]}, **run).compute()
    assert np.isfinite(exact.log_evidence).all()
    assert (exact.log_evidence_stderr < 1).all()


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
