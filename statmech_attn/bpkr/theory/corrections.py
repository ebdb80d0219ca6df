r"""Corrections of order 1/N to the saddle point (docs/theory/bpkr.md, section 6).

In the chart x of `saddle` the exact law of section 5 has the density
$e^{-\Phi(x) - \varphi(x)}$ with

    $\Phi = N S / 2$,   $\varphi = \sum_l \sum_i (m_l + i - 1) \ln \beta_{l,ii}$,

with m_l the columns of a_l, zero without a skip, so Laplace's method about the saddle
point of S gives, with $\Sigma = (\Phi'')^{-1}$,

    $\langle g \rangle = g + g_a \delta_a + \tfrac12 g_{ab} \Sigma_{ab}$,
    $\delta_a = -\Sigma_{ab} (\varphi_b + \tfrac12 \partial_b \ln\det \Phi'')$.

The formula holds where $\Phi' = 0$, so a solution of another problem is refused.

All observables depend on x through the U_l:

    <U_l> - U_l       (d_l, d_l)       shift of the mean                    `shift`
    u_k               (n, d_1, d_1)    U_1 along the columns of a root of
                                       Sigma: Cov U_1 = sum_k u_k u_k       `modes`
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn import presentation
from statmech_attn.arguments import checks
from statmech_attn.bpkr.posed.kernels import own_variances
from statmech_attn.bpkr.posed.linear_algebra import inverse_cholesky
from statmech_attn.bpkr.posed.prior import lower
from statmech_attn.bpkr.posed.problem import Inputs, Posed
from statmech_attn.bpkr.posed.quantities import shown_order_parameters
from statmech_attn.bpkr.theory.action import order_parameters_of
from statmech_attn.bpkr.theory.predictor import Prediction, regression
from statmech_attn.bpkr.theory.saddle import derivatives, factors_at
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable


LOG_2PI = math.log(2 * math.pi)
STEPS = 3.5  # Newton steps' memory that a gradient of the Hessian takes, at most


class Corrected(eqx.Module):
    """Posterior means to order 1/N, spreads to leading order.

    `log_evidence` is Laplace's ln p(Y), relative to Laplace's value without labels,
    which would be zero if exact.

    Attributes:
        problem: the problem.
        U: posterior means of the order parameters, to order 1/N.
        U_a: of that of the readout.
        U_std: standard deviations, to leading order.
        U_a_std: of that of the readout.
        log_evidence: ln p(Y); see above.
        shift: correction of U_1.
        modes: directions in which U_1 fluctuates, in standard deviations.
    """

    problem: Posed
    U: tuple[Float[Array, "_d _d"], ...]
    U_a: Float[Array, ""] | Float[Array, "K K"]
    U_std: tuple[Float[Array, "_d _d"], ...]
    U_a_std: Float[Array, ""] | Float[Array, "K K"]
    log_evidence: Float[Array, ""]
    shift: Float[Array, "d d"]
    modes: Float[Array, "n d d"]

    @property
    def _shown(self):
        return (
            *shown_order_parameters(self.problem, error=True),
            Variable(
                "log_evidence", "", "ln p(Y), relative to no labels", symbol="ln p(Y)"
            ),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @checks
    def predict(self, xi_test: Inputs) -> Prediction:
        """Mean and variance of f on new attentioned inputs, to order 1/N."""
        problem = self.problem
        mean, variance = _predict(
            problem.cross_inputs(xi_test),
            problem.rows.training,
            problem.rows.y,
            self.U[0],
            self.shift,
            self.modes,
            problem.temperature,
        )
        shape = xi_test.shape[:1] + problem.Y.shape[1:]
        return Prediction(mean.reshape(shape), variance.reshape(shape))


def corrections(problem: Posed, solution: Solution) -> Corrected:
    """Means of U and f, and ln p(Y), to order 1/N around a saddle point.

    Args:
        solution: of this problem, with kernels in any form.
    """
    _require_density(problem, solution)
    U, U_a, U_std, U_a_std, log_evidence, shift, modes = _corrected(
        problem.fitted(STEPS).rows, solution.point
    )
    if problem.compressed is not None:
        log_evidence -= (problem.outside + problem.lost * LOG_2PI) / 2
    scalar = (lambda a: a[0, 0]) if problem.Y.ndim == 1 else (lambda a: a)
    return Corrected(
        problem, U, scalar(U_a), U_std, scalar(U_a_std), log_evidence, shift, modes
    )


def evidence_correction(problem: Posed, solution: Solution) -> Float[Array, ""]:
    """The term of order 1/N that Laplace's ln p(Y) of `corrections` lacks.

    It needs all third derivatives, n Hessians' worth of work each way for n
    unknowns, and is kept apart for that.

    Args:
        solution: of this problem.

    Raises:
        ValueError: as `corrections`.
    """
    _require_density(problem, solution)
    n = solution.point.size
    if 16 * n**3 > problem.memory_limit:
        raise ValueError(
            f"evidence_correction needs {16 * n**3 / 2**30:.3g} GiB for the third "
            f"derivatives in {n} unknowns, more than memory_limit = "
            f"{problem.memory_limit / 2**30:.3g} GiB."
        )
    return _next_order(problem.fitted(STEPS).rows, solution.point)


def _require_density(problem: Posed, solution: Solution) -> None:
    """Refuse what is no saddle point of the problem, or where there is no density."""
    problem.check_same(solution.problem, "solution")
    if not solution.converged:
        raise ValueError(
            "corrections need a saddle point, and the solution is not one: "
            f"{solution.reason}."
        )
    if solution.outside_support:
        raise ValueError(
            f"width must be at least {problem.sizes}, the sizes of U_1 ... U_a, for "
            f"the law to have a density; got {problem.widths}."
        )


@eqx.filter_jit
def _corrected(problem: Posed, point):
    shapes = problem.shapes
    value, hessian = _exponent(problem, point)
    root = inverse_cholesky(hessian).T
    covariance = root @ root.T
    # d ln det H = Tr[H^-1 dH] with H^-1 held fixed: one reverse pass.
    slope = jax.grad(lambda x: (covariance * _exponent(problem, x)[1]).sum())
    delta = -covariance @ (_bend(shapes) + slope(point) / 2)

    def chain(x):
        factors = factors_at(x, shapes)
        U, U_a = order_parameters_of(factors, problem.heads, problem.skip)
        return (*U, U_a)

    at_saddle, shift, modes = _moments(chain, point, delta, root)
    *U, U_a = [a + b for a, b in zip(at_saddle, shift)]
    *U_std, U_a_std = [_spread(m) for m in modes]
    half_log_det = jnp.log(jnp.abs(jnp.diagonal(root))).sum()
    log_evidence = (
        half_log_det - value - _bend(shapes) @ point - problem.y.size * LOG_2PI / 2
    ) - _laplace_without_labels(problem)
    return (
        tuple(U),
        U_a,
        tuple(U_std),
        U_a_std,
        log_evidence,
        shift[0],
        modes[0],
    )


@eqx.filter_jit
def _next_order(problem: Posed, point):
    shapes = problem.shapes
    hessian_at = lambda x: _exponent(problem, x)[1]
    root = inverse_cholesky(hessian_at(point)).T
    white = lambda x: root.T @ hessian_at(x) @ root

    def along(v):
        first = lambda x: jax.jvp(white, (x,), (v,))[1]
        third, fourth = jax.jvp(first, (point,), (v,))
        return third, jnp.trace(fourth)

    third, fourth = jax.lax.map(along, root.T)
    traced, bend = jnp.trace(third, axis1=1, axis2=2), root.T @ _bend(shapes)
    term = -fourth.sum() / 8 + traced @ traced / 8 + (third**2).sum() / 12
    term += bend @ bend / 2 + bend @ traced / 2
    without_labels = [
        (1 / 6 + i / 2 + i**2 / 4).sum() / N
        for i, N in zip(map(_columns, shapes), problem.widths)
    ]
    return term - jnp.stack(without_labels).sum()


def _exponent(problem: Posed, x):
    """The exponent Phi of the integrand, and its Hessian."""
    value, _, hessian = derivatives(problem, x)
    half = problem.widths.max() / 2
    return half * value, half * hessian


def _columns(shape: tuple[int, int]) -> Int[np.ndarray, " r"]:
    """Columns of the diagonal entries of beta_l in (a_l beta_l), from zero."""
    rows, beside = shape
    return beside + np.arange(rows)


def _bend(shapes) -> Int[np.ndarray, " n"]:
    """The constant gradient of phi."""
    entries = [(lower(*shape), shape[1]) for shape in shapes]
    return np.concatenate(
        [np.where(row + beside == col, col, 0) for (row, col), beside in entries]
    )


def _laplace_without_labels(problem: Posed) -> Float[Array, ""]:
    """Laplace's logarithm of the integral over the prior alone, at its minimum."""
    total = jnp.asarray(0.0)
    blocks = zip(problem.shapes, problem.widths, problem.variances[1:])
    for (d, beside), N, s2 in blocks:
        below, log_s2 = d * (d - 1) / 2 + d * beside, jnp.log(s2)
        exponent = N * d * (1 - log_s2) / 2 + below * log_s2 / 2
        log_det = d * jnp.log(2 * N) + below * (jnp.log(N) - log_s2)
        total += -exponent - log_det / 2
    return total


def _moments(f, point, shift, root):
    """f, the shift of its mean, and its derivatives along the columns of the root."""

    def along(v):
        first = lambda x: jax.jvp(f, (x,), (v,))[1]
        return jax.jvp(first, (point,), (v,))

    modes, curved = jax.lax.map(along, jnp.moveaxis(root, -1, 0))
    value, moved = jax.jvp(f, (point,), (shift,))
    moved = [a + b.sum(axis=0) / 2 for a, b in zip(moved, curved)]
    return value, moved, modes


def _spread(modes):
    return jnp.sqrt((modes**2).sum(axis=0))


@jax.jit
def _predict(test, train, y, U, shift, modes, temperature):
    """Mean and variance of f: those of the GP, averaged over U_1."""

    self_kernels = test.own_blocks()

    def given(U):
        half = inverse_cholesky(train.kernel(U) + temperature * jnp.eye(y.size))
        return regression(test.kernel(U), own_variances(self_kernels, U), half, y)

    columns = jnp.moveaxis(modes, 0, -1)
    (mean, variance), moved, modes = _moments(given, U - shift, shift, columns)
    return mean + moved[0], variance + moved[1] + (modes[0] ** 2).sum(axis=0)
