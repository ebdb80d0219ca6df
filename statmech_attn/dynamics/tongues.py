r"""Lockings and Arnold tongues of circle maps (docs/theory/two_parameters.md, 2).

The tongue p/q is the set of parameters whose rotation number is p/q.  Its edges are
found without the rotation number itself: with the drift

    $d_n = F^{nq}(x) - x - np$        turns gained on p/q in n rounds of q steps

the orbit is ahead of p/q as soon as $d_n \ge 1$, behind as soon as $d_n \le -1$, and
counts as locked if neither happens in n rounds, which bounds |rho - p/q| by 1/(nq).
At distance $\delta$ from an edge a turn leads past the ghosts of all q points of the
lost cycle and takes $\propto q \, \delta^{-1/2}$ rounds, so that the edge appears
shifted outward by $c/n^2$ with $c \propto q^2$.
Edges at n/4, n/2 and n rounds are extrapolated with that law in pairs; what is left is
$O(n^{-3})$, and the change from the first pair to the second is the stated error.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.rotation import broadcast_parameters, check_lift
from statmech_attn.labels import Variable, Words
from statmech_attn.options import require_least


TONGUE_RESULTS = Words(
    "found",
    "outside: the bracket does not go from below p/q to above it",
    "not a number: the orbit diverged",
)
FOUND, OUTSIDE, NOT_A_NUMBER = range(3)
LOST = 2  # instead of the sign of a drift that is not finite
ROUNDING = 4.0  # units in the last place of a bracket: the least tolerance
CHANCE = 0.01  # of a fraction within the error of a number drawn at random


class Locking(NamedTuple):
    """A fraction p/q that a rotation number cannot be told from.

    `chance` is the expected number of fractions with denominators up to q that lie that
    close to a number drawn at random: a large one means that p/q says nothing.

    Attributes:
        p: numerator.
        q: denominator.
        chance: expected number of fractions so near by chance.
    """

    p: int
    q: int
    chance: float


def locking(
    number: float, error: float, *, largest: int = 1000, chance: float = CHANCE
) -> Locking | None:
    r"""The simplest fraction within the error of a rotation number, unless by chance.

    Between 0 and 1 there are about $3 q^2/\pi^2$ fractions with denominators up to q,
    so a window of $\pm$ error holds $6 \, \mathrm{error} \, q^2/\pi^2$ of them.

    Args:
        number, error: rotation number and its error; errors below 1e-14 count as that.
        largest: largest denominator that is looked for.
        chance: largest chance at which a fraction is reported.

    Returns:
        `Locking`; None where chance explains the nearest fraction.

    Example:
        >>> locking(0.3636363636, 1e-9)[:2], locking(0.6180339887, 1e-9)
        ((4, 11), None)
    """
    if not (np.isfinite(number) and np.isfinite(error)):
        return None
    error = max(error, 1e-14)
    fraction = _simplest(Fraction(number - error), Fraction(number + error))
    p, q = fraction.numerator, fraction.denominator
    odds = 6 * error * q**2 / np.pi**2
    return Locking(p, q, odds) if q <= largest and odds <= chance else None


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of smallest denominator in [low, high], by continued fractions."""
    integer = -(-low.numerator // low.denominator)
    if integer <= high:
        return Fraction(integer)
    floor = integer - 1
    return floor + 1 / _simplest(1 / (high - floor), 1 / (low - floor))


class Tongue(eqx.Module):
    """Edges of a tongue in the free parameter, and an index into `TONGUE_RESULTS`.

    `error` is the larger of the bisection's tolerance and the last change of the
    extrapolated edges; edges that were not found are NaN.

    Attributes:
        lower: lower edge in the free parameter.
        upper: upper edge.
        error: of either edge.
        result: index into `TONGUE_RESULTS`.
    """

    lower: Float[Array, "*batch"]
    upper: Float[Array, "*batch"]
    error: Float[Array, "*batch"]
    result: Int[Array, "*batch"]

    _shown = (
        Variable("lower", "", "lower edge", error="error"),
        Variable("upper", "", "upper edge", error="error"),
        Variable("width", "", "width"),
        Variable("result", "", "result", flags=TONGUE_RESULTS),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def width(self) -> Float[Array, "*batch"]:
        """Upper minus lower edge."""
        return self.upper - self.lower


def drift_sign(
    lift,
    start,
    parameters: Mapping[str, float | Array | np.ndarray],
    *,
    p: int,
    q: int,
    rounds: int,
) -> Int[Array, "*batch"]:
    """Whether an orbit gets behind p/q (-1), ahead of it (+1), or neither in n rounds.

    An orbit that diverges before it does has the code 2 (`LOST`).

    Args:
        lift: lift of a circle map, in turns.
        start: initial condition.
        parameters: of the system.
        p: turns of the fraction p/q.
        q: steps of the fraction p/q.
        rounds: number of rounds of q steps.

    Example:
        >>> import jax.numpy as jnp
        >>> turn = lambda x, p: x + p["omega"]
        >>> omega = jnp.array([0.49, 0.5, 0.51])
        >>> drift_sign(turn, 0.0, {"omega": omega}, p=1, q=2, rounds=100).tolist()
        [-1, 0, 1]
    """
    require_double()
    require_least(1, q=q)
    require_least(4, rounds=rounds)
    x, values = broadcast_parameters(start, parameters)
    check_lift(lift, x, values)
    return _drift_sign(lift, x, values, p, q, jnp.asarray(rounds))


@eqx.filter_jit
def _drift_sign(lift, x, values, p, q, rounds):
    def more(carry):
        n, _, drift = carry
        return (n < rounds) & jnp.any(jnp.abs(drift) < 1)

    def turn(carry):
        n, x, drift = carry
        after = jax.lax.fori_loop(0, q, lambda _, x: lift(x, values), x)
        gained = jnp.where(jnp.abs(drift) < 1, after - x - p, 0.0)
        return n + 1, after - jnp.floor(after), drift + gained

    _, _, drift = jax.lax.while_loop(more, turn, (0, x, jnp.zeros_like(x)))
    sign = jnp.where(drift >= 1, 1, jnp.where(drift <= -1, -1, 0))
    return jnp.where(jnp.isfinite(drift), sign, LOST)


def tongue(
    lift,
    parameters: Mapping[str, float | Array | np.ndarray],
    *,
    free: str,
    bracket: tuple[float | Array | np.ndarray, float | Array | np.ndarray],
    p: int,
    q: int,
    start: float | Array | np.ndarray = 0.0,
    rounds: int = 4000,
    tolerance: float = 1e-10,
) -> Tongue:
    """Edges of the tongue p/q in one parameter, batched over the others.

    Args:
        lift: F(x, parameters), increasing in x and in the free parameter (where it is
            not invertible the edges are those that the orbit of `start` sees).
        parameters: the other parameters, numbers or arrays.
        free: name of the parameter in which the edges are sought.
        bracket: values of it at which the orbit is behind p/q and ahead of it.
        p: turns of the fraction p/q.
        q: steps of the fraction p/q.
        start: initial condition.
        rounds: rounds of q steps in which a free orbit shows; see the module docstring.
        tolerance: of the bisection, in units of the free parameter.

    Returns:
        `Tongue`: lower and upper edge, with an error.

    Raises:
        ValueError: not a lift, a count out of range, or a tolerance below rounding of
            the bracket.

    Example:
        >>> import jax.numpy as jnp
        >>> def sine(x, p):
        ...     return x + p["omega"] - 0.1 * jnp.sin(2 * jnp.pi * x)
        >>> edges = tongue(sine, {}, free="omega", bracket=(-0.4, 0.4), p=0, q=1)
        >>> round(float(edges.upper), 6)
        0.1
    """
    require_double()
    require_least(1, q=q)
    require_least(4, rounds=rounds)
    if not tolerance > 0:
        raise ValueError(f"tolerance must be > 0; got {tolerance:g}.")
    if free in parameters:
        raise ValueError(f"parameters must not hold the free parameter {free!r}.")
    low, high = bracket
    x, values = broadcast_parameters(start, {**parameters, free: low, "_high": high})
    low, high = values.pop(free), values.pop("_high")
    _check_tolerance(tolerance, low, high)
    check_lift(lift, x, values | {free: low})
    width = jnp.asarray(tolerance)
    edges = lambda n: _edges(
        lift, free, x, values, low, high, p, q, width, jnp.asarray(n)
    )
    by_rounds = [edges(count) for count in (rounds // 4, rounds // 2, rounds)]
    (few, *_), (more, *_), (most, inside, lost) = by_rounds
    lost = lost | by_rounds[0][2] | by_rounds[1][2]
    inside = inside & ~lost
    before, last = more + (more - few) / 3, most + (most - more) / 3
    error = jnp.maximum(tolerance, jnp.max(jnp.abs(last - before), axis=0))
    mark = lambda edge: jnp.where(inside, edge, jnp.nan)
    result = jnp.where(lost, NOT_A_NUMBER, jnp.where(inside, FOUND, OUTSIDE))
    return Tongue(mark(last[0]), mark(last[1]), mark(error), result)


@eqx.filter_jit
def _edges(lift, free, x, values, low, high, p, q, tolerance, rounds):
    """Lower and upper edge (2, *batch) by bisection.

    Also whether the bracket holds, and whether an orbit diverged on the way.
    """
    sign = lambda value: _drift_sign(lift, x, values | {free: value}, p, q, rounds)
    first, last = sign(low), sign(high)
    lost = (first == LOST) | (last == LOST)

    def halve(bounds, *, least):
        low, high, lost = bounds
        middle = (low + high) / 2
        drift = sign(middle)
        above = drift >= least
        low, high = jnp.where(above, low, middle), jnp.where(above, middle, high)
        return low, high, lost | (drift == LOST)

    def edge(least):
        wide = lambda bounds: jnp.any(bounds[1] - bounds[0] > tolerance)
        start = low, high, lost
        below, above, unresolved = jax.lax.while_loop(
            wide, partial(halve, least=least), start
        )
        return (below + above) / 2, unresolved

    (lower, first_lost), (upper, last_lost) = edge(0), edge(1)
    inside = (first < 0) & (last == 1)
    return jnp.stack([lower, upper]), inside, first_lost | last_lost


def _check_tolerance(tolerance: float, low, high) -> None:
    """Halving stops making progress within a few units in the last place."""
    size = float(jnp.max(jnp.maximum(jnp.abs(low), jnp.abs(high))))
    least = ROUNDING * float(jnp.finfo(float).eps) * size
    if not tolerance >= least:
        raise ValueError(
            f"tolerance must be at least {least:.3g} for this bracket; "
            f"got {tolerance:g}."
        )
