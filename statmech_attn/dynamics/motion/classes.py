"""The classes of motion that the sign of one exponent can tell apart.

A scan classifies every point twice: by all evidence (`phases.decide`), and by the
sign of the plain average of the largest exponent alone (`dynamics.paper_phase`), which
knows neither periods nor a second positive exponent.  They are compared in the classes
that both have.
"""

import numpy as np

from statmech_attn.dynamics.motion import phases as verdicts
from statmech_attn.options import WholeNumbers


CLASSES = tuple(verdicts.CLASSES)
UNDECIDED = -1


def classes(phases: WholeNumbers) -> np.ndarray:
    """The class of each phase, as an index into `CLASSES`, or `UNDECIDED`."""
    table = np.full(len(verdicts.PHASES), UNDECIDED)
    for number, codes in enumerate(verdicts.CLASSES.values()):
        table[list(codes)] = number
    return table[np.asarray(phases, int)]


def disagreement(
    phases: WholeNumbers, by_sign: WholeNumbers, failed: np.ndarray | bool = False
) -> np.ndarray:
    """Where two classifications differ: 1, 0, or `UNDECIDED` without a verdict."""
    decided = (classes(phases) != UNDECIDED) & ~np.asarray(failed, bool)
    differ = classes(phases) != classes(by_sign)
    return np.where(decided, differ.astype(int), UNDECIDED)
