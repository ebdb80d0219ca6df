r"""Ensembles of the patterns that grow with N (docs/theory/extensive.md, section 1).

At one site the entries of a pattern that no token condenses on have the correlations

    rho_xy = <x y>, x, y in (o, v, q, k)   (4, 4)   `correlations`, diagonal one

In the cycle construction q = k = v of a pattern are the output of the one before it:
what is read at one index is written at the next.
"""

import itertools

import equinox as eqx
import numpy as np
from jaxtyping import Float

from statmech_attn import presentation
from statmech_attn.dmft.patterns import KINDS
from statmech_attn.labels import Variable


ROUNDING = 1e-12
O, V, Q, K = range(4)


class Ensemble(eqx.Module):
    """How the four kinds of a pattern are correlated; build with the functions below.

    Attributes:
        correlations: <x y> at one site, kinds ordered o, v, q, k.
        is_cycle: whether what is read at one index is written at the next; the
            correlations are then those of v, q and k, and o is that of the next index.
    """

    correlations: Float[np.ndarray, "4 4"]
    is_cycle: bool = eqx.field(static=True)

    _shown = (
        Variable("is_cycle", "", "cycle construction"),
        Variable(
            "correlations", "kind kind_2", "correlations of the kinds", symbol="ρ"
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def description(self) -> str:
        """The ensemble in words; equal words mean equal ensembles.

        Example:
            >>> cycle().description, correlated(ov=0.5).description
            ('cycle', 'ov = 0.5')
        """
        if self.is_cycle:
            return "cycle"
        pairs = itertools.combinations(range(4), 2)
        correlated = [
            f"{KINDS[x]}{KINDS[y]} = {rho:g}"
            for x, y in pairs
            if (rho := self.correlations[x, y])
        ]
        return ", ".join(correlated) or "independent"

    @property
    def is_closed(self) -> bool:
        """Whether the response never returns to its own site, so that Gamma = 0."""
        return self.is_cycle or bool(self.correlations[O, V] == 0)


def cycle() -> Ensemble:
    """Patterns of one long sequence: q = k = v of an index are o of the one before.

    Returns:
        The ensemble, whose recursion is closed.

    Example:
        >>> cycle().is_closed
        True
    """
    signs = np.array([0.0, 1, 1, 1])
    return Ensemble(np.outer(signs, signs) + np.diag(1 - signs), True)


def identical() -> Ensemble:
    """Patterns whose four kinds are the same: those of a Hopfield network.

    Returns:
        The ensemble, whose spins act back on themselves.

    Example:
        >>> identical().is_closed
        False
    """
    return Ensemble(np.ones((4, 4)), False)


def independent() -> Ensemble:
    """Patterns whose four kinds are independent.

    Returns:
        The ensemble, whose recursion is closed.

    Example:
        >>> independent().is_closed
        True
    """
    return Ensemble(np.eye(4), False)


def correlated(
    *,
    ov: float = 0.0,
    oq: float = 0.0,
    ok: float = 0.0,
    vq: float = 0.0,
    vk: float = 0.0,
    qk: float = 0.0,
) -> Ensemble:
    """Patterns with given correlations between their kinds.

    Args:
        ov: mean of o v at a site, in [-1, 1].
        oq: mean of o q.
        ok: mean of o k.
        vq: mean of v q.
        vk: mean of v k.
        qk: mean of q k.

    Returns:
        The ensemble; that of `identical` has all ones, that of `independent` all zeros.

    Raises:
        ValueError: no patterns of +-1 have these correlations.

    Example:
        >>> correlated(qk=0.5).correlations[2, 3]
        np.float64(0.5)
    """
    rho = np.eye(4)
    pairs = itertools.combinations(range(4), 2)
    for (x, y), value in zip(pairs, (ov, oq, ok, vq, vk, qk), strict=True):
        rho[x, y] = rho[y, x] = value
    _require_possible(rho)
    return Ensemble(rho, False)


def _require_possible(rho: Float[np.ndarray, "4 4"]) -> None:
    """Refuse correlations that no four signs have.

    Of four signs the triangle inequalities are necessary and sufficient: the cut
    polytope of four points has no other facets (M. Deza and M. Laurent, Geometry of
    Cuts and Metrics, Springer 1997, section 30.6).
    """
    for i, j, l in itertools.combinations(range(4), 3):
        for a, b in itertools.product((1, -1), repeat=2):
            least = 1 + a * rho[i, j] + b * rho[j, l] + a * b * rho[i, l]
            if not least >= -ROUNDING:
                x, y, z = KINDS[i], KINDS[j], KINDS[l]
                raise ValueError(
                    f"correlations {x}{y} = {rho[i, j]:g}, {y}{z} = {rho[j, l]:g}, "
                    f"{x}{z} = {rho[i, l]:g} cannot be those of +-1 patterns."
                )


def column_probabilities(ensemble: Ensemble) -> Float[np.ndarray, " 16"]:
    """Probabilities of the 16 columns (o, v, q, k), ordered as `itertools.product`.

    The columns and their opposites are equally likely.  The theory depends on the
    correlations of pairs alone; that of all four is the middle of what is possible.

    Args:
        ensemble: with correlations at one index.

    Example:
        >>> column_probabilities(identical())[[0, 15]]
        array([0.5, 0.5])
    """
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=4)))
    pairs = itertools.combinations(range(4), 2)
    even = np.ones(len(signs))
    for x, y in pairs:
        even += ensemble.correlations[x, y] * signs[:, x] * signs[:, y]
    of_all = signs.prod(1)
    low = -even[of_all > 0].min()
    high = even[of_all < 0].min()
    probabilities = np.clip(even + (low + high) / 2 * of_all, 0, None)
    return probabilities / probabilities.sum()
