"""Machine code of native programs: optimised by LLVM, stored beside XLA's programs.

It depends on the text of the program, the processor, LLVM, and the passes.
"""

from collections.abc import Callable, Sequence

import llvmlite
import llvmlite.binding as llvm

from statmech_attn import kept_files


PASSES = dict(loop_vectorization=False, slp_vectorization=False, loop_unrolling=False)
VERSIONS = (llvmlite.__version__, str(llvm.llvm_version_info))
FOLDER = "llvm"  # below the store of JAX


def optimised(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int):
    """The module, changed by the passes of LLVM that straight-line code gains from."""
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    for name, on in PASSES.items():
        setattr(options, name, on)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return module


def machine_code(parts: Sequence[str], compile: Callable[[], bytes]) -> bytes:
    """The stored code of a program, or the one that is compiled and stored now.

    `parts` are all that the code depends on, beside LLVM and its passes.
    """
    parts = (*parts, *VERSIONS, str(PASSES))
    code = kept_files.read(FOLDER, parts)
    if code is None:
        code = compile()
        kept_files.write(FOLDER, parts, code)
    return code
