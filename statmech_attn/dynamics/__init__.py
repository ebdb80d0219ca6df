"""Any map or flow: exponents, phases, attractors, continuation, chaos indicators."""

from statmech_attn.dynamics import continuation
from statmech_attn.dynamics.alignment import Alignment, gali
from statmech_attn.dynamics.attractors import Orbits, settle
from statmech_attn.dynamics.basins import Attractors, find_attractors, wilson
from statmech_attn.dynamics.cycles import cycle_spectrum, CycleSpectrum
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
from statmech_attn.dynamics.following import Map, Search
from statmech_attn.dynamics.lyapunov import lyapunov_spectrum, Spectrum
from statmech_attn.dynamics.matching import (
    identities,
    match_by_distance,
    match_by_flow,
    set_distance,
)
from statmech_attn.dynamics.orbits import orbit
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
from statmech_attn.dynamics.sweeps import Hysteresis, hysteresis
from statmech_attn.dynamics.systems import Linearised, TangentSystem
from statmech_attn.dynamics.tongues import (
    drift_sign,
    Locking,
    locking,
    Tongue,
    tongue,
    TONGUE_RESULTS,
)
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
    "correlation_dimension",
    "CorrelationDimension",
    "Criteria",
    "curve_rotation",
    "cycle_spectrum",
    "CycleSpectrum",
    "delay_embedding",
    "DIMENSION_RESULTS",
    "drift_sign",
    "escape_rate",
    "escape_times",
    "EscapeRate",
    "Evidence",
    "find_attractors",
    "finite_time_exponents",
    "FiniteTimeExponents",
    "flow_spectrum",
    "gali",
    "hysteresis",
    "Hysteresis",
    "identities",
    "Linearised",
    "locking",
    "Locking",
    "lyapunov_spectrum",
    "Map",
    "match_by_distance",
    "match_by_flow",
    "orbit",
    "Orbits",
    "per_unit_time",
    "PHASES",
    "REASONS",
    "Rotation",
    "rotation_number",
    "ROTATION_RESULTS",
    "Search",
    "series_rotation",
    "set_distance",
    "settle",
    "Spectrum",
    "stroboscopic_map",
    "survival",
    "Survival",
    "TangentSystem",
    "time_map",
    "Tongue",
    "tongue",
    "TONGUE_RESULTS",
    "wilson",
    "ZERO_ONE_RESULTS",
    "zero_one_test",
    "ZeroOne",
]
