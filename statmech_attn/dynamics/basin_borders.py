r"""Borders of basins from a grid of labels (docs/theory/attractors.md, section 7).

    $S_b = \langle -\sum_k p_k \ln p_k \rangle$ over boxes of the grid  `basin_entropy`
    $f(\epsilon) \propto \epsilon^\alpha$   share of states with another basin at a
                                  distance $\epsilon$       `uncertainty_exponent`
    $\max_{kl} d_H(\partial_k, \partial_l)$   of the borders of each basin with all
                                  others together           `wada_distance`

$S_b$ and $S_{bb}$, over the boxes of a border alone, are those of Daza et al.
(Scientific Reports 6, 31416, 2016), $\alpha$ is that of Grebogi et al. (Phys. Lett. A
99, 415, 1983), and distances of merged basins those of Daza, Wagemakers and Sanjuan
(Scientific Reports 8, 9954, 2018).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import distance_transform_edt

from statmech_attn import presentation
from statmech_attn.dynamics.basins import NOT_SETTLED
from statmech_attn.labels import Variable
from statmech_attn.options import require_least


BLOCKS = 16  # of the grid, each left out once
LEAST = 3  # distances that a slope is fitted to


class BasinEntropy(NamedTuple):
    """Entropy of basins in boxes of a grid, in nats.

    Attributes:
        entropy: mean over all boxes.
        border: mean over the boxes with more than one basin; above ln 2 the border is
            a fractal, below it may be one.  NaN where there is no such box.
        share: of such boxes.
    """

    entropy: float
    border: float
    share: float

    _shown = (
        Variable("entropy", "", "basin entropy", "nat", "S_b"),
        Variable("border", "", "basin entropy of the border", "nat", "S_bb"),
        Variable("share", "", "boxes with more than one basin"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


class Uncertainty(NamedTuple):
    """The uncertainty exponent: how the share of states near a border grows.

    Attributes:
        exponent: 1 of a smooth border, less of a fractal one.
        stderr: its standard error, that of blocks and half of what the exponents of
            short and of long distances differ by.
        statistical: its standard error by blocks of the grid alone, the largest of
            blocks along any axis.
        dimension: of the border, that of the grid less the exponent.
        distance: of two states, in cells of the grid.
        share: of states with another basin at this distance along an axis.
    """

    exponent: float
    stderr: float
    statistical: float
    dimension: float
    distance: np.ndarray
    share: np.ndarray

    _shown = (
        Variable("exponent", "", "uncertainty exponent", symbol="α", error="stderr"),
        Variable("dimension", "", "dimension of the border", symbol="D"),
        Variable(
            "share",
            "distance",
            "states with another basin at a distance",
            symbol="f",
            line=False,
        ),
        Variable(
            "distance",
            "distance",
            "distance",
            "cell",
            "ε",
            value="distance",
            line=False,
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def basin_entropy(basin: Int[np.ndarray, "ny nx"], box: int = 5) -> BasinEntropy:
    """Basin entropy of a grid, also of the boxes on borders alone.

    Args:
        basin: label of every state; boxes with one that has none, -1, are left out.
        box: cells along the edge of a box; what is left at the far edges is not used.

    Returns:
        `BasinEntropy`, in nats.

    Raises:
        ValueError: a box of one cell, or one that does not fit; no whole numbers, or no
            two axes of them.

    Example:
        >>> basin_entropy(np.array([[0, 0, 0, 1], [0, 0, 0, 1]]), box=2)
        BasinEntropy
          basin entropy                   0.346574 nat
          basin entropy of the border     0.693147 nat
          boxes with more than one basin  0.5
    """
    basin = _labels(basin)
    if basin.ndim != 2:
        raise ValueError(f"basin must have two axes; got shape {basin.shape}.")
    if not 2 <= box <= min(basin.shape):
        raise ValueError(f"box must lie in 2..{min(basin.shape)}; got {box}.")
    ny, nx = (size // box for size in basin.shape)
    cut = basin[: ny * box, : nx * box].reshape(ny, box, nx, box)
    boxes = cut.swapaxes(1, 2).reshape(ny * nx, box**2)
    boxes = boxes[(boxes != NOT_SETTLED).all(axis=1)]
    entropy = np.zeros(len(boxes))
    for label in np.unique(boxes):
        p = np.mean(boxes == label, axis=1)
        entropy -= p * np.log(np.where(p > 0, p, 1.0))
    on_border = (boxes != boxes[:, :1]).any(axis=1)
    return BasinEntropy(
        float(entropy.mean()) if entropy.size else np.nan,
        float(entropy[on_border].mean()) if on_border.any() else np.nan,
        float(on_border.mean()) if entropy.size else np.nan,
    )


def uncertainty_exponent(
    basin: Int[np.ndarray, "..."], *, shortest: int = 1, longest: int | None = None
) -> Uncertainty:
    """Uncertainty exponent of a grid of basins, with its error.

    A state is uncertain where a basin at the distance along one of the axes, in either
    direction, is another one.

    Args:
        basin: label of every state, on a grid of any number of axes; -1 has none.
        shortest, longest: distances, in cells; an eighth of the shortest axis at most
            when omitted.  They double from the one to the other.

    Returns:
        `Uncertainty`: exponent with error, dimension of the border, shares.

    Raises:
        ValueError: fewer than three distances, no border, or no whole numbers.

    Example:
        >>> x = np.linspace(-1, 1, 512)
        >>> circle = (x[:, None] ** 2 + x**2 < 0.5).astype(int)
        >>> border = uncertainty_exponent(circle)
        >>> abs(border.exponent - 1) < 4 * border.stderr
        True
    """
    basin = _labels(basin)
    require_least(1, shortest=shortest)
    longest = min(basin.shape) // 8 if longest is None else longest
    distance = []
    while (reach := shortest << len(distance)) <= min(longest, min(basin.shape) // 2):
        distance.append(reach)
    if len(distance) < LEAST:
        raise ValueError(
            f"distances: need {LEAST}, each twice the one before; got {distance}."
        )
    parts = np.array([_uncertain(basin, reach, distance[-1]) for reach in distance])
    counts = parts[:, 0].sum(axis=1)
    uncertain, known = counts.T
    if not uncertain.all():
        raise ValueError("basin has no border at some of the distances.")
    rest = np.moveaxis(counts[:, None, None] - parts, 0, 2)  # without one of the blocks
    left_out = [
        [_slope(distance, of_rest) for of_rest in of_axis]
        for of_axis in rest
        if of_axis[..., 0].all()  # else one block holds all of the border
    ]
    scatter = (
        np.sqrt((BLOCKS - 1) * np.var(left_out, axis=1).max()) if left_out else np.inf
    )
    half = (len(distance) + 1) // 2
    ends = [_slope(distance[at], counts[at]) for at in (np.s_[:half], np.s_[-half:])]
    exponent = _slope(distance, counts)
    return Uncertainty(
        exponent,
        float(np.hypot(scatter, (ends[0] - ends[1]) / 2)),
        float(scatter),
        basin.ndim - exponent,
        np.array(distance),
        uncertain / known,
    )


def wada_distance(basin: Int[np.ndarray, "ny nx"]) -> float:
    """Largest distance between the borders of basins, each with all others together.

    Basins have the Wada property, one border common to all, if this is a few cells and
    stays so on finer grids.
    The edge of the grid cuts borders off, and distances are larger beside it: of the
    driven pendulum's they shrink from 0.26 to 0.13 rad on finer grids, at the edge.

    Args:
        basin: label of every state, of three basins at least; -1 counts as none.

    Returns:
        Hausdorff distance in cells: of a point of one border from the nearest point of
        another one at most.

    Raises:
        ValueError: fewer than three basins, or no whole numbers.

    Example:
        >>> stripes = np.repeat([[0, 1, 2]], 8, axis=0).repeat(10, axis=1)
        >>> wada_distance(stripes)
        10.0
    """
    basin = _labels(basin)
    labels = [label for label in np.unique(basin) if label != NOT_SETTLED]
    if len(labels) < 3:
        raise ValueError(f"basin must have three labels or more; got {len(labels)}.")
    borders = [_border(basin == label) for label in labels]
    far = [np.asarray(distance_transform_edt(~border)) for border in borders]
    return max(
        float(from_other[border].max()) for border in borders for from_other in far
    )


def _labels(basin) -> np.ndarray:
    basin = np.asarray(basin)
    if not (basin == np.rint(basin)).all():
        raise ValueError(
            "basin must hold whole numbers, -1 where a state has none; got others, or "
            f"NaN, of {basin.dtype}."
        )
    return basin


def _border(inside: np.ndarray) -> np.ndarray:
    """Cells beside which, along an axis, the other side begins."""
    border = np.zeros(inside.shape, bool)
    for axis in range(inside.ndim):
        first, second = _pair(inside, 1, axis)
        changes = first != second
        for cells in _pair(border, 1, axis):
            cells |= changes
    return border


def _pair(x: np.ndarray, reach: int, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Views of cells, and of those at a distance from them."""
    moved = np.moveaxis(x, axis, 0)
    return (
        np.moveaxis(moved[:-reach], 0, axis),
        np.moveaxis(moved[reach:], 0, axis),
    )


def _uncertain(
    basin: np.ndarray, reach: int, inset: int
) -> Float[np.ndarray, "axes blocks 2"]:
    """States with another basin at a distance, and all with a basin, by block.

    A border that runs along an axis is the same in all blocks of this axis, which do
    not tell of its scatter; so there are blocks of every axis.

    Those nearer to the edge of the grid than `inset` are left out, at every distance.
    """
    uncertain = np.zeros(basin.shape, bool)
    for axis in range(basin.ndim):
        first, second = _pair(basin, reach, axis)
        differ = (first != second) & (first != NOT_SETTLED) & (second != NOT_SETTLED)
        for cells in _pair(uncertain, reach, axis):
            cells |= differ
    inner = tuple(np.s_[inset : size - inset] for size in basin.shape)
    both = np.stack([uncertain, basin != NOT_SETTLED], axis=-1)[inner]
    of_axis = lambda axis: np.moveaxis(both, axis, 0).reshape(-1, 2)
    blocks = lambda axis: np.array_split(of_axis(axis), BLOCKS)
    sums = [[x.sum(axis=0) for x in blocks(axis)] for axis in range(basin.ndim)]
    return np.array(sums, float)


def _slope(distance, counts: np.ndarray) -> float:
    """Slope of the logarithm of shares in that of distances."""
    shares = counts[:, 0] / counts[:, 1]
    return float(np.polyfit(np.log(distance), np.log(shares), 1)[0])
