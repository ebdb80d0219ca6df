"""Which compiler makes the programs of a run: found once, and kept with its results.

Both round differently, so that a run that is continued, elsewhere or later, goes on
with the one that it was begun with.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from statmech_attn.batches.compiled.programs import (
    NotInstalled,
    require_native,
    Unsuited,
)


AUTO, LLVM, XLA = "auto", "llvm", "xla"
NAMED = "named"
SUITED = "native programs can be made of this system"
BEFORE = "begun when that was the default"


class Compiler(NamedTuple):
    """What makes the programs of a run.

    Attributes:
        name: "llvm" or "xla".
        why: it is this one, in a few words.
        advice: how to have the faster one, where it is not installed.
    """

    name: str
    why: str
    advice: str = ""

    @property
    def text(self) -> str:
        """The compiler and why it is this one, in one line."""
        line = f"compiler: {self.name} ({self.why})"
        return f"{line}; {self.advice}" if self.advice else line

    def stored(self) -> dict[str, str]:
        """Its entries in the folder of a run and in the attributes of its file."""
        return {"compiler": self.name, "compiler_reason": self.why}


def stored_compiler(wanted: str, stored: Mapping[Any, Any]) -> Compiler:
    """The compiler of a run that was begun, from the entries of its folder or file."""
    if wanted != AUTO:
        return Compiler(wanted, NAMED)
    name, why = stored.get("compiler", XLA), stored.get("compiler_reason", BEFORE)
    return Compiler(str(name), str(why))


def resolve_compiler(wanted: str, make: Callable[[bool], None]) -> Compiler:
    """Make the programs of a run by the compiler that is wanted.

    `make` makes them, native ones where its argument is true.
    """
    if wanted != AUTO:
        make(wanted == LLVM)
        return Compiler(wanted, NAMED)
    fallback = _without_native()
    if fallback is None:
        try:
            make(True)
            return Compiler(LLVM, SUITED)
        except Unsuited as error:
            fallback = Compiler(XLA, f"no native program of this system: {error.why}")
    make(False)
    return fallback


def _without_native() -> Compiler | None:
    """XLA where no native program can be made on this machine, else None."""
    try:
        require_native()
    except NotInstalled as error:
        return Compiler(XLA, "llvmlite is not installed", str(error))
    except ValueError as error:
        return Compiler(XLA, str(error).rstrip("."))
