"""Programs for the processor: blocks of a few lanes, one after the other."""

import ctypes
import re
import threading
from collections.abc import Sequence
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from statmech_attn.native.arithmetic import INT64, Value
from statmech_attn.native.machine_code import machine_code, optimised


LEVEL = 2  # of optimisation
_lock = threading.Lock()  # of LLVM, which is asked by one thread at a time


class Processor:
    """A program in machine code of this processor, with `lanes` of a block."""

    names = "{}"  # names of functions in the system's mathematical library

    def __init__(self, lanes: int):
        self.lanes = lanes
        self._engine: Any = None  # owns the code
        self._function: Any = None

    def begin(self, function: ir.Function, builder: ir.IRBuilder) -> list[Value]:
        """The first lane of a call, and lanes from one block to the next."""
        return [INT64(0), INT64(self.lanes)]

    def load(self, text: str, name: str, n_arrays: int) -> None:
        """Compile a program, or take it from the store.

        `name` is its function's, `n_arrays` counts arguments and results.
        """
        text = _with_wide_vectors(text, name)
        with _lock:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            cpu = llvm.get_host_cpu_name()
            features = llvm.get_host_cpu_features().flatten()
            machine = llvm.Target.from_default_triple().create_target_machine(
                cpu=cpu, features=features, opt=LEVEL
            )
            compile = lambda: machine.emit_object(
                optimised(llvm.parse_assembly(text), machine, LEVEL)
            )
            code = machine_code((text, cpu, features, str(LEVEL)), compile)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            address = self._engine.get_function_address(name)
        types = [ctypes.c_void_p] * n_arrays + [ctypes.c_int64]
        self._function = ctypes.CFUNCTYPE(None, *types)(address)

    def placed(self, x: Any, dtype: np.dtype) -> np.ndarray:
        """An argument where the program reads it."""
        return np.ascontiguousarray(x, dtype)

    def blank(self, shapes: Sequence[jax.ShapeDtypeStruct]) -> list[np.ndarray]:
        """Arrays for results."""
        return [np.empty(s.shape, s.dtype) for s in shapes]

    def __call__(self, arrays: Sequence[np.ndarray], count: int) -> None:
        """Run the program; other threads go on meanwhile."""
        self._function(*(x.ctypes.data for x in arrays), count)


def _with_wide_vectors(text: str, name: str) -> str:
    """Let LLVM use vectors of 512 bits also where it prefers shorter ones."""
    define = re.compile(rf'^(define void @"?{name}"?\([^)]*\))', re.MULTILINE)
    text = define.sub(r"\1 #0", text)
    return (
        f'{text}\nattributes #0 = {{ "prefer-vector-width"="512" '
        f'"min-legal-vector-width"="512" }}\n'
    )
