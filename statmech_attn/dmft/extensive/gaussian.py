r"""Averages of tanh over Gaussian fields (docs/theory/extensive.md, section 3).

With temperature T = 1/beta, mean field a and noise of variance $\sigma^2$

    one field     $\langle \tanh((a + \phi)/T) \rangle$ and its derivative in a
    two fields    $\langle \tanh((a + \phi)/T) \tanh((a' + \phi')/T') \rangle$

One field is integrated by the trapezoidal rule, which converges exponentially, over
the noise where $\sigma < T$ and over the thermal noise, $\tanh x = \int \tfrac12
\mathrm{sech}^2(y) \, \mathrm{sgn}(x + y) \, dy$, where not: to rounding at every T,
T = 0 included.  For two fields tanh is a mixture of error functions (`MIXTURES`), for
which

    $\langle \mathrm{sgn}\,\mathrm{sgn} \rangle = \mathrm{erf}\frac{h}{\sqrt 2}\,
      \mathrm{erf}\frac{k}{\sqrt 2} + \frac2\pi \int_0^{\arcsin r}
      e^{-(h^2 - 2 h k \sin\theta + k^2)/(2 \cos^2\theta)} \, d\theta$

(R. L. Plackett, Biometrika 41, 351, 1954) is integrated by Gauss and Legendre's rule in
$u = \tan\theta/2$.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float


# tanh x = sum_j p_j erf(x / (sqrt 2 tau_j)) in the sense of least largest error:
# thermal noise as a mixture of Gaussians (J. F. Monahan and L. A. Stefanski, in
# Handbook of the Logistic Distribution, ed. N. Balakrishnan, Dekker 1992).
MIXTURES = {  # largest error, tau, p
    4: (
        9.5e-6,
        (0.48869596, 0.71554239, 1.05235437, 1.55732436),
        (0.10650272, 0.45836488, 0.37418364, 0.06094876),
    ),
    6: (
        1.7e-7,
        (0.41275824, 0.55714607, 0.74806603, 1.00894456, 1.36350769, 1.85552932),
        (0.01842786, 0.17260772, 0.37392327, 0.31703793, 0.10892712, 0.00907610),
    ),
}
MOST_NODES = 12  # of the integral over the correlation
SMALLEST = 1e-100  # width of a noise that is none
SHARP = 40.0  # |h| at which a Gaussian is on one side to rounding
NOISE = np.linspace(-8.5, 8.5, 73)  # grid of the noise, in standard deviations
NOISE_WEIGHTS = np.exp(-(NOISE**2) / 2) / np.exp(-(NOISE**2) / 2).sum()
THERMAL = np.linspace(-19.0, 19.0, 157)  # grid of the thermal noise, in T
THERMAL_WEIGHTS = np.cosh(THERMAL) ** -2 / (np.cosh(THERMAL) ** -2).sum()


class Rule(NamedTuple):
    """Quadrature of two fields.

    Attributes:
        tau: widths of the Gaussians whose mixture thermal noise is, in T.
        p: their shares.
        nodes: of the integral over the correlation, in [0, 1].
        weights: of the nodes.
    """

    tau: Float[Array | np.ndarray, " j"]
    p: Float[Array | np.ndarray, " j"]
    nodes: Float[Array | np.ndarray, " n"]
    weights: Float[Array | np.ndarray, " n"]


def rule(components: int, nodes: int, *, filled_up: bool = True) -> Rule:
    """The rule with so many Gaussians (of `MIXTURES`) and nodes over the correlation.

    `filled_up` adds weights of zero, so that every rule runs in one program.
    """
    _, tau, p = (np.array(x) for x in MIXTURES[components])
    x, w = np.polynomial.legendre.leggauss(nodes)
    if not filled_up:
        return Rule(tau, p, (1 + x) / 2, w / 2)
    more = max(MIXTURES) - components
    filled = np.pad(tau, (0, more), constant_values=1.0), np.pad(p, (0, more))
    padding = (0, MOST_NODES - nodes)
    return Rule(*filled, np.pad((1 + x) / 2, padding), np.pad(w / 2, padding))


def mean_and_slope(
    a: Float[Array, "*shape"], temperature, sigma
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    r"""$\langle \tanh((a + \phi)/T) \rangle$ and its derivative in a.

    `temperature` T >= 0; `sigma` is the standard deviation of the noise, not zero where
    T is.
    """
    thermal = sigma < temperature
    safe = jnp.where(thermal, temperature, 1.0)
    fields = (a[..., None] + jnp.where(thermal, sigma, 0.0) * NOISE) / safe
    spins = jnp.tanh(fields)
    mild = spins @ NOISE_WEIGHTS, (1 - spins**2) @ NOISE_WEIGHTS / safe
    width = jnp.where(thermal | (sigma <= 0), SMALLEST, sigma)
    fields = (a[..., None] + temperature * THERMAL) / width
    bounded = jnp.clip(fields, -SHARP, SHARP)
    density = np.sqrt(2 / np.pi) * jnp.exp(-(bounded**2) / 2) / width
    strong = erf(fields / np.sqrt(2)) @ THERMAL_WEIGHTS, density @ THERMAL_WEIGHTS
    either = lambda i: jnp.where(thermal, mild[i], strong[i])
    return either(0), either(1)


def product(
    rule: Rule,
    a: tuple[Float[Array, "..."], Float[Array, "..."]],
    temperature: tuple,
    sigma: tuple,
    covariance,
) -> Float[Array, "..."]:
    r"""Connected average of $\tanh((a + \phi)/T) \tanh((a' + \phi')/T')$.

    All arguments broadcast: two mean fields a, a', T and T', the standard deviations of
    two noises and their covariance.
    """
    shares = rule.p[:, None] * rule.p
    width = [
        jnp.maximum(jnp.hypot(s[..., None], T[..., None] * rule.tau), SMALLEST)
        for s, T in zip(map(jnp.asarray, sigma), map(jnp.asarray, temperature))
    ]
    h, k = (jnp.clip(x[..., None] / w, -SHARP, SHARP) for x, w in zip(a, width))
    h, k = h[..., :, None], k[..., None, :]
    scale = width[0][..., :, None] * width[1][..., None, :]
    r = jnp.clip(covariance[..., None, None] / scale, -1.0, 1.0)
    top = r / (1 + jnp.sqrt(1 - r**2))
    u = top * rule.nodes.reshape(-1, *(1,) * r.ndim)
    sine, cosine = 2 * u / (1 + u**2), (1 - u**2) / (1 + u**2)
    squares, cross = (h**2 + k**2) / 2, h * k

    def add(total, node):
        weight, secant, slope = node
        return total + weight * jnp.exp(slope * cross - secant * squares), None

    weights = rule.weights.reshape(u.shape[:1] + (1,) * r.ndim) * shares / (1 + u**2)
    nodes = weights, cosine**-2, sine / cosine**2
    total, _ = jax.lax.scan(add, jnp.zeros(jnp.shape(squares + r)), nodes)
    return 4 / np.pi * (top * total).sum((-2, -1))
