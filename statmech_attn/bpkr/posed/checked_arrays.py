"""Inputs and labels of a problem, once they are known to fit."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.batches import require_real
from statmech_attn.options import Count, Numbers


LARGEST = 1e70  # value of an input: its fourth power is a number, as is that of 1e-70


def check_test(
    xi_test: Numbers, inputs: Count, paths: Count
) -> Float[Array, "Q N_0 Pi"]:
    """Attentioned test inputs as an array that fits the training inputs."""
    require_real("xi_test", xi_test)
    xi_test = jnp.asarray(xi_test, float)
    if xi_test.ndim != 3 or xi_test.shape[1:] != (inputs, paths):
        raise ValueError(
            f"xi_test must have shape (Q, {inputs}, {paths}) as the training inputs "
            f"(bpkr.attentioned_inputs makes them of tokens); got {xi_test.shape}."
        )
    return xi_test


def checked_inputs(xi, heads: tuple[int, ...], branches) -> Float[Array, "P N_0 Pi"]:
    """Attentioned inputs as a finite array that fits the heads."""
    require_real("xi", xi)
    xi = jnp.asarray(xi, float)
    n_paths = math.prod(branches)
    if xi.ndim != 3 or xi.shape[2] != n_paths or not xi.size:
        skipping = "" if branches == heads else " and skip connections"
        raise ValueError(
            f"xi must have shape (P, N_0, {n_paths}), one column per path of "
            f"heads = {heads}{skipping} (bpkr.attentioned_inputs makes them of "
            f"tokens); got {xi.shape}."
        )
    _check_finite("xi", xi)
    largest = float(jnp.abs(xi).max())
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise ValueError(
            f"xi: its largest value must be from {1 / LARGEST:.0e} to {LARGEST:.0e}, "
            f"as kernels of others overflow or vanish; got {largest:.3g}."
        )
    return xi


def checked_labels(Y, examples: int) -> Float[Array, "P *K"]:
    """Labels as a finite array, one row per example."""
    require_real("Y", Y)
    try:
        Y = jnp.asarray(Y, float)
    except (TypeError, ValueError):
        raise ValueError(f"Y must hold numbers, such as 1 and -1; got {Y!r}.") from None
    if Y.ndim not in (1, 2) or Y.shape[0] != examples or not Y.size:
        raise ValueError(
            f"Y must have shape ({examples},) or ({examples}, K), one row per "
            f"example of xi; got {Y.shape}."
        )
    _check_finite("Y", Y)
    return Y


def _check_finite(name: str, values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite; it holds NaN or infinity.")
