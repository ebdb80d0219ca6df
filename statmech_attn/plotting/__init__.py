"""Pictures of result files, drawn at the size at which they are printed."""

from statmech_attn.plotting.bifurcation import bifurcation_diagram
from statmech_attn.plotting.drawing import draw
from statmech_attn.plotting.phases import (
    classifier_disagreement,
    describe_phase,
    phase_diagram,
)
from statmech_attn.plotting.style import save


__all__ = [
    "bifurcation_diagram",
    "classifier_disagreement",
    "describe_phase",
    "draw",
    "phase_diagram",
    "save",
]
