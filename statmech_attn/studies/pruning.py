r"""Trained networks without some of their heads (docs/theory/one_shot.md, section 5).

A point is a network of the trained file.  Its heads are scored by $U_1$ of the saddle
point, of the exact law and of its own weights, and by the magnitude of their values;
then every head is pruned alone, and all of them one after the other.

    scores            (order, head)            over the largest      `pruning_score`
    drop              (head, test set)         base less pruned      `accuracy_drop`
    accuracy          (order, n, test set)     n heads pruned        `cumulative`
"""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from statmech_attn import bpkr
from statmech_attn.bpkr import check_finite_width, prior, pruning
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, Assembled, Chunk, OneRound, Results, Tick
from statmech_attn.statistics import mean_of_known
from statmech_attn.studies import build, one_shot, order_parameter
from statmech_attn.studies.choice import stderr
from statmech_attn.studies.examples import Learning
from statmech_attn.studies.learning import Dimensions, lacking
from statmech_attn.studies.one_shot_sets import key_of
from statmech_attn.studies.pruning_table import PruningStudy
from statmech_attn.studies.trained import load_trained
from statmech_attn.training import Transformer, value_weights


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
        flags=order_parameter.WORDS,
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
    Variable("n_pruned", "n_pruned", "heads pruned, the lowest scores first", "1", "n"),
    Variable("test_set", "test_set", "classes that the test tasks are made of", "1",
             "set"),
    Variable("path_1", "path_1", "attention path from layer 1 on", "1", "π"),
    Variable("path_1_pair", "path_1_pair", "attention path from layer 1 on", "1", "π"),
)  # fmt: skip


class PruningWork(OneRound):
    """Scores of heads, and what the network loses without them."""

    title = "pruning"
    batch = 1
    alone = True
    empty: Mapping[str, int] = {"result": -1}

    def __init__(self, study: PruningStudy):
        """Read networks and images; `ValueError` for impossible settings."""
        if study.run.exact and importlib.util.find_spec("numpyro") is None:
            raise ValueError(
                "the exact law needs numpyro: pip install 'statmech-attn[sampling]', "
                "or set run.exact = false."
            )
        self.study, self.run = study, study.run
        self.trained = load_trained(study.task.trained)
        self.learned = one_shot.learned(self.trained, study.task.trained)
        if study.run.exact:
            network = study.network
            widths = prior.prior(network.width, self.heads).widths
            check_finite_width(widths, network.temperature, "the exact law")
        self.source = one_shot.source(study.task, self.trained)

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads per layer."""
        return self.trained.heads

    @property
    def total(self) -> int:
        return len(self.trained.transformers)

    def dimensions(self) -> Dimensions:
        """What is stored of a network, with its dimensions there."""
        head, sets, paths = "attention_head", "test_set", ("path_1", "path_1_pair")
        dimensions: Dimensions = {"result": (), "U_1": paths, "U_1_exact": paths}
        dimensions |= {f"U_1_exact_{part}": paths for part in OF_DRAWS}
        dimensions |= {"divergences": (), "pruning_score": ("order", head)}
        for name, dims in (
            ("accuracy_sets", (sets,)),
            ("accuracy_pruned", (head, sets)),
            ("accuracy_drop", (head, sets)),
            ("accuracy_cumulative", ("order", "n_pruned", sets)),
        ):
            dimensions |= {name: dims, f"{name}_stderr": dims}
        return dimensions | {"rank_correlation": ("order", sets)}

    def compute(
        self, chunk: Chunk, payload: None, tick: Tick, folder: Path | None
    ) -> Arrays:
        """The rows of a chunk."""
        rows = []
        for number in range(chunk.first, chunk.stop):
            tick(0.0)
            rows.append(self._row(number))
            tick(1.0)
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def attended(self, number: int) -> Learning:
        """The examples of a network as its heads attend them."""
        transformer = self.trained.transformers[number]
        return one_shot.attended(transformer, self.source.drawn(number))

    def _row(self, number: int) -> dict[str, Any]:
        if number not in self.learned:
            raise ValueError(f"training {number} learned nothing that can be pruned.")
        transformer = self.trained.transformers[number]
        made = self.attended(number)
        key = lambda purpose: key_of(self.run.seed, purpose, number)
        problem = bpkr.Problem(
            *made.data, heads=made.heads, **self.study.network.model_dump()
        )
        row = self._saddle(problem) | self._exact_law(problem, key(EXACT_LAW))
        scores = self._scores(row, transformer)
        orders = pruning.random_orders(
            key(RANDOM_ORDERS), self.heads, self.run.random_orders
        )
        lost = [
            without_heads(*parts, self.heads, scores, orders)
            for parts in self._contributions(made, transformer)
        ]
        row |= {name: np.stack([s[name] for s in lost], -1) for name in lost[0]}
        return row | {"pruning_score": scores}

    def _saddle(self, problem: bpkr.Problem) -> dict[str, Any]:
        saddle = problem.solve()
        return {"U_1": np.asarray(saddle.U[0]), "result": np.int8(saddle.result)}

    def _exact_law(self, problem: bpkr.Problem, key) -> dict[str, Any]:
        """Mean and diagnostics of U_1 under the exact law; NaN where it is off."""
        names = ["U_1_exact", *(f"U_1_exact_{part}" for part in OF_DRAWS)]
        if not self.run.exact:
            paths = problem.xi.shape[2]
            unknown = dict.fromkeys(names, np.full((paths, paths), np.nan))
            return unknown | {"divergences": np.nan}
        drawn = problem.posterior(
            key, draws=self.run.draws, warmup=self.run.warmup, chains=self.run.chains
        )
        of_draws = drawn.summary[0]
        values = [of_draws.mean, *(getattr(of_draws, part) for part in OF_DRAWS)]
        row = dict(zip(names, values, strict=True))
        return row | {"divergences": float(drawn.divergences)}

    def _scores(self, found: Mapping[str, Any], transformer: Transformer) -> np.ndarray:
        """Of every order and head; NaN in a random order, or where U is not known."""
        weights = value_weights(transformer)
        U_1 = bpkr.order_parameters(weights)[0][0]
        scored = lambda U: np.concatenate(bpkr.head_scores(U, self.heads))
        return np.stack(
            [
                scored(found["U_1"]),
                scored(found["U_1_exact"]),
                scored(U_1),
                pruning.head_magnitudes(weights),
                np.full(sum(self.heads), np.nan),
            ]
        )

    def _contributions(self, made: Learning, transformer: Transformer):
        """What every path says, and the labels, on each test set."""
        weights = value_weights(transformer)
        for xi, y in made.sets.values():
            yield np.asarray(pruning.contributions(weights, xi)), np.asarray(y)

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without numbers; `result` says why another has none."""
        lost = lacking(arrays, "accuracy_sets")
        return lost | (lacking(arrays, "U_1") & (arrays["result"] == 0))

    def pilot(self) -> None:
        """How long a network takes, only its iterations can tell."""

    def assemble(self, results: Results) -> Assembled:
        variables: dict[str, Any] = {
            name: (("restart", *dims), results.column(name))
            for name, dims in self.dimensions().items()
        }
        failure = results.failure()
        correlation = mean_of_known(variables["rank_correlation"][1])
        for ending, value in zip(("", "_stderr"), correlation, strict=True):
            dims = ("order", "test_set")
            variables[f"rank_correlation_mean{ending}"] = (dims, value)
        if failure.any():
            variables["failure"] = (("restart",), failure)
        dataset = VARIABLES.labelled(variables, self._coordinates()).assign_attrs(
            kind=self.study.kind, task=json.dumps(self.source.description)
        )
        if failure.any():
            dataset.attrs["failure_reasons"] = results.reasons()
        return Assembled(dataset)

    def _coordinates(self) -> dict[str, Any]:
        paths = bpkr.path_names(self.heads)
        return {
            "restart": np.arange(self.total),
            "order": list(ORDERS),
            "attention_head": [
                f"{layer + 1}.{head + 1}"
                for layer, head in pruning.heads_in_order(self.heads)
            ],
            "n_pruned": np.arange(sum(self.heads) - len(self.heads) + 1),
            "test_set": self.source.images.tested,
            "path_1": paths,
            "path_1_pair": paths,
        }


def without_heads(
    parts: np.ndarray,
    y: np.ndarray,
    heads: tuple[int, ...],
    scores: np.ndarray,
    orders: np.ndarray,
) -> dict[str, np.ndarray]:
    """What a network loses on one test set without one head, and without several.

    Args:
        parts: what every path contributes, (Q, Pi).
        scores: of the heads, a row for each of `ORDERS`.
        orders: random ones, a row each.
    """
    each = pruning.heads_in_order(heads)
    full = pruning.right_without(parts, y, heads)
    pruned = np.stack([pruning.right_without(parts, y, heads, [h]) for h in each])
    lost = full - pruned  # with the same tasks, so that their scatter cancels
    drop, base = lost.mean(axis=1), full.mean()
    curves = np.full((2, len(ORDERS), sum(heads) - len(heads) + 1), np.nan)
    along = lambda order: pruning.cumulative_accuracy(parts, y, heads, order)
    for number, score in enumerate(scores):
        if np.isfinite(score).all():
            curves[0, number] = along(pruning.ascending(score))
            curves[1, number] = stderr(curves[0, number], len(y))
    curves[:, ORDERS.index("random")] = mean_of_known(np.stack([*map(along, orders)]))
    return {
        "accuracy_sets": base,
        "accuracy_sets_stderr": stderr(base, len(y)),
        "accuracy_pruned": pruned.mean(axis=1),
        "accuracy_pruned_stderr": stderr(pruned.mean(axis=1), len(y)),
        "accuracy_drop": drop,
        "accuracy_drop_stderr": lost.std(axis=1) / np.sqrt(len(y)),
        "accuracy_cumulative": curves[0],
        "accuracy_cumulative_stderr": curves[1],
        "rank_correlation": np.array(
            [pruning.rank_correlation(score, drop) for score in scores]
        ),
    }
