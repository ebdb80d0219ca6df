r"""Entropy production: N spins against the map (docs/theory/irreversibility.md, 5).

The mean over runs differs from the rate of the map by a bias that falls as 1/N, and by
more where noise takes an orbit to other places than the map.  Theory and spins agree if
the difference extrapolated to N -> infinity is within its error; of one N alone, the
difference itself.
"""

from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.comparison import agreement
from statmech_attn.dmft import ENTROPY_UNIT, EntropyProduction, PRODUCTION
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo import stationary
from statmech_attn.statistics import (
    bias_slope,
    in_standard_errors,
    limit_difference,
    standard_error,
)


VERDICTS = agreement.VERDICTS[:5]
ERROR = "_stderr"
DIFFERENCES = Variables(
    Variable("difference", "n_spins", "spins less map", ENTROPY_UNIT, "Δσ", ERROR),
    Variable("z", "n_spins", "spins less map in standard errors", "1", "z(σ)"),
    Variable("limit", "", "difference at infinite N", ENTROPY_UNIT, "Δσ_∞", ERROR),
    Variable("limit_z", "", "the same in standard errors", "1", "z(Δσ_∞)"),
    agreement.rows("bias_slope threshold limit_threshold"),
    agreement.rows("verdict", flags=VERDICTS),
)
LABELLED = Variables(DIFFERENCES, agreement.ROWS.variable("n_spins"))


def compare_entropy_production(
    theory: EntropyProduction, simulations: xr.Dataset
) -> xr.Dataset:
    """Compare the entropy production of the theory with that of N spins.

    Args:
        theory: of the map, as `dmft.entropy_production` gives it.
        simulations: Monte Carlo data set of one or more N with `entropy_production`, at
            the same parameters.

    Returns:
        For each N the difference with its error and in standard errors; the difference
        extrapolated to infinitely many spins; the exponent in N of the difference (-1
        for a bias like 1/N; NaN where there is none to follow); what chance exceeds
        once in a thousand such data sets; and a verdict for every point.

    Raises:
        ValueError: another batch of parameters, or simulations without it.

    Example:
        `compare_entropy_production(theory, spins.compute()).z` says whether spins have
        the rate of the map, if their bias is smaller than the error.
    """
    if (runs := simulations.get(stationary(PRODUCTION))) is None:
        raise ValueError("simulations must have been run with entropy_production.")
    sizes = simulations.n_spins.values
    rates = runs.transpose("n_spins", ..., "all_runs").values
    rate, shape = np.asarray(theory.mean), rates.shape[1:-1]
    if rate.shape != shape:
        raise ValueError(
            f"theory has batch shape {rate.shape}, the simulations have {shape}."
        )
    dims = tuple(f"point_{i}" for i in range(rate.ndim))
    blocks = len(theory.blocks)
    values = rate_differences(rate, theory.stderr, blocks, rates, sizes, dims)
    return LABELLED.labelled(values, {"n_spins": sizes})


def rate_differences(
    rate, stderr, blocks: int, rates, n_spins, dims: tuple[str, ...]
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Differences of spins and map at every N and in the limit, and what they say.

    The error of the map's rate rests on so many `blocks` of tokens; `rates` are
    averages of every run, (sizes, *batch, runs), and `n_spins` is (sizes,), increasing.
    Returns dimensions, of which the batch has `dims`, and values of the variables of
    `DIFFERENCES`.
    """
    rates, rate, map_error = (np.asarray(x) for x in (rates, rate, stderr))
    sizes, samples = len(n_spins), min(rates.shape[-1], blocks)
    difference, sampled = rates.mean(-1) - rate, standard_error(rates)
    total = np.hypot(sampled, map_error)
    z = in_standard_errors(difference, total)
    flat = lambda x: x.reshape(sizes, -1)
    used = np.ones(flat(difference).shape, bool)
    limits = limit_difference(n_spins, flat(difference), flat(sampled), used)[:2]
    limit, limit_error = (x.reshape(rate.shape) for x in limits)
    limit_error = np.hypot(limit_error, map_error)
    limit_z = in_standard_errors(limit, limit_error)
    columns = (x[:, :, None] for x in (flat(difference), flat(sampled), used))
    shared = map_error.reshape(1, -1, 1)
    slope = bias_slope(n_spins, *columns, axes=(2,), shared=shared)
    allowed, limit_allowed = (agreement.allowed(x, samples) for x in (z, limit_z))
    reasons = {
        "nothing_compared": np.isnan(z).any(0),
        "differs": (abs(limit_z) > limit_allowed) & (sizes > 1),
        "agrees": (abs(z) <= allowed).all(0),
        "one_n_cannot_tell": np.isnan(limit_z) | (sizes == 1),
    }
    of_sizes = ("n_spins", *dims)
    return {
        "difference": (of_sizes, difference),
        "difference_stderr": (of_sizes, total),
        "z": (of_sizes, z),
        "limit": (dims, limit),
        "limit_stderr": (dims, limit_error),
        "limit_z": (dims, limit_z),
        "bias_slope": (dims, slope.value.reshape(rate.shape)),
        "bias_slope_stderr": (dims, slope.stderr.reshape(rate.shape)),
        "verdict": (dims, agreement.verdict(reasons, "bias_only")),
        "threshold": ((), allowed),
        "limit_threshold": ((), limit_allowed),
    }
