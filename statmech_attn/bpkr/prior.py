r"""Sizes of a problem: widths, heads and variances of the prior, checked once.

(N_1, ..., N_L, N_a)              `widths`     widths into the layers and at readout
(sigma_0^2, ..., sigma_L^2, sigma_a^2)  `variances`  prior variances of the weights
d_l = K prod_{j >= l} H_j         `sizes`      size of U_l; the last one is K, of U_a
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float


class Prior(NamedTuple):
    """Widths and variances as arrays; build with `prior`."""

    widths: Float[np.ndarray, " L+1"]
    variances: Float[np.ndarray, " L+2"]


def prior(width, heads: Sequence[int], variances=None) -> Prior:
    """Validate widths, heads and variances.

    Example:
        >>> prior(10, (2, 2)).widths.tolist()
        [10.0, 10.0, 10.0]
    """
    check_heads(heads)
    widths = layer_widths(width, len(heads))
    if variances is None:
        variances = np.ones(len(heads) + 2)
    variances = np.asarray(variances, float)
    if variances.shape != (len(heads) + 2,):
        raise ValueError(
            f"variances: need one per layer (sigma_0^2 ... sigma_L^2, sigma_a^2), "
            f"{len(heads) + 2} numbers; got shape {variances.shape}."
        )
    if not (np.isfinite(variances) & (variances > 0)).all():
        raise ValueError(f"variances must be finite and > 0; got {variances}.")
    return Prior(widths, variances)


def check_heads(heads: Sequence[int]) -> None:
    """Raise `ValueError` unless `heads` is at least one count, each >= 1."""
    if len(heads) < 1 or any(int(h) != h or h < 1 for h in heads):
        raise ValueError(
            f"heads: need the number of heads of every layer, each >= 1; got {heads}."
        )


def layer_widths(width, layers: int) -> Float[np.ndarray, " L+1"]:
    """One width for all, or (N_1, ..., N_L, N_a) as given."""
    widths = np.asarray(width, float)
    if widths.ndim == 0:
        widths = np.full(layers + 1, widths)
    if widths.shape != (layers + 1,):
        raise ValueError(
            f"width: need one number or (N_1, ..., N_L, N_a), {layers + 1} numbers; "
            f"got shape {widths.shape}."
        )
    if not (np.isfinite(widths) & (widths >= 1)).all():
        raise ValueError(f"width must be finite and >= 1; got {width}.")
    return widths


def check_whole(widths: Float[np.ndarray, " L+1"], where: str) -> None:
    """Raise `ValueError` unless all widths are integers, as `where` needs them.

    Example:
        >>> check_whole(prior(10, (2, 2)).widths, "weight space")
    """
    if (widths != np.round(widths)).any():
        raise ValueError(f"width must be whole in {where}; got {widths}.")


def outside_support(widths, sizes: Sequence[int]) -> Bool[np.ndarray, "*batch"]:
    """Whether a width is below the size of its U.

    The exact law then has singular U alone, and a saddle point, of which every U is
    positive definite, lies outside its support.

    Args:
        widths: (N_1, ..., N_L, N_a) last.

    Example:
        >>> outside_support([[10, 10, 10], [4, 2, 1]], sizes((4, 4))).tolist()
        [True, True]
        >>> bool(outside_support([16, 4, 1], sizes((4, 4))))
        False
    """
    return np.any(np.asarray(widths) < np.asarray(sizes), axis=-1)


def sizes(heads: Sequence[int], outputs: int = 1) -> tuple[int, ...]:
    """(d_1, ..., d_L, K), the sizes of U_1 ... U_L and U_a.

    Example:
        >>> sizes((2, 3))
        (6, 3, 1)
    """
    return tuple(outputs * math.prod(heads[l:]) for l in range(len(heads) + 1))
