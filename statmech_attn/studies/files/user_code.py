"""Code that a study names: where it is, who may run it, and what its errors say.

A reference is "file.py:name", the file relative to the study, or "package.module:name",
the module on Python's path.  Looking for it runs nothing; `load` does.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from statmech_attn import inputs
from statmech_attn.reporting import visible
from statmech_attn.studies.files import digests


REFERENCE = r"^[^:\n]*[^:\s]:[^\W\d]\w*$"
LONGEST = 200  # characters of an error of the code in a message
MAX_BYTES = 2**22  # of a file of code
UNTRACEABLE = (  # errors of JAX where a value is asked for while it traces
    "ConcretizationTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
)
MISSING = object()
PREFIX = "statmech_attn_study_"  # of the names of modules that are files of studies


class Refused(ValueError):
    """An error in code that a study names, in one line with its name."""


def split(reference: str) -> tuple[str, str]:
    """File or module, and the name in it."""
    place, _, name = reference.rpartition(":")
    return place, name


def is_file(place: str) -> bool:
    """Whether code is in a file rather than in a module on Python's path."""
    return place.endswith(".py")


def brief(reference: str) -> str:
    """A reference without the folder of its file."""
    place, name = split(reference)
    return f"{Path(place).name if is_file(place) else place}:{name}"


def beside(reference: str, folder: Path) -> str:
    """A reference to a file with its full path, relative to a folder before."""
    place, name = split(reference)
    if not is_file(place):
        return reference
    return f"{(folder / place).absolute()}:{name}"


def origin(reference: str) -> Path:
    """The file of some code, found without running any."""
    place, _ = split(reference)
    if is_file(place):
        try:
            os.stat(place)  # which follows no loop of links
            return Path(place)
        except ValueError:  # of a character that no path has
            raise ValueError(f"{visible(place)}: is no path of a file.") from None
    where = None
    specification = None
    parts = place.split(".")
    for number in range(1, len(parts) + 1):
        specification = PathFinder.find_spec(".".join(parts[:number]), where)
        where = specification.submodule_search_locations if specification else []
    if specification is None or not specification.has_location:
        raise ValueError(
            f"{brief(reference)}: there is no module {place!r} on the path; a file "
            'is named as in "my_model.py:step".'
        )
    return Path(str(specification.origin))


def digests_of(references: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the files of some code, by name."""
    contents = {}
    for reference in references:
        place, _ = split(reference)
        name = Path(place).name if is_file(place) else place
        contents[name] = digests.of_file(origin(reference))
    return contents


def require_inside(references: Iterable[str], folder: Path) -> None:
    """Refuse code that lies outside a folder."""
    for reference in references:
        file = origin(reference).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ValueError(
                f"{brief(reference)}: is code of {file}, outside the study's folder; "
                "pass --allow-code to run it."
            )


def load(reference: str) -> Any:
    """What a reference names; runs the code of its file or module."""
    place, name = split(reference)
    file = origin(reference)
    digest = digests.of_file(file)

    def named() -> Any:
        module = _of_file(file, digest) if is_file(place) else _module(place)
        return getattr(module, name, MISSING)

    value = _called(partial(refused, reference), named)
    if value is MISSING:
        raise ValueError(f"{brief(reference)}: {Path(place).name} has no {name!r}.")
    return value


class Function:
    """A function that a study names, whose errors are one line with its name.

    `parameters` are names that the study gives values to.
    """

    def __init__(
        self, reference: str, function: Callable[..., Any], parameters: Iterable[str]
    ):
        self._reference, self._function = reference, function
        self._parameters = tuple(parameters)

    def __call__(self, *arguments: Any) -> Any:
        refuse = partial(refused, self._reference, parameters=self._parameters)
        return _called(refuse, self._function, *arguments)


def _called(refuse: Callable[[BaseException], Refused], function, *arguments) -> Any:
    """What the function returns; even `sys.exit(0)` in it is an error of the code."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise refuse(error) from error


def function(reference: str, parameters: Iterable[str] = ()) -> Function:
    """The function that a reference names."""
    named = load(reference)
    if not callable(named):
        raise ValueError(
            f"{brief(reference)}: is no function but of the type "
            f"{type(named).__name__}."
        )
    return Function(reference, named, parameters)


def refused(
    reference: str, error: BaseException, parameters: Iterable[str] = ()
) -> Refused:
    """What a user reads of an error in code that a study names."""
    name, kind = brief(reference), type(error).__name__
    if isinstance(error, Refused):  # of code that this code calls
        return error
    missing = error.args[0] if isinstance(error, KeyError) and error.args else None
    if missing is not None and parameters and missing not in parameters:
        return Refused(
            f"{name}: asks for {missing!r}, which is not in [parameters]: "
            f"{', '.join(parameters)}."
        )
    if kind in UNTRACEABLE:
        return Refused(
            f"{name}: {_line_of(error)} needs the values of an array, which JAX does "
            "not have while it compiles: use jax.numpy, not numpy, and jnp.where, not "
            "if."
        )
    said = visible(" ".join(_said(error).split()))
    shown = said if len(said) <= LONGEST else f"{said[:LONGEST]} …"
    ended = f"{name}: {_line_of(error)} ends in {visible(kind)}"
    return Refused(f"{ended}: {shown}" if shown else f"{ended}.")


def _said(error: BaseException) -> str:
    """The text of an error, which its own code makes."""
    try:
        return str(error)
    except Exception:
        return ""


def _line_of(error: BaseException) -> str:
    """The last line of the user's own code that an error went through."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith(PREFIX):
            line = f"line {trace.tb_lineno} of {Path(file).name}"
        trace = trace.tb_next
    return line or "it"


@functools.lru_cache(maxsize=32)
def _of_file(file: Path, digest: str) -> ModuleType:
    """The module of a file with this content, run once; writes nothing beside it."""
    module = ModuleType(f"{PREFIX}{file.stem}_{digest[:12]}")
    module.__file__ = str(file)
    program = compile(inputs.content(file, MAX_BYTES), str(file), "exec")
    sys.modules[module.__name__] = module  # where pickle and dataclasses look for it
    try:
        exec(program, module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


def _module(place: str) -> ModuleType:
    return importlib.import_module(place)
