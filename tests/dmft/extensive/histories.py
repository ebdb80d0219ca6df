r"""Sums over all histories of a spin (docs/theory/extensive.md, section 3).

A spin that acts back on itself through Gamma has $2^T$ histories.  For few steps they
are all summed; the Gaussian noise, of T dimensions, is integrated by the product rule
of Gauss and Hermite in the directions of the Cholesky factor of its covariance.  The
response to earlier fields is the score, with $\theta(t) = \tanh \beta h(t)$

    G(t+1, t') = < theta(t) beta (x(t'+1) - theta(t')) >    t' < t

Arrays of a step have the axes cell, history x(0..t), node of the noise up to t; what
comes later varies fastest.

Without thermal noise a history fixes on which side of a threshold the Gaussian noise of
every step lies, $\phi = F \xi$ with F the Cholesky factor of its covariance.  The last
noise of a history is integrated in closed form,

    < x(t+1) >      = erf(b / sqrt 2),  b = (h without the last noise) / F(t, t)
    < x(t+1) xi_t > = sqrt(2 / pi) exp(-b^2 / 2)

and those before it by Gauss and Legendre's rule on either side of the threshold, with
the mass of the side.  Responses come from partial integration, as of `sampled`:

    < x(t+1) xi_s > = sum_{t' >= s} F(t', s) G(t+1, t')

Of many steps memory leaves few nodes, and the sums are no integrals any more: of six
steps of identical patterns with alpha = 0.2 and gamma = 5, errors of S are 1e-4 at
beta = 1.2 and 0.04 at beta = 2.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.special import erf, ndtr

from statmech_attn.dmft.extensive import LoadedNetwork, Trajectory, Values
from statmech_attn.dmft.extensive.loaded_network import Cells, cells, temperatures
from statmech_attn.dmft.extensive.results import values
from statmech_attn.dmft.extensive.two_time_order import add_token, attend, first_token


MAX_NODES = 16  # of one direction of the noise
POINTS = 2**23  # histories times nodes, of a cell
LIMIT = 6.0  # of the independent noise, in standard deviations
SINGULAR = 1e-12  # of the variance: a pivot that is zero up to rounding
COLD_NODES = 24  # on either side of a threshold
COLD_POINTS = 2**21  # of a cell before the last step


class ReversalWindow(NamedTuple):
    """What happened up to a step, for every history and node.

    Attributes:
        spins: x(s) of the tokens s = 0..t, (cells, histories).
        theta: means tanh beta h(s) of the tokens drawn since, (cells, histories up to
            s, nodes up to s).
        beta: inverse temperatures at which they were drawn.
        weight: probabilities, (cells, histories, nodes up to t - 1).
    """

    spins: list[Float[np.ndarray, "cells histories"]]
    theta: list[Float[np.ndarray, "..."]]
    beta: list[float]
    weight: Float[np.ndarray, "cells histories nodes"]


def summed(
    problem: LoadedNetwork, start, *, steps: int, nodes: int | None = None
) -> Trajectory:
    """Order parameters of a few steps by sums over all histories of a spin.

    Args:
        problem: of any ensemble; beta is finite at all steps, or infinite at all.
        start: mean of the first token in every site class.
        steps: tokens to generate.
        nodes: of every direction of the noise, on either side of a threshold where
            beta is infinite; as many as memory allows, and 16 or 24 at most, when
            omitted.

    Returns:
        The trajectory; its errors are differences from the rule with one node less,
        an estimate and no bound.
    """
    cold = np.isinf(problem.beta)
    assert cold.all() or not cold.any()
    if nodes is None and cold.any():
        nodes = min(COLD_NODES, int(COLD_POINTS ** (1 / max(steps - 1, 1)) / 2))
    nodes = nodes or min(MAX_NODES, int((POINTS / 2**steps) ** (1 / steps)))
    sites = cells(problem.net, start)
    rule = _summed_cold if cold.any() else _summed
    fine, coarse = (rule(problem, sites, steps, n) for n in (nodes, nodes - 1))
    error = jax.tree.map(lambda x, y: abs(x - y), fine, coarse)
    return Trajectory(fine, error, "histories")


def _summed(problem: LoadedNetwork, sites: Cells, steps: int, nodes: int) -> Values:
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    beta = 1 / np.asarray(temperatures(problem, steps))
    order = first_token(problem, sites, steps)
    both, weight = _first_spins(sites)
    past = ReversalWindow([both], [], [], weight[..., None])
    for t in range(steps):
        order = _attend(problem, order, jnp.array(t))
        a = np.asarray(order.A[t]) @ sites.output
        reaction = np.tensordot(np.asarray(order.Gamma[t, : t + 1]), past.spins, 1)
        noise = _on_nodes(cholesky(np.asarray(order.V)[: t + 1, : t + 1])[-1], z)
        h = a[:, None, None] + reaction[..., None] + noise
        theta = np.tanh(beta[t] * h)
        weight = (past.weight[..., None] * w).reshape(*past.weight.shape[:2], -1)
        C, G = np.zeros((2, steps + 1))
        weighted = weight * theta
        C[t + 1] = 1
        C[: t + 1] = [sites.share @ (weighted.sum(2) * x).sum(1) for x in past.spins]
        G[t] = beta[t] * sites.share @ (weight * (1 - theta**2)).sum((1, 2))
        G[:t] = [sites.share @ _score(past, weighted, s) for s in range(t)]
        means = sites.weighted @ weighted.sum((1, 2))
        rows = map(jnp.asarray, (means, C, G))
        order = _add_token(problem, order, jnp.array(t + 1), *rows)
        past = _extended(past, weight, theta, float(beta[t]))
    return values(problem, _attend(problem, order, jnp.array(steps)))


def _summed_cold(
    problem: LoadedNetwork, sites: Cells, steps: int, nodes: int
) -> Values:
    order = first_token(problem, sites, steps)
    both, weight = _first_spins(sites)
    past = ColdPast([both], [], weight)
    for t in range(steps):
        order = _attend(problem, order, jnp.array(t))
        so_far = slice(t + 1)
        drawn = draw_cold(
            past,
            np.asarray(order.A[t]) @ sites.output,
            np.asarray(order.Gamma[t, so_far]),
            np.asarray(order.V[so_far, so_far]),
            sites.share,
            nodes,
            is_last=t + 1 == steps,
        )
        C, G = np.zeros((2, steps + 1))
        C[so_far], C[t + 1], G[so_far] = drawn.C, 1.0, drawn.G
        rows = map(jnp.asarray, (sites.weighted @ drawn.means, C, G))
        order = _add_token(problem, order, jnp.array(t + 1), *rows)
        past = drawn.past
    return values(problem, _attend(problem, order, jnp.array(steps)))


def _first_spins(sites: Cells):
    """Both signs of the first token in every cell, and their probabilities."""
    both = np.stack([np.ones_like(sites.start), -np.ones_like(sites.start)], axis=1)
    return both, (1 + both * sites.start[:, None]) / 2


_attend = eqx.filter_jit(attend)
_add_token = eqx.filter_jit(add_token)


def _on_nodes(row: Float[np.ndarray, " t"], z) -> Float[np.ndarray, " nodes"]:
    """The noise of a step on the product of nodes."""
    noise = np.zeros(1)
    for factor in row:
        noise = np.add.outer(noise, factor * z).ravel()
    return noise


def _score(past: ReversalWindow, weighted, s: int) -> Float[np.ndarray, " cells"]:
    """Sum of weighted beta (x(s+1) - theta(s)) over histories and nodes."""
    theta = past.theta[s]
    count, histories, nodes = theta.shape
    joined = weighted.reshape(count, histories, -1, nodes, weighted.shape[2] // nodes)
    drawn = (weighted.sum(2) * past.spins[s + 1]).sum(1)
    return past.beta[s] * (drawn - (joined.sum((2, 4)) * theta).sum((1, 2)))


def _extended(past: ReversalWindow, weight, theta, beta: float) -> ReversalWindow:
    """The past with one more token, which doubles the histories."""
    signs = np.array([1.0, -1.0])[:, None]
    chance = (1 + signs * theta[:, :, None]) / 2
    count, histories, nodes = theta.shape
    weight = (weight[:, :, None] * chance).reshape(count, 2 * histories, nodes)
    spins = [np.repeat(x, 2, axis=1) for x in past.spins]
    newest = np.tile(signs.ravel(), (count, histories))
    return ReversalWindow(
        [*spins, newest], [*past.theta, theta], [*past.beta, beta], weight
    )


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
    after = past if is_last else _extended_cold(past, b, nodes)
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


def _extended_cold(past: ColdPast, b: Float[np.ndarray, "cells points"], nodes: int):
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
