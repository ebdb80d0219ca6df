"""Learning problems over widths and temperatures, as points that survive a kill.

What is computed at every width and temperature of a network, and over axes of its own,
is a `LearningPoints`: `compute()` gives the data set in memory, `run(path)` computes it
in chunks beside its file.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from statmech_attn.bpkr.attention.attention import head_names, path_names
from statmech_attn.bpkr.grids.examples import LearningTask
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import head_floors, Theory
from statmech_attn.scan import Contents, Points


RANKS = 50  # eigenvectors of a kernel whose overlap is kept, at most


class Grid(NamedTuple):
    """Widths and temperatures; points are the product, temperatures fastest.

    Attributes:
        widths: as in `Problem`; factors of the ratios, where there are any.
        temperatures: of the posterior; of a single number a file has no axis.
        ratios: of the widths (N_1, ..., N_L, N_a), which are then whole numbers.
    """

    widths: Sequence[Any]
    temperatures: Sequence[float] | float
    ratios: Sequence[float] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of widths and of temperatures."""
        return len(self.widths), np.size(self.temperatures)

    @property
    def total(self) -> int:
        """Number of points of the grid."""
        return math.prod(self.shape)

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """Values along the axes of a file; of several widths the largest."""
        widths = [np.max(np.asarray(width)) for width in self.widths]
        temperatures = np.ravel(np.asarray(self.temperatures, float))
        return {"width": np.asarray(widths, float), "temperature": temperatures}

    def width(self, width: Any) -> Any:
        """(N_1, ..., N_L, N_a) of one width, where there are ratios.

        Args:
            width: of the grid.
        """
        if self.ratios is None:
            return width
        return [max(1, round(width * ratio)) for ratio in self.ratios]

    def point(self, number: int) -> dict[str, Any]:
        """Width and temperature of a point, as keywords of `Problem.at`.

        Args:
            number: of the point.
        """
        i, j = divmod(number, np.size(self.temperatures))
        temperature = float(np.ravel(self.temperatures)[j])
        return {"width": self.width(self.widths[i]), "temperature": temperature}


def prior_of_weights(problem: Problem, grid: Grid) -> str:
    """The prior as files have it, in JSON."""
    ratios = grid.ratios or [1.0] * len(problem.widths)
    variances = np.asarray(problem.variances).tolist()
    return json.dumps({"width_ratios": list(ratios), "variances": variances})


class LearningPoints(Points):
    """A learning problem at all widths and temperatures of a grid, and on further axes.

    Args:
        problem: what is learned.
        grid: widths and temperatures; those of the problem when omitted.
        about: attributes of the file.
        axes: further ones by name, after `width` and `temperature`.
    """

    alone = True

    def __init__(
        self,
        problem: Problem,
        grid: Grid | None = None,
        *,
        about: Mapping[str, Any] = {},
        **axes: Sequence | np.ndarray,
    ):
        if grid is None:
            grid = Grid([problem.widths], float(problem.temperature))
        if np.ndim(grid.temperatures) == 0:
            self.single = ("temperature",)
        self.temperatures: list[float] = np.ravel(grid.temperatures).tolist()
        self.problem, self.grid, self.about = problem, grid, about
        self.axes = grid.axes | axes
        for number in range(grid.total):
            self.check(problem.at(**grid.point(number)))

    def check(self, problem: Problem) -> None:
        """Refuse a problem that cannot be computed, before the first point is."""

    def at(self, number: int) -> Problem:
        """The learning problem of a point."""
        return self.problem.at(**self.of_grid(number))

    def of_grid(self, number: int) -> dict[str, Any]:
        """Width and temperature of a point, as keywords of `Problem.at`."""
        return self.grid.point(number // (self.total // self.grid.total))

    def coordinates(self) -> dict[str, Any]:
        heads, skips = self.problem.heads, self.problem.skip
        outputs = range(1, self.problem.outputs + 1)
        names: dict[str, Any] = {}
        for l in range(len(heads)):
            paths = path_names(heads[l:], skips[l:])
            if len(outputs) > 1:
                paths = [f"{path}:{output}" for path in paths for output in outputs]
            names |= {f"path_{l + 1}": paths, f"path_{l + 1}_pair": paths}
        return names | {"attention_head": head_names(heads, skips)}

    def inner_dims(self, name: str, rows: np.ndarray) -> tuple[str, ...]:
        if name == "U_a" and self.problem.outputs > 1:
            return "output", "output_pair"
        return super().inner_dims(name, rows)

    def attributes(self) -> dict[str, Any]:
        return {**self.about, "prior": prior_of_weights(self.problem, self.grid)}


class TaskPoints(LearningPoints):
    """A learning task with its test sets, over a grid of widths and temperatures."""

    def __init__(
        self,
        task: LearningTask,
        grid: Grid,
        *,
        variances: Sequence[float] | None = None,
        about: Mapping[str, Any] = {},
        **axes: Sequence | np.ndarray,
    ):
        self.task = task
        about = {"task": task.described, **about}
        problem = task.posed(variances=variances, **grid.point(0))
        super().__init__(problem, grid, about=about, **axes)

    def sizes(self) -> dict[str, int]:
        """Lengths of the dimensions that come from the task, by name."""
        names = {d: len(x) for d, x in self.coordinates().items()}
        examples = dict.fromkeys(("example", "example_pair"), self.task.Y.size)
        ranks = {"rank": min(RANKS, self.task.Y.size), "sign": 3}
        test = {"test": self.task.Y_test.size, "answer": max(self.task.counts)}
        return names | examples | ranks | test

    def derived(self, columns: Contents) -> Contents:
        """Labels of the examples beside what was computed."""
        labels = {"y": (("example",), self.task.Y)}
        return columns | labels | {"y_test": (("test",), self.task.Y_test)}

    def coordinates(self) -> dict[str, Any]:
        names = super().coordinates()
        if self.task.names:
            names["attention_head"] = list(self.task.names)
        if self.task.sets:
            names["test_set"] = list(self.task.sets)
            names["choice"] = list(self.task.choices)
        return names


def alignment_and_scores(theory: Theory, U, U_a) -> dict[str, Any]:
    """Overlap of kernel eigenvectors with the labels, and head scores with floors.

    U is (U_1, ..., U_L), the theory is at U_1, and U_a is that of the readout.
    """
    return {
        "kernel_overlap": theory.overlap()[:RANKS],
        "head_score": np.concatenate(theory.head_scores()),
        "head_score_floor": np.concatenate(head_floors(theory.problem, U, U_a)),
    }
