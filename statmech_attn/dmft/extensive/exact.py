r"""Sums over all histories of a spin (docs/theory/extensive.md, section 3).

A spin that acts back on itself through Gamma has $2^T$ histories.  For few steps they
are all summed; the Gaussian noise, of T dimensions, is integrated by the product rule
of Gauss and Hermite in the directions of the Cholesky factor of its covariance.  The
response to earlier fields is the score, with $\theta(t) = \tanh \beta h(t)$

    G(t+1, t') = < theta(t) beta (x(t'+1) - theta(t')) >    t' < t

Deterministic spins have sums of their own (`exact_cold`).  Arrays of a step have the
axes cell, history x(0..t), node of the noise up to t; what comes later varies fastest.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from statmech_attn.dmft.extensive.exact_cold import (
    cholesky,
    cold_nodes,
    ColdPast,
    draw_cold,
)
from statmech_attn.dmft.extensive.loaded import (
    Cells,
    cells,
    check_steps,
    LoadedNetwork,
    temperatures,
)
from statmech_attn.dmft.extensive.order import add_token, attend, first_token
from statmech_attn.dmft.extensive.results import Trajectory, Values, values


MAX_STEPS = 8
MAX_NODES = 16  # of one direction of the noise
POINTS = 2**23  # histories times nodes, of a cell


class Past(NamedTuple):
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


def exact(
    problem: LoadedNetwork, start, *, steps: int, nodes: int | None = None
) -> Trajectory:
    """Order parameters of a few steps by sums over all histories of a spin.

    Args:
        problem: of any ensemble; beta is finite at all steps, or infinite at all.
        start: mean of the first token in every site class.
        steps: tokens to generate, at most 8.
        nodes: of every direction of the noise, on either side of a threshold where
            beta is infinite; as many as memory allows, and 16 or 24 at most, when
            omitted.

    Returns:
        The trajectory; its errors are differences from the rule with one node less.

    Raises:
        ValueError: beta that is infinite at some steps alone, more than 8 steps, or
            arguments out of range.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.identical(), alpha=0.1, beta=1.0)
        >>> value = extensive.exact(problem, [1.0], steps=2, nodes=8).value
        >>> round(float(value.m_o_se[1, 0]), 4)
        0.7722
    """
    check_steps(problem, steps)
    if steps > MAX_STEPS:
        raise ValueError(f"steps must be at most {MAX_STEPS}; got {steps}.")
    cold = np.isinf(problem.beta)
    if cold.any() and not cold.all():
        raise ValueError(
            "beta must be finite, or infinite, at all steps for sums over histories."
        )
    if nodes is None:
        most = min(MAX_NODES, int((POINTS / 2**steps) ** (1 / steps)))
        nodes = cold_nodes(steps) if cold.any() else most
    if nodes < 2:
        raise ValueError(f"nodes must be at least 2; got {nodes}.")
    sites = cells(problem.net, start)
    summed = _summed_cold if cold.any() else _summed
    fine, coarse = (summed(problem, sites, steps, n) for n in (nodes, nodes - 1))
    error = jax.tree.map(lambda x, y: abs(x - y), fine, coarse)
    return Trajectory(fine, error, "exact")


def _summed(problem: LoadedNetwork, sites: Cells, steps: int, nodes: int) -> Values:
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    beta = 1 / np.asarray(temperatures(problem, steps))
    order = first_token(problem, sites, steps)
    both, weight = _first_spins(sites)
    past = Past([both], [], [], weight[..., None])
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


def _score(past: Past, weighted, s: int) -> Float[np.ndarray, " cells"]:
    """Sum of weighted beta (x(s+1) - theta(s)) over histories and nodes."""
    theta = past.theta[s]
    count, histories, nodes = theta.shape
    joined = weighted.reshape(count, histories, -1, nodes, weighted.shape[2] // nodes)
    drawn = (weighted.sum(2) * past.spins[s + 1]).sum(1)
    return past.beta[s] * (drawn - (joined.sum((2, 4)) * theta).sum((1, 2)))


def _extended(past: Past, weight, theta, beta: float) -> Past:
    """The past with one more token, which doubles the histories."""
    signs = np.array([1.0, -1.0])[:, None]
    chance = (1 + signs * theta[:, :, None]) / 2
    count, histories, nodes = theta.shape
    weight = (weight[:, :, None] * chance).reshape(count, 2 * histories, nodes)
    spins = [np.repeat(x, 2, axis=1) for x in past.spins]
    newest = np.tile(signs.ravel(), (count, histories))
    return Past([*spins, newest], [*past.theta, theta], [*past.beta, beta], weight)
