"""Two classifiers are compared in the classes that both can tell apart."""

import numpy as np

from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.motion.classes import CLASSES, classes, disagreement


def codes(*names):
    return np.array([PHASES.index(name) for name in names])


def test_fixed_is_periodic_and_hyperchaotic_is_chaotic():
    found = classes(codes("fixed", "periodic", "quasiperiodic", "hyperchaotic"))
    assert [CLASSES[i] for i in found] == [
        "fixed or periodic",
        "fixed or periodic",
        "quasiperiodic",
        "chaotic",
    ]


def test_a_point_without_a_verdict_neither_agrees_nor_differs():
    ours = codes("fixed", "transient", "undetermined", "diverged", "chaotic", "chaotic")
    signs = codes("periodic", *["chaotic"] * 3, "periodic", "periodic")
    failed = np.array([False] * 5 + [True])
    assert disagreement(ours, signs, failed).tolist() == [0, -1, -1, -1, 1, -1]
