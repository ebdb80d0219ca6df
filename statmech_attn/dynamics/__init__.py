"""Phases of any map or flow: Lyapunov spectra, recurrences, spectra."""

from statmech_attn.dynamics.flows import time_map
from statmech_attn.dynamics.lyapunov import lyapunov_spectrum, Spectrum
from statmech_attn.dynamics.phases import (
    as_in_paper,
    Classification,
    classify,
    Criteria,
    Evidence,
    PHASES,
    REASONS,
)
from statmech_attn.dynamics.rotation import (
    curve_rotation,
    Rotation,
    rotation_number,
    ROTATION_RESULTS,
    series_rotation,
)
from statmech_attn.dynamics.systems import Linearised, TangentSystem
from statmech_attn.dynamics.tongues import (
    drift_sign,
    Locking,
    locking,
    Tongue,
    tongue,
    TONGUE_RESULTS,
)


__all__ = [
    "as_in_paper",
    "Classification",
    "classify",
    "Criteria",
    "curve_rotation",
    "drift_sign",
    "Evidence",
    "Linearised",
    "Locking",
    "locking",
    "lyapunov_spectrum",
    "PHASES",
    "REASONS",
    "Rotation",
    "rotation_number",
    "ROTATION_RESULTS",
    "series_rotation",
    "Spectrum",
    "TangentSystem",
    "time_map",
    "Tongue",
    "tongue",
    "TONGUE_RESULTS",
]
