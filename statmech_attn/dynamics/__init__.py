"""Phases and attractors of any map or flow: spectra, recurrences, basins."""

from statmech_attn.dynamics.attractors import follow, Orbits
from statmech_attn.dynamics.basins import Attractors, find_attractors, wilson
from statmech_attn.dynamics.flows import time_map
from statmech_attn.dynamics.following import Map, Search
from statmech_attn.dynamics.lyapunov import lyapunov_spectrum, Spectrum
from statmech_attn.dynamics.matching import (
    identities,
    match_by_distance,
    match_by_flow,
    set_distance,
)
from statmech_attn.dynamics.phases import (
    as_in_paper,
    Classification,
    classify,
    Criteria,
    Evidence,
    PHASES,
    REASONS,
)
from statmech_attn.dynamics.sweeps import Hysteresis, hysteresis
from statmech_attn.dynamics.systems import Linearised, TangentSystem
from statmech_attn.dynamics.transients import (
    escape_rate,
    escape_times,
    EscapeRate,
    Survival,
    survival,
)


__all__ = [
    "as_in_paper",
    "Attractors",
    "Classification",
    "classify",
    "Criteria",
    "escape_rate",
    "escape_times",
    "EscapeRate",
    "Evidence",
    "find_attractors",
    "follow",
    "Hysteresis",
    "hysteresis",
    "identities",
    "Linearised",
    "lyapunov_spectrum",
    "Map",
    "match_by_distance",
    "match_by_flow",
    "Orbits",
    "PHASES",
    "REASONS",
    "Search",
    "set_distance",
    "Spectrum",
    "Survival",
    "survival",
    "TangentSystem",
    "time_map",
    "wilson",
]
