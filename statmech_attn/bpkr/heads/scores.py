r"""Scores of heads with errors over the examples (docs/theory/bpkr.md, section 4).

    score_h           (n,)        weight of head h in U_1, over the largest  `score`
    floor_h           (n,)        that of a head which f does not read       `floor`
    U_hh'             (n, n)      sum of |U_1| over paths pi through h and pi' through
                                  h', over the largest                       `by_head`
    share_h           (n,)        that weight over the sum of all weights
    resampled         (B, n)      shares in B sets of P - d examples, over the
                                  largest in all, spread as those of P are   `resampled`

n counts the heads of all layers, with the skip connection of a layer before its heads.
Errors are those of the jackknife that leaves out d = P / 5 examples (Shao and Wu,
Annals of Statistics 17, 1176, 1989): P examples deviate by 1 / sqrt(P), P - d of them
from the mean of all such sets by sqrt(1 / (P - d) - 1 / P), so that deviations are
multiplied by the ratio sqrt((P - d) / d).  They are those of shares, as a factor of all
weights tells no head from another; and no example comes twice, which the theory would
take for two that agree.
"""

import warnings
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from statmech_attn import presentation
from statmech_attn.bpkr.attention.attention import path_names
from statmech_attn.bpkr.attention.networks import order_parameters, skips_of, Weights
from statmech_attn.bpkr.heads.left_out_examples import error_left_out, resampled_shares
from statmech_attn.bpkr.posed.newton import NewtonSolver
from statmech_attn.bpkr.posed.quantities import (
    HEAD,
    HEAD_SCORE,
    HEAD_SCORE_FLOOR,
    TEMPERATURE_OF_ONE,
    WIDTHS_OF_ONE,
)
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import (
    head_scores,
    head_weights,
    path_weights,
    paths_through,
)
from statmech_attn.bpkr.theory.saddle import unsolved, without_hessian
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import WholeNumber
from statmech_attn.statistics import not_below_rounding


FEWEST = 2  # sets that a standard error needs
COARSE = 1e-2  # gradient of saddle points that take minutes
_ROWS = (
    HEAD_SCORE._replace(value="score", error="stderr"),
    HEAD_SCORE_FLOOR._replace(value="floor"),
    Variable(
        "head_score_trained",
        "attention_head",
        "the same of U_1 of the trained value weights",
        symbol="score",
        value="score_trained",
    ),
    Variable(
        "head_score_resampled",
        "resample attention_head",
        "score as other examples might give it; its spread is the error",
        symbol="score",
        value="resampled",
        line=False,
    ),
    Variable(
        "U_by_head",
        "attention_head attention_head_pair",
        "sum of |U_1| over paths through both heads, over the largest",
        symbol="U_hh'",
        value="by_head",
        line=False,
    ),
    Variable(
        "U_1",
        "path_1 path_1_pair",
        "order parameter, overlap of effective weights",
        symbol="U_1",
        value=lambda scores: scores.solution.U[0],
    ),
    Variable(
        "U_1_trained",
        "trained_path_1 trained_path_1_pair",
        "U_1 of the trained value weights",
        symbol="U_1",
        value="U_trained",
        line=False,
    ),
    TEMPERATURE_OF_ONE._replace(value="solution.problem.temperature"),
    WIDTHS_OF_ONE._replace(value="solution.problem.widths"),
    Variable("failed", "", "sets of examples without a saddle point", symbol="n"),
    Variable(
        "error_left_out",
        "",
        "mean squared error of each example, predicted from all others",
        symbol="ε",
        error="error_left_out_stderr",
    ),
    Variable("label_variance", "", "variance of the labels", symbol="Var Y"),
)
_ALWAYS = ("head_score", "U_by_head", "U_1", "temperature", "width")
VARIABLES = Variables(
    *(row._replace(group="" if row.name in _ALWAYS else None) for row in _ROWS),
    HEAD._replace(group=""),
    Variable("attention_head_pair", "attention_head_pair", "layer.head", "1", "(l, h)"),
    Variable("path_1", "path_1", "attention path from layer 1 on", "1", "π"),
    Variable("path_1_pair", "path_1_pair", "attention path from layer 1 on", "1", "π"),
)


class HeadScores(eqx.Module):
    """Scores of all heads, layer by layer, and what they rest on.

    Attributes:
        solution: saddle point of all examples.
        names: of the heads, as layer.head unless they were given.
        score: weight of every head in U_1, over the largest.
        stderr: its standard error over examples, 1.3 to 1.4 times too large by test;
            NaN without resamples, and of a single example.
        floor: what it would be of a head that f does not read (`head_floors`): a score
            is far above its floor, at it or below it, and not above zero.
        by_head: sum of |U_1| over the paths through both heads, over the largest.
        resampled: as other examples might give the scores, from every set of four
            fifths that has a saddle point; the error of what depends on several heads
            is its standard deviation over these.
        failed: sets that have none.
        U_trained: U_1 of the trained value weights, None where there are none.
        score_trained: weight of every head in that, over the largest.  It has no floor:
            a head that training does not move keeps its initial weight, of which the
            trained values tell nothing.
        error_left_out: mean squared error of each example, predicted from all others
            at the order parameters of all, mean over outputs; None at T = 0.
        error_left_out_stderr: its standard error over examples.
    """

    solution: Solution
    names: tuple[str, ...] = eqx.field(static=True)
    score: Float[np.ndarray, " n"]
    stderr: Float[np.ndarray, " n"]
    floor: Float[np.ndarray, " n"]
    by_head: Float[np.ndarray, "n n"]
    resampled: Float[np.ndarray, "B n"]
    failed: int = eqx.field(static=True)
    U_trained: Float[np.ndarray, "_d _d"] | None
    score_trained: Float[np.ndarray, " n"] | None
    error_left_out: float | None
    error_left_out_stderr: float | None

    @property
    def is_head(self) -> Bool[np.ndarray, " n"]:
        """Which of the names are heads, and no skip connections."""
        problem = self.solution.problem
        skips = [
            np.arange(of_layer) < of_layer - count
            for of_layer, count in zip(problem.branches, problem.heads)
        ]
        return ~np.concatenate(skips)

    @property
    def label_variance(self) -> float:
        """Mean squared error of the mean of the labels, over examples and outputs."""
        return float(np.var(self.solution.problem.Y, axis=0).mean())

    _shown = _ROWS
    __repr__, _repr_html_, _to_dataset = presentation.METHODS

    def to_dataset(self):
        """All numbers with names, errors and units, and the names of heads and paths.

        `statmech_attn.storage.write` writes it, and `plotting.head_scores` draws it.
        """
        problem = self.solution.problem
        names = list(self.names)
        coordinates: dict[str, Sequence] = {
            "attention_head": names,
            "attention_head_pair": names,
        }
        if problem.outputs == 1:
            paths = path_names(problem.heads, problem.skip)
            coordinates |= {"path_1": paths, "path_1_pair": paths}
        labelled = {
            name: (name, np.asarray(values), VARIABLES.attributes(name))
            for name, values in coordinates.items()
        }
        return self._to_dataset().assign_coords(labelled)


def score(
    problem: Problem,
    key: Key[Array, ""],
    *,
    resamples: WholeNumber = 20,
    names: Sequence[str] = (),
    weights: Weights | None = None,
) -> HeadScores:
    """Scores of the heads of a problem, with their errors over examples.

    The theory takes the attention as fixed, the values as linear, and knows no other
    blocks, so of a network that has them a score is a hypothesis.

    Args:
        problem: with the attentioned inputs of a trained network, for example.
        key: random key of JAX.
        resamples: sets of four fifths of the examples; 0 gives no errors.
        names: of the heads, layer by layer, each skip connection before the heads of
            its layer; layer.head when omitted.
        weights: trained value weights, of which U_1 is shown beside that of theory.

    Returns:
        `HeadScores`: scores with errors, order parameters by head, and the solution.

    Raises:
        ValueError: no saddle point is found, kernels are too large for memory, or
            names, resamples or weights do not fit.

    Warns:
        UserWarning: all labels are the same.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jnp.array([[[1.0, 0.1]], [[-1.0, 0.1]], [[1.0, -0.1]]])
        >>> problem = Problem(
        ...     xi, jnp.array([1.0, -1.0, 1.0]), heads=(2,), width=5, temperature=0.1)
        >>> scores = score(problem, jax.random.key(0), resamples=4)
        >>> scores.names, scores.score.shape, scores.resampled.shape
        (('1.1', '1.2'), (2,), (4, 2))
    """
    names = tuple(names) or default_names(problem)
    if resamples < 0:
        raise ValueError(f"resamples must be >= 0; got {resamples}.")
    if len(names) != sum(problem.branches):
        raise ValueError(
            f"names: need one for each of {sum(problem.branches)} heads and skip "
            f"connections; got {len(names)}."
        )
    if not np.ptp(problem.Y, axis=0).any():
        warnings.warn(
            "all labels are the same, so there is nothing to be told from the inputs, "
            "and no head that tells it.",
            stacklevel=2,
        )
    U_trained = None if weights is None else _trained(problem, weights)
    solver = _solver(problem)
    solution = problem.solve(solver=solver)
    if not solution.converged:
        raise ValueError(f"there is no saddle point: {unsolved(solution)}.")
    weight = np.concatenate(head_weights(solution))
    resampled = resampled_shares(solution, key, resamples, solver)
    resampled *= weight.sum() / weight.max()
    enough = len(resampled) >= FEWEST and len(problem.Y) > 1
    error, error_stderr = error_left_out(solution)
    return HeadScores(
        solution=solution,
        names=names,
        score=weight / weight.max(),
        stderr=(
            not_below_rounding(resampled.std(axis=0, ddof=1), 1.0)
            if enough
            else np.full(len(names), np.nan)
        ),
        floor=np.concatenate(solution.head_floors()),
        by_head=by_head(solution.U[0], problem.branches),
        resampled=resampled,
        failed=resamples - len(resampled),
        U_trained=U_trained,
        score_trained=(
            None
            if U_trained is None
            else np.concatenate(head_scores(U_trained, problem.branches))
        ),
        error_left_out=error,
        error_left_out_stderr=error_stderr,
    )


def default_names(problem: Problem) -> tuple[str, ...]:
    """Heads as layer.head, counted from one; a skip connection as "skip layer"."""
    names = []
    for layer, (count, b) in enumerate(zip(problem.heads, problem.skip), 1):
        names += [f"skip {layer}"] * (b is not None)
        names += [f"{layer}.{head}" for head in range(1, count + 1)]
    return tuple(names)


def by_head(U, branches: Sequence[int]) -> Float[np.ndarray, "n n"]:
    """Sum of |U_1| over paths through one head and paths through another.

    U is (|Pi| K, |Pi| K); one row and column for each head of `branches`, layer by
    layer, and the largest entry is 1.
    """
    weight = np.asarray(path_weights(U, branches))
    through = np.zeros((sum(branches), len(weight)))
    heads = [(l, h) for l, count in enumerate(branches) for h in range(count)]
    for row, (layer, head) in zip(through, heads, strict=True):
        row[paths_through(branches, layer, head)] = 1.0
    sums = through @ weight @ through.T
    return sums / sums.max()


def _solver(problem: Problem) -> NewtonSolver:
    """Where no Newton step fits in memory, saddle points are sought less closely.

    The entropy alone has a curvature of 2, so that an unknown is off by half of the
    gradient at most where labels add to it.
    """
    return (
        NewtonSolver(tolerance=COARSE) if without_hessian(problem) else NewtonSolver()
    )


def _trained(problem: Problem, weights: Weights) -> Float[np.ndarray, "_d _d"]:
    """U_1 of value weights that have the heads and skip connections of a problem."""
    heads = tuple(len(V) for V in weights.V)
    skip = skips_of(weights)
    skipped = lambda given: tuple(b is not None for b in given)
    if heads != problem.heads or skipped(skip) != skipped(problem.skip):
        raise ValueError(
            f"weights must be of heads = {problem.heads} with the problem's skip "
            f"connections; got {heads}."
        )
    return np.asarray(order_parameters(weights)[0][0])
