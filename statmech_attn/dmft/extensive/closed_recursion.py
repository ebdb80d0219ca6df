r"""The closed recursion where Gamma = 0 (docs/theory/extensive.md, section 3).

Where the response never returns to its own site the field is Gaussian, a spin depends
on the newest field alone, and with
$g(t) = \beta \langle 1 - \tanh^2 \beta h(t) \rangle$

    G(t+1, t')   = g(t) delta_{tt'}
    C(t+1, t'+1) = < tanh beta h(t) tanh beta h(t') >,    C(t, t) = 1

over the site classes and the two Gaussian fields of covariance V.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn import presentation
from statmech_attn.dmft.extensive.gaussian import mean_and_slope, product, Rule, rule
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
from statmech_attn.options import Count, Means
from statmech_attn.statistics import rounding


FINE = 6, 12  # Gaussians for the thermal noise, nodes for the correlation
COARSE = 4, 8  # the errors are the differences from what this rule gives


class Fields(NamedTuple):
    """One-time numbers of the fields h(t), with the cells of the sites last.

    Attributes:
        a: mean.
        spin: mean of the spin that is drawn.
        sigma: standard deviation of the noise.
    """

    a: Float[Array, "n cells"]
    spin: Float[Array, "n cells"]
    sigma: Float[Array, " n"]


@presentation.knows_given
def closed(problem: LoadedNetwork, start: Means, *, steps: Count) -> Trajectory:
    """Order parameters of an ensemble with Gamma = 0, by quadrature.

    Runs under `jax.vmap` over the numbers of the problem.

    Args:
        problem: with an ensemble that `is_closed`.
        start: mean of the first token in every site class, such as `net.output[0]`.
        steps: tokens to generate.

    Returns:
        The trajectory; its errors are differences from a coarser rule and bound those
        of quadrature, and no less than rounding.

    Raises:
        ValueError: another ensemble, steps out of range, a start out of range or
            without overlap.

    Example:
        >>> import numpy as np
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=2)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.1, beta=2.0)
        >>> result = extensive.closed(problem, [1.0], steps=4)
        >>> result.value.C.shape, bool(result.error.C.max() < 1e-4)
        ((5, 5), True)
    """
    if not problem.ensemble.is_closed:
        raise ValueError(
            "ensemble: the recursion closes for cycle() or ov = 0; use sampled()."
        )
    check_steps(problem, steps)
    sites = cells(problem.net, start)
    fine, coarse = (_recursion(problem, sites, steps, rule(*x)) for x in (FINE, COARSE))
    nodes = math.prod(FINE)
    apart = lambda x, y: jnp.maximum(jnp.abs(x - y), rounding(x, nodes))
    error = jax.tree.map(apart, fine, coarse)
    lowest = jnp.linalg.eigvalsh(fine.noise)[0]
    return Trajectory(fine, error, "closed", jitter=jnp.maximum(-lowest, 0.0))


@eqx.filter_jit
def _recursion(
    problem: LoadedNetwork, sites: Cells, steps: int, quadrature: Rule
) -> Values:
    order, _ = grown(problem, sites, steps, quadrature, jnp.arange(steps + 1))
    return values(problem, order)


def grown(
    problem: LoadedNetwork, sites: Cells, steps: int, quadrature: Rule, times
) -> tuple[Order, Fields]:
    """Order parameters of up to `steps` tokens after the start, and their fields.

    There is room for `steps` tokens; `times` are of those that attend, 0, 1, ...: the
    next of the last is drawn.
    """
    n, T = steps + 1, temperatures(problem, steps)

    def generate(carry: tuple[Order, Fields], t):
        order, fields = carry
        order = attend(problem, order, t)
        fields, C, G = draw(sites, quadrature, order, fields, T, t)
        C = jnp.append((sites.share * sites.start) @ fields.spin[t], C[:-1])
        means = jnp.asarray(sites.weighted) @ fields.spin[t]
        return (add_token(problem, order, t + 1, means, C, G), fields), None

    start = first_token(problem, sites, steps), no_fields(n, sites.share.size)
    return jax.lax.scan(generate, start, times)[0]


def no_fields(n: int, cells: int) -> Fields:
    """Room for the fields of n tokens."""
    empty = jnp.zeros((n, cells))
    return Fields(empty, empty, jnp.zeros(n))


def draw(
    sites: Cells,
    quadrature: Rule,
    order: Order,
    fields: Fields,
    temperature: Float[Array, " n"],
    t,
) -> tuple[Fields, Float[Array, " n"], Float[Array, " n"]]:
    """The field after token t, and what the token that it draws has to do with others.

    `temperature` is 1/beta of every token. Returns the fields, correlations of the
    token with those that the fields drew, and its responses.
    """
    time = jnp.arange(len(order.A))
    a, sigma = order.A[t] @ sites.output, _root(order.V[t, t])
    spin, slope = mean_and_slope(a, temperature[t], sigma)
    fields = Fields(
        fields.a.at[t].set(a),
        fields.spin.at[t].set(spin),
        fields.sigma.at[t].set(sigma),
    )
    connected = product(
        quadrature,
        (a, fields.a),
        (temperature[t], temperature[:, None]),
        (sigma, fields.sigma[:, None]),
        order.V[t][:, None],
    )
    products = (fields.spin * spin + connected) @ sites.share
    C = jnp.where(time < t, products, 0.0).at[t].set(1.0)
    return fields, C, jnp.zeros(len(time)).at[t].set(slope @ sites.share)


def _root(variance):
    """Square root, whose derivative at zero is zero; NaN of a negative variance."""
    is_zero = variance == 0
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, variance)))
