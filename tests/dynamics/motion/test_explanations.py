"""Every phase of a stored point is given a reason."""

import numpy as np
import pytest

from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.motion.explanations import Verdict


@pytest.mark.parametrize("phase", PHASES)
def test_no_phase_is_left_without_a_reason(phase):
    verdict = Verdict(
        phase=phase,
        period=4,
        rotation_number=0.25,
        rotation_error=0.01,
        oriented=True,
        reasons=["no evidence"] if phase == "undetermined" else [],
        exponents=np.array([0.1]),
        stderr=np.array([0.01]),
        steps=100,
        recurrence_error=1e-9,
        positive=1,
        zeros=0,
        zero_one=0.9,
        broadband=0.1,
        digits=5.0,
        quarters=0.0,
        drift=0.0,
        unit="token",
    )
    assert verdict.sentence
