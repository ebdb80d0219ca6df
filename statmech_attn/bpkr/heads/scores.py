r"""Scores of heads with errors over the examples (docs/theory/bpkr.md, section 4).

    score_h           (n,)        weight of head h in U_1, over the largest  `score`
    floor_h           (n,)        that of a head which f does not read       `floor`
    U_hh'             (n, n)      sum of |U_1| over paths pi through h and pi' through
                                  h', over the largest                       `by_head`
    share_h           (n,)        that weight over the sum of all weights
    resampled         (B, n)      shares in B sets of P - d examples, over the
                                  largest in all, spread as those of P are   `resampled`
    z_h               (n,)        against permuted labels (`permuted_labels`)    `z`
    by layer          (n,)        score where its layer is the whole network `by_layer`

n counts the heads of all layers, with the skip connection of a layer before its heads.
Errors are those of the jackknife that leaves out d = P / 5 examples (Shao and Wu,
Annals of Statistics 17, 1176, 1989): P examples deviate by 1 / sqrt(P), P - d of them
from the mean of all such sets by sqrt(1 / (P - d) - 1 / P), so that deviations are
multiplied by the ratio sqrt((P - d) / d).  They are those of shares, as a factor of all
weights tells no head from another; and no example comes twice, which the theory would
take for two that agree.
"""

import dataclasses
import warnings
from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from statmech_attn import presentation
from statmech_attn.bpkr.attention.attention import path_names
from statmech_attn.bpkr.attention.networks import order_parameters, skips_of, Weights
from statmech_attn.bpkr.heads.ablation import Ablation, VARIABLES as OF_ABLATION
from statmech_attn.bpkr.heads.left_out_examples import error_left_out, resampled_shares
from statmech_attn.bpkr.heads.permuted_labels import deviations, permuted_shares, shares
from statmech_attn.bpkr.heads.score_agreement import (
    ScoreAgreement,
    VARIABLES as OF_AGREEMENT,
)
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
OFF = COARSE  # part by which shares may be off: twice half of the gradient
_ROWS = (
    HEAD_SCORE._replace(value="score", error="stderr"),
    HEAD_SCORE_FLOOR._replace(value="floor"),
    Variable(
        "head_score_z",
        "attention_head",
        "share of the head in all weights against permuted labels, a normal deviate",
        symbol="z",
        value="z",
    ),
    Variable(
        "head_score_by_layer",
        "attention_head",
        "score in the theory of the layer alone, on what it sees",
        symbol="score",
        value="by_layer",
    ),
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
        "head_share_permuted",
        "permutation attention_head",
        "share of the head in all weights, of permuted labels",
        symbol="share",
        value="permuted",
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
    Variable(
        "head_kept",
        "mask_score heads_kept attention_head",
        "whether the head is among the highest by the score; skip connections stay",
        value="kept",
        line=False,
    ),
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
_OF_LOSSES = tuple(
    row for row in OF_ABLATION if row.dims in ("", "attention_head") and row != HEAD
)
_ALWAYS = ("head_score", "U_by_head", "U_1", "temperature", "width")
VARIABLES = Variables(
    *(row._replace(group="" if row.name in _ALWAYS else None) for row in _ROWS),
    *_OF_LOSSES,
    OF_AGREEMENT,
    HEAD._replace(group=""),
    Variable("mask_score", "mask_score", "what heads are kept by"),
    Variable("heads_kept", "heads_kept", "number of heads that are kept", symbol="n"),
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
        permuted: shares of the heads in all weights with permuted labels, those with a
            saddle point; None without two of them.
        z: shares against these, as a normal deviate, of variance 1 where labels
            say nothing; None likewise.
        by_layer: scores where each layer is the whole network, over the largest of the
            layer; None where these problems are not given.
        U_trained: U_1 of the trained value weights, None where there are none.
        score_trained: weight of every head in that, over the largest.  It has no floor:
            a head that training does not move keeps its initial weight, of which the
            trained values tell nothing.
        error_left_out: mean squared error of each example, predicted from all others
            at the order parameters of all, mean over outputs; None at T = 0.
        error_left_out_stderr: its standard error over examples.
        ablation: what the network loses without its heads, where it is given.
        agreement: how scores agree with that: of theory, of trained value weights, by
            derivatives of the loss.
    """

    solution: Solution
    names: tuple[str, ...] = eqx.field(static=True)
    score: Float[np.ndarray, " n"]
    stderr: Float[np.ndarray, " n"]
    floor: Float[np.ndarray, " n"]
    by_head: Float[np.ndarray, "n n"]
    resampled: Float[np.ndarray, "B n"]
    failed: int = eqx.field(static=True)
    permuted: Float[np.ndarray, "M n"] | None
    z: Float[np.ndarray, " n"] | None
    by_layer: Float[np.ndarray, " n"] | None
    U_trained: Float[np.ndarray, "_d _d"] | None
    score_trained: Float[np.ndarray, " n"] | None
    error_left_out: float | None
    error_left_out_stderr: float | None
    ablation: Ablation | None = None
    agreement: ScoreAgreement | None = None

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
    def held(self) -> dict[str, Float[np.ndarray, " h"]]:
        """Scores of the h heads without skip connections, by name."""
        known = {
            "theory": self.score,
            "theory, z": self.z,
            "theory by layer": self.by_layer,
            "trained values": self.score_trained,
        }
        of_heads = {
            name: values[self.is_head]
            for name, values in known.items()
            if values is not None
        }
        ablation = self.ablation
        if ablation and ablation.gradient and ablation.linear:
            of_heads |= {"gradient": ablation.gradient.value}
            of_heads |= {"gradient, signed": ablation.linear.value}
        return of_heads

    @property
    def orders(self) -> dict[str, Float[np.ndarray, " h"]]:
        """What heads may be kept by: scores, the loss gained, greedy pruning."""
        orders, ablation = self.held, self.ablation
        if ablation is not None:
            orders |= {"loss gained": ablation.gained.value}
            if ablation.order is not None:
                orders |= {"greedy": np.argsort(ablation.order).astype(float)}
        return orders

    @property
    def kept(self) -> Bool[np.ndarray, "m h n"]:
        """Masks by each of `orders`: its 1 to h highest heads, of equals the first."""
        ordered = [np.argsort(-x, kind="stable") for x in self.orders.values()]
        numbers = np.arange(1, int(self.is_head.sum()) + 1)
        masks = np.argsort(ordered)[:, None] < numbers[:, None]
        head_masks = np.ones((*masks.shape[:2], len(self.names)), bool)
        head_masks[:, :, self.is_head] = masks
        return head_masks

    @property
    def label_variance(self) -> float:
        """Mean squared error of the mean of the labels, over examples and outputs."""
        return float(np.var(self.solution.problem.Y, axis=0).mean())

    def explain(self) -> str | None:
        """Which scores the ablations support, in a sentence."""
        return None if self.agreement is None else self.agreement.explain()

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
            "mask_score": list(self.orders),
            "heads_kept": range(1, int(self.is_head.sum()) + 1),
        }
        if problem.outputs == 1:
            paths = path_names(problem.heads, problem.skip)
            coordinates |= {"path_1": paths, "path_1_pair": paths}
        labelled = {
            name: (name, np.asarray(values), VARIABLES.attributes(name))
            for name, values in coordinates.items()
        }
        dataset = self._to_dataset().assign_coords(labelled)
        if self.ablation is None or self.agreement is None:
            return dataset
        attention_heads = [name for name, head in zip(names, self.is_head) if head]
        of_heads = self.ablation.to_dataset().assign_coords(
            attention_head=attention_heads
        )
        further = set(of_heads.dims) - {"attention_head"}  # pairs, orders of pruning
        of_heads = of_heads.drop_dims(further).reindex(attention_head=names)
        of_heads = of_heads.assign_coords(attention_head=dataset.attention_head)
        return dataset.assign(of_heads).assign(self.agreement.to_dataset())


def score(
    problem: Problem,
    key: Key[Array, ""],
    *,
    resamples: WholeNumber = 20,
    permutations: WholeNumber = 0,
    names: Sequence[str] = (),
    layers: Sequence[Problem] = (),
    weights: Weights | None = None,
    ablation: Ablation | None = None,
) -> HeadScores:
    """Scores of the heads of a problem, with their errors over examples.

    The theory takes the attention as fixed, the values as linear, and knows no other
    blocks, so of a network that has them a score is a hypothesis.

    Args:
        problem: with the attentioned inputs of a trained network, for example.
        key: random key of JAX.
        resamples: sets of four fifths of the examples; 0 gives no errors.
        permutations: of the labels, against which the scores are held; 0 for none.
        names: of the heads, layer by layer, each skip connection before the heads of
            its layer; layer.head when omitted.
        layers: every layer as a problem of its own, on the hidden state that it sees,
            for scores by layer (`score_by_layer`).
        weights: trained value weights, of which U_1 is shown beside that of theory.
        ablation: of the same heads, against which the scores are held.

    Returns:
        `HeadScores`: scores with errors, order parameters by head, and the solution.

    Raises:
        ValueError: no saddle point is found, kernels are too large for memory, or
            names, resamples, permutations, layers, weights or ablation do not fit.

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
    _require_fitting(problem, resamples, permutations, names, layers, ablation)
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
    permuted = permuted_shares(
        problem, jax.random.fold_in(key, resamples), permutations, solver
    )
    known, off = len(permuted) >= FEWEST, OFF if solver.tolerance == COARSE else 0.0
    error, error_stderr = error_left_out(solution)
    scores = HeadScores(
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
        permuted=permuted if known else None,
        z=deviations(shares(solution), permuted, off) if known else None,
        by_layer=score_by_layer(layers) if layers else None,
        U_trained=U_trained,
        score_trained=(
            None
            if U_trained is None
            else np.concatenate(head_scores(U_trained, problem.branches))
        ),
        error_left_out=error,
        error_left_out_stderr=error_stderr,
        ablation=ablation,
    )
    if ablation is None:
        return scores
    return dataclasses.replace(scores, agreement=ablation.agreement(scores.held))


def _require_fitting(
    problem: Problem,
    resamples: int,
    permutations: int,
    names: Sequence[str],
    layers: Sequence[Problem],
    ablation: Ablation | None,
) -> None:
    """Refuse arguments of `score` that do not fit its problem."""
    if resamples < 0:
        raise ValueError(f"resamples must be >= 0; got {resamples}.")
    if permutations < 0 or permutations == 1:
        raise ValueError(f"permutations must be 0 or >= 2; got {permutations}.")
    if len(names) != sum(problem.branches):
        raise ValueError(
            f"names: need one for each of {sum(problem.branches)} heads and skip "
            f"connections; got {len(names)}."
        )
    if ablation is not None and ablation.heads != tuple(problem.heads):
        raise ValueError(
            f"ablation is of {ablation.heads} heads, the problem of {problem.heads}."
        )
    if layers and tuple(layer.branches for layer in layers) != tuple(
        (count,) for count in problem.branches
    ):
        raise ValueError(
            f"layers: need one problem for each layer of {problem.branches} heads with "
            f"skip connections; got {[layer.branches for layer in layers]}."
        )


def score_by_layer(layers: Sequence[Problem]) -> Float[np.ndarray, " n"]:
    """Scores of heads where each layer is the whole network, layer by layer.

    Each has the order parameter of its own paths alone, which are its heads: what they
    learn of the labels from the hidden state that the layer sees, nothing above it.
    Scores are over the largest of their layer, and say nothing of other layers.

    Args:
        layers: a problem of one layer for each.

    Raises:
        ValueError: a layer has no saddle point.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.array([[[1.0, 0.1]], [[-1.0, 0.1]]]), jnp.array([1.0, -1.0])
        >>> layer = Problem(xi, Y, heads=(2,), width=5, temperature=0.1)
        >>> score_by_layer([layer, layer]).round(2).tolist()
        [1.0, 0.89, 1.0, 0.89]
    """
    scores = []
    for number, layer in enumerate(layers, 1):
        solution = layer.solve(solver=_solver(layer))
        if not solution.converged:
            raise ValueError(
                f"layer {number} alone has no saddle point: {unsolved(solution)}."
            )
        scores.append(np.concatenate(solution.head_scores()))
    return np.concatenate(scores)


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
