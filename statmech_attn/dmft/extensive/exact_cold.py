r"""Sums over all histories of a deterministic spin (docs/theory/extensive.md, 3).

Without thermal noise a history fixes on which side of a threshold the Gaussian noise of
every step lies, $\phi = F \xi$ with F the Cholesky factor of its covariance.  The last
noise of a history is integrated in closed form,

    < x(t+1) >      = erf(b / sqrt 2),  b = (h without the last noise) / F(t, t)
    < x(t+1) xi_t > = sqrt(2 / pi) exp(-b^2 / 2)

and those before it by Gauss and Legendre's rule on either side of the threshold, with
the mass of the side.  Responses come from partial integration, as of `sampled`:

    < x(t+1) xi_s > = sum_{t' >= s} F(t', s) G(t+1, t')
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.special import erf, ndtr


LIMIT = 6.0  # of the independent noise, in standard deviations
SINGULAR = 1e-12  # of the variance: a pivot that is zero up to rounding
POINTS = 2**21  # of a cell before the last step
MAX_NODES = 24


class ColdPast(NamedTuple):
    """What happened up to a step; points are histories times nodes of the noise.

    Attributes:
        spins: x(s) of the tokens s = 0..t.
        noise: independent noise xi(s) of the steps before t.
        weight: probabilities.
    """

    spins: list[Float[np.ndarray, "cells points"]]
    noise: list[Float[np.ndarray, "cells points"]]
    weight: Float[np.ndarray, "cells points"]


class Drawn(NamedTuple):
    """What a step of the sums gives.

    Attributes:
        means: of the token in every cell.
        C: correlations with the tokens before.
        G: responses to the fields so far.
        past: up to the token, unless it is the last.
    """

    means: Float[np.ndarray, " cells"]
    C: Float[np.ndarray, " t"]
    G: Float[np.ndarray, " t"]
    past: ColdPast


def cold_nodes(steps: int) -> int:
    """Nodes on either side of a threshold that so many steps allow.

    Args:
        steps: tokens to generate.
    """
    return min(MAX_NODES, int(POINTS ** (1 / max(steps - 1, 1)) / 2))


def draw_cold(
    past: ColdPast,
    a: Float[np.ndarray, " cells"],
    Gamma: Float[np.ndarray, " t"],
    V: Float[np.ndarray, "t t"],
    share: Float[np.ndarray, " cells"],
    nodes: int,
    is_last: bool,
) -> Drawn:
    """Draw the next token of every history.

    Args:
        past: up to the newest token.
        a: mean field of the cells.
        Gamma: self-interaction with the tokens so far.
        V: covariance of the noise up to this step.
        share: of the cells.
        nodes: on either side of a threshold.
        is_last: whether no token follows.

    Returns:
        Means, correlations and responses, and the past with the token.
    """
    factor = cholesky(V, SINGULAR)
    known = a[:, None] + np.tensordot(Gamma, past.spins, 1)
    for width, noise in zip(factor[-1, :-1], past.noise, strict=True):
        known = known + width * noise
    width = factor[-1, -1]
    b = known / width if width > 0 else np.sign(known) * np.inf
    weighted = past.weight * erf(b / np.sqrt(2))
    C = np.array([share @ (weighted * x).sum(1) for x in past.spins])
    felt = [share @ (weighted * noise).sum(1) for noise in past.noise]
    kink = np.sqrt(2 / np.pi) * np.exp(-(b**2) / 2)
    felt = np.array([*felt, share @ (past.weight * kink).sum(1)])
    is_known = np.diag(factor) > 0
    lower = factor + np.diag(np.where(is_known, 0.0, 1.0))
    G = np.where(is_known, solve_triangular(lower, felt, trans=1, lower=True), 0.0)
    after = past if is_last else _extended(past, b, nodes)
    return Drawn(weighted.sum(1), C, G, after)


def cholesky(V: Float[np.ndarray, "t t"], least: float = 0.0):
    """Cholesky factor of a covariance that may be singular.

    Args:
        V: covariance.
        least: pivots up to this part of the variance are zero.
    """
    factor = np.zeros_like(V)
    for i, row in enumerate(V):
        for j in range(i):
            rest = row[j] - factor[i, :j] @ factor[j, :j]
            factor[i, j] = rest / factor[j, j] if factor[j, j] > 0 else 0.0
        pivot = row[i] - factor[i, :i] @ factor[i, :i]
        factor[i, i] = np.sqrt(pivot) if pivot > least * row[i] else 0.0
    return factor


def _extended(past: ColdPast, b: Float[np.ndarray, "cells points"], nodes: int):
    """The past with one more token, of either sign, and the noise that drew it."""
    y, w = np.polynomial.legendre.leggauss(nodes)
    threshold = np.clip(-b, -LIMIT, LIMIT)[..., None]
    sides = []
    for sign in (1.0, -1.0):
        half = (LIMIT - sign * threshold) / 2
        noise = threshold + sign * half * (1 + y)
        density = w * np.exp(-(noise**2) / 2)
        total = density.sum(-1, keepdims=True)
        sides.append((noise, ndtr(sign * b)[..., None] * density / total))
    noise, chance = (np.stack(x, axis=2) for x in zip(*sides))
    shape = noise.shape
    flat = lambda x: np.broadcast_to(x, shape).reshape(shape[0], -1)
    earlier = lambda x: flat(x[:, :, None, None])
    spins = [earlier(x) for x in past.spins]
    newest = flat(np.array([1.0, -1.0])[:, None])
    weight = flat(past.weight[:, :, None, None] * chance)
    return ColdPast([*spins, newest], [*map(earlier, past.noise), flat(noise)], weight)
