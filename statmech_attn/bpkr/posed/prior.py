r"""Sizes of a problem: widths, heads and variances of the prior, and their checks.

(N_1, ..., N_L, N_a)              `widths`     widths into the layers and at readout
(sigma_0^2, ..., sigma_L^2, sigma_a^2)  `variances`  prior variances of the weights
(b_1, ..., b_L)                   `skip`       skip connections; None: a layer has none
H_l, or H_l + 1 with a skip       `branches`   ways of a path through layer l
d_l = K prod_{j >= l} branches_j  `sizes`      size of U_l; the last one is K, of U_a

The skip of a layer is the first of its branches, its heads follow in their order.
"""

import math
from collections.abc import Sequence
from operator import index
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from statmech_attn.arguments import mismatch, shown
from statmech_attn.options import NotNegative, Temperature


Skip = tuple[Float[Array, ""] | float | None, ...]  # one of every layer


class Prior(NamedTuple):
    """Heads and skips by layer, widths and variances as arrays; build with `prior`."""

    heads: tuple[int, ...]
    widths: Float[np.ndarray, " layers"]  # L + 1 with the readout
    variances: Float[np.ndarray, " layers+1"]
    skip: Skip


def prior(width, heads: Sequence, variances=None, skip=None) -> Prior:
    """Validate widths, heads, variances and skip connections."""
    heads = head_counts(heads)
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
    skip = skips(skip, len(heads))
    check_widths(widths, skip)
    return Prior(heads, widths, variances, skip)


def skips(skip, layers: int) -> Skip:
    """The factor b_l of the skip connection of every layer, None where there is none.

    `skip` is one number for all layers, or one for each; zero and None are no skip.
    """
    factors = list(skip) if np.ndim(skip) else [skip] * layers
    try:
        factors = np.array([0.0 if b is None else b for b in factors], float)
    except (TypeError, ValueError):
        factors = np.array([np.nan])
    if factors.shape != (layers,) or not np.isfinite(factors).all():
        raise ValueError(
            f"skip: need one finite number, or one for each of {layers} layers (0 for "
            f"no skip connection); got {shown(skip)}."
        )
    return tuple(float(b) if b else None for b in factors)


def check_widths(widths: Float[np.ndarray, " layers"], skip: Skip) -> None:
    """Raise `ValueError` where a skip connection joins layers of different width."""
    for layer, b in enumerate(skip):
        if b is not None and widths[layer] != widths[layer + 1]:
            raise ValueError(
                f"skip: the skip connection of layer {layer + 1} needs equal widths "
                f"before and after it; got {widths[layer]:g} and "
                f"{widths[layer + 1]:g}: make them equal, or give this layer skip 0."
            )


def branches(heads: Sequence[int], skip: Skip) -> tuple[int, ...]:
    """Ways through every layer: its heads, and its skip connection if it has one."""
    return tuple(H + (b is not None) for H, b in zip(heads, skip, strict=True))


def path_shares(heads: Sequence[int], skip: Skip) -> Float[np.ndarray, " Pi"]:
    r"""$\prod_l H_l$ over the layers that each path passes through a head.

    Without skips it is |Pi| for all.
    """
    shares = np.ones(1)
    for H, b in zip(heads, skip, strict=True):
        layer = [1.0] * (b is not None) + [float(H)] * H
        shares = np.outer(shares, layer).ravel()
    return shares


def head_counts(heads: Sequence) -> tuple[int, ...]:
    """Heads per layer (H_1, ..., H_L), of counts or of heads given by their matrices.

    Args:
        heads: counts, or one array of heads per layer.

    Returns:
        The number of heads of every layer.

    Raises:
        ValueError: no layer, or a count that is no whole number >= 1.

    Example:
        >>> import numpy as np
        >>> head_counts([2, 1]), head_counts([np.zeros((2, 3, 3))])
        ((2, 1), (2,))
    """
    try:
        counts = tuple(len(h) if np.ndim(h) == 3 else index(h) for h in heads)
    except TypeError:
        counts = ()
    if not counts or min(counts) < 1:
        raise ValueError(
            "heads: need the number of heads of every layer, each a whole number >= 1, "
            f"such as (2, 2); got {shown(heads)}."
        )
    return counts


def layer_widths(width, layers: int) -> Float[np.ndarray, " {layers}+1"]:
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


def check_temperature(temperature: Temperature) -> None:
    """Raise `ValueError` unless the temperature is a number of 0 to 1e100."""
    if allowed := mismatch(temperature, Temperature):
        raise ValueError(f"temperature must be {allowed}; got {shown(temperature)}.")


def check_finite_width(
    widths: Float[np.ndarray, " layers"], temperature: NotNegative, where: str
) -> None:
    """Raise `ValueError` unless widths are whole and the temperature is > 0."""
    if (widths != np.round(widths)).any():
        raise ValueError(f"width must be whole in {where}; got {widths}.")
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be finite and > 0; got {temperature}.")


def outside_support(widths, sizes: Sequence[int]) -> Bool[np.ndarray, "*batch"]:
    """Whether a width is below the size of its U.

    The exact law then has singular U alone, and a saddle point, of which every U is
    positive definite, lies outside its support.  Widths have (N_1, ..., N_L, N_a) last.
    """
    return np.asarray(np.any(np.asarray(widths) < np.asarray(sizes), axis=-1))


def factor_shapes(
    heads: Sequence[int], skip: Skip, outputs: int = 1
) -> tuple[tuple[int, int], ...]:
    """Rows of (a_l beta_l) and columns of a_l, for every layer and the readout.

    beta_l is square and lower triangular; without a skip there is no a_l.
    """
    inner = sizes(branches(heads, skip), outputs)[1:]
    shapes = [(H * d, d * (b is not None)) for H, d, b in zip(heads, inner, skip)]
    return *shapes, (outputs, 0)


def lower(
    rows: int, beside: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Rows and columns of the entries of (a beta), the `beside` columns of a first."""
    return np.tril_indices(rows, beside, rows + beside)


def sizes(heads: Sequence[int], outputs: int = 1) -> tuple[int, ...]:
    """Sizes (d_1, ..., d_L, K) of U_1 ... U_L and U_a; `heads` are the branches."""
    return tuple(outputs * math.prod(heads[l:]) for l in range(len(heads) + 1))
