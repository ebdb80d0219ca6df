"""Arguments that several functions of the theory take, checked once for all of them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.batches import require_double
from statmech_attn.bpkr import prior as sizes_of


def check_data(xi, Y, heads: Sequence[int]):
    """Attentioned inputs and labels as finite float64 arrays that fit the heads."""
    require_double()
    sizes_of.check_heads(heads)
    xi, Y = jnp.asarray(xi, float), jnp.asarray(Y, float)
    n_paths = int(np.prod(heads))
    if xi.ndim != 3 or xi.shape[2] != n_paths:
        raise ValueError(
            f"xi must have shape (P, N_0, {n_paths}), one column per path of "
            f"heads = {tuple(heads)}; got {xi.shape}."
        )
    if Y.ndim not in (1, 2) or Y.shape[0] != xi.shape[0] or not Y.size:
        raise ValueError(
            f"Y must have shape ({xi.shape[0]},) or ({xi.shape[0]}, K), one row per "
            f"example of xi; got {Y.shape}."
        )
    for name, values in (("xi", xi), ("Y", Y)):
        if not bool(jnp.isfinite(values).all()):
            raise ValueError(f"{name} must be finite; it holds NaN or infinity.")
    return xi, Y


def check_temperature(temperature) -> None:
    """Raise `ValueError` unless the temperature is a finite number >= 0."""
    single = np.ndim(temperature) == 0
    if not (single and np.isfinite(temperature) and temperature >= 0):
        raise ValueError(
            "temperature must be finite and > 0, or 0 where K(U) is invertible; "
            f"got {temperature}."
        )


class Sampled(NamedTuple):
    """Checked arguments of a posterior that is sampled at finite width."""

    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, "P *K"]
    widths: Float[np.ndarray, " L+1"]
    variances: Float[np.ndarray, " L+2"]
    temperature: float


def check_sampled(
    xi, Y, *, width, temperature, heads: Sequence[int], variances, where: str
) -> Sampled:
    """Data, whole widths and a temperature > 0; `where` names the method in errors."""
    xi, Y = check_data(xi, Y, heads)
    sizes = check_finite_width(
        width=width, temperature=temperature, heads=heads, variances=variances,
        where=where,
    )  # fmt: skip
    return Sampled(xi, Y, *sizes, float(temperature))


def check_finite_width(
    *, width, temperature, heads: Sequence[int], variances=None, where: str
) -> sizes_of.Prior:
    """Whole widths and a temperature > 0, before there are any data.

    Example:
        >>> check_finite_width(width=10, temperature=1, heads=(2,), where="here").widths
        array([10., 10.])
    """
    sizes = sizes_of.prior(width, heads, variances)
    sizes_of.check_whole(sizes.widths, where)
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be finite and > 0; got {temperature}.")
    return sizes


def check_test(xi_test, inputs: int, paths: int) -> Float[Array, "Q N_0 Pi"]:
    """Attentioned test inputs as an array that fits the training inputs."""
    xi_test = jnp.asarray(xi_test, float)
    if xi_test.ndim != 3 or xi_test.shape[1:] != (inputs, paths):
        raise ValueError(
            f"xi_test must have shape (Q, {inputs}, {paths}) as the training inputs; "
            f"got {xi_test.shape}."
        )
    return xi_test
