"""Width and temperature by the evidence, beside the choice on validation examples.

A share of the training examples is held out at random, unless the task has a test set
called validation.  The evidence is that of the other labels, the validation error that
of the validation examples, and the test error, on the first test set, says how good
both choices are (`bpkr.selection`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import bpkr
from statmech_attn.bpkr import selection
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, Contents, lacking, Tick
from statmech_attn.statistics import standard_error
from statmech_attn.studies import build, learning, posterior
from statmech_attn.studies.examples import Attended, Learning, VALIDATION
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
    variables = VARIABLES
    empty: Mapping[str, int] = {"result": -1}

    def __init__(self, study: ModelSelectionStudy):
        self.options = study.run
        if self.options.exact:
            posterior.require_numpyro()
        split_key, self.key = jax.random.split(jax.random.key(self.options.seed))
        whole = learning.learning(study.task)
        self.validation, self.rest = _parted(split_key, whole, self.options.validation)
        super().__init__(study, self.rest)
        if not self.options.exact:
            problems = [self.at(number) for number in range(self.total)]
            selection.check_some_evidence(problems)

    def check(self, problem: bpkr.Problem) -> None:
        selection.check_positive(self.grid.temperatures)
        if self.options.exact:
            problem.check_finite_width("exact = true")

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        examined = jnp.concatenate([self.validation[0], self.made.xi_test])
        held = len(self.validation[1])
        key = jax.random.fold_in(self.key, number) if self.options.exact else None
        solution = self.at(number).solve()
        point = selection.measured(solution, examined, key, self.options.draws)
        parts = lambda rows: point._replace(
            mean=point.mean[rows], mean_stderr=point.mean_stderr[rows]
        )
        errors = parts(slice(held, None)).squared_errors(self.made.Y_test)
        row = parts(slice(held))._asdict() | {
            "error_test": errors.mean(),
            "error_test_stderr": standard_error(errors),
        }
        return {name: np.asarray(value) for name, value in row.items()}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without a predictor; narrow networks have no evidence."""
        return lacking(arrays, "mean", "error_test") & (arrays["result"] == 0)

    def derived(self, columns: Contents) -> Contents:
        """What the points of the grid choose, in the place of their predictors."""
        flat = {
            name: columns.pop(name)[1].reshape(self.total, *shape)
            for name in selection.Point._fields
            for shape in [columns[name][1].shape[2:]]
        }
        points = [
            selection.Point(*(flat[name][n] for name in selection.Point._fields))
            for n in range(self.total)
        ]
        widths = [float(np.max(self.grid.width(width))) for width in self.grid.widths]
        chosen = selection.selected(
            self.problem,
            widths,
            self.grid.temperatures,
            points,
            np.asarray(self.validation[1]),
        )
        for name, x in chosen.to_dataset().drop_vars(list(self.axes)).variables.items():
            columns[str(name)] = tuple(map(str, x.dims)), x.values
        return columns

    def attributes(self) -> dict[str, Any]:
        held_out = len(self.validation[1])
        return super().attributes() | {"title": self.title, "held_out": held_out}


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
