r"""Entropy production of networks of N spins (docs/theory/irreversibility.md, 5).

Spins of a class have one field, forwards and backwards, so that the rate of a sampled
token needs its class means only: `dmft.irreversibility.read_token` with these means in
the place of tanh h_c.  The mean over runs differs from the rate of the map by a bias
that falls as 1/N, and by more where noise takes an orbit to other places than the map.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, Key

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dmft import (
    contract,
    ENTROPY_UNIT,
    EntropyProduction,
    Network,
    no_past,
    Parameters,
    Patterns,
    read_token,
    State,
)
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo.collapsed import class_counts, redraw_counts, whole_spins
from statmech_attn.montecarlo.randomness import address
from statmech_attn.montecarlo.run_blocks import METHODS, START
from statmech_attn.montecarlo.simulation import check_simulation, point_keys
from statmech_attn.options import require_least
from statmech_attn.statistics import (
    bias_slope,
    in_standard_errors,
    limit_difference,
    standard_error,
    threshold,
)


class SampledEntropyProduction(eqx.Module):
    """Rate of entropy production of networks of N spins, in nats per token and spin.

    Attributes:
        mean: over the runs and their tokens, for each N.
        stderr: standard error of the mean, from the runs.
        runs: averages of every run.
        n_spins: numbers N of spins.
    """

    mean: Float[Array, "sizes *batch"]
    stderr: Float[Array, "sizes *batch"]
    runs: Float[Array, "sizes *batch runs"]
    n_spins: Int[Array, " sizes"]

    _shown = (
        Variable("n_spins", "n_spins", "spins", symbol="N"),
        Variable(
            "mean", "n_spins", "entropy production", ENTROPY_UNIT, "σ", error="stderr"
        ),
        Variable("runs", "n_spins run", "that of one run", ENTROPY_UNIT, line=False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


COMPARED = Variables(
    Variable("difference", "n_spins", "spins less map", ENTROPY_UNIT, "Δσ", "_stderr"),
    Variable("z", "n_spins", "difference in standard errors", "1", "z"),
    Variable(
        "limit",
        "",
        "difference for infinitely many spins",
        ENTROPY_UNIT,
        parts="_stderr",
    ),
    Variable("limit_z", "", "the same in standard errors", "1", "z"),
    Variable("exponent", "", "exponent in N of the difference", "1", "α", "_stderr"),
    Variable("n_spins", "n_spins", "number of spins", "1", "N"),
)


def entropy_production(
    net: Network,
    patterns: Patterns,
    params: Parameters,
    state: State,
    *,
    n_spins: Sequence[int],
    runs: int,
    steps: int,
    key: Key[Array, ""],
    transient: int = 0,
    method: str = "collapsed",
) -> SampledEntropyProduction:
    """Rate of entropy production per spin of sampled tokens, for several N.

    Args:
        net: the network, as `dmft.network` builds it.
        patterns: those from which the network was built.
        params: control parameters of any batch shape.
        state: where all runs start, of the same batch shape.
        n_spins: numbers of spins, divisible by the class fractions.
        runs: independent runs of every N and point, two at least.
        steps: tokens of a run whose rates are averaged.
        key: JAX key; run r of point i depends on (key, N, i, r) only.
        transient: tokens before them.
        method: "collapsed" (class counts) or "spins" (every spin).

    Returns:
        `SampledEntropyProduction`: means over runs with their errors.

    Raises:
        ValueError: an argument out of range, N that the fractions do not divide, or
            spins that are copied at the level of spins.

    Example:
        >>> import jax
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> start = dmft.from_checkpoint(net, params, file)
        >>> sampled = entropy_production(
        ...     net, file.patterns, params, start, n_spins=[3000, 30_000], runs=8,
        ...     steps=400, transient=100, key=jax.random.key(0))
        >>> sampled.mean.shape, sampled.runs.shape
        ((2,), (2, 8))
    """
    require_double()
    require_least(2, runs=runs)
    require_least(0, transient=transient)
    check_simulation(
        net,
        patterns,
        params,
        method=method,
        runs=runs,
        steps=steps,
        transient=0,
        stored=0,
    )
    if not n_spins:
        raise ValueError("n_spins must hold at least one number of spins.")
    batch = jnp.broadcast_shapes(params.beta.shape, state.newest.shape[1:])
    number = jnp.arange(runs, dtype=jnp.uint32)
    wide = lambda x: jnp.broadcast_to(x[..., None], (*x.shape, runs))
    start = jax.tree.map(lambda x: wide(x) if x.ndim else x, state)
    params = jax.tree.map(lambda x: x[..., None], params)
    sizes = sorted(set(n_spins))
    rates = []
    for i, size in enumerate(sizes):
        counts = class_counts(patterns, size)
        high, low = point_keys(jax.random.fold_in(key, i), None, batch)
        words = high.reshape(*batch, 1), low.reshape(*batch, 1)
        plan = METHODS[method][0](counts, int(np.prod(batch)) * runs)
        lanes = address(words, number)
        rates.append(
            _average(net, params, start, lanes, plan, transient, steps, method)
        )
    each = np.stack(rates)
    return SampledEntropyProduction(
        jnp.asarray(each.mean(-1)),
        jnp.asarray(standard_error(each)),
        jnp.asarray(each),
        jnp.asarray(sizes),
    )


@partial(jax.jit, static_argnames="method")
def _average(net, params, state, lanes, plan, transient, steps, method):
    """Average of every run (*batch, runs) over `steps` tokens after a transient."""
    if state.means is not None:
        means = whole_spins(address(lanes, START), state.means, plan)
        state = eqx.tree_at(lambda s: s.means, state, means)
    first = transient + net.context  # rates are those of C tokens before

    def turn(t, carry):
        state, past, total = carry
        fields = params.beta * contract(net.output.T, state.newest)
        now = address(lanes, jnp.uint32(t))
        if params.redrawn is None:
            means = METHODS[method][1](now, fields, plan)
        else:
            means = redraw_counts(now, fields, plan, state.means, params.redrawn)
        (state, past), rate = read_token(net, params, state, past, means)
        return state, past, total + jnp.where(t >= first, rate, 0.0)

    nothing = jnp.zeros(state.newest.shape[1:])
    start = state, no_past(net, state), nothing
    return jax.lax.fori_loop(0, first + steps, turn, start)[2] / steps


def compare_entropy_production(
    theory: EntropyProduction, sampled: SampledEntropyProduction
) -> xr.Dataset:
    """Compare the rate of the map with those of networks of N spins.

    Args:
        theory: of the map, as `dmft.entropy_production` gives it.
        sampled: at the same parameters.

    Returns:
        For each N the difference with its error and in standard errors; the difference
        extrapolated to infinitely many spins, and the exponent in N of the difference
        (-1 for a bias like 1/N; NaN where there is none to follow).  The attribute
        `threshold` is what chance exceeds once in a hundred such data sets.

    Raises:
        ValueError: another batch of parameters.

    Example:
        `compare_entropy_production(theory, sampled).limit_z` says whether spins agree
        with the map once their bias is taken off.
    """
    rate, own = np.asarray(theory.mean), np.asarray(theory.stderr)
    if rate.shape != sampled.mean.shape[1:]:
        raise ValueError(
            f"theory has batch shape {rate.shape}, the samples have "
            f"{sampled.mean.shape[1:]}."
        )
    sizes, runs = np.asarray(sampled.n_spins), sampled.runs.shape[-1]
    difference, stderr = np.asarray(sampled.mean) - rate, np.asarray(sampled.stderr)
    flat = lambda x: x.reshape(len(sizes), -1)
    used = np.ones(flat(difference).shape, bool)
    limit, error, _ = limit_difference(sizes, flat(difference), flat(stderr), used)
    error = np.hypot(error, own.ravel())
    columns = (x[:, :, None] for x in (flat(difference), flat(stderr), used))
    exponent = bias_slope(sizes, *columns, axes=(2,))
    shaped = lambda x: np.reshape(x, rate.shape)
    dims = tuple(f"point_{i}" for i in range(rate.ndim))
    z = lambda x, s: in_standard_errors(x, s)
    values: dict[str, tuple[tuple[str, ...], Any]] = {
        "difference": (("n_spins", *dims), difference),
        "difference_stderr": (("n_spins", *dims), np.hypot(stderr, own)),
        "z": (("n_spins", *dims), z(difference, np.hypot(stderr, own))),
        "limit": (dims, shaped(limit)),
        "limit_stderr": (dims, shaped(error)),
        "limit_z": (dims, z(shaped(limit), shaped(error))),
        "exponent": (dims, shaped(exponent.value)),
        "exponent_stderr": (dims, shaped(exponent.stderr)),
    }
    dataset = COMPARED.labelled(values, {"n_spins": sizes})
    return dataset.assign_attrs(threshold=threshold(rate.size, runs), runs=runs)
