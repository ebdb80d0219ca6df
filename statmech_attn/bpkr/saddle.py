r"""Saddle point of the action (docs/theory/bpkr.md, section 3).

The order parameters U_1 ... U_L, U_a minimise the action.  The unknowns are the lower
factors C_l of `action`, with the logarithm of their diagonal: a one-to-one chart of
all positive definite U_l in which the entropies separate, so no trial step leaves the
cone.  `gradient_norm` is the norm of the gradient of S in this chart, that is with
respect to relative changes of the U_l, and the Hessian's signature is that of S in any
chart.

    C_l               (d_l, d_l)   lower factors                          `factors`
    chart             (n,)         their entries, log diagonal            `point`
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn.bpkr import prior as sizes_of
from statmech_attn.bpkr.action import (
    chain,
    energy,
    entropies_of_factors,
    factors_of,
    gaussian_process_limit,
    order_parameters_of,
    resolvent,
)
from statmech_attn.bpkr.kernels import MEMORY_LIMIT, Operator, path_kernels
from statmech_attn.bpkr.newton import (
    minimise,
    NewtonSolver,
    NewtonState,
    RESULTS,
    signature,
)
from statmech_attn.precision import require_double


class Problem(NamedTuple):
    """Physical parameters of one posterior."""

    operator: Operator
    y: Float[Array, "*batch n"]
    temperature: Float[Array, "*batch"]
    widths: Float[Array, "*batch L+1"]
    variances: Float[Array, " L+2"]


class Solution(eqx.Module):
    """Order parameters at the saddle point, and how they were reached.

    `batch` is absent, or the points of `solve_many` and `sweep`.  `energy` is E / N
    and `entropy` the sum of s_l, with N the largest width: `action` is their sum.
    """

    U: tuple[Float[Array, "*batch d d"], ...]
    U_a: Float[Array, "*batch"] | Float[Array, "*batch K K"]
    action: Float[Array, "*batch"]
    energy: Float[Array, "*batch"]
    entropy: Float[Array, "*batch"]
    gradient_norm: Float[Array, "*batch"]
    iterations: Int[Array, "*batch"]
    result: Int[Array, "*batch"]
    signature: Int[Array, "*batch 3"]
    point: Float[Array, "*batch n"]

    @property
    def converged(self) -> bool:
        """All points converged."""
        return bool(np.all(np.asarray(self.result) == 0))

    @property
    def reason(self) -> list[str] | str:
        """The result in words."""
        codes = np.asarray(self.result)
        return RESULTS[int(codes)] if codes.ndim == 0 else [RESULTS[c] for c in codes]


def solve(
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"],
    *,
    width,
    temperature: float,
    heads: Sequence[int],
    variances=None,
    start: Solution | None = None,
    solver: NewtonSolver | None = None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Solution:
    """Order parameters of the Bayesian posterior at large width.

    Args:
        xi: attentioned inputs, paths ordered h_1 slowest.
        Y: labels (P,), or (P, K) for K outputs; then U has the index (path, output).
        width: one number, or (N_1, ..., N_L, N_a).
        temperature: variance of the labels; zero only where K(U) is invertible.
        heads: heads per layer (H_1, ..., H_L).
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2); one when omitted.
        start: a solution of a nearby problem; the GP limit when omitted.
        form: "kernels" or "factors" to choose the form of the kernel by hand.

    Raises:
        ValueError: sizes that disagree, values out of range, kernels too large.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
        >>> found = solve(xi, Y, width=10, temperature=0.1, heads=(1,))
        >>> found.reason
        'converged'
    """
    return _solve(
        xi, Y, [width], [temperature], heads, variances, start, solver, form,
        memory_limit, lanes=False,
    )  # fmt: skip


def solve_many(
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"],
    *,
    width,
    temperature,
    heads: Sequence[int],
    variances=None,
    start: Solution | None = None,
    solver: NewtonSolver | None = None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
    warm: bool = False,
) -> Solution:
    """The same for a list of widths, temperatures or both, in one call.

    Args:
        width: a number or a list; its entries as in `solve`.
        temperature: a number or a list as long as the widths.
        warm: solve one after the other, each from the solution before it, instead of
            side by side.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
        >>> many = dict(width=[10, 20], temperature=0.1, heads=(1,))
        >>> solve_many(xi, Y, **many).U_a.shape
        (2,)
    """
    listed = isinstance(width, (list, tuple, np.ndarray, jax.Array))
    widths = list(width) if listed else [width]
    temperatures = list(np.atleast_1d(np.asarray(temperature, float)))
    points = max(len(widths), len(temperatures))
    if {len(widths), len(temperatures)} - {1, points}:
        raise ValueError(
            "width and temperature must be single or lists of one length; "
            f"got {len(widths)} and {len(temperatures)}."
        )
    widths = widths * (points // len(widths))
    temperatures = temperatures * (points // len(temperatures))
    return _solve(
        xi, Y, widths, temperatures, heads, variances, start, solver, form,
        memory_limit, lanes=True, warm=warm,
    )  # fmt: skip


def _solve(
    xi, Y, width, temperature, heads, variances, start, solver, form, memory_limit,
    *, lanes, warm=False,
) -> Solution:  # fmt: skip
    heads = tuple(int(h) for h in heads)
    xi, Y = check_data(xi, Y, heads)
    priors = [sizes_of.prior(w, heads, variances) for w in width]
    for T in temperature:
        if not (np.isfinite(T) and T >= 0):
            raise ValueError(f"temperature must be finite and >= 0; got {T}.")
    variances = jnp.asarray(priors[0].variances)
    outputs = 1 if Y.ndim == 1 else Y.shape[1]
    operator = path_kernels(
        xi, variance=float(variances[0]), outputs=outputs, form=form,
        memory_limit=memory_limit,
    )  # fmt: skip
    n = len(priors)
    problem = Problem(
        operator,
        jnp.broadcast_to(Y.ravel(), (n, Y.size)),
        jnp.asarray(temperature, float),
        jnp.stack([p.widths for p in priors]),
        variances,
    )
    first = starting_point(start, heads, variances, outputs)
    if first.ndim == 2 and first.shape[0] != n:
        raise ValueError(
            f"start: need one solution or {n}, one per point; got {first.shape[0]}."
        )
    point = jnp.broadcast_to(first, (n, first.shape[-1]))
    run = _one_after_the_other if warm else _side_by_side
    found = run(problem, point, heads=heads, solver=solver or NewtonSolver())
    if Y.ndim == 1:
        found = eqx.tree_at(lambda s: s.U_a, found, found.U_a[..., 0, 0])
    return found if lanes else jax.tree.map(lambda a: a[0], found)


def check_data(xi, Y, heads: Sequence[int]):
    """Attentioned inputs and labels as finite float64 arrays that fit the heads."""
    require_double()
    sizes_of.check_heads(heads)
    xi, Y = jnp.asarray(xi, float), jnp.asarray(Y, float)
    n_paths = int(np.prod(heads))
    if xi.ndim != 3 or xi.shape[2] != n_paths:
        raise ValueError(
            f"xi must have shape (P, N_0, {n_paths}), one column per path of "
            f"heads = {tuple(heads)}; got {xi.shape}."
        )
    if Y.ndim not in (1, 2) or Y.shape[0] != xi.shape[0] or not Y.size:
        raise ValueError(
            f"Y must have shape ({xi.shape[0]},) or ({xi.shape[0]}, K), one row per "
            f"example of xi; got {Y.shape}."
        )
    for name, values in (("xi", xi), ("Y", Y)):
        if not bool(jnp.isfinite(values).all()):
            raise ValueError(f"{name} must be finite; it holds NaN or infinity.")
    return xi, Y


def starting_point(start, heads, variances, outputs) -> Float[Array, "*batch n"]:
    """The chart of a given solution, or of the GP limit."""
    if start is None:
        U, U_a = gaussian_process_limit(heads, variances, outputs)
        return chart(factors_of(U, U_a, heads))
    n = sum(d * (d + 1) // 2 for d in sizes_of.sizes(heads, outputs))
    if start.point.shape[-1] != n:
        raise ValueError(
            f"start: a solution for these heads and outputs has {n} unknowns; "
            f"got {start.point.shape[-1]}."
        )
    return start.point


def chart(factors: Sequence[Array]) -> Float[Array, " n"]:
    """Unknowns of given factors."""
    logs = [C + jnp.diag(jnp.log(jnp.diagonal(C)) - jnp.diagonal(C)) for C in factors]
    return jnp.concatenate([C[np.tril_indices(C.shape[0])] for C in logs])


def factors_at(point: Float[Array, " n"], sizes: Sequence[int]) -> tuple[Array, ...]:
    """Factors of given unknowns."""
    found, used = [], 0
    for d in sizes:
        n = d * (d + 1) // 2
        C = jnp.zeros((d, d)).at[np.tril_indices(d)].set(point[used : used + n])
        found.append(jnp.tril(C, -1) + jnp.diag(jnp.exp(jnp.diagonal(C))))
        used += n
    return tuple(found)


def action_at(problem: Problem, point, heads) -> Float[Array, ""]:
    """S in the chart; differentiable by JAX."""
    sizes = sizes_of.sizes(heads, problem.y.size // problem.operator.n_examples)
    factors = factors_at(point, sizes)
    entropy = entropies_of_factors(factors, problem.widths, problem.variances).sum()
    F = chain(factors, heads)[0]
    K = problem.operator.kernel(F @ F.T)
    return entropy + energy(K, problem.temperature, problem.y) / problem.widths.max()


def derivatives(problem: Problem, point, heads):
    """Value, gradient and Hessian of S in the chart.

    The energy's second derivative in U is `curvature`; JAX differentiates the chart.
    """
    sizes = sizes_of.sizes(heads, problem.y.size // problem.operator.n_examples)
    largest = problem.widths.max()

    def U_at(point):
        F = chain(factors_at(point, sizes), heads)[0]
        return F @ F.T

    U = U_at(point)
    K, pull = jax.vjp(problem.operator.kernel, U)
    E = energy(K, problem.temperature, problem.y)
    A, alpha = resolvent(K, problem.temperature, problem.y)
    (slope,) = pull(A / largest)

    def frozen(point):
        factors = factors_at(point, sizes)
        entropy = entropies_of_factors(factors, problem.widths, problem.variances)
        return entropy.sum() + (slope * (U_at(point) - U)).sum()

    value, gradient = jax.value_and_grad(frozen)(point)
    J = jax.jacfwd(U_at)(point)[np.tril_indices(U.shape[0])]
    curvature = problem.operator.curvature(A, alpha)
    hessian = jax.hessian(frozen)(point) + J.T @ curvature @ J / largest
    return value + E / largest, gradient, (hessian + hessian.T) / 2


def _describe(problem: Problem, state: NewtonState, code, heads) -> Solution:
    sizes = sizes_of.sizes(heads, problem.y.size // problem.operator.n_examples)
    factors = factors_at(state.point, sizes)
    entropy = entropies_of_factors(factors, problem.widths, problem.variances).sum()
    U, U_a = order_parameters_of(factors, heads)
    return Solution(
        U=U,
        U_a=U_a,
        action=state.value,
        energy=state.value - entropy,
        entropy=entropy,
        gradient_norm=jnp.linalg.norm(state.gradient),
        iterations=state.iterations,
        result=code,
        signature=signature(state.hessian),
        point=state.point,
    )


def _one(problem: Problem, point, heads, solver) -> Solution:
    of_point = partial(derivatives, problem, heads=heads)
    state, code = minimise(of_point, point, solver)
    return _describe(problem, state, code, heads)


LANES = Problem(None, 0, 0, 0, None)  # pyright: ignore


@eqx.filter_jit
def _side_by_side(problem: Problem, points, *, heads, solver) -> Solution:
    one = lambda problem, point: _one(problem, point, heads, solver)
    return jax.vmap(one, in_axes=(LANES, 0))(problem, points)


@eqx.filter_jit
def _one_after_the_other(problem: Problem, points, *, heads, solver) -> Solution:
    def follow(point, lane):
        y, temperature, widths = lane
        here = problem._replace(y=y, temperature=temperature, widths=widths)
        found = _one(here, point, heads, solver)
        return found.point, found

    lanes = (problem.y, problem.temperature, problem.widths)
    return jax.lax.scan(follow, points[0], lanes)[1]
