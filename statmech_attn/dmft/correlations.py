r"""Even correlations of the patterns: the paper's view of a network.

The mean-field map depends on the patterns only through the even correlations
$\langle \prod_{b \in B} W^o_b \, W^\alpha_a \rangle$ with $|B|$ odd
(docs/theory/dmft.md, section 2).  For M <= 3 these are

    C^{o alpha}_{ba} = <W^o_b W^alpha_a>              (4, M, M)  `pair[alpha, b, a]`
    D^{o alpha}_a    = <W^o_1 W^o_2 W^o_3 W^alpha_a>  (4, M)  `triple[alpha, a]`, M = 3

Up to a common flip of a whole column, which the map does not see, the output column
$s = W^o_c$ can be taken with $s_1 = +1$: $2^{M-1}$ cells of probability $p(s)$, in
each of which pattern $W^\alpha_a$ has a conditional mean in [-1, 1].
"""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from statmech_attn.dmft.patterns import KINDS, Patterns, site_classes
from statmech_attn.options import Numbers


TOLERANCE = 1e-12  # slack for correlations given in decimal


class Correlations(NamedTuple):
    """Even correlations for M <= 3; `triple` is zero and unused for M < 3.

    Attributes:
        pair: <W^o_b W^alpha_a>, by kind alpha and patterns b, a.
        triple: <W^o_1 W^o_2 W^o_3 W^alpha_a>, by kind alpha and pattern a.
    """

    pair: Float[np.ndarray, "4 M M"]
    triple: Float[np.ndarray, "4 M"]


def even_correlations(patterns: Patterns) -> dict[tuple[int, ...], np.ndarray]:
    """All even correlations of any network: odd subset B of outputs -> (4, M) array.

    Args:
        patterns: of any network.

    Returns:
        For every set of an odd number of output patterns, its correlations with each of
        the other patterns, by kind (4) and pattern (M).

    Example:
        >>> from statmech_attn.dmft import load
        >>> c = even_correlations(load("poclopez-pe2").patterns)
        >>> sorted(c)
        [(0,), (0, 1, 2), (1,), (2,)]
    """
    semantic, fractions, _ = patterns
    n = patterns.n_patterns
    subsets = [
        subset
        for size in range(1, n + 1, 2)
        for subset in itertools.combinations(range(n), size)
    ]
    return {
        subset: semantic @ (fractions * semantic[0, list(subset)].prod(0))
        for subset in subsets
    }


def correlations(patterns: Patterns) -> Correlations:
    """Pair and triple correlations of a network with M <= 3.

    Args:
        patterns: site classes of the network.

    Returns:
        `Correlations`, by kind of pattern.

    Example:
        >>> from statmech_attn.dmft import load
        >>> pair, triple = correlations(load("poclopez-pe2").patterns)
        >>> pair.shape, triple.shape
        ((4, 3, 3), (4, 3))
    """
    _at_most_three(patterns.n_patterns)
    even = even_correlations(patterns)
    n = patterns.n_patterns
    pair = np.stack([even[(b,)] for b in range(n)], axis=1)
    return Correlations(pair, even.get((0, 1, 2), np.zeros((4, n))))


def from_correlations(
    correlations: Correlations, positional: Numbers | None = None
) -> Patterns:
    """Site classes that have the given even correlations (M <= 3).

    Within a cell the patterns are coupled by one uniform variable, which keeps the
    number of classes below 3 M 2^(M-1) + 2^(M-1).

    Args:
        correlations: pair and triple correlations of the patterns.
        positional: (4, M, N_p) of +-1; none when omitted.

    Returns:
        Patterns that have these correlations.

    Raises:
        ValueError: no set of +-1 columns can have these correlations.

    Example:
        >>> import numpy as np
        >>> from statmech_attn.dmft import load
        >>> given = correlations(load("poclopez-pe2").patterns)
        >>> again = correlations(from_correlations(given))
        >>> all(np.allclose(a, b) for a, b in zip(given, again))
        True
    """
    pair, triple = (
        np.asarray(correlations.pair, float),
        np.asarray(correlations.triple, float),
    )
    n = pair.shape[-1]
    _at_most_three(n)
    if pair.shape != (4, n, n) or triple.shape != (4, n):
        raise ValueError(
            f"correlations: need pair (4, M, M) and triple (4, M); "
            f"got {pair.shape} and {triple.shape}."
        )
    cells = np.array([(1, *s) for s in itertools.product((1, -1), repeat=n - 1)], float)
    probability, weighted_mean = _cells(pair, triple, cells)
    columns, fractions = [], []
    for s, p, mean in zip(cells, probability, weighted_mean, strict=True):
        if p <= TOLERANCE:
            continue
        for column, share in _coupled_columns(s, mean / p):
            columns.append(column)
            fractions.append(p * share)
    fractions = np.array(fractions)
    return site_classes(np.stack(columns, -1), fractions / fractions.sum(), positional)


def _cells(pair, triple, cells):
    """Probabilities p(s) (cells,), and p(s) times conditional means (cells, 4, M)."""
    n = cells.shape[1]
    products = cells.prod(1) if n == 3 else np.zeros(len(cells))
    mean = (
        np.einsum("sb,kba->ska", cells, pair) + np.einsum("s,ka->ska", products, triple)
    ) / len(cells)
    # Pattern o_1 is +1 in every cell, so its weighted mean is the cell's probability.
    probability = mean[:, 0, 0]
    if probability.min() < -TOLERANCE or abs(probability.sum() - 1) > 1e-9:
        raise ValueError(
            "correlations of the output patterns cannot be those of +-1 columns: "
            f"cell probabilities {np.round(probability, 6).tolist()} must be >= 0 "
            "and sum to one."
        )
    if not np.allclose(mean[:, 0], cells * probability[:, None], atol=1e-9):
        raise ValueError(
            "correlations of kind o are inconsistent: pair[o] must be symmetric with "
            "unit diagonal, and triple[o, a] the pair correlation of the other two."
        )
    excess = np.abs(mean) - probability[:, None, None]
    if excess.max() > TOLERANCE:
        _, kind, a = np.unravel_index(excess.argmax(), excess.shape)
        raise ValueError(
            f"correlations of kind {KINDS[kind]}, pattern {a + 1}, cannot be those of "
            f"+-1 columns: a conditional mean exceeds one (by {excess.max():.3g} in "
            "cell weight)."
        )
    return probability, mean


def _coupled_columns(s, mean):
    """Columns (4, M) with given means and W^o = s, and each one's share of the cell."""
    threshold = np.clip((1 + mean[1:]) / 2, 0, 1)
    edges = np.unique(np.concatenate([[0.0, 1.0], threshold.ravel()]))
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        if high - low > TOLERANCE:
            signs = np.where(threshold >= high, 1.0, -1.0)
            yield np.concatenate([s[None], signs]), high - low


def _at_most_three(n_patterns: int) -> None:
    if n_patterns > 3:
        raise ValueError(
            f"given correlations are supported for M <= 3; got M = {n_patterns}. "
            "Build the network from site classes instead."
        )
