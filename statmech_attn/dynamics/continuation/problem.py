r"""Cycles of a map as a root-finding problem (docs/theory/continuation.md, section 1).

A cycle of k iterates of the map f at the value p of one free parameter is a zero of

    G(x, p) = f^k(x, p) - x        x (d,)   a point of the cycle, ravelled    `x`
                                   p ()     the free parameter                `value`
                                   k ()     iterates                          `period`

`Problem` holds the map, all its parameters and which of them is free.
"""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn.arguments import checks
from statmech_attn.batches import require_double
from statmech_attn.dynamics.maps.systems import as_system, shape_of_step, System
from statmech_attn.options import Count, Limits


class Problem(eqx.Module):
    """Which orbit of which map is followed in which parameter.

    Args:
        system: a `System`, or its step (state, parameters) -> state, of a pytree of
            float64 arrays and of the dictionary below.
        template: a state; only its structure and shapes are used.
        parameters: every parameter of the map by name; numbers, traced by JAX.
        free: name of the one that is continued.
        period: iterates of the map after which the orbit closes.

    Attributes:
        map: the step of the system.

    Raises:
        ValueError: the map changes the shape of its state, the state is not floating
            point, `free` is no parameter, or period < 1.

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

    @checks
    def __init__(
        self,
        system: Callable[[PyTree, dict], PyTree] | System,
        template: PyTree,
        parameters: Mapping[str, Limits],
        free: str,
        period: Count = 1,
    ):
        require_double()
        if free not in parameters:
            raise ValueError(f"free must be one of {sorted(parameters)}; got {free!r}.")
        self.map = as_system(system).step
        self.template = jax.tree.map(jnp.asarray, template)
        self.parameters = {k: jnp.asarray(v, float) for k, v in parameters.items()}
        self.free = free
        self.period = jnp.asarray(int(period))
        _check_shapes(self)

    @property
    def dimension(self) -> int:
        """Coordinates of a state, d."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.template))

    def with_free(self, free: str) -> "Problem":
        """The same orbit, with another parameter free.

        Args:
            free: name of the parameter.
        """
        return Problem(self.map, self.template, self.parameters, free, int(self.period))

    def with_period(self, period: Count) -> "Problem":
        """The same map, iterated `period` times.

        Args:
            period: number of iterates.
        """
        return Problem(self.map, self.template, self.parameters, self.free, period)

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
        return Problem(
            self.map,
            self.template,
            {**self.parameters, **values},
            self.free,
            int(self.period),
        )

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

    def next(self, x: Float[Array, " d"], value) -> Float[Array, " d"]:
        """The state one step later, f.

        Args:
            x: coordinates, (d,).
            value: of the free parameter.
        """
        parameters = {**self.parameters, self.free: value}
        return self.ravel(self.map(self.unravel(x), parameters))

    def iterate(self, x: Float[Array, " d"], parameters: dict, times):
        """f, `times` times (traced); an orbit that has become infinite stays so.

        Args:
            x: coordinates.
            parameters: of the map, by name.
            times: number of iterates.
        """

        def body(_, x):
            after = self.ravel(self.map(self.unravel(x), parameters))
            return jnp.where(jnp.any(jnp.isinf(x)), x, after)

        return jax.lax.fori_loop(0, times, body, x)

    def residual(self, u: Float[Array, " d+1"]) -> Float[Array, " d"]:
        """G(x, p) of u = (x, p), whose zeros are the orbits.

        Args:
            u: coordinates and then the free parameter, (d + 1,).
        """
        return self.image(u[:-1], u[-1]) - u[:-1]


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
