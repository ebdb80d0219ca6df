"""From the tables of a learning study to its task, its grid and its labelled axes."""

import json
from dataclasses import asdict
from typing import Any

import jax

from statmech_attn import bpkr
from statmech_attn.bpkr import points
from statmech_attn.bpkr.points import Grid, LearningPoints
from statmech_attn.kinds import TASKS
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Contents
from statmech_attn.studies.bpkr_tables import (
    BpkrStudy,
    HiddenMarkovTable,
    listed,
    WidthsTable,
)
from statmech_attn.studies.examples import Learning
from statmech_attn.studies.tables import TaskTable
from statmech_attn.tasks import hidden_markov


RANKS = 50  # eigenvectors of a kernel whose overlap is kept, at most
COORDINATES = Variables(
    Variable("y", "example", "labels of the training examples", "1", "Y"),
    Variable("y_test", "test", "labels of the test examples", "1", "Y"),
    points.COORDINATES,
    Variable("test_set", "test_set", "name of the test set", "1", "set"),
    Variable("choice", "choice", "by what accuracy the temperature was chosen", "1",
             "choice"),
)  # fmt: skip


def overlaps(group: str | None = None) -> Variables:
    """What `order_parameter.alignment_and_scores` finds of a theory."""
    return Variables(
        Variable(
            "kernel_overlap", "width rank",
            "overlap of kernel eigenvectors with the labels", "1", "|v_i·Y|/|Y|",
            group=group,
        ),
        Variable(
            "head_score", "width attention_head",
            "weight of the head in U_1 over the largest", "1", "score",
        ),
        Variable(
            "head_score_floor", "width attention_head",
            "the same of a head that f does not read", "1", "score",
        ),
    )  # fmt: skip


def learning(table: TaskTable) -> Learning:
    """Draw the task of a study.

    Raises:
        ValueError: impossible settings, in one line.
    """
    (row,) = TASKS.named(table.name)
    return TASKS.part(row, "draw")(table)


def hidden_markov_chains(table: HiddenMarkovTable) -> Learning:
    """Heads, training and test set, each with a key of its own.

    Raises:
        ValueError: impossible settings, in one line.
    """
    head_key, train_key, test_key = jax.random.split(jax.random.key(table.seed), 3)
    setting = hidden_markov.preset(table.preset, head_key, **table.changes)

    def drawn(key, examples):
        x, y = hidden_markov.draw(key, setting.task, examples=examples)
        xi = bpkr.attentioned_inputs(
            x, setting.heads, readout=setting.readout, skip=table.skip
        )
        return xi, y

    train = drawn(train_key, setting.n_train)
    test = drawn(test_key, setting.n_test)
    layers = table.heads or hidden_markov.PRESETS[table.preset][1]
    described = setting._asdict() | {"task": asdict(setting.task), "heads": layers}
    described |= {"skip": table.skip} if table.skip else {}
    description = json.dumps({"name": table.name, "seed": table.seed} | described)
    counts = bpkr.head_counts(setting.heads)
    return Learning(*train, *test, counts, description, skip=table.skip)


def grid(table: WidthsTable) -> Grid:
    """Widths and temperatures of a study, sorted."""
    return Grid(
        sorted(listed(table.width)),
        sorted(listed(table.temperature)),
        table.width_ratios,
    )


def posed(data: Learning, table: WidthsTable, **options: Any) -> bpkr.Problem:
    """The learning problem of some examples at the first point of the grid.

    Args:
        data: examples and heads.
        table: of the network.
        options: of `Problem`.
    """
    return bpkr.Problem(
        *data.data,
        heads=data.heads,
        skip=data.skip,
        variances=table.variances,
        **grid(table).point(0),
        **options,
    )


def about(study: BpkrStudy, data: Learning) -> dict[str, str]:
    """Attributes of the file of a study that name what was learned."""
    return {"kind": study.kind, "task": data.description}


class LearningWork(LearningPoints):
    """Points of a study of Bayesian learning, with the task that it names."""

    def __init__(self, study: BpkrStudy, data: Learning | None = None, **axes):
        """Draw the task and check the grid; `ValueError` for impossible settings."""
        self.study = study
        self.made = learning(study.task) if data is None else data
        self.single = single(study)
        super().__init__(
            posed(self.made, study.network),
            grid(study.network),
            about=about(study, self.made),
            **axes,
        )

    def sizes(self) -> dict[str, int]:
        """Of the dimensions that come from the task."""
        names = {d: len(x) for d, x in self.coordinates().items()}
        examples = dict.fromkeys(("example", "example_pair"), self.made.Y.size)
        ranks = {"rank": min(RANKS, self.made.Y.size), "sign": 3}
        test = {"test": self.made.Y_test.size, "answer": max(self.made.counts)}
        return names | examples | ranks | test

    def derived(self, columns: Contents) -> Contents:
        """Labels of the examples beside what was computed."""
        labels = {"y": (("example",), self.made.Y)}
        return columns | labels | {"y_test": (("test",), self.made.Y_test)}

    def coordinates(self) -> dict[str, Any]:
        names = super().coordinates()
        if self.made.names:
            names["attention_head"] = list(self.made.names)
        if self.made.sets:
            names["test_set"] = list(self.made.sets)
            names["choice"] = list(self.made.choices)
        return names


def single(study: BpkrStudy) -> tuple[str, ...]:
    """Axes that a file has as a number: a temperature that is none of a list."""
    several = isinstance(study.network.temperature, list)
    return () if several else ("temperature",)
