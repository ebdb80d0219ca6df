r"""Learning curves: a network on ever more examples (docs/theory/bpkr_weights.md, 10).

P                 (sizes,)                   numbers of examples     `examples`
Y - <f>           mean square on a test set  of every estimate       `error`
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from statmech_attn.bpkr.grids.points import Grid, LearningPoints
from statmech_attn.bpkr.grids.training_sets import (
    checked_sizes,
    drawn_examples,
    fitting_labels,
    over_sets,
    truncated,
)
from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.newton import RESULT_WORDS
from statmech_attn.bpkr.posed.quantities import (
    ACCURACY,
    COORDINATES,
    HEURISTIC,
    LOG_EVIDENCE,
    order_parameters,
    Y_TEST,
)
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import accuracy
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import Count, WholeNumber
from statmech_attn.scan import Arrays, Contents, lacking, Tick


LOG_2PI = math.log(2 * math.pi)
UNKNOWN = math.nan
_OVER, _OF_SET = "width examples estimate", "width training_set examples"
_MEASURED = (
    Variable(
        "error",
        _OVER,
        "mean squared error of the mean predictor on the test set",
        symbol="ε",
    ),
    Variable(
        "variance",
        _OVER,
        "posterior variance of f, mean over the test set",
        symbol="⟨δf²⟩",
    ),
    ACCURACY.over(_OVER),
)
_NOTE = "mean over training sets"
VARIABLES = Variables(
    *(row._replace(parts="_stderr", group="", note=_NOTE) for row in _MEASURED),
    *(
        row._replace(
            name=f"{row.name}_of_set",
            dims=f"{_OF_SET} estimate",
            long_name=f"{row.long_name}, of one training set",
        )
        for row in _MEASURED
    ),
    order_parameters(_OF_SET, note="at the saddle point"),
    Variable("action", _OF_SET, "action at the saddle point", symbol="S"),
    LOG_EVIDENCE.over(_OF_SET, note="Laplace; with run.corrections"),
    Variable(
        "result",
        _OF_SET,
        "how the search for the saddle point ended",
        group="",
        flags=RESULT_WORDS,
        note="-1: not computed",
    ),
    Variable(
        "shared",
        "",
        "True: training sets have examples in common, so errors are over draws from "
        "the given examples, and NaN for sets of all of them",
    ),
    Variable(
        "rank",
        "",
        "|Π| N_0: of more examples the kernel has no inverse",
        symbol="|Π| N_0",
    ),
    HEURISTIC,
    Variable("examples", "examples", "training examples", symbol="P"),
    Variable("estimate", "estimate", "what f is estimated by"),
    Y_TEST,
    COORDINATES,
)


class Measured(NamedTuple):
    """How an estimate does on a test set: means over its examples and outputs.

    Attributes:
        error: squared error of the mean predictor.
        variance: posterior variance of f.
        accuracy: share of the examples with the right class.
    """

    error: float = UNKNOWN
    variance: float = UNKNOWN
    accuracy: float = UNKNOWN


class Estimated(NamedTuple):
    """What the theory says of one training set.

    `action` lacks the term of the examples that are none, which the solution's own
    energy and action have; `measured` is by name: "gp", "saddle" and, where asked for,
    "corrected".  `log_evidence` is Laplace's ln p(Y), NaN without corrections.
    """

    solution: Solution
    action: float
    measured: dict[str, Measured]
    log_evidence: float = UNKNOWN


def learning_curve(
    key: Key[Array, ""],
    problem: Problem,
    xi_test: Float[Array | np.ndarray, "Q N_0 Pi"] | Kernels,
    Y_test: Float[Array | np.ndarray, "Q *K"],
    *,
    examples: Sequence[int],
    training_sets: Count = 10,
    corrections: bool = False,
    draws: WholeNumber = 0,
) -> xr.Dataset:
    """Errors on a test set for several numbers of training examples.

    Training sets are drawn from the examples of the problem: disjoint ones where it has
    enough, else each at random.  A smaller set is the beginning of a larger one.

    Args:
        key: random key of JAX.
        problem: network, temperature and all examples; with many of them give it
            `form="factors"`, as kernels are built of training sets alone.
        xi_test: attentioned inputs of the test set.
        Y_test: its labels.
        examples: numbers of training examples.
        training_sets: how many are drawn.
        corrections: whether predictors to order 1/N and ln p(Y) are computed.
        draws: of the exact law, for each of four chains; none where it is 0.

    Returns:
        Data set of the kind learning-curve (docs/hdf5.md) at one width and temperature:
        errors of all estimates, mean and standard error over training sets, and the
        saddle points.  `LearningCurves` computes several, and in chunks beside a file.

    Raises:
        ValueError: more examples than there are, temperature zero, or test labels that
            do not fit.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (40, 3, 1))
        >>> problem = Problem(xi, xi[:, 0, 0], heads=(1,), width=10, temperature=0.1)
        >>> curve = learning_curve(
        ...     jax.random.key(1), problem, xi, xi[:, 0, 0], examples=[2, 8],
        ...     training_sets=3)
        >>> saddle = curve.error.sel(estimate="saddle")
        >>> saddle.dims, bool(saddle.sel(examples=8) < saddle.sel(examples=2))
        (('examples',), True)
    """
    points = LearningCurves(
        key,
        problem,
        xi_test,
        Y_test,
        examples=examples,
        training_sets=training_sets,
        corrections=corrections,
        samplers={"exact": partial(_by_exact_law, draws=draws)} if draws else {},
    )
    return points.compute().isel(width=0)


@runtime_checkable
class Sampler(Protocol):
    """What estimates f beside the theory, as an argument of `LearningCurves`."""

    def __call__(
        self, key, problem: Problem, xi_test, Y_test, folder: Path | None
    ) -> Measured:
        """How an estimate does on a test set.

        Args:
            key: random key of JAX.
            problem: a training set, of `truncated`.
            xi_test, Y_test: the test set.
            folder: where it may keep what a killed run goes on from.
        """
        ...


class LearningCurves(LearningPoints):
    """Learning curves over widths and temperatures, in memory or in chunks.

    A point is one width, temperature, training set and number of examples, and needs
    nothing of the others.  `compute()` gives the data set of a file of the kind
    learning-curve, and `run(path)` that file.

    Args:
        key, problem, xi_test, Y_test, examples, training_sets, corrections: as in
            `learning_curve`.
        grid: widths and temperatures; those of the problem when omitted.
        samplers: further estimates of f by name, each a `Sampler`.
        keeps_blocks: whether a sampler keeps what a killed run goes on from.
        about: attributes of the file.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (40, 3, 1))
        >>> problem = Problem(xi, xi[:, 0, 0], heads=(1,), width=10, temperature=0.1)
        >>> points = LearningCurves(
        ...     jax.random.key(1), problem, xi, xi[:, 0, 0], examples=[2, 8],
        ...     grid=Grid([10, 20], [0.1]), training_sets=2)
        >>> points.compute().error.sizes
        Frozen({'width': 2, 'temperature': 1, 'examples': 2, 'estimate': 2})
    """

    title = "learning curves"
    variables = VARIABLES
    empty: Mapping[str, int] = {"result": -1}

    def __init__(
        self,
        key: Key[Array, ""],
        problem: Problem,
        xi_test: Float[Array | np.ndarray, "Q N_0 Pi"] | Kernels,
        Y_test: Float[Array | np.ndarray, "Q *K"],
        *,
        examples: Sequence[int],
        grid: Grid | None = None,
        training_sets: int = 10,
        corrections: bool = False,
        samplers: Mapping[str, Sampler] = {},
        keeps_blocks: bool = False,
        about: Mapping[str, Any] = {},
    ):
        available = len(problem.Y)
        self.examples = checked_sizes(examples, available)
        self.batch, self.keeps_blocks = len(self.examples), keeps_blocks
        sets = range(training_sets)
        about = {"kind": "learning-curve", **about}
        super().__init__(
            problem, grid, about=about, training_set=sets, examples=self.examples
        )
        if not isinstance(xi_test, Kernels):
            xi_test = jnp.asarray(xi_test, float)
        self.xi_test = xi_test
        self.Y_test = jnp.asarray(fitting_labels(problem, xi_test, Y_test))
        self.key, self.corrections, self.samplers = key, corrections, samplers
        draw_key, self.chain_key = jax.random.split(key)
        largest = int(self.examples[-1])
        self.chosen, self.shared = drawn_examples(
            draw_key, available, largest, training_sets
        )
        self.estimates = ["gp", "saddle", *["corrected"] * corrections, *samplers]
        self._last: tuple[int, Problem] | None = None

    def check(self, problem: Problem) -> None:
        check_positive(problem)

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        place = self.index(number)
        training_set, size = (
            place["training_set"],
            int(self.examples[place["examples"]]),
        )
        problem = self._whole(training_set).at(**self.of_grid(number))
        problem, xi_test = truncated(problem, size), self.xi_test
        if isinstance(xi_test, Kernels):
            xi_test = xi_test.subset(self.chosen[training_set])
        theory = estimated(
            problem, size, xi_test, self.Y_test, corrections=self.corrections
        )
        measured = dict(theory.measured)
        key = jax.random.fold_in(jax.random.fold_in(self.chain_key, training_set), size)
        for name, sampler in self.samplers.items():
            beside = folder and folder / name
            measured[name] = sampler(key, problem, xi_test, self.Y_test, beside)
        solution = theory.solution
        return {
            **{
                f"{name}_of_set": [getattr(measured[e], name) for e in self.estimates]
                for name in Measured._fields
            },
            **{f"U_{l}": np.asarray(U) for l, U in enumerate(solution.U, 1)},
            "U_a": np.asarray(solution.U_a),
            "action": theory.action,
            "result": np.asarray(solution.result, np.int8),
            **({"log_evidence": theory.log_evidence} if self.corrections else {}),
        }

    def _whole(self, training_set: int) -> Problem:
        """All examples of a training set; that of the last point is kept."""
        if self._last is None or self._last[0] != training_set:
            chosen = self.problem.subset(self.chosen[training_set])
            self._last = training_set, chosen
        return self._last[1]

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without numbers; no correction exists at a small width."""
        every = [name != "corrected" for name in self.estimates]
        errors = {"error": arrays["error_of_set"][:, every], "U_1": arrays["U_1"]}
        return lacking(errors, "U_1", "error") & (arrays["result"] == 0)

    def derived(self, columns: Contents) -> Contents:
        """Means over training sets, with their errors."""
        for name in Measured._fields:
            dims, values = columns[f"{name}_of_set"]
            axis = dims.index("training_set")
            over = tuple(d for d in dims if d != "training_set")
            last, place = np.moveaxis(values, axis, -1), over.index("examples")
            error = over_sets(
                np.moveaxis(last, place, 0), self.examples, len(self.problem.Y)
            )
            columns[name] = over, last.mean(-1)
            columns[f"{name}_stderr"] = over, np.moveaxis(error, 0, place)
        columns["y_test"] = ("test",), np.asarray(self.Y_test)
        columns["shared"] = (), self.shared
        if rank := math.prod(self.problem.shape[1:3]):
            columns["rank"] = (), rank
        if self.problem.heuristic:
            columns["heuristic"] = (), True
        return columns

    def coordinates(self) -> dict[str, Any]:
        return super().coordinates() | {"estimate": self.estimates}


def _by_exact_law(
    key, problem: Problem, xi_test, Y_test, folder: Path | None, *, draws: int
) -> Measured:
    """The mean of f under the exact law, of as many draws for each of four chains."""
    if isinstance(xi_test, Kernels):
        xi_test = xi_test.subset(np.arange(len(problem.Y)))
    f = problem.posterior(key, draws=draws).predict(xi_test)
    return measured(f.mean, f.variance, Y_test, f.mean_stderr)


def check_positive(problem: Problem) -> None:
    """Raise `ValueError` at temperature zero."""
    if not problem.temperature > 0:
        raise ValueError(
            "temperature must be > 0 for a learning curve: from P = |Pi| N_0 examples "
            f"on the kernel has no inverse; got {float(problem.temperature):g}."
        )


def estimated(
    problem: Problem, size: int, xi_test, Y_test, *, corrections: bool = False
) -> Estimated:
    """What the theory says of a problem of `truncated` on a test set."""
    pads = (len(problem.Y) - size) * problem.outputs
    if isinstance(xi_test, Kernels):
        xi_test = xi_test.subset(np.arange(len(problem.Y)))
    log_T = float(jnp.log(problem.temperature))
    limit = problem.gaussian_process().predict(xi_test)
    by_estimate = {"gp": measured(limit.mean, limit.variance, Y_test)}
    names = ("saddle", *["corrected"] * corrections)
    by_estimate |= dict.fromkeys(names, Measured())
    solution, log_evidence = problem.solve(), UNKNOWN
    action = float(solution.action) - pads * log_T / float(problem.widths.max())
    if solution.converged:
        f = solution.predict(xi_test)
        by_estimate["saddle"] = measured(f.mean, f.variance, Y_test)
        if corrections and not solution.outside_support:
            better = problem.corrections(solution)
            f = better.predict(xi_test)
            by_estimate["corrected"] = measured(f.mean, f.variance, Y_test)
            log_evidence = float(better.log_evidence) + pads * (LOG_2PI + log_T) / 2
    return Estimated(solution, action, by_estimate, log_evidence)


def measured(mean, variance, Y_test, stderr: float | np.ndarray = 0.0) -> Measured:
    """Errors and accuracy of a predictor on a test set.

    `mean` and `variance` are those of f for every test example; `stderr` is the Monte
    Carlo error of the mean, whose square adds to the squared error and is taken off.
    """
    mean, Y_test = np.asarray(mean), np.asarray(Y_test)
    error = np.mean((mean - Y_test) ** 2 - np.square(stderr))
    return Measured(float(error), float(np.mean(variance)), accuracy(mean, Y_test))
