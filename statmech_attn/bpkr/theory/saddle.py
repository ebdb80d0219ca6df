r"""Saddle point of the action (docs/theory/bpkr.md, section 3).

The order parameters U_1 ... U_L, U_a minimise the action.  The unknowns are the lower
factors C_l of `action`, with the logarithm of their diagonal: a one-to-one chart of
all positive definite U_l in which the entropies separate, so no trial step leaves the
cone.  `gradient_norm` is the norm of the gradient of S in this chart, that is with
respect to relative changes of the U_l, and the Hessian's signature is that of S in any
chart.

    C_l               (d_l, d_l)   lower factors; (a_l beta_l) with a skip `factors`
    chart             (n,)         their entries, log diagonal            `point`
    shapes            (L+1, 2)     rows of C_l and columns of a_l         `shapes`

All points of a size are solved by one compiled function, one after the other: side by
side they are no faster on a processor, and the slowest holds up all.  Where a Hessian
costs many gradients, a descent by gradients comes first; where none fits in memory, the
problem is solved without it (`streamed_kernels`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn.bpkr.posed import streamed_kernels
from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.compression import EPSILON
from statmech_attn.bpkr.posed.kernel_forms import fits, FORMS, operations
from statmech_attn.bpkr.posed.linear_algebra import singular
from statmech_attn.bpkr.posed.newton import (
    CONVERGED,
    ITERATIONS,
    minimise,
    NewtonSolver,
    NewtonState,
    RESULTS,
    signature,
    UNDEFINED,
    UNRESOLVED,
)
from statmech_attn.bpkr.posed.prior import lower
from statmech_attn.bpkr.posed.problem import Posed
from statmech_attn.bpkr.posed.rounding import (
    KNOWN,
    lowest_of,
    ROUNDING,
    rounding_of_kernels,
)
from statmech_attn.bpkr.theory.action import (
    chain,
    energy,
    gaussian_process_limit,
    order_parameters_of,
    resolvent,
)
from statmech_attn.bpkr.theory.descent import descend
from statmech_attn.bpkr.theory.solution import Solution


LARGE = 10**10  # multiplications of a Newton step from which a descent may precede it
GRADIENTS = 10  # and the number of gradients that it must cost
TOLERANCE = 1e-9  # change of the gradient that rounding of the computation may make
UNKNOWN = -1  # numbers of eigenvalues of a Hessian that was not computed

Shapes = Sequence[tuple[int, int]]


def solve(
    problem: Posed,
    *,
    start: Solution | None = None,
    solver: NewtonSolver | None = None,
) -> Solution:
    """Order parameters at the saddle point, the posterior at large widths.

    Args:
        start: a solution of a nearby problem; the GP limit when omitted.
        solver: numerical choices of Newton's method.

    Raises:
        ValueError: a start with other heads or outputs, or kernels too large.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> from statmech_attn.bpkr import Problem
        >>> problem = Problem(
        ...     jnp.ones((1, 1, 1)), jnp.ones(1), heads=(1,), width=10,
        ...     temperature=0.1)
        >>> first = problem.solve()
        >>> second = problem.at(width=20).solve(start=first)
        >>> first.reason, second.reason
        ('converged', 'converged')
    """
    limit = starting_point(problem)
    if start is not None and start.point.shape != limit.shape:
        raise ValueError(
            f"start: a solution for these heads and outputs has {limit.size} unknowns; "
            f"got {start.point.size}."
        )
    return solve_from(problem, limit if start is None else start.point, solver)


def solve_from(
    problem: Posed, point: Float[Array, " n"], solver: NewtonSolver | None
) -> Solution:
    """Find the saddle point from any point of the chart."""
    solver = solver or NewtonSolver()
    if without_hessian(problem):
        return _solve_streamed(problem, point, solver)
    fitted = problem.fitted().rows
    if descent_precedes(fitted):
        slope = partial(slope_at, fitted)
        point = descend(slope, point, max_iterations=solver.max_iterations)
    U, U_a, action, energy, *diagnostics = _newton(fitted, point, solver)
    solution = Solution(
        problem,
        U,
        U_a[0, 0] if problem.Y.ndim == 1 else U_a,
        *_with_outside(problem, action, energy),
        *diagnostics,
    )
    if isinstance(problem.xi, Kernels):
        F = _factor(problem, solution.point)
        if rounding_of_kernels(problem, F @ F.T) > KNOWN:
            return _unresolved(solution)
    return solution


def _unresolved(solution: Solution) -> Solution:
    """A saddle point whose numbers are decided by rounding of the kernels."""
    numbers = lambda s: (s.U, s.U_a, s.action, s.energy, s.entropy)
    unknown = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), numbers(solution))
    parts = lambda s: (*numbers(s), s.result)
    return eqx.tree_at(parts, solution, (*unknown, jnp.asarray(UNRESOLVED)))


def lowest_temperature(problem: Posed) -> float | None:
    r"""A temperature with a saddle point, at half of which a refused problem has none.

    Rounding $\delta$ of the kernel changes the gradient by $\delta |Y|^2 / (N T^2)$ at
    most where labels lie outside what the kernel resolves; from the T at which that is
    as large as allowed, T goes down or up.
    """
    from_kernels, rows = isinstance(problem.xi, Kernels), problem.rows
    rounding, allowed = (ROUNDING, KNOWN) if from_kernels else (EPSILON, TOLERANCE)
    U, _ = gaussian_process_limit(
        problem.heads, problem.variances, problem.outputs, skip=problem.skip
    )
    largest = float(jnp.diagonal(rows.operator.kernel(U[0])).max())
    squares = float((problem.Y**2).sum()) / float(problem.widths.max())
    T, refused = np.sqrt(rounding * largest * squares / allowed), problem.temperature
    solved = lambda T: solve(problem.at(temperature=T)).converged
    return lowest_of(solved, float(refused), float(T))


def unsolved(solution: Solution) -> str:
    """Why there is no saddle point, with a temperature that has one, which it seeks."""
    code, problem = int(solution.result), solution.problem
    lowest = None if code == ITERATIONS else lowest_temperature(problem)
    return RESULTS[code] + ("" if lowest is None else f"; T = {lowest:.2g} works")


def _with_outside(problem: Posed, *of_rows):
    """S and E / N with the constant of labels outside the rows."""
    if problem.compressed is None:
        return of_rows
    return tuple(x + problem.outside / problem.widths.max() for x in of_rows)


def along_falling_temperatures(
    problem: Posed,
    width: Any,
    temperatures: Iterable[float],
    solutions: dict[float, Solution] | None = None,
    solver: NewtonSolver | None = None,
) -> Iterator[Solution]:
    """Solutions at falling temperatures, each sought from the one before.

    The first temperature is the nearest to the GP limit; a solution that has not
    converged starts none.  New ones are added to `solutions`, by temperature.
    """
    solutions, start = {} if solutions is None else solutions, None
    for T in temperatures:
        if T not in solutions:
            at = problem.at(width=width, temperature=T)
            solutions[T] = solve(at, start=start, solver=solver)
        yield solutions[T]
        start = solutions[T] if solutions[T].converged else None


def sweep(
    problem: Posed,
    *,
    widths: Sequence,
    temperatures: Sequence[float],
    solver: NewtonSolver | None = None,
) -> list[list[Solution]]:
    """Solutions on a grid, each found from that at the next higher temperature."""
    if not len(widths) or not len(temperatures):
        raise ValueError(
            "sweep: need at least one width and one temperature; "
            f"got {len(widths)} and {len(temperatures)}."
        )
    rows = []
    for width in widths:
        solutions: dict[float, Solution] = {}
        falling = sorted(temperatures, reverse=True)
        for _ in along_falling_temperatures(problem, width, falling, solutions, solver):
            pass
        rows.append([solutions[T] for T in temperatures])
    return rows


def descent_precedes(problem: Posed) -> bool:
    """Whether a Newton step costs so much that a descent by gradients comes first."""
    work = operations(*problem.shape)
    (form,) = (f for f, kind in FORMS.items() if isinstance(problem.operator, kind))
    return work[form].newton > max(LARGE, GRADIENTS * work[form].gradient)


def without_hessian(problem: Posed) -> bool:
    """Whether no Newton step fits in memory, but a gradient by features does."""
    shape, limit = problem.rows.shape, problem.memory_limit
    from_kernels = isinstance(problem.xi, Kernels)
    if from_kernels or problem.form == "kernels" or not problem.temperature > 0:
        return False
    newton = fits(*shape, form=problem.form, memory_limit=limit)
    return newton is None and streamed_kernels.memory(*shape) <= limit


def starting_point(problem: Posed) -> Float[Array, " n"]:
    """The chart of the GP limit, where beta_l = sigma_l 1 and a_l = 0."""
    logs = np.log(np.asarray(problem.variances)[1:]) / 2
    return jnp.asarray(_diagonal(problem.shapes) * logs[_layer(problem.shapes)])


def entries_at(point: Float[Array, " n"], shapes: Shapes) -> Float[Array, " n"]:
    """Entries of the factors, one for each unknown."""
    diagonal = _diagonal(shapes)
    # Nothing else is exponentiated: it may be large, and the gradient NaN.
    return jnp.where(diagonal, jnp.exp(jnp.where(diagonal, point, 0.0)), point)


def factors_at(point: Float[Array, " n"], shapes: Shapes) -> tuple[Array, ...]:
    """Factors of given unknowns."""
    entries = jnp.append(entries_at(point, shapes), 0.0)
    factors, used = [], 0
    for rows, beside in shapes:
        place = np.full((rows, rows + beside), point.size)
        occupied = lower(rows, beside)
        place[occupied] = used + np.arange(occupied[0].size)
        factors.append(entries[place])
        used += occupied[0].size
    return tuple(factors)


def entropy_at(problem: Posed, point: Float[Array, " n"]) -> Float[Array, ""]:
    r"""$\sum_l s_l$ with $s_l = \frac{N_l}{N} [\|C_l\|^2 / \sigma_l^2
    - 2 \sum_i \ln \beta_{l,ii}]$: each unknown has a term of its own."""
    shapes = problem.shapes
    layer = _layer(shapes)
    weight = (problem.widths / problem.widths.max())[layer]
    square = entries_at(point, shapes) ** 2 / problem.variances[1:][layer]
    return (weight * (square - 2 * _diagonal(shapes) * point)).sum()


def _layer(shapes: Shapes) -> np.ndarray:
    """The layer of each unknown."""
    return np.repeat(
        np.arange(len(shapes)), [lower(*shape)[0].size for shape in shapes]
    )


def _diagonal(shapes: Shapes) -> np.ndarray:
    """Which unknowns are logarithms of diagonal entries of beta_l."""
    entries = [(lower(*shape), shape[1]) for shape in shapes]
    return np.concatenate([row + beside == column for (row, column), beside in entries])


def action_at(problem: Posed, point: Float[Array, " n"]) -> Float[Array, ""]:
    """S in the chart; differentiable by JAX."""
    F = _first_factor(problem, point)
    K = problem.operator.kernel(F @ F.T)
    E = energy(K, problem.temperature, problem.y)
    return entropy_at(problem, point) + E / problem.widths.max()


def _first_factor(problem: Posed, point: Float[Array, " n"]) -> Array:
    factors = factors_at(point, problem.shapes)
    return chain(factors, problem.heads, problem.skip)[0]


def derivatives(problem: Posed, point: Float[Array, " n"]):
    """Value, gradient and Hessian of S in the chart.

    The energy's second derivative in U is `curvature`; JAX differentiates the chart.
    """
    largest = problem.widths.max()

    def U_at(point):
        F = _first_factor(problem, point)
        return F @ F.T

    U = U_at(point)
    K, pull = jax.vjp(problem.operator.kernel, U)
    E = energy(K, problem.temperature, problem.y)
    A, alpha = resolvent(K, problem.temperature, problem.y)
    (slope,) = pull(A / largest)

    def frozen(point):
        return entropy_at(problem, point) + (slope * (U_at(point) - U)).sum()

    value, gradient = jax.value_and_grad(frozen)(point)
    J = jax.jacfwd(U_at)(point)[np.tril_indices(U.shape[0])]
    curvature = problem.operator.curvature(A, alpha)
    hessian = jax.hessian(frozen)(point) + J.T @ curvature @ J / largest
    return value + E / largest, gradient, (hessian + hessian.T) / 2


@eqx.filter_jit
def _newton(problem: Posed, point: Float[Array, " n"], solver: NewtonSolver):
    """All of a solution behind its problem, U_a as a matrix."""
    state, code = minimise(partial(derivatives, problem), point, solver)
    return _described(problem, state, code)


def _described(problem: Posed, state: NewtonState, code):
    entropy = entropy_at(problem, state.point)
    factors = factors_at(state.point, problem.shapes)
    U, U_a = order_parameters_of(factors, problem.heads, problem.skip)
    lost = jax.lax.cond(
        problem.temperature == 0,
        lambda: singular(problem.operator.kernel(U[0])),
        lambda: jnp.asarray(False),
    )
    code = jnp.where(lost, UNDEFINED, code)
    numbers = U, U_a, state.value, state.value - entropy, entropy
    reached = lambda number: jnp.where(code == CONVERGED, number, jnp.nan)
    return (
        *jax.tree.map(reached, numbers),
        jnp.linalg.norm(state.gradient),
        state.iterations,
        code,
        signature(state.values),
        state.point,
    )


def _solve_streamed(
    problem: Posed, point: Float[Array, " n"], solver: NewtonSolver
) -> Solution:
    """Find the saddle point by gradients alone; no signature of the Hessian."""
    rows = problem.rows
    xi, scale, y = map(np.asarray, (rows.xi, rows.scale, rows.y))
    T, largest = float(problem.temperature), float(problem.widths.max())
    network = eqx.tree_at(lambda p: (p.xi, p.operator), rows, (None, None))
    rounded = xi.astype(np.float32) if xi.size <= streamed_kernels.SINGLE else xi
    inputs = {np.float64: xi, np.float32: rounded}

    def evaluated(point, dtype: type = np.float64):
        F = np.asarray(_factor(network, point))
        given = inputs[dtype], scale, F, T, y
        E, derivatives = streamed_kernels.streamed(*given, dtype=dtype)
        value = float(_entropy(network, point)) + E / largest

        def state():
            slope, *model = derivatives()
            slope = jnp.asarray(slope) / largest
            # Enough for a model, and in a third of the time.
            model = [jnp.asarray(x, jnp.float32) for x in model]
            gradient = np.asarray(_frozen_slope(network, point, slope))
            energy = E / largest
            return streamed_kernels.State(point, value, gradient, energy, slope, *model)

        return value, state

    state, steps, code = streamed_kernels.descend(
        evaluated,
        lambda state, vector: _model_solved(network, *state.of_model, vector),
        point,
        tolerance=solver.tolerance,
        max_iterations=solver.max_iterations,
        single=partial(evaluated, dtype=np.float32),
    )
    factors = factors_at(state.point, problem.shapes)
    U, U_a = order_parameters_of(factors, problem.heads, problem.skip)
    U_a = U_a[0, 0] if problem.Y.ndim == 1 else U_a
    reached = lambda x: jnp.where(code == CONVERGED, x, jnp.nan)
    value, energy = _with_outside(problem, state.value, state.energy)
    return Solution(
        problem=problem,
        U=tuple(map(reached, U)),
        U_a=reached(U_a),
        action=reached(value),
        energy=reached(energy),
        entropy=reached(state.value - state.energy),
        gradient_norm=jnp.linalg.norm(state.gradient),
        iterations=jnp.asarray(steps),
        result=jnp.asarray(code),
        signature=jnp.full(3, UNKNOWN),
        point=state.point,
    )


_factor, _entropy = map(eqx.filter_jit, (_first_factor, entropy_at))


@eqx.filter_jit
def _frozen_slope(network: Posed, point: Float[Array, " n"], slope):
    """The gradient of the action where E / N has this slope in U_1."""
    _, pull = jax.vjp(partial(_order_parameter, network), point)
    return jax.grad(partial(entropy_at, network))(point) + pull(slope)[0]


@eqx.filter_jit
def _model_solved(network: Posed, point, slope, by_feature, readout, vector):
    """Solve the model of the Hessian in the chart for a vector."""
    largest = network.widths.max()
    U_at = partial(_order_parameter, network)
    entropy_slope = jax.grad(partial(entropy_at, network))
    along = lambda f, v: jax.jvp(f, (point,), (v,))[1]
    pulled = lambda point: jax.vjp(U_at, point)[1](slope)[0]
    _, pull = jax.vjp(U_at, point)

    def hessian(v):
        V = along(U_at, v)
        curved = streamed_kernels.model_product(by_feature, readout, V)
        return along(entropy_slope, v) + along(pulled, v) + pull(curved / largest)[0]

    diagonal = along(entropy_slope, jnp.ones_like(point))  # it has no other part
    return streamed_kernels.conjugate_gradients(hessian, vector, diagonal)


def _order_parameter(network: Posed, point: Float[Array, " n"]) -> Array:
    F = _first_factor(network, point)
    return F @ F.T


slope_at = eqx.filter_jit(jax.value_and_grad(action_at, argnums=1))
