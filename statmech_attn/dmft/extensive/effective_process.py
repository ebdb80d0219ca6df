r"""Sampled effective trajectories where Gamma is not zero (docs/theory/extensive.md).

A population of spins follows the effective process together, step by step: their
averages give the order parameters with which the next step is made (H. Eissfeller and
M. Opper, PRL 68, 2094, 1992).  The noise grows by a row of the Cholesky factor F of its
covariance; with $\theta(t) = \tanh \beta h(t)$ and independent $\xi$

    h(t) = sum_a o_a A_a(t) + sum_t' Gamma(t, t') x(t') + sum_t' F(t, t') xi(t')
    G(t+1, t) = beta < 1 - theta(t)^2 >
    G(t+1, t') = < theta(t) beta (x(t'+1) - theta(t')) >    t' < t

Deterministic spins, beta infinite, have no score; the noise is a field as well, so

    < theta(t) xi(s) > = sum_{t' >= s} F(t', s) G(t+1, t')    s <= t

is solved for G, whose errors grow where the noise of a step is mostly that of earlier
ones.  C is the average of products of spins, so that all covariances are non-negative.
Populations are independent of one another; errors come from their spread.
"""

from functools import partial
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Le
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Key

from statmech_attn import presentation
from statmech_attn.batches import devices
from statmech_attn.dmft.extensive.closed_recursion import closed
from statmech_attn.dmft.extensive.loaded_network import (
    Cells,
    cells,
    check_steps,
    LoadedNetwork,
    temperatures,
)
from statmech_attn.dmft.extensive.results import Trajectory, Values, values
from statmech_attn.dmft.extensive.two_time_order import (
    add_token,
    attend,
    first_token,
    Order,
)
from statmech_attn.options import Count, MAX_COUNT, Means, Positive
from statmech_attn.statistics import standard_error


POPULATION = 2**14  # trajectories of one population
FEWEST, MOST = 8, 2**10  # populations
Populations = Annotated[int, Ge(FEWEST), Le(MAX_COUNT)]
SINGULAR = 1e-12  # of the variance: a pivot that is zero up to rounding
BYTES = 12  # of a trajectory and a step: spin, score and noise in single precision


class Population(eqx.Module):
    """Trajectories up to a step, time first, in single precision.

    Attributes:
        spins: x(t).
        scores: beta (x(t+1) - theta(t)).
        noise: independent normal numbers.
        factor: Cholesky factor of the covariance of the noise.
        jitter: largest negative pivot that was set to zero.
    """

    spins: Float[Array, "n cells K"]
    scores: Float[Array, "n cells K"]
    noise: Float[Array, "n cells K"]
    factor: Float[Array, "n n"]
    jitter: Float[Array, ""]


@presentation.knows_given
def solve(
    problem: LoadedNetwork,
    start: Means,
    *,
    steps: Count,
    key: Key[Array, ""] | None = None,
    error: Positive = 1e-2,
    most: Populations = MOST,
) -> Trajectory:
    """Order parameters by the solver that fits: `closed` where Gamma = 0, or `sampled`.

    Args:
        problem: of any ensemble.
        start: mean of the first token in every site class.
        steps: tokens to generate.
        key: random key of JAX, for trajectories that are sampled.
        error: largest standard error asked of sampled overlaps, weights, A and C.
        most: largest number of populations of 2^14 sampled trajectories.

    Returns:
        The trajectory.

    Raises:
        ValueError: no key where one is needed, or arguments out of range.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=2)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.1, beta=2.0)
        >>> extensive.solve(problem, [1.0], steps=4).method
        'closed'
    """
    if problem.ensemble.is_closed:
        return closed(problem, start, steps=steps)
    if key is None:
        raise ValueError("key: effective trajectories are sampled; give a JAX key.")
    return sampled(problem, start, steps=steps, key=key, error=error, most=most)


def trajectory_bytes(problem: LoadedNetwork, steps: int) -> int:
    """Bytes of the trajectories with which `solve` samples; 0 where it does not."""
    return 0 if problem.ensemble.is_closed else BYTES * POPULATION * (steps + 1)


@presentation.knows_given
def sampled(
    problem: LoadedNetwork,
    start: Means,
    *,
    steps: Count,
    key: Key[Array, ""],
    error: Positive = 1e-2,
    population: Count = POPULATION,
    most: Populations = MOST,
) -> Trajectory:
    """Order parameters by sampled effective trajectories.

    Populations are added, twice as many each time, until the standard errors are small
    enough.  Their averages have a bias of order 1/population, below the errors as long
    as there are fewer populations than trajectories in each.

    Args:
        problem: of any ensemble.
        start: mean of the first token in every site class.
        steps: tokens to generate.
        key: random key of JAX; population b depends on (key, b) alone.
        error: largest standard error asked of overlaps, weights, A and C.
        population: trajectories of a population.
        most: largest number of populations; `Trajectory.reached` says whether it was
            enough.

    Returns:
        The trajectory with standard errors over populations.

    Raises:
        ValueError: arguments out of range.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.identical(), alpha=0.1, beta=1.0)
        >>> result = extensive.sampled(
        ...     problem, [1.0], steps=2, key=jax.random.key(0), population=2**10)
        >>> result.trajectories, result.reached
        (8192, True)
    """
    sites = cells(problem.net, start)
    size = population // sites.share.size
    if size < 2:
        raise ValueError(
            f"population must be at least 2 for each of {sites.share.size} cells of "
            f"sites; got {population}."
        )
    check_steps(problem, steps, BYTES * population * (steps + 1))
    cold = bool(np.isinf(problem.beta).any())
    runs: list[tuple[Values, Array]] = []
    count, places = FEWEST, devices()
    while True:
        for b in range(len(runs), count):
            branch = jax.random.fold_in(key, b)
            with jax.default_device(places[b % len(places)]):
                runs.append(_population(problem, sites, steps, size, branch, cold))
        stacked = jax.tree.map(lambda *x: np.stack(x), *(run[0] for run in runs))
        spread = jax.tree.map(lambda x: standard_error(x, 0), stacked)
        errors = (spread.m_o_se, spread.A, spread.weights, spread.C)
        reached = max(x.max() for x in errors) <= error
        if reached or 2 * count > most:
            break
        count *= 2
    return Trajectory(
        jax.tree.map(lambda x: x.mean(0), stacked),
        spread,
        "sampled",
        trajectories=count * size * sites.share.size,
        reached=bool(reached),
        jitter=float(max(run[1] for run in runs)),
    )


@eqx.filter_jit
def _population(
    problem: LoadedNetwork, sites: Cells, steps: int, size: int, key, cold: bool
):
    n, T = steps + 1, temperatures(problem, steps)
    shape = sites.share.size, size
    normal = partial(jax.random.normal, shape=shape, dtype=jnp.float32)
    uniform = partial(jax.random.uniform, shape=shape, dtype=jnp.float32)
    single = lambda x: x.astype(jnp.float32)
    averaged = jnp.asarray(sites.share)[:, None] / size

    def draw(key, mean):
        return jnp.where(uniform(key) < (1 + mean) / 2, 1.0, -1.0).astype(jnp.float32)

    def generate(carry: tuple[Order, Population], t):
        order, spins = carry
        order = attend(problem, order, t)
        row, jitter = _next_row(spins.factor, order.V[t], t)
        factor = spins.factor.at[t].set(row)
        noise_key, spin_key = jax.random.split(jax.random.fold_in(key, t + 1))
        noise = spins.noise.at[t].set(normal(noise_key))
        h = single(order.A[t] @ sites.output)[:, None]
        h = h + jnp.tensordot(single(row), noise, 1)
        h = h + jnp.tensordot(single(order.Gamma[t]), spins.spins, 1)
        theta = jnp.tanh(h / single(T[t]))
        if cold:
            theta = jnp.where(T[t] > 0, theta, jnp.sign(h))
        newest = draw(spin_key, theta)
        over = lambda past, now: jnp.einsum("nck,ck->n", past, now * single(averaged))
        C = over(spins.spins, newest).astype(float).at[t + 1].set(1.0)
        if cold:
            G = _response(factor, over(noise, theta).astype(float))
        else:
            G = over(spins.scores, theta).astype(float)
            G = G.at[t].set((averaged * (1 - theta**2)).sum() / T[t])
        means = jnp.asarray(sites.weighted) @ theta.mean(1, dtype=float)
        after = Population(
            spins.spins.at[t + 1].set(newest),
            spins.scores.at[t].set(0.0 if cold else (newest - theta) / single(T[t])),
            noise,
            factor,
            jnp.maximum(spins.jitter, jitter),
        )
        return (add_token(problem, order, t + 1, means, C, G), after), None

    empty = jnp.zeros((n, *shape), jnp.float32)
    first = draw(jax.random.fold_in(key, 0), jnp.asarray(sites.start)[:, None])
    population = Population(
        empty.at[0].set(first), empty, empty, jnp.zeros((n, n)), jnp.zeros(())
    )
    start = first_token(problem, sites, steps), population
    (order, population), _ = jax.lax.scan(generate, start, jnp.arange(n))
    return values(problem, order), population.jitter


def _next_row(factor: Float[Array, "n n"], covariance: Float[Array, " n"], t):
    """Row t of the Cholesky factor, and by how much its pivot was below zero."""
    pivots = jnp.diag(factor)
    positive = pivots > 0
    lower = factor + jnp.diag(jnp.where(positive, 0.0, 1.0))
    before = jnp.arange(len(factor)) < t
    past = jnp.where(before, covariance, 0.0)
    row = jnp.where(positive & before, solve_triangular(lower, past, lower=True), 0.0)
    pivot = covariance[t] - row @ row
    width = jnp.sqrt(jnp.maximum(pivot, 0.0))
    width = jnp.where(pivot > SINGULAR * covariance[t], width, 0.0)
    return row.at[t].set(width), jnp.maximum(-pivot, 0.0)


def _response(
    factor: Float[Array, "n n"], felt: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Responses to the fields from averages with the independent noise, <theta xi>."""
    positive = jnp.diag(factor) > 0
    lower = factor + jnp.diag(jnp.where(positive, 0.0, 1.0))
    return jnp.where(positive, solve_triangular(lower, felt, trans=1, lower=True), 0.0)
