r"""Correlation dimension of a cloud of points (docs/theory/indicators.md, section 2).

Grassberger and Procaccia (Physica D 9, 189, 1983), without the pairs that are close in
time (Theiler, Phys. Rev. A 34, 2427, 1986):

    $C(r) = \frac{\#\{(i, j): |i - j| > W, \|x_i - x_j\|_\infty < r\}}
                 {\#\{(i, j): |i - j| > W\}},
      \qquad D_2 = \lim_{r \to 0} \frac{d \ln C}{d \ln r}$

    x    (T, d)        points in the order of time            `points`
    W    steps         Theiler window                         `theiler`
    i    (n_ref,)      reference points, evenly spread, j runs over all T
    r    (R,)          four radii per octave, from the size of the cloud down

The scaling region is the stretch of at least half of the usable octaves in which the
local slopes scatter least.  The error adds, in squares, that scatter, the statistical
error of a jackknife over blocks of reference points, and D r / (2 size), by which the
sharp edges of a uniform cube lower its local slopes.

What no error bar shows: an invariant density with inverse square-root singularities
(logistic map at r = 4, the fold of the Rossler attractor) lowers the local slopes by
1/ln(1/r), some 0.1 at any radius that a series reaches.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.labels import Variable, Words
from statmech_attn.options import require_least


PER_OCTAVE = 4
OCTAVES = 24
RADII = 2.0 ** (-np.arange(OCTAVES * PER_OCTAVE, -1, -1) / PER_OCTAVE)  # over the size
BLOCKS = 16
CLOSE_PAIRS = 1000  # fewer leave a statistical error above some per cent
LARGEST = 0.25  # radii beyond this share of the cloud's size see its edges
SHORTEST = 2  # octaves of the shortest scaling region
FLAT = 0.15  # scatter of local slopes, relative to max(D, 1), that is no plateau
ROUNDING = 1e-13  # size over the largest coordinate that is no size at all
DIMENSION_RESULTS = Words(
    "scaling region found",
    "the local slopes have no plateau",
    "too few close pairs for a scaling region",
    "the points do not differ",
    "a value is not finite",
)


class CorrelationDimension(eqx.Module):
    """D_2 with its error, and what it was read from.

    Attributes:
        dimension: D_2; NaN without a scaling region.
        stderr: the three errors of docs/theory/indicators.md, section 2, added in
            squares.
        statistical: jackknife error over blocks of reference points.
        scatter: standard deviation of the local slopes.
        low: smallest radius of the scaling region, in the units of the points.
        high: largest radius of it.
        radii: radii r, four to the octave.
        correlation: correlation sum C(r).
        slopes: d ln C / d ln r over the octave around r.
        result: index into `DIMENSION_RESULTS`.
    """

    dimension: Float[Array, "*batch"]
    stderr: Float[Array, "*batch"]
    statistical: Float[Array, "*batch"]
    scatter: Float[Array, "*batch"]
    low: Float[Array, "*batch"]
    high: Float[Array, "*batch"]
    radii: Float[Array, "*batch R"]
    correlation: Float[Array, "*batch R"]
    slopes: Float[Array, "*batch R"]
    result: Int[Array, "*batch"]

    _shown = (
        Variable(
            "correlation_dimension",
            "",
            "correlation dimension",
            symbol="D_2",
            value="dimension",
            error="stderr",
        ),
        Variable("result", "", "result", flags=DIMENSION_RESULTS),
        Variable("low", "", "smallest radius of the scaling region", symbol="r_-"),
        Variable("high", "", "largest radius of the scaling region", symbol="r_+"),
        Variable("radius", "octave", "radius", symbol="r", value="radii", line=False),
        Variable(
            "correlation",
            "octave",
            "share of pairs closer than the radius",
            symbol="C(r)",
            line=False,
        ),
        Variable(
            "local_slope",
            "octave",
            "d ln C / d ln r over an octave",
            symbol="d ln C/d ln r",
            value="slopes",
            line=False,
        ),
    )

    @property
    def leading_axes(self) -> int:
        """Axes of a batch, which stand first."""
        return self.dimension.ndim

    __repr__, _repr_html_, to_dataset = presentation.METHODS


def correlation_dimension(
    points: Float[Array, "T d"], *, theiler: int = 100, references: int = 2000
) -> CorrelationDimension:
    """Correlation dimension of the points of an orbit; works under `jax.vmap`.

    Costs references * T distances and the memory of a few rows of T.

    Args:
        points: consecutive points of an orbit, or a series (T, 1) embedded in delays.
        theiler: pairs at most this many steps apart are left out; several times the
            correlation time, or the D = 1 of a single stretch of orbit is found.
        references: points that are compared with all others.

    Returns:
        `CorrelationDimension`: D_2 with its errors, the scaling region and C(r).

    Raises:
        ValueError: not (T, d), or a count that the length does not allow.

    Example:
        >>> import jax
        >>> square = jax.random.uniform(jax.random.key(0), (4000, 2))
        >>> result = correlation_dimension(square, theiler=0)
        >>> abs(float(result.dimension) - 2) < 0.1
        True
    """
    require_double()
    points = jnp.asarray(points, float)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"points must have shape (T, d); got {points.shape}.")
    length = points.shape[0]
    if length < 10 * BLOCKS:
        raise ValueError(f"points must be at least {10 * BLOCKS}; got {length}.")
    if not 0 <= theiler < length // 4:
        raise ValueError(
            f"theiler must lie in 0..{length // 4 - 1} steps, a quarter of the "
            f"series; got {theiler}."
        )
    require_least(BLOCKS, references=references)
    per_block = max(min(references, length) // BLOCKS, 1)
    return _dimension(points, jnp.asarray(theiler), per_block)


def delay_embedding(
    series: Float[Array, " T"], *, dimension: int, lag: int = 1
) -> Float[Array, "T_embedded dimension"]:
    """Points (x_t, x_{t+lag}, ..., x_{t+(dimension-1) lag}) of a scalar series.

    Args:
        series: samples, (T,).
        dimension: number of delayed coordinates.
        lag: delay, in samples.

    Returns:
        Vectors (T - (dimension - 1) lag, dimension), the oldest sample first.

    Raises:
        ValueError: `dimension` or `lag` is below 1, or the series is too short.

    Example:
        >>> import jax.numpy as jnp
        >>> delay_embedding(jnp.arange(4.0), dimension=2).tolist()
        [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]
    """
    if dimension < 1 or lag < 1:
        raise ValueError(
            f"dimension and lag must be at least 1; got {dimension} and {lag}."
        )
    count = series.shape[0] - (dimension - 1) * lag
    if count < 1:
        raise ValueError(
            f"series is too short for the delays, {(dimension - 1) * lag} steps; got "
            f"{series.shape[0]} samples."
        )
    columns = [series[i * lag : i * lag + count] for i in range(dimension)]
    return jnp.stack(columns, axis=1)


@eqx.filter_jit
def _dimension(points, theiler, per_block):
    size = jnp.max(jnp.max(points, axis=0) - jnp.min(points, axis=0))
    unit = jnp.where(size > 0, size, 1.0)
    counts, pairs = pair_counts(points / unit, theiler, per_block)
    total, all_pairs = jnp.sum(counts, axis=0), jnp.sum(pairs)
    log_c = jnp.log(jnp.maximum(total, 0.5) / all_pairs)
    usable = (total >= CLOSE_PAIRS) & (RADII <= LARGEST)
    chosen, scales = scaling_region(local_slopes(log_c), usable)
    dimension, scatter = _fit(log_c, chosen), _scatter(log_c, chosen)
    without = jnp.maximum(total - counts, 0.5) / (all_pairs - pairs)[:, None]
    left_out = jax.vmap(lambda c: _fit(jnp.log(c), chosen))(without)
    spread = jnp.sum((left_out - jnp.mean(left_out)) ** 2)
    edges = dimension * jnp.sum(jnp.where(chosen, RADII, 0.0)) / jnp.sum(chosen) / 2
    statistical = jnp.sqrt(spread * (BLOCKS - 1) / BLOCKS)
    finite = jnp.all(jnp.isfinite(points))
    differ = size > ROUNDING * jnp.max(jnp.abs(points))
    result = jnp.where(scatter > FLAT * jnp.maximum(dimension, 1.0), 1, 0)
    result = jnp.where(scales, result, 2)
    result = jnp.where(finite, jnp.where(differ, result, 3), 4)
    where_resolved = lambda x: jnp.where(result <= 1, x, jnp.nan)
    return CorrelationDimension(
        dimension=where_resolved(dimension),
        stderr=where_resolved(jnp.hypot(jnp.hypot(statistical, scatter), edges)),
        statistical=where_resolved(statistical),
        scatter=where_resolved(scatter),
        low=where_resolved(unit * jnp.min(jnp.where(chosen, RADII, jnp.inf))),
        high=where_resolved(unit * jnp.max(jnp.where(chosen, RADII, -jnp.inf))),
        radii=unit * RADII,
        correlation=total / all_pairs,
        slopes=jnp.where(total > 0, local_slopes(log_c), jnp.nan),
        result=result,
    )


def pair_counts(points: Float[Array, "T d"], theiler, per_block: int):
    """Pairs closer than each radius, and all pairs, by block of reference points.

    Distances are sorted into bins by their logarithm, one reference point at a time.
    """
    length = points.shape[0]
    time = jnp.arange(length)
    n_references = BLOCKS * per_block
    references = (np.arange(n_references) + 0.5) * length / n_references

    def of_one(i):
        distance = jnp.abs(points[:, 0] - points[i, 0])
        for column in range(1, points.shape[1]):
            further = jnp.abs(points[:, column] - points[i, column])
            distance = jnp.maximum(distance, further)
        # Bin b holds RADII[b - 1] <= distance < RADII[b].
        octave = jnp.log2(distance) + OCTAVES
        bins = jnp.clip(jnp.floor(octave * PER_OCTAVE) + 1, 0, RADII.size)
        far = jnp.abs(time - i) > theiler
        bins = jnp.where(far, bins, RADII.size).astype(jnp.int32)
        counts = jnp.zeros(RADII.size + 1, jnp.int32).at[bins].add(1)
        return jnp.cumsum(counts[:-1]), jnp.sum(far)

    counts, pairs = jax.lax.map(of_one, jnp.asarray(references.astype(int)))
    in_blocks = lambda x: x.reshape((BLOCKS, per_block) + x.shape[1:]).sum(1)
    return in_blocks(counts), in_blocks(pairs)


def local_slopes(log_c: Float[Array, " R"]) -> Float[Array, " R"]:
    """d ln C / d ln r over the octave centred at each radius, one-sided at the ends."""
    half = PER_OCTAVE // 2
    index = np.arange(RADII.size)
    above, below = np.minimum(index + half, RADII.size - 1), np.maximum(index - half, 0)
    return (log_c[above] - log_c[below]) / np.log(RADII[above] / RADII[below])


def scaling_region(
    slopes: Float[Array, " R"], usable: Bool[Array, " R"]
) -> tuple[Bool[Array, " R"], Bool[Array, ""]]:
    """The flattest stretch of at least half of the usable radii, and if there is one.

    Windows of exactly half the usable octaves, at least `SHORTEST`, are compared by the
    variance of their local slopes.
    """
    index = jnp.arange(RADII.size)
    first = jnp.argmax(usable)
    count = jnp.sum(usable)
    width = jnp.maximum(count // 2, SHORTEST * PER_OCTAVE) + 1
    half = PER_OCTAVE // 2
    inside = lambda start: (index >= start) & (index < start + width)

    def variance(start):
        core = (index >= start + half) & (index < start + width - half)
        mean = jnp.sum(jnp.where(core, slopes, 0.0)) / jnp.sum(core)
        square = jnp.sum(jnp.where(core, (slopes - mean) ** 2, 0.0)) / jnp.sum(core)
        allowed = (start >= first) & (start + width <= first + count)
        return jnp.where(allowed, square, jnp.inf)

    variances = jax.vmap(variance)(index)
    return inside(jnp.argmin(variances)), jnp.any(jnp.isfinite(variances))


def _fit(log_c, chosen):
    """Least-squares slope of ln C over ln r inside the scaling region."""
    weight = chosen / jnp.sum(chosen)
    x = np.log(RADII)
    x = x - jnp.sum(weight * x)
    return jnp.sum(weight * x * log_c) / jnp.sum(weight * x**2)


def _scatter(log_c, chosen):
    """Standard deviation of the local slopes whose octave lies in the region."""
    half = PER_OCTAVE // 2
    index = jnp.arange(RADII.size)
    start, count = jnp.argmax(chosen), jnp.sum(chosen)
    core = (index >= start + half) & (index < start + count - half)
    slopes = local_slopes(log_c)
    mean = jnp.sum(jnp.where(core, slopes, 0.0)) / jnp.sum(core)
    return jnp.sqrt(jnp.sum(jnp.where(core, (slopes - mean) ** 2, 0.0)) / jnp.sum(core))
