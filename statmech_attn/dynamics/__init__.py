"""Phases of any map or flow: Lyapunov spectra, recurrences, spectra, continuation."""

from statmech_attn.dynamics import continuation
from statmech_attn.dynamics.alignment import Alignment, gali
from statmech_attn.dynamics.dimension import (
    correlation_dimension,
    CorrelationDimension,
    delay_embedding,
    DIMENSION_RESULTS,
)
from statmech_attn.dynamics.evidence import ZERO_ONE_RESULTS, zero_one_test, ZeroOne
from statmech_attn.dynamics.finite_time import (
    finite_time_exponents,
    FiniteTimeExponents,
)
from statmech_attn.dynamics.flows import (
    flow_spectrum,
    per_unit_time,
    stroboscopic_map,
    time_map,
)
from statmech_attn.dynamics.lyapunov import lyapunov_spectrum, Spectrum
from statmech_attn.dynamics.orbits import orbit
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
    "Alignment",
    "as_in_paper",
    "Attractors",
    "Classification",
    "classify",
    "continuation",
    "Criteria",
    "curve_rotation",
    "drift_sign",
    "correlation_dimension",
    "CorrelationDimension",
    "Criteria",
    "delay_embedding",
    "DIMENSION_RESULTS",
    "Evidence",
    "finite_time_exponents",
    "FiniteTimeExponents",
    "flow_spectrum",
    "gali",
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
    "Locking",
    "locking",
    "lyapunov_spectrum",
    "orbit",
    "per_unit_time",
    "PHASES",
    "REASONS",
    "Rotation",
    "rotation_number",
    "ROTATION_RESULTS",
    "series_rotation",
    "Spectrum",
    "stroboscopic_map",
    "TangentSystem",
    "time_map",
    "Tongue",
    "tongue",
    "TONGUE_RESULTS",
    "ZERO_ONE_RESULTS",
    "zero_one_test",
    "ZeroOne",
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
