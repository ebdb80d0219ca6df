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

Of several segments (`problem.segments`) a tangent has to close, $A_i v_i = v_{i+1}$,
$v_m = \mu v_0$, with $\mu = 1$ at a fold and -1 at a period doubling.  Newton takes
the smallest singular value of these equations to zero with the second parameter
(docs/theory/continuation.md, sections 3 and 7); u = (x_0 .. x_{m-1}, p_1, p_2).
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn.dynamics.continuation.arclength import DENSE, Method
from statmech_attn.dynamics.continuation.correction import Linearised
from statmech_attn.dynamics.continuation.cycles import first_guess
from statmech_attn.dynamics.continuation.multiple_shooting import (
    columns_of,
    null_vector,
    solve,
)
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

    @property
    def method(self) -> Method:
        """How its curves are corrected."""
        return DENSE


class ExtendedSegments(Extended):
    """The extended system of several segments, of a fold or a period doubling."""

    def segment(self, x, values):
        """The end of the segment of a point x (d,) at both parameters."""
        times = self.problem.period // self.problem.segments
        return self.problem.iterate(x, self.at(values), times)

    def __call__(self, u):
        gaps = self.problem.gaps(u[:-2], partial(self.segment, values=u[-2:]))
        return jnp.append(gaps, self.gap(u)[0])

    def parts(self, u) -> Parts:
        angle = 0.0 if self.kind == FOLD else np.pi
        points = u[:-2].reshape(self.problem.shape)
        return Parts(points, jnp.empty(0), angle, u[-2:])

    @property
    def method(self) -> Method:
        columns = partial(columns_of, shape=self.problem.shape)
        return Method(_of_segments, lambda _: 1.0, columns, False)

    def derivatives(self, u):
        """Derivatives of segments in their points, (m, d, d), and both parameters."""
        points = u[:-2].reshape(self.problem.shape)
        return jax.vmap(jax.jacfwd(self.segment, (0, 1)), (0, None))(points, u[-2:])

    def turned(self, u):
        """u from the point on where the critical tangent is largest.

        There the equations are cut open.  Where it is small, as beside a sharp turn of
        a chaotic orbit, equations of the ends say nothing of it.
        """
        points = u[:-2].reshape(self.problem.shape)
        first = int(np.argmax(np.linalg.norm(_critical_tangent(self, u), axis=1)))
        shifted = points[:first] + self.problem.shift
        return np.append(np.concatenate([points[first:], shifted]), u[-2:])

    def gap(self, u):
        """w . (A_i v_i - v_{i+1}) summed over the cycle, and its gradient.

        v and w are right and left null vectors of the equations of a tangent that
        closes with the multiplier.
        """
        points, jacobians = u[:-2].reshape(self.problem.shape), self.derivatives(u)[0]
        v = null_vector(jacobians, SIGN[self.kind])
        adjoint = jnp.swapaxes(jacobians[::-1], 1, 2)
        w = null_vector(adjoint, SIGN[self.kind])[::-1]

        def pushed(x, values, v, w):
            segment = partial(self.segment, values=values)
            return w @ jax.jvp(segment, (x,), (v,))[1]

        lanes = 0, None, 0, 0
        slopes = jax.vmap(jax.jacfwd(pushed, (0, 1)), lanes)(points, u[-2:], v, w)
        ahead = jnp.roll(v, -1, axis=0).at[-1].multiply(SIGN[self.kind])
        value = jax.vmap(pushed, lanes)(points, u[-2:], v, w).sum() - jnp.sum(w * ahead)
        return value, jnp.append(slopes[0].reshape(-1), slopes[1].sum(axis=0))


@eqx.filter_jit
def _critical_tangent(system: ExtendedSegments, u) -> Float[Array, "m d"]:
    return null_vector(system.derivatives(u)[0], SIGN[system.kind])


def _of_segments(residual: Any, w: Float[Array, " n+1"], row, off) -> Linearised:
    """`correction.dense` for a critical cycle of several segments."""
    system, scales = residual.residual, residual.scales
    u, shape = scales * w, system.problem.shape
    jacobians, in_values = system.derivatives(u)
    blocks = jnp.concatenate([jacobians, in_values[..., :1]], axis=2)
    value = system(u)
    step, kernel, _ = solve(blocks, value[:-1].reshape(shape))
    other = solve(blocks, in_values[..., 1])[0]
    basis = jnp.stack([jnp.append(kernel, 0.0), jnp.append(-other, 1.0)])
    gap, slope = system.gap(u)
    step, rows = jnp.append(step, 0.0), jnp.stack([slope, row / scales])
    ends = jnp.stack([gap, off]) - rows @ step
    step = (step + jnp.linalg.solve(rows @ basis.T, ends) @ basis) / scales
    across = basis @ slope
    tangent = (jnp.stack([across[1], -across[0]]) @ basis) / scales
    tangent = tangent * jnp.where(row @ tangent < 0, -1.0, 1.0)
    whole = jnp.concatenate([jacobians, in_values], axis=2)
    return Linearised(value, whole * columns_of(scales, shape, jnp), step, tangent)


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
    several = problem.segments > 1
    kinds = tuple(SIGN) if several else CRITICAL
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}; got {kind!r}.")
    others = sorted(set(problem.parameters) - {problem.free})
    if second not in others:
        raise ValueError(f"second must be one of {others}; got {second!r}.")
    x = np.asarray(first_guess(problem, state, value)[0][:-1])
    values = np.array([value, float(problem.parameters[second])])
    names = sorted(problem.parameters)
    places = jnp.array([names.index(problem.free), names.index(second)])
    if several:
        gauge = jnp.zeros((2, problem.dimension))
        segments = ExtendedSegments(problem, gauge, places, kind)
        return segments, segments.turned(np.append(x, values))
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
