r"""Whether a score of heads orders them as the losses gained without them do.

The rank correlation $\rho$ of a score with the mean losses gained is taken over all
heads, and as the mean of those of single layers, where a score need not compare layers.
Its standard error is the spread over bootstrap sets of examples.  Its level is the
share of random orders of the heads (within their layers, for the second) that agree or
disagree at least as well, which is large where there are few heads, however many the
examples.  Of a table of m scores, levels below 5 % / 2m are significant (Bonferroni).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import equinox as eqx
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import stats

from statmech_attn import presentation
from statmech_attn.bpkr.heads.pruning import FEWEST
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import Count


LEVEL = 0.05  # of all comparisons of a table together
BELOW_LEVEL = 20  # random orders expected to agree as well where it is just reached

_ROWS = (
    Variable(
        "score_correlation",
        "head_score_name",
        "rank correlation of a score with the loss gained",
        symbol="ρ",
        value="correlation",
        error="stderr",
    ),
    Variable(
        "score_correlation_level",
        "head_score_name",
        "share of random orders of heads that agree as well",
        symbol="p",
        value="level",
    ),
    Variable(
        "score_correlation_within",
        "head_score_name",
        "rank correlation of a score with the loss gained, mean within layers",
        symbol="ρ_l",
        value="within",
        error="within_stderr",
    ),
    Variable(
        "score_correlation_within_level",
        "head_score_name",
        "share of random orders within layers that agree as well",
        symbol="p_l",
        value="within_level",
    ),
)
VARIABLES = Variables(
    *_ROWS, Variable("head_score_name", "head_score_name", "name of the score")
)


class ScoreAgreement(eqx.Module):
    """Rank correlations of scores with losses gained, one for each of m scores.

    NaN stands for fewer than three heads (of every layer) and for scores or losses
    that are all the same.

    Attributes:
        names: of the scores.
        correlation, stderr, level: over all heads, its standard error over examples,
            and the share of random orders that agree as well.
        within, within_stderr, within_level: mean of the layers with three heads.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    correlation: Float[np.ndarray, " m"]
    stderr: Float[np.ndarray, " m"]
    level: Float[np.ndarray, " m"]
    within: Float[np.ndarray, " m"]
    within_stderr: Float[np.ndarray, " m"]
    within_level: Float[np.ndarray, " m"]

    def explain(self) -> str:
        """Which of the scores the ablations support, in a sentence."""
        bound = LEVEL / (2 * len(self.names))
        words = []
        for name, *columns in zip(
            self.names, self.correlation, self.level, self.within, self.within_level
        ):
            over, level, within, within_level = columns
            places = ["over all heads"] * int(over > 0 and level <= bound)
            places += ["within layers"] * int(within > 0 and within_level <= bound)
            if places:
                words.append(f"{name} ({' and '.join(places)})")
        told = "; ".join(words) or "none of the scores"
        return (
            f"told from random orders: {told} (levels below {bound:.2g}, "
            f"{2 * len(self.names)} comparisons)"
        )

    _shown = _ROWS
    __repr__, _repr_html_, _to_dataset = presentation.METHODS

    def to_dataset(self):
        """All numbers with names, errors and units, and the names of the scores."""
        label = VARIABLES.attributes("head_score_name")
        return self._to_dataset().assign_coords(
            head_score_name=("head_score_name", list(self.names), label)
        )


def score_agreement(
    scores: Mapping[str, ArrayLike],
    differences: Float[np.ndarray, "n P"],
    heads: Annotated[Sequence[Count], "L"],
    *,
    resamples: Count = 1000,
) -> ScoreAgreement:
    """How scores agree with losses gained without heads; `Ablation.agreement`."""
    count = sum(heads)
    if not scores or len(differences) != count:
        raise ValueError(
            f"scores must not be empty, and differences have one row for each of "
            f"{count} heads; got {len(scores)} and {len(differences)}."
        )
    flat = lambda x: np.concatenate([np.ravel(part) for part in x])
    scores = {name: flat(values) for name, values in scores.items()}
    for name, values in scores.items():
        if np.shape(values) != (count,) or not np.isfinite(np.asarray(values)).all():
            raise ValueError(
                f"score {name!r} must have a finite number for each of {count} heads."
            )
    rng = np.random.default_rng(0)
    layers = np.split(np.arange(count), np.cumsum(heads)[:-1])
    examples = differences.shape[1]
    shares = rng.multinomial(examples, np.full(examples, 1 / examples), resamples)
    drawn = shares @ differences.T / examples
    within = [of_layer for of_layer in layers if len(of_layer) >= FEWEST]
    mean = differences.mean(axis=1)
    bound = LEVEL / (2 * len(scores))
    orders, columns = round(BELOW_LEVEL / bound), []
    for groups in ([np.arange(count)] if count >= FEWEST else [], within):
        mean_ranks, drawn_ranks = _ranks(mean[None], groups), _ranks(drawn, groups)
        # An order of the heads changes ranks alone, and losses have the same ones.
        of_chance = [
            rng.permuted(np.tile(of_group, (orders, 1)), axis=1)
            for of_group in mean_ranks
        ]
        for values in scores.values():
            ranks = _ranks(np.asarray(values, float)[None], groups)
            of_network = _correlation(ranks, mean_ranks)[0]
            beyond = abs(_correlation(ranks, of_chance)) >= abs(of_network) - 1e-12
            known = np.isfinite(of_network)
            errors = _correlation(ranks, drawn_ranks)
            columns.append(
                [
                    of_network,
                    np.std(errors, ddof=1) if known and resamples > 1 else np.nan,
                    (1 + beyond.sum()) / (1 + orders) if known else np.nan,
                ]
            )
    rows = np.hstack(np.split(np.array(columns), 2))
    return ScoreAgreement(tuple(scores), *rows.T)


def _ranks(values: Float[np.ndarray, "B n"], groups) -> list[np.ndarray]:
    """Ranks of every row in every group, of mean 0 and norm 1; NaN where all agree."""
    of_groups = []
    for of_group in groups:
        ranks = stats.rankdata(values[:, of_group], axis=1)
        ranks = ranks - ranks.mean(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            of_groups.append(ranks / np.linalg.norm(ranks, axis=1, keepdims=True))
    return of_groups


def _correlation(ranks, others) -> Float[np.ndarray, " B"]:
    """Rank correlation of one row with each of others, the mean over groups."""
    of_groups = [of_one[0] @ of_all.T for of_one, of_all in zip(ranks, others)]
    return np.mean(of_groups, axis=0) if of_groups else np.full(1, np.nan)
