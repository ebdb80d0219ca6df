"""A traced JAX function as straight-line code of LLVM for a few lanes at once.

JAX traces the function with `TRACED` lanes, a length that no other axis has.  Every
array is then a NumPy array of elements (`arithmetic`) whose axis of lanes has length
one: an element of an array with lanes is a vector, of another one a scalar.  Shapes
cost nothing, loops of JAX are loops of LLVM, and whatever is known while the program is
made (the ones and zeros of unit vectors) is worked out.

Nothing may be added up over lanes, and no index may differ between them.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from llvmlite import ir

from statmech_attn.native.arithmetic import (
    BOOL,
    DOUBLE,
    INT64,
    number,
    Type,
    TYPES,
    Unsupported,
    Value,
)
from statmech_attn.native.functions import Functions


TRACED = 1009  # lanes while a function is traced
WRITTEN_OUT = 16  # turns of a loop that only adds up rows of arrays
LONGEST = 1024  # numbers of a loop that are kept for later operations
UNREAD = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
JAXPRS = (ClosedJaxpr, Jaxpr)  # one class since jax 0.12
Elements = np.ndarray  # of objects, see the module


class Emitter(Functions):
    """Writes the operations of a jaxpr where its builder stands."""

    def __init__(
        self,
        module: ir.Module,
        lanes: int,
        rules: Mapping[str, Callable],
        library: str = "{}",
    ):
        super().__init__(module, lanes, library)
        self.rules = rules
        self.streams: dict[Any, Callable] = {}  # results of loops stored while they run

    def run(self, jaxpr, constants: Sequence, arguments: Sequence[Elements]) -> list:
        """Results of a jaxpr for some arguments."""
        values: dict[Any, Elements | None] = {}
        values.update(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom) -> Any:
            if isinstance(atom, Literal):
                return array((), [np.asarray(atom.val).item()])
            return values[atom]

        for equation in jaxpr.eqns:
            rule = self.rules.get(equation.primitive.name)
            if rule is None:
                raise Unsupported(f"it uses {equation.primitive.name}")
            try:
                results = rule(self, equation, *map(read, equation.invars))
            except Unsupported:
                raise
            except UNREAD as error:
                said = " ".join(f"{type(error).__name__}: {error}".split())
                raise Unsupported(
                    f"it uses {equation.primitive.name} as JAX {jax.__version__} "
                    f"writes it, which cannot be read ({said})"
                ) from error
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def inlined(self, equation, *arguments):
        (called,) = (x for x in equation.params.values() if isinstance(x, JAXPRS))
        jaxpr, constants = opened(called)
        return self.run(jaxpr, constants, arguments)

    # Loops

    def carried(self, variables, values: Sequence[Elements]) -> list[Value]:
        """What goes round a loop, as values of the types of its variables."""
        flat = []
        for variable, elements in zip(variables, values, strict=True):
            type = self.type_of(variable)
            flat += [self.value(x, type) for x in elements.flat]
        return flat

    def type_of(self, variable) -> Type:
        type = scalar_type(variable)
        return self.vector(type) if TRACED in variable.aval.shape else type

    def folded(self, variables, flat: Sequence) -> list[Elements]:
        rest = iter(flat)
        return [
            array(shape_of(v), itertools.islice(rest, math.prod(shape_of(v))))
            for v in variables
        ]

    def loop(self, variables, first, goes_on: Callable, body: Callable) -> list:
        """Values of the variables when the condition no longer holds."""
        builder, flat = self.builder, self.carried(variables, first)
        before = builder.block
        head = builder.append_basic_block("head")
        builder.branch(head)
        builder.position_at_end(head)
        phis = [builder.phi(x.type) for x in flat]
        inside, after = map(builder.append_basic_block, ("body", "after"))
        values = self.folded(variables, phis)
        builder.cbranch(self.value(goes_on(values), BOOL), inside, after)
        builder.position_at_end(inside)
        again = self.carried(variables, body(values))
        builder.branch(head)
        for phi, start, new in zip(phis, flat, again, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(new, builder.block)
        builder.position_at_end(after)
        return values

    def while_loop(self, equation, *arguments):
        params = equation.params
        condition, body = opened(params["cond_jaxpr"]), opened(params["body_jaxpr"])
        n_condition, n_body = (
            len(jaxpr.invars) - len(equation.outvars) for jaxpr, _ in (condition, body)
        )
        of_condition = list(arguments[:n_condition])
        of_body = list(arguments[n_condition : n_condition + n_body])
        first = arguments[n_condition + n_body :]
        (predicate,) = condition[0].outvars
        if predicate.aval.shape not in ((), (TRACED,)):
            raise Unsupported("a loop ends at another step in each part of a state")
        variables, going = body[0].outvars, []

        def goes_on(carry):
            (on,) = self.run(*condition, of_condition + carry)
            going.append(on.item())
            return self.in_any_lane(on.item())

        def turn(carry):
            after = self.run(*body, of_body + carry)
            if not predicate.aval.shape:
                return after
            choose = lambda v: (
                lambda new, old: self.select(going[-1], new, old, scalar_type(v))
            )
            pairs = zip(variables, after, carry)
            return [elementwise(choose(v), new, old) for v, new, old in pairs]

        return self.loop(variables, first, goes_on, turn)

    def scan(self, equation, *arguments):
        params = equation.params
        length, (body, constants) = params["length"], opened(params["jaxpr"])
        n_carry = len(body.outvars) - _stacked(equation.outvars, body.outvars)
        n_moving = n_carry + _stacked(equation.invars, body.invars)
        n_fixed = len(arguments) - n_moving
        fixed = list(arguments[:n_fixed])
        first = arguments[n_fixed : n_fixed + n_carry]
        stacked = arguments[n_fixed + n_carry :]
        if stacked and not equation.outvars[n_carry:] and length <= WRITTEN_OUT:
            order = reversed(range(length)) if params["reverse"] else range(length)
            carry = list(first)
            for place in order:
                slices = [x[place] for x in stacked]
                carry = self.run(body, constants, fixed + carry + slices)
            return carry
        rows = [
            self._stream(outside, inside, length)
            for outside, inside in zip(
                equation.outvars[n_carry:], body.outvars[n_carry:], strict=True
            )
        ]
        counter = SimpleNamespace(aval=jax.ShapeDtypeStruct((), np.dtype("int64")))
        zero = array((), [0])

        def turn(carry):
            done, carry = carry[0].item(), carry[1:]
            last = self.subtract(length - 1, done, INT64)
            place = last if params["reverse"] else done
            slices = [self._at(x, place, length) for x in stacked]
            results = self.run(body, constants, fixed + carry + slices)
            for (write, _), result in zip(rows, results[n_carry:], strict=True):
                write(place, result)
            return [array((), [self.add(done, 1, INT64)]), *results[:n_carry]]

        carry = self.loop(
            [counter, *body.outvars[:n_carry]],
            [zero, *first],
            lambda carry: self.compare("<", carry[0].item(), length, INT64),
            turn,
        )
        return [*carry[1:], *(read() for _, read in rows)]

    def _at(self, elements: Elements, place, length: int) -> Elements:
        """One of the rows of a stacked array, in the loop."""

        def chosen(*column):
            if all(map(number, column)):
                steps = np.diff(np.asarray(column))
                if (
                    length == 1
                    or (steps == steps[0]).all()
                    and isinstance(column[0], int)
                ):
                    step = int(steps[0]) if length > 1 else 0
                    return self.add(column[0], self.multiply(place, step, INT64), INT64)
            result = column[0]
            for i, x in enumerate(column[1:], 1):
                result = self.select(self.compare("==", place, i, INT64), x, result)
            return result

        return array(
            elements.shape[1:],
            itertools.starmap(chosen, elements.reshape(length, -1).T),
        )

    def _stream(self, outside, inside, length: int):
        """How a loop stores a row of a result, and what is read when it has ended."""
        if outside in self.streams:
            return self.streams[outside], lambda: None
        shape = shape_of(inside)
        count, type = math.prod(shape), self.type_of(inside)
        if length * count > LONGEST:
            raise Unsupported("a long record of a loop is used by other operations")
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(type, length * count)

        def write(place, elements):
            for i, x in enumerate(elements.flat):
                target = self.add(self.multiply(place, count, INT64), i, INT64)
                self.builder.store(self.value(x, type), address(target))

        def address(index):
            index = self.value(index, INT64)
            return self.builder.gep(memory, [index], source_etype=type)

        def read():
            places = map(address, range(length * count))
            loaded = [self.builder.load(place, typ=type) for place in places]
            return array((length, *shape), loaded)

        return write, read

    def branches(self, equation, index, *arguments):
        """All branches, and of their results the one that holds."""
        branches = equation.params["branches"]
        if isinstance(index.item(), ir.Value) and _wide(index.item()):
            raise Unsupported("a branch differs between lanes")
        kind = scalar_type(equation.invars[0])
        place = self.convert(index.item(), kind, INT64)
        results = [self.run(*opened(b), list(arguments)) for b in branches]
        chosen = results[-1]
        for i, branch in reversed(list(enumerate(results[:-1]))):
            inside = self.compare("<=", place, i, INT64)
            chosen = [
                elementwise(
                    lambda x, y, t=scalar_type(v): self.select(inside, x, y, t), x, y
                )
                for v, x, y in zip(equation.outvars, branch, chosen, strict=True)
            ]
        return chosen

    # Places in arrays

    def dynamic_slice(self, equation, elements, *starts):
        sizes = equation.params["slice_sizes"]
        kinds = [scalar_type(v) for v in equation.invars[1:]]
        type = scalar_type(equation.outvars[0])
        for axis, (start, kind) in enumerate(zip(starts, kinds, strict=True)):
            if equation.invars[0].aval.shape[axis] == sizes[axis]:
                continue
            size = sizes[axis]
            pieces = [
                np.take(elements, range(first, first + size), axis)
                for first in range(elements.shape[axis] - size + 1)
            ]
            elements = self._chosen(pieces, start.item(), kind, type)
        return [elements]

    def _chosen(self, pieces, place, kind, type) -> Elements:
        """The piece of this number, or the nearest one."""
        if number(place):
            return pieces[min(max(int(place), 0), len(pieces) - 1)]
        result = pieces[0]
        for i, piece in enumerate(pieces[1:], 1):
            how = ">=" if i == len(pieces) - 1 else "=="
            condition = self.compare(how, place, i, kind)
            result = elementwise(
                lambda x, y: self.select(condition, x, y, type), piece, result
            )
        return result

    def dynamic_update_slice(self, equation, elements, update, *starts):
        shape, sizes = equation.invars[0].aval.shape, equation.invars[1].aval.shape
        moving = [i for i, n in enumerate(sizes) if n != shape[i]]
        if len(moving) > 1:
            raise Unsupported("it writes to a place that moves along two axes")
        if not moving:
            return [update]
        (axis,) = moving
        pieces = []
        for first in range(shape[axis] - sizes[axis] + 1):
            updated = elements.copy()
            place = [slice(None)] * updated.ndim
            place[axis] = slice(first, first + sizes[axis])
            updated[tuple(place)] = update
            pieces.append(updated)
        kind, type = (
            scalar_type(equation.invars[2 + axis]),
            scalar_type(equation.outvars[0]),
        )
        return [self._chosen(pieces, starts[axis].item(), kind, type)]

    def moved(self, equation, *arguments):
        """Gather and scatter: JAX itself says which element goes where."""
        n = 2 if equation.primitive.name == "scatter" else 1
        operands, indices = [arguments[0], *arguments[2:]], arguments[1]
        if not all(map(number, indices.flat)):
            raise Unsupported("an index is computed in the program")
        if len(operands) != n:
            raise Unsupported(f"it uses {equation.primitive.name} in this form")
        shapes = [v.aval.shape for v in (equation.invars[0], *equation.invars[2:])]
        if any(TRACED in shape for shape in shapes) and TRACED in indices.shape:
            raise Unsupported("an index differs between lanes")
        sizes = [int(np.prod(short(shape))) for shape in shapes]
        offsets = np.cumsum([1, *sizes])
        numbered = [
            np.broadcast_to(np.arange(a, a + s).reshape(short(shape)), shape)
            for a, s, shape in zip(offsets, sizes, shapes, strict=False)
        ]
        indices = np.asarray(indices.tolist(), equation.invars[1].aval.dtype)
        params = equation.params
        if "fill_value" in params:
            params = params | {"fill_value": 0}
        places = equation.primitive.bind(numbered[0], indices, *numbered[1:], **params)
        places = np.asarray(places)
        lanes = [slice(0, 1) if n == TRACED else slice(None) for n in places.shape]
        flat = [math.nan, *itertools.chain(*(x.flat for x in operands))]
        places = places[tuple(lanes)]
        return [array(places.shape, [flat[i] for i in places.flat])]

    def scattered(self, equation, elements, indices, updates, function):
        """Scatter that combines: what a gather takes to a place is put there."""
        if not all(map(number, indices.flat)):
            raise Unsupported("an index is computed in the program")
        shapes = [v.aval.shape for v in equation.invars]
        if TRACED in shapes[1]:
            raise Unsupported("an index differs between lanes")
        places, dtype = array(shapes[1], indices.flat), equation.invars[1].aval.dtype
        add = functools.partial(
            jax.lax.scatter_add,
            jax.numpy.zeros(shapes[0]),
            jax.numpy.asarray(places.tolist(), dtype),
            dimension_numbers=equation.params["dimension_numbers"],
            mode=equation.params["mode"],
        )
        transposed = jax.linear_transpose(add, jax.numpy.zeros(shapes[2]))
        numbered = 1.0 + np.arange(elements.size).reshape(elements.shape)
        (targets,) = transposed(np.broadcast_to(numbered, shapes[0]).copy())
        lanes = [slice(0, 1) if n == TRACED else slice(None) for n in shapes[2]]
        type, result = scalar_type(equation.invars[0]), elements.copy()
        for target, x in zip(targets[tuple(lanes)].ravel(), updates.flat, strict=True):
            if target:  # others lie outside
                place = int(target) - 1
                result.flat[place] = function(result.flat[place], x, type)
        return [result]

    # Sums

    def reduced(self, equation, elements, function):
        axes = equation.params["axes"]
        if any(equation.invars[0].aval.shape[a] == TRACED for a in axes):
            raise Unsupported("it adds up, or compares, lanes")
        type = scalar_type(equation.invars[0])
        remaining = [a for a in range(elements.ndim) if a not in axes]
        shape = tuple(elements.shape[a] for a in remaining)
        columns = elements.transpose(*axes, *remaining).reshape(-1, math.prod(shape))
        combine = lambda x, y: function(x, y, type)
        return [array(shape, (functools.reduce(combine, c) for c in columns.T))]

    def dot_general(self, equation, left, right):
        (sum_left, sum_right), (same_left, same_right) = equation.params[
            "dimension_numbers"
        ]
        shapes = [v.aval.shape for v in equation.invars]
        if any(shapes[0][a] == TRACED for a in sum_left):
            raise Unsupported("it adds up lanes")
        free_left = [a for a in range(left.ndim) if a not in (*sum_left, *same_left)]
        free_right = [
            a for a in range(right.ndim) if a not in (*sum_right, *same_right)
        ]
        group = lambda x, *axes: [math.prod(x.shape[a] for a in some) for some in axes]
        a = left.transpose(*same_left, *free_left, *sum_left)
        b = right.transpose(*same_right, *free_right, *sum_right)
        a = a.reshape(group(left, same_left, free_left, sum_left))
        b = b.reshape(group(right, same_right, free_right, sum_right))

        kinds = [scalar_type(v) for v in equation.invars]
        type = scalar_type(equation.outvars[0])

        def product(x, y):
            x, y = (
                [self.convert(e, kind, type) for e in row]
                for row, kind in zip((x, y), kinds, strict=True)
            )
            terms = (self.multiply(*pair, type) for pair in zip(x, y, strict=True))
            zero = 0.0 if type is DOUBLE else 0
            return functools.reduce(lambda a, b: self.add(a, b, type), terms, zero)

        results = [
            product(x, y)
            for rows, columns in zip(a, b, strict=True)
            for x in rows
            for y in columns
        ]
        return [array(shape_of(equation.outvars[0]), results)]


# Shapes


def array(shape: Sequence[int], elements) -> Elements:
    """An array of objects."""
    result = np.empty(shape, object)
    flat = list(elements)
    for i, x in enumerate(flat):
        result.flat[i] = x
    return result


def elementwise(function: Callable, *arguments: Elements) -> Elements:
    arguments = np.broadcast_arrays(*arguments)
    return array(arguments[0].shape, map(function, *(x.flat for x in arguments)))


def shape_of(variable) -> tuple[int, ...]:
    """Shape of the elements of a variable."""
    return short(variable.aval.shape)


def short(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with lanes as that of the elements."""
    if any(n > TRACED and n % TRACED == 0 for n in shape):
        raise Unsupported("it joins the axis of lanes with others")
    if sum(n == TRACED for n in shape) > 1:
        raise Unsupported("it pairs lanes with one another")
    return tuple(1 if n == TRACED else n for n in shape)


def scalar_type(variable) -> Type:
    name = str(variable.aval.dtype)
    if name not in TYPES:
        raise Unsupported(f"it uses numbers of type {name}")
    return TYPES[name]


def bits_type(variable) -> Type:
    """Type of a number whose bits are used one by one: its sign does not matter."""
    return INT64 if variable.aval.dtype == "uint64" else scalar_type(variable)


def opened(closed) -> tuple[Any, list]:
    """A jaxpr and its constants, as elements."""
    jaxpr = getattr(closed, "jaxpr", closed)
    return jaxpr, [elements_of(x) for x in getattr(closed, "consts", ())]


def _stacked(outside: Sequence, inside: Sequence) -> int:
    """How many variables of a loop are rows of arrays outside: with an axis more."""
    pairs = zip(outside, inside, strict=True)
    return sum(len(a.aval.shape) > len(b.aval.shape) for a, b in pairs)


def elements_of(x: Any) -> Elements:
    """Elements of an array that is known."""
    x = np.asarray(x)
    for axis in (a for a, n in enumerate(x.shape) if n == TRACED):
        slab = x.take([0], axis)
        if (x != slab).any():
            raise Unsupported("a constant differs between lanes")
        x = slab
    return array(x.shape, x.ravel().tolist())


def _wide(x: Value) -> bool:
    return isinstance(x.type, ir.VectorType)
