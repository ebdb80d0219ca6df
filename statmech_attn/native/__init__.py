"""Functions of batches as programs of LLVM for a few lanes (llvmlite)."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.native.arithmetic import Unsupported
    from statmech_attn.native.program import Native


lazy.attach(__name__)
