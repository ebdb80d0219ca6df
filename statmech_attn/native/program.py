"""A function of batches as a program of LLVM: `Native`, beside `programs.Compiled`.

Lanes go through the program in blocks of a few, one block after the other, so that
states and frames stay in registers and in the first cache.  Numbers do not depend on
the number of lanes, on their blocks, or on the processor.
"""

import ctypes
import math
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import llvmlite
import llvmlite.binding as llvm
import numpy as np
from jax.extend.core import Literal
from llvmlite import ir

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
from statmech_attn.native.machine_code import machine_code
from statmech_attn.native.rules import RULES


NAME = "blocks"
LEVEL = 2  # of optimisation
PASSES = dict(loop_vectorization=False, slp_vectorization=False, loop_unrolling=False)
BYTE, POINTER = ir.IntType(8), ir.PointerType()


class Native:
    """A function compiled once for any number of lanes.

    The last axis of an argument is the lanes, unless it has no axes; as `Compiled`.

    Args:
        function: of batches; of operations that `Emitter` knows.
        examples: its arguments for a batch of a given number of lanes.
        shared: how many of the first arguments belong to all lanes as a whole.
        lanes: of a block.

    Raises:
        Unsupported: the function has operations that cannot be written so.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> logistic = lambda r, x: r * x * (1 - x)
        >>> program = Native(logistic, lambda lanes: (np.zeros(lanes), np.zeros(lanes)))
        >>> program(np.array([2.0, 4.0]), np.array([0.5, 0.25])).tolist()
        [0.5, 0.75]
    """

    def __init__(
        self,
        function: Callable,
        examples: Callable[[int], tuple],
        shared: int = 0,
        lanes: int = 8,
    ):
        clock, processors = time.perf_counter(), time.process_time()
        self.lanes = lanes
        shapes = jax.tree.map(_shape, examples(TRACED))
        closed, out = jax.make_jaxpr(function, return_shape=True)(*shapes)
        self._structure = jax.tree.structure(out)
        self._inputs = [_place(v) for v in closed.jaxpr.invars]
        self._outputs = [_place(v) for v in closed.jaxpr.outvars]
        self._run = _Loaded(_written(closed, lanes))
        self.seconds = time.perf_counter() - clock
        self.seconds = min(self.seconds, time.process_time() - processors)

    def results(self, lanes: int) -> Any:
        """Shapes and types of what a call returns.

        Args:
            lanes: of the batch.
        """
        shapes = [jax.ShapeDtypeStruct(p.shape(lanes), p.dtype) for p in self._outputs]
        return jax.tree.unflatten(self._structure, shapes)

    def bytes(self, lanes: int) -> int:
        """Memory of the arguments and results of a call.

        Args:
            lanes: of the batch.
        """
        places = (*self._inputs, *self._outputs)
        return sum(p.dtype.itemsize * math.prod(p.shape(lanes)) for p in places)

    def __call__(self, *args: Any) -> Any:
        leaves = [
            np.ascontiguousarray(x, place.dtype)
            for x, place in zip(jax.tree.leaves(args), self._inputs, strict=True)
        ]
        points = next(
            x.shape[p.axis]
            for x, p in zip(leaves, self._inputs, strict=True)
            if p.axis is not None
        )
        if points % self.lanes:
            filled = -(-points // self.lanes) * self.lanes
            pad = lambda x, p: _padded(x, p.axis, filled)
            leaves = list(map(pad, leaves, self._inputs))
        count = -(-points // self.lanes) * self.lanes
        results = [np.empty(p.shape(count), p.dtype) for p in self._outputs]
        self._run(leaves + results, count)
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


def _written(closed, lanes: int) -> str:
    """The program in LLVM's language: void blocks(arrays, number of lanes)."""
    module = ir.Module(NAME)
    module.triple = llvm.get_process_triple()
    type = ir.FunctionType(ir.VoidType(), [POINTER, INT64])
    function = ir.Function(module, type, NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emitter = Emitter(module, lanes, RULES)
    emitter.builder = builder
    jaxpr = closed.jaxpr
    arrays, count = function.args
    variables = [*jaxpr.invars, *jaxpr.outvars]
    addresses = [
        builder.load(builder.gep(arrays, [INT64(i)], source_etype=POINTER), typ=POINTER)
        for i in range(len(variables))
    ]
    entry = builder.block
    head, body, end = map(function.append_basic_block, ("lanes", "block", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    first = builder.phi(INT64)
    first.add_incoming(INT64(0), entry)
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
    first.add_incoming(builder.add(first, INT64(lanes)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)
    builder.ret_void()
    return _with_wide_vectors(str(module), lanes)


class _Array:
    """An argument or a result in memory, of which a block takes its lanes.

    Args:
        emitter: writes the program.
        variable: that stands in the array.
        pointer: to its first element.
        first: lane of the block.
        count: number of lanes of the array.
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


def _with_wide_vectors(text: str, lanes: int) -> str:
    """Let LLVM use vectors of 512 bits also where it prefers shorter ones."""
    define = re.compile(rf'^(define void @"?{NAME}"?\([^)]*\))', re.MULTILINE)
    text = define.sub(r"\1 #0", text)
    return (
        f'{text}\nattributes #0 = {{ "prefer-vector-width"="512" '
        f'"min-legal-vector-width"="512" }}\n'
    )


def _compiled(text: str, machine) -> bytes:
    """Machine code of a program, as an object file."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    for name, on in PASSES.items():
        setattr(options, name, on)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


class _Loaded:
    """A program in machine code of this processor."""

    _lock = threading.Lock()
    _ready = False

    def __init__(self, text: str):
        with _Loaded._lock:
            if not _Loaded._ready:
                llvm.initialize_native_target()
                llvm.initialize_native_asmprinter()
                _Loaded._ready = True
            cpu = llvm.get_host_cpu_name()
            features = llvm.get_host_cpu_features().flatten()
            machine = llvm.Target.from_default_triple().create_target_machine(
                cpu=cpu, features=features, opt=LEVEL
            )
            versions = llvmlite.__version__, str(llvm.llvm_version_info)
            parts = (text, cpu, features, *versions, f"{LEVEL} {PASSES}")
            code = machine_code(parts, lambda: _compiled(text, machine))
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            address = self._engine.get_function_address(NAME)
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        self._function = signature(address)

    def __call__(self, arrays: list[np.ndarray], count: int) -> None:
        """Run it; other threads go on meanwhile."""
        addresses = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
        self._function(ctypes.addressof(addresses), count)
