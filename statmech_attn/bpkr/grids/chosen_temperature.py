r"""The temperature of each width, chosen by accuracy, and accuracies with their errors.

Examples say by which of their test sets (`LearningTask.choices`).  Two choices stand
side by side: by the accuracy on a validation set, which no other test example enters,
where there is one, and the published one, by the accuracy on the very examples that are
then reported.  Among equals the lowest temperature is taken.
A choice at an end of its grid says so, since a better one may lie beyond.

    right                  (width, temperature, test_set, answer)   1 or 0, and NaN
                           beyond the examples of a set that has fewer than others
    accuracy_sets          (width, temperature, test_set)   a
    its error              binomial, of Q examples of a set, drawn anew from the same
                           source (`statistics.share_error`)
    chosen_at_end          (width, choice)   the lowest or highest of all temperatures
    accuracy_gain          (width, choice, test_set)   over the limit of large widths
    its error              of the difference on the same Q examples: smaller, since most
                           of them both get right or both get wrong
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from statmech_attn.bpkr.posed.quantities import ACCURACY_SETS
from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import paired_error, share_error


VARIABLES = Variables(
    ACCURACY_SETS.over("width test_set"),
    Variable(
        "accuracy_sets_gp", "test_set", "accuracy on a test set in the GP limit", "1",
        "accuracy", "_stderr", note="binomial error",
    ),
    Variable(
        "chosen_temperature", "width choice", "temperature with the highest accuracy",
        "1", "T", group="chosen",
    ),
    Variable(
        "chosen_temperature_gp", "choice",
        "temperature with the highest accuracy in the GP limit", "1", "T",
        group="chosen",
    ),
    Variable(
        "chosen_at_end", "width choice",
        "True: the chosen temperature is an end of the grid, and a better one may lie "
        "beyond", "1", "end",
    ),
    Variable(
        "chosen_at_end_gp", "choice",
        "True: the temperature chosen in the GP limit is an end of the grid", "1",
        "end",
    ),
    Variable(
        "accuracy_chosen", "width choice test_set",
        "accuracy at the chosen temperature", "1", "accuracy", "_stderr",
        group="chosen", note="binomial error",
    ),
    Variable(
        "accuracy_chosen_gp", "choice test_set",
        "accuracy in the GP limit at the chosen temperature", "1", "accuracy",
        "_stderr", group="chosen", note="binomial error",
    ),
    Variable(
        "accuracy_gain", "width choice test_set",
        "accuracy less that in the GP limit", "1", "Δ accuracy", "_stderr",
        group="chosen",
        note="each at its own chosen temperature; error of the difference on the same "
        "examples",
    ),
)  # fmt: skip


def variables(
    right: Float[np.ndarray, "W T S Q"],
    right_gp: Float[np.ndarray, "T S Q"],
    temperatures: Sequence[float],
    sets: Mapping[str, int],
    choices: Mapping[str, str],
) -> dict[str, Any]:
    """Accuracies and errors, chosen temperatures, and the gain over the GP limit.

    `right` and `right_gp` are 1 or 0 for every example, of networks and of their limit;
    NaN where that is not known, and beyond the examples of a set.  `sets` has the
    number of examples of every test set, `choices` the set that chooses, by the name of
    the choice.
    """
    result: dict[str, Any] = {}
    best, counts = {}, [*sets.values()]
    for ending, axes, answers in (("", ("width",), right), ("_gp", (), right_gp)):
        dims, where = (*axes, "temperature", "test_set"), (*axes, "choice", "test_set")
        chosen, best[ending] = choose(answers, temperatures, sets, choices)
        accuracy, at_best = shares(answers, counts), shares(best[ending], counts)
        result |= {
            f"accuracy_sets{ending}": (dims, accuracy),
            f"accuracy_sets{ending}_stderr": (dims, share_error(accuracy, counts)),
            f"chosen_temperature{ending}": ((*axes, "choice"), chosen),
            f"chosen_at_end{ending}": (
                (*axes, "choice"),
                np.isin(chosen, [min(temperatures), max(temperatures)]),
            ),
            f"accuracy_chosen{ending}": (where, at_best),
            f"accuracy_chosen{ending}_stderr": (where, share_error(at_best, counts)),
        }
    gain = best[""] - best["_gp"]
    errors = [
        paired_error(gain[..., place, :count]) for place, count in enumerate(counts)
    ]
    dims = "width", "choice", "test_set"
    return result | {
        "accuracy_gain": (dims, shares(gain, counts)),
        "accuracy_gain_stderr": (dims, np.stack(errors, -1)),
    }


def choose(
    right: Float[np.ndarray, "*W T S Q"],
    temperatures: Sequence[float],
    sets: Mapping[str, int],
    choices: Mapping[str, str],
) -> tuple[Float[np.ndarray, "*W C"], Float[np.ndarray, "*W C S Q"]]:
    """Temperature and answers by each choice; NaN where no temperature has any.

    Arguments as of `variables`.
    """
    chosen, chosen_at, names = [], [], [*sets]
    for name in choices.values():
        by = right[..., names.index(name), : sets[name]].mean(-1)
        best = np.where(np.isnan(by), -np.inf, by).argmax(-1)
        resolved = np.isfinite(by).any(-1)
        chosen.append(np.where(resolved, np.asarray(temperatures)[best], np.nan))
        index = best[..., None, None, None]
        chosen_at.append(np.take_along_axis(right, index, -3)[..., 0, :, :])
    return np.stack(chosen, -1), np.stack(chosen_at, -3)


def shares(
    answers: Float[np.ndarray, "*W S Q"], counts: Sequence[int]
) -> Float[np.ndarray, "*W S"]:
    """Share of right answers in every test set, of its first `counts` examples."""
    means = [answers[..., place, :count].mean(-1) for place, count in enumerate(counts)]
    return np.stack(means, -1)
