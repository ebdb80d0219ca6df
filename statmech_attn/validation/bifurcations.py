r"""Rows on bifurcation points, basins, their edges and lifetimes.

Bifurcation points are deterministic: `LOCATED` is the accuracy that continuation
promises in the parameter.  Shares of starts have binomial errors.
"""

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics import (
    catalogue,
    continuation,
    escape_rate,
    escape_times,
    find_attractors,
    track_edge,
)
from statmech_attn.statistics import share_error
from statmech_attn.validation.rows import Measurement, Row


LOCATED = 1e-10
STARTS = 4000
FAR = 1e-6  # of the two sides of an edge
SLOPE = 2.5  # of the open tent
R_8, R_16, R_32 = 3.564407266095432598, 3.568759419543826431, 3.569691609801396714
R_4 = 3.544090359551922854


def of_branch(name, quantities, measure, reference, source) -> Row:
    """Places and coefficients along a branch, all to `LOCATED`."""
    return Row(
        name, quantities, measure, reference, source, tolerance=LOCATED, unit="1"
    )


def _cascade():
    problem = continuation.Problem(catalogue.logistic, jnp.zeros(1), {"r": 2.9}, "r")
    branches = continuation.cascade(problem, jnp.array([0.65]), 2.9, doublings=6)
    return Measurement([branch.special[-1].value for branch in branches])


def period_three() -> continuation.Solution:
    """The logistic map's cycle of three, down to where it is born."""
    problem = continuation.Problem(
        catalogue.logistic, jnp.zeros(1), {"r": 3.84}, "r", period=3
    )
    start = continuation.find_cycle(problem, jnp.array([0.5]), 3.84)
    branch = continuation.follow_cycle(
        problem, start.x, 3.84, direction=-1, within=(3, 3.86)
    )
    return branch.run()


def _henon():
    period_1 = continuation.Problem(
        catalogue.henon, jnp.zeros(2), {"a": 0.2, "b": 0.3}, "a"
    )
    period_2 = period_1.with_period(2)
    fixed = jnp.array([0.7, 0.2])
    down = continuation.follow_cycle(
        period_1, fixed, 0.2, direction=-1, within=(-1, 0.5)
    )
    up = continuation.follow_cycle(period_1, fixed, 0.2, within=(-1, 0.8))
    start = continuation.find_cycle(period_2, jnp.array([1.0, -0.1]), 0.6)
    doubled = continuation.follow_cycle(period_2, start.x, 0.6, within=(-1, 1))
    return Measurement(
        _places(down.run(), "fold")[:1]
        + _places(up.run(), "period_doubling")
        + _places(doubled.run(), "period_doubling")
    )


def _delayed_logistic():
    problem = continuation.Problem(
        catalogue.delayed_logistic, jnp.zeros(2), {"a": 1.5}, "a"
    )
    branch = continuation.follow_cycle(
        problem, jnp.array([0.33, 0.33]), 1.5, within=(0.5, 2.5)
    )
    (point,) = branch.run().special
    assert point.form is not None
    angles = np.angle(point.multipliers) / np.pi
    return Measurement([point.value, float(max(angles)), point.form.coefficient])


def _places(branch: continuation.Solution, kind: str) -> list[float]:
    return [point.value for point in branch.special if point.kind == kind]


def _shares(step, low, high, share):
    """Share of uniform starts that `share` picks, with its binomial error."""
    starts = jax.random.uniform(jax.random.key(0), (STARTS,), minval=low, maxval=high)
    p = float(np.mean(share(find_attractors(step, starts))))
    return Measurement([p], [float(share_error(p, STARTS))])


def _two_wells():
    def to_the_right(found):
        return (found.label >= 0) & (found.points[found.label, 0, 0] > 0)

    return _shares(lambda x: x + 0.05 * (x - x**3), -0.5, 1.5, to_the_right)


def _bounded():
    return _shares(lambda x: x**2 - 1, -3, 3, lambda found: found.label >= 0)


def _open_tent():
    starts = jax.random.uniform(jax.random.key(0), (STARTS,))
    tent = lambda x: SLOPE * jnp.minimum(x, 1 - x)
    inside = lambda x: (x >= 0) & (x <= 1)
    lifetime, ended = escape_times(tent, starts, inside, horizon=1000)
    escape = escape_rate(lifetime, ended, after=0)
    return Measurement([escape.rate], [escape.stderr])


def _edge():
    """Exponents of the edge state between Henon's attractor and infinity."""
    gone = lambda z: jnp.where(jnp.abs(z[0]) > 10, 1, -1)
    settled = lambda z: jnp.where(jnp.abs(z[0] - 0.6) < 0.1, 0, gone(z))
    edge = track_edge(
        catalogue.henon,
        jnp.array([0.1, 0.1]),
        jnp.array([-2.0, 0.1]),
        label=settled,
        far=FAR,
        steps=200,
        transient=50,
    )
    return Measurement(edge.exponents.tolist())


FIXED = (-0.7 - np.sqrt(0.49 + 5.6)) / 2.8  # x = 1 - 1.4 x^2 + 0.3 x, its lower root
ROOT = np.sqrt(1.96 * FIXED**2 + 0.3)
MULTIPLIERS = -1.4 * FIXED + ROOT, -1.4 * FIXED - ROOT
ROWS = (
    of_branch(
        "logistic cascade", tuple(f"r_{2**n}" for n in range(1, 7)), _cascade,
        (3.0, 1 + np.sqrt(6), R_4, R_8, R_16, R_32),
        "closed forms; 60-digit Newton for cycles of 4 to 32",
    ),
    of_branch(
        "logistic period three", ("fold r",),
        lambda: Measurement(_places(period_three(), "fold")), (1 + np.sqrt(8),), "1+√8",
    ),
    of_branch(
        "Henon b=0.3 bifurcations", ("fold a", "doubling a", "second doubling a"),
        _henon, (-0.1225, 0.3675, 0.9125), "closed forms in b",
    ),
    of_branch(
        "delayed logistic torus", ("a", "angle/π", "Re d"), _delayed_logistic,
        (2.0, 1 / 3, -1.0), "d = -1 - i√3",
    ),
    Row(
        "odd cubic map, basins", ("share",), _two_wells, (0.75,), "boundary at 0",
        unit="1",
    ),
    Row(
        "x²-1, bounded starts", ("share",), _bounded, ((1 + np.sqrt(5)) / 6,),
        "unstable fixed point", unit="1",
    ),
    Row(
        "open tent, slope 2.5", ("escape rate",), _open_tent, (np.log(SLOPE / 2),),
        "ln(slope/2)",
    ),
    # The sides are FAR from the edge at most, over 1 + 1.13, where ln|2.8 x| changes by
    # 1/1.13 of it; ten times that for the second exponent, of a product with 0.3.
    Row("Henon, edge to infinity", ("λ_1", "λ_2"), _edge,
        tuple(np.log(np.abs(MULTIPLIERS))), "the saddle of its fixed points",
        tolerance=10 * FAR),
)  # fmt: skip
