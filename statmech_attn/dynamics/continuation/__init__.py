"""Continuation of fixed points and cycles of maps, stable and unstable."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics.continuation.arclength import (
        correct,
        Curve,
        follow,
        interpolate,
        Point,
    )
    from statmech_attn.dynamics.continuation.augmented_systems import locate, Located
    from statmech_attn.dynamics.continuation.bifurcation_diagram import (
        BifurcationDiagram,
        diagram,
        DiagramPlan,
        POINT_OF_CYCLE,
    )
    from statmech_attn.dynamics.continuation.branch_switching import cascade, switch
    from statmech_attn.dynamics.continuation.branches import (
        Branch,
        BranchPoint,
        follow_cycle,
        Solution,
    )
    from statmech_attn.dynamics.continuation.codimension_two import CODIMENSION_TWO
    from statmech_attn.dynamics.continuation.critical_curves import (
        CodimensionTwo,
        critical_curve,
        CriticalCurve,
        CriticalPoint,
        CURVE_RESULTS,
    )
    from statmech_attn.dynamics.continuation.cycles import Cycle, find_cycle
    from statmech_attn.dynamics.continuation.diagram_branches import DiagramBranch
    from statmech_attn.dynamics.continuation.diagram_curves import DiagramCurve
    from statmech_attn.dynamics.continuation.diagram_file import diagram_variables
    from statmech_attn.dynamics.continuation.extended_systems import CRITICAL
    from statmech_attn.dynamics.continuation.normal_forms import normal_form, NormalForm
    from statmech_attn.dynamics.continuation.problem import Problem
    from statmech_attn.dynamics.continuation.results import (
        CLOSED,
        LEFT_RANGE,
        NOT_CONVERGED,
        RESULTS,
    )
    from statmech_attn.dynamics.continuation.sensitivity import multipliers_at, orbit
    from statmech_attn.dynamics.continuation.special_points import KINDS, SpecialPoint
    from statmech_attn.dynamics.continuation.stroboscopic_map import Turns, turns_of
    from statmech_attn.dynamics.options import Settings


__all__ = [
    "Branch",
    "BranchPoint",
    "cascade",
    "CLOSED",
    "CODIMENSION_TWO",
    "CodimensionTwo",
    "correct",
    "CRITICAL",
    "critical_curve",
    "CriticalCurve",
    "CriticalPoint",
    "Curve",
    "CURVE_RESULTS",
    "Cycle",
    "BifurcationDiagram",
    "diagram",
    "diagram_variables",
    "DiagramBranch",
    "DiagramCurve",
    "DiagramPlan",
    "find_cycle",
    "follow",
    "follow_cycle",
    "interpolate",
    "KINDS",
    "LEFT_RANGE",
    "locate",
    "Located",
    "multipliers_at",
    "normal_form",
    "NormalForm",
    "NOT_CONVERGED",
    "orbit",
    "Point",
    "POINT_OF_CYCLE",
    "Problem",
    "RESULTS",
    "Settings",
    "Solution",
    "SpecialPoint",
    "switch",
    "Turns",
    "turns_of",
]
lazy.attach(__name__)
