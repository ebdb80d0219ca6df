"""Phases of any map or flow: Lyapunov spectra, recurrences, spectra, continuation."""

from statmech_attn.dynamics import continuation
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
from statmech_attn.dynamics.systems import Linearised, TangentSystem


__all__ = [
    "as_in_paper",
    "Classification",
    "classify",
    "continuation",
    "Criteria",
    "Evidence",
    "Linearised",
    "lyapunov_spectrum",
    "PHASES",
    "REASONS",
    "Spectrum",
    "TangentSystem",
    "time_map",
]
