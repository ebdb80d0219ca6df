"""What rounding of kernels that are given hides, and the temperature that works.

The bounds are those of `compression` (docs/theory/bpkr.md, section 2).
"""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.compression import EPSILON
from statmech_attn.bpkr.posed.problem import Posed


ROUNDING = 8 * EPSILON  # of an entry of a kernel that is given, relative
KNOWN = 1e-2  # change by rounding of kernels up to which a number is known
STEPS = 60  # three of a decade, of a temperature that is refused
SMALLEST = 1e-30  # temperature from which one is looked for


def rounding_of_kernels(problem: Posed, U: Float[Array, "d d"]) -> float:
    """Error of the action's gradient at U_1 by rounding of kernels that are given."""
    rows, T = problem.rows, float(problem.temperature)
    K = np.asarray(rows.operator.kernel(U))
    alpha = np.linalg.solve(K + T * np.eye(len(K)), np.asarray(rows.y))
    squares = alpha @ alpha
    if problem.compressed is not None and problem.compressed.residual > 0:
        squares += float(problem.compressed.residual) / T / T if T > 0 else np.inf
    return float(_rounding_of_kernel(problem, U) * squares / problem.widths.max())


def rounding_of_predictor(problem: Posed, U: Float[Array, "d d"]) -> float:
    """Error by that rounding of f, over labels, and of its variance, over itself."""
    K = np.asarray(problem.rows.operator.kernel(U))
    smallest = max(np.linalg.eigvalsh(K)[0], 0.0) + float(problem.temperature)
    examples = problem.shape[0] * _rounding_of_kernel(problem, U)
    return examples / smallest if smallest > 0 else np.inf


def _rounding_of_kernel(problem: Posed, U: Float[Array, "d d"]) -> float:
    kernels: Any = problem.xi
    largest = float(jnp.einsum("aapp->p", kernels.blocks).max())
    return ROUNDING * largest * float(np.linalg.eigvalsh(np.asarray(U))[-1])


def require_known(
    problem: Posed, U: Float[Array, "d d"], rounding: Callable, what: str
) -> None:
    """Raise `ValueError` where rounding of kernels that are given decides.

    `rounding` is `rounding_of_kernels` or `rounding_of_predictor`; `what` is decided,
    for the message.
    """
    resolved = lambda T: rounding(problem.at(temperature=T), U) <= KNOWN
    refused = float(problem.temperature)
    if not isinstance(problem.xi, Kernels) or resolved(refused):
        return
    lowest = lowest_of(resolved, refused, _rounding_of_kernel(problem, U) / KNOWN)
    named = "" if lowest is None else f"; T = {lowest:.2g} works"
    raise ValueError(
        f"rounding of the kernels decides {what} at T = {refused:.3g}: it needs more "
        f"digits of them{named}."
    )


def lowest_of(
    works: Callable[[float], bool], refused: float, start: float
) -> float | None:
    """The lowest temperature above a refused one that works, while half of it does not.

    A number of two digits, which is one that was tried; None where there is none.  The
    search begins at `start`.
    """
    tried = lambda T: T > refused and works(T)
    step = 3 * math.ceil(math.log10(max(start, refused, SMALLEST)))
    above = range(step, step + STEPS)
    step = next((step for step in above if tried(_one_two_five(step))), None)
    if step is None:
        return None
    while tried(_one_two_five(step - 1)) and above.start - step < STEPS:
        step -= 1
    T = _one_two_five(step)
    return T / 2 if tried(T / 2) else T


def _one_two_five(step: int) -> float:
    """The numbers ... 0.5, 1, 2, 5, 10 ... by their step, from 1 at step 0."""
    return float(f"{(1, 2, 5)[step % 3]}e{step // 3}")
