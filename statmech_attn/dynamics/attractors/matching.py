r"""Distances of sets of points, and which sets are one (docs/theory/attractors.md).

The distance of two sets of points A and B (P, d) is the larger of the two mean
distances to the nearest neighbour,

    $D(A, B) = \max\big( \langle \min_b |a - b| \rangle_a,
                         \langle \min_a |a - b| \rangle_b \big)$

which unlike Hausdorff's does not hang on one rare excursion.  Two pieces of one orbit
on a chaotic or quasi-periodic set have a distance that is not zero, its scatter; two
orbits lie on one set when their distance is not larger than a few scatters.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from statmech_attn.options import EMPTY, INFINITE, MISSING


Points = Float[np.ndarray, "_P d"]


def set_distance(a: Points, b: Points) -> float:
    """Larger mean distance to the nearest neighbour in the other set."""
    return max(directed_distance(a, b), directed_distance(b, a))


def directed_distance(a: Points, b: Points) -> float:
    """Mean distance from the points of a (n, d) to their nearest points of b (m, d)."""
    return float(np.mean(KDTree(b).query(a)[0]))


def resolution(a: Points) -> float:
    """Mean distance from a point of the set to its third nearest other point.

    The second would do for points that fill an area; those of a quasi-periodic orbit
    come in gaps of up to three lengths, and the nearest neighbour sees the shortest.
    """
    return float(np.mean(KDTree(a).query(a, k=4)[0][:, 3]))


def distances(a: Sequence[Points], b: Sequence[Points]) -> Float[np.ndarray, "n m"]:
    """Set distances between the sets of two lists."""
    table = [[set_distance(x, y) for y in b] for x in a]
    return np.array(table).reshape(len(a), len(b))


def match_by_distance(
    between: Annotated[Float[np.ndarray, "n m"], MISSING, EMPTY],
    furthest: Annotated[float, INFINITE] = np.inf,
) -> Int[np.ndarray, " m"]:
    """Match sets along a parameter by distance: which earlier set each later one is.

    -1 marks a new set.  Pairs farther apart than `furthest` are not matched.  Of the
    assignments with most of the other pairs, the one with the smallest sum of distances
    is taken.
    """
    parent = np.full(between.shape[1], -1)
    near = np.isfinite(between) & (between <= furthest)
    # One pair that is none costs more than all that may be.
    none = 2 * min(between.shape) * np.where(near, between, 0).max(initial=0) + 1
    rows, columns = linear_sum_assignment(np.where(near, between, none))
    matched = near[rows, columns]
    parent[columns[matched]] = rows[matched]
    return parent


def match_by_flow(
    target: Int[np.ndarray, " n"],
    between: Annotated[Float[np.ndarray, "n m"], MISSING, EMPTY],
) -> Int[np.ndarray, " m"]:
    """Match sets along a parameter by flow: which earlier set each later one is, or -1.

    Set i flows to the later set `target[i]`; -1: to none of them.  Of several that flow
    to one set, the nearest goes on as this set, and the others end.
    """
    parent = np.full(between.shape[1], -1)
    for j in range(between.shape[1]):
        arriving = np.flatnonzero(target == j)
        if arriving.size:
            parent[j] = arriving[np.argmin(between[arriving, j])]
    return parent


def identities(parents: Sequence[Int[np.ndarray, " _m"]]) -> list[np.ndarray]:
    """Number attractors along a parameter: as the one before, or anew."""
    numbered: list[np.ndarray] = []
    count = 0
    for parent in parents:
        before = numbered[-1] if numbered else np.array([], int)
        numbers = np.array(
            [before[p] if numbered and p >= 0 else -1 for p in parent], int
        )
        new = numbers < 0
        numbers[new] = count + np.arange(new.sum())
        count += int(new.sum())
        numbered.append(numbers)
    return numbered
