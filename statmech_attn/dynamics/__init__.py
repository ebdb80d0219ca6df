"""Any map or flow: exponents, phases, attractors, continuation, chaos indicators."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics import (
        basins as basins,
        continuation as continuation,
        cycles as cycles,
        diagrams as diagrams,
        frames as frames,
        lyapunov as lyapunov,
        phases as phases,
        settled_orbits as settled_orbits,
        timeseries as timeseries,
        tracing as tracing,
    )
    from statmech_attn.dynamics.alignment import Alignment as Alignment, gali as gali
    from statmech_attn.dynamics.attractor_matching import (
        match_attractors as match_attractors,
    )
    from statmech_attn.dynamics.basin_borders import (
        basin_entropy as basin_entropy,
        BasinEntropy as BasinEntropy,
    )
    from statmech_attn.dynamics.basin_diagram import BasinDiagram as BasinDiagram
    from statmech_attn.dynamics.basin_variables import (
        basin_variables as basin_variables,
    )
    from statmech_attn.dynamics.basins import (
        arrival_rate as arrival_rate,
        Attractors as Attractors,
        distinguish as distinguish,
        find_attractors as find_attractors,
        most_common as most_common,
        wilson as wilson,
    )
    from statmech_attn.dynamics.classification import (
        Classification as Classification,
        classify as classify,
    )
    from statmech_attn.dynamics.coordinates import Coordinates as Coordinates
    from statmech_attn.dynamics.covariant_diagram import (
        CovariantDiagram as CovariantDiagram,
    )
    from statmech_attn.dynamics.covariant_vectors import (
        covariant_vectors as covariant_vectors,
        CovariantVectors as CovariantVectors,
    )
    from statmech_attn.dynamics.cycles import (
        cycle_spectrum as cycle_spectrum,
        CycleSpectrum as CycleSpectrum,
    )
    from statmech_attn.dynamics.diagrams.diagram import diagram as diagram
    from statmech_attn.dynamics.diagrams.point_lists import point_list as point_list
    from statmech_attn.dynamics.edges import (
        Edge as Edge,
        EDGE_RESULTS as EDGE_RESULTS,
        track_edge as track_edge,
    )
    from statmech_attn.dynamics.evidence import (
        ZERO_ONE_RESULTS as ZERO_ONE_RESULTS,
        zero_one_test as zero_one_test,
        ZeroOne as ZeroOne,
    )
    from statmech_attn.dynamics.finite_time import (
        finite_time_exponents as finite_time_exponents,
        FiniteTimeExponents as FiniteTimeExponents,
    )
    from statmech_attn.dynamics.flows import (
        driven_flow as driven_flow,
        flow as flow,
        flow_spectrum as flow_spectrum,
        per_unit_time as per_unit_time,
    )
    from statmech_attn.dynamics.layers import (
        depth_exponents as depth_exponents,
        DepthExponents as DepthExponents,
        layered as layered,
    )
    from statmech_attn.dynamics.lyapunov import (
        lyapunov_spectrum as lyapunov_spectrum,
        Spectrum as Spectrum,
    )
    from statmech_attn.dynamics.matching import (
        distances as distances,
        identities as identities,
        match_by_distance as match_by_distance,
        match_by_flow as match_by_flow,
        resolution as resolution,
        set_distance as set_distance,
    )
    from statmech_attn.dynamics.observables import (
        observable_names as observable_names,
        OBSERVABLES as OBSERVABLES,
    )
    from statmech_attn.dynamics.options import (
        BasinPlan as BasinPlan,
        Criteria as Criteria,
        Search as Search,
    )
    from statmech_attn.dynamics.orbit_follower import Follower as Follower, take as take
    from statmech_attn.dynamics.orbits import orbit as orbit
    from statmech_attn.dynamics.orthonormal import (
        orthonormalise as orthonormalise,
        safe_log as safe_log,
    )
    from statmech_attn.dynamics.phases import (
        as_in_paper as as_in_paper,
        Evidence as Evidence,
        PHASES as PHASES,
        REASONS as REASONS,
    )
    from statmech_attn.dynamics.plane_basins import PlaneBasins as PlaneBasins
    from statmech_attn.dynamics.rotation import (
        curve_rotation as curve_rotation,
        Rotation as Rotation,
        rotation_number as rotation_number,
        ROTATION_RESULTS as ROTATION_RESULTS,
        series_rotation as series_rotation,
    )
    from statmech_attn.dynamics.sections import (
        Return as Return,
        RETURN_RESULTS as RETURN_RESULTS,
        Returns as Returns,
        returns as returns,
        section as section,
    )
    from statmech_attn.dynamics.settled_orbits import (
        follow_with as follow_with,
        Orbits as Orbits,
        settle as settle,
    )
    from statmech_attn.dynamics.spectra import (
        autocorrelation as autocorrelation,
        power_spectrum as power_spectrum,
    )
    from statmech_attn.dynamics.starts import (
        lanes_of as lanes_of,
        starts_of as starts_of,
    )
    from statmech_attn.dynamics.sweeps import (
        Hysteresis as Hysteresis,
        hysteresis as hysteresis,
        intervals as intervals,
    )
    from statmech_attn.dynamics.systems import (
        Linearised as Linearised,
        System as System,
        TangentSystem as TangentSystem,
    )
    from statmech_attn.dynamics.trajectories import (
        Trajectories as Trajectories,
        trajectories as trajectories,
    )
    from statmech_attn.dynamics.transformers import (
        growth_shares as growth_shares,
        GrowthShares as GrowthShares,
        layer_norm as layer_norm,
        looped as looped,
        rms_norm as rms_norm,
        soft_feedback as soft_feedback,
        transformer_block as transformer_block,
    )
    from statmech_attn.dynamics.transients import (
        escape_rate as escape_rate,
        escape_times as escape_times,
        EscapeRate as EscapeRate,
        Survival as Survival,
        survival as survival,
    )
    from statmech_attn.dynamics.unstable_cycles import (
        CYCLE_RESULTS as CYCLE_RESULTS,
        unstable_cycles as unstable_cycles,
        UnstableCycles as UnstableCycles,
    )


lazy.attach(__name__)
