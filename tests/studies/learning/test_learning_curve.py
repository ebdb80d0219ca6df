"""Learning-curve studies: what they compute, and what they refuse."""

import io

import numpy as np
import pytest
from rich.console import Console

from statmech_attn import storage, studies
from statmech_attn.cli.texts.summary import print_summary
from statmech_attn.presentation import quantity
from statmech_attn.studies.learning import learning_curve, tasks
from statmech_attn.tasks import arrays


TASK = {
    "n_test": 20,
    "length": 4,
    "features": 6,
    "heads": [["previous-token", "uniform"]],
}
STUDY = {
    "kind": "learning-curve",
    "task": TASK,
    "network": {"width": 8, "temperature": [0.2, 0.5]},
    "run": {"examples": [6, 3], "training_sets": 2, "seed": 4},
}


def points(**changes):
    return learning_curve.work(studies.parse(STUDY | changes))


def with_run(**changes):
    return {"run": STUDY["run"] | changes}


@pytest.fixture(scope="module")
def computed():
    return points().compute()


def test_a_study_asks_for_the_curves_of_its_task(computed):
    """Examples in rising order, of training sets that the task's size keeps apart."""
    assert not computed.shared and computed.examples.values.tolist() == [3, 6]
    pool = tasks.learning(studies.parse(STUDY).task.enlarged(12))
    np.testing.assert_array_equal(computed.y_test, pool.Y_test)
    assert computed.error.sizes == {
        "width": 1,
        "temperature": 2,
        "examples": 2,
        "estimate": 2,
    }
    assert (computed.result == 0).all() and int(computed["rank"]) == 11 * 2


def test_the_summary_names_errors_and_training_sets(computed):
    print_summary(computed, Console(file=(shown := io.StringIO()), width=100))
    last = computed.sel(estimate="saddle", temperature=0.5, examples=6).squeeze()
    assert quantity(last.error, last.error_stderr) in shown.getvalue()
    assert "means over 2 training sets, with their" in shown.getvalue()


def test_subsets_of_too_few_examples_are_said_to_overlap(tmp_path):
    file = arrays.write_example(tmp_path)
    task = {"name": "arrays", "file": str(file)}
    assert points(task=task, **with_run(examples=[20])).shared is False
    overlapping = points(task=task, **with_run(examples=[40]))
    assert overlapping.shared is True and overlapping.chosen.shape == (2, 40)


def test_the_task_draws_what_disjoint_training_sets_need():
    table = studies.parse(STUDY).task
    assert table.enlarged(7).n_train == 8
    assert table.model_copy(update={"n_train": 50}).enlarged(7).n_train == 50


@pytest.mark.slow
def test_samples_stand_beside_the_theory(tmp_path):
    run = with_run(
        samples=["order-parameter", "weights"],
        examples=[6],
        training_sets=1,
        corrections=True,
        draws=100,
        warmup=100,
        chains=2,
    )
    network = {"width": 8, "temperature": 0.5}
    curve = points(network=network, **run).compute()
    names = ["gp", "saddle", "corrected", "exact", "weights"]
    assert curve.estimate.values.tolist() == names
    exact, weights = curve.error.sel(estimate=["exact", "weights"]).values.ravel()
    assert exact == pytest.approx(weights, rel=0.2)
    assert np.isfinite(curve.log_evidence).all()
    storage.write(tmp_path / "curve.h5", curve, study=studies.dump(STUDY))
    back = storage.read(tmp_path / "curve.h5")
    np.testing.assert_array_equal(back.error, curve.error)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"examples": []}, "run.examples"),
        ({"examples": [3, 3]}, "examples: values must be distinct"),
        ({"samples": ["weights", "weights"]}, "samples: values must be distinct"),
        ({"samples": ["gibbs"]}, "should be"),
        ({"samples": ["weights"], "draws": 33}, "draws must be a multiple of block"),
        ({"examples": [0]}, "run.examples"),
    ],
)
def test_impossible_runs_are_refused_when_read(changes, words):
    with pytest.raises(ValueError, match=words):
        studies.parse(STUDY | with_run(**changes))


def test_impossible_problems_are_refused_before_anything_is_computed(tmp_path):
    cold = {"network": {"width": 8, "temperature": 0.0}}
    with pytest.raises(ValueError, match="temperature must be > 0 for a learning"):
        points(**cold)
    broken = {"network": {"width": 8.5, "temperature": 0.5}}
    with pytest.raises(ValueError, match='samples = \\["order-parameter"\\]'):
        points(**broken, **with_run(samples=["order-parameter"]))
    task = {"name": "arrays", "file": str(arrays.write_example(tmp_path))}
    with pytest.raises(ValueError, match="there are 60 examples to draw from; got 61"):
        points(task=task, **with_run(examples=[61]))
