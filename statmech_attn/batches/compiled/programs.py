"""Programs of batches: functions compiled for one width of batches, or for several."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from statmech_attn.batches.compiled.cached_property import once
from statmech_attn.batches.compiled.kept_programs import kept, OPTIONS, Origin
from statmech_attn.batches.hardware import devices, has_cuda, on_cpu, workers
from statmech_attn.batches.runtime import FUSED, has_fused


NARROW = (8, 32)  # widths of batches for few points
OVERHEAD = 5  # time that a batch of any width takes, in lanes
FASTER = 'compiler = "llvm", which makes scans about 5 times faster,'
CPU_OPTIONS = {
    "xla_cpu_prefer_vector_width": 512,
    "xla_cpu_multi_thread_eigen": False,
    **({FUSED: True} if has_fused() else {}),
}


class Compiled:
    """A function compiled once for fixed shapes, with the options of this device.

    The last axis of an argument is the lanes, unless it has no axes.  Where there are
    several devices, each computes its part of the lanes.  An array of the result whose
    shape does not depend on the number of lanes must not depend on them otherwise.  The
    first `shared` arguments belong to all lanes as a whole; `origin` is all that the
    program depends on, if other processes may load it.
    """

    def __init__(
        self,
        function: Callable,
        *examples: Any,
        shared: int = 0,
        origin: Origin | None = None,
    ):
        self._places = _places(examples, shared)
        chosen = devices()
        options = CPU_OPTIONS if chosen[0].platform == "cpu" else {}
        if len(chosen) > 1:
            examples = jax.tree.map(_shape, examples)  # not where they lie
            function = _on_parts(function, examples, self._places)
        clock, processors = time.perf_counter(), time.process_time()
        storable = origin is not None and on_cpu()
        options = options | OPTIONS if storable else options
        jitted = jax.jit(function, in_shardings=self._places, compiler_options=options)
        lower = lambda: jitted.lower(*examples)
        if origin is not None and storable:
            self._call = kept(origin, function, examples, lower)
        else:
            self._call = lower().compile()
        self.seconds = time.perf_counter() - clock
        self.seconds = min(self.seconds, time.process_time() - processors)

    @property
    def bytes(self) -> int:
        """Memory of one call on each device: arguments, results, what lies between."""
        use = self._call.memory_analysis()
        parts = ("argument", "output", "temp")
        return sum(getattr(use, f"{part}_size_in_bytes", 0) for part in parts)

    def __call__(self, *args: Any) -> Any:
        placed = jax.device_put(args, self._places)
        return jax.block_until_ready(self._call(*placed))


def _places(examples: Sequence[Any], shared: int) -> tuple:
    """Shardings of arguments: lanes over the devices, all else on each of them.

    Lanes that the devices cannot share evenly are computed by all of them.
    """
    chosen = devices()
    mesh = Mesh(np.array(chosen), ("lanes",))

    def place(x, parted: bool) -> NamedSharding:
        parted &= np.ndim(x) > 0 and np.shape(x)[-1] % len(chosen) == 0
        spec = [*[None] * (np.ndim(x) - 1), "lanes"] if parted else []
        return NamedSharding(mesh, PartitionSpec(*spec))

    return tuple(
        jax.tree.map(lambda x, i=i: place(x, i >= shared), argument)
        for i, argument in enumerate(examples)
    )


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    dtype = jax.dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)  # keys
    return jax.ShapeDtypeStruct(np.shape(x), dtype)


def _on_parts(function: Callable, examples: tuple, places: tuple) -> Callable:
    """The function of all lanes, of these shapes, as one of the lanes of a device."""
    part = lambda x, place: jax.ShapeDtypeStruct(place.shard_shape(x.shape), x.dtype)
    results = jax.eval_shape(function, *examples)
    parts = jax.eval_shape(function, *jax.tree.map(part, examples, places))
    spec = lambda x, y: PartitionSpec(
        *(None if n == m else "lanes" for n, m in zip(x.shape, y.shape, strict=True))
    )
    mesh = Mesh(np.array(devices()), ("lanes",))
    return jax.shard_map(
        function,
        mesh=mesh,
        in_specs=jax.tree.map(lambda p: p.spec, places),
        out_specs=jax.tree.map(spec, results, parts),
        check_vma=False,
    )


class TwoPrograms:
    """A program of batches of some width, and what XLA makes of its last results.

    `passed` results of the first program are passed on as they are; `n_bytes` and
    `seconds` are those of the first program.
    """

    def __init__(
        self,
        first: Callable,
        rest: Compiled | None,
        passed: int,
        n_bytes: int,
        seconds: float = 0.0,
    ):
        self._first, self._rest, self._passed = first, rest, passed
        self.bytes = n_bytes + (rest.bytes if rest else 0)
        self.seconds = seconds + (rest.seconds if rest else 0.0)

    def __call__(self, *args: Any) -> Any:
        results = self._first(*args)
        if self._rest is None:
            return results
        last = self._rest(*results[self._passed :])
        return (*results[: self._passed], last) if self._passed else last


class NotInstalled(ValueError):
    """What makes native programs is missing."""


class Unsuited(ValueError):
    """A system of which there is no native program; `why`, in a few words."""

    def __init__(self, why: str):
        super().__init__(
            f'compiler = "llvm" cannot take this system: {why}; use "xla".'
        )
        self.why = why


def require_native() -> None:
    """Raise `ValueError` where there can be no native programs."""
    chosen = devices()
    if not on_cpu() and not (len(chosen) == 1 and has_cuda(chosen[0])):
        raise ValueError(
            'compiler = "llvm" makes programs for one CPU or one NVIDIA GPU; set '
            "JAX_PLATFORMS=cpu, or CUDA_VISIBLE_DEVICES=0."
        )
    try:
        from statmech_attn.native import Native  # noqa: F401
    except ImportError:
        raise NotInstalled(f"{FASTER} needs llvmlite: pip install llvmlite.") from None


def _natively(
    native: Callable,
    function: Callable | None,
    examples: Callable[[int], tuple],
    shared: int,
    passed: int,
    origin: Origin | None,
) -> Callable[[int], TwoPrograms]:
    """How a width is compiled: its native program is that of every width."""
    require_native()
    from statmech_attn.native import Native, Unsupported

    try:
        device = None if on_cpu() else devices()[0]
        program = Native(
            native, examples, shared, device=device, origin=origin and origin.parts
        )
    except Unsupported as error:
        raise Unsuited(str(error)) from None

    def compile(lanes: int) -> TwoPrograms:
        if function is None:
            return TwoPrograms(program, None, passed, program.bytes(lanes))
        rest = Compiled(function, *program.results(lanes)[passed:], origin=origin)
        return TwoPrograms(program, rest, passed, program.bytes(lanes))

    return compile


def _in_turn(
    first: Callable, examples: tuple, function: Callable, passed: int, how: dict
) -> TwoPrograms:
    program = Compiled(first, *examples, **how)
    results = jax.tree.map(_shape, jax.eval_shape(first, *examples)[passed:])
    rest = Compiled(function, *results, origin=how["origin"])
    return TwoPrograms(program, rest, passed, program.bytes, program.seconds)


class _Program:
    """The program of one width, compiled once, whichever thread asks first."""

    def __init__(self, compile: Callable[[], Compiled | TwoPrograms]):
        self._compile = compile

    @property
    def ready(self) -> bool:
        return "compiled" in vars(self)

    @once
    def compiled(self) -> Compiled | TwoPrograms:
        return self._compile()


class Stage:
    """A function of batches: compiled for full ones, and for narrow ones where it pays.

    Few points in a full batch cost as much as a full batch of them, and a wider
    program has the same numbers: only time decides between the widths.  A program of
    `native` computes first, or of `first` by XLA; `function` takes the results, but for
    those that are `passed` on.
    """

    def __init__(
        self,
        function: Callable | None,
        examples: Callable[[int], tuple],
        lanes: int,
        shared: int = 0,
        any_width: bool = True,
        native: Callable | None = None,
        first: Callable | None = None,
        passed: int = 0,
        origin: Origin | None = None,
    ):
        if native is not None:
            compile = _natively(native, function, examples, shared, passed, origin)
        else:
            assert function is not None
            how: dict[str, Any] = dict(shared=shared, origin=origin)
            compile = lambda n: Compiled(function, *examples(n), **how)
            if first is not None:
                compile = lambda n: _in_turn(first, examples(n), function, passed, how)
        self.lanes = lanes
        any_width |= function is None
        any_width &= (has_fused() or function is None) and on_cpu()
        narrow = [n for n in NARROW if n < lanes and any_width]
        self._programs = {n: _Program(lambda n=n: compile(n)) for n in (*narrow, lanes)}
        self._full = self._programs[lanes].compiled
        if function is None:  # nothing to compile for a width
            for program in self._programs.values():
                assert program.compiled
        self._rate = 0.0  # seconds per unit of work and lane; 0: not measured
        self._wasted = 0.0  # seconds that narrower batches would have saved so far

    @property
    def bytes(self) -> int:
        """Memory of one full batch."""
        return self._full.bytes

    @property
    def narrow_seconds(self) -> float:
        """What it takes to make the programs of all narrow widths ready.

        Each takes as long as the full one did; a moment where the user's cache has it.
        """
        return (len(self._programs) - 1) * self._full.seconds

    def part_of_batch(self, n_points: float) -> float:
        """Cost of so many points on average, in full batches, at the best width."""
        if n_points <= 0:
            return 0.0
        full = max(self._programs)
        batches = lambda width: max(n_points / width, 1 - math.exp(-n_points))
        return min(batches(n) * self.cost(n) / full for n in self._programs)

    def cost(self, lanes: int) -> float:
        """Time of a batch of this width, in points of full batches."""
        full = max(self._programs)
        return full * (lanes + OVERHEAD) / (full + OVERHEAD)

    def __call__(self, lanes: int, *args: Any) -> Any:
        return self.program(lanes)(*args)

    def program(self, lanes: int) -> Compiled | TwoPrograms:
        """What computes batches of this width: compiled when first asked for."""
        return self._programs[lanes].compiled

    def width(self, n_points: int, work: float) -> int:
        """Lanes of the batches for so many points, `work` units for each of them.

        A narrow width is compiled once batches of it would have saved, in all calls,
        what that takes.  An accelerator, where time hardly depends on the width, has
        none.
        """
        time_of = lambda lanes: _rounds(n_points, lanes) * (lanes + OVERHEAD)
        best, ready = min(self._programs, key=time_of), self._ready()
        if best not in ready:
            saved = time_of(min(ready, key=time_of)) - time_of(best)
            self._wasted += saved * work * self._rate
            if self._wasted > self._full.seconds:
                self._wasted = 0.0
                self.program(best)
        return min(self._ready(), key=time_of)

    def _ready(self) -> list[int]:
        """Widths that are compiled; once among them, a width stays."""
        return [n for n, program in self._programs.items() if program.ready]

    def seconds(self, n_points: int, work: float) -> float:
        """What so many points will take, by the last run; 0 before the first."""
        lanes_done = min(_rounds(n_points, n) * (n + OVERHEAD) for n in self._ready())
        return self._rate * work * lanes_done

    def measured(self, n_points: int, lanes: int, work: float, seconds: float) -> None:
        """Learn from a run of all batches of these points."""
        if work > 0:
            lanes_done = _rounds(n_points, lanes) * (lanes + OVERHEAD)
            self._rate = seconds / (work * lanes_done)


def _rounds(n_points: int, lanes: int) -> int:
    """How often every worker takes a batch."""
    return -(-n_points // (lanes * workers()))
