"""Machine code of native programs: optimised by LLVM, stored beside XLA's programs.

An entry is named by a digest of what the code depends on: the text of the program, the
processor, LLVM, and the passes.  It begins with a digest of the code itself, so that an
entry that was cut off or damaged is compiled anew.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import llvmlite
import llvmlite.binding as llvm


PASSES = dict(loop_vectorization=False, slp_vectorization=False, loop_unrolling=False)
VERSIONS = (llvmlite.__version__, str(llvm.llvm_version_info))
FOLDER = "llvm"  # below the store of JAX
DIGEST = hashlib.sha256


def optimised(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int):
    """A module after the passes of LLVM that straight-line code gains from.

    Args:
        module: that is changed.
        machine: for which.
        level: of optimisation.
    """
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    for name, on in PASSES.items():
        setattr(options, name, on)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return module


def machine_code(parts: Sequence[str], compile: Callable[[], bytes]) -> bytes:
    """The stored code of a program, or the one that is compiled and stored now.

    Without a store of JAX (`jax_compilation_cache_dir`), or where it cannot be written,
    every process compiles.

    Args:
        parts: all that the code depends on, beside LLVM and its passes.
        compile: makes it.
    """
    folder = _folder()
    if folder is None:
        return compile()
    parts = (*parts, *VERSIONS, str(PASSES))
    path = folder / DIGEST("\0".join(parts).encode()).hexdigest()
    code = _read(path)
    if code is None:
        code = compile()
        with contextlib.suppress(OSError):
            _write(path, code)
    return code


def _folder() -> Path | None:
    store = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if not store or "://" in store or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return None
    return Path(store) / FOLDER


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = DIGEST().digest_size
    intact = DIGEST(content[size:]).digest() == content[:size]
    return content[size:] if intact else None


def _write(path: Path, code: bytes) -> None:
    """Other processes see the whole entry or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(DIGEST(code).digest() + code)
    os.replace(file.name, path)
