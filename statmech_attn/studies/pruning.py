r"""Networks without some of their heads (docs/theory/one_shot.md, section 5).

A point is a network of the trained file.  Its heads are scored by $U_1$ of the saddle
point, of the exact law and of its own weights, and by the magnitude of their values;
then every head is pruned alone, and all of them one after the other.

Of a task without a trained network, the mean of f over the posterior is pruned, of
which every path contributes its part (`bpkr.pruning.mean_contributions`): one point.
Skip connections are pruned as the first heads of their layers.

    scores            (order, head)            over the largest      `pruning_score`
    drop              (head, test set)         base less pruned      `accuracy_drop`
    accuracy          (order, n, test set)     n heads pruned        `cumulative`
"""

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from statmech_attn import bpkr, extras
from statmech_attn.bpkr import check_finite_width, Learning, newton, prior, pruning
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, Contents, lacking, Points, Tick
from statmech_attn.statistics import mean_of_known, paired_error, share_error
from statmech_attn.studies import build, one_shot
from statmech_attn.studies.learning import learning
from statmech_attn.studies.one_shot_sets import key_of
from statmech_attn.studies.pruning_table import LearnedPruningStudy, PruningStudy
from statmech_attn.studies.trained import load_trained
from statmech_attn.training import value_weights


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
    Variable(
        "accuracy_sets", "restart test_set", "share of a test set with the right sign",
        "1", "accuracy", "_stderr", group="", note="binomial error",
    ),
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
    build.FAILURE,
    Variable(
        "restart", "restart", "training from initial weights of its own", "1", "r"
    ),
    Variable("order", "order", "what gives heads their scores, or their order", "1",
             "order"),
    Variable("attention_head", "attention_head", "layer.head", "1", "(l, h)"),
    Variable("head_layer", "attention_head", "layer of the head", "1", "l"),
    Variable("n_pruned", "n_pruned", "heads pruned, the lowest scores first", "1", "n"),
    Variable("test_set", "test_set", "name of the test set", "1", "set"),
    Variable("path_1", "path_1", "attention path from layer 1 on", "1", "π"),
    Variable("path_1_pair", "path_1_pair", "attention path from layer 1 on", "1", "π"),
)  # fmt: skip


class Network(NamedTuple):
    """What is pruned.

    Attributes:
        trained: scores of its heads by its own weights; NaN where there are none.
        magnitude: how strongly its heads speak, over the largest.
        parts: what every path says to some attentioned inputs.
    """

    trained: Float[np.ndarray, " n"]
    magnitude: Float[np.ndarray, " n"]
    parts: Callable[[Any], Float[Array, "Q Pi"]]


class PruningWork(Points):
    """Scores of heads, and what the network loses without them."""

    title = "pruning"
    variables = VARIABLES
    alone = True
    empty: Mapping[str, int] = {"result": -1}

    def __init__(self, study: PruningStudy):
        """Read networks and images; `ValueError` for impossible settings."""
        self._begin(study)
        self.trained = load_trained(study.task.trained)
        self.learned = one_shot.learned(self.trained, study.task.trained)
        self._check(self.heads)
        self.source = one_shot.source(study.task, self.trained)
        self.axes = {"restart": np.arange(len(self.trained.transformers))}

    def _begin(self, study) -> None:
        if study.run.exact and importlib.util.find_spec("numpyro") is None:
            raise ValueError(
                extras.needed("the exact law", "numpyro", "sampling")
                + " Or set run.exact = false."
            )
        self.study, self.options = study, study.run

    def _check(self, heads: tuple[int, ...]) -> None:
        """Refuse widths that the exact law does not have."""
        if self.options.exact:
            network = self.study.network
            widths = prior.prior(network.width, heads).widths
            check_finite_width(widths, network.temperature, "the exact law")

    def identity(self) -> dict[str, Any]:
        return self.study.identity()

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads per layer."""
        return self.trained.heads

    @property
    def skip(self) -> prior.Skip:
        """Skip connections, None where a layer has none."""
        return (None,) * len(self.heads)

    @property
    def branches(self) -> tuple[int, ...]:
        """Heads per layer, with its skip."""
        return prior.branches(self.heads, self.skip)

    @property
    def tested(self) -> list[str]:
        """Names of the test sets."""
        return self.source.images.tested

    @property
    def description(self) -> str:
        """Of the task, as it is stored."""
        return json.dumps(self.source.description)

    @property
    def names(self) -> list[str]:
        """Of all heads, layer by layer."""
        return [
            f"{layer}.{head}"
            for layer, (count, b) in enumerate(zip(self.heads, self.skip), 1)
            for head in bpkr.path_names([count], b)
        ]

    def attended(self, number: int) -> Learning:
        """The examples of a network as its heads attend them."""
        if number not in self.learned:
            raise ValueError(f"training {number} learned nothing that can be pruned.")
        transformer = self.trained.transformers[number]
        return one_shot.attended(transformer, self.source.drawn(number))

    def network(self, number: int, saddle: bpkr.Solution) -> Network:
        """What is pruned of a point."""
        weights = value_weights(self.trained.transformers[number])
        U_1 = bpkr.order_parameters(weights)[0][0]
        return Network(
            self._scored(U_1),
            pruning.head_magnitudes(weights),
            lambda xi: pruning.contributions(weights, xi),
        )

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        task = self.attended(number)
        key = lambda purpose: key_of(self.options.seed, purpose, number)
        problem = bpkr.Problem(
            *task.data,
            heads=task.heads,
            skip=task.skip,
            **self.study.network.model_dump(),
        )
        saddle = self._saddle(problem)
        row = {"U_1": np.asarray(saddle.U[0]), "result": np.int8(saddle.result)}
        row |= self._exact_law(problem, key(EXACT_LAW))
        network = self.network(number, saddle)
        scores = np.stack(
            [
                self._scored(row["U_1"]),
                self._scored(row["U_1_exact"]),
                network.trained,
                network.magnitude,
                np.full(sum(self.branches), np.nan),
            ]
        )
        orders = pruning.random_orders(
            key(RANDOM_ORDERS), self.branches, self.options.random_orders
        )
        sets = task.sets or {"test": (task.xi_test, task.Y_test)}
        lost = [
            without_heads(
                np.asarray(network.parts(xi)),
                np.asarray(y),
                self.heads,
                scores,
                orders,
                self.skip,
            )
            for xi, y in sets.values()
        ]
        row |= {name: np.stack([s[name] for s in lost], -1) for name in lost[0]}
        floors = np.concatenate(saddle.head_floors())
        return row | {"pruning_score": scores, "head_score_floor": floors}

    def _scored(self, U) -> np.ndarray:
        """Scores of all heads in a U_1; NaN where it is not known."""
        return np.concatenate(bpkr.head_scores(U, self.branches))

    def _saddle(self, problem: bpkr.Problem) -> bpkr.Solution:
        """What heads are scored by."""
        return problem.solve()

    def _exact_law(self, problem: bpkr.Problem, key) -> dict[str, Any]:
        """Mean and diagnostics of U_1 under the exact law; NaN where it is off."""
        names = ["U_1_exact", *(f"U_1_exact_{part}" for part in OF_DRAWS)]
        if not self.options.exact:
            paths = problem.xi.shape[2]
            unknown = dict.fromkeys(names, np.full((paths, paths), np.nan))
            return unknown | {"divergences": np.nan}
        drawn = problem.posterior(
            key,
            draws=self.options.draws,
            warmup=self.options.warmup,
            chains=self.options.chains,
        )
        of_draws = drawn.summary[0]
        values = [of_draws.mean, *(getattr(of_draws, part) for part in OF_DRAWS)]
        row = dict(zip(names, values, strict=True))
        return row | {"divergences": float(drawn.divergences)}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without numbers; `result` says why another has none."""
        lost = lacking(arrays, "accuracy_sets")
        return lost | (lacking(arrays, "U_1") & (arrays["result"] == 0))

    def derived(self, columns: Contents) -> Contents:
        """The mean correlation of the trainings, and the layer of every head."""
        layers = [layer + 1 for layer, _ in pruning.heads_in_order(self.branches)]
        columns["head_layer"] = ("attention_head",), layers
        correlation = mean_of_known(columns["rank_correlation"][1])
        for ending, value in zip(("", "_stderr"), correlation, strict=True):
            dims = ("order", "test_set")
            columns[f"rank_correlation_mean{ending}"] = dims, value
        return columns

    def attributes(self) -> dict[str, str]:
        return {"kind": self.study.kind, "task": self.description}

    def coordinates(self) -> dict[str, Any]:
        paths, heads = bpkr.path_names(self.heads, self.skip), self.branches
        return {
            "order": list(ORDERS),
            "attention_head": list(self.names),
            "n_pruned": np.arange(sum(heads) - len(heads) + 1),
            "test_set": self.tested,
            "path_1": paths,
            "path_1_pair": paths,
        }


class LearnedPruningWork(PruningWork):
    """The same of the posterior of a task, whose mean predictor is pruned."""

    def __init__(self, study: LearnedPruningStudy):
        """Read or draw the task; `ValueError` for impossible settings."""
        self._begin(study)
        self.made = learning(study.task)
        self._check(self.heads)
        self.axes = {"restart": np.arange(1)}

    @property
    def heads(self) -> tuple[int, ...]:
        return self.made.heads

    @property
    def skip(self) -> prior.Skip:
        return self.made.skips

    @property
    def tested(self) -> list[str]:
        return list(self.made.sets) or ["test"]

    @property
    def description(self) -> str:
        return self.made.description

    @property
    def names(self) -> list[str]:
        return list(self.made.names) or super().names

    def attended(self, number: int) -> Learning:
        """The examples of the task."""
        return self.made

    def network(self, number: int, saddle: bpkr.Solution) -> Network:
        """The mean over the posterior at the saddle point.

        Raises:
            ValueError: there is no saddle point.
        """
        theory = saddle.problem.theory(saddle)
        parts = lambda xi: pruning.mean_contributions(theory, xi)
        sizes = pruning.contribution_sizes(parts(self.made.xi), self.heads, self.skip)
        return Network(np.full(len(sizes), np.nan), sizes, parts)


def without_heads(
    parts: np.ndarray,
    y: np.ndarray,
    heads: tuple[int, ...],
    scores: np.ndarray,
    orders: np.ndarray,
    skip=None,
) -> dict[str, np.ndarray]:
    """What a network loses on one test set without one head, and without several.

    Args:
        parts: what every path contributes, (Q, Pi).
        scores: of the heads, a row for each of `ORDERS`.
        orders: random ones, a row each.
        skip: as in `bpkr.Problem`.
    """
    ways = prior.branches(heads, prior.skips(skip, len(heads)))
    heads_of_layers = pruning.heads_in_order(ways)
    right = lambda off: pruning.right_without(parts, y, heads, off, skip)
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
