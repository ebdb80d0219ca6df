r"""What networks lose without some of their heads (docs/theory/one_shot.md, section 5).

A point is a network.  Its heads are scored by $U_1$ of the saddle point, of the exact
law and of its own weights, and by the magnitude of their values; then every head is
pruned alone, and all of them one after the other, by these scores and at random.

Without weights the mean of f over the posterior is pruned, of which every path
contributes its part (`pruning.mean_contributions`): one point.  Skip connections are
pruned as the first heads of their layers.

    scores            (order, head)            over the largest      `pruning_score`
    drop              (head, test set)         base less pruned      `accuracy_drop`
    accuracy          (order, n, test set)     n heads pruned        `cumulative`
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn import extras
from statmech_attn.batches import rng
from statmech_attn.bpkr.attention.attention import head_names, path_names
from statmech_attn.bpkr.attention.networks import order_parameters, Weights
from statmech_attn.bpkr.grids.examples import LearningTask
from statmech_attn.bpkr.heads import pruning
from statmech_attn.bpkr.posed import newton, prior
from statmech_attn.bpkr.posed.quantities import ACCURACY_SETS, HEAD, RESTART, TEST_SET
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import head_scores
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, Contents, FAILURE, lacking, over, Scan
from statmech_attn.statistics import mean_of_known, paired_error, share_error


ORDERS = ("saddle", "exact-law", "trained", "magnitude", "random")
EXACT_LAW, RANDOM_ORDERS = "exact law", "random orders"  # purposes of keys
OF_DRAWS = ("stderr", "n_eff", "r_hat")  # kept of the exact law's draws
VARIABLES = Variables(
    Variable(
        "pruning_score", "restart order attention_head",
        "score of the head over the largest", "1", "score", group="",
        note="NaN in the random order",
    ),
    Variable(
        "head_score_floor", "restart attention_head",
        "score at the saddle point of a head that f does not read", "1", "score",
    ),
    ACCURACY_SETS.over("restart test_set", group=""),
    Variable(
        "accuracy_pruned", "restart attention_head test_set",
        "accuracy without the head",
        "1", "accuracy", "_stderr", group="", note="binomial error",
    ),
    Variable(
        "accuracy_drop", "restart attention_head test_set",
        "accuracy lost without the head", "1", "Δ accuracy", "_stderr", group="",
        note="error of the difference on the same tasks",
    ),
    Variable(
        "accuracy_cumulative", "restart order n_pruned test_set",
        "accuracy without n heads", "1", "accuracy", "_stderr", group="",
        note="NaN once a layer is empty; binomial error, in the random order over its "
        "orders",
    ),
    Variable(
        "rank_correlation", "restart order test_set",
        "rank correlation of score and accuracy lost", "1", "ρ_S", group="",
    ),
    Variable(
        "rank_correlation_mean", "order test_set",
        "rank correlation, mean of trainings", "1", "⟨ρ_S⟩", "_stderr", group="",
    ),
    Variable(
        "result", "restart", "how the iteration ended", "1", "result",
        flags=newton.RESULT_WORDS,
    ),
    Variable(
        "U_1", "restart path_1 path_1_pair",
        "order parameter, overlap of effective weights", "1", "U_1",
        "_exact _exact_stderr _exact_n_eff _exact_r_hat", note="of the saddle point",
    ),
    Variable("divergences", "restart", "divergent draws of all chains", "1", "n"),
    FAILURE,
    RESTART,
    Variable("order", "order", "what gives heads their scores, or their order", "1",
             "order"),
    HEAD,
    Variable("head_layer", "attention_head", "layer of the head", "1", "l"),
    Variable("n_pruned", "n_pruned", "heads pruned, the lowest scores first", "1", "n"),
    TEST_SET,
    Variable("path_1", "path_1", "attention path from layer 1 on", "1", "π"),
    Variable("path_1_pair", "path_1_pair", "attention path from layer 1 on", "1", "π"),
)  # fmt: skip


class Network(NamedTuple):
    """A trained network whose heads are pruned.

    `trained` has scores of its heads by its own weights, NaN where there are none,
    `magnitude` how strongly they speak, over the largest; `parts` gives what every path
    says to some attentioned inputs.
    """

    trained: Float[np.ndarray, " n"]
    magnitude: Float[np.ndarray, " n"]
    parts: Callable[[Any], Float[Array, "Q Pi"]]


def prune_networks(
    key: Key[Array, ""],
    task: LearningTask | Callable[[int], LearningTask],
    weights: Sequence[Weights] | None = None,
    *,
    width: float,
    temperature: float,
    sets: Sequence[str] = ("test",),
    random_orders: int = 20,
    exact: Mapping[str, Any] | None = None,
    about: Mapping[str, Any] = {},
) -> Scan:
    """Scores of the heads of networks, and what each loses without them.

    Args:
        key: random key of JAX: of the chains of the exact law and of random orders.
        task: examples as the heads attend them; where every network has heads of its
            own, a function: number of a network -> its examples, which are drawn when
            they are needed.  It raises `ValueError` for one that cannot be pruned.
        weights: of every network, with one output; None: of the mean of f over the
            posterior.
        width, temperature: of the posterior by which heads are scored.
        sets: names of the test sets, where a function draws the examples.
        random_orders: random orders in which heads are pruned.
        exact: options of `Problem.posterior`; None: no scores by the exact law.
        about: attributes of the file.

    Returns:
        The points, a network each, of a file of the kind pruning.

    Raises:
        ValueError: networks that differ in their heads, or whose examples are drawn
            though they have no weights; no exact law of the width, or no numpyro.

    Example:
        >>> import jax
        >>> from statmech_attn.bpkr import draw_weights, LearningTask
        >>> jax.config.update("jax_enable_x64", True)
        >>> keys = jax.random.split(jax.random.key(0), 3)
        >>> xi = jax.random.normal(keys[0], (30, 3, 4))
        >>> train, test = zip(*[(x[:20], x[20:]) for x in (xi, xi[:, 0, 1])])
        >>> task = LearningTask(*train, *test, heads=(2, 2))
        >>> networks = [draw_weights(k, n_inputs=3, heads=(2, 2), width=9)
        ...             for k in keys[1:]]
        >>> pruned = prune_networks(keys[0], task, networks, width=9, temperature=0.1)
        >>> pruned.compute().accuracy_drop.sizes
        Frozen({'restart': 2, 'attention_head': 4, 'test_set': 1})
    """
    heads, skip = _heads(task, weights)
    branches, paths = prior.branches(heads, skip), path_names(heads, skip)
    names = head_names(heads, skip)
    if isinstance(task, LearningTask):
        sets, names = list(task.sets) or sets, list(task.names) or names
        about = {"task": task.described, **about}
    if exact is not None:
        check_exact_law(width, temperature, heads)
    posed = {"width": width, "temperature": temperature}
    how = {"posed": posed, "random_orders": random_orders, "exact": exact}
    return over(
        partial(_row, key=key, task=task, weights=weights, **how),
        {"restart": np.arange(1 if weights is None else len(weights))},
        variables=VARIABLES,
        numbers=_lost,
        derive=partial(_of_all, branches),
        coordinates={
            "order": ORDERS,
            "attention_head": names,
            "n_pruned": np.arange(sum(branches) - len(heads) + 1),
            "test_set": list(sets),
            "path_1": paths,
            "path_1_pair": paths,
        },
        kind="pruning",
        about=about,
        alone=True,
        empty={"result": -1},
    )


def _row(
    _: Mapping[str, Any],
    number: int,
    key: Key[Array, ""],
    task: LearningTask | Callable[[int], LearningTask],
    weights: Sequence[Weights] | None,
    posed: Mapping[str, float],
    random_orders: int,
    exact: Mapping[str, Any] | None,
) -> dict[str, Any]:
    task = task if isinstance(task, LearningTask) else task(number)
    of_purpose = lambda purpose: rng.key_for(key, purpose, number)
    problem = task.posed(**posed)
    saddle = problem.solve()
    row = {"U_1": np.asarray(saddle.U[0]), "result": np.int8(saddle.result)}
    row |= _exact_law(problem, of_purpose(EXACT_LAW), exact)
    own = None if weights is None else weights[number]
    network = _network(own, task, saddle)
    scored = lambda U: np.concatenate(head_scores(U, task.branches))
    known = network.trained, network.magnitude, np.full(sum(task.branches), np.nan)
    scores = np.stack([scored(row["U_1"]), scored(row["U_1_exact"]), *known])
    orders = pruning.random_orders(
        of_purpose(RANDOM_ORDERS), task.branches, random_orders
    )
    lost = [
        without_heads(
            np.asarray(network.parts(xi)),
            np.asarray(y),
            task.heads,
            scores,
            orders,
            task.skips,
        )
        for xi, y in task.tests
    ]
    row |= {name: np.stack([s[name] for s in lost], -1) for name in lost[0]}
    floors = np.concatenate(saddle.head_floors())
    return row | {"pruning_score": scores, "head_score_floor": floors}


def _network(weights: Weights | None, task: LearningTask, saddle: Solution) -> Network:
    """What is pruned of a point; `ValueError` without a saddle point for a mean."""
    if weights is None:
        theory = saddle.problem.theory(saddle)
        parts = lambda xi: pruning.mean_contributions(theory, xi)
        sizes = pruning.contribution_sizes(parts(task.xi), task.heads, task.skips)
        return Network(np.full(len(sizes), np.nan), sizes, parts)
    U = order_parameters(weights)[0][0]
    return Network(
        np.concatenate(head_scores(U, task.branches)),
        pruning.head_magnitudes(weights),
        lambda xi: pruning.contributions(weights, xi),
    )


def _exact_law(problem: Problem, key, exact: Mapping[str, Any] | None) -> dict:
    """Mean and diagnostics of U_1 under the exact law; NaN where it is off."""
    names = ["U_1_exact", *(f"U_1_exact_{part}" for part in OF_DRAWS)]
    if exact is None:
        paths = problem.xi.shape[2]
        unknown = dict.fromkeys(names, np.full((paths, paths), np.nan))
        return unknown | {"divergences": np.nan}
    posterior = problem.posterior(key, **exact)
    of_draws = posterior.summary[0]
    values = [of_draws.mean, *(getattr(of_draws, part) for part in OF_DRAWS)]
    row = dict(zip(names, values, strict=True))
    return row | {"divergences": float(posterior.divergences)}


def _lost(arrays: Arrays) -> np.ndarray:
    """Converged without numbers; `result` says why another has none."""
    lost = lacking(arrays, "accuracy_sets")
    return lost | (lacking(arrays, "U_1") & (arrays["result"] == 0))


def _of_all(branches: Sequence[int], columns: Contents) -> Contents:
    """The mean correlation of the networks, and the layer of every head."""
    layers = [layer + 1 for layer, _ in pruning.heads_in_order(branches)]
    columns["head_layer"] = ("attention_head",), layers
    correlation = mean_of_known(columns["rank_correlation"][1])
    for ending, value in zip(("", "_stderr"), correlation, strict=True):
        columns[f"rank_correlation_mean{ending}"] = ("order", "test_set"), value
    return columns


def check_exact_law(width: float, temperature: float, heads: Sequence[int]) -> None:
    """Refuse what has no exact law, before anything is computed.

    It needs a whole width, a temperature above zero, and numpyro.
    """
    if importlib.util.find_spec("numpyro") is None:
        raise ValueError(
            extras.needed("the exact law", "numpyro", "sampling")
            + " Or leave exact out: scores of the saddle point need none."
        )
    widths = prior.prior(width, heads).widths
    prior.check_finite_width(widths, temperature, "the exact law")


def _heads(task, weights: Sequence[Weights] | None) -> tuple[tuple[int, ...], Any]:
    """Heads and skips per layer, of the task or of all networks alike."""
    if isinstance(task, LearningTask):
        return task.heads, task.skips
    if not weights:
        raise ValueError("a function of a network's number needs weights of networks.")
    heads = {tuple(map(len, network.V)) for network in weights}
    if len(heads) > 1:
        raise ValueError(f"all networks must have the same heads; got {sorted(heads)}.")
    (counts,) = heads
    return counts, prior.skips(weights[0].skip or None, len(counts))


def without_heads(
    parts: Float[np.ndarray, "Q Pi"],
    y: Float[np.ndarray, " Q"],
    heads: Sequence[int],
    scores: Float[np.ndarray, "orders n"],
    orders: np.ndarray,
    skip=None,
) -> dict[str, Any]:
    """What a network loses on one test set without one head, and without several.

    `parts` are contributions of the paths, `scores` have a row for each of `ORDERS`,
    `orders` are random ones, a row each.
    """
    ways = prior.branches(heads, prior.skips(skip, len(heads)))
    heads_of_layers = pruning.heads_in_order(ways)
    right = lambda off: pruning.correct_without_heads(parts, y, heads, off, skip)
    full, pruned = right([]), np.stack([right([head]) for head in heads_of_layers])
    lost = full - pruned  # with the same tasks, so that their scatter cancels
    drop, base = lost.mean(axis=1), full.mean()
    curves = np.full((2, len(ORDERS), sum(ways) - len(ways) + 1), np.nan)
    along = lambda order: pruning.cumulative_accuracy(parts, y, heads, order, skip)
    for number, score in enumerate(scores):
        if np.isfinite(score).all():
            curves[0, number] = along(pruning.ascending(score))
            curves[1, number] = share_error(curves[0, number], len(y))
    curves[:, ORDERS.index("random")] = mean_of_known(np.stack([*map(along, orders)]))
    return {
        "accuracy_sets": base,
        "accuracy_sets_stderr": share_error(base, len(y)),
        "accuracy_pruned": pruned.mean(axis=1),
        "accuracy_pruned_stderr": share_error(pruned.mean(axis=1), len(y)),
        "accuracy_drop": drop,
        "accuracy_drop_stderr": paired_error(lost),
        "accuracy_cumulative": curves[0],
        "accuracy_cumulative_stderr": curves[1],
        "rank_correlation": np.array(
            [pruning.rank_correlation(score, drop) for score in scores]
        ),
    }
