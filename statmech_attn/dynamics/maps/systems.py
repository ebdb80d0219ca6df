r"""One way to hand over a map or a flow: `System`, taken by every tool.

A system is a step $x_{t+1} = F(x_t, p)$ with what is observed of its state.  Fixed
parameters make a `TangentSystem` of it: tangent dynamics is itself a dynamical system
(docs/theory/dynamics.md, section 2), a state and a frame of k tangent columns, pushed
forward together,

    z -> F(z),    V -> DF(z) V        V (dim, k, *batch)   `frame`

`Linearised` makes one from any JAX map by forward differentiation.  A map whose
Jacobian has structure may supply its own `push`; a test then holds the two together.
"""

import dataclasses
import functools
import math
import traceback
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from statmech_attn.batches import add_up
from statmech_attn.dynamics.maps.orthonormal import orthonormalise, safe_log
from statmech_attn.labels import STEP, step_unit
from statmech_attn.options import require_least


class System(eqx.Module):
    """A map, or a flow over a fixed time, and what is observed of its state.

    Wherever a system is expected, a plain function is taken as `System(step)`.

    Args:
        step: (state, parameters) -> state, a pure JAX function.  States and parameters
            are trees of arrays; the floating-point leaves of a state are its
            coordinates, integer leaves (a clock, say) are carried along.  Without
            parameters it takes the state alone.
        observe: state -> (d,), what recurrence, spectra and distances look at; all
            coordinates when omitted.
        drive_period: period of an external clock in steps.
        tangent: parameters -> `TangentSystem`, where the Jacobian has structure; by
            forward differentiation when omitted.
        batched: the functions take states and parameters with further axes at the end.
        unit: what a step is, in a word.
        display: (state, parameters) -> (d,), what a diagram shows of the state; what
            is observed when omitted.
        clock: state -> phase of the external clock, shared by all points.
        any_width: whether numbers are the same however many points are computed side
            by side: only where all sums over coordinates are written out.
        rank: how many exponents can be finite, the rank of the Jacobian of many steps.
            When omitted it is read off the program of the step, which shows what each
            coordinate is computed from, but not that a matrix is singular.  Negative:
            so many fewer than there are coordinates.
        entropy_production: (state, parameters, steps of a block) -> averages over each
            of `lyapunov.BLOCKS` blocks (blocks,), and the weighted average over all of
            them, of the entropy that the process produces whose mean the map is, in
            nats per step and spin.
        flow: `flows.Flow` that the step follows for a fixed time.
        first_return: (state, parameters) -> `sections.Return`, of a section.

    Raises:
        ValueError: a period below 1.

    Example:
        >>> import jax.numpy as jnp
        >>> henon = System(lambda x, p: jnp.stack([1 - p["a"] * x[0]**2 + x[1],
        ...                                        p["b"] * x[0]]))
        >>> henon.step(jnp.zeros(2), {"a": 1.4, "b": 0.3}).tolist()
        [1.0, 0.0]
    """

    step: Callable[..., PyTree]
    observe: Callable[[PyTree], Any] | None = None
    drive_period: int = eqx.field(static=True, default=1)
    tangent: "Callable[[PyTree], TangentSystem] | None" = None
    batched: bool = eqx.field(static=True, default=False)
    unit: str = eqx.field(static=True, default=STEP)
    display: Callable[[PyTree, PyTree], Any] | None = None
    clock: Callable[[PyTree], Any] | None = None
    any_width: bool = eqx.field(static=True, default=False)
    rank: int | None = eqx.field(static=True, default=None)
    entropy_production: Callable[..., Any] | None = None
    flow: Any = None
    first_return: Any = None

    def __check_init__(self):
        require_least(1, drive_period=self.drive_period)

    def at(self, parameters: PyTree = None) -> "TangentSystem":
        """The map at fixed parameters, with its tangent dynamics, for one state.

        A `batched` map with a `tangent` of its own takes any number of states.

        Args:
            parameters: of the map.
        """
        parameters = jax.tree.map(jnp.asarray, parameters)
        if self.tangent is not None:
            return self.tangent(parameters)
        return Linearised(self.step, parameters, self.rank)

    def beside(self, parameters: PyTree) -> "TangentSystem":
        """The tangent maps of many points side by side, on the last axis.

        Args:
            parameters: of the map, with the points on the last axis.
        """
        if self.batched and self.tangent is not None:
            return self.tangent(parameters)
        return SideBySide(self.at, parameters)

    def strobed(self, times: int) -> "System":
        """The map iterated so many times; its own tangent dynamics is not used.

        It is of the same flow, and produces the entropy of all its iterations.

        Args:
            times: number of iterations, at least 1.

        Raises:
            ValueError: `times` is below 1.

        Example:
            >>> import jax.numpy as jnp
            >>> turn = System(lambda x: (x + 0.25) % 1.0).strobed(3)
            >>> float(turn.step(jnp.array(0.5)))
            0.25
        """
        require_least(1, times=times)

        def step(state, parameters=None):
            iterate = lambda _, state: call(self.step, state, parameters)
            return jax.lax.fori_loop(0, times, iterate, state)

        produced: Any = self.entropy_production

        def of_all(state, parameters, per_block):
            of_steps = produced(state, parameters, times * per_block)
            return jax.tree.map(lambda rate: times * rate, of_steps)

        return dataclasses.replace(
            self,
            step=step,
            drive_period=self.drive_period // math.gcd(self.drive_period, times),
            tangent=None,
            unit=step_unit(times, self.unit),
            entropy_production=produced and of_all,
            first_return=None,
        )

    def split(self) -> "tuple[tuple[Array, ...], Callable[[tuple], System]]":
        """Arrays that the system holds, each once, and the system of such arrays."""
        leaves, structure = jax.tree.flatten(self)
        arrays = {id(x): x for x in leaves if eqx.is_array(x)}
        number = {key: i for i, key in enumerate(arrays)}
        places = [number.get(id(x)) for x in leaves]

        def system_of(arrays):
            pairs = zip(places, leaves, strict=True)
            filled = [x if i is None else arrays[i] for i, x in pairs]
            return jax.tree.unflatten(structure, filled)

        return tuple(arrays.values()), system_of

    def steps(self, state: PyTree, parameters: PyTree = None) -> PyTree:
        """One step of many points, on the last axis; a leaf without axes is shared.

        Args:
            state: states, with the points on the last axis.
            parameters: of the map, likewise.
        """
        return self._many(self.step, state, parameters, like_state=True)

    def seen(self, state: PyTree) -> Float[Array, "d points"]:
        """What is observed of the states of many points, (d, points).

        Args:
            state: states, with the points on the last axis.

        Raises:
            ValueError: a state without floats.
        """
        if self.observe is None:
            floats = [
                x
                for x in jax.tree.leaves(state)
                if x.ndim and jnp.issubdtype(x.dtype, jnp.inexact)
            ]
            if not floats:
                raise ValueError("state must hold floats, points on the last axis.")
            return jnp.concatenate([x.reshape(-1, x.shape[-1]) for x in floats])
        return self._many(self.observe, state, None)

    def shown(self, state: PyTree, parameters: PyTree) -> Float[Array, "d points"]:
        """What a diagram shows of the states of many points, (d, points).

        Args:
            state: states, with the points on the last axis.
            parameters: of the map, likewise.
        """
        if self.display is None:
            return self.seen(state)
        return self._many(self.display, state, parameters)

    def produced(
        self, state: PyTree, parameters: PyTree, per_block: Int[Array, ""]
    ) -> tuple[Float[Array, "blocks points"], Float[Array, " points"]]:
        """Entropy production along the orbits of many points, as of one.

        Args:
            state: states, with the points on the last axis.
            parameters: of the map, likewise.
            per_block: steps of a block.
        """
        produced = self.entropy_production
        assert produced is not None
        if self.batched:
            return produced(state, parameters, per_block)
        axes = lane_axes((state, parameters))
        of_one = lambda s, p: produced(s, p, per_block)
        return jax.vmap(of_one, in_axes=axes, out_axes=-1)(state, parameters)

    def _many(self, function, state, parameters, *, like_state: bool = False):
        if self.batched:
            return call(function, state, parameters)
        axes = lane_axes((state, parameters))
        single = lambda s, p: call(function, s, p)
        if not like_state:
            single = lambda s, p: ravel_pytree(call(function, s, p))[0]
        out = axes[0] if like_state else -1
        return jax.vmap(single, in_axes=axes, out_axes=out)(state, parameters)

    def check(self, state: PyTree, parameters: PyTree = None) -> None:
        """Refuse a map that changes its state's shape, or shows nothing.

        Args:
            state, parameters: of many points, on the last axis.

        Raises:
            ValueError: in one line.
        """
        lane = lambda x: x[..., 0] if x.ndim and not self.batched else x
        state_of_one, fixed = jax.tree.map(lane, (state, parameters))
        step = lambda s, p: call(self.step, s, p)
        require_like(shape_of_step(step, state_of_one, fixed), state_of_one)
        try:
            jax.eval_shape(self.steps, state, parameters)
        except ValueError:
            raise ValueError(
                "step must not let what all starts share (an array without axes) "
                "depend on one of them; give every start its own."
            ) from None
        if self.observe is None and not any(
            jnp.issubdtype(x.dtype, jnp.inexact) for x in jax.tree.leaves(state)
        ):
            raise ValueError("state has no floating-point coordinates to compare.")
        for name, observed in (
            ("observe", jax.eval_shape(self.seen, state)),
            ("display", jax.eval_shape(self.shown, state, parameters)),
        ):
            if observed.ndim != 2 or not observed.size:
                raise ValueError(
                    f"{name} must return at least one number for a state; "
                    f"got {describe(observed)} for {count_of(state)} states."
                )


def as_system(system: "Callable[..., PyTree] | System") -> System:
    """A system, or the one of a plain function."""
    if isinstance(system, System):
        return system
    if not callable(system):
        raise ValueError(
            "system must be a System, or a function f(x) or f(x, p); got "
            f"{type(system).__name__}."
        )
    return System(system)


def call(function: Callable, state: PyTree, parameters: PyTree):
    """A function of a state and of parameters, where there are any."""
    return function(state) if parameters is None else function(state, parameters)


def shape_of_step(step: Callable, *arguments: PyTree) -> PyTree:
    """Shapes and types of what a step returns, which is traced and not computed."""
    try:
        return jax.eval_shape(step, *arguments)
    except Exception as error:
        *_, (last, _) = traceback.walk_tb(error.__traceback__)
        ours = last.f_globals["__name__"].startswith("statmech_attn.")
        if ours and isinstance(error, ValueError):
            raise
        message = " ".join(str(error).split("\n")[0].split())
        raise ValueError(_refusal(type(error).__name__, message)) from error


def _refusal(kind: str, message: str) -> str:
    if kind.startswith(("Tracer", "Concretization")):
        return (
            "step needs the values of an array, which JAX does not have while it "
            "compiles: use jax.numpy, not numpy, and jnp.where, not if."
        )
    if "missing" in message and "positional argument" in message:
        return f"step takes parameters: give them after the state ({message})."
    if "positional argument" in message and "given" in message:
        return f"step must take the state and the parameters, f(x, p) ({message})."
    if kind == "KeyError":
        return f"step asks for the parameter {message}, which is not given."
    if "'list'" in message:
        return (
            f"step must get its state and parameters as arrays, not lists ({message})."
        )
    return (
        f"step, which takes the state first, then the parameters, ends in {kind}: "
        f"{message.rstrip('.')}."
    )


def lane_axes(tree: PyTree) -> PyTree:
    """Axes of `jax.vmap`: the last of every array; leaves without axes are shared."""
    return jax.tree.map(lambda x: -1 if jnp.ndim(x) else None, tree)


def count_of(tree: PyTree) -> int:
    """Number of points, the same on the last axis of all arrays of a tree."""
    lengths = {jnp.shape(x)[-1] for x in jax.tree.leaves(tree) if jnp.ndim(x)}
    if len(lengths) != 1 or not min(lengths):
        raise ValueError(
            "lanes must be on the last axis of every array; "
            f"got last axes of length {sorted(lengths) or 'none'}."
        )
    return lengths.pop()


class TangentSystem(eqx.Module):
    """A map at fixed parameters with its tangent dynamics.

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
        """The coordinates of the state that the tangent columns belong to.

        Args:
            state: state of the system.
        """

    @abstractmethod
    def at(self, state: PyTree, vector: Float[Array, "dim *batch"]) -> PyTree:
        """The state with other coordinates; clocks and counters stay.

        Args:
            state: state of the system.
            vector: new coordinates, (d,).
        """

    def push_measured(self, lifted: PyTree, frame: Float[Array, "dim k *batch"]):
        """`push`, with ln |det DF| of the step; -inf where the Jacobian is singular.

        Args:
            lifted: the step with what its derivative needs, as `lift` gives it.
            frame: tangent vectors in columns, (d, k).
        """
        dimension, _, *batch = frame.shape
        units = jnp.eye(dimension).reshape(2 * (dimension,) + (1,) * len(batch))
        units = jnp.broadcast_to(units, (dimension, dimension, *batch))
        jacobian = jnp.moveaxis(self.push(lifted, units)[1], (0, 1), (-2, -1))
        return *self.push(lifted, frame), jnp.linalg.slogdet(jacobian)[1]

    @property
    def rank(self) -> int | None:
        """How many exponents can be finite, where that is known beforehand."""
        return None

    @property
    def layout_period(self) -> int:
        """Steps after which every coordinate of a cycle is in its place again.

        Above 1 where a state is stored as a ring whose newest member moves.
        """
        return 1


class Linearised(TangentSystem):
    """A map at fixed parameters with the tangent dynamics that JAX derives.

    Floating-point leaves are the coordinates; integer leaves (a clock, say) are
    carried along and contribute no exponent.  Unbatched; use `jax.vmap` around the
    function that consumes it.
    """

    map: Callable[..., PyTree]
    parameters: PyTree = None
    known_rank: int | None = eqx.field(static=True, default=None)

    @property
    def rank(self):
        return self.known_rank

    def lift(self, state):
        return state

    def lower(self, lifted):
        return lifted

    def step(self, state):
        return call(self.map, state, self.parameters)

    def vector(self, state):
        return ravel_pytree(eqx.filter(state, eqx.is_inexact_array))[0]

    def at(self, state, vector):
        floats, rest = eqx.partition(state, eqx.is_inexact_array)
        return eqx.combine(ravel_pytree(floats)[1](vector), rest)

    def push(self, lifted, frame):
        floats, rest = eqx.partition(lifted, eqx.is_inexact_array)
        flat, unravel = ravel_pytree(floats)

        def of_vector(x):
            after = self.step(eqx.combine(unravel(x), rest))
            moved, others = eqx.partition(after, eqx.is_inexact_array)
            return ravel_pytree(moved)[0], others

        column = lambda t: jax.jvp(of_vector, (flat,), (t,), has_aux=True)
        moved, frame, others = jax.vmap(column, in_axes=1, out_axes=(None, 1, None))(
            frame
        )
        return eqx.combine(unravel(moved), others), frame


class SideBySide(TangentSystem):
    """Maps of many points, each with parameters of its own, on the last axis.

    Leaves of a state without axes are shared by all points and hold no coordinates.
    """

    one: Callable[[PyTree], TangentSystem]
    parameters: PyTree

    @property
    def rank(self):
        return self.one(self.parameters).rank

    @property
    def layout_period(self):
        return self.one(self.parameters).layout_period

    def lift(self, state):
        return state

    def lower(self, lifted):
        return lifted

    def step(self, state):
        return self._many(lambda map, s: map.step(s), lane_axes(state), state)

    def vector(self, state):
        return self._many(lambda map, s: map.vector(s), -1, state)

    def at(self, state, vector):
        move = lambda map, s, x: map.at(s, x)
        return self._many(move, lane_axes(state), state, vector)

    def push(self, lifted, frame):
        def push(map, state, frame):
            after, frame = map.push(map.lift(state), frame)
            return map.lower(after), frame

        return self._many(push, (lane_axes(lifted), -1), lifted, frame)

    def push_measured(self, lifted, frame):
        """Push frames and measure volumes, by Gram-Schmidt."""
        dimension, _, points = frame.shape
        units = jnp.eye(dimension)[:, :, None]
        units = jnp.broadcast_to(units, (dimension, dimension, points))
        _, lengths, _ = orthonormalise(self.push(lifted, units)[1])
        log_det = add_up(safe_log(length) for length in lengths)
        return *self.push(lifted, frame), log_det

    def _many(self, function, out, *trees):
        call = lambda parameters, *arguments: function(self.one(parameters), *arguments)
        axes = lane_axes((self.parameters, *trees))
        return jax.vmap(call, in_axes=axes, out_axes=out)(self.parameters, *trees)


def require_like(after: PyTree, before: PyTree, name: str = "step") -> None:
    """Refuse what is not of the structure, shapes and types of a state."""
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
    require_like(shape_of_step(system.step, state), state)
    return jax.lax.fori_loop(0, steps, lambda _, s: system.step(s), state)


def leading_axes(*parts: tuple[Array, tuple[int, ...]]) -> int:
    """Axes that `jax.vmap` has put before those that a result was made with.

    `parts` are arrays of the result, each with the lengths of its first axes when it
    was made.
    """
    for count in range(parts[0][0].ndim):
        if all(x.shape[count : count + len(shape)] == shape for x, shape in parts):
            return count
    values, shape = parts[0]
    raise ValueError(
        f"result must have axes {shape}, before or after those of a batch; got "
        f"{values.shape}: take properties inside jax.vmap."
    )


class BatchedResult(eqx.Module):
    """A result whose batch, which `jax.vmap` makes, stands before its own axes.

    `own_axes` is the name of an array and how many axes it has of its own.
    """

    own_axes: ClassVar[tuple[str, int]]
    _axes: tuple[int, ...] = eqx.field(static=True, init=False)

    def __post_init__(self):
        name, count = self.own_axes
        self._axes = getattr(self, name).shape[:count]

    @property
    def leading_axes(self) -> int:
        """Axes of a batch that stand first."""
        return leading_axes((getattr(self, self.own_axes[0]), self._axes))


def of_each(method: Callable) -> Callable:
    """A property or method of a result, also where `jax.vmap` has put a batch first.

    It is then taken of every member, and the axes of the batch stand first in what it
    gives; a batch on the last axes is the method's own affair.
    """

    @functools.wraps(method)
    def of_one_or_each(self, *args, **options):
        if not self.leading_axes:
            return method(self, *args, **options)
        return jax.vmap(lambda one: of_one_or_each(one, *args, **options))(self)

    return of_one_or_each
