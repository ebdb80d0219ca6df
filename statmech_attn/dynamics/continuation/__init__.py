"""Continuation of fixed points and cycles of maps, stable and unstable."""

from statmech_attn.dynamics.continuation.arclength import (
    correct,
    Curve,
    follow,
    interpolate,
    Point,
    Settings,
)
from statmech_attn.dynamics.continuation.problem import Problem
from statmech_attn.dynamics.continuation.results import RESULTS


__all__ = [
    "correct",
    "Curve",
    "follow",
    "interpolate",
    "Point",
    "Problem",
    "RESULTS",
    "Settings",
]
