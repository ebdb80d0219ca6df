"""Any map or flow: exponents, phases, attractors, continuation, chaos indicators."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics import (
        basins,
        continuation,
        cycles,
        diagrams,
        dimension,
        frames,
        lyapunov,
        phases,
        settled_orbits,
        timeseries,
    )
    from statmech_attn.dynamics.alignment import Alignment, gali
    from statmech_attn.dynamics.attractor_matching import match_attractors
    from statmech_attn.dynamics.basin_diagram import BasinDiagram
    from statmech_attn.dynamics.basin_variables import basin_variables
    from statmech_attn.dynamics.basins import (
        arrival_rate,
        Attractors,
        distinguish,
        find_attractors,
        most_common,
        wilson,
    )
    from statmech_attn.dynamics.coordinates import Coordinates
    from statmech_attn.dynamics.cycles import cycle_spectrum, CycleSpectrum
    from statmech_attn.dynamics.diagrams.diagram import diagram
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
        driven_flow,
        flow,
        flow_spectrum,
        per_unit_time,
    )
    from statmech_attn.dynamics.lyapunov import lyapunov_spectrum, Spectrum
    from statmech_attn.dynamics.matching import (
        directed_distance,
        distances,
        identities,
        match_by_distance,
        match_by_flow,
        resolution,
        set_distance,
    )
    from statmech_attn.dynamics.observables import (
        label_observables,
        observable_names,
        OBSERVABLES,
    )
    from statmech_attn.dynamics.options import BasinPlan, Criteria, Search
    from statmech_attn.dynamics.orbit_follower import Follower, take
    from statmech_attn.dynamics.orbits import orbit
    from statmech_attn.dynamics.orthonormal import orthonormalise, safe_log
    from statmech_attn.dynamics.phases import (
        as_in_paper,
        Classification,
        classify,
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
    from statmech_attn.dynamics.settled_orbits import follow_with, Orbits, settle
    from statmech_attn.dynamics.spectra import autocorrelation, power_spectrum
    from statmech_attn.dynamics.starts import lanes_of, starts_of
    from statmech_attn.dynamics.sweeps import (
        Hysteresis,
        hysteresis,
        intervals,
        sets_differ,
    )
    from statmech_attn.dynamics.systems import Linearised, System, TangentSystem
    from statmech_attn.dynamics.tongues import (
        drift_sign,
        Locking,
        locking,
        Tongue,
        tongue,
        TONGUE_RESULTS,
    )
    from statmech_attn.dynamics.trajectories import Trajectories, trajectories
    from statmech_attn.dynamics.transients import (
        escape_rate,
        escape_times,
        EscapeRate,
        Survival,
        survival,
    )


__all__ = [
    "Alignment",
    "arrival_rate",
    "as_in_paper",
    "Attractors",
    "settled_orbits",
    "autocorrelation",
    "basin_variables",
    "BasinDiagram",
    "BasinPlan",
    "basins",
    "Classification",
    "classify",
    "continuation",
    "Coordinates",
    "correlation_dimension",
    "CorrelationDimension",
    "Criteria",
    "curve_rotation",
    "cycle_spectrum",
    "cycles",
    "CycleSpectrum",
    "delay_embedding",
    "diagram",
    "diagrams",
    "dimension",
    "DIMENSION_RESULTS",
    "directed_distance",
    "distances",
    "distinguish",
    "drift_sign",
    "driven_flow",
    "escape_rate",
    "escape_times",
    "EscapeRate",
    "Evidence",
    "find_attractors",
    "finite_time_exponents",
    "FiniteTimeExponents",
    "flow",
    "flow_spectrum",
    "follow_with",
    "Follower",
    "frames",
    "gali",
    "Hysteresis",
    "hysteresis",
    "identities",
    "intervals",
    "label_observables",
    "lanes_of",
    "Linearised",
    "Locking",
    "locking",
    "lyapunov",
    "lyapunov_spectrum",
    "match_attractors",
    "match_by_distance",
    "match_by_flow",
    "most_common",
    "observable_names",
    "OBSERVABLES",
    "orbit",
    "Orbits",
    "orthonormalise",
    "per_unit_time",
    "PHASES",
    "phases",
    "power_spectrum",
    "REASONS",
    "resolution",
    "Rotation",
    "rotation_number",
    "ROTATION_RESULTS",
    "safe_log",
    "Search",
    "series_rotation",
    "set_distance",
    "sets_differ",
    "settle",
    "Spectrum",
    "starts_of",
    "Survival",
    "survival",
    "System",
    "take",
    "TangentSystem",
    "timeseries",
    "Tongue",
    "tongue",
    "TONGUE_RESULTS",
    "Trajectories",
    "trajectories",
    "wilson",
    "ZERO_ONE_RESULTS",
    "zero_one_test",
    "ZeroOne",
]
lazy.attach(__name__)
