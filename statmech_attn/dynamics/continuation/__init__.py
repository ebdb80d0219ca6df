"""Continuation of fixed points and cycles of maps, stable and unstable."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.dynamics.continuation.arclength import Curve, follow, Point
    from statmech_attn.dynamics.continuation.bifurcation_diagram.branches import (
        DiagramBranch as DiagramBranch,
    )
    from statmech_attn.dynamics.continuation.bifurcation_diagram.curves import (
        DiagramCurve as DiagramCurve,
    )
    from statmech_attn.dynamics.continuation.bifurcation_diagram.diagram import (
        BifurcationDiagram as BifurcationDiagram,
        diagram as diagram,
        DiagramPlan as DiagramPlan,
        POINT_OF_CYCLE,
    )
    from statmech_attn.dynamics.continuation.bifurcation_diagram.labels import (
        diagram_variables,
    )
    from statmech_attn.dynamics.continuation.bifurcation_diagram.saved_points import (
        at_point as at_point,
    )
    from statmech_attn.dynamics.continuation.bifurcation_diagram.turns import (
        Turns,
        turns_of,
    )
    from statmech_attn.dynamics.continuation.branch_switching import (
        cascade as cascade,
        switch as switch,
    )
    from statmech_attn.dynamics.continuation.branches import (
        Branch as Branch,
        BranchPoint as BranchPoint,
        follow_cycle as follow_cycle,
        Solution as Solution,
    )
    from statmech_attn.dynamics.continuation.cycles import (
        Cycle as Cycle,
        find_cycle as find_cycle,
    )
    from statmech_attn.dynamics.continuation.normal_forms import (
        NormalForm as NormalForm,
    )
    from statmech_attn.dynamics.continuation.problem import Problem as Problem
    from statmech_attn.dynamics.continuation.results import (
        CLOSED,
        NOT_CONVERGED,
        RESULTS as RESULTS,
    )
    from statmech_attn.dynamics.continuation.special_points import (
        KINDS as KINDS,
        SpecialPoint as SpecialPoint,
    )
    from statmech_attn.dynamics.continuation.two_parameters.codimension_two import (
        CODIMENSION_TWO as CODIMENSION_TWO,
    )
    from statmech_attn.dynamics.continuation.two_parameters.critical_curves import (
        CodimensionTwo as CodimensionTwo,
        critical_curve as critical_curve,
        CriticalCurve as CriticalCurve,
        CriticalPoint as CriticalPoint,
        CURVE_RESULTS as CURVE_RESULTS,
    )
    from statmech_attn.dynamics.continuation.two_parameters.extended_systems import (
        CRITICAL,
    )
    from statmech_attn.dynamics.options import Settings as Settings


lazy.attach(__name__)
