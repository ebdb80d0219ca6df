r"""Averages of a map from its cycles (docs/theory/indicators.md, section 8).

With $|\Lambda_p|$ the product of the expanding multipliers of a cycle of $n_p$ steps
and $A_p = n_p \lambda_p$ the growth of its largest one, the dynamical zeta function and
the spectral determinant are

    $1/\zeta = \prod_p (1 - z^{n_p} e^{\beta A_p} / |\Lambda_p|)$
    $F = \exp(-\sum_p \sum_r z^{r n_p} e^{r \beta A_p} / (r |\det(1 - J_p^r)|))$

(Artuso, Aurell & Cvitanović, Nonlinearity 3, 325, 1990).  Either is expanded in powers
of z up to the longest period that is known, $\sum_n c_n z^n$.  Its smallest zero z
gives the escape rate, ln z at $\beta$ = 0, and the exponent, the derivative of -ln z by
$\beta$.  The zeta function with all weights 1 gives the topological entropy, -ln z.

Every truncation has its own values.  They converge exponentially where a finite set of
symbols describes all orbits (F faster still, where the map is smooth), and slowly where
there are tangencies, as on Hénon's attractor.
"""

from typing import Literal

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from statmech_attn import presentation
from statmech_attn.dynamics.unstable_cycles import UnstableCycles
from statmech_attn.labels import STEP, Variable, Variables


REAL = 1e-8  # imaginary part of a zero that counts as real


def _rows(name: str, words: str, symbol: str, values: str) -> tuple[Variable, ...]:
    """The last value with its error, and those of all truncations."""
    every = Variable(
        f"{name}_by_order",
        "order",
        f"{words} of a truncation",
        "nat / {unit}",
        symbol,
        value=values,
        line=False,
    )
    last = every._replace(
        name=name,
        dims="",
        long_name=words,
        line=True,
        parts="_error",
        value=lambda expansion: getattr(expansion, values)[-1],
        error=lambda expansion: expansion.error(getattr(expansion, values)),
    )
    return last, every


_ROWS = (
    *_rows("lyapunov", "largest Lyapunov exponent", "λ_1", "exponents"),
    *_rows("entropy", "topological entropy", "h", "entropies"),
    *_rows("escape_rate", "escape rate", "γ", "escape_rates"),
    Variable(
        "order", "order", "longest period of a truncation", "{unit}", "n", line=False
    ),
)
VARIABLES = Variables(*(row._replace(group="") for row in _ROWS))


class CycleExpansion(eqx.Module):
    """Averages from all cycles of at most n steps, for every n.

    NaN where a truncation has no real zero.

    Attributes:
        order: n = 1, 2, ..., steps.
        exponents: largest Lyapunov exponent, nats per step.
        entropies: topological entropy, nats per step.
        escape_rates: rate at which orbits leave, per step; 0 of an attractor.
        unit: what a step is.
    """

    order: Int[np.ndarray, " n"]
    exponents: Float[np.ndarray, " n"]
    entropies: Float[np.ndarray, " n"]
    escape_rates: Float[np.ndarray, " n"]
    unit: str = eqx.field(static=True, default=STEP)

    _shown = _ROWS
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    def error(self, values: Float[np.ndarray, " n"]) -> float:
        """Error of the last value: its distance from those of half its order on.

        Two neighbours alone may agree by chance: those of Hénon's map at orders 11 and
        12 differ by 0.0001, and both miss the exponent by 0.05.

        Args:
            values: of all truncations.

        Returns:
            The largest distance; NaN where there are none before.
        """
        before = values[len(values) // 2 - 1 : -1] if len(values) > 1 else values[:0]
        return float(np.max(np.abs(values[-1] - before))) if len(before) else np.nan


def cycle_expansion(
    cycles: UnstableCycles,
    *,
    function: Literal["zeta", "determinant"] = "zeta",
) -> CycleExpansion:
    """Exponent, entropy and escape rate from the cycles of a map.

    Args:
        cycles: all of the set whose averages are wanted; of an attractor those in it,
            `cycles.where(cycles.distance < ...)`.
        function: the dynamical zeta function, or the spectral determinant.

    Returns:
        `CycleExpansion`, with the values of every truncation.

    Raises:
        ValueError: no cycles, an unknown function, or a multiplier that rounding hides
            and that may expand.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics import unstable_cycles
        >>> cycles = unstable_cycles(
        ...     lambda x: 4 * x * (1 - x), jnp.array(0.3), period=4, steps=1000)
        >>> expansion = cycle_expansion(cycles)
        >>> bool(abs(expansion.entropies[-1] - np.log(2)) < 1e-12)
        True
    """
    if function not in ("zeta", "determinant"):
        raise ValueError(f"function must be zeta or determinant; got {function!r}.")
    if not len(cycles.length):
        raise ValueError("there are no cycles to expand in.")
    order = cycles.periods
    growth = np.maximum(0, _exponents(cycles)).sum(axis=1)
    weights = {
        "zeta": lambda r: np.exp(-r * growth * cycles.length),
        "determinant": lambda r: 1 / _determinants(cycles, r),
    }[function]
    ones = lambda r: np.ones(len(cycles.length))
    of_measure = _series(cycles, weights)
    of_topology = _series(cycles, ones)
    zeros = np.array([_zero(of_measure[0, : n + 1]) for n in order])
    topological = np.array([_zero(of_topology[0, : n + 1]) for n in order])
    return CycleExpansion(
        order=order,
        exponents=np.array(
            [
                _slope(of_measure[:, : n + 1], z)
                for n, z in zip(order, zeros, strict=True)
            ]
        ),
        entropies=np.log(1 / topological),
        escape_rates=np.log(zeros),
        unit=cycles.unit,
    )


def _exponents(cycles: UnstableCycles) -> Float[np.ndarray, "n k"]:
    """Exponents, -inf for those that rounding hides behind contracting ones.

    Raises:
        ValueError: one that is hidden may expand.
    """
    hidden = np.isnan(cycles.exponents)
    known = np.where(hidden, np.inf, cycles.exponents)
    may_expand = hidden & (np.minimum.accumulate(known, axis=1) >= 0)
    if may_expand.any():
        raise ValueError(
            "rounding hides a multiplier that may expand, of "
            f"{may_expand.any(axis=1).sum()} of {len(hidden)} cycles: leave these out "
            "by where, or shorten the period."
        )
    return np.where(hidden, -np.inf, cycles.exponents)


def _determinants(cycles: UnstableCycles, r: int) -> Float[np.ndarray, " cycles"]:
    """|det(1 - J^r)|; of a complex pair and of what rounding hides, |mu|^r or 1."""
    sizes = np.exp(_exponents(cycles) * (r * cycles.length)[:, None])
    factors = np.abs(1 - cycles.signs**r * sizes)
    return np.where(cycles.signs == 0, np.maximum(1, sizes), factors).prod(axis=1)


def _series(cycles: UnstableCycles, weights) -> Float[np.ndarray, "2 n"]:
    """Coefficients of z^n, and their derivatives by beta at zero.

    The logarithm is the sum over cycles and repeats; n c_n = sum_k k a_k c_(n-k).
    """
    longest = len(cycles.outcomes)
    logarithm = np.zeros((2, longest + 1))
    for r in range(1, longest + 1):
        n = r * cycles.length
        short = n <= longest
        terms = -weights(r)[short] / r
        slopes = terms * n[short] * cycles.exponents[short, 0]
        np.add.at(logarithm[0], n[short], terms)
        np.add.at(logarithm[1], n[short], slopes)
    a, slopes = logarithm * np.arange(longest + 1)
    series = np.zeros((2, longest + 1))
    series[0, 0] = 1.0
    for n in range(1, longest + 1):
        before, steeper = series[:, :n][:, ::-1]
        to_n = slice(1, n + 1)
        series[0, n] = a[to_n] @ before / n
        series[1, n] = (slopes[to_n] @ before + a[to_n] @ steeper) / n
    return series


def _zero(coefficients: Float[np.ndarray, " n"]) -> float:
    """The smallest positive zero of a polynomial; NaN: none."""
    zeros = np.roots(coefficients[::-1])
    real = zeros.real[(np.abs(zeros.imag) < REAL) & (zeros.real > 0)]
    return float(real.min()) if len(real) else np.nan


def _slope(series: Float[np.ndarray, "2 n"], zero: float) -> float:
    """Derivative of -ln z by beta where the series vanishes."""
    n = np.arange(series.shape[1])
    powers = zero**n
    return float(series[1] @ powers / (series[0] * n @ powers))
