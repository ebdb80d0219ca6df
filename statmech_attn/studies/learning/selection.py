"""Width and temperature by the evidence, beside the choice on validation examples.

A share of the training examples is held out at random, unless the task has a test set
called validation.  The evidence is that of the other labels, the validation error that
of the validation examples, and the test error, on the first test set, says how good
both choices are (`bpkr.model_selection`).
"""

import jax
import numpy as np

from statmech_attn.bpkr import Attended, LearningTask, model_selection, VALIDATION
from statmech_attn.montecarlo import posteriors
from statmech_attn.scan import Scan
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.learning.tables import ModelSelectionStudy


HELD = 0.2  # share of the training examples that is held out where nothing says so


def work(study: ModelSelectionStudy) -> Scan:
    """The model selection that a study asks for."""
    run, network = study.run, study.network
    grid = tasks.grid(network)
    if run.exact:
        posteriors.require_numpyro()
    split_key, key = jax.random.split(jax.random.key(run.seed))
    validation, rest = _parted(split_key, tasks.learning(study.task), run.validation)
    return model_selection(
        rest.posed(variances=network.variances, **grid.point(0)),
        *validation,
        grid=grid,
        key=key if run.exact else None,
        draws=run.draws,
        test=(rest.xi_test, rest.Y_test),
        about={"task": rest.description},
    )


def _parted(
    key, whole: LearningTask, share: float | None
) -> tuple[Attended, LearningTask]:
    """Validation examples, and what is learned from; both in the order of the task.

    `share` of the training examples is held out; None: the validation set of the task,
    or a fifth where it has none.
    """
    if share is None and VALIDATION in whole.sets:
        return whole.sets[VALIDATION], whole._replace(sets={})
    share, count = HELD if share is None else share, len(whole.Y)
    held = round(share * count)
    if not 0 < held < count:
        raise ValueError(
            f"run.validation: {share:g} of {count} training examples leaves none on "
            "one side."
        )
    order = np.asarray(jax.random.permutation(key, count))
    chosen, learned = np.sort(order[:held]), np.sort(order[held:])
    rest = whole._replace(xi=whole.xi[learned], Y=whole.Y[learned], sets={})
    return (whole.xi[chosen], whole.Y[chosen]), rest
