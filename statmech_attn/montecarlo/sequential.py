r"""Spins of which every one is redrawn with probability Delta, else copied.

Spins of a site class are exchangeable, so the number n of those that are up is all that
matters: with $p = (1 + \tanh h_c)/2$ (docs/theory/dmft.md, 7)

    n' ~ Binomial(n, 1 - Delta + Delta p) + Binomial(N_c - n, Delta p) .
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.dmft import (
    contract,
    Network,
    Patterns,
    sequential_start,
    SequentialState,
    take_means,
)
from statmech_attn.montecarlo.binomial import binomial
from statmech_attn.montecarlo.collapsed import class_counts


class SequentialRuns(NamedTuple):
    """Averages over runs after every generated token.

    Attributes:
        A: attention vectors, means over runs.
        stderr: their standard errors.
    """

    A: Float[np.ndarray, "steps M"]
    stderr: Float[np.ndarray, "steps M"]


def simulate_sequential(
    net: Network,
    patterns: Patterns,
    given: Mapping[str, Any],
    start,
    *,
    n_spins: int,
    runs: int,
    steps: int,
    key: Key[Array, ""],
) -> SequentialRuns:
    """Simulate N spins with random sequential updating.

    Args:
        net: the network, as `dmft.network` builds it.
        patterns: those from which it was built.
        given: beta, gamma, epsilon and redrawn, one number each.
        start: mean of the first token in every site class, -1 or 1.
        n_spins: number of spins, divisible by the class fractions.
        runs: independent runs, at least 2.
        steps: tokens to generate.
        key: random key of JAX.

    Returns:
        Means over runs with standard errors.

    Raises:
        ValueError: an argument out of range.

    Example:
        `simulate_sequential(net, patterns, given, net.output[0], n_spins=3000,
        runs=100, steps=10, key=jax.random.key(0)).A` beside `dynamics.orbit` of
        `dmft.sequential(net)`.
    """
    counts = class_counts(patterns, n_spins)
    start = np.asarray(start, float)
    if start.shape != counts.shape or not (np.abs(start) == 1).all():
        raise ValueError(
            f"start must be -1 or 1 in every site class ({counts.size} of them)."
        )
    for name, value, least in (("runs", runs, 2), ("steps", steps, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")
    numbers = {name: jnp.asarray(value, float) for name, value in given.items()}
    means = jnp.repeat(jnp.asarray(start)[:, None], runs, axis=1)
    state = sequential_start(net, given, means)
    A = np.asarray(_runs(net, jnp.asarray(counts, float), numbers, state, key, steps))
    return SequentialRuns(A.mean(-1), A.std(-1, ddof=1) / np.sqrt(runs))


@partial(jax.jit, static_argnames="steps")
def _runs(
    net: Network, counts, given, state: SequentialState, key, steps: int
) -> Float[Array, "steps M runs"]:
    redrawn, N = given["redrawn"], counts[:, None]

    def generate(state: SequentialState, t):
        up_key, down_key = jax.random.split(jax.random.fold_in(key, t))
        field = given["beta"] * contract(net.output.T, state.window.newest)
        chance = redrawn * (1 + jnp.tanh(field)) / 2
        up = jnp.round(N * (1 + state.means) / 2)
        up = binomial(up_key, up, 1 - redrawn + chance) + binomial(
            down_key, N - up, chance
        )
        means = jnp.where(N > 0, 2 * up / jnp.maximum(N, 1) - 1, 0.0)
        state = take_means(net, given, state, means)
        return state, state.window.newest

    return jax.lax.scan(generate, state, jnp.arange(steps))[1]
