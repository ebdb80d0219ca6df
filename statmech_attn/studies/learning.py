"""From the tables of a learning study to its task, its grid and its labelled axes."""

import json
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from statmech_attn import bpkr
from statmech_attn.kinds import TASKS
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import (
    Arrays,
    Assembled,
    Chunk,
    OneRound,
    Pilot,
    Results,
    Tick,
)
from statmech_attn.studies import build
from statmech_attn.studies.bpkr_tables import (
    BpkrStudy,
    HiddenMarkovTable,
    listed,
    WidthsTable,
)
from statmech_attn.studies.examples import Learning
from statmech_attn.studies.tables import TaskTable
from statmech_attn.tasks import hidden_markov


POINT = ("width", "temperature")
RANKS = 50  # eigenvectors of a kernel whose overlap is kept, at most

Dimensions = dict[str, tuple[str, ...]]
Contents = dict[str, tuple[tuple[str, ...], Any]]
# Files have the dimension `temperature` after `width` where several were asked for.
COORDINATES = Variables(
    Variable("y", "example", "labels of the training examples", "1", "Y"),
    Variable("y_test", "test", "labels of the test examples", "1", "Y"),
    build.FAILURE,
    Variable("width", "width", "hidden width", "1", "N"),
    Variable("temperature", "", "temperature of the posterior", "1", "T"),
    Variable(
        "path_{l}", "path_{l}", "attention path from layer {l} on", "1", "π",
        note="heads by layer: 2-1 is head 2 of layer 1 and head 1 of layer 2; 0 a skip",
    ),
    Variable(
        "path_{l}_pair", "path_{l}_pair", "attention path from layer {l} on", "1", "π"
    ),
    Variable("attention_head", "attention_head", "layer.head", "1", "(l, h)"),
    Variable("test_set", "test_set", "name of the test set", "1", "set"),
    Variable("choice", "choice", "by what accuracy the temperature was chosen", "1",
             "choice"),
)  # fmt: skip


def order_parameters(before: str, parts: str = "", note: str = "") -> Variables:
    """U_1 ... U_L and U_a.

    Args:
        before: dimensions that they have first.
    """
    return Variables(
        Variable(
            "U_{l}",
            f"{before} path_{{l}} path_{{l}}_pair",
            "order parameter, overlap of effective weights",
            "1",
            "U_{l}",
            parts,
            group="",
            note=note,
        ),
        Variable("U_a", before, "order parameter of the readout", "1", "U_a", parts),
    )


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


class Grid(NamedTuple):
    """Widths and temperatures; points are the product, temperatures fastest."""

    widths: list[float]
    temperatures: list[float]
    ratios: list[float] | None
    variances: list[float] | None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.widths), len(self.temperatures)

    @property
    def total(self) -> int:
        return math.prod(self.shape)

    def width(self, width: float):
        """(N_1, ..., N_L, N_a) of one width, whole numbers."""
        if self.ratios is None:
            return width
        return [max(1, round(width * ratio)) for ratio in self.ratios]

    def point(self, number: int) -> dict[str, Any]:
        """Width and temperature of a point by its number, as keywords."""
        i, j = divmod(number, len(self.temperatures))
        return {
            "width": self.width(self.widths[i]),
            "temperature": self.temperatures[j],
        }


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
        table.variances,
    )


def dataset(
    study: BpkrStudy, made: Learning, points: Grid, variables, labels: Variables
) -> xr.Dataset:
    """Label what a study found; temperature is a dimension if several were asked for.

    Args:
        variables: dimensions and values by name.
        labels: of the kind.
    """
    coordinates: dict[str, Any] = {
        "width": np.asarray(points.widths, float),
        "temperature": np.asarray(points.temperatures, float),
    }
    for l in range(len(made.heads)):
        for dimension in made.path_dims(l + 1):
            coordinates[dimension] = bpkr.path_names(made.heads[l:], made.skips[l:])
    coordinates["attention_head"] = list(made.names) or [
        f"{layer}.{head}"
        for layer, (count, b) in enumerate(zip(made.heads, made.skips), 1)
        for head in bpkr.path_names([count], b)
    ]
    if made.sets:
        coordinates |= {"test_set": list(made.sets), "choice": list(made.choices)}
    variables |= {"y": (("example",), made.Y), "y_test": (("test",), made.Y_test)}
    used = {name for dims, _ in variables.values() for name in dims}
    coordinates = {name: x for name, x in coordinates.items() if name in used}
    dataset = labels.labelled(variables, coordinates).assign_attrs(
        kind=study.kind,
        task=made.description,
        prior=json.dumps(prior(points, len(made.heads))),
    )
    several = isinstance(study.network.temperature, list)
    return dataset if several else dataset.isel(temperature=0)


def prior(points: Grid, layers: int) -> dict[str, list[float]]:
    """Width ratios and variances of all layers, as a file states them."""
    return {
        "width_ratios": points.ratios or [1.0] * (layers + 1),
        "variances": points.variances or [1.0] * (layers + 2),
    }


class LearningWork(OneRound):
    """Work whose points are widths and temperatures, and what each has of its own.

    Attributes:
        axes: dimensions of the grid of points, the last one fastest.
        labels: of the variables of the file.
    """

    title: str
    labels: Variables
    batch = 1
    alone = True
    axes: tuple[str, ...] = POINT

    def __init__(self, study: BpkrStudy):
        """Draw the task and check the grid; `ValueError` for impossible settings."""
        self.study = study
        self.made = self.learned()
        self.grid = grid(study.network)
        self.problem = self.posed(self.made)
        for number in range(self.grid.total):
            self.check(self.at(number))

    def learned(self) -> Learning:
        """What is learned from, and tested on."""
        return learning(self.study.task)

    def posed(self, made: Learning) -> bpkr.Problem:
        """The learning problem of some examples at the first point of the grid."""
        return bpkr.Problem(
            *made.data,
            heads=made.heads,
            skip=made.skip,
            variances=self.grid.variances,
            **self.grid.point(0),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return self.grid.shape

    @property
    def total(self) -> int:
        """Points of the study."""
        return math.prod(self.shape)

    def at(self, number: int) -> bpkr.Problem:
        """The learning problem at a point of the grid."""
        return self.problem.at(**self.grid.point(number))

    def check(self, problem: bpkr.Problem) -> None:
        """Refuse a point that cannot be computed, before the first one is."""

    @abstractmethod
    def dimensions(self) -> Dimensions:
        """What is found at a point, with its dimensions there."""

    @abstractmethod
    def rows(
        self, first: int, stop: int, tick: Tick, folder: Path | None
    ) -> Iterator[dict[str, Any]]:
        """Points `first` to `stop - 1`, in order: arrays by name."""

    def sizes(self) -> dict[str, int]:
        """Of the dimensions that come from the task."""
        task = self.made
        sizes = dict.fromkeys(("example", "example_pair"), task.Y.size)
        sizes |= {"rank": min(RANKS, task.Y.size), "test_set": len(task.sets)}
        sizes |= {"test": task.Y_test.size, "answer": max(task.counts)}
        sizes |= {"attention_head": sum(task.branches)}
        for layer in range(len(task.heads)):
            paths = math.prod(task.branches[layer:])
            sizes |= dict.fromkeys(task.path_dims(layer + 1), paths)
        return sizes

    def compute(
        self, chunk: Chunk, payload: None, tick: Tick, folder: Path | None
    ) -> Arrays:
        """The rows of a chunk."""
        rows = list(self.rows(chunk.first, chunk.stop, tick, folder))
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def pilot(self) -> Pilot | None:
        """How long a point takes, only its iterations can tell."""

    def variables(self, results: Results) -> Contents:
        """All that was computed at the points, on their grid."""
        variables = {}
        for name, dims in self.dimensions().items():
            rows = results.column(name)
            values = rows.reshape(self.shape + rows.shape[1:])
            variables[name] = ((*self.axes, *dims), values)
        if (failure := results.failure()).any():
            variables["failure"] = (self.axes, failure.reshape(self.shape))
        return variables

    def labelled(self, variables: Contents, results: Results) -> Assembled:
        """The data set of these variables, with the reasons of what failed."""
        labelled = dataset(self.study, self.made, self.grid, variables, self.labels)
        if "failure" in labelled:
            labelled.attrs["failure_reasons"] = results.reasons()
        return Assembled(labelled)


def lacking(arrays: Arrays, *names: str) -> np.ndarray:
    """Rows in which a number of one of these arrays is not finite."""
    return np.any(
        [
            ~np.isfinite(arrays[n].reshape(len(arrays[n]), -1)).all(axis=1)
            for n in names
        ],
        axis=0,
    )
