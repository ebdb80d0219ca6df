r"""Saddle point of many paths without their Hessian (docs/theory/bpkr.md, section 3).

For d = |Pi| K the Hessian has d^4 / 4 entries, and the path-path matrices behind it
take d^2 N_0^2.  Here only K(U_1) and dE/dU_1 are computed, a few features at a time.
The step solves a model of the Hessian in which features do not mix,

    $M_{ab} = X_a^T (K+T)^{-1} X_b \approx \mathrm{diag}_i (g^i_{ab})$,
    $\partial^2 E [V] \approx \sum_i [-g^i V g^i + t_i + t_i^T]$,
    $t_i = S_i (g^i V S_i)^T$,

by conjugate gradients, in the place of the first matrix of L-BFGS.  The gradient is
exact, so that the model decides how many steps there are and not where they end.  Far
from the minimum matrices are in single precision, in half the time; the descent ends in
double precision alone.

    xi_ia             (n, d)       inputs of one feature               `xi`
    c_a               (d,)         their prefactor, X_a = c_a xi_a     `scale`
    F_1               (d, d)       U_1 = F_1 F_1^T                     `F`
    (K + T)^-1        (n, n)       as half^T half, n = P K             `half`
    L^T               (n, n)       K + T = L L^T, half = L^-1          `upper`
    g^i_ab            (N_0, d, d)  path-path matrices by feature       `by_feature`
    S_ia              (N_0, d)     X^T alpha, alpha = (K + T)^-1 Y     `readout`
    chart             (u,)         as in `saddle`                      `point`
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from statmech_attn.bpkr.posed.newton import CONVERGED, ITERATIONS, STALLED, UNDEFINED


SLAB = 2**23  # numbers of the inputs that are worked on at once
SINGLE = 2**27  # numbers of inputs that are kept in single precision too, at most
PAIRS = 20  # steps and changes of the gradient that L-BFGS keeps
INNER = 30  # conjugate gradients of a step, at most
ACCURACY = 0.03  # of these, relative
FURTHEST = 1.0  # change of an unknown in one step; of the model's more was too much
TRIALS = 20  # of shorter steps
FEW = 4  # of them in single precision, whose rounding may hide what a step gains
SHORTER = 0.1, 0.5  # least and largest factor between them
ROUND_OFF = 1e-13
NEAR = 1e-2  # norm of the gradient below which single precision hides the gain


class State(NamedTuple):
    """The point that the descent has reached, with its derivatives.

    `energy` is E / N with N the largest width, `slope` its derivative in U_1;
    `by_feature` and `readout` are of the model of the Hessian.
    """

    point: Float[Array, " u"]
    value: float
    gradient: Float[np.ndarray, " u"]
    energy: float
    slope: Float[Array, "d d"]
    by_feature: Float[Array, "N_0 d d"]
    readout: Float[Array, "N_0 d"]

    @property
    def of_model(self) -> tuple[Array, Array, Array, Array]:
        """Arrays alone: a number would be a constant of a program of its own."""
        return self.point, self.slope, self.by_feature, self.readout


Evaluated = Callable[[Array], tuple[float, Callable[[], State]]]


def memory(n_examples, n_inputs, n_paths, outputs=1) -> int:
    """Bytes that inputs and a step take, at most."""
    d, n = n_paths * outputs, n_examples * outputs
    inputs = n_examples * n_inputs * n_paths
    slab = min(inputs * outputs**2, max(SLAB, n * d))
    vectors = (2 * PAIRS + 20) * d * (d + 1)
    inputs += inputs // 2 if inputs <= SINGLE else 0  # in single precision too
    return 8 * (inputs + 4 * slab + 5 * n * n + 2 * n_inputs * d * d + vectors)


def streamed(
    xi: Float[np.ndarray, "P N_0 Pi"],
    scale: Float[np.ndarray, " Pi"],
    F: Float[np.ndarray, "d m"],
    temperature,
    y: Float[np.ndarray, " n"],
    *,
    dtype: type = np.float64,
) -> tuple[float, Callable[[], tuple[np.ndarray, ...]]]:
    """E at U_1 = F F^T, and its derivative there with the model of the Hessian.

    Returns E, NaN where K + T is not positive definite, and a function that computes
    dE/dU_1, g^i and S: a trial that is refused needs none of them.  `scale` is the
    prefactor by path; matrices have `dtype`, sums of their entries are in float64.
    """
    N_0, d, outputs = xi.shape[1], F.shape[0], F.shape[0] // xi.shape[2]
    c = np.repeat(scale, outputs)
    upper = factored(xi, scale, F, temperature, dtype)
    solved: Any = get_lapack_funcs("trtrs", (upper,))
    whitened = solved(upper, y.astype(dtype), lower=0, trans=1)[0]
    logs = np.log(np.diagonal(upper), dtype=float)
    E = float(np.sum(whitened**2, dtype=float) + 2 * logs.sum())

    def derivatives():
        half = inverted(upper)
        alpha = (half.T @ whitened).reshape(len(xi), -1)
        by_feature, readout = np.empty((N_0, d, d)), np.empty((N_0, d))
        for slab, part in _slabs(xi, outputs, dtype):
            part = part.reshape(len(xi), -1)
            readout[slab] = (part.T @ alpha).reshape(-1, d)
            W = _whitened(half, part, outputs).reshape(len(half), -1, d)
            by_feature[slab] = _products(W)
        readout *= c
        by_feature *= np.outer(c, c)
        return by_feature.sum(axis=0) - readout.T @ readout, by_feature, readout

    return E, derivatives


def factored(xi, scale, F, temperature, dtype: type) -> Float[np.ndarray, "n n"]:
    """The upper factor L^T of K + T = L L^T at U_1 = F F^T; NaN where there is none.

    Arguments as of `streamed`.
    """
    c = np.repeat(scale, F.shape[0] // xi.shape[2])
    K = gram(xi, c[:, None] * F, dtype)
    K[np.diag_indices(len(K))] += temperature
    cholesky: Any = get_lapack_funcs("potrf", (K,))
    upper, failed = cholesky(K, lower=0, clean=0, overwrite_a=1)
    return upper * math.nan if failed else upper


def inverted(upper: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """L^-1 from L^T, as `linear_algebra.inverse_cholesky` has it."""
    inverse: Any = get_lapack_funcs("trtri", (upper,))
    return inverse(upper, lower=0)[0].T


def gram(
    xi: Float[np.ndarray, "P N_0 Pi"],
    F: Float[np.ndarray, "d m"],
    dtype: type = np.float64,
) -> Float[np.ndarray, "n n"]:
    """X F F^T X^T on and above the diagonal, zeros below it; F has the prefactor.

    One triangle, as NumPy's product fills the other as slowly as it computes this.
    """
    (P, _, paths), outputs = xi.shape, F.shape[0] // xi.shape[2]
    by_output = F.astype(dtype).reshape(paths, outputs, -1).transpose(1, 0, 2)
    K = np.zeros((P * outputs, P * outputs), dtype, order="F")
    squared: Any = get_blas_funcs("syrk", (K,))
    for _, part in _slabs(xi, outputs, dtype):
        part = part.reshape(-1, paths)
        through = [(part @ F_k).reshape(P, -1) for F_k in by_output]
        through = through[0] if outputs == 1 else np.stack(through, axis=1)
        through = through.reshape(len(K), -1)
        K = squared(1.0, through.T, trans=1, beta=1.0, c=K, overwrite_c=1)
    return K


def _slabs(xi, outputs: int, dtype: type):
    """A few features at a time, and the inputs of these."""
    P, N_0, paths = xi.shape
    width = max(1, SLAB // (P * paths * outputs**2))
    for first in range(0, N_0, width):
        slab = slice(first, min(first + width, N_0))
        yield slab, np.ascontiguousarray(xi[:, slab], dtype)


def _whitened(half, part: Float[np.ndarray, "P c"], outputs: int):
    """Half of the inverse times the inputs of all outputs, (n, c, outputs)."""
    P = len(part)
    if outputs > 1:
        of_output = np.moveaxis(half.reshape(-1, P, outputs), 2, 0)
        return np.stack([square @ part for square in of_output], axis=2)
    # Half the multiplications, as half is triangular; transposed, as BLAS has columns.
    multiply: Any = get_blas_funcs("trmm", dtype=part.dtype)
    whitened = multiply(1.0, half.T, part.T, side=1, lower=0)
    return whitened.T[:, :, None]


@jax.jit
def _products(W: Float[Array, "n c d"]) -> Float[Array, "c d d"]:
    """W^T W of every feature: one after the other no large array is turned round."""
    squared = lambda w: w.T @ w
    return jax.lax.map(lambda i: squared(W[:, i]), jnp.arange(W.shape[1]))


def descend(
    evaluated: Evaluated,
    model: Callable[[State, Array], Array],
    start: Float[Array, " u"],
    *,
    tolerance: float,
    max_iterations: int,
    single: Evaluated | None = None,
) -> tuple[State, int, int]:
    """Minimise by L-BFGS whose first matrix is a model of the Hessian.

    `evaluated` gives the value at a point and a function that computes the state;
    `single` is the same in single precision, for steps far from the minimum, and
    whatever would end the descent there begins double precision.  `model` solves the
    model of the Hessian for a vector.  Returns the last state, steps, and a code that
    indexes `newton.RESULTS`.
    """
    steps = 0
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    if single is not None:
        near = max(NEAR, tolerance)
        state, steps, _ = _descended(
            single, model, start, pairs, near, max_iterations, trials=FEW
        )
        start = state.point
    return _descended(
        evaluated, model, start, pairs, tolerance, max_iterations, first=steps
    )


def _descended(
    evaluated,
    model,
    start,
    pairs,
    tolerance,
    max_iterations,
    *,
    first: int = 0,
    trials: int = TRIALS,
):
    """`descend` in one precision; `pairs` are used and left as they are at the end."""
    state = evaluated(start)[1]()
    for steps in range(first, max_iterations):
        if not math.isfinite(state.value):
            return state, steps, UNDEFINED
        if np.linalg.norm(state.gradient) <= tolerance:
            return state, steps, CONVERGED
        step = -_two_loops(pairs, state.gradient, lambda v: model(state, v))
        if not step @ state.gradient < 0:
            pairs.clear()
            step = -np.asarray(model(state, jnp.asarray(state.gradient)))
        new = _advanced(evaluated, state, step, trials)
        if new is None:
            return state, steps, STALLED
        change = np.asarray(new.point - state.point), new.gradient - state.gradient
        if change[0] @ change[1] > 0:
            pairs[:] = [*pairs[1 - PAIRS :], change]
        state = new
    small = np.linalg.norm(state.gradient) <= tolerance
    return state, max_iterations, CONVERGED if small else ITERATIONS


def _advanced(evaluated, state: State, step: np.ndarray, trials: int) -> State | None:
    """The first of ever shorter steps that lowers the value; none does at round-off.

    Where round-off hides the gain, a shorter gradient decides.
    """
    predicted = step @ state.gradient
    share = min(1.0, FURTHEST / np.abs(step).max())
    for _ in range(trials):
        value, new = evaluated(state.point + share * step)
        if value < state.value + 1e-4 * share * predicted:
            return new()
        hidden = -share * predicted < ROUND_OFF * (1 + abs(state.value))
        shorter = lambda s: np.linalg.norm(s.gradient) < np.linalg.norm(state.gradient)
        if hidden and shorter(reached := new()):
            return reached
        above = value - state.value - share * predicted
        lowest = -share * predicted / (2 * above)  # of the parabola; not finite: 0.1
        share *= min(SHORTER[1], max(SHORTER[0], lowest))
    return None


def _two_loops(pairs, gradient: np.ndarray, model) -> np.ndarray:
    """Inverse Hessian of L-BFGS times a gradient."""
    q, weights = gradient.copy(), []
    for s, y in reversed(pairs):
        weights.append((s @ q) / (s @ y))
        q -= weights[-1] * y
    r = np.array(model(jnp.asarray(q)))
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        r += (weight - (y @ r) / (s @ y)) * s
    return r


def conjugate_gradients(
    hessian: Callable[[Array], Array], b: Float[Array, " u"], diagonal
) -> Float[Array, " u"]:
    """Solve H x = b until the residual is small, or a direction curves downwards.

    `hessian` is the product with a vector; vectors are divided by `diagonal`, a
    positive part of it.
    """

    def unfinished(carry):
        x, r, p, rho, count, bent = carry
        small = jnp.linalg.norm(r) <= ACCURACY * jnp.linalg.norm(b)
        return ~small & ~bent & (count < INNER)

    def step(carry):
        x, r, p, rho, count, _ = carry
        Hp = hessian(p)
        curved = p @ Hp
        bent = ~(curved > 0)
        first = jnp.where(count == 0, rho / (p @ (diagonal * p)), 0.0)
        along = jnp.where(bent, first, rho / curved)
        x, r = x + along * p, r - along * Hp
        z = r / diagonal
        new = r @ z
        return x, r, z + (new / rho) * p, new, count + 1, bent

    z = b / diagonal
    carry = jnp.zeros_like(b), b, z, b @ z, jnp.asarray(0), jnp.asarray(False)
    return jax.lax.while_loop(unfinished, step, carry)[0]


def model_product(by_feature, readout, V: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The model of the second derivative of E in U_1, along a symmetric V.

    In the precision of `by_feature` and `readout`.
    """
    gV = by_feature @ V.astype(by_feature.dtype)
    mixed = jnp.einsum("iab,ibc->ac", gV, by_feature, optimize=True)
    gVS = jnp.einsum("iab,ib->ia", gV, readout)
    outer = readout.T @ gVS
    return outer + outer.T - mixed
