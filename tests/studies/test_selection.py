"""Model-selection studies: the choice of the library, on held-out examples."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr, plotting, storage, studies
from statmech_attn.cli.summary import print_summary
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.scan.work import Chunk
from statmech_attn.studies.selection import ModelSelectionWork


STUDY = {
    "kind": "model-selection",
    "task": {
        "n_train": 20,
        "n_test": 10,
        "length": 4,
        "features": 6,
        "heads": [["previous-token", "uniform"]],
    },
    "network": {"width": [8, 1], "temperature": [0.2, 1.0]},
    "run": {"validation": 0.3, "seed": 2},
}


def work(**changes):
    tree = {name: {**STUDY[name], **table} for name, table in changes.items()}
    return ModelSelectionWork(studies.parse(STUDY | tree))


@pytest.fixture(scope="module")
def made():
    return work()


@pytest.fixture(scope="module")
def found(made):
    return in_memory(made)


def test_a_study_is_the_selection_of_its_problem(made, found):
    """Width 1 has no evidence and can be chosen by validation alone."""
    xi, Y = made.validation
    selection = bpkr.model_selection(
        made.problem, xi, Y, widths=[1, 8], temperatures=[0.2, 1.0]
    ).to_dataset()
    for name in ("log_evidence", "error", "error_stderr", "accuracy", "chosen_width"):
        # The library begins each search at a neighbour, to the same minimum.
        np.testing.assert_allclose(found[name], selection[name], rtol=1e-7)
    assert np.isnan(found.log_evidence[0]).all() and found.result.max() == 0
    solution = made.problem.at(width=8, temperature=0.2).solve()
    f = solution.problem.theory(solution).mean(made.made.xi_test)
    expected = np.mean((f - made.made.Y_test) ** 2)
    assert float(found.error_test[1, 0]) == pytest.approx(float(expected), rel=1e-12)


def test_held_out_examples_are_a_random_part_that_is_not_learned_from(made):
    whole = studies.learning.learning(made.study.task)
    rows = lambda xi: {tuple(np.ravel(x)) for x in np.asarray(xi)}
    held, rest = rows(made.validation[0]), rows(made.made.xi)
    assert len(held) == 6 and len(rest) == 14 and held | rest == rows(whole.xi)
    other = work(run={"validation": 0.3, "seed": 3}).validation[0]
    assert rows(other) != held


def test_points_do_not_depend_on_the_chunk(made, found):
    alone = made.rows(Chunk(0, 0, 3, 4), None, lambda _: None, None)
    for name in ("error_test", "log_evidence"):
        assert alone[name].item() == found[name][1, 1].item()


@pytest.mark.slow
def test_its_file_is_described_and_drawn(found, tmp_path):
    storage.write(tmp_path / "selection.h5", found, study=studies.dump(STUDY))
    with storage.opened(tmp_path / "selection.h5") as lazily:
        print_summary(lazily, Console(file=(shown := io.StringIO()), width=100))
    assert "test error" in shown.getvalue() and "rank correlation" in shown.getvalue()
    assert json.loads(found.attrs["task"])["name"] == "hidden-markov"
    again = storage.read(tmp_path / "selection.h5")
    assert plotting.draw(again, tmp_path)[0].stem == "model_selection"


@pytest.mark.slow
def test_the_exact_law_has_an_evidence_below_the_number_of_paths():
    run = {"run": {"validation": 0.3, "exact": True, "draws": 100}}
    found = in_memory(work(network={"width": [1]}, **run))
    assert np.isfinite(found.log_evidence).all()
    assert (found.log_evidence_stderr < 1).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network": {"temperature": [0.0, 1.0]}}, "labels have an evidence at T > 0"),
        ({"network": {"width": [1]}}, "widths of at least 2, the number of paths"),
        ({"run": {"validation": 0.01}}, "0.01 of 20 training examples leaves none"),
        ({"run": {"validation": 1.0}}, "run.validation: should be below 1.0"),
    ],
)
def test_impossible_studies_are_refused_before_anything_is_computed(changes, words):
    with pytest.raises(ValueError, match=words):
        work(**changes)
