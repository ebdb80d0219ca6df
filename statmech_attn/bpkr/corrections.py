r"""Corrections of order 1/N to the saddle point (docs/theory/bpkr.md, section 6).

In the chart x of `saddle` the exact law of section 5 has the density
$e^{-\Phi(x) - \varphi(x)}$ with

    $\Phi = N S / 2$,   $\varphi = \sum_l \sum_i (i - 1) \ln C_{l,ii}$,

so Laplace's method about the saddle point of S gives, with $\Sigma = (\Phi'')^{-1}$,

    $\langle g \rangle = g + g_a \delta_a + \tfrac12 g_{ab} \Sigma_{ab}$,
    $\delta_a = -\Sigma_{ab} (\varphi_b + \tfrac12 \partial_b \ln\det \Phi'')$.

The formula holds where $\Phi' = 0$.  Elsewhere $\Phi'_b$ would stand beside the two
terms of $\delta_a$, which are of order one, so a solution is taken for a saddle point
of the problem given beside it where $|\Phi'| \ll 1$.

All observables depend on x through the U_l:

    <U_l> - U_l       (d_l, d_l)       shift of the mean                    `shift`
    u_k               (n, d_1, d_1)    U_1 along the columns of a root of
                                       Sigma: Cov U_1 = sum_k u_k u_k       `modes`
"""

import math
from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.bpkr import prior as sizes_of
from statmech_attn.bpkr.action import order_parameters_of
from statmech_attn.bpkr.checks import check_data, check_test
from statmech_attn.bpkr.kernels import (
    cross_kernel,
    MEMORY_LIMIT,
    own_variances,
    path_kernels,
    scaled,
    self_path_path,
)
from statmech_attn.bpkr.linear_algebra import inverse_cholesky
from statmech_attn.bpkr.predictor import Prediction, regression
from statmech_attn.bpkr.saddle import (
    derivatives,
    factors_at,
    Problem,
    slope_at,
    Solution,
)


LOG_2PI = math.log(2 * math.pi)
STEPS = 3.5  # Newton steps' memory that a gradient of the Hessian takes, at most
STATIONARY = 1e-3  # gradient of Phi at a saddle point, against terms of order one
SOLVED = 1e-9  # gradient of S to which saddle points are known, at best


class Corrected(eqx.Module):
    """Posterior means to order 1/N, spreads to leading order.

    `batch` is that of the solution.  `log_evidence` is Laplace's ln p(Y), relative to
    Laplace's value without labels, which would be zero if exact.
    """

    U: tuple[Float[Array, "*batch d d"], ...]
    U_a: Float[Array, "*batch"] | Float[Array, "*batch K K"]
    U_std: tuple[Float[Array, "*batch d d"], ...]
    U_a_std: Float[Array, "*batch"] | Float[Array, "*batch K K"]
    log_evidence: Float[Array, "*batch"]
    shift: Float[Array, "*batch d d"]
    modes: Float[Array, "*batch n d d"]
    temperature: Float[Array, "*batch"]
    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, "P *K"]
    variance: float

    def predict(self, xi_test: Float[Array, "Q N_0 Pi"]) -> Prediction:
        """Mean and variance of f on new attentioned inputs, to order 1/N."""
        test = scaled(check_test(xi_test, *self.xi.shape[1:]), self.variance)
        train = scaled(self.xi, self.variance)
        one = partial(_predict, test, train, self.Y.ravel())
        lanes = (self.U[0], self.shift, self.modes, self.temperature)
        if self.temperature.ndim:
            mean, variance = jax.lax.map(lambda lane: one(*lane), lanes)
        else:
            mean, variance = one(*lanes)
        shape = self.temperature.shape + test.shape[:1] + self.Y.shape[1:]
        return Prediction(mean.reshape(shape), variance.reshape(shape))


def corrections(
    solution: Solution,
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"],
    *,
    width,
    temperature,
    heads: Sequence[int],
    variances=None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Corrected:
    """Means of U and f, and ln p(Y), to order 1/N around a saddle point.

    Args:
        solution: of `solve` or `solve_many`, for the same data and settings, which
            are all other arguments.

    Raises:
        ValueError: a solution that has not converged or is no saddle point of the
            problem given beside it, a width below the size of its U_l, where the exact
            law has no density, or more memory than `memory_limit`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from statmech_attn import bpkr
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.zeros(1)
        >>> problem = dict(width=10, temperature=1e9, heads=(1,))
        >>> found = corrections(bpkr.solve(xi, Y, **problem), xi, Y, **problem)
        >>> round(float(found.U[0][0, 0]), 6)  # no information: the prior mean
        1.0
    """
    problem = _posed(
        solution, xi, Y, width, temperature, heads, variances, form, memory_limit
    )
    _require_stationary(solution, problem, tuple(heads))
    found = _corrected(problem, solution.point, tuple(heads))
    U, U_a, U_std, U_a_std, log_evidence, shift, modes = found
    scalar = (lambda a: a[..., 0, 0]) if np.ndim(Y) == 1 else (lambda a: a)
    return Corrected(
        U, scalar(U_a), U_std, scalar(U_a_std), log_evidence, shift, modes,
        problem.temperature, jnp.asarray(xi, float), jnp.asarray(Y, float),
        float(problem.variances[0]),
    )  # fmt: skip


def evidence_correction(
    solution: Solution,
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"],
    *,
    width,
    temperature,
    heads: Sequence[int],
    variances=None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Float[Array, "*batch"]:
    """The term of order 1/N that Laplace's ln p(Y) lacks; arguments of `corrections`.

    It needs all third derivatives, n Hessians' worth of work each way for n unknowns,
    and is kept apart for that.
    """
    problem = _posed(
        solution, xi, Y, width, temperature, heads, variances, form, memory_limit
    )
    n = solution.point.shape[-1]
    if 16 * n**3 > memory_limit:
        raise ValueError(
            f"evidence_correction needs {16 * n**3 / 2**30:.3g} GiB for the third "
            f"derivatives in {n} unknowns, more than memory_limit = "
            f"{memory_limit / 2**30:.3g} GiB."
        )
    _require_stationary(solution, problem, tuple(heads))
    return _next_order(problem, solution.point, tuple(heads))


def _posed(
    solution, xi, Y, width, temperature, heads, variances, form, memory_limit
) -> Problem:
    xi, Y = check_data(xi, Y, heads)
    if not solution.converged:
        raise ValueError(
            "corrections need a saddle point, and the solution is not one: "
            f"{solution.reason}."
        )
    lanes = solution.point.shape[:-1]
    several = isinstance(width, (list, tuple, np.ndarray, jax.Array)) and lanes
    given = list(width) if several else [width]
    priors = [sizes_of.prior(w, heads, variances) for w in given]
    outputs = 1 if Y.ndim == 1 else Y.shape[1]
    sizes = sizes_of.sizes(heads, outputs)
    n = sum(d * (d + 1) // 2 for d in sizes)
    temperature = jnp.asarray(temperature, float)
    if (
        solution.point.shape[-1] != n
        or len(given) not in (1, *lanes)
        or temperature.shape not in ((), lanes)
    ):
        raise ValueError(
            "solution must be that of these data, heads, widths and temperatures; "
            f"its unknowns have shape {solution.point.shape}."
        )
    for p in priors:
        if sizes_of.outside_support(p.widths, sizes):
            raise ValueError(
                f"width must be at least {sizes}, the sizes of U_1 ... U_a, for the "
                f"law to have a density; got {p.widths}."
            )
    operator = path_kernels(
        xi, variance=float(priors[0].variances[0]), outputs=outputs, form=form,
        steps=STEPS, memory_limit=memory_limit,
    )  # fmt: skip
    widths = jnp.stack([p.widths for p in priors])
    return Problem(
        operator,
        jnp.broadcast_to(Y.ravel(), (*lanes, Y.size)),
        jnp.broadcast_to(temperature, lanes),
        jnp.broadcast_to(widths if lanes else widths[0], (*lanes, len(sizes))),
        jnp.asarray(priors[0].variances),
    )


def _require_stationary(solution: Solution, problem: Problem, heads) -> None:
    """Refuse a solution of another problem: its action has a gradient there.

    What is stored with the solution names the difference but does not decide: kernels
    of one problem may differ by rounding, and labels -Y have the saddle point of Y.
    """
    norm = _gradient_norm(problem, solution.point, heads)
    solved = jnp.maximum(solution.gradient_norm, SOLVED)
    allowed = 2 * (solved + STATIONARY / problem.widths.max(axis=-1))
    if (norm <= allowed).all():
        return
    given = {
        "labels": problem.y,
        "temperature": problem.temperature,
        "widths": problem.widths,
        "variances": jnp.broadcast_to(problem.variances, solution.variances.shape),
    }
    same = lambda a, b: a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=0)
    other = [n for n, a in given.items() if not same(getattr(solution, n), a)]
    raise ValueError(
        "solution must be a saddle point of the problem given beside it, and was "
        f"solved with other {' and '.join(other) or 'inputs xi'}: the gradient of the "
        f"action is {float(norm.max()):.3g} there, "
        f"{float(solution.gradient_norm.max()):.3g} where it was solved; give it what "
        "`solve` was given."
    )


def _over_lanes(one):
    """`one(problem, point, heads)` over the lanes of a solution, one after another."""

    @eqx.filter_jit
    def every(problem: Problem, point, heads):
        if point.ndim == 1:
            return one(problem, point, heads)

        def lane(varying):
            y, temperature, widths, point = varying
            here = problem._replace(y=y, temperature=temperature, widths=widths)
            return one(here, point, heads)

        varying = (problem.y, problem.temperature, problem.widths, point)
        return jax.lax.map(lane, varying)

    return every


@_over_lanes
def _gradient_norm(problem: Problem, point, heads):
    return jnp.linalg.norm(slope_at(problem, point, heads)[1])


@_over_lanes
def _corrected(problem: Problem, point, heads):
    sizes = problem.sizes(heads)
    value, hessian = _exponent(problem, point, heads)
    root = inverse_cholesky(hessian).T
    covariance = root @ root.T
    # d ln det H = Tr[H^-1 dH] with H^-1 held fixed: one reverse pass.
    slope = jax.grad(lambda x: (covariance * _exponent(problem, x, heads)[1]).sum())
    delta = -covariance @ (_bend(sizes) + slope(point) / 2)

    def chain(x):
        U, U_a = order_parameters_of(factors_at(x, sizes), heads)
        return (*U, U_a)

    here, shift, modes = _moments(chain, point, delta, root)
    *U, U_a = [a + b for a, b in zip(here, shift)]
    *U_std, U_a_std = [_spread(m) for m in modes]
    half_log_det = jnp.log(jnp.abs(jnp.diagonal(root))).sum()
    log_evidence = (
        half_log_det - value - _bend(sizes) @ point - problem.y.size * LOG_2PI / 2
    ) - _laplace_without_labels(problem, sizes)
    return (
        tuple(U), U_a, tuple(U_std), U_a_std, log_evidence, shift[0], modes[0],
    )  # fmt: skip


@_over_lanes
def _next_order(problem: Problem, point, heads):
    sizes = problem.sizes(heads)
    hessian_at = lambda x: _exponent(problem, x, heads)[1]
    root = inverse_cholesky(hessian_at(point)).T
    white = lambda x: root.T @ hessian_at(x) @ root

    def along(v):
        first = lambda x: jax.jvp(white, (x,), (v,))[1]
        third, fourth = jax.jvp(first, (point,), (v,))
        return third, jnp.trace(fourth)

    third, fourth = jax.lax.map(along, root.T)
    traced, bend = jnp.trace(third, axis1=1, axis2=2), root.T @ _bend(sizes)
    term = -fourth.sum() / 8 + traced @ traced / 8 + (third**2).sum() / 12
    term += bend @ bend / 2 + bend @ traced / 2
    without_labels = [
        (1 / 6 + i / 2 + i**2 / 4).sum() / N
        for i, N in zip(map(np.arange, sizes), problem.widths)
    ]
    return term - jnp.stack(without_labels).sum()


def _exponent(problem: Problem, x, heads):
    """Phi and its Hessian."""
    value, _, hessian = derivatives(problem, x, heads)
    half = problem.widths.max() / 2
    return half * value, half * hessian


def _bend(sizes) -> Float[np.ndarray, " n"]:
    """The constant gradient of phi."""
    return np.concatenate([np.diag(np.arange(d))[np.tril_indices(d)] for d in sizes])


def _laplace_without_labels(problem: Problem, sizes) -> Float[Array, ""]:
    """Laplace's logarithm of the integral over the prior alone, at C_l = sigma_l."""
    total = jnp.asarray(0.0)
    for d, N, s2 in zip(sizes, problem.widths, problem.variances[1:]):
        below, log_s2 = d * (d - 1) / 2, jnp.log(s2)
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
    here, moved = jax.jvp(f, (point,), (shift,))
    moved = [a + b.sum(axis=0) / 2 for a, b in zip(moved, curved)]
    return here, moved, modes


def _spread(modes):
    return jnp.sqrt((modes**2).sum(axis=0))


@jax.jit
def _predict(test, train, y, U, shift, modes, temperature):
    """Mean and variance of f: those of the GP, averaged over U_1."""

    own = self_path_path(test)

    def given(U):
        half = inverse_cholesky(
            cross_kernel(train, train, U) + temperature * jnp.eye(y.size)
        )
        k = cross_kernel(test, train, U)
        return regression(k, own_variances(own, U), half, y)

    columns = jnp.moveaxis(modes, 0, -1)
    (mean, variance), moved, modes = _moments(given, U - shift, shift, columns)
    return mean + moved[0], variance + moved[1] + (modes[0] ** 2).sum(axis=0)
