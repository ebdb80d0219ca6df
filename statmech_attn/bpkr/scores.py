r"""Scores of heads with errors over the examples (docs/theory/bpkr.md, section 4).

    score_h           (n,)        weight of head h in U_1, over the largest  `score`
    U_hh'             (n, n)      sum of |U_1| over paths pi through h and pi' through
                                  h', over the largest                       `by_head`
    resampled         (B, n)      scores of examples drawn with replacement  `resampled`

n counts the heads of all layers, with the skip connection of a layer before its heads.
The standard error of a score is the standard deviation of its bootstrap resamples, each
of which is a problem of its own, solved from the saddle point of all examples.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn import presentation
from statmech_attn.bpkr.attention import order_parameters, path_names, Weights
from statmech_attn.bpkr.predictor import head_scores, path_weights, paths_through
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.solution import Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.presentation import Shown


FEWEST = 2  # resamples that a standard error needs
_ROWS = (
    Shown(
        "head_score",
        "weight of the head in U_1 over the largest",
        "attention_head",
        symbol="score",
        value="score",
        error="stderr",
    ),
    Shown(
        "head_score_trained",
        "the same of U_1 of the trained value weights",
        "attention_head",
        symbol="score",
        value="score_trained",
    ),
    Shown(
        "head_score_resampled",
        "weight of the head in U_1 of resampled examples",
        "resample attention_head",
        symbol="score",
        value="resampled",
        line=False,
    ),
    Shown(
        "U_by_head",
        "sum of |U_1| over paths through both heads, over the largest",
        "attention_head attention_head_pair",
        symbol="U_hh'",
        value="by_head",
        line=False,
    ),
    Shown(
        "U_1",
        "order parameter, overlap of effective weights",
        "path_1 path_1_pair",
        symbol="U_1",
        value=lambda scores: scores.solution.U[0],
    ),
    Shown(
        "U_1_trained",
        "U_1 of the trained value weights",
        "trained_path_1 trained_path_1_pair",
        symbol="U_1",
        value="U_trained",
        line=False,
    ),
    Shown(
        "temperature",
        "temperature",
        symbol="T",
        value="solution.problem.temperature",
    ),
    Shown("width", "widths", "layer", symbol="N", value="solution.problem.widths"),
    Shown("failed", "resamples without a saddle point", symbol="n"),
)
_ALWAYS = ("head_score", "U_by_head", "U_1", "temperature", "width")
VARIABLES = Variables(
    *(
        row.variable("")._replace(
            group="" if row.name in _ALWAYS else None,
            parts="_stderr" if row.error else "",
        )
        for row in _ROWS
    ),
    Variable("attention_head", "attention_head", "layer.head", "1", "(l, h)", group=""),
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
        stderr: its standard error over examples; NaN without resamples.
        by_head: sum of |U_1| over the paths through both heads, over the largest.
        resampled: scores of every resample that has a saddle point.
        failed: resamples that have none.
        U_trained: U_1 of the trained value weights, None where there are none.
        score_trained: weight of every head in that, over the largest.
    """

    solution: Solution
    names: tuple[str, ...] = eqx.field(static=True)
    score: Float[np.ndarray, " n"]
    stderr: Float[np.ndarray, " n"]
    by_head: Float[np.ndarray, "n n"]
    resampled: Float[np.ndarray, "B n"]
    failed: int = eqx.field(static=True)
    U_trained: Float[np.ndarray, "_d _d"] | None
    score_trained: Float[np.ndarray, " n"] | None

    _shown = _ROWS
    __repr__, _repr_html_, _to_dataset = presentation.METHODS

    def to_dataset(self):
        """All numbers with names, errors and units, and the names of heads and paths.

        `statmech_attn.storage.write` writes it, and `plotting.head_scores` draws it.
        """
        problem = self.solution.problem
        names = list(self.names)
        coordinates = {"attention_head": names, "attention_head_pair": names}
        if problem.outputs == 1:
            paths = path_names(problem.heads, problem.skip)
            coordinates |= {"path_1": paths, "path_1_pair": paths}
        labelled = {
            name: (name, values, VARIABLES.attributes(name))
            for name, values in coordinates.items()
        }
        return self._to_dataset().assign_coords(labelled)


def score(
    problem: Problem,
    key: Key[Array, ""],
    *,
    resamples: int = 20,
    names: Sequence[str] = (),
    weights: Weights | None = None,
) -> HeadScores:
    """Scores of the heads of a problem, with their bootstrap errors over examples.

    The theory takes the attention as fixed, the values as linear, and knows no other
    blocks, so of a network that has them a score is a hypothesis.

    Args:
        problem: with the attentioned inputs of a trained network, for example.
        key: random key of JAX.
        resamples: of the examples, drawn with replacement; 0 gives no errors.
        names: of the heads, layer by layer, each skip connection before the heads of
            its layer; layer.head when omitted.
        weights: trained value weights, of which U_1 is shown beside that of theory.

    Returns:
        `HeadScores`: scores with errors, order parameters by head, and the solution.

    Raises:
        ValueError: no saddle point is found, kernels are too large for memory, or
            names, resamples or weights do not fit.

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
    if resamples < 0:
        raise ValueError(f"resamples must be >= 0; got {resamples}.")
    names = tuple(names) or default_names(problem)
    if len(names) != sum(problem.branches):
        raise ValueError(
            f"names: need one for each of {sum(problem.branches)} heads and skip "
            f"connections; got {len(names)}."
        )
    U_trained = None if weights is None else _trained(problem, weights)
    solution = problem.solve()
    if not solution.converged:
        raise ValueError(
            f"there is no saddle point: {solution.reason}; take a higher temperature."
        )
    flat = lambda U: np.concatenate(head_scores(U, problem.branches))
    again = [_resampled(solution, one) for one in jax.random.split(key, resamples)]
    known = np.array([flat(s.U[0]) for s in again if s.converged])
    known = known.reshape(-1, len(names))
    enough = len(known) >= FEWEST
    return HeadScores(
        solution=solution,
        names=names,
        score=flat(solution.U[0]),
        stderr=known.std(axis=0, ddof=1) if enough else np.full(len(names), np.nan),
        by_head=by_head(solution.U[0], problem.branches),
        resampled=known,
        failed=resamples - len(known),
        U_trained=U_trained,
        score_trained=None if U_trained is None else flat(U_trained),
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

    Args:
        U: U_1, (|Pi| K, |Pi| K).
        branches: heads per layer; with skips `Problem.branches`.

    Returns:
        One row and column for each head, layer by layer; the largest entry is 1.

    Example:
        >>> import jax.numpy as jnp
        >>> by_head(jnp.diag(jnp.array([2.0, 1.0])), (2,)).tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    weight = np.asarray(path_weights(U, branches))
    through = np.zeros((sum(branches), len(weight)))
    heads = [(l, h) for l, count in enumerate(branches) for h in range(count)]
    for row, (layer, head) in zip(through, heads, strict=True):
        row[paths_through(branches, layer, head)] = 1.0
    sums = through @ weight @ through.T
    return sums / sums.max()


def _resampled(solution: Solution, key: Key[Array, ""]) -> Solution:
    """The saddle point of as many examples, drawn with replacement."""
    problem = solution.problem
    drawn = jax.random.randint(key, (len(problem.Y),), 0, len(problem.Y))
    return problem.among(drawn, form=problem.form).solve(start=solution)


def _trained(problem: Problem, weights: Weights) -> Float[np.ndarray, "_d _d"]:
    """U_1 of value weights that have the heads and skip connections of a problem."""
    heads = tuple(len(V) for V in weights.V)
    skip = weights.skip or (None,) * len(heads)
    skipped = lambda given: tuple(b is not None for b in given)
    if heads != problem.heads or skipped(skip) != skipped(problem.skip):
        raise ValueError(
            f"weights must be of heads = {problem.heads} with the problem's skip "
            f"connections; got {heads}."
        )
    return np.asarray(order_parameters(weights)[0][0])
