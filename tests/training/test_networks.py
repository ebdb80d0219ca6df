"""Grids of learning problems, from Python: files of their kinds, that go on."""

import io

import jax
import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr, layout, storage
from statmech_attn.batches import rng
from statmech_attn.cli.summary import print_summary
from statmech_attn.montecarlo import posteriors, Sampling
from statmech_attn.training import Descent, networks


KEY = jax.random.key(1)


@pytest.fixture(scope="module")
def task():
    xi = rng.normal(jax.random.key(0), (30, 3, 2))
    Y = xi[:, 0, 0]
    return bpkr.Learning(xi[:20], Y[:20], xi[20:], Y[20:], heads=(2,))


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
    "selection": lambda task: bpkr.ModelSelection(
        task.posed(width=9, temperature=0.1), *task.tests[0], grid=bpkr.Grid([9], 0.1)
    ),
}


@pytest.mark.parametrize("name", GRIDS)
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
