r"""Width and temperature by the evidence, beside the choice on validation data.

docs/theory/bpkr.md, section 7.  The evidence p(Y) needs no examples beside those that
are learned from; the squared error on validation examples needs some that are not.

    ln p(Y)           (W, T)       nats, of the training labels       `log_evidence`
    epsilon           (W, T)       mean of (f - Y)^2 on validation    `error`
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.bpkr.grids.points import Grid, prior_of_weights
from statmech_attn.bpkr.grids.training_sets import fitting_labels
from statmech_attn.bpkr.heads.pruning import rank_correlation
from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.newton import RESULT_WORDS
from statmech_attn.bpkr.posed.prior import outside_support
from statmech_attn.bpkr.posed.quantities import (
    HEURISTIC,
    LOG_EVIDENCE,
    TEMPERATURE,
    WIDTH,
)
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.evidence import evidence
from statmech_attn.bpkr.theory.predictor import accuracy
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import Count
from statmech_attn.scan import Arrays, Contents, FAILURE, lacking, over, Scan
from statmech_attn.statistics import standard_error


CHOICES = ("evidence", "validation")
_OVER = "width temperature"
VARIABLES = Variables(
    WIDTH._replace(group=""),
    TEMPERATURE._replace(group=""),
    Variable("choice", "choice", "by what a point is chosen", group=""),
    LOG_EVIDENCE.over(_OVER, "_stderr", group=""),
    Variable(
        "error",
        _OVER,
        "mean squared error on the validation set",
        "1",
        "ε",
        "_stderr",
        group="",
    ),
    Variable(
        "accuracy",
        _OVER,
        "share of validation examples with the right class",
        symbol="accuracy",
        group="",
    ),
    Variable(
        "result",
        _OVER,
        "how the saddle point was reached",
        group="",
        flags=RESULT_WORDS,
    ),
    Variable("chosen_width", "choice", "chosen width", symbol="N", group=""),
    Variable(
        "chosen_temperature", "choice", "chosen temperature", symbol="T", group=""
    ),
    Variable(
        "excess",
        "",
        "validation error by the evidence less the smallest",
        "1",
        "Δε",
        "_stderr",
        group="",
    ),
    Variable(
        "rank_correlation",
        "",
        "rank correlation of ln p(Y) and less validation error",
        symbol="ρ_S",
        group="",
    ),
    Variable(
        "error_test",
        _OVER,
        "mean squared error on the test set",
        "1",
        "ε",
        "_stderr",
        note="with a test set",
    ),
    HEURISTIC,
    FAILURE,
)


def model_selection(
    problem: Problem,
    xi_validation: Float[Array | np.ndarray, "Q N_0 Pi"] | Kernels,
    Y_validation: Float[Array | np.ndarray, "Q *K"],
    *,
    grid: Grid,
    key: Key[Array, ""] | None = None,
    draws: Count = 500,
    test: tuple[Any, Any] | None = None,
    about: Mapping[str, Any] = {},
) -> Scan:
    """Width and temperature by ln p(Y), and by the error on validation examples.

    Args:
        problem: network and training examples; widths and temperatures are those of the
            grid.
        xi_validation: attentioned inputs of the validation set.
        Y_validation: its labels.
        grid: widths and temperatures, > 0.
        key: random key of JAX; with one, evidence and predictor are those of the exact
            law (needs numpyro), else Laplace's ln p(Y) and the saddle point's.
        draws: of the exact law, for each of four chains.
        test: inputs and labels of a set whose error is given beside it, if any.
        about: attributes of the file.

    Returns:
        Points of a data set of the kind model-selection (docs/hdf5.md): evidence and
        validation errors on the grid, what each chooses, and how far they agree.

    Raises:
        ValueError: a temperature that is not > 0, sets that do not fit, a width that
            the exact law cannot have, or no point of the grid has an evidence.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (60, 3, 1))
        >>> Y = xi[:, 0, 0] + 0.3 * jax.random.normal(jax.random.key(1), (60,))
        >>> problem = Problem(xi[:30], Y[:30], heads=(1,), width=10, temperature=0.1)
        >>> chosen = model_selection(
        ...     problem, xi[30:], Y[30:], grid=Grid([10], [0.001, 0.1, 10])).compute()
        >>> chosen.sel(choice="evidence").chosen_temperature.item()  # noise of 0.3^2
        0.1
    """
    labels, Y_test = fitting_labels(problem, xi_validation, Y_validation), None
    if test is not None:
        if np.shape(test[0])[1:] != np.shape(xi_validation)[1:]:
            raise ValueError("test must be inputs like xi_validation, and labels.")
        Y_test = fitting_labels(problem, *test)
        xi_validation = jnp.concatenate([xi_validation, test[0]])  # type: ignore
    problems = [problem.at(**grid.point(number)) for number in range(grid.total)]
    for each in problems:
        if not each.temperature > 0:
            raise ValueError("temperatures: labels have an evidence at T > 0; got 0.")
        if key is not None:
            each.check_finite_width("the exact law")
    if key is None:
        check_some_evidence(problems)
    known = {"problem": problem, "grid": grid, "Y": labels}
    return over(
        partial(_row, **known, xi=xi_validation, Y_test=Y_test, key=key, draws=draws),
        grid.axes,
        variables=VARIABLES,
        numbers=_lost,
        derive=partial(_choices, problem, grid),
        coordinates={"choice": CHOICES},
        kind="model-selection",
        about={**about, "prior": prior_of_weights(problem, grid)}
        | {"title": "model selection", "held_out": len(labels)},
        alone=True,
        empty={"result": -1},
    )


def _row(
    _: Mapping[str, float],
    number: int,
    problem: Problem,
    grid: Grid,
    xi: Any,
    Y: np.ndarray,
    Y_test: np.ndarray | None,
    key: Key[Array, ""] | None,
    draws: int,
) -> dict[str, Any]:
    key = None if key is None else jax.random.fold_in(key, number)
    point = measured(problem.at(**grid.point(number)).solve(), xi, key, draws)
    validation = point.of(slice(len(Y)))
    row = {
        "log_evidence": point.log_evidence,
        "log_evidence_stderr": point.log_evidence_stderr,
        "squared_errors": validation.squared_errors(Y),
        "accuracy": _share_right(validation.mean, Y),
        "result": point.result,
    }
    if Y_test is not None:
        errors = point.of(slice(len(Y), None)).squared_errors(Y_test)
        row["error_test"] = errors.mean()
        row["error_test_stderr"] = standard_error(errors)
    return row


def _lost(arrays: Arrays) -> np.ndarray:
    """Converged without a predictor; narrow networks have no evidence."""
    names = [n for n in ("squared_errors", "error_test") if n in arrays]
    return lacking(arrays, *names) & (arrays["result"] == 0)


def _choices(problem: Problem, grid: Grid, columns: Contents) -> Contents:
    """What the points of the grid choose, in the place of their squared errors."""
    over = tuple(grid.axes)
    squared_errors = columns.pop("squared_errors")[1]
    columns["error"] = over, squared_errors.mean(axis=-1)
    columns["error_stderr"] = over, standard_error(squared_errors)
    log_evidence = columns["log_evidence"][1]
    if not np.isfinite(log_evidence).any():
        raise ValueError(_nowhere(problem))
    choice = chosen(log_evidence, squared_errors)
    for (name, values), places in zip(grid.axes.items(), np.transpose(choice.places)):
        columns[f"chosen_{name}"] = ("choice",), values[places]
    for name in ("excess", "excess_stderr", "rank_correlation"):
        columns[name] = (), getattr(choice, name)
    if problem.heuristic:
        columns["heuristic"] = (), True
    return columns


class Choice(NamedTuple):
    """What evidence and validation choose of a grid; build with `chosen`.

    Attributes:
        places: on the grid, of the highest evidence and of the smallest error.
        excess: validation error where the evidence is highest, less the smallest one.
        excess_stderr: standard error of this difference, on the same examples.
        rank_correlation: Spearman's, of ln p(Y) and less validation error where both
            are known.
    """

    places: tuple[tuple[int, int], tuple[int, int]]
    excess: float
    excess_stderr: float
    rank_correlation: float


def chosen(
    log_evidence: Float[np.ndarray, "W T"], squared_errors: Float[np.ndarray, "W T Q"]
) -> Choice:
    """What the points of a grid choose.

    `log_evidence` is NaN where a point has none; `squared_errors` are those of the mean
    predictor, for every validation example.
    """
    error = squared_errors.mean(axis=-1)
    best = np.nanargmax(log_evidence), np.nanargmin(error)
    (i, j), (k, l) = (np.unravel_index(place, error.shape) for place in best)
    excesses = squared_errors[i, j] - squared_errors[k, l]
    finite = np.isfinite(log_evidence) & np.isfinite(error)
    return Choice(
        ((int(i), int(j)), (int(k), int(l))),
        float(excesses.mean()),
        float(standard_error(excesses)),
        rank_correlation(log_evidence[finite], -error[finite]),
    )


class Point(NamedTuple):
    """What a point of the grid gives.

    ln p(Y) with its Monte Carlo error (NaN for Laplace's value), the mean of f for
    every example with its error, and an index into `RESULTS`.
    """

    log_evidence: float
    log_evidence_stderr: float
    mean: Float[np.ndarray, "Q *K"]
    mean_stderr: Float[np.ndarray, "Q *K"]
    result: int

    def of(self, examples: slice) -> "Point":
        """The predictor on some of the examples."""
        mean, stderr = self.mean[examples], self.mean_stderr[examples]
        return self._replace(mean=mean, mean_stderr=stderr)

    def squared_errors(self, Y: Float[Array | np.ndarray, "Q *K"]):
        """Squared errors of the mean predictor, without those that sampling adds."""
        squares = (self.mean - Y) ** 2 - self.mean_stderr**2
        return np.asarray(squares).reshape(len(Y), -1).mean(axis=1)


def check_some_evidence(problems: Sequence[Problem]) -> None:
    """Refuse grids on which Laplace's evidence exists nowhere."""
    if all(outside_support(problem.widths, problem.sizes) for problem in problems):
        raise ValueError(_nowhere(problems[0]))


def _nowhere(problem: Problem) -> str:
    return (
        "no point has an evidence: Laplace's needs a saddle point and widths of at "
        f"least {problem.sizes[0]}, the number of paths times outputs; give wider "
        "ones, or take the exact law's."
    )


def measured(
    solution: Solution, xi, key: Key[Array, ""] | None = None, draws: int = 500
) -> Point:
    """Evidence and predictor at a point: Laplace's, or with a key the exact law's."""
    if key is not None:
        return _exact(solution, xi, key, draws)
    if not solution.converged:
        count = xi.own.shape[-1] if isinstance(xi, Kernels) else len(xi)
        unknown = np.full((count, *solution.problem.Y.shape[1:]), np.nan)
        return Point(np.nan, np.nan, unknown, unknown, int(solution.result))
    log_evidence = np.nan
    if not solution.outside_support:
        log_evidence = float(solution.problem.corrections(solution).log_evidence)
    mean = np.asarray(solution.problem.theory(solution).mean(xi))
    return Point(log_evidence, np.nan, mean, np.zeros_like(mean), int(solution.result))


def _exact(solution: Solution, xi, key: Key[Array, ""], draws: int) -> Point:
    """Evidence and predictor of the exact law."""
    sample_key, bridge_key = jax.random.split(key)
    posterior = solution.problem.posterior(sample_key, draws=draws)
    f, bridged = posterior.predict(xi), evidence(bridge_key, posterior)
    predictor = np.asarray(f.mean), np.asarray(f.mean_stderr)
    return Point(bridged.value, bridged.stderr, *predictor, int(solution.result))


def _share_right(mean: Float[np.ndarray, "Q *K"], Y) -> float:
    return accuracy(mean, Y) if np.isfinite(mean).all() else np.nan
