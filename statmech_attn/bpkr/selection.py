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
from statmech_attn.bpkr.curves import fitting_labels, standard_error
from statmech_attn.bpkr.evidence import evidence
from statmech_attn.bpkr.predictor import accuracy
from statmech_attn.bpkr.problem import heuristic_row, Problem
from statmech_attn.bpkr.pruning import rank_correlation
from statmech_attn.bpkr.solution import RESULTS, Solution
from statmech_attn.labels import Variables
from statmech_attn.presentation import Shown


CHOICES = ("evidence", "validation")
_OVER = "width temperature"
_ROWS = (
    Shown("width", "hidden width", "width", symbol="N", value="widths"),
    Shown(
        "temperature",
        "temperature of the posterior",
        "temperature",
        symbol="T",
        value="temperatures",
    ),
    Shown("choice", "by what a point is chosen", "choice", value=lambda _: CHOICES),
    Shown(
        "log_evidence",
        "log of the probability of the labels",
        _OVER,
        "nat",
        "ln p(Y)",
        error="log_evidence_stderr",
    ),
    Shown(
        "error",
        "mean squared error on the validation set",
        _OVER,
        symbol="ε",
        error="error_stderr",
    ),
    Shown(
        "accuracy",
        "share of validation examples with the right class",
        _OVER,
        symbol="accuracy",
    ),
    Shown("result", "how the saddle point was reached", _OVER, flags=RESULTS),
    Shown("chosen_width", "chosen width", "choice", symbol="N"),
    Shown("chosen_temperature", "chosen temperature", "choice", symbol="T"),
    Shown(
        "excess",
        "validation error by the evidence less the smallest",
        symbol="Δε",
        error="excess_stderr",
    ),
    Shown(
        "rank_correlation",
        "rank correlation of ln p(Y) and less validation error",
        symbol="ρ_S",
    ),
    heuristic_row("problem"),
)
VARIABLES = Variables(
    *(
        row.variable("")._replace(parts="_stderr" if row.error else "", group="")
        for row in _ROWS
    )
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


class _Point(NamedTuple):
    """What one width and temperature gives."""

    log_evidence: float
    log_evidence_stderr: float
    squared_errors: Float[np.ndarray, " Q"]
    accuracy: float
    result: int


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
    if not np.all(np.asarray(temperatures, float) > 0):
        raise ValueError(
            f"temperatures: labels have an evidence at T > 0; got {temperatures}."
        )
    rows = problem.sweep(widths=widths, temperatures=temperatures)
    solutions = [solution for row in rows for solution in row]
    shape = len(rows), len(rows[0])
    points = [
        _saddle(solution, xi_validation, Y_validation)
        if key is None
        else _exact(
            solution, xi_validation, Y_validation, jax.random.fold_in(key, n), draws
        )
        for n, solution in enumerate(solutions)
    ]
    found = {
        name: np.stack([getattr(point, name) for point in points])
        for name in _Point._fields
    }
    if not np.isfinite(found["log_evidence"]).any():
        raise ValueError(
            "no point has an evidence: Laplace's needs a saddle point and widths of at "
            f"least {problem.sizes[0]}, the number of paths times outputs; give wider "
            "ones, or a key for the exact law."
        )
    return ModelSelection(
        problem=problem,
        widths=np.array([float(row[0].problem.widths.max()) for row in rows]),
        temperatures=np.asarray(temperatures, float),
        **{name: x.reshape(*shape, *x.shape[1:]) for name, x in found.items()},
    )


def _saddle(solution: Solution, xi, Y) -> _Point:
    """Laplace's evidence, and the predictor at the saddle point."""
    if not solution.converged:
        unknown = np.full(len(Y), np.nan)
        return _Point(np.nan, np.nan, unknown, np.nan, int(solution.result))
    log_evidence = np.nan
    if not solution.outside_support:
        log_evidence = float(solution.problem.corrections(solution).log_evidence)
    mean = solution.problem.theory(solution).mean(xi)
    return _point(solution, log_evidence, np.nan, mean, 0.0, Y)


def _exact(solution: Solution, xi, Y, key: Key[Array, ""], draws: int) -> _Point:
    """Evidence and predictor of the exact law."""
    sample_key, bridge_key = jax.random.split(key)
    drawn = solution.problem.posterior(sample_key, draws=draws)
    f, found = drawn.predict(xi), evidence(bridge_key, drawn)
    return _point(solution, found.value, found.stderr, f.mean, f.mean_stderr, Y)


def _point(solution: Solution, log_evidence, stderr, mean, mean_stderr, Y) -> _Point:
    """With squared errors less those that sampling adds."""
    squares = (np.asarray(mean) - Y) ** 2 - np.square(mean_stderr)
    squares = squares.reshape(len(Y), -1).mean(axis=1)
    right = accuracy(np.asarray(mean), Y)
    return _Point(log_evidence, stderr, squares, right, int(solution.result))
