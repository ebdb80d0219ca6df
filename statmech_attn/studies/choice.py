r"""The temperature of each width, chosen by accuracy, and accuracies with their errors.

Two choices stand side by side: by the accuracy on validation classes, which no test
example enters, and the published one, by the accuracy on the very examples that are
then reported.  Among equals the lowest temperature is taken.
A choice at an end of its grid says so, since a better one may lie beyond.

    right                  (width, temperature, test_set, test)   1 or 0
    accuracy_sets          (width, temperature, test_set)   a
    its error              $\sqrt{a (1 - a) / Q}$ for Q examples of a set, drawn anew
                           from the same images
    chosen_at_end          (width, choice)   the lowest or highest of all temperatures
    accuracy_gain          (width, choice, test_set)   over the limit of large widths
    its error              of the difference on the same Q examples: smaller, since most
                           of them both get right or both get wrong
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from statmech_attn.labels import Variable, Variables
from statmech_attn.studies.one_shot_sets import MAIN, VALIDATION


CHOICES = {"validation": VALIDATION, "published": MAIN}
VARIABLES = Variables(
    Variable(
        "accuracy_sets", "width test_set", "share of a test set with the right sign",
        "1", "accuracy", "_stderr", note="binomial error",
    ),
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
        "tasks",
    ),
)  # fmt: skip


def variables(
    right: Float[np.ndarray, "W T S Q"],
    right_gp: Float[np.ndarray, "T S Q"],
    temperatures: Sequence[float],
    names: list[str],
) -> dict[str, Any]:
    """Accuracies and errors, chosen temperatures, and the gain over the limit.

    Args:
        right, right_gp: whether an example is answered rightly, 1 or 0, by networks and
            by their limit; NaN where that is not known.
        names: of the test sets.
    """
    result: dict[str, Any] = {}
    best, Q = {}, right.shape[-1]
    for ending, axes, answers in (("", ("width",), right), ("_gp", (), right_gp)):
        dims, where = (*axes, "temperature", "test_set"), (*axes, "choice", "test_set")
        chosen, best[ending] = choose(answers, temperatures, names)
        accuracy, at_best = answers.mean(-1), best[ending].mean(-1)
        result |= {
            f"accuracy_sets{ending}": (dims, accuracy),
            f"accuracy_sets{ending}_stderr": (dims, stderr(accuracy, Q)),
            f"chosen_temperature{ending}": ((*axes, "choice"), chosen),
            f"chosen_at_end{ending}": (
                (*axes, "choice"),
                np.isin(chosen, [min(temperatures), max(temperatures)]),
            ),
            f"accuracy_chosen{ending}": (where, at_best),
            f"accuracy_chosen{ending}_stderr": (where, stderr(at_best, Q)),
        }
    gain = best[""] - best["_gp"]
    return result | {
        "accuracy_gain": (("width", "choice", "test_set"), gain.mean(-1)),
        "accuracy_gain_stderr": (
            ("width", "choice", "test_set"),
            gain.std(-1) / np.sqrt(Q),
        ),
    }


def choose(
    right: Float[np.ndarray, "*W T S Q"], temperatures, names: list[str]
) -> tuple[Float[np.ndarray, "*W 2"], Float[np.ndarray, "*W 2 S Q"]]:
    """Temperature and answers by each choice; NaN where no temperature has any.

    Example:
        >>> import numpy as np
        >>> right = np.array([[[1, 0], [1, 0]], [[1, 1], [0, 0]]])  # T, S, Q
        >>> choose(right, [0.1, 1.0], ["omniglot-validation", "omniglot"])[0].tolist()
        [1.0, 0.1]
    """
    chosen, there = [], []
    for name in CHOICES.values():
        by = right[..., names.index(name), :].mean(-1)
        best = np.where(np.isnan(by), -np.inf, by).argmax(-1)
        known = np.isfinite(by).any(-1)
        chosen.append(np.where(known, np.asarray(temperatures)[best], np.nan))
        index = best[..., None, None, None]
        there.append(np.take_along_axis(right, index, -3)[..., 0, :, :])
    return np.stack(chosen, -1), np.stack(there, -3)


def stderr(accuracy: Float[np.ndarray, "*W"], count: int) -> Float[np.ndarray, "*W"]:
    """Binomial standard error of accuracies on so many examples."""
    return np.sqrt(accuracy * (1 - accuracy) / count)
