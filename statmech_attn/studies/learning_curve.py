"""Learning curves over widths and temperatures: theory and samples side by side.

Every training set has the largest number of examples, and the smaller ones are its
beginnings, padded to one shape (`bpkr.curves`).  A point is one width, temperature,
training set and number of examples; it needs nothing of other points.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from statmech_attn import bpkr
from statmech_attn.bpkr import curves
from statmech_attn.comparison import EXACT
from statmech_attn.labels import Variable, Variables
from statmech_attn.reporting import Silent
from statmech_attn.scan import Arrays, Assembled, Results, Tick
from statmech_attn.studies import learning, posterior, spec
from statmech_attn.studies.learning import Dimensions, Learning
from statmech_attn.studies.learning_curve_table import LearningCurveStudy
from statmech_attn.studies.order_parameter import WORDS


_OVER, _OF_SET = "width examples estimate", "width training_set examples"
MEASURED = {
    "error": ("mean squared error of the mean predictor on the test set", "ε"),
    "variance": ("posterior variance of f, mean over the test set", "⟨δf²⟩"),
    "accuracy": ("share of test examples with the right sign", "accuracy"),
}
_NOTE = "mean over training sets"
EXAMPLES = Variable("examples", "examples", "training examples", "1", "P")
ESTIMATE = Variable("estimate", "estimate", "what f is estimated by", "1", "estimate")
VARIABLES = Variables(
    *(
        Variable(name, _OVER, long, "1", symbol, "_stderr", group="", note=_NOTE)
        for name, (long, symbol) in MEASURED.items()
    ),
    *(
        Variable(
            f"{name}_of_set",
            f"{_OF_SET} estimate",
            f"{long}, of one training set",
            "1",
            symbol,
        )
        for name, (long, symbol) in MEASURED.items()
    ),
    learning.order_parameters(_OF_SET, note="at the saddle point"),
    Variable("action", _OF_SET, "action at the saddle point", "1", "S"),
    Variable(
        "log_evidence",
        _OF_SET,
        "log of the probability of the labels",
        "nat",
        "ln p(Y)",
        note="Laplace; with run.corrections",
    ),
    Variable(
        "result",
        _OF_SET,
        "how the search for the saddle point ended",
        "1",
        "result",
        group="",
        flags=WORDS,
        note="-1: not computed",
    ),
    Variable(
        "shared",
        "",
        "True: training sets have examples in common, so errors are over draws from "
        "the given examples, and NaN for sets of all of them",
        "1",
        "shared",
    ),
    Variable(
        "rank",
        "",
        "|Π| N_0: of more examples the kernel has no inverse",
        "1",
        "|Π| N_0",
    ),
    EXAMPLES,
    ESTIMATE,
    learning.COORDINATES,
)


class LearningCurveWork(learning.LearningWork):
    """Errors of the theory and of samples for growing beginnings of training sets."""

    title = "learning curves"
    labels = VARIABLES
    axes = (*learning.POINT, "training_set", "examples")
    empty: Mapping[str, int] = {"result": -1}

    def __init__(self, study: LearningCurveStudy):
        self.run = study.run
        if self.run.samples:
            posterior.require_numpyro()
        self.keeps_blocks = study.keeps_blocks
        self.batch = len(self.run.examples)
        draw_key, self.key = jax.random.split(jax.random.key(self.run.seed))
        self.estimates = ["gp", "saddle", *["corrected"] * self.run.corrections]
        self.estimates += [estimate(name) for name in self.run.samples]
        needed = max(self.run.examples) * self.run.training_sets
        self.pool = learning.learning(study.task.enlarged(needed))._replace(sets={})
        available = len(self.pool.Y)
        self.examples = curves.checked_sizes(self.run.examples, available)
        self.chosen, self.shared = curves.drawn(
            draw_key, available, int(self.examples[-1]), self.run.training_sets
        )
        self._last: tuple[int, bpkr.Problem] | None = None
        super().__init__(study)

    def learned(self) -> Learning:
        return self._training_set(0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.grid.shape, self.run.training_sets, len(self.examples))

    def check(self, problem: bpkr.Problem) -> None:
        curves.check_positive(problem)
        for method in self.run.samples:
            problem.check_finite_width(f'samples = ["{method}"]')

    def dimensions(self) -> Dimensions:
        layers = range(1, len(self.made.heads) + 1)
        dimensions: Dimensions = {f"U_{l}": self.made.path_dims(l) for l in layers}
        dimensions |= dict.fromkeys(MEASURED, ("estimate",))
        dimensions |= dict.fromkeys(("U_a", "action", "result"), ())
        return dimensions | ({"log_evidence": ()} if self.run.corrections else {})

    def rows(
        self, first: int, stop: int, tick: Tick, folder: Path | None
    ) -> Iterator[dict[str, Any]]:
        for number in range(first, stop):
            tick(0.0)
            yield self._row(number, folder and folder / f"point_{number:05d}")
            tick(1.0)

    def _row(self, number: int, folder: Path | None) -> dict[str, Any]:
        point, training_set, i = np.unravel_index(
            number, (self.grid.total, *self.shape[2:])
        )
        size, made = int(self.examples[i]), self.made
        whole = self._whole(int(training_set)).at(**self.grid.point(int(point)))
        problem = curves.truncated(whole, size)
        found = curves.estimated(
            problem, size, made.xi_test, made.Y_test, corrections=self.run.corrections
        )
        of_point = found.measured
        key = jax.random.fold_in(jax.random.fold_in(self.key, training_set), size)
        for method in self.run.samples:
            sampled = posterior.sampled(
                key,
                problem,
                made,
                self.run.sampling(method),
                Silent(),
                folder=folder and folder / method,
                study=spec.dump(self.study.model_dump(exclude_none=True)),
            )
            of_point[estimate(method)] = curves.measured(
                sampled.mean, sampled.variance, made.Y_test, sampled.mean_stderr
            )
        row = {
            name: np.array([getattr(of_point[e], name) for e in self.estimates])
            for name in MEASURED
        }
        U = {f"U_{l}": np.asarray(u) for l, u in enumerate(found.solution.U, 1)}
        return (
            row
            | U
            | {
                "U_a": np.asarray(found.solution.U_a),
                "action": found.action,
                "result": np.asarray(found.solution.result, np.int8),
            }
            | ({"log_evidence": found.log_evidence} if self.run.corrections else {})
        )

    def _whole(self, training_set: int) -> bpkr.Problem:
        """All examples of a training set; that of the last point is kept."""
        if self._last is None or self._last[0] != training_set:
            self._last = training_set, self.posed(self._training_set(training_set))
        return self._last[1]

    def _training_set(self, number: int) -> Learning:
        chosen = self.chosen[number]
        return self.pool._replace(xi=self.pool.xi[chosen], Y=self.pool.Y[chosen])

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"estimate": len(self.estimates)}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without numbers; no correction exists at a small width."""
        every = [name != "corrected" for name in self.estimates]
        arrays = arrays | {"error": arrays["error"][:, every]}
        return learning.lacking(arrays, "U_1", "error") & (arrays["result"] == 0)

    def assemble(self, results: Results) -> Assembled:
        variables = self.variables(results)
        for name in MEASURED:
            dims, values = variables.pop(name)
            variables[f"{name}_of_set"] = dims, values
            axis = dims.index("training_set")
            over = tuple(d for d in dims if d != "training_set")
            last = np.moveaxis(values, axis, -1)
            variables[name] = over, last.mean(-1)
            place, available = over.index("examples"), len(self.pool.Y)
            of_sizes = np.moveaxis(last, place, 0)
            error = curves.over_sets(of_sizes, self.examples, available)
            variables[f"{name}_stderr"] = over, np.moveaxis(error, 0, place)
        variables["shared"] = (), self.shared
        variables["rank"] = (), math.prod(self.made.xi.shape[1:])
        dataset = self.labelled(variables, results).dataset.drop_vars("y")
        examples = ("examples", self.examples, EXAMPLES.attributes())
        estimates = ("estimate", self.estimates, ESTIMATE.attributes())
        return Assembled(dataset.assign_coords(examples=examples, estimate=estimates))


def estimate(method: str) -> str:
    """Name of what a method of sampling estimates.

    Example:
        >>> estimate("order-parameter"), estimate("langevin")
        ('exact', 'langevin')
    """
    return EXACT if method == posterior.EXACT_LAW else method
