r"""Equations of critical cycles in two parameters (docs/theory/two_parameters.md, 2).

A cycle x of the map F = f^k that loses or gains stability at (p_1, p_2) solves an
extended system in which the critical eigenvector is an unknown of its own:

    fold              F(x) - x = 0,  J v - v = 0,  v.v = 1
    period doubling   F(x) - x = 0,  J v + v = 0,  v.v = 1
    Neimark-Sacker    F(x) - x = 0,  J v - e^{i theta} v = 0,  v.v* = 1,  Im(l.v) = 0

with J = DF and v = a + i b complex in the last one.  One equation is left over, so the
zeros form curves; they are regular at cusps and at the strong resonances 1:1 and 1:2.

    fold, doubling    u = (x, v, p_1, p_2)               (2d + 2,)
    Neimark-Sacker    u = (x, a, b, theta, p_1, p_2)     (3d + 3,)
    l                 fixed complex vector (its parts)   (2, d)    `gauge`

Only products J v occur, by forward differentiation, so that second derivatives of the
map enter the Newton matrix through JAX alone.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn.dynamics.continuation.cycles import coordinates
from statmech_attn.dynamics.continuation.problem import Problem


FOLD, PERIOD_DOUBLING, NEIMARK_SACKER = "fold", "period_doubling", "neimark_sacker"
CRITICAL = (FOLD, PERIOD_DOUBLING, NEIMARK_SACKER)
SIGN = {FOLD: 1.0, PERIOD_DOUBLING: -1.0}  # of the critical multiplier


class Parts(NamedTuple):
    """What the coordinates u of an extended system hold."""

    state: Array
    vector: Array  # real, or complex for Neimark-Sacker
    angle: Array | float  # theta of the critical multiplier exp(i theta), radians
    values: Array  # (2,), the two parameters


class Extended(eqx.Module):
    """The extended system of one kind; see the module docstring.

    `places` (2,) are those of the two parameters among all names in order; traced, so
    that one compilation serves all pairs.
    """

    problem: Problem
    gauge: Float[Array, "2 d"]
    places: Int[Array, " 2"]
    kind: str = eqx.field(static=True)

    def at(self, values) -> dict[str, Float[Array, ""]]:
        """All parameters of the map at two values."""
        names = sorted(self.problem.parameters)
        every = jnp.stack([self.problem.parameters[name] for name in names])
        every = every.at[self.places].set(jnp.asarray(values))
        return dict(zip(names, every, strict=True))

    def image(self, x, values):
        """F(x) at both parameters."""
        return self.problem.iterate(x, self.at(values), self.problem.period)

    def __call__(self, u):
        d = self.problem.dimension
        x, values = u[:d], u[-2:]
        image = lambda x: self.image(x, values)
        if self.kind != NEIMARK_SACKER:
            v = u[d : 2 * d]
            after, pushed = jax.jvp(image, (x,), (v,))
            return jnp.concatenate(
                [after - x, pushed - SIGN[self.kind] * v, (v @ v - 1)[None]]
            )
        a, b, theta = u[d : 2 * d], u[2 * d : 3 * d], u[3 * d]
        after, push = jax.linearize(image, x)
        c, s = jnp.cos(theta), jnp.sin(theta)
        phase = self.gauge[0] @ b - self.gauge[1] @ a
        return jnp.concatenate(
            [
                after - x,
                push(a) - c * a + s * b,
                push(b) - s * a - c * b,
                jnp.stack([a @ a + b @ b - 1, phase]),
            ]
        )

    def parts(self, u) -> Parts:
        """State, critical vector, angle and parameters of a point of the curve."""
        d = self.problem.dimension
        x, values = u[:d], u[-2:]
        if self.kind == NEIMARK_SACKER:
            return Parts(x, u[d : 2 * d] + 1j * u[2 * d : 3 * d], u[3 * d], values)
        angle = 0.0 if self.kind == FOLD else np.pi
        return Parts(x, u[d : 2 * d], angle, values)


@eqx.filter_jit
def jacobian(system: Extended, x, values) -> Float[Array, "d d"]:
    """Jacobian DF of the iterated map at the cycle."""
    return jax.jacfwd(lambda x: system.image(x, values))(x)


def start_of(
    problem: Problem, state, value: float, kind: str, second: str
) -> tuple[Extended, Float[np.ndarray, " n"]]:
    """The extended system with a gauge that fits this cycle, and a first guess of u.

    The critical vector is the eigenvector of the multiplier that is nearest to 1, to
    -1, or to the unit circle off the real axis.
    """
    if kind not in CRITICAL:
        raise ValueError(f"kind must be one of {', '.join(CRITICAL)}; got {kind!r}.")
    others = sorted(set(problem.parameters) - {problem.free})
    if second not in others:
        raise ValueError(f"second must be one of {others}; got {second!r}.")
    x = np.asarray(coordinates(problem, state), float)
    values = np.array([value, float(problem.parameters[second])])
    names = sorted(problem.parameters)
    places = jnp.array([names.index(problem.free), names.index(second)])
    general = problem.with_free(names[0])
    bare = Extended(general, jnp.zeros((2, x.size)), places, kind)
    eigen = np.linalg.eig(np.asarray(jacobian(bare, jnp.asarray(x), values)))
    distance = np.abs(eigen.eigenvalues - SIGN.get(kind, 0.0))
    if kind == NEIMARK_SACKER:
        pairs = np.imag(eigen.eigenvalues) > 0
        if not pairs.any():
            raise ValueError(
                "x must be near a neimark_sacker point, which needs complex "
                f"multipliers; got {np.real(eigen.eigenvalues)}."
            )
        distance = np.where(pairs, np.abs(distance - 1), np.inf)
    chosen = int(np.argmin(distance))
    v = eigen.eigenvectors[:, chosen]
    if kind != NEIMARK_SACKER:
        v = np.real(v * np.exp(-1j * np.angle(v[np.argmax(np.abs(v))])))
        return bare, np.concatenate([x, v / np.linalg.norm(v), values])
    a, b = np.real(v), np.imag(v)
    gauge = jnp.asarray(np.stack([a, b]))
    system = Extended(general, gauge, places, kind)
    theta = np.angle(eigen.eigenvalues[chosen])
    return system, np.concatenate([x, a, b, [theta], values])
