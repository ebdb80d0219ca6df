"""Grids of learning problems, from Python: files of their kinds, that go on."""

import io
import threading
from functools import partial

import jax
import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr, layout, storage
from statmech_attn.bpkr.grids import learning_curves
from statmech_attn.cli.texts.summary import print_summary
from statmech_attn.montecarlo import posteriors, Sampling
from statmech_attn.training import Descent, networks


KEY = jax.random.key(1)


@pytest.fixture(scope="module")
def task():
    """Of one feature and one path, as in many tests, with which programs are shared."""
    xi = np.random.default_rng(0).normal(size=(30, 1, 1))
    parts = jax.device_put([xi[:20], xi[:20, 0, 0], xi[20:], xi[20:, 0, 0]])
    return bpkr.LearningTask(*parts, heads=(1,))


GRIDS = {
    "saddles": lambda task: bpkr.SaddlePoints(task, bpkr.Grid([9, 30], [0.1, 1.0])),
    "networks": lambda task: networks.TrainedNetworks(
        KEY, task, bpkr.Grid([9], 0.1), Descent(learning_rate=0.01, steps=100)
    ),
    "posteriors": lambda task: posteriors.Posteriors(
        KEY,
        task,
        bpkr.Grid([9], [0.1]),
        sampling=Sampling(draws=20, warmup=20, chains=2),
    ),
    "curves": lambda task: bpkr.LearningCurves(
        KEY,
        task.posed(width=9, temperature=0.1),
        *task.tests[0],
        examples=[4, 8],
        training_sets=2,
    ),
    "selection": lambda task: bpkr.model_selection(
        task.posed(width=9, temperature=0.1), *task.tests[0], grid=bpkr.Grid([9], 0.1)
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "posteriors",
        "selection",
    ],
)
def test_a_file_from_python_is_a_whole_one_of_its_kind(task, tmp_path, name):
    """With the numbers of memory; the same call reads it, another one is refused."""
    points, path = GRIDS[name](task), tmp_path / "grid.h5"
    computed = points.run(path)
    layout.require_layout(computed, path)
    print_summary(computed, Console(file=(summary := io.StringIO())))
    assert " T " in summary.getvalue()
    in_memory = points.compute()
    assert set(in_memory.variables) == set(computed.variables)
    for variable, values in in_memory.variables.items():
        np.testing.assert_array_equal(computed[variable], values, str(variable))
    written = path.stat().st_mtime_ns
    GRIDS[name](task).run(path)
    assert path.stat().st_mtime_ns == written
    other = task._replace(Y=-task.Y, Y_test=-task.Y_test)
    with pytest.raises(storage.StorageError, match="holds another study"):
        GRIDS[name](other).run(path)


def test_tasks_without_a_description_are_told_apart_by_their_examples(task):
    of = lambda task: GRIDS["saddles"](task).attributes()["task"]
    assert of(task) == of(task._replace(xi=task.xi + 0.0))
    assert of(task) != of(task._replace(Y_test=-task.Y_test))


def guess(key, problem, xi_test, Y_test, folder, share):
    return learning_curves.measured(share * np.asarray(Y_test), 0.0 * Y_test, Y_test)


def lying(share):
    return lambda *a: guess(*a, share)


def others(task):
    """Grids that give other numbers, or more, each than every other one."""
    grid, one = bpkr.Grid([9], [0.1]), {"examples": [4], "training_sets": 2}
    posed = (task.posed(width=9, temperature=0.1), *task.tests[0])
    posterior = lambda **how: posteriors.Posteriors(
        KEY, task, grid, sampling=Sampling(draws=20, chains=2, **how)
    )
    curves = lambda **how: bpkr.LearningCurves(KEY, *posed, **one | how)
    return [
        bpkr.SaddlePoints(task, grid),
        bpkr.SaddlePoints(task, grid, predictors=False),
        bpkr.SaddlePoints(task, grid, corrections=True),
        bpkr.SaddlePoints(task, grid, kernels=True),
        bpkr.SaddlePoints(task, grid, variances=(1.0, 2.0, 1.0)),
        bpkr.SaddlePoints(task, bpkr.Grid([9], [0.1], ratios=(1.0, 0.5))),
        bpkr.SaddlePoints(task, bpkr.Grid([(9, 5)], [0.1])),
        bpkr.SaddlePoints(task, bpkr.Grid([(9, 6)], [0.1])),
        posterior(warmup=20),
        posterior(warmup=30),
        curves(),
        curves(corrections=True),
        curves(samplers={"guess": partial(guess, share=0.2)}),
        curves(samplers={"guess": partial(guess, share=0.3)}),
        curves(samplers={"guess": lying(0.2)}),
        curves(samplers={"guess": lying(0.3)}),
        bpkr.model_selection(*posed, grid=grid),
        bpkr.model_selection(*posed, grid=grid, test=task.tests[0]),
        bpkr.model_selection(*posed, grid=grid, key=KEY),
        bpkr.model_selection(*posed, grid=grid, key=KEY, draws=600),
    ]


def test_grids_of_other_choices_are_others(task):
    """And of the same choices the same, so that a file goes on."""
    texts = [
        [storage.toml.dumps(dict(points.identity())) for points in others(task)]
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == len(texts[0])


def test_a_grid_whose_parts_cannot_be_told_apart_is_refused(task, tmp_path):
    lock = threading.Lock()
    posed = (task.posed(width=9, temperature=0.1), *task.tests[0])
    curves = bpkr.LearningCurves(
        KEY, *posed, examples=[4], samplers={"guess": lambda *given: lock}
    )
    with pytest.raises(TypeError, match="has no description by which a file"):
        curves.run(tmp_path / "curves.h5")
