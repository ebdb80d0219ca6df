r"""Width and temperature by the evidence, beside the choice on validation data.

docs/theory/bpkr.md, section 7.  The evidence p(Y) needs no examples beside those that
are learned from; the squared error on validation examples needs some that are not.

    ln p(Y)           (W, T)       nats, of the training labels       `log_evidence`
    epsilon           (W, T)       mean of (f - Y)^2 on validation    `error`
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from statmech_attn import presentation
from statmech_attn.bpkr.activations import Kernels
from statmech_attn.bpkr.curves import fitting_labels
from statmech_attn.bpkr.evidence import evidence
from statmech_attn.bpkr.predictor import accuracy
from statmech_attn.bpkr.prior import outside_support
from statmech_attn.bpkr.problem import heuristic_row, Problem
from statmech_attn.bpkr.pruning import rank_correlation
from statmech_attn.bpkr.solution import RESULTS, Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import standard_error


CHOICES = ("evidence", "validation")
_OVER = "width temperature"
_ROWS = (
    Variable("width", "width", "hidden width", symbol="N", value="widths"),
    Variable(
        "temperature",
        "temperature",
        "temperature of the posterior",
        symbol="T",
        value="temperatures",
    ),
    Variable("choice", "choice", "by what a point is chosen", value=lambda _: CHOICES),
    Variable(
        "log_evidence",
        _OVER,
        "log of the probability of the labels",
        "nat",
        "ln p(Y)",
        error="log_evidence_stderr",
    ),
    Variable(
        "error",
        _OVER,
        "mean squared error on the validation set",
        symbol="ε",
        error="error_stderr",
    ),
    Variable(
        "accuracy",
        _OVER,
        "share of validation examples with the right class",
        symbol="accuracy",
    ),
    Variable("result", _OVER, "how the saddle point was reached", flags=RESULTS),
    Variable("chosen_width", "choice", "chosen width", symbol="N"),
    Variable("chosen_temperature", "choice", "chosen temperature", symbol="T"),
    Variable(
        "excess",
        "",
        "validation error by the evidence less the smallest",
        symbol="Δε",
        error="excess_stderr",
    ),
    Variable(
        "rank_correlation",
        "",
        "rank correlation of ln p(Y) and less validation error",
        symbol="ρ_S",
    ),
    heuristic_row("problem"),
)
VARIABLES = Variables(
    *(row._replace(group="") for row in _ROWS if row.name != "heuristic"), _ROWS[-1]
)


class ModelSelection(NamedTuple):
    """Evidence and validation errors on a grid; build with `model_selection`.

    Attributes:
        problem: network and training examples.
        widths: hidden widths N, the largest of the layers.
        temperatures: temperatures T.
        log_evidence: ln p(Y); NaN without a saddle point, and where a width is below
            the size of its U if no draws were asked for.
        log_evidence_stderr: its Monte Carlo error; NaN for Laplace's value.
        squared_errors: of the mean predictor, for every validation example.
        accuracy: share of the validation examples with the right class.
        result: how the saddle points were reached, an index into `RESULTS`.
    """

    problem: Problem
    widths: Float[np.ndarray, " W"]
    temperatures: Float[np.ndarray, " T"]
    log_evidence: Float[np.ndarray, "W T"]
    log_evidence_stderr: Float[np.ndarray, "W T"]
    squared_errors: Float[np.ndarray, "W T Q"]
    accuracy: Float[np.ndarray, "W T"]
    result: Int[np.ndarray, "W T"]

    _shown = _ROWS
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def error(self) -> Float[np.ndarray, "W T"]:
        """Mean squared error on the validation set."""
        return self.squared_errors.mean(axis=-1)

    @property
    def error_stderr(self) -> Float[np.ndarray, "W T"]:
        """Its standard error over validation examples."""
        return np.asarray(standard_error(self.squared_errors))

    @property
    def chosen(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Places on the grid: highest evidence, and smallest validation error."""
        shape = self.log_evidence.shape
        best = np.nanargmax(self.log_evidence), np.nanargmin(self.error)
        (i, j), (k, l) = (np.unravel_index(place, shape) for place in best)
        return (int(i), int(j)), (int(k), int(l))

    @property
    def chosen_width(self) -> Float[np.ndarray, " 2"]:
        """Width by the evidence, and by validation."""
        return self.widths[[i for i, _ in self.chosen]]

    @property
    def chosen_temperature(self) -> Float[np.ndarray, " 2"]:
        """Temperature by the evidence, and by validation."""
        return self.temperatures[[j for _, j in self.chosen]]

    @property
    def excess(self) -> float:
        """Validation error where the evidence is highest, less the smallest one."""
        return float(self._excesses.mean())

    @property
    def excess_stderr(self) -> float:
        """Standard error of this difference, on the same examples."""
        return float(standard_error(self._excesses))

    @property
    def rank_correlation(self) -> float:
        """Spearman's, of ln p(Y) and less validation error where both are known."""
        known = np.isfinite(self.log_evidence) & np.isfinite(self.error)
        return rank_correlation(self.log_evidence[known], -self.error[known])

    @property
    def _excesses(self) -> Float[np.ndarray, " Q"]:
        by_evidence, by_validation = self.chosen
        return self.squared_errors[by_evidence] - self.squared_errors[by_validation]


class Point(NamedTuple):
    """What a point of the grid gives.

    Attributes:
        log_evidence: ln p(Y), NaN where it has none.
        log_evidence_stderr: its Monte Carlo error, NaN for Laplace's value.
        mean: of f, for every example.
        mean_stderr: Monte Carlo error of that.
        result: how the saddle point was reached, an index into `RESULTS`.
    """

    log_evidence: float
    log_evidence_stderr: float
    mean: Float[np.ndarray, "Q *K"]
    mean_stderr: Float[np.ndarray, "Q *K"]
    result: int

    def squared_errors(self, Y: Float[Array | np.ndarray, "Q *K"]):
        """Of the mean predictor, less those that sampling adds, for every example."""
        squares = (self.mean - Y) ** 2 - self.mean_stderr**2
        return np.asarray(squares).reshape(len(Y), -1).mean(axis=1)


def model_selection(
    problem: Problem,
    xi_validation: Float[Array | np.ndarray, "Q N_0 Pi"] | Kernels,
    Y_validation: Float[Array | np.ndarray, "Q *K"],
    *,
    widths: Sequence,
    temperatures: Sequence[float],
    key: Key[Array, ""] | None = None,
    draws: int = 500,
) -> ModelSelection:
    """Width and temperature by ln p(Y), and by the error on validation examples.

    Args:
        problem: network and training examples; widths and temperatures are those given
            here.
        xi_validation: attentioned inputs of the validation set.
        Y_validation: its labels.
        widths: hidden widths, as in `Problem`.
        temperatures: temperatures, > 0.
        key: random key of JAX; with one, evidence and predictor are those of the exact
            law (needs numpyro), else Laplace's ln p(Y) and the saddle point's.
        draws: of the exact law, for each of four chains.

    Returns:
        Evidence and validation errors on the grid, what each chooses, and how far they
        agree.

    Raises:
        ValueError: a temperature that is not > 0, validation labels that do not fit, or
            no point of the grid has an evidence.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (60, 3, 1))
        >>> Y = xi[:, 0, 0] + 0.3 * jax.random.normal(jax.random.key(1), (60,))
        >>> problem = Problem(xi[:30], Y[:30], heads=(1,), width=10, temperature=0.1)
        >>> chosen = model_selection(
        ...     problem, xi[30:], Y[30:], widths=[10], temperatures=[0.001, 0.1, 10])
        >>> float(chosen.chosen_temperature[0])  # the labels have noise of 0.3^2
        0.1
    """
    Y_validation = fitting_labels(problem, xi_validation, Y_validation)
    check_positive(temperatures)
    rows = problem.sweep(widths=widths, temperatures=temperatures)
    solutions = [solution for row in rows for solution in row]
    of_point = lambda n: None if key is None else jax.random.fold_in(key, n)
    points = [
        measured(solution, xi_validation, of_point(n), draws)
        for n, solution in enumerate(solutions)
    ]
    return selected(
        problem,
        [float(row[0].problem.widths.max()) for row in rows],
        temperatures,
        points,
        Y_validation,
    )


def selected(
    problem: Problem,
    widths: Sequence[float],
    temperatures: Sequence[float],
    points: Sequence[Point],
    Y: Float[Array | np.ndarray, "Q *K"],
) -> ModelSelection:
    """Points of a grid and what they choose, temperatures fastest.

    Args:
        problem: network and training examples.
        widths: hidden widths of the grid.
        temperatures: temperatures of the grid.
        points: what `measured` gives at each of them.
        Y: labels of the validation set.

    Raises:
        ValueError: none of them has an evidence.
    """
    shape = len(widths), len(temperatures)
    column = lambda values: np.array(values).reshape(*shape, *np.shape(values[0]))
    log_evidence = column([point.log_evidence for point in points])
    if not np.isfinite(log_evidence).any():
        raise ValueError(_nowhere(problem))
    return ModelSelection(
        problem=problem,
        widths=np.asarray(widths, float),
        temperatures=np.asarray(temperatures, float),
        log_evidence=log_evidence,
        log_evidence_stderr=column([point.log_evidence_stderr for point in points]),
        squared_errors=column([point.squared_errors(Y) for point in points]),
        accuracy=column([_share_right(point.mean, Y) for point in points]),
        result=column([point.result for point in points]),
    )


def check_positive(temperatures: Sequence[float]) -> None:
    """Refuse temperatures at which labels have no density."""
    if not np.all(np.asarray(temperatures, float) > 0):
        raise ValueError(
            f"temperatures: labels have an evidence at T > 0; got {temperatures}."
        )


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
    drawn = solution.problem.posterior(sample_key, draws=draws)
    f, bridged = drawn.predict(xi), evidence(bridge_key, drawn)
    predictor = np.asarray(f.mean), np.asarray(f.mean_stderr)
    return Point(bridged.value, bridged.stderr, *predictor, int(solution.result))


def _share_right(mean: Float[np.ndarray, "Q *K"], Y) -> float:
    return accuracy(mean, Y) if np.isfinite(mean).all() else np.nan
