"""Masks of the heads that are kept, by scores of the heads.

    mask              (m, n, n)   by score, number of heads kept from 1 to n, and head

A mask is one gate for every head, True where it is kept, for `ablation`, a model of
PyTorch (`TorchHeads`) or an output projection.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike


def kept_heads(scores: Mapping[str, ArrayLike]) -> Bool[np.ndarray, "m n n"]:
    """Which heads are kept, the highest of every score, for each number of them.

    Args:
        scores: by name, each of all heads, layer by layer.  Of two heads with the same
            score the first is kept.

    Raises:
        ValueError: no score, or scores of different numbers of heads.

    Example:
        >>> kept_heads({"norm": [0.1, 0.9, 0.5]})[0].astype(int).tolist()
        [[0, 1, 0], [0, 1, 1], [1, 1, 1]]
    """
    rows = [np.asarray(values, float) for values in scores.values()]
    if not rows or any(row.shape != (len(rows[0]),) for row in rows):
        raise ValueError(
            "scores: need one at least, and one number for each head; got shapes "
            f"{[row.shape for row in rows]}."
        )
    ranks = [np.argsort(np.argsort(-row, kind="stable")) for row in rows]
    numbers = np.arange(1, len(rows[0]) + 1)
    return np.array([rank < numbers[:, None] for rank in ranks])
