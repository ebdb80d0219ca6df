r"""The temperature of each width, chosen by accuracy, and accuracies with their errors.

Two choices stand side by side: by the accuracy on validation classes, which no test
example enters, and the published one, by the accuracy on the very examples that are
then reported.  Among equals the lowest temperature is taken.

    accuracy_sets          (width, temperature, test_set)   a
    their error            $\sqrt{a (1 - a) / Q}$ for Q examples of a set, drawn anew
                           from the same classes
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from statmech_attn.studies.examples import Learning
from statmech_attn.studies.one_shot_sets import MAIN, VALIDATION


CHOICES = {"validation": VALIDATION, "published": MAIN}


def variables(found: dict[str, Any], made: Learning, temperatures) -> dict[str, Any]:
    """Chosen temperatures, accuracies there and errors, for networks and their limit.

    Args:
        found: `accuracy_sets` and `accuracy_sets_gp`, dimensions and values.
    """
    names, counts = list(made.sets), [y.size for _, y in made.sets.values()]
    result = {}
    for ending, axes in (("", ("width",)), ("_gp", ())):
        dims, sets = found[f"accuracy_sets{ending}"]
        chosen, accuracy = choose(sets, temperatures, names)
        where = (*axes, "choice", "test_set")
        result |= {
            f"accuracy_sets{ending}_stderr": (dims, stderr(sets, counts)),
            f"chosen_temperature{ending}": ((*axes, "choice"), chosen),
            f"accuracy_chosen{ending}": (where, accuracy),
            f"accuracy_chosen{ending}_stderr": (where, stderr(accuracy, counts)),
        }
    return result


def choose(
    sets: Float[np.ndarray, "*W T S"], temperatures, names: list[str]
) -> tuple[Float[np.ndarray, "*W 2"], Float[np.ndarray, "*W 2 S"]]:
    """Temperature and accuracies by each choice; NaN where no temperature has any.

    Example:
        >>> sets = np.array([[0.5, 0.6], [0.7, 0.5]])  # a row for each temperature
        >>> choose(sets, [0.1, 1.0], ["omniglot", "omniglot-validation"])[0].tolist()
        [0.1, 1.0]
    """
    chosen, accuracy = [], []
    for name in CHOICES.values():
        by = sets[..., names.index(name)]
        best = np.where(np.isnan(by), -np.inf, by).argmax(-1)
        there = np.take_along_axis(sets, best[..., None, None], -2)[..., 0, :]
        known = np.isfinite(by).any(-1)
        chosen.append(np.where(known, np.asarray(temperatures)[best], np.nan))
        accuracy.append(there)
    return np.stack(chosen, -1), np.stack(accuracy, -2)


def stderr(accuracy: Float[np.ndarray, "*W S"], counts) -> Float[np.ndarray, "*W S"]:
    """Binomial standard error of accuracies on sets of so many examples."""
    return np.sqrt(accuracy * (1 - accuracy) / np.asarray(counts))
