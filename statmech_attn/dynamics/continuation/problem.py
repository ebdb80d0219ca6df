r"""Cycles of a map as a root-finding problem (docs/theory/continuation.md, section 1).

A cycle of k iterates of the map f at the value p of one free parameter is a zero of

    G(x, p) = f^k(x, p) - x        x (d,)   a point of the cycle, ravelled    `x`
                                   p ()     the free parameter                `value`
                                   k ()     iterates                          `period`

Multiple shooting solves for points of several segments of the cycle at once, of k / m
iterates each (section 8), m = k for all of its points:

    G_i = f^{k/m}(x_i, p) - x_{i+1},  i = 0 .. m - 1,  x_m = x_0 + s

                           x (m, d) points, ravelled                  `x`
                           m        segments                          `segments`
                           s (d,)   whole turns of angles in a period `shift`

`Problem` holds the map, all its parameters and which of them is free.
"""

from collections.abc import Callable, Mapping
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn.arguments import checks
from statmech_attn.batches import require_double
from statmech_attn.dynamics.maps.systems import as_system, shape_of_step, System
from statmech_attn.options import Count, Limits, Numbers


class Problem(eqx.Module):
    """Which orbit of which map is followed in which parameter.

    Args:
        system: a `System`, or its step (state, parameters) -> state, of a pytree of
            float64 arrays and of the dictionary below.
        template: a state; only its structure and shapes are used.
        parameters: every parameter of the map by name; numbers, traced by JAX.
        free: name of the one that is continued.
        period: iterates of the map after which the orbit closes.
        segments: of the cycle, each with an unknown point of its own; a divisor of the
            period.
        shift: what is added to a state in one period, where coordinates are angles that
            are followed without the modulus; one number or (d,), for several segments.

    Attributes:
        map: the step of the system.

    Raises:
        ValueError: the map changes the shape of its state, the state is not floating
            point, `free` is no parameter, period < 1, or segments that do not divide
            it.

    Example:
        >>> import jax.numpy as jnp
        >>> logistic = lambda x, p: p["r"] * x * (1 - x)
        >>> cycle = Problem(logistic, jnp.zeros(1), {"r": 3.2}, "r", period=2)
        >>> [round(float(v), 6) for v in cycle.image(jnp.array([0.5]), 3.2)]
        [0.512]
    """

    map: Callable[[PyTree, dict], PyTree]
    template: PyTree[Float[Array, "..."]]
    parameters: dict[str, Float[Array, ""]]
    free: str = eqx.field(static=True)
    period: Int[Array, ""]
    segments: int = eqx.field(static=True)
    shift: Float[Array, " d"] | None

    @checks
    def __init__(
        self,
        system: Callable[[PyTree, dict], PyTree] | System,
        template: PyTree,
        parameters: Mapping[str, Limits],
        free: str,
        period: Count = 1,
        segments: Count = 1,
        shift: Numbers = 0.0,
    ):
        require_double()
        if free not in parameters:
            raise ValueError(f"free must be one of {sorted(parameters)}; got {free!r}.")
        self.map = as_system(system).step
        self.template = jax.tree.map(jnp.asarray, template)
        self.parameters = {k: jnp.asarray(v, float) for k, v in parameters.items()}
        self.free = free
        self.period = jnp.asarray(int(period))
        self.segments = int(segments)
        if period % segments:
            raise ValueError(f"segments must divide {period}; got {segments}.")
        shape, several = (self.dimension,), segments > 1
        if np.shape(shift) not in ((), (1,), shape) or (np.any(shift) and not several):
            raise ValueError(
                f"shift must be one number or of the shape {shape}, and zero of one "
                f"segment; got {shift!r}."
            )
        turns = jnp.broadcast_to(jnp.asarray(shift, float), shape)
        self.shift = turns if several else None
        _check_shapes(self)

    @property
    def dimension(self) -> int:
        """Coordinates of a state, d."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.template))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the unknown points: (d,), or (m, d) of several segments."""
        one = (self.dimension,)
        return one if self.segments == 1 else (self.segments, *one)

    def with_free(self, free: str) -> "Problem":
        """The same orbit, with another parameter free.

        Args:
            free: name of the parameter.
        """
        return self._with(free=free)

    def with_period(self, period: Count) -> "Problem":
        """The same map, iterated `period` times.

        Args:
            period: number of iterates.
        """
        return self._with(period=period)

    @checks
    def with_parameters(self, **values: Limits) -> "Problem":
        """The same orbit at other values of the parameters.

        Raises:
            ValueError: the problem has no parameter of such a name.
        """
        unknown = sorted(set(values) - set(self.parameters))
        if unknown:
            raise ValueError(
                f"parameters must be among {sorted(self.parameters)}; got {unknown}."
            )
        return self._with(parameters={**self.parameters, **values})

    def _with(self, **changed) -> "Problem":
        names = "template", "parameters", "free", "segments"
        same = {name: getattr(self, name) for name in names}
        same["period"] = int(self.period)
        same["shift"] = 0.0 if self.shift is None else self.shift
        return Problem(self.map, **(same | changed))

    def ravel(self, state: PyTree) -> Float[Array, " d"]:
        """Coordinates of a state.

        Args:
            state: a state of the map.
        """
        return ravel_pytree(state)[0]

    def unravel(self, x: Float[Array, " d"]) -> PyTree:
        """The state with these coordinates.

        Args:
            x: coordinates, (d,).
        """
        return ravel_pytree(self.template)[1](x)

    def image(self, x: Float[Array, " d"], value) -> Float[Array, " d"]:
        """The state one period later, f^k; infinite if the orbit is on the way.

        Args:
            x: coordinates, (d,).
            value: of the free parameter.
        """
        return self.iterate(x, {**self.parameters, self.free: value}, self.period)

    def step(self, x: Float[Array, " d"], parameters: dict) -> Float[Array, " d"]:
        """The state one step later, f.

        Args:
            x: coordinates, (d,).
            parameters: of the map, by name.
        """
        return self.ravel(self.map(self.unravel(x), parameters))

    def iterate(self, x: Float[Array, " d"], parameters: dict, times):
        """f, `times` times (traced); an orbit that has become infinite stays so.

        Args:
            x: coordinates.
            parameters: of the map, by name.
            times: number of iterates.
        """

        def body(_, x):
            return jnp.where(jnp.any(jnp.isinf(x)), x, self.step(x, parameters))

        return jax.lax.fori_loop(0, times, body, x)

    def segment(self, x: Float[Array, " d"], value) -> Float[Array, " d"]:
        """The state at the end of a segment, f^{k/m}.

        Args:
            x: coordinates, (d,).
            value: of the free parameter.
        """
        parameters = {**self.parameters, self.free: value}
        return self.iterate(x, parameters, self.period // self.segments)

    def residual(self, u: Float[Array, " n+1"]) -> Float[Array, " n"]:
        """G(x, p) of u = (x, p), whose zeros are the orbits.

        Args:
            u: coordinates of all unknown points and then the free parameter, (n + 1,).
        """
        if self.segments == 1:
            return self.image(u[:-1], u[-1]) - u[:-1]
        return self.gaps(u[:-1], partial(self.segment, value=u[-1]))

    def gaps(self, points: Float[Array, " n"], segment: Callable) -> Float[Array, " n"]:
        """By how much the ends of segments miss the next point.

        Args:
            points: of all segments, one after another.
            segment: takes a point (d,) to the end of its segment.
        """
        points = points.reshape(self.segments, -1)
        ahead = jnp.roll(points, -1, axis=0).at[-1].add(self.shift)
        return (jax.vmap(segment)(points) - ahead).reshape(-1)


def _check_shapes(problem: Problem) -> None:
    leaves = jax.tree.leaves(problem.template)
    if not leaves or any(leaf.dtype != jnp.float64 for leaf in leaves):
        kinds = sorted({str(leaf.dtype) for leaf in leaves}) or "no arrays"
        raise ValueError(f"template must be float64 arrays; got {kinds}.")
    after = shape_of_step(problem.map, problem.template, problem.parameters)
    shapes = lambda tree: jax.tree.map(lambda a: (a.shape, str(a.dtype)), tree)
    if shapes(after) != shapes(jax.eval_shape(lambda: problem.template)):
        raise ValueError(
            "map must return a state of the shape it is given, "
            f"{shapes(problem.template)}; got {shapes(after)}."
        )


def require_one_segment(problem: Problem) -> None:
    """Refuse several segments where one point of the cycle is what is computed with."""
    if problem.segments > 1:
        raise ValueError(f"problem must have one segment; got {problem.segments}.")
