"""Width and temperature by the evidence, beside the choice on validation examples.

A share of the training examples is held out at random, unless the task has a test set
called validation.  The evidence is that of the other labels, the validation error that
of the validation examples, and the test error, on the first test set, says how good
both choices are (`bpkr.selection`).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import bpkr
from statmech_attn.bpkr import selection
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, Assembled, Results, Tick
from statmech_attn.statistics import standard_error
from statmech_attn.studies import build, learning, posterior
from statmech_attn.studies.examples import Attended, VALIDATION
from statmech_attn.studies.learning import Dimensions, Learning
from statmech_attn.studies.selection_table import ModelSelectionStudy


HELD = 0.2  # share of the training examples that is held out where nothing says so
VARIABLES = Variables(
    selection.VARIABLES,
    Variable(
        "error_test",
        "width temperature",
        "mean squared error on the test set",
        "1",
        "ε",
        "_stderr",
        note="of a study",
    ),
    build.FAILURE,
)


class ModelSelectionWork(learning.LearningWork):
    """Evidence, and errors on held-out and on test examples, at every point."""

    title = "model selection"
    labels = VARIABLES
    empty: Mapping[str, int] = {"result": -1}

    def __init__(self, study: ModelSelectionStudy):
        self.run = study.run
        if self.run.exact:
            posterior.require_numpyro()
        split_key, self.key = jax.random.split(jax.random.key(self.run.seed))
        whole = learning.learning(study.task)
        self.validation, self.rest = _parted(split_key, whole, self.run.validation)
        super().__init__(study)
        if not self.run.exact:
            problems = [self.at(number) for number in range(self.total)]
            selection.check_some_evidence(problems)

    def learned(self) -> Learning:
        return self.rest

    def check(self, problem: bpkr.Problem) -> None:
        selection.check_positive(self.grid.temperatures)
        if self.run.exact:
            problem.check_finite_width("exact = true")

    def dimensions(self) -> Dimensions:
        numbers = ("log_evidence", "log_evidence_stderr", "result")
        of_test = ("error_test", "error_test_stderr")
        predictor = ("examined", *("output",) * (self.made.Y.ndim - 1))
        of_none: Dimensions = dict.fromkeys((*numbers, *of_test), ())
        return of_none | dict.fromkeys(("mean", "mean_stderr"), predictor)

    def sizes(self) -> dict[str, int]:
        outputs = {"output": self.made.Y.shape[-1]} if self.made.Y.ndim > 1 else {}
        return super().sizes() | {"examined": len(self.validation[1])} | outputs

    def rows(
        self, first: int, stop: int, tick: Tick, folder: Path | None
    ) -> Iterator[dict[str, Any]]:
        examined = jnp.concatenate([self.validation[0], self.made.xi_test])
        held = len(self.validation[1])
        for number in range(first, stop):
            tick(0.0)
            key = jax.random.fold_in(self.key, number) if self.run.exact else None
            solution = self.at(number).solve()
            point = selection.measured(solution, examined, key, self.run.draws)
            parts = lambda rows: point._replace(
                mean=point.mean[rows], mean_stderr=point.mean_stderr[rows]
            )
            errors = parts(slice(held, None)).squared_errors(self.made.Y_test)
            row = parts(slice(held))._asdict() | {
                "error_test": errors.mean(),
                "error_test_stderr": standard_error(errors),
            }
            yield {name: np.asarray(value) for name, value in row.items()}
            tick(1.0)

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without a predictor; narrow networks have no evidence."""
        return learning.lacking(arrays, "mean", "error_test") & (arrays["result"] == 0)

    def assemble(self, results: Results) -> Assembled:
        column = results.column
        points = [
            selection.Point(*(column(name)[n] for name in selection.Point._fields))
            for n in range(self.total)
        ]
        grid = self.grid
        widths = [float(np.max(grid.width(width))) for width in grid.widths]
        labels = np.asarray(self.validation[1])
        chosen = selection.selected(
            self.problem, widths, grid.temperatures, points, labels
        )
        over = learning.POINT
        beside = {
            name: (over, column(name).reshape(self.shape), VARIABLES.attributes(name))
            for name in ("error_test", "error_test_stderr")
        }
        dataset = chosen.to_dataset().assign(beside)
        if (failure := results.failure()).any():
            attributes = VARIABLES.attributes("failure")
            dataset["failure"] = over, failure.reshape(self.shape), attributes
            dataset.attrs["failure_reasons"] = results.reasons()
        return Assembled(
            dataset.assign_attrs(
                kind=self.study.kind,
                task=self.made.description,
                prior=json.dumps(learning.prior(grid, len(self.made.heads))),
                held_out=len(labels),
            )
        )


def _parted(key, whole: Learning, share: float | None) -> tuple[Attended, Learning]:
    """Validation examples, and what is learned from; both in the order of the task.

    Args:
        share: of the training examples that is held out; None for the validation set of
            the task, or where it has none a fifth.

    Raises:
        ValueError: none would be left on one side.
    """
    if share is None and VALIDATION in whole.sets:
        return whole.sets[VALIDATION], whole._replace(sets={})
    share, count = HELD if share is None else share, len(whole.Y)
    held = round(share * count)
    if not 0 < held < count:
        raise ValueError(
            f"run.validation: {share:g} of {count} training examples leaves none on "
            "one side."
        )
    order = np.asarray(jax.random.permutation(key, count))
    chosen, kept = np.sort(order[:held]), np.sort(order[held:])
    rest = whole._replace(xi=whole.xi[kept], Y=whole.Y[kept], sets={})
    return (whole.xi[chosen], whole.Y[chosen]), rest
