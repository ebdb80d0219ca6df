r"""Learning curves: one network on more and more examples (docs/theory/bpkr.md, 10).

All numbers of examples have one shape, and so one compiled program.  An example beyond
the first P has infinite noise: it tells nothing of f.  Input and label zero at the
temperature T say the same, for then its row of K vanishes and

    $E = E_P + (n - n_P) \ln T$,
    $\ln p(Y) = \ln p(Y_P) - \tfrac12 (n - n_P) \ln 2\pi T$

while saddle point, exact law and predictor are those of P examples.

    P                 (sizes,)                   numbers of examples     `examples`
    Y - <f>           mean square on a test set  of every estimate       `error`
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from statmech_attn import presentation
from statmech_attn.bpkr.activations import Kernels
from statmech_attn.bpkr.kernels import PathFactors
from statmech_attn.bpkr.predictor import accuracy
from statmech_attn.bpkr.problem import heuristic_row, Problem
from statmech_attn.bpkr.solution import RESULTS, Solution
from statmech_attn.presentation import Shown
from statmech_attn.statistics import standard_error


LOG_2PI = math.log(2 * math.pi)
UNKNOWN = math.nan


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

    Attributes:
        solution: saddle point; its energy and action have the term of the examples
            that are none, `action` here has not.
        action: value of the action at the saddle point.
        measured: by name: "gp", "saddle" and, where asked for, "corrected".
        log_evidence: Laplace's ln p(Y), NaN where no corrections were asked for.
    """

    solution: Solution
    action: float
    measured: dict[str, Measured]
    log_evidence: float = UNKNOWN


class LearningCurve(NamedTuple):
    """Test errors against the number of examples; build with `learning_curve`.

    Attributes:
        problem: network, and the examples that training sets are drawn from.
        examples: numbers P of training examples.
        estimates: "gp", "saddle" and, where asked for, "corrected" and "exact".
        error: squared error of the mean predictor on the test set.
        variance: posterior variance of f, mean over the test set.
        accuracy: share of the test examples with the right class.
        U: order parameters (U_1, ..., U_L) at the saddle points.
        action: value of the action at the saddle points.
        log_evidence: Laplace's ln p(Y), NaN without corrections.
        result: how the saddle points were reached, an index into `RESULTS`.
        shared: whether training sets have examples in common; errors over them are then
            those of draws from the given examples, and NaN for sets of all of them.
    """

    problem: Problem
    examples: Int[np.ndarray, " sizes"]
    estimates: tuple[str, ...]
    error: Float[np.ndarray, "sizes estimates sets"]
    variance: Float[np.ndarray, "sizes estimates sets"]
    accuracy: Float[np.ndarray, "sizes estimates sets"]
    U: tuple[Float[np.ndarray, "sizes sets d d"], ...]
    action: Float[np.ndarray, "sizes sets"]
    log_evidence: Float[np.ndarray, "sizes sets"]
    result: Int[np.ndarray, "sizes sets"]
    shared: bool

    def explain(self) -> str | None:
        """What errors over training sets hold, where sets are not independent."""
        return of_shared_sets(len(self.problem.Y)) if self.shared else None

    @property
    def _shown(self):
        words = {
            "error": ("mean squared test error", "ε"),
            "variance": ("posterior variance of f on the test set", "⟨δf²⟩"),
            "accuracy": ("share of test examples with the right class", "accuracy"),
        }
        over, of_set = "examples estimate", "examples training_set"
        mean = lambda name: lambda curve: getattr(curve, name).mean(axis=-1)
        stderr = lambda name: (
            lambda curve: over_sets(
                getattr(curve, name), curve.examples, len(curve.problem.Y)
            )
        )
        return (
            Shown("examples", "training examples", "examples", symbol="P"),
            Shown("estimate", "estimate", "estimate", value="estimates"),
            *(
                Shown(n, long, over, symbol=symbol, value=mean(n), error=stderr(n))
                for n, (long, symbol) in words.items()
            ),
            *(
                Shown(
                    f"{n}_of_set",
                    f"{long}, of every training set",
                    f"{over} training_set",
                    symbol=symbol,
                    value=n,
                    line=False,
                )
                for n, (long, symbol) in words.items()
            ),
            *(
                Shown(
                    f"U_{l}",
                    f"order parameter U_{l}",
                    f"{of_set} path_{l} path_{l}_pair",
                    value=lambda curve, l=l: curve.U[l - 1],
                    line=False,
                )
                for l in range(1, len(self.U) + 1)
            ),
            Shown("action", "action", of_set, symbol="S", line=False),
            Shown("log_evidence", "ln p(Y)", of_set, symbol="ln p(Y)", line=False),
            Shown("result", "result", of_set, flags=RESULTS),
            Shown("shared", "training sets have examples in common"),
            Shown(
                "rank",
                "|Π| N_0: of more examples the kernel has no inverse",
                symbol="|Π| N_0",
                value=lambda curve: math.prod(curve.problem.shape[1:3]) or None,
            ),
            Shown(
                "temperature", "temperature", symbol="T", value="problem.temperature"
            ),
            Shown("width", "widths", "layer", symbol="N", value="problem.widths"),
            heuristic_row("problem"),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS


def learning_curve(
    key: Key[Array, ""],
    problem: Problem,
    xi_test: Float[Array | np.ndarray, "Q N_0 Pi"] | Kernels,
    Y_test: Float[Array | np.ndarray, "Q *K"],
    *,
    examples: Sequence[int],
    training_sets: int = 10,
    corrections: bool = False,
    draws: int = 0,
) -> LearningCurve:
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
        Errors of all estimates, mean and standard error over training sets.

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
        >>> curve.error.shape, bool(curve.error[1].mean() < curve.error[0].mean())
        ((2, 2, 3), True)
    """
    sizes = checked_sizes(examples, len(problem.Y))
    check_positive(problem)
    if not isinstance(xi_test, Kernels):
        xi_test = jnp.asarray(xi_test, float)
    Y_test = jnp.asarray(fitting_labels(problem, xi_test, Y_test))
    draw_key, chain_key = jax.random.split(key)
    chosen, shared = drawn(draw_key, len(problem.Y), int(sizes[-1]), training_sets)
    names = ("gp", "saddle", *["corrected"] * corrections, *["exact"] * bool(draws))
    columns = []
    for number, indices in enumerate(chosen):
        whole, of_sizes = problem.among(indices), []
        test = xi_test.among(indices) if isinstance(xi_test, Kernels) else xi_test
        for size in sizes:
            part = truncated(whole, int(size))
            found = estimated(part, int(size), test, Y_test, corrections=corrections)
            if draws:
                seed = jax.random.fold_in(jax.random.fold_in(chain_key, number), size)
                beside = np.arange(len(part.Y))
                f = part.posterior(seed, draws=draws).predict(
                    test.among(beside) if isinstance(test, Kernels) else test
                )
                found.measured["exact"] = measured(
                    f.mean, f.variance, Y_test, f.mean_stderr
                )
            of_sizes.append(found)
        columns.append(of_sizes)
    gathered = lambda of: np.stack(
        [np.stack([np.asarray(of(x)) for x in column], 0) for column in columns], 1
    )
    of_estimates = lambda name: np.moveaxis(
        gathered(lambda x: [getattr(x.measured[n], name) for n in names]), 1, 2
    )
    U = [gathered(lambda x, l=l: x.solution.U[l]) for l in range(len(problem.heads))]
    return LearningCurve(
        problem=problem,
        examples=sizes,
        estimates=names,
        U=tuple(U),
        action=gathered(lambda x: x.action),
        log_evidence=gathered(lambda x: x.log_evidence),
        result=gathered(lambda x: x.solution.result),
        shared=shared,
        **{name: of_estimates(name) for name in Measured._fields},
    )


def checked_sizes(examples: Sequence[int], available: int) -> Int[np.ndarray, " sizes"]:
    """Numbers of examples, in rising order.

    Raises:
        ValueError: none, one below 1 or above what there is, or one that comes twice.

    Example:
        >>> checked_sizes([20, 5], 40).tolist()
        [5, 20]
    """
    sizes = np.sort(np.ravel(examples))
    whole = np.ndim(examples) == 1 and sizes.size and sizes.dtype.kind in "iu"
    if not whole or sizes[0] < 1 or (np.diff(sizes) == 0).any():
        raise ValueError(
            "examples must be distinct whole numbers of training examples, at least 1; "
            f"got {np.ravel(examples).tolist()}."
        )
    if sizes[-1] > available:
        raise ValueError(
            f"examples: there are {available} examples to draw from; got {sizes[-1]}."
        )
    return sizes


def fitting_labels(problem: Problem, xi_test, Y_test) -> Float[np.ndarray, "Q *K"]:
    """Labels of a test set, once it is known that they fit its inputs.

    Raises:
        ValueError: another number of examples or outputs.
    """
    Y_test = np.asarray(Y_test, float)
    expected = tuple(xi_test.shape[:1]) + problem.Y.shape[1:]
    if Y_test.shape != expected:
        raise ValueError(
            f"Y_test must have shape {expected}, one row per example of xi_test; got "
            f"{Y_test.shape}."
        )
    return Y_test


def check_positive(problem: Problem) -> None:
    """Raise `ValueError` at temperature zero."""
    if not problem.temperature > 0:
        raise ValueError(
            "temperature must be > 0 for a learning curve: from P = |Pi| N_0 examples "
            f"on the kernel has no inverse; got {float(problem.temperature):g}."
        )


def drawn(
    key: Key[Array, ""], available: int, size: int, sets: int
) -> tuple[Int[np.ndarray, "sets size"], bool]:
    """Examples of every training set, and whether sets have examples in common.

    Example:
        >>> import jax
        >>> indices, shared = drawn(jax.random.key(0), 6, 3, 2)
        >>> sorted(indices.ravel().tolist()), shared
        ([0, 1, 2, 3, 4, 5], False)
    """
    if sets < 1:
        raise ValueError(f"training_sets must be at least 1; got {sets}.")
    if sets * size <= available:
        order = jax.random.permutation(key, available)[: sets * size]
        return np.asarray(order).reshape(sets, size), False
    keys = jax.random.split(key, sets)
    orders = [jax.random.permutation(k, available)[:size] for k in keys]
    return np.stack(orders), True


def truncated(problem: Problem, size: int) -> Problem:
    """The same network on the first examples; the others tell nothing of f.

    Where there are more examples than the kernel has rank, as many stay as that has.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jnp.ones((2, 1, 1))
        >>> problem = Problem(xi, jnp.ones(2), heads=(1,), width=10, temperature=0.1)
        >>> alone = Problem(xi[:1], jnp.ones(1), heads=(1,), width=10, temperature=0.1)
        >>> U = truncated(problem, 1).solve().U_a / alone.solve().U_a
        >>> round(float(U), 12)
        1.0
    """
    alone = lambda size: problem.among(np.arange(size), form=problem.form)
    rank = len(problem.rows.Y)
    if size <= rank < len(problem.Y) and not isinstance(problem.xi, Kernels):
        problem = alone(rank)
    if problem.compressed is not None:  # its rows are no examples
        return alone(size)
    known = (jnp.arange(len(problem.Y)) < size).astype(float)

    rows = lambda x: x * known.reshape(-1, *[1] * (x.ndim - 1))
    operator = problem.operator.masked(known)
    if isinstance(operator, PathFactors):
        xi = operator.xi
    elif isinstance(problem.xi, Kernels):
        xi = problem.xi.masked(known)
    else:
        xi = rows(problem.xi)
    parts = lambda p: (p.xi, p.Y, p.operator)
    return eqx.tree_at(parts, problem, (xi, rows(problem.Y), operator))


def estimated(
    problem: Problem, size: int, xi_test, Y_test, *, corrections: bool = False
) -> Estimated:
    """What the theory says of a problem of `truncated` on a test set."""
    pads = (len(problem.Y) - size) * problem.outputs
    if isinstance(xi_test, Kernels):
        xi_test = xi_test.among(np.arange(len(problem.Y)))
    log_T = float(jnp.log(problem.temperature))
    limit = problem.gaussian_process().predict(xi_test)
    found = {"gp": measured(limit.mean, limit.variance, Y_test)}
    names = ("saddle", *["corrected"] * corrections)
    found |= dict.fromkeys(names, Measured())
    solution, log_evidence = problem.solve(), UNKNOWN
    action = float(solution.action) - pads * log_T / float(problem.widths.max())
    if solution.converged:
        f = solution.predict(xi_test)
        found["saddle"] = measured(f.mean, f.variance, Y_test)
        if corrections and not solution.outside_support:
            better = problem.corrections(solution)
            f = better.predict(xi_test)
            found["corrected"] = measured(f.mean, f.variance, Y_test)
            log_evidence = float(better.log_evidence) + pads * (LOG_2PI + log_T) / 2
    return Estimated(solution, action, found, log_evidence)


def measured(mean, variance, Y_test, stderr: float | np.ndarray = 0.0) -> Measured:
    """Of a predictor on a test set.

    Args:
        mean: predicted mean of every test example.
        variance: predicted variance of every test example.
        Y_test: labels.
        stderr: Monte Carlo error of the mean, whose square adds to the squared error
            and is taken off.

    Example:
        >>> import numpy as np
        >>> measured(np.array([0.5]), np.array([0.1]), np.array([1.0]), 0.3)
        Measured(error=0.16, variance=0.1, accuracy=1.0)
    """
    mean, Y_test = np.asarray(mean), np.asarray(Y_test)
    error = np.mean((mean - Y_test) ** 2 - np.square(stderr))
    return Measured(float(error), float(np.mean(variance)), accuracy(mean, Y_test))


def over_sets(
    values: Float[np.ndarray, "sizes *estimates sets"], examples, available: int
) -> Float[np.ndarray, "sizes *estimates"]:
    """Standard error of the mean over training sets; NaN where all are the same set.

    Sets that are drawn from the same examples tell how far another draw from these
    examples moves the mean, and sets of all examples do not differ.

    Args:
        values: of every training set.
        examples: in a training set, for every row of the values.
        available: examples that sets are drawn from.

    Example:
        >>> import numpy as np
        >>> over_sets(np.array([[0.0, 2.0], [1.0, 1.0]]), [5, 10], 10).tolist()
        [1.0, nan]
    """
    error = standard_error(values)
    whole = np.asarray(examples) == available
    return np.where(whole.reshape(-1, *[1] * (error.ndim - 1)), np.nan, error)


def of_shared_sets(available: int) -> str:
    """What errors over training sets hold that have examples in common."""
    return (
        f"training sets are drawn from the same {available} examples: errors are over "
        "such draws, not over other examples, and there is none for sets of all of them"
    )
