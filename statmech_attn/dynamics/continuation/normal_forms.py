r"""Normal forms of bifurcations of cycles (docs/theory/continuation.md, section 4).

With $A = D_x f^k$, forms B and C of $f^k$, $A q = \mu q$, $A^T \bar p = \mu \bar p$,
$\langle p, q \rangle = \bar p^T q = 1$ (Kuznetsov, *Elements of Applied Bifurcation
Theory*, section 5.4), and q of root mean square length one over the cycle,
$\sum_{i<k} |D_x f^i q|^2 = k$:

    fold              xi -> xi + s dp + b xi^2      b = <p, B(q, q)> / 2
    period doubling   xi -> -xi + m dp xi + c xi^3  c = <p, C(q, q, q)
                                                        + 3 B(q, (1-A)^-1 B(q, q))> / 6
    Neimark-Sacker    z -> e^{i theta}(z + m dp z + d z |z|^2)
                      d = e^{-i theta} <p, C(q, q, q*) + 2 B(q, (1-A)^-1 B(q, q*))
                               + B(q*, (e^{2 i theta} - A)^-1 B(q, q))> / 2
    pitchfork         xi -> xi + m dp xi + c xi^3   c as for doubling, in the
                                                    complement of q

dp is the distance in the parameter, s = <p, f_p>, and m the speed with which the
multiplier moves along the branch (relative to it for Neimark-Sacker, mu'/mu).  Carried
along by the map, q belongs to every point of the cycle, so that the coefficients are
those of the cycle, whichever of its points x is.  The sign of q is such that s > 0 at a
fold and b > 0 at a transcritical point; no other coefficient depends on it.
"""

from dataclasses import replace
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Complex, Float

from statmech_attn.dynamics.continuation.augmented_systems import (
    BRANCHING,
    DOUBLING,
    FOLD,
    linearise,
    Located,
    second,
    smallest,
    third,
    TORUS,
)
from statmech_attn.dynamics.continuation.problem import Problem, require_one_segment


RESONANCE = 1e-3  # of a turn: distance from m/q, q <= 4, that counts as resonance
SINGULAR = (1, 2, 3)  # orders at which e^{2 i theta} is a multiplier, or theta is 0
LOCATED = 1e-10  # how well a point is known at least, relative to 1 + |u|
FLAT = 1e-6  # of the cubic terms: size below which b is a symmetry's zero


class NormalForm(eqx.Module):
    """Coefficients of the normal form at a bifurcation; NaN where it has none.

    `coefficient` is b, c or Re d; `twist` is Im d; `speed` is s at a fold, else m
    (at a transcritical point its size, of either sign on the two branches);
    `vector` and `adjoint` are q and p; `quadratic` is the second-order term of the
    bifurcating orbit, $x = x_0 + x' \\delta p + \\xi q + \\xi^2 h/2$, and `drift` x'.
    `resonance` is the order of the strong resonance it is at, 0 if none: at orders 1
    to 3 there is no d, at 4 it does not decide alone.

    Attributes:
        name: of the bifurcation.
        coefficient: b, c or Re d.
        coefficient_error: by how much it changes as far as the point is known.
        speed: rate at which the critical multiplier changes with the parameter.
        vector: right critical vector q.
        adjoint: left critical vector p.
        drift: slope x' of the branch in the parameter.
        quadratic: second-order term h of the bifurcating orbit.
        twist: Im d.
        rotation: rotation number at the point, turns per period of the cycle.
        resonance: order of a strong resonance; 0 for none.
    """

    name: str
    coefficient: float = eqx.field(converter=float)
    speed: complex = eqx.field(converter=complex)
    vector: Complex[np.ndarray, " n"]
    adjoint: Complex[np.ndarray, " n"]
    drift: Float[np.ndarray, " n"]
    quadratic: Float[np.ndarray, " n"]
    twist: float = eqx.field(converter=float, default=np.nan)
    rotation: float = np.nan
    resonance: int = 0
    coefficient_error: float = 0.0

    @property
    def criticality(self) -> str:
        """Supercritical: the bifurcating orbit is stable in the critical directions.

        Degenerate where terms of higher order decide; empty where there is no such
        thing, or at a strong resonance.
        """
        if self.name in ("fold", "transcritical") or self.resonance:
            return ""
        if self.degenerate:
            return "degenerate"
        sign = self.coefficient if self.name == "period_doubling" else -self.coefficient
        return "supercritical" if sign > 0 else "subcritical"

    @property
    def degenerate(self) -> bool:
        """Whether the coefficient is zero, as far as the point is known."""
        return abs(self.coefficient) <= self.coefficient_error

    @property
    def side(self) -> int:
        """Where the bifurcating orbit is: 1 above the parameter, -1 below, 0 both.

        0 as well where the coefficient does not tell.
        """
        if (
            self.name == "transcritical"
            or self.degenerate
            or self.resonance in SINGULAR
        ):
            return 0
        return int(-np.sign(self.speed.real * self.coefficient))

    def amplitude(self, distance: float) -> float:
        r"""$|\xi|$ or $|z|$ at a distance in the parameter, to leading order.

        The orbit is $x_0 \pm \xi q$ at fold, doubling and pitchfork, and the closed
        curve $x_0 + 2 \mathrm{Re}(z q)$ at Neimark-Sacker.  NaN on the other side.
        At a transcritical point it is the distance of the two branches, on both sides.

        Args:
            distance: of the parameter from the bifurcation.
        """
        if self.name == "transcritical":
            return abs(self.speed.real * distance / self.coefficient)
        if self.degenerate:
            return np.nan
        square = -self.speed.real * distance / self.coefficient
        return float(np.sqrt(square)) if square >= 0 else np.nan

    def depart(self, xi: float) -> tuple[Float[np.ndarray, " n"], float]:
        """The bifurcating orbit of amplitude xi at a doubling or pitchfork.

        Returns x - x_0 and the distance in the parameter, both to second order.

        Args:
            xi: amplitude.
        """
        distance = -self.coefficient * xi**2 / self.speed.real
        shift = xi * np.real(self.vector) + distance * self.drift
        return shift + xi**2 / 2 * self.quadratic, float(distance)

    def rotation_at(self, distance: float) -> float:
        """Rotation number of the closed curve, to first order in the distance.

        Args:
            distance: of the parameter from the bifurcation.
        """
        square = -self.speed.real * distance / self.coefficient
        turn = self.speed.imag * distance + self.twist * square
        return self.rotation + turn / (2 * np.pi)


def normal_form(
    problem: Problem, kind: Annotated[int, Ge(0), Le(3)], located: Located
) -> NormalForm:
    """Coefficients of the normal form at a bifurcation of a cycle."""
    require_one_segment(problem)
    if not located.converged:
        raise ValueError("located must be a bifurcation; Newton's method found none.")
    form = _form_at(problem, kind, located.angle, located.u)
    moved = np.append(np.real(form.vector), 0.0) * LOCATED
    moved = located.u + moved * (1 + np.abs(located.u).max())
    near = _form_at(problem, kind, located.angle, moved).coefficient
    error = np.fmax(abs(near - form.coefficient), LOCATED * abs(form.twist))
    return replace(form, coefficient_error=float(error))


def _form_at(problem: Problem, kind: int, angle: float, u) -> NormalForm:
    """The coefficients as if the point were u."""
    residual, u = problem.residual, jnp.asarray(u)
    jacobian = np.asarray(linearise(residual, u)[1])
    A, f_p = jacobian[:, :-1] + np.eye(len(jacobian)), jacobian[:, -1]
    B = lambda a, b: second(residual, u, a, b)
    C = lambda a, b, c: third(residual, u, a, b, c)
    critical = {FOLD: 1.0, BRANCHING: 1.0, DOUBLING: -1.0}
    if kind == TORUS:
        mu = np.exp(1j * abs(angle))
        return _torus(A, f_p, B, C, mu, *_vectors(problem, u, A, mu))
    form = {FOLD: _fold, DOUBLING: _doubling, BRANCHING: _branching}[kind]
    real = lambda form: lambda *directions: form(*directions).real
    return form(A, f_p, real(B), real(C), *_vectors(problem, u, A, critical[kind]))


def _fold(A, f_p, B, C, q, p):
    q, p = (v * np.copysign(1.0, p @ f_p) for v in (q, p))
    b = p @ B(_flat(q), _flat(q)) / 2
    nothing = np.full(len(q), np.nan)
    return NormalForm(
        name="fold",
        coefficient=b,
        speed=p @ f_p,
        vector=q,
        adjoint=p,
        drift=nothing,
        quadratic=nothing,
    )


def _doubling(A, f_p, B, C, q, p):
    eye = np.eye(len(A))
    drift = np.linalg.solve(eye - A, f_p)
    h = np.linalg.solve(eye - A, B(_flat(q), _flat(q)))
    return NormalForm(
        name="period_doubling",
        coefficient=_cubic(B, C, p, q, h),
        speed=p @ B(_flat(q), np.append(drift, 1.0)),
        vector=q,
        adjoint=p,
        drift=drift,
        quadratic=h,
    )


def _torus(A, f_p, B, C, mu, q, p):
    eye, conj = np.eye(len(A)), q.conj()
    rotation = float(np.angle(mu)) / (2 * np.pi)
    resonance = _resonance(rotation)
    drift = np.linalg.solve(eye - A, f_p)
    h_11 = np.linalg.solve(eye - A, B(_flat(q), _flat(conj)))
    d = np.nan + 1j * np.nan
    if resonance not in SINGULAR:
        h_20 = np.linalg.solve(mu**2 * eye - A, B(_flat(q), _flat(q)))
        cubic = C(_flat(q), _flat(q), _flat(conj))
        bent = cubic + 2 * B(_flat(q), _flat(h_11)) + B(_flat(conj), _flat(h_20))
        d = np.vdot(p, bent) / (2 * mu)
    return NormalForm(
        name="neimark_sacker",
        coefficient=d.real,
        twist=d.imag,
        speed=np.vdot(p, B(_flat(q), np.append(drift, 1.0))) / mu,
        rotation=rotation,
        resonance=resonance,
        vector=q,
        adjoint=p,
        drift=drift,
        quadratic=h_11.real,
    )


def _branching(A, f_p, B, C, q, p):
    """Transcritical or pitchfork, as the quadratic coefficient tells.

    The branches leave along y q + drift, with b y^2 + m y + e = 0; where b = 0 by
    symmetry the bifurcating one leaves along q, without a slope in the parameter.
    With x known to a small part of its unit, a b that is zero comes out as small a part
    of the cubic terms, whatever their size.
    """
    bend = B(_flat(q), _flat(q))
    h, drift = _in_complement(A, p, q, bend), _in_complement(A, p, q, f_p)
    along = np.append(drift, 1.0)
    b, m, e = p @ bend / 2, p @ B(_flat(q), along), p @ B(along, along) / 2
    c = _cubic(B, C, p, q, h)
    if abs(b) > FLAT * (abs(c) + np.linalg.norm(p) * np.linalg.norm(bend)):
        speed = np.sqrt(max(m**2 - 4 * b * e, 0.0))
        q, p = (v * np.copysign(1.0, b) for v in (q, p))
        name, c, m = "transcritical", abs(b), speed
    else:
        name, drift = "pitchfork", drift - e / m * q
    return NormalForm(
        name=name,
        coefficient=c,
        speed=m,
        vector=q,
        adjoint=p,
        drift=drift,
        quadratic=h,
    )


def _vectors(problem, u, A, mu):
    """Right and left eigenvectors q and p of mu, <p, q> = 1."""
    w, _, q = smallest(A - mu * np.eye(len(A)))
    if int(problem.period) > 1:
        parts = jnp.stack([jnp.real(q), jnp.imag(q)])
        q = q / np.sqrt(float(_mean_square(problem, u, parts)))
    return q, w / np.vdot(q, w)


@eqx.filter_jit
def _mean_square(problem, u, vectors):
    """Mean over the cycle of the square size of vectors carried along it."""
    parameters = {**problem.parameters, problem.free: u[-1]}
    step = lambda x: problem.iterate(x, parameters, 1)

    def body(_, carry):
        x, vectors, total = carry
        after = jax.vmap(lambda v: jax.jvp(step, (x,), (v,))[1])(vectors)
        return step(x), after, total + jnp.sum(vectors**2)

    start = (u[:-1], vectors, 0.0)
    return jax.lax.fori_loop(0, problem.period, body, start)[2] / problem.period


def _flat(x):
    """The direction x at a fixed parameter."""
    return np.append(x, 0.0)


def _in_complement(A, p, q, right):
    """Solve (1 - A) h = right with <p, h> = 0, dropping the share along q."""
    border = np.block([[np.eye(len(A)) - A, q[:, None]], [p[None], np.zeros((1, 1))]])
    return np.linalg.solve(border, np.append(right, 0.0))[:-1]


def _cubic(B, C, p, q, h):
    q = _flat(q)
    return p @ (C(q, q, q) + 3 * B(q, _flat(h))) / 6


def _resonance(rotation: float) -> int:
    """Smallest q <= 4 for which the rotation number is near m/q; 0 if none."""
    near = (
        q for q in (1, 2, 3, 4) if abs(rotation - round(rotation * q) / q) < RESONANCE
    )
    return next(near, 0)
