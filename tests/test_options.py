"""Options are refused in one line that names them, in Python and in study files."""

import math
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest

from statmech_attn import studies
from statmech_attn.dynamics import Criteria, Search
from statmech_attn.dynamics.continuation import Settings
from statmech_attn.dynamics.diagrams import Confirm, Plan
from statmech_attn.options import (
    Count,
    declared,
    Fraction,
    option_texts,
    Options,
    Positive,
    require_least,
)
from statmech_attn.studies import tables
from statmech_attn.tasks.options import Setting, Task
from statmech_attn.training import Descent, Minibatches


EVERY = (Confirm, Criteria, Descent, Minibatches, Plan, Search, Setting, Settings, Task)


@dataclass(frozen=True)
class Walk(Options):
    """Options of a walk.

    Attributes:
        steps (step): of the walk.
        size: of a step;
            in metres.
        share: of the steps to the right.
        seed: of the walk.
        law: of a step.
        biased: whether it has a drift.
    """

    steps: Count = 10
    size: Positive = 1.0
    share: Fraction = 0.5
    seed: int | None = None
    law: Literal["gauss", "cauchy"] = "gauss"
    biased: bool = False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be at least 1; got 0."),
        ({"steps": 1.5}, "steps must be a whole number; got 1.5."),
        ({"steps": True}, "steps must be a whole number; got True."),
        ({"steps": 2 * 10**15}, "steps must be at most 1000000000000000; got 2000"),
        ({"steps": 10**400}, "steps must be a whole number; got 1000"),
        ({"size": -1}, "size must be above 0; got -1."),
        ({"size": "1"}, "size must be a finite number; got '1'."),
        ({"size": math.inf}, "size must be a finite number; got inf."),
        ({"size": None}, "size must be a finite number; got None."),
        ({"size": np.ones((9, 9))}, "size must be a finite number; got an array"),
        ({"share": 1.0}, "share must be below 1; got 1.0."),
        ({"seed": "one"}, "seed must be a whole number; got 'one'."),
        ({"law": "levy"}, "law must be 'gauss' or 'cauchy'; got 'levy'."),
        ({"biased": 1}, "biased must be of the type bool; got 1."),
    ],
)
def test_what_an_option_cannot_be_is_refused_in_one_line(changes, message):
    with pytest.raises(ValueError) as error:
        replace(Walk(), **changes)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers():
    walk = Walk(np.int32(3), np.float32(0.5), seed=np.array(2))
    assert (walk.steps, walk.size, walk.seed) == (3, 0.5, 2)


@pytest.mark.parametrize("count", [1e4, np.float64(3), np.nan, "3", [3], None])
def test_what_counts_nothing_is_no_count(count):
    with pytest.raises(ValueError, match=r"^steps must be a whole number; got .*\.$"):
        require_least(1, runs=np.int64(2), steps=count)


def test_a_table_has_the_options_with_their_units_sentences_and_defaults():
    class Run(tables.of(Walk, "steps", "size", "seed", step="token", size=2.0)):
        """[run] of a walk."""

    assert dict(Run()) == {"steps": 10, "size": 2.0, "seed": None}
    assert option_texts(Run)["steps"] == ("Of the walk.", "token")
    assert option_texts(Run)["size"] == ("Of a step; in metres.", "")
    run = Run.model_validate({"steps": 20})
    assert tables.chosen(Walk, run, seed=5) == Walk(20, 2.0, seed=5)
    for bad in ({"steps": 0}, {"size": -1.0}, {"law": "gauss"}):
        with pytest.raises(ValueError):
            Run.model_validate(bad)


@pytest.mark.parametrize("choices", EVERY, ids=lambda choices: choices.__name__)
def test_every_option_has_a_sentence(choices):
    assert declared(choices).keys() == option_texts(choices).keys()


def test_options_are_declared_without_what_is_slow_to_import():
    program = (
        "import sys\n"
        "from statmech_attn.dynamics import Criteria, Search\n"
        "from statmech_attn.dynamics.continuation import Settings\n"
        "from statmech_attn.dynamics.diagrams import Confirm, Plan\n"
        "from statmech_attn.tasks.options import Setting, Task\n"
        "from statmech_attn.training import Descent, Minibatches\n"
        "assert not {'jax', 'numpy', 'pydantic'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr


TRAINING = {
    "kind": "training",
    "network": {"width": 5, "temperature": 0.1},
    "run": {"learning_rate": 0.1, "steps": 100},
}
IMAGES = {"kind": "training", "task": {"name": "one-shot"}, "run": {}}
CONTINUATION = {"kind": "continuation", "parameters": {"beta": {"start": 1, "stop": 2}}}
CONTINUATION["run"] = {}


@pytest.mark.parametrize(
    ("study", "choices", "bad"),
    [
        (TRAINING, Descent, {"learning_rate": 0.0}),
        (TRAINING, Descent, {"steps": 50, "block": 20}),
        (TRAINING, Descent, {"optimiser": "newton"}),
        (IMAGES, Minibatches, {"block": 15}),
        (IMAGES, Minibatches, {"precision": "half"}),
        (CONTINUATION, Settings, {"smallest_step": 1.0}),
        (CONTINUATION, Settings, {"max_points": 0}),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_python_and_study_files_refuse_the_same_in_one_line(study, choices, bad):
    needed = {"learning_rate": 0.1, "steps": 100, "block": 10}
    needed = {n: x for n, x in needed.items() if n in declared(choices)}
    for ask in (
        lambda: choices(**(needed | bad)),
        lambda: studies.parse(study | {"run": study["run"] | bad}),
    ):
        with pytest.raises(ValueError) as error:
            ask()
        said = str(error.value)
        assert "\n" not in said and not said.endswith("..") and next(iter(bad)) in said
