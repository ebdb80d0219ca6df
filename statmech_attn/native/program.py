"""A function of batches as a program of LLVM: `Native`, beside `programs.Compiled`.

On a processor lanes go through the program in blocks of a few, one block after the
other, and on a GPU each in a thread of its own, so that states and frames stay in
registers and in the first cache.  Numbers do not depend on the number of lanes, on
their blocks, or on what computes them.
"""

import math
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal
from llvmlite import ir

from statmech_attn import kept_files
from statmech_attn.native.arithmetic import BOOL, INT32, INT64, Type, Value
from statmech_attn.native.emitter import (
    array,
    elements_of,
    Emitter,
    scalar_type,
    shape_of,
    TRACED,
    Unsupported,
)
from statmech_attn.native.gpu import Gpu
from statmech_attn.native.processor import Processor
from statmech_attn.native.rules import RULES


NAME = "blocks"
FOLDER = "native"  # below the store of JAX
BYTE, POINTER = ir.IntType(8), ir.PointerType()


class Native:
    """A function compiled once for any number of lanes.

    The last axis of an argument is the lanes, unless it has no axes; as `Compiled`.
    `lanes` are those of a block of a processor; `device` is an NVIDIA GPU, None for the
    processor.  `Unsupported` is raised for operations that cannot be written so.
    """

    def __init__(
        self,
        function: Callable,
        examples: Callable[[int], tuple],
        shared: int = 0,
        lanes: int = 8,
        device: Any = None,
        origin: Callable[[Callable, tuple], Sequence[str]] | None = None,
    ):
        clock, processors = time.perf_counter(), time.process_time()
        self._machine: Any = Processor(lanes) if device is None else Gpu(device)
        self.lanes = self._machine.lanes
        shapes = jax.tree.map(_shape, examples(TRACED))
        text, self._inputs, self._outputs, results = self._program(
            function, shapes, origin
        )
        self._structure = jax.tree.structure(results)
        self._machine.load(text, NAME, len(self._inputs) + len(self._outputs))
        self.seconds = time.perf_counter() - clock
        self.seconds = min(self.seconds, time.process_time() - processors)

    def _program(self, function, shapes, origin):
        """Text, places of arguments and results, and numbers in the form of these."""
        machine = self._machine
        parts = [machine.names, str(machine.lanes)]
        if origin is not None:
            parts += origin(function, shapes)
            if (content := kept_files.read(FOLDER, parts)) is not None:
                return pickle.loads(content)
        closed, out = jax.make_jaxpr(function, return_shape=True)(*shapes)
        inputs, outputs = closed.jaxpr.invars, closed.jaxpr.outvars
        structure = jax.tree.structure(out)
        results = jax.tree.unflatten(structure, range(structure.num_leaves))
        places = [*map(_place, inputs)], [*map(_place, outputs)]
        program = _written(closed, machine), *places, results
        if origin is not None:
            kept_files.write(FOLDER, parts, pickle.dumps(program))
        return program

    def results(self, lanes: int) -> Any:
        """Shapes and types of what a call returns."""
        shapes = [place.struct(lanes) for place in self._outputs]
        return jax.tree.unflatten(self._structure, shapes)

    def bytes(self, lanes: int) -> int:
        """Memory of the arguments and results of a call."""
        places = (*self._inputs, *self._outputs)
        return sum(p.dtype.itemsize * math.prod(p.shape(lanes)) for p in places)

    def __call__(self, *args: Any) -> Any:
        leaves, machine = jax.tree.leaves(args), self._machine
        points = next(
            np.shape(x)[p.axis]
            for x, p in zip(leaves, self._inputs, strict=True)
            if p.axis is not None
        )
        count = -(-points // self.lanes) * self.lanes
        if count != points:
            pad = lambda x, p: _padded(np.asarray(x), p.axis, count)
            leaves = list(map(pad, leaves, self._inputs))
        arguments = [
            machine.placed(x, p.dtype)
            for x, p in zip(leaves, self._inputs, strict=True)
        ]
        results = machine.blank([p.struct(count) for p in self._outputs])
        machine(arguments + results, count)
        if count != points:
            results = [
                x if p.axis is None else x[..., :points]
                for x, p in zip(results, self._outputs, strict=True)
            ]
        return jax.tree.unflatten(self._structure, results)


class _Place:
    """Shape and type of an argument or a result."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype):
        self._shape, self.dtype = shape, dtype
        self.axis = shape.index(TRACED) if TRACED in shape else None

    def shape(self, lanes: int) -> tuple[int, ...]:
        return tuple(lanes if n == TRACED else n for n in self._shape)

    def struct(self, lanes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape(lanes), self.dtype)


def _place(variable) -> _Place:
    return _Place(variable.aval.shape, np.dtype(variable.aval.dtype))


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    x = np.asarray(x)
    return jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(x.dtype))


def _padded(x: np.ndarray, axis: int | None, count: int) -> np.ndarray:
    if axis is None:
        return x
    widths = [(0, count - n if a == axis else 0) for a, n in enumerate(x.shape)]
    return np.pad(x, widths, mode="edge")


def _written(closed, machine: Processor | Gpu) -> str:
    """The program in LLVM's language: void blocks(arrays ..., number of lanes)."""
    module = ir.Module(NAME)
    jaxpr = closed.jaxpr
    variables = [*jaxpr.invars, *jaxpr.outvars]
    type = ir.FunctionType(ir.VoidType(), [POINTER] * len(variables) + [INT64])
    function = ir.Function(module, type, NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emitter = Emitter(module, machine.lanes, RULES, machine.names)
    emitter.builder = builder
    *addresses, count = function.args
    start, stride = machine.begin(function, builder)
    entry = builder.block
    head, body, end = map(function.append_basic_block, ("lanes", "block", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    first = builder.phi(INT64)
    first.add_incoming(start, entry)
    builder.cbranch(builder.icmp_signed("<", first, count), body, end)
    builder.position_at_end(body)
    places = [
        _Array(emitter, variable, address, first, count)
        for variable, address in zip(variables, addresses, strict=True)
    ]
    inputs, outputs = places[: len(jaxpr.invars)], places[len(jaxpr.invars) :]
    arguments = [place.load() for place in inputs]
    for variable, place in zip(jaxpr.outvars, outputs, strict=True):
        if _only_returned(variable, jaxpr):
            emitter.streams[variable] = place.store
    constants = [elements_of(x) for x in closed.consts]
    results = emitter.run(jaxpr, constants, arguments)
    for elements, place in zip(results, outputs, strict=True):
        if elements is not None:
            place.store(0, elements)
    first.add_incoming(builder.add(first, stride), builder.block)
    builder.branch(head)
    builder.position_at_end(end)
    builder.ret_void()
    return str(module)


class _Array:
    """An argument or a result in memory, of which a block takes its lanes.

    The array of `count` lanes at `pointer` holds a `variable`; the block begins at lane
    `first`.
    """

    def __init__(self, emitter: Emitter, variable, pointer, first, count):
        shape = variable.aval.shape
        if TRACED in shape and shape[-1] != TRACED:
            raise Unsupported("lanes are not on the last axis")
        self._emitter, self._variable, self._pointer = emitter, variable, pointer
        self._first, self._count, self._wide = first, count, TRACED in shape
        self._is_bool = scalar_type(variable) is BOOL
        self._stored = BYTE if self._is_bool else scalar_type(variable)

    def _address(self, index) -> tuple[Value, Type]:
        """Address of an element, and its type there."""
        emitter, type = self._emitter, self._stored
        if self._wide:
            index = emitter.multiply(index, self._count, INT64)
            index = emitter.add(index, self._first, INT64)
            type = ir.VectorType(type, emitter.lanes)
        where = [emitter.value(index, INT64)]
        gep = emitter.builder.gep
        return gep(self._pointer, where, source_etype=self._stored), type

    def load(self):
        """All elements."""
        shape, builder = shape_of(self._variable), self._emitter.builder
        bits = self._emitter.vector(BOOL) if self._wide else BOOL
        loaded = []
        for i in range(math.prod(shape)):
            where, type = self._address(i)
            x = builder.load(where, align=_alignment(type), typ=type)
            loaded.append(builder.trunc(x, bits) if self._is_bool else x)
        return array(shape, loaded)

    def store(self, row, elements) -> None:
        """Store a row of an array, or an array whose only row is the first."""
        emitter = self._emitter
        for i, x in enumerate(elements.flat):
            index = emitter.add(emitter.multiply(row, elements.size, INT64), i, INT64)
            where, type = self._address(index)
            x = emitter.value(x, emitter.type_of(self._variable))
            if self._is_bool:
                x = emitter.builder.zext(x, type)
            emitter.builder.store(x, where, align=_alignment(type))


def _only_returned(variable, jaxpr) -> bool:
    """Whether a result is used by no operation, so that a loop may store it."""
    if isinstance(variable, Literal):
        return False
    uses = [v for equation in jaxpr.eqns for v in equation.invars]
    return not any(v is variable for v in uses) and jaxpr.outvars.count(variable) == 1


def _alignment(type: Type) -> int:
    element = type.element if isinstance(type, ir.VectorType) else type
    return 1 if element is BYTE else element.width // 8 if element is INT32 else 8
