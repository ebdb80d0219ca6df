"""Functions of batches as programs of LLVM (the extra `native`)."""

from statmech_attn.batches.native.emitter import Unsupported
from statmech_attn.batches.native.program import Native


__all__ = ["Native", "Unsupported"]
