"""Maps and flows of the literature, to try a method on: functions of state, parameters.

Each can be given to whatever takes a step (a field, where its first line has x'), with
parameters of one's own or, without any, those at which the literature quotes exponents:
Sprott, Chaos and Time-Series Analysis (Oxford, 2003), appendix A, unless a line says
another source.

Example:
    >>> import jax.numpy as jnp
    >>> from statmech_attn.dynamics import catalogue, lyapunov_spectrum
    >>> start, cycle = jnp.array([0.1, 0.2]), {"a": 1.0, "b": 0.3}
    >>> spectrum = lyapunov_spectrum(catalogue.henon, start, cycle, steps=4000)
    >>> round(float(spectrum.exponents[0]), 2)  # at a = 1.4, the usual, it is 0.42
    -0.16
"""

import inspect
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np


GOLDEN = (np.sqrt(5) - 1) / 2
_of: Any = lambda **parameters: MappingProxyType(parameters)


def at(step: Callable, **parameters: float) -> Callable:
    """A map or field of the catalogue with parameters that are fixed, others as here.

    Example:
        >>> float(at(logistic, r=2.0)(0.25))
        0.375
    """
    known = inspect.signature(step).parameters["p"].default
    return partial(step, p={**known, **parameters})


def logistic(x, p=_of(r=4.0)):
    """r x (1 - x)."""
    return p["r"] * x * (1 - x)


def skew_tent(x, p=_of(a=0.3)):
    """Full branches of slopes 1/a and -1/(1 - a); the density is uniform."""
    return jnp.where(x < p["a"], x / p["a"], (1 - x) / (1 - p["a"]))


def tent(x, p=_of(slope=1.9)):
    """Slope times the distance from the nearer of 0 and 1."""
    return p["slope"] * jnp.minimum(x, 1 - x)


def gauss(x):
    """1/x mod 1, the map of continued fractions."""
    return (1 / x) % 1.0


def cat(z):
    """Arnold's cat map."""
    return jnp.array([[2.0, 1.0], [1.0, 1.0]]) @ z % 1.0


def henon(z, p=_of(a=1.4, b=0.3)):
    """1 - a x^2 + y and b x, of Henon."""
    return jnp.stack([1 - p["a"] * z[0] ** 2 + z[1], p["b"] * z[0]])


def lozi(z, p=_of(a=1.7, b=0.5)):
    """Henon's map with |x| in place of the square."""
    return jnp.stack([1 - p["a"] * jnp.abs(z[0]) + p["b"] * z[1], z[0]])


def ikeda(z, p=_of(mu=0.9)):
    """Light in a ring cavity."""
    angle = 0.4 - 6.0 / (1 + z[0] ** 2 + z[1] ** 2)
    c, s, mu = jnp.cos(angle), jnp.sin(angle), p["mu"]
    return jnp.stack([1 + mu * (z[0] * c - z[1] * s), mu * (z[0] * s + z[1] * c)])


def delayed_logistic(z, p=_of(a=2.27)):
    """a x (1 - y) and x; a torus is born at a = 2."""
    return jnp.stack([p["a"] * z[0] * (1 - z[1]), z[0]])


def tinkerbell(z, p=_of(a=0.9, b=-0.6, c=2.0, d=0.5)):
    """x^2 - y^2 + a x + b y and 2 x y + c x + d y."""
    x, y = z
    return jnp.stack(
        [x**2 - y**2 + p["a"] * x + p["b"] * y, 2 * x * y + p["c"] * x + p["d"] * y]
    )


def burgers(z, p=_of(a=0.75, b=1.75)):
    """a x - y^2 and b y + x y."""
    x, y = z
    return jnp.stack([p["a"] * x - y**2, p["b"] * y + x * y])


def holmes(z, p=_of(b=0.2, d=2.77)):
    """Cubic map of Holmes: y and -b x + d y - y^3."""
    return jnp.stack([z[1], -p["b"] * z[0] + p["d"] * z[1] - z[1] ** 3])


def kaplan_yorke(z, p=_of(a=0.2)):
    """2 x mod 1 drives a contraction; the modulus keeps doubling from losing bits."""
    driven = p["a"] * z[1] + jnp.cos(4 * jnp.pi * z[0])
    return jnp.stack([2 * z[0] % 0.99999995, driven])


def standard(z, p=_of(k=1.0)):
    """Chirikov's map on the torus of periods 1."""
    momentum = z[0] + p["k"] / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * z[1])
    return jnp.stack([momentum % 1.0, (z[1] + momentum) % 1.0])


def coupled_logistic(z, p=_of(epsilon=0.1)):
    """Two logistic maps at r = 4, each of which takes a share of the other."""
    f = 4 * z * (1 - z)
    return (1 - p["epsilon"]) * f + p["epsilon"] * f[::-1]


def forced(z, p=_of(sigma=1.5)):
    """2 sigma tanh(x) cos 2 pi theta over a golden rotation of theta.

    Strange and not chaotic for sigma > 1: Grebogi et al., Physica D 13, 261 (1984).
    """
    moved = 2 * p["sigma"] * jnp.tanh(z[0]) * jnp.cos(2 * jnp.pi * z[1])
    return jnp.stack([moved, (z[1] + GOLDEN) % 1.0])


def lorenz(u, p=_of(sigma=10.0, rho=28.0, beta=8 / 3)):
    """x' = sigma (y - x), y' = x (rho - z) - y, z' = x y - beta z."""
    x, y, z = u
    return jnp.stack(
        [p["sigma"] * (y - x), x * (p["rho"] - z) - y, x * y - p["beta"] * z]
    )


def rossler(u, p=_of(a=0.2, b=0.2, c=5.7)):
    """x' = -y - z, y' = x + a y, z' = b + z (x - c)."""
    x, y, z = u
    return jnp.stack([-y - z, x + p["a"] * y, p["b"] + z * (x - p["c"])])


def hyper_rossler(u, p=_of(a=0.25, b=3.0, c=0.5, d=0.05)):
    """Two exponents are positive: Wolf et al., Physica D 16, 285 (1985)."""
    x, y, z, w = u
    return jnp.stack(
        [-y - z, x + p["a"] * y + w, p["b"] + x * z, -p["c"] * z + p["d"] * w]
    )


def quadratic_jerk(u, p=_of(a=2.017)):
    """x''' = -a x'' + x'^2 - x."""
    x, v, acceleration = u
    return jnp.stack([v, acceleration, -p["a"] * acceleration + v**2 - x])


def halvorsen(u, p=_of(a=1.27)):
    """x' = -a x - 4 y - 4 z - y^2, and so on in a circle."""
    x, y, z = u
    rate = lambda x, y, z: -p["a"] * x - 4 * y - 4 * z - y**2
    return jnp.stack([rate(x, y, z), rate(y, z, x), rate(z, x, y)])


def lorenz_96(x, p=_of(forcing=8.0)):
    """x_i' = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + forcing, on a ring of any length."""
    ahead, behind, further = (jnp.roll(x, shift) for shift in (-1, 1, 2))
    return (ahead - further) * behind - x + p["forcing"]


def henon_heiles(u):
    """x' = p_x, ... of a star in a galaxy; the energy is kept."""
    x, y, px, py = u
    return jnp.stack([px, py, -x - 2 * x * y, -y - x**2 + y**2])


def henon_heiles_start(y, py, energy=1 / 8):
    """A point of the section x = 0 at an energy."""
    px = np.sqrt(2 * energy - py**2 - y**2 + 2 / 3 * y**3)
    return jnp.array([0.0, y, px, py])


def ueda(t, u):
    """x'' + 0.05 x' + x^3 = 7.5 sin t, a driven field."""
    return jnp.stack([u[1], -0.05 * u[1] - u[0] ** 3 + 7.5 * jnp.sin(t)])


def duffing(t, u):
    """x'' + 0.25 x' - x + x^3 = 0.4 sin t, a driven field of two wells."""
    return jnp.stack([u[1], -0.25 * u[1] + u[0] - u[0] ** 3 + 0.4 * jnp.sin(t)])
