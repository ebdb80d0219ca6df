r"""Special points to full accuracy (docs/theory/continuation.md, section 3).

Newton on minimally augmented systems.  With A the Jacobian of f^k in x, and v, w the
right and left singular vectors of the smallest singular value $\sigma$ of

    A - 1                      fold
    A + 1                      period doubling
    A - e^{i theta}            Neimark-Sacker, theta unknown
    (A - 1, f^k_p)             branch point: n x (n+1), short of one rank

one step solves G = 0 together with $\sigma + w^* (dM) v = 0$, dM the change of the
matrix along the step.  A branch point has one unknown more, the strength of w added to
G, and two such conditions, for the two vectors that the matrix sends to zero.

Rounding of the equations moves the point by their inverse Jacobian times rounding.  It
is measured: steps from points nearby, which without rounding end in one point but for
the square of their distance, end as far apart as rounding puts them.

Multilinear derivatives of G at u, in real or complex directions a, b, c of $C^{n+1}$,

    `second`  $D^2 G\,[a, b]$                  the form B
    `third`   $D^3 G\,[a, b, c]$               the form C
    `slopes`  $\partial_u\, (l^* DG(u)\, r)$   how an entry of a bordered matrix moves

are nested forward differentiation; no tensor of derivatives is built.
"""

import itertools
from collections.abc import Callable
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Array, Complex, Float

from statmech_attn.options import Numbers
from statmech_attn.statistics import rounding


FOLD, DOUBLING, TORUS, BRANCHING = range(4)
ITERATIONS = 12
TOLERANCE = 1e-9  # of a step; the one after it is at rounding, and is taken too
NEIGHBOURS = 8  # from which a step is taken to see what rounding does
NEAR = 2.0**-33  # how far they are; a step leads to the point but for NEAR^2


class Located(eqx.Module):
    """A point on a curve, with the angle of its critical multiplier.

    Attributes:
        u: coordinates, the state and then the free parameter.
        angle: of the critical multiplier, radians.
        error: size of the last Newton step, and no less than what rounding moves the
            point by; NaN where Newton did not converge.
    """

    u: Float[np.ndarray, " n+1"]
    angle: float
    error: float

    @property
    def converged(self) -> bool:
        """Whether Newton's method converged."""
        return bool(np.isfinite(self.error))


@eqx.filter_jit
def linearise(residual: Callable, u: Float[Array, " n+1"]):
    """Residual and Jacobian."""
    return residual(u), jax.jacfwd(residual)(u)


def locate(
    residual: Callable,
    kind: Annotated[int, Ge(0), Le(3)],
    u: Annotated[Numbers, "n+1"],
    angle: float | None = None,
) -> Located:
    """Locate a bifurcation of a kind near u; `angle` starts the multiplier's.

    `residual` is G(x, p) = f^k(x, p) - x of u = (x, p).
    """
    step_of = _branching_step if kind == BRANCHING else _critical_step
    u, size = np.asarray(u, float), np.inf
    if kind == TORUS:
        angle = _complex_angle(residual, u) if angle is None else angle
    else:
        angle = {FOLD: 0.0, DOUBLING: np.pi, BRANCHING: 0.0}[kind]
    for _ in range(ITERATIONS):
        step, turn = step_of(residual, kind, u, angle)
        if not np.isfinite(step).all():
            break
        last, size = size, np.linalg.norm(step)
        u, angle = u + step, angle + turn
        small = last < TOLERANCE * (1 + np.linalg.norm(u))
        if small and _is_zero(residual, u):
            moved = _rounding(lambda v: step_of(residual, kind, v, angle)[0], u)
            return Located(u, float(angle), float(max(size, moved)))
    return Located(u, float(angle), np.nan)


def _complex_angle(residual, u) -> float:
    jacobian = np.asarray(linearise(residual, jnp.asarray(u))[1])
    multipliers = np.linalg.eigvals(jacobian[:, :-1] + np.eye(len(jacobian)))
    pairs = multipliers[multipliers.imag > 0]
    if not pairs.size:
        raise ValueError("angle must be given where no multiplier at u is complex.")
    return float(np.angle(pairs[np.argmin(abs(abs(pairs) - 1))]))


def _rounding(step_of: Callable, u: Float[np.ndarray, " n+1"]) -> float:
    """How far rounding moves the point to which Newton steps lead, and u itself."""
    apart = np.random.default_rng(0).uniform(-NEAR, NEAR, (NEIGHBOURS, u.size))
    ends = [start + step_of(start) - u for start in u + apart * (1 + abs(u))]
    return max(rounding(np.linalg.norm(u)), *np.linalg.norm(ends, axis=1))


def _is_zero(residual, u) -> bool:
    value = np.asarray(linearise(residual, jnp.asarray(u))[0])
    return bool(np.linalg.norm(value) < TOLERANCE * (1 + np.linalg.norm(u)))


def _critical_step(residual, kind, u, angle):
    """Newton step for a multiplier at e^{i angle}."""
    value, jacobian = (np.asarray(a) for a in linearise(residual, jnp.asarray(u)))
    n = value.size
    mu = np.exp(1j * angle) if kind == TORUS else np.cos(angle)
    if not (np.isfinite(value).all() and np.isfinite(jacobian).all()):
        return np.full(n + 1, np.nan), 0.0
    w, sigma, v = smallest(jacobian[:, :-1] + (1 - mu) * np.eye(n))
    slope = slopes(residual, u, w, np.append(v, 0.0))
    if kind != TORUS:
        step = _solve(np.vstack([jacobian, np.real(slope)]), np.append(value, sigma))
        return -step, 0.0
    turn = -1j * mu * np.vdot(w, v)
    matrix = np.zeros((n + 2, n + 2))
    matrix[:n, :-1] = jacobian
    matrix[n] = np.append(np.real(slope), turn.real)
    matrix[n + 1] = np.append(np.imag(slope), turn.imag)
    step = -_solve(matrix, np.concatenate([value, [sigma, 0.0]]))
    return step[:-1], step[-1]


def _branching_step(residual, kind, u, angle):
    """Newton step for a point where the n x (n+1) Jacobian loses a rank.

    The strength of w is solved for afresh at each step: it is zero where branches
    meet, and where it is not, they pass each other and the residual is no zero.
    """
    value, jacobian = (np.asarray(a) for a in linearise(residual, jnp.asarray(u)))
    n = value.size
    if not (np.isfinite(value).all() and np.isfinite(jacobian).all()):
        return np.full(n + 1, np.nan), 0.0
    U, sigma, Vh = np.linalg.svd(jacobian)
    w = U[:, -1]
    matrix = np.zeros((n + 2, n + 2))
    matrix[:n, :-1], matrix[:n, -1] = jacobian, w
    for row, vector in enumerate(Vh[-2:]):
        matrix[n + row, :-1] = np.real(slopes(residual, u, w, vector))
    step = -_solve(matrix, np.concatenate([value, [sigma[-1], 0.0]]))
    return step[:-1], 0.0


def smallest(matrix):
    """Left vector, value and right vector of the smallest singular value."""
    U, values, Vh = np.linalg.svd(matrix)
    return U[:, -1], values[-1], Vh[-1].conj()


def _solve(matrix, right):
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)


def along(function: Callable, direction: Array) -> Callable:
    """The derivative of a function in a direction, again a function."""
    return lambda u: jax.jvp(function, (u,), (direction,))[1]


@eqx.filter_jit
def _second(residual, u, a, b):
    return along(along(residual, a), b)(u)


@eqx.filter_jit
def _third(residual, u, a, b, c):
    return along(along(along(residual, a), b), c)(u)


@eqx.filter_jit
def _slopes(residual, u, rows, columns):
    """Gradients of the real numbers left_i . DG right_j, (pairs, n+1)."""
    pulled = lambda u: jax.vmap(lambda l, r: l @ along(residual, r)(u))(rows, columns)
    return jax.jacfwd(pulled)(u)


def second(residual, u, a, b) -> Complex[np.ndarray, " n"]:
    """B(a, b), bilinear also for complex directions."""
    return _complexified(lambda *v: _second(residual, jnp.asarray(u), *v), a, b)


def third(residual, u, a, b, c) -> Complex[np.ndarray, " n"]:
    """C(a, b, c), trilinear also for complex directions."""
    return _complexified(lambda *v: _third(residual, jnp.asarray(u), *v), a, b, c)


def slopes(residual, u, left, right) -> Complex[np.ndarray, " n+1"]:
    """Gradient in u of left^* DG(u) right, for one pair of complex vectors."""
    l, r = np.asarray(left, complex), np.asarray(right, complex)
    real = lambda *vectors: jnp.stack([jnp.asarray(v) for v in vectors])
    parts = _slopes(
        residual,
        jnp.asarray(u),
        real(np.real(l), np.imag(l), np.real(l), np.imag(l)),
        real(np.real(r), np.imag(r), np.imag(r), np.real(r)),
    )
    rr, ii, ri, ir = np.asarray(parts)
    return (rr + ii) + 1j * (ri - ir)


def _complexified(form: Callable, *directions) -> Complex[np.ndarray, " n"]:
    """Extend a real multilinear form to complex directions."""
    directions = [np.asarray(d, complex) for d in directions]
    total = 0j
    for choice in itertools.product((0, 1), repeat=len(directions)):
        parts = [
            np.imag(d) if imaginary else np.real(d)
            for d, imaginary in zip(directions, choice, strict=True)
        ]
        if all(part.any() for part in parts):
            value = form(*(jnp.asarray(part) for part in parts))
            total = total + 1j ** sum(choice) * np.asarray(value)
    return total + np.zeros(directions[0].shape[0] - 1)
