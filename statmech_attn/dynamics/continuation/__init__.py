"""Continuation of fixed points and cycles of maps, stable and unstable."""

from statmech_attn.dynamics.continuation.arclength import (
    correct,
    Curve,
    follow,
    interpolate,
    Point,
    Settings,
)
from statmech_attn.dynamics.continuation.codimension_two import CODIMENSION_TWO
from statmech_attn.dynamics.continuation.curves import (
    CodimensionTwo,
    critical_curve,
    CriticalCurve,
    CriticalPoint,
    CURVE_RESULTS,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import RESULTS


__all__ = [
    "CODIMENSION_TWO",
    "CodimensionTwo",
    "correct",
    "critical_curve",
    "CriticalCurve",
    "CriticalPoint",
    "CURVE_RESULTS",
    "Curve",
    "follow",
    "interpolate",
    "Point",
    "Problem",
    "RESULTS",
    "Settings",
]
