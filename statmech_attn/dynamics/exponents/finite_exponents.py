r"""How many exponents of a map can be finite (docs/theory/dynamics.md, section 2).

The program of the tangent map $v \mapsto DF(x) v$, as JAX derives it, is a graph of
numbers, each a function of those that it is computed from.  The rank of
$DF(x_n) \cdots DF(x_1)$ is at most the number of paths from the coordinates of v to
those of the result that have no number in common (the smallest cut of the graph),
whatever the values.  The graph of as many steps as there are coordinates is taken.
Exponents beyond this rank are -inf.

    ids     which number of the graph an array holds, 0: none that depends on v
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from statmech_attn.dynamics.maps.systems import SideBySide, TangentSystem


EDGES = 200_000  # of the graph at most; further steps are left out
CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint")
ELEMENTWISE = """
    add add_any sub mul div neg select_n convert_element_type
    copy copy_p real imag reduce_precision
""".split()
MOVING = """
    reshape broadcast_in_dim squeeze transpose slice rev concatenate pad split
    expand_dims stack unstack
""".split()
MOVES = dict.fromkeys(MOVING, ()) | {  # which of the inputs say where numbers move to
    "gather": slice(1, None),
    "scatter": slice(1, 2),
    "dynamic_slice": slice(1, None),
    "dynamic_update_slice": slice(2, None),
}
COUNTING = "iota lt le gt ge eq ne and or not min max clamp rem sign".split()
PLACES = (*ELEMENTWISE, *MOVES, *COUNTING)  # what places are computed by


class Cell(NamedTuple):
    """An array of the program: its numbers, and its value where it is a constant."""

    ids: np.ndarray
    value: np.ndarray | None = None


def finite_exponents(system: TangentSystem, state: PyTree) -> int | None:
    """How many exponents can be finite: as the system says, or as its program tells.

    `state` is of one point, or of many on the last axis of a map of many. Returns the
    rank of many steps or a bound above it; None where nothing is known.
    """
    if system.rank is not None:
        lost = system.rank < 0
        return system.rank + lost * jax.eval_shape(system.vector, state).shape[0]
    if isinstance(system, SideBySide):
        lane = lambda x: x[..., 0] if jnp.ndim(x) else x
        parameters, state = jax.tree.map(lane, (system.parameters, state))
        system = system.one(parameters)
    state = jax.tree.map(jnp.asarray, state)
    shape = jax.eval_shape(system.vector, state)
    if shape.ndim != 1:
        return None
    step = lambda x: system.vector(system.step(system.at(state, x)))
    tangent = lambda x, v: jax.jvp(step, (x,), (v,))[1]
    program = jax.make_jaxpr(tangent)(shape, shape)
    return _paths(program, shape.shape[0])


def _paths(program, dimension: int) -> int:
    """Disjoint paths through as many steps as there are coordinates."""
    graph = _Graph(dimension)
    ends = starts = np.arange(1, dimension + 1)
    unknown = Cell(np.zeros(dimension, int))
    for _ in range(dimension):
        (after,) = graph.run(program.jaxpr, program.consts, [unknown, Cell(ends)])
        if graph.edges > EDGES:
            break
        ends = after.ids
    return graph.flow(starts, np.unique(ends[ends > 0]))


class _Graph:
    """Numbers that depend on v, and what they are computed from."""

    def __init__(self, count: int):
        self.count, self.edges = count, 0
        self.sources: list[list[int]] = []  # of every number after the first ones

    def flow(self, starts: np.ndarray, ends: np.ndarray) -> int:
        """Paths between two sets of numbers that have none in common."""
        from scipy.sparse import csgraph, csr_array  # 0.4 CPU-s

        # Number i enters at 2i and leaves at 2i + 1, through a pipe that takes one.
        first = self.count - len(self.sources) + 1
        pairs = [(2 * i, 2 * i + 1) for i in range(1, self.count + 1)]
        for i, sources in enumerate(self.sources, first):
            pairs += [(2 * j + 1, 2 * i) for j in sources]
        sink = 2 * self.count + 2
        pairs += [(0, 2 * i) for i in starts] + [(2 * i + 1, sink) for i in ends]
        rows, columns = np.array(pairs, np.int32).T
        ones = np.ones(len(pairs), np.int32)
        pipes = csr_array((ones, (rows, columns)), (sink + 1, sink + 1))
        return int(csgraph.maximum_flow(pipes, 0, sink).flow_value)

    def run(self, jaxpr, constants, inputs: list[Cell]) -> list[Cell]:
        """What a program returns."""
        cells = dict(zip(jaxpr.constvars, map(_constant, constants), strict=True))
        cells |= dict(zip(jaxpr.invars, inputs, strict=True))
        read = lambda x: _constant(x.val) if hasattr(x, "val") else cells[x]
        for equation in jaxpr.eqns:
            after = self._apply(equation, [read(x) for x in equation.invars])
            cells |= dict(zip(equation.outvars, after, strict=True))
        return [read(x) for x in jaxpr.outvars]

    def _apply(self, equation, inputs: list[Cell]) -> list[Cell]:
        name, options = equation.primitive.name, equation.params
        shapes = [x.aval.shape for x in equation.outvars]
        inner = options.get("jaxpr") or options.get("call_jaxpr")
        if name in CALLS and inner is not None:
            constants = getattr(inner, "consts", [])
            return self.run(getattr(inner, "jaxpr", inner), constants, inputs)
        constant = [x.value is not None for x in inputs]
        if not any(x.ids.any() for x in inputs):
            ids = [np.zeros(shape, int) for shape in shapes]
            if name in PLACES and all(constant):
                values = _bound(equation, [x.value for x in inputs])
                return [Cell(*pair) for pair in zip(ids, values, strict=True)]
            return [Cell(x) for x in ids]
        if name in ELEMENTWISE:
            rows = [np.broadcast_to(x.ids, shapes[0]).ravel() for x in inputs]
            return [self._each(np.stack(rows, axis=1), shapes[0])]
        where = np.zeros(len(inputs), bool)
        where[MOVES.get(name, ()),] = True
        if name in MOVES and all(np.array(constant)[where]):
            pairs = zip(inputs, where, strict=True)
            moved = _bound(equation, [x.value if at else x.ids for x, at in pairs])
            return [Cell(np.maximum(ids, 0)) for ids in moved]
        if name == "reduce_sum":
            rows = _last(inputs[0].ids, options["axes"])
            return [self._each(rows.reshape(-1, rows.shape[-1]), shapes[0])]
        if name == "dot_general":
            return [self._each(_factors(inputs, options), shapes[0])]
        every = np.concatenate([x.ids.ravel() for x in inputs])[None]
        return [self._each(every.repeat(np.prod(s, dtype=int), 0), s) for s in shapes]

    def _each(self, rows: np.ndarray, shape) -> Cell:
        """Numbers computed from those of each row; a function of one is that one."""
        return Cell(np.array([self._number(row) for row in rows], int).reshape(shape))

    def _number(self, row: np.ndarray) -> int:
        sources = sorted(set(row.tolist()) - {0})  # ten times faster than np.unique
        if len(sources) < 2:
            return sum(sources)
        self.sources.append(sources)
        self.count, self.edges = self.count + 1, self.edges + len(sources)
        return self.count


def _constant(x) -> Cell:
    value = None if isinstance(x, Tracer) else np.asarray(x)
    return Cell(np.zeros(np.shape(x), int), value)


def _bound(equation, inputs: list) -> list[np.ndarray]:
    """An operation carried out on other arrays."""
    with jax.ensure_compile_time_eval():
        after = equation.primitive.bind(*jax.device_put(inputs), **equation.params)
    many = equation.primitive.multiple_results
    return [np.asarray(x) for x in (after if many else [after])]


def _last(ids: np.ndarray, axes) -> np.ndarray:
    """Some axes as a single one, the last."""
    other_axes = [i for i in range(ids.ndim) if i not in axes]
    length = int(np.prod([ids.shape[i] for i in axes]))
    shape = [ids.shape[i] for i in other_axes]
    return ids.transpose(*other_axes, *axes).reshape(*shape, length)


def _factors(inputs: list[Cell], options) -> np.ndarray:
    """Numbers that each entry of a product of matrices is a sum of."""
    (summed, batches) = options["dimension_numbers"]
    sides = []
    for x, axes, batch in zip(inputs, summed, batches, strict=True):
        free = [i for i in range(x.ids.ndim) if i not in (*axes, *batch)]
        length = [
            int(np.prod([x.ids.shape[i] for i in g])) for g in (batch, free, axes)
        ]
        zero = np.zeros(x.ids.shape) if x.value is None else x.value == 0
        order = (*batch, *free, *axes)
        sides.append([y.transpose(order).reshape(length) for y in (x.ids, zero)])
    (first, first_zero), (second, second_zero) = sides
    shape = (first.shape[0], first.shape[1], second.shape[1], first.shape[2])
    wide = lambda x, axis: np.broadcast_to(np.expand_dims(x, axis), shape)
    first = np.where(wide(second_zero, 1), 0, wide(first, 2))
    second = np.where(wide(first_zero, 2), 0, wide(second, 1))
    return np.concatenate([first, second], axis=-1).reshape(-1, 2 * shape[-1])
