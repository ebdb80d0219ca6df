"""How a Newton iteration or a continuation ended.

A code is an index into `RESULTS`; whatever ended the run, the last good point is kept.
"""

from statmech_attn.labels import CodeWords


(
    UNFINISHED,
    CONVERGED,
    LEFT_RANGE,
    CLOSED,
    MAX_POINTS,
    NOT_CONVERGED,
    DIVERGED,
    NOT_A_NUMBER,
    NOT_DIFFERENTIABLE,
) = range(9)

RESULTS = CodeWords(
    "unfinished",  # stopped by the caller
    "converged",
    "left_range",  # the next point lies outside the allowed range
    "closed",  # the curve came back to its start
    "max_points",
    "not_converged",  # Newton failed at the smallest step
    "diverged",  # the map, or the curve itself, ran off to infinity
    "not_a_number",  # the map returned NaN
    "not_differentiable",  # the Jacobian jumps or is not finite
)
