r"""A map together with its tangent dynamics: what exponents are computed from.

Tangent dynamics is itself a dynamical system (docs/theory/dynamics.md, section 2): a
state and a frame of k tangent columns, pushed forward together,

    z -> F(z),    V -> DF(z) V        V (dim, k, *batch)   `frame`

`Linearised` makes one from any JAX map by forward differentiation.  A map whose
Jacobian has structure may supply its own `push`; a test then holds the two together.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree


class TangentSystem(eqx.Module):
    """A map with tangent dynamics.

    `lift` turns a state of the map into what `push` carries, `lower` turns it back;
    they differ where derivatives are cached along the way.
    """

    @abstractmethod
    def lift(self, state: PyTree) -> PyTree: ...

    @abstractmethod
    def lower(self, lifted: PyTree) -> PyTree: ...

    @abstractmethod
    def step(self, state: PyTree) -> PyTree: ...

    @abstractmethod
    def push(
        self, lifted: PyTree, frame: Float[Array, "dim k *batch"]
    ) -> tuple[PyTree, Float[Array, "dim k *batch"]]: ...

    @abstractmethod
    def vector(self, state: PyTree) -> Float[Array, "dim *batch"]:
        """The coordinates of the state that the tangent columns belong to."""

    @abstractmethod
    def at(self, state: PyTree, vector: Float[Array, "dim *batch"]) -> PyTree:
        """The state with other coordinates; clocks and counters stay."""

    def push_measured(self, lifted: PyTree, frame: Float[Array, "dim k *batch"]):
        """`push`, with ln |det DF| of the step; -inf where the Jacobian is singular."""
        dimension, _, *batch = frame.shape
        units = jnp.eye(dimension).reshape(2 * (dimension,) + (1,) * len(batch))
        units = jnp.broadcast_to(units, (dimension, dimension, *batch))
        jacobian = jnp.moveaxis(self.push(lifted, units)[1], (0, 1), (-2, -1))
        return *self.push(lifted, frame), jnp.linalg.slogdet(jacobian)[1]

    @property
    def rank(self) -> int | None:
        """How many exponents can be finite, where the structure of the map tells."""
        return None

    @property
    def layout_period(self) -> int:
        """Steps after which every coordinate of a cycle is in its place again.

        Above 1 where a state is stored as a ring whose newest member moves.
        """
        return 1


class Linearised(TangentSystem):
    """Any map `state -> state` on a pytree, differentiated by JAX.

    Floating-point leaves are the coordinates; integer leaves (a clock, say) are
    carried along and contribute no exponent.  Unbatched; use `jax.vmap` around the
    function that consumes it.
    """

    map: Callable[[PyTree], PyTree]

    def lift(self, state):
        return state

    def lower(self, lifted):
        return lifted

    def step(self, state):
        return self.map(state)

    def vector(self, state):
        return ravel_pytree(eqx.filter(state, eqx.is_inexact_array))[0]

    def at(self, state, vector):
        floats, rest = eqx.partition(state, eqx.is_inexact_array)
        return eqx.combine(ravel_pytree(floats)[1](vector), rest)

    def push(self, lifted, frame):
        floats, rest = eqx.partition(lifted, eqx.is_inexact_array)
        flat, unravel = ravel_pytree(floats)

        def of_vector(x):
            after = self.map(eqx.combine(unravel(x), rest))
            moved, others = eqx.partition(after, eqx.is_inexact_array)
            return ravel_pytree(moved)[0], others

        column = lambda t: jax.jvp(of_vector, (flat,), (t,), has_aux=True)
        moved, frame, others = jax.vmap(column, in_axes=1, out_axes=(None, 1, None))(
            frame
        )
        return eqx.combine(unravel(moved), others), frame


def as_system(step: "Callable | TangentSystem") -> TangentSystem:
    """Accept a plain map or a map that knows its tangent dynamics."""
    return step if isinstance(step, TangentSystem) else Linearised(step)


def require_like(after: PyTree, before: PyTree, name: str = "step") -> None:
    """Refuse what is not of the structure, shapes and types of a state.

    Raises:
        ValueError: in one line.
    """
    if _form(after) != _form(before):
        raise ValueError(
            f"{name} must return a state like the one it takes; "
            f"got {describe(after)} from {describe(before)}."
        )


def _form(tree: PyTree):
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(jnp.shape(x), jnp.result_type(x)) for x in leaves]


def describe(tree: PyTree) -> str:
    """Types and shapes of the leaves, in words."""
    leaves = jax.tree.leaves(tree)
    words = [f"{jnp.result_type(x)}{list(jnp.shape(x))}" for x in leaves]
    return ", ".join(words) or "nothing"


def advance(system: TangentSystem, state: PyTree, steps: Int[Array, ""]) -> PyTree:
    """The state after some steps of a map that is first seen to keep its form."""
    require_like(jax.eval_shape(system.step, state), state)
    return jax.lax.fori_loop(0, steps, lambda _, s: system.step(s), state)


def require_axes(values: Array, axes: tuple[int, ...], *, ndim: int | None = None):
    """Refuse a result whose leading axes are no longer those it was made with.

    `jax.vmap` puts its axis first unless told otherwise, where properties would take
    it for blocks, windows or samples.
    """
    if values.shape[: len(axes)] != axes:
        raise ValueError(
            f"result must have axes {axes}, then the batch; got {values.shape}: pass "
            "out_axes=-1 to jax.vmap, or take properties inside it."
        )
    if ndim is not None and values.ndim != ndim:
        raise ValueError(f"result must be unbatched here; got shape {values.shape}.")
