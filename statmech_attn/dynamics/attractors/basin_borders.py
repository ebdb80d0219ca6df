r"""Entropy of basins on a grid of labels (docs/theory/attractors.md, section 7).

    $S_b = \langle -\sum_k p_k \ln p_k \rangle$ over boxes of the grid  `basin_entropy`

$S_b$ and $S_{bb}$, over the boxes of a border alone, are those of Daza et al.
(Scientific Reports 6, 31416, 2016).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from statmech_attn import presentation
from statmech_attn.dynamics.attractors.basins import NOT_SETTLED
from statmech_attn.labels import Variable
from statmech_attn.options import Count


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


def basin_entropy(basin: Int[np.ndarray, "ny nx"], box: Count = 5) -> BasinEntropy:
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


def _labels(basin) -> np.ndarray:
    basin = np.asarray(basin)
    if not (basin == np.rint(basin)).all():
        raise ValueError(
            "basin must hold whole numbers, -1 where a state has none; got others, or "
            f"NaN, of {basin.dtype}."
        )
    return basin
