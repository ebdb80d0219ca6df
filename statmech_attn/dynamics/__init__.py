"""Any map or flow: exponents, phases, attractors, continuation, chaos indicators."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics import (
        continuation as continuation,
        diagrams as diagrams,
    )
    from statmech_attn.dynamics.along_parameter.attractor_matching import (
        match_attractors as match_attractors,
    )
    from statmech_attn.dynamics.along_parameter.basin_diagram import (
        BasinDiagram as BasinDiagram,
    )
    from statmech_attn.dynamics.along_parameter.basin_variables import basin_variables
    from statmech_attn.dynamics.along_parameter.trajectories import (
        Trajectories as Trajectories,
        trajectories as trajectories,
    )
    from statmech_attn.dynamics.attractors import basins
    from statmech_attn.dynamics.attractors.basin_borders import (
        basin_entropy as basin_entropy,
        BasinEntropy as BasinEntropy,
    )
    from statmech_attn.dynamics.attractors.basins import (
        arrival_rate as arrival_rate,
        Attractors as Attractors,
        distinguish,
        find_attractors as find_attractors,
        wilson as wilson,
    )
    from statmech_attn.dynamics.attractors.edges import (
        Edge as Edge,
        EDGE_RESULTS as EDGE_RESULTS,
        track_edge as track_edge,
    )
    from statmech_attn.dynamics.attractors.orbit_follower import take as take
    from statmech_attn.dynamics.attractors.plane_basins import (
        PlaneBasins as PlaneBasins,
    )
    from statmech_attn.dynamics.attractors.settled_orbits import (
        Orbits as Orbits,
        settle as settle,
    )
    from statmech_attn.dynamics.attractors.transients import (
        escape_rate as escape_rate,
        escape_times as escape_times,
        EscapeRate as EscapeRate,
        Survival as Survival,
        survival as survival,
    )
    from statmech_attn.dynamics.blocks.layers import (
        depth_exponents as depth_exponents,
        DepthExponents as DepthExponents,
        layered as layered,
    )
    from statmech_attn.dynamics.blocks.transformers import (
        growth_shares as growth_shares,
        GrowthShares as GrowthShares,
        layer_norm as layer_norm,
        looped as looped,
        rms_norm as rms_norm,
        soft_feedback as soft_feedback,
        transformer_block as transformer_block,
    )
    from statmech_attn.dynamics.diagrams.diagram import diagram as diagram
    from statmech_attn.dynamics.diagrams.point_lists import point_list as point_list
    from statmech_attn.dynamics.exponents import cycles, frames, lyapunov
    from statmech_attn.dynamics.exponents.alignment import (
        Alignment as Alignment,
        gali as gali,
    )
    from statmech_attn.dynamics.exponents.covariant_vectors import (
        covariant_vectors as covariant_vectors,
        CovariantVectors as CovariantVectors,
    )
    from statmech_attn.dynamics.exponents.cycles import (
        cycle_spectrum as cycle_spectrum,
        CycleSpectrum as CycleSpectrum,
    )
    from statmech_attn.dynamics.exponents.finite_time import (
        finite_time_exponents as finite_time_exponents,
        FiniteTimeExponents as FiniteTimeExponents,
    )
    from statmech_attn.dynamics.exponents.lyapunov import (
        lyapunov_spectrum as lyapunov_spectrum,
    )
    from statmech_attn.dynamics.exponents.of_flows import (
        flow_spectrum as flow_spectrum,
        per_unit_time as per_unit_time,
    )
    from statmech_attn.dynamics.exponents.spectrum import Spectrum as Spectrum
    from statmech_attn.dynamics.maps import catalogue as catalogue, tracing
    from statmech_attn.dynamics.maps.coordinates import Coordinates
    from statmech_attn.dynamics.maps.flows import (
        driven_flow as driven_flow,
        flow as flow,
    )
    from statmech_attn.dynamics.maps.observables import observable_names
    from statmech_attn.dynamics.maps.orbits import orbit as orbit
    from statmech_attn.dynamics.maps.orthonormal import orthonormalise, safe_log
    from statmech_attn.dynamics.maps.sections import (
        Return as Return,
        RETURN_RESULTS as RETURN_RESULTS,
        Returns as Returns,
        returns as returns,
        section as section,
    )
    from statmech_attn.dynamics.maps.starts import (
        lanes_of as lanes_of,
        starts_of as starts_of,
    )
    from statmech_attn.dynamics.maps.systems import (
        Linearised,
        System as System,
        TangentSystem as TangentSystem,
    )
    from statmech_attn.dynamics.motion import phases, timeseries as timeseries
    from statmech_attn.dynamics.motion.chaos_tests import zero_one
    from statmech_attn.dynamics.motion.classification import (
        Classification as Classification,
        classify as classify,
    )
    from statmech_attn.dynamics.motion.phases import (
        Evidence as Evidence,
        paper_phase as paper_phase,
        PHASES as PHASES,
        REASONS,
    )
    from statmech_attn.dynamics.motion.rotation import (
        curve_rotation as curve_rotation,
        Rotation as Rotation,
        rotation_number as rotation_number,
        ROTATION_RESULTS as ROTATION_RESULTS,
        series_rotation as series_rotation,
    )
    from statmech_attn.dynamics.motion.spectra import (
        autocorrelation as autocorrelation,
        power_spectrum as power_spectrum,
    )
    from statmech_attn.dynamics.options import (
        BasinPlan as BasinPlan,
        Criteria as Criteria,
        Search as Search,
    )
    from statmech_attn.dynamics.unstable_cycles import (
        CYCLE_RESULTS as CYCLE_RESULTS,
        unstable_cycles as unstable_cycles,
        UnstableCycles as UnstableCycles,
    )


lazy.attach(__name__, modules=["timeseries"])
