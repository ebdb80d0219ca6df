r"""Saddle point of the action (docs/theory/bpkr.md, section 3).

The order parameters U_1 ... U_L, U_a minimise the action.  The unknowns are the lower
factors C_l of `action`, with the logarithm of their diagonal: a one-to-one chart of
all positive definite U_l in which the entropies separate, so no trial step leaves the
cone.  `gradient_norm` is the norm of the gradient of S in this chart, that is with
respect to relative changes of the U_l, and the Hessian's signature is that of S in any
chart.

    C_l               (d_l, d_l)   lower factors                          `factors`
    chart             (n,)         their entries, log diagonal            `point`

Points of a batch are solved one after the other by one compiled function; side by
side they are no faster on a processor, and the slowest holds up all.  Where a Hessian
costs many gradients, a descent by gradients comes first.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from statmech_attn.bpkr import prior as sizes_of
from statmech_attn.bpkr.action import (
    chain,
    energy,
    order_parameters_of,
    resolvent,
)
from statmech_attn.bpkr.checks import check_data, check_temperature
from statmech_attn.bpkr.descent import descend
from statmech_attn.bpkr.kernels import (
    choose_form,
    MEMORY_LIMIT,
    operations,
    Operator,
    path_kernels,
)
from statmech_attn.bpkr.linear_algebra import singular
from statmech_attn.bpkr.newton import (
    CONVERGED,
    minimise,
    NewtonSolver,
    NewtonState,
    RESULTS,
    signature,
    UNDEFINED,
)


LARGE = 10**10  # multiplications of a Newton step from which a descent may precede it
GRADIENTS = 10  # and the number of gradients that it must cost


class Problem(NamedTuple):
    """Physical parameters of one posterior."""

    operator: Operator
    y: Float[Array, "*batch n"]
    temperature: Float[Array, "*batch"]
    widths: Float[Array, "*batch L+1"]
    variances: Float[Array, " L+2"]

    def sizes(self, heads: Sequence[int]) -> tuple[int, ...]:
        """Sizes d_1 ... d_L, K of the factors of one point."""
        return sizes_of.sizes(heads, self.y.size // self.operator.n_examples)


class Solution(eqx.Module):
    """Order parameters at the saddle point, and how they were reached.

    `batch` is absent, or the points of `solve_many` and `sweep`.  `energy` is E / N
    and `entropy` the sum of s_l, with N the largest width: `action` is their sum.
    Where the result is not "converged" all five are NaN; `gradient_norm`,
    `signature` and `point` then tell where the iteration ended, and the solution may
    be given as `start` to go on.  `iterations` counts Newton steps.  The last four are
    the problem's own, its labels with the outputs of an example together.
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
    labels: Float[Array, "*batch PK"]
    temperature: Float[Array, "*batch"]
    widths: Float[Array, "*batch L+1"]
    variances: Float[Array, "*batch L+2"]

    @property
    def converged(self) -> bool:
        """All points converged."""
        return bool(np.all(np.asarray(self.result) == 0))

    @property
    def reason(self) -> list[str] | str:
        """The result in words; a list, point after point, if there are several."""
        codes = np.asarray(self.result)
        words = [RESULTS[c] for c in codes.ravel()]
        return words[0] if codes.ndim == 0 else words

    @property
    def outside_support(self) -> Bool[np.ndarray, "*batch"]:
        """Whether a width is below the size of its U.

        The exact law of such a width has singular U alone (`bpkr.wishart`), and the
        saddle point, which is of full rank, lies outside its support.
        """
        outputs = 1 if self.U_a.ndim == self.result.ndim else self.U_a.shape[-1]
        sizes = [*(U.shape[-1] for U in self.U), outputs]
        return sizes_of.outside_support(self.widths, sizes)


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
    settings = [Setting(0, width, temperature, start)]
    found = _solve(
        xi, [Y], settings, heads, variances, solver, form, memory_limit, warm=False
    )
    return jax.tree.map(lambda a: a[0], found)


def solve_many(
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"] | Float[Array, "batch P *K"],
    *,
    width,
    temperature,
    heads: Sequence[int],
    many_labels: bool = False,
    variances=None,
    start: Solution | None = None,
    solver: NewtonSolver | None = None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
    warm: bool = False,
) -> Solution:
    """The same for a list of widths, temperatures, label vectors or all, in one call.

    Args:
        Y: labels as in `solve`; with `many_labels` a stack of them, points first.
        width: a number or a list; its entries as in `solve`.
        temperature: a number or a list; lists and stacks are of one length.
        start: one solution, or one per point.
        warm: start each point from the solution before it.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
        >>> many = dict(width=[10, 20], temperature=0.1, heads=(1,))
        >>> solve_many(xi, Y, **many).U_a.shape
        (2,)
    """
    widths, temperatures = listed(width), listed(temperature)
    labels = stack_of_labels(Y, many_labels)
    lengths = {len(widths), len(temperatures), len(labels)}
    points = max(lengths)
    if lengths - {1, points} or 0 in lengths:
        raise ValueError(
            "width, temperature and label vectors must be single or of one length; "
            f"got {len(widths)}, {len(temperatures)} and {len(labels)}."
        )
    starts = starts_of(start, points)
    at = lambda values, i: values[i % len(values)]
    settings = [
        Setting(i % len(labels), at(widths, i), at(temperatures, i), starts[i])
        for i in range(points)
    ]
    return _solve(
        xi, labels, settings, heads, variances, solver, form, memory_limit, warm=warm
    )


def sweep(
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"] | Float[Array, "batch P *K"],
    *,
    widths: Sequence,
    temperatures: Sequence[float],
    heads: Sequence[int],
    many_labels: bool = False,
    variances=None,
    solver: NewtonSolver | None = None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Solution:
    """Solutions on a grid, each found from a neighbour's.

    The grid is followed like a snake, from the last width and temperature backwards:
    with both in rising order it begins near the GP limit.

    Args:
        widths, temperatures: any order; entries as in `solve`.

    Returns:
        A solution whose `batch` axes are widths and temperatures, after the label
        vectors if there are many.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
        >>> grid = dict(widths=[10, 20], temperatures=[0.1, 0.2, 0.3])
        >>> sweep(xi, Y, heads=(1,), **grid).U_a.shape
        (2, 3)
    """
    widths, temperatures = listed(widths), listed(temperatures)
    labels = stack_of_labels(Y, many_labels)
    shape = (len(labels), len(widths), len(temperatures))
    if 0 in shape:
        raise ValueError(
            "sweep: need at least one label vector, width and temperature; "
            f"got {shape[0]}, {shape[1]} and {shape[2]}."
        )
    grid = np.arange(math.prod(shape)).reshape(shape)[:, ::-1, ::-1]
    grid[:, 1::2] = grid[:, 1::2, ::-1].copy()
    order = grid.ravel()
    settings = []
    for number in order:
        i, j, k = np.unravel_index(number, shape)
        settings.append(Setting(int(i), widths[j], temperatures[k], None))
    found = _solve(
        xi, labels, settings, heads, variances, solver, form, memory_limit, warm=True
    )
    shape = shape if many_labels else shape[1:]
    place = np.argsort(order)
    return jax.tree.map(lambda a: a[place].reshape(shape + a.shape[1:]), found)


class Setting(NamedTuple):
    """One point of a batch: which labels, at what width and temperature, from where."""

    labels: int
    width: Any
    temperature: float
    start: Solution | None


def listed(values) -> list:
    """A list of points; a number is one point."""
    many = isinstance(values, (list, tuple, np.ndarray, jax.Array)) and np.ndim(values)
    return list(values) if many else [values]


def stack_of_labels(Y, many_labels: bool) -> list:
    """Label vectors, or label matrices, one per point."""
    if not many_labels:
        return [Y]
    if np.ndim(Y) not in (2, 3):
        raise ValueError(
            "Y must have shape (points, P) or (points, P, K) with many_labels = True; "
            f"got {np.shape(Y)}."
        )
    return list(jnp.asarray(Y, float))


def starts_of(start: Solution | None, points: int) -> list:
    """One start per point."""
    if start is None or start.point.ndim == 1:
        return [start] * points
    if start.point.shape[0] != points:
        raise ValueError(
            f"start: need one solution or {points}, one per point; "
            f"got {start.point.shape[0]}."
        )
    return [eqx.tree_at(lambda s: s.point, start, point) for point in start.point]


def _solve(
    xi, labels, settings, heads, variances, solver, form, memory_limit, *, warm
) -> Solution:
    checked = [check_data(xi, Y, heads) for Y in labels]
    xi, outputs = checked[0][0], checked[0][1].shape[1:]
    heads = tuple(int(h) for h in heads)
    priors = [sizes_of.prior(s.width, heads, variances) for s in settings]
    for setting in settings:
        check_temperature(setting.temperature)
    variances = jnp.asarray(priors[0].variances)
    K = math.prod(outputs)
    n_examples, n_inputs, n_paths = xi.shape
    shape = (n_examples, n_inputs, n_paths, K)
    form = choose_form(*shape, form=form, memory_limit=memory_limit)
    operator = path_kernels(
        xi, variance=float(variances[0]), outputs=K, form=form,
        memory_limit=memory_limit,
    )  # fmt: skip
    problem = Problem(
        operator,
        jnp.stack([checked[s.labels][1].ravel() for s in settings]),
        jnp.asarray([float(s.temperature) for s in settings]),
        jnp.stack([p.widths for p in priors]),
        variances,
    )
    points = jnp.stack([starting_point(s.start, heads, variances, K) for s in settings])
    work = operations(*shape)[form]
    solver = solver or NewtonSolver()
    found = _one_after_the_other(
        problem, points, heads=heads, solver=solver, warm=warm,
        descent=work.newton > max(LARGE, GRADIENTS * work.gradient),
    )  # fmt: skip
    return found if outputs else eqx.tree_at(lambda s: s.U_a, found, found.U_a[:, 0, 0])


def starting_point(start, heads, variances, outputs) -> Float[Array, "*batch n"]:
    """The chart of a given solution, or of the GP limit, where C_l = sigma_l 1."""
    if start is None:
        logs = np.log(np.asarray(variances)[1:]) / 2
        blocks = zip(logs, sizes_of.sizes(heads, outputs))
        return jnp.asarray(
            np.concatenate([(log * np.eye(d))[np.tril_indices(d)] for log, d in blocks])
        )
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


def entries_at(point: Float[Array, " n"], sizes: Sequence[int]) -> Float[Array, " n"]:
    """Entries of the factors, one for each unknown."""
    diagonal = _diagonal(sizes)
    # Nothing else is exponentiated: it may be large, and the gradient NaN.
    return jnp.where(diagonal, jnp.exp(jnp.where(diagonal, point, 0.0)), point)


def factors_at(point: Float[Array, " n"], sizes: Sequence[int]) -> tuple[Array, ...]:
    """Factors of given unknowns."""
    entries = jnp.append(entries_at(point, sizes), 0.0)
    found, used = [], 0
    for d in sizes:
        place = np.full((d, d), point.size)
        lower = np.tril_indices(d)
        place[lower] = used + np.arange(lower[0].size)
        found.append(entries[place])
        used += lower[0].size
    return tuple(found)


def entropy_at(problem: Problem, point, sizes: Sequence[int]) -> Float[Array, ""]:
    r"""$\sum_l s_l$ with $s_l = \frac{N_l}{N} [\|C_l\|^2 / \sigma_l^2
    - 2 \sum_i \ln C_{l,ii}]$: each unknown has a term of its own."""
    layer = np.repeat(np.arange(len(sizes)), [d * (d + 1) // 2 for d in sizes])
    weight = (problem.widths / problem.widths.max())[layer]
    square = entries_at(point, sizes) ** 2 / problem.variances[1:][layer]
    return (weight * (square - 2 * _diagonal(sizes) * point)).sum()


def _diagonal(sizes: Sequence[int]) -> np.ndarray:
    """Which unknowns are logarithms of diagonal entries."""
    return np.concatenate([np.equal(*np.tril_indices(d)) for d in sizes])


def action_at(problem: Problem, point, heads) -> Float[Array, ""]:
    """S in the chart; differentiable by JAX."""
    sizes = problem.sizes(heads)
    F = chain(factors_at(point, sizes), heads)[0]
    K = problem.operator.kernel(F @ F.T)
    E = energy(K, problem.temperature, problem.y)
    return entropy_at(problem, point, sizes) + E / problem.widths.max()


def derivatives(problem: Problem, point, heads):
    """Value, gradient and Hessian of S in the chart.

    The energy's second derivative in U is `curvature`; JAX differentiates the chart.
    """
    sizes = problem.sizes(heads)
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
        return entropy_at(problem, point, sizes) + (slope * (U_at(point) - U)).sum()

    value, gradient = jax.value_and_grad(frozen)(point)
    J = jax.jacfwd(U_at)(point)[np.tril_indices(U.shape[0])]
    curvature = problem.operator.curvature(A, alpha)
    hessian = jax.hessian(frozen)(point) + J.T @ curvature @ J / largest
    return value + E / largest, gradient, (hessian + hessian.T) / 2


def _describe(problem: Problem, state: NewtonState, code, heads) -> Solution:
    sizes = problem.sizes(heads)
    entropy = entropy_at(problem, state.point, sizes)
    U, U_a = order_parameters_of(factors_at(state.point, sizes), heads)
    lost = jax.lax.cond(
        problem.temperature == 0,
        lambda: singular(problem.operator.kernel(U[0])),
        lambda: jnp.asarray(False),
    )
    code = jnp.where(lost, UNDEFINED, code)
    numbers = U, U_a, state.value, state.value - entropy, entropy
    reached = lambda number: jnp.where(code == CONVERGED, number, jnp.nan)
    U, U_a, action, energy, entropy = jax.tree.map(reached, numbers)
    return Solution(
        U=U,
        U_a=U_a,
        action=action,
        energy=energy,
        entropy=entropy,
        gradient_norm=jnp.linalg.norm(state.gradient),
        iterations=state.iterations,
        result=code,
        signature=signature(state.values),
        point=state.point,
        labels=problem.y,
        temperature=problem.temperature,
        widths=problem.widths,
        variances=problem.variances,
    )


def _one(problem: Problem, point, heads, solver) -> Solution:
    of_point = partial(derivatives, problem, heads=heads)
    state, code = minimise(of_point, point, solver)
    return _describe(problem, state, code, heads)


_one_jit = eqx.filter_jit(_one)
slope_at = eqx.filter_jit(jax.value_and_grad(action_at, argnums=1))


def _one_after_the_other(
    problem: Problem, points, *, heads, solver, warm, descent
) -> Solution:
    found = []
    for i, point in enumerate(points):
        here = problem._replace(
            y=problem.y[i], temperature=problem.temperature[i], widths=problem.widths[i]
        )
        if warm and found and found[-1].result == CONVERGED:
            point = found[-1].point
        if descent:
            slope = lambda point: slope_at(here, point, heads)
            point = descend(slope, point, max_iterations=solver.max_iterations)
        found.append(_one_jit(here, point, heads, solver))
    return jax.tree.map(lambda *a: jnp.stack(a), *found)
