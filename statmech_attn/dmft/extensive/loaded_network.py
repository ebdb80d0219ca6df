"""A network with patterns in number alpha N besides its condensed ones.

The condensed patterns are those of a `dmft.Network`, of any site classes; the others
are an `Ensemble`, have no positional part, and enter attention with weight 1 - epsilon.
Symbols are those of docs/theory/extensive.md.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from statmech_attn.arguments import shown
from statmech_attn.batches import require_double, require_memory
from statmech_attn.dmft.extensive.ensembles import Ensemble
from statmech_attn.dmft.network import Network
from statmech_attn.options import Gaps, NotNegatives, Numbers, require_least


TWO_TIME_ARRAYS = 30  # of a run, those that XLA needs on the way included


class LoadedNetwork(eqx.Module):
    """Physical parameters; build with `loaded_network`.

    Attributes:
        net: the condensed patterns and the context.
        ensemble: correlations of the other patterns.
        alpha: other patterns per spin.
        beta: inverse temperature of the output, one for all steps or one per step;
            infinite for deterministic spins.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional code.
    """

    net: Network
    ensemble: Ensemble
    alpha: Float[Array, ""]
    beta: Float[Array, "*steps"]
    gamma: Float[Array, ""]
    epsilon: Float[Array, ""]


def loaded_network(
    net: Network,
    ensemble: Ensemble,
    *,
    alpha: NotNegatives,
    beta: Gaps,
    gamma: Numbers = 0.0,
    epsilon: Numbers = 0.0,
) -> LoadedNetwork:
    """A network with M = M_c + alpha N patterns.

    Args:
        net: condensed patterns and context, as `dmft.network` builds it.
        ensemble: of the other patterns: `cycle`, `identical`, `independent` or
            `correlated`.
        alpha: their number per spin, >= 0.
        beta: inverse temperature of the output, >= 0; infinite for deterministic spins;
            an array for one value per step, the first for the first generated token.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional code, in [0, 1).

    Returns:
        The network, with dimensionless numbers in double precision.

    Raises:
        ValueError: a value out of range.

    Inside `jax.vmap` and `jax.jit` the numbers are not known yet, and not checked.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> one = dmft.site_classes(np.ones((4, 1, 1)))
        >>> net = dmft.network(one, context=1)
        >>> extensive.loaded_network(net, extensive.cycle(), alpha=0.1, beta=2.0).alpha
        Array(0.1, dtype=float64)
    """
    require_double()
    as_array = lambda x: jnp.asarray(x, float)
    numbers = (alpha, beta, gamma, epsilon)
    if any(isinstance(x, Tracer) for x in numbers):
        return LoadedNetwork(net, ensemble, *map(as_array, numbers))
    single = {"alpha": alpha, "gamma": gamma, "epsilon": epsilon}
    for name, value in single.items():
        if np.ndim(value) or not np.isfinite(value):
            raise ValueError(f"{name} must be one finite number; got {shown(value)}.")
    if alpha < 0:
        raise ValueError(f"alpha must be >= 0; got {alpha:g}.")
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must lie in [0, 1); got {epsilon:g}.")
    betas = np.asarray(beta, float)
    if betas.ndim > 1 or not betas.size or not (betas >= 0).all():
        raise ValueError(
            f"beta must be >= 0, one number or one per step; got {shown(betas)}."
        )
    return LoadedNetwork(net, ensemble, *map(as_array, numbers))


class Cells(NamedTuple):
    """Site classes whose spins behave alike, up to the sign of all of them.

    Attributes:
        output: output patterns W^o of a cell.
        start: mean of the token at the start.
        share: of the sites.
        weighted: patterns times site fractions, in the frame of the cell.
    """

    output: Float[np.ndarray, "M cells"]
    start: Float[np.ndarray, " cells"]
    share: Float[np.ndarray, " cells"]
    weighted: Float[np.ndarray, "4 M cells"]


def cells(net: Network, start) -> Cells:
    """Join site classes with the same outputs and start, up to a common sign.

    `start` is the mean of the first token in every site class, (S,) in [-1, 1].  There
    are 2^(M-1) cells at most where it is an output.
    """
    start = np.asarray(start, float)
    if start.shape != (net.n_classes,):
        raise ValueError(
            f"start must have one mean per site class, shape ({net.n_classes},); "
            f"got {start.shape}."
        )
    if not (np.abs(start) <= 1).all():
        raise ValueError(f"start must lie in [-1, 1]; got {np.abs(start).max():g}.")
    require_overlap(net, start)
    output, weighted = np.asarray(net.output), np.asarray(net.weighted)
    sign = output[0]
    columns = sign * np.vstack([output, start])
    unique, place = np.unique(columns, axis=1, return_inverse=True)
    joined = np.zeros((place.size, unique.shape[1]))
    joined[np.arange(place.size), place.ravel()] = 1
    share = np.abs(weighted[0, 0]) @ joined
    present = share > 0
    return Cells(
        unique[:-1, present],
        unique[-1, present],
        share[present],
        ((sign * weighted) @ joined)[..., present],
    )


def require_overlap(net: Network, start) -> None:
    """Refuse a start that condenses on no pattern.

    `start` is the mean of the first token in every site class, (S,).
    """
    if not np.any(np.asarray(net.weighted) @ np.asarray(start, float)):
        raise ValueError("start has no overlap with any condensed pattern.")


def check_steps(problem: LoadedNetwork, steps: int, further_bytes: int = 0) -> None:
    """Refuse a number of steps that is none, fits no beta, or takes too much memory.

    `further_bytes` are taken besides the arrays of two times.
    """
    require_least(1, steps=steps)
    if problem.beta.ndim and problem.beta.size != steps:
        raise ValueError(
            f"beta must have one value per step ({steps}); got {problem.beta.size}."
        )
    require_memory(f"{steps} steps", two_time_bytes(steps) + further_bytes)


def two_time_bytes(steps: int) -> int:
    """Bytes of the arrays of two times of a run that generates so many tokens."""
    return 8 * TWO_TIME_ARRAYS * (steps + 1) ** 2


def temperatures(problem: LoadedNetwork, steps: int) -> Float[Array, " n"]:
    """1/beta of every token, that of the last one repeated."""
    return 1 / jnp.append(
        jnp.broadcast_to(problem.beta, (steps,)), problem.beta.ravel()[-1]
    )
