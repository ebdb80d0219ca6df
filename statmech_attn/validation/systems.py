"""Maps and flows of the reference table, as pure functions of the state.

Parameters are those at which the literature quotes exponents; `SPROTT` is
J. C. Sprott, Chaos and Time-Series Analysis (Oxford, 2003), appendix A.
"""

import jax.numpy as jnp
import numpy as np


SPROTT = "Sprott 2003, app. A"
GOLDEN = (np.sqrt(5) - 1) / 2


def logistic(r):
    """x' = r x (1 - x)."""
    return lambda x: r * x * (1 - x)


def skew_tent(a):
    """Full branches of slopes 1/a and -1/(1 - a); the density is uniform."""
    return lambda x: jnp.where(x < a, x / a, (1 - x) / (1 - a))


def tent(slope):
    return lambda x: slope * jnp.minimum(x, 1 - x)


def gauss(x):
    """x' = 1/x mod 1, the map of continued fractions."""
    return (1 / x) % 1.0


def cat(z):
    """Arnold's cat map."""
    return jnp.array([[2.0, 1.0], [1.0, 1.0]]) @ z % 1.0


def henon(z, a=1.4, b=0.3):
    return jnp.stack([1 - a * z[0] ** 2 + z[1], b * z[0]])


def lozi(z, a=1.7, b=0.5):
    return jnp.stack([1 - a * jnp.abs(z[0]) + b * z[1], z[0]])


def ikeda(z, mu=0.9):
    angle = 0.4 - 6.0 / (1 + z[0] ** 2 + z[1] ** 2)
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([1 + mu * (z[0] * c - z[1] * s), mu * (z[0] * s + z[1] * c)])


def delayed_logistic(a):
    return lambda z: jnp.stack([a * z[0] * (1 - z[1]), z[0]])


def tinkerbell(z, a=0.9, b=-0.6, c=2.0, d=0.5):
    x, y = z
    return jnp.stack([x**2 - y**2 + a * x + b * y, 2 * x * y + c * x + d * y])


def burgers(z, a=0.75, b=1.75):
    x, y = z
    return jnp.stack([a * x - y**2, b * y + x * y])


def holmes(z, b=0.2, d=2.77):
    return jnp.stack([z[1], -b * z[0] + d * z[1] - z[1] ** 3])


def kaplan_yorke(z, a=0.2):
    """2 x mod 1 drives a contraction; the modulus keeps doubling from losing bits."""
    return jnp.stack([2 * z[0] % 0.99999995, a * z[1] + jnp.cos(4 * jnp.pi * z[0])])


def standard(k):
    """Chirikov's map on the torus of periods 1."""

    def step(z):
        p = z[0] + k / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * z[1])
        return jnp.stack([p % 1.0, (z[1] + p) % 1.0])

    return step


def coupled_logistic(epsilon):
    def step(z):
        f = 4 * z * (1 - z)
        return (1 - epsilon) * f + epsilon * f[::-1]

    return step


def forced(sigma):
    """x' = 2 sigma tanh(x) cos 2 pi theta over a golden rotation of theta."""

    def step(z):
        moved = 2 * sigma * jnp.tanh(z[0]) * jnp.cos(2 * jnp.pi * z[1])
        return jnp.stack([moved, (z[1] + GOLDEN) % 1.0])

    return step


def lorenz(u, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = u
    return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def rossler(u, a=0.2, b=0.2, c=5.7):
    x, y, z = u
    return jnp.stack([-y - z, x + a * y, b + z * (x - c)])


def hyper_rossler(u, a=0.25, b=3.0, c=0.5, d=0.05):
    x, y, z, w = u
    return jnp.stack([-y - z, x + a * y + w, b + x * z, -c * z + d * w])


def quadratic_jerk(u, a=2.017):
    x, v, acceleration = u
    return jnp.stack([v, acceleration, -a * acceleration + v**2 - x])


def halvorsen(u, a=1.27):
    x, y, z = u
    rate = lambda x, y, z: -a * x - 4 * y - 4 * z - y**2
    return jnp.stack([rate(x, y, z), rate(y, z, x), rate(z, x, y)])


def lorenz_96(x, forcing=8.0):
    ahead, behind, further = (jnp.roll(x, shift) for shift in (-1, 1, 2))
    return (ahead - further) * behind - x + forcing


def henon_heiles(u):
    x, y, px, py = u
    return jnp.stack([px, py, -x - 2 * x * y, -y - x**2 + y**2])


def henon_heiles_start(y, py, energy=1 / 8):
    """A point of the section x = 0 at an energy."""
    px = np.sqrt(2 * energy - py**2 - y**2 + 2 / 3 * y**3)
    return jnp.array([0.0, y, px, py])


def ueda(t, u):
    """x'' + 0.05 x' + x^3 = 7.5 sin t."""
    return jnp.stack([u[1], -0.05 * u[1] - u[0] ** 3 + 7.5 * jnp.sin(t)])


def duffing(t, u):
    """x'' + 0.25 x' - x + x^3 = 0.4 sin t."""
    return jnp.stack([u[1], -0.25 * u[1] + u[0] - u[0] ** 3 + 0.4 * jnp.sin(t)])
