"""Options of a computation: each is declared once, in the class that computes with it.

A subclass of `Options` gives the type, the range and the default of each option in its
field, and a sentence with the unit in its docstring, as `name (unit): sentence.` under
"Attributes".  It refuses what is out of range.  Tables of study files take all of this
from there (`studies.tables.of`).

Ranges are marks of `annotated_types`, which pydantic reads as its own.  The classes are
no tables of pydantic themselves: those take a tenth of a second to import, refuse
numbers of NumPy, and complain in several lines.  They stand in modules that import
nothing slow, because study files are read before anything is computed.
"""

import functools
import inspect
import re
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints, NamedTuple

from annotated_types import Ge, Gt, Le, Lt, MultipleOf

from statmech_attn.arguments import (
    either as either,
    EMPTY as EMPTY,
    INCREASING,
    INFINITE as INFINITE,
    mismatch,
    MISSING as MISSING,
    shown,
)


MAX_COUNT = 10**15  # of anything: more than can be computed
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Gt(0), Lt(1)]
Probability = Annotated[float, Ge(0), Le(1)]
Share = Annotated[float, Ge(0), Lt(1)]
Count = Annotated[int, Ge(1), Le(MAX_COUNT)]
Several = Annotated[int, Ge(2), Le(MAX_COUNT)]
Even = Annotated[int, Ge(2), Le(MAX_COUNT), MultipleOf(2)]
WholeNumber = Annotated[int, Ge(0), Le(MAX_COUNT)]
Seed = Annotated[int, Ge(0), Lt(2**32)]
ONE = 1 + 1e-12  # with rounding
Interval = Annotated[tuple[float, float], INCREASING]
# A number, an array, or lists of them.
Numbers = Annotated[Any, "real numbers"]
Gaps = Annotated[Any, "real numbers", MISSING]
Limits = Annotated[Any, "real numbers", INFINITE]
Means = Annotated[Any, "real numbers", Ge(-ONE), Le(ONE)]  # of signs
NotNegatives = Annotated[Any, "real numbers", Ge(0)]
Temperature = Annotated[NotNegatives, "", Le(1e100)]  # its square is finite
WholeNumbers = Annotated[Any, "whole numbers"]
Mask = Annotated[Any, "truth values"]

_ENTRY = re.compile(r"    (\w+)(?: \(([^)]*)\))?: (.*)")


@dataclass(frozen=True)
class Options:
    """Options that are checked when given: a `ValueError` names the wrong one."""

    def __post_init__(self):
        require_declared(self)


def require_declared(options: Any) -> None:
    """Refuse fields that are not what the annotations of their class say."""
    for name, kind in declared(type(options)).items():
        value = getattr(options, name)
        if allowed := mismatch(value, kind):
            raise ValueError(f"{name} must be {allowed}; got {shown(value)}.")


@functools.cache
def declared(choices: type[Options]) -> dict[str, Any]:
    """Types of the options of a class, with their ranges."""
    hints = get_type_hints(choices, include_extras=True)
    return {field.name: hints[field.name] for field in fields(choices)}


class OptionText(NamedTuple):
    """What a docstring says of an option or key."""

    sentence: str
    unit: str


def option_texts(choices: type) -> dict[str, OptionText]:
    """What the docstrings of a class, and of those that it extends, say of its options.

    An entry of the section "Attributes" is `name (unit): sentence`.
    """
    entries: dict[str, list[str]] = {}
    for part in reversed(choices.__mro__):
        _, _, section = inspect.cleandoc(part.__doc__ or "").partition("Attributes:\n")
        name = ""
        for line in section.split("\n\n")[0].splitlines():
            if entry := _ENTRY.fullmatch(line):
                name, unit, text = entry.groups()
                entries[name] = [unit or "", text]
            elif name:
                entries[name][1] += f" {line.strip()}"
    return {
        name: OptionText(text[0].upper() + text[1:], unit)
        for name, (unit, text) in entries.items()
    }


def require_least(least: int, **values: int) -> None:
    """Raise `ValueError` where a count is too small, or no whole number."""
    for name, value in values.items():
        if not hasattr(value, "__index__"):
            raise ValueError(f"{name} must be a whole number; got {value!r}.")
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")
