"""Programs for an NVIDIA GPU: a thread for each lane, run by the driver of CUDA.

LLVM writes assembly (PTX), which the driver compiles for its card.  Arrays are those of
JAX, in the memory of the card.  Products and sums are rounded as on a processor, and
fused where the program says so, so that both give the same bits.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
from jax.sharding import SingleDeviceSharding
from llvmlite import ir

from statmech_attn.native.arithmetic import INT32, INT64, Unsupported, Value
from statmech_attn.native.machine_code import machine_code, optimised


LEVEL = 3  # of optimisation
THREADS = 64  # of a block: a program may need all registers that 256 threads have
TRIPLE, FEATURES = "nvptx64-nvidia-cuda", "+ptx80"  # for drivers since CUDA 12.0
LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"  # mathematical functions, below CUDA


class Gpu:
    """A program on a GPU, a device of JAX."""

    lanes = 1  # of a thread
    names = "__nv_{}"  # names of functions in CUDA's mathematical library

    def __init__(self, device: Any):
        self._device = device
        self._function = ctypes.c_void_p()

    def begin(self, function: ir.Function, builder: ir.IRBuilder) -> list[Value]:
        """The first lane of a thread, and lanes from there to its next one."""
        function.calling_convention = "ptx_kernel"

        def register(name: str) -> Value:
            name = f"llvm.nvvm.read.ptx.sreg.{name}"
            read = ir.Function(function.module, ir.FunctionType(INT32, []), name)
            return builder.zext(builder.call(read, []), INT64)

        threads = register("ntid.x")
        first = builder.add(
            builder.mul(register("ctaid.x"), threads), register("tid.x")
        )
        return [first, builder.mul(register("nctaid.x"), threads)]

    def load(self, text: str, name: str, n_arrays: int) -> None:
        """Compile a program, or take it from the store.

        `name` is its function's, `n_arrays` counts arguments and results.
        `Unsupported` where the driver, such as one that is too old, cannot load it.
        """
        target = f"sm_{self._device.compute_capability.replace('.', '')}"
        compile = lambda: assembly(text, name, target).encode()
        code = machine_code((text, target, FEATURES, str(LEVEL)), compile)
        module, function = ctypes.c_void_p(), ctypes.byref(self._function)
        try:
            with _Context(self._device) as driver:
                driver("cuModuleLoadData", ctypes.byref(module), code)
                driver("cuModuleGetFunction", function, module, name.encode())
        except (OSError, RuntimeError) as error:
            raise Unsupported(f"its program cannot be loaded: {error}") from None

    def placed(self, x: Any, dtype: np.dtype) -> jax.Array:
        """An argument where the program reads it."""
        return jax.device_put(jnp.asarray(x, dtype), self._device)

    def blank(self, shapes: Sequence[jax.ShapeDtypeStruct]) -> list[jax.Array]:
        """Arrays for results."""
        return _zeros(tuple((s.shape, s.dtype) for s in shapes), self._device)()

    def __call__(self, arrays: Sequence[jax.Array], count: int) -> None:
        """Run the program, and wait for it."""
        jax.block_until_ready(arrays)
        values: list[Any] = [ctypes.c_void_p(x.unsafe_buffer_pointer()) for x in arrays]
        values.append(ctypes.c_int64(count))
        parameters = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        blocks = max(1, -(-count // THREADS))
        sizes = map(ctypes.c_uint, (blocks, 1, 1, THREADS, 1, 1, 0))
        with _Context(self._device) as driver:
            stream = ctypes.c_void_p()
            driver("cuLaunchKernel", self._function, *sizes, stream, parameters, None)
            driver("cuStreamSynchronize", stream)


def assembly(text: str, name: str, target: str) -> str:
    """The function `name` of a program in PTX, for an architecture such as `sm_90`.

    `Unsupported` where it needs functions of CUDA's library, which is not found.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=target, features=FEATURES, opt=LEVEL
    )
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    if "@__nv_" in text.replace('"', ""):
        module.link_in(llvm.parse_bitcode(_libdevice().read_bytes()))
        for function in module.functions:
            if not function.is_declaration and function.name != name:
                function.linkage = "internal"
    return machine.emit_assembly(optimised(module, machine, LEVEL))


def _libdevice() -> Path:
    """The library of CUDA, of JAX's own packages or of the system."""
    wheels = [Path(folder, "nvidia") for folder in sys.path]
    systems = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    roots = [part for wheel in wheels for part in sorted(wheel.glob("*"))] + systems
    for root in roots:
        if (root / LIBDEVICE).exists():
            return root / LIBDEVICE
    raise Unsupported("it uses functions of CUDA's libdevice, which is not found")


@functools.cache
def _zeros(shapes: tuple, device: Any) -> Callable[[], list[jax.Array]]:
    """Arrays of zeros on a device; XLA has no others."""
    make = lambda: [jnp.zeros(*shape) for shape in shapes]
    return jax.jit(make, out_shardings=SingleDeviceSharding(device))


class _Context:
    """The context that JAX has on a card, current in this thread for a while."""

    def __init__(self, device: Any):
        self._ordinal = ctypes.c_int(device.local_hardware_id)

    def __enter__(self) -> Callable[..., None]:
        number, context = ctypes.c_int(), ctypes.c_void_p()
        _driver("cuInit", ctypes.c_uint(0))
        _driver("cuDeviceGet", ctypes.byref(number), self._ordinal)
        _driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        _driver("cuCtxPushCurrent_v2", context)
        self._number = number
        return _driver

    def __exit__(self, *_: object) -> None:
        _driver("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        _driver("cuDevicePrimaryCtxRelease_v2", self._number)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")


def _driver(name: str, *arguments: Any) -> None:
    """Call a function of CUDA's driver; `RuntimeError` where it fails."""
    code = getattr(_library(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _library().cuGetErrorString(code, ctypes.byref(text))
        reason = text.value.decode() if text.value else f"error {code}"
        raise RuntimeError(f"CUDA's {name} failed: {reason}.")
