"""Learning-curve studies: what they compute, and what they refuse."""

import io

import jax
import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr, storage, studies
from statmech_attn.bpkr import curves
from statmech_attn.cli.summary import print_summary
from statmech_attn.presentation import quantity
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.scan.work import Chunk
from statmech_attn.studies import learning
from statmech_attn.studies.learning_curve import LearningCurveWork
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


def work(**changes):
    return LearningCurveWork(studies.parse(STUDY | changes))


def with_run(**changes):
    return {"run": STUDY["run"] | changes}


def rows(work, first, stop):
    return work.rows(Chunk(0, 0, first, stop), None, lambda _: None, None)


@pytest.fixture(scope="module")
def found():
    return in_memory(work())


def test_a_study_is_the_curve_of_its_problem(found):
    """The same training sets from the same seed, and the numbers of `bpkr`."""
    study = studies.parse(STUDY)
    pool = learning.learning(study.task.enlarged(12))
    problem = bpkr.Problem(*pool.data, heads=pool.heads, width=8, temperature=0.5)
    curve = bpkr.learning_curve(
        jax.random.key(4),
        problem,
        pool.xi_test,
        pool.Y_test,
        examples=[3, 6],
        training_sets=2,
    ).to_dataset()
    assert not found.shared and found.examples.values.tolist() == [3, 6]
    for name in ("error", "error_stderr", "accuracy", "variance", "error_of_set"):
        here = found[name].sel(temperature=0.5, width=8)
        np.testing.assert_array_equal(here.transpose(*curve[name].dims), curve[name])
    here = found.U_1.sel(temperature=0.5, width=8)
    np.testing.assert_array_equal(here.transpose(*curve.U_1.dims), curve.U_1)
    assert (found.result == 0).all() and int(found["rank"]) == 11 * 2


def test_the_summary_names_errors_and_training_sets(found):
    print_summary(found, Console(file=(shown := io.StringIO()), width=100))
    last = found.sel(estimate="saddle", temperature=0.5, examples=6).squeeze()
    assert quantity(last.error, last.error_stderr) in shown.getvalue()
    assert "means over 2 training sets, with their" in shown.getvalue()


def test_points_do_not_depend_on_the_chunk(found):
    of_set = found.error_of_set.squeeze("width").values.reshape(8, -1)
    np.testing.assert_array_equal(rows(work(), 5, 7)["error"], of_set[5:7])


def test_subsets_of_too_few_examples_are_said_to_overlap(tmp_path):
    file = arrays.write_example(tmp_path)
    task = {"name": "arrays", "file": str(file)}
    assert work(task=task, **with_run(examples=[20])).shared is False
    made = work(task=task, **with_run(examples=[40]))
    assert made.shared is True and len(made.made.Y) == 40


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
    found = in_memory(work(network=network, **run))
    names = ["gp", "saddle", "corrected", "exact", "weights"]
    assert found.estimate.values.tolist() == names
    exact, weights = found.error.sel(estimate=["exact", "weights"]).values.ravel()
    assert exact == pytest.approx(weights, rel=0.2)
    assert np.isfinite(found.log_evidence).all()
    storage.write(tmp_path / "curve.h5", found, study=studies.dump(STUDY))
    back = storage.read(tmp_path / "curve.h5")
    np.testing.assert_array_equal(back.error, found.error)


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
        work(**cold)
    broken = {"network": {"width": 8.5, "temperature": 0.5}}
    with pytest.raises(ValueError, match='samples = \\["order-parameter"\\]'):
        work(**broken, **with_run(samples=["order-parameter"]))
    task = {"name": "arrays", "file": str(arrays.write_example(tmp_path))}
    with pytest.raises(ValueError, match="there are 60 examples to draw from; got 61"):
        work(task=task, **with_run(examples=[61]))


def test_training_sets_are_those_of_the_library():
    made = work()
    draw_key, _ = jax.random.split(jax.random.key(4))
    chosen, _ = curves.drawn(draw_key, len(made.pool.Y), 6, 2)
    np.testing.assert_array_equal(made.chosen, chosen)
