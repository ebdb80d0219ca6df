"""What tells a value, a function or an object from others, the same in any process."""

import dataclasses
import dis
import hashlib
import inspect
import pydoc
import re
import sys
import sysconfig
import types
import weakref
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np


SHOWN = 64  # entries of a list or table that are spelled out
INSTALLED = sysconfig.get_path("stdlib"), str(Path(__file__).parents[1]), "<frozen"
Seen = dict[int, tuple[Any, bytes]]  # what was read, by its `id`


def described(value: Any) -> Any:
    """A value as one of TOML, whose entries say in what another one differs.

    Numbers and texts are themselves; tables (data classes, named tuples, dictionaries)
    and short lists have entries that are described likewise; the rest is a digest.
    Entries that are None are left out.
    """
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    if inspect.isclass(value):
        digest = f" {fingerprint(value)}" if _is_own(value.__module__) else ""
        return _name(value) + digest
    if _has_fields(value):
        return described({"type": type(value)} | _fields(value))
    if isinstance(value, Mapping) and len(value) <= SHOWN:
        if all(isinstance(name, str) for name in value):
            return {n: described(x) for n, x in value.items() if x is not None}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == float:
        value = value if value.size > SHOWN else value.tolist()
    if isinstance(value, list | tuple) and len(value) <= SHOWN:
        if not any(x is None for x in value):
            return [described(x) for x in value]
    return fingerprint(value)


def fingerprint(value: Any) -> str:
    """SHA-256 of a value, of the code of what is called in it, and of its data.

    Of a function these count: its code, its defaults, and what it uses of the functions
    around it and of modules; of an object its class, with all methods, and what it
    holds.  Functions and classes that are installed (of Python, of packages, of this
    one) count by their names.
    """
    return _digest(value, {})


def _digest(value: Any, seen: Seen) -> str:
    """SHA-256 of a tree."""
    whole = lambda x: (
        dataclasses.is_dataclass(x)
        or isinstance(x, partial)
        or isinstance(x, dict)
        and not all(isinstance(name, str) for name in x)
        or _is_own(type(x).__module__)
    )
    leaves, structure = jax.tree.flatten(value, is_leaf=whole)
    digest = hashlib.sha256(_told_apart(structure))
    for leaf in leaves:
        digest.update(_of_leaf(leaf, seen))
    return digest.hexdigest()


def _of_leaf(leaf: Any, seen: Seen) -> bytes:
    """What tells a leaf of a tree from others."""
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    ):
        leaf = jax.random.key_data(leaf)
    if isinstance(leaf, jax.Array | np.ndarray | np.generic):
        array = np.asarray(leaf)
        if array.dtype != object:
            return f"{array.dtype}{array.shape}".encode() + array.tobytes()
        leaf = array.tolist()
    if isinstance(leaf, bool | int | float | complex | str | bytes):
        return _told_apart(leaf)
    if id(leaf) not in seen:
        name = getattr(leaf, "__qualname__", type(leaf).__qualname__)
        seen[id(leaf)] = leaf, name.encode()  # as what it uses itself knows it
        seen[id(leaf)] = leaf, _of_object(leaf, seen)
    return seen[id(leaf)][1]


def _of_object(leaf: Any, seen: Seen) -> bytes:
    """What tells a function, a class or an object from others."""
    if where := _installed_name(leaf):
        parts = where
    elif isinstance(leaf, partial):
        parts = leaf.func, leaf.args, leaf.keywords
    elif inspect.ismethod(leaf):
        parts = leaf.__func__, leaf.__self__
    elif inspect.isfunction(leaf):
        parts = _of_function(leaf)
    elif inspect.isclass(leaf):
        parts = _of_class(leaf)
    elif inspect.ismodule(leaf):
        parts = leaf.__name__
    elif isinstance(leaf, weakref.ref):
        parts = (leaf(),)
    elif isinstance(leaf, dict | set | frozenset):
        members = leaf.items() if isinstance(leaf, dict) else leaf
        parts = sorted(_digest(x, seen) for x in members)
    elif _has_fields(leaf):
        parts = type(leaf), _fields(leaf)
    elif hasattr(leaf, "__wrapped__"):  # a compiled function, say
        held = getattr(leaf, "__dict__", {})
        public = {n: x for n, x in held.items() if not n.startswith("_")}
        parts = type(leaf).__qualname__, leaf.__wrapped__, public
    else:
        parts = _state(leaf)
    return _told_apart(leaf) if parts is None else _digest(parts, seen).encode()


def _installed_name(part: Any) -> str:
    """Where an installed module has a function, class or object; "" for others."""
    module, name = (getattr(part, n, None) for n in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(name, str)) or _is_own(module):
        return ""
    where = f"{module}.{name}"
    return where if pydoc.locate(where) is part else ""


def _of_function(function: types.FunctionType) -> Any:
    """Code and data of a function; of an installed one its name and data."""
    code, values = function.__code__, {}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    data = function.__defaults__, function.__kwdefaults__, values
    if _is_installed(code.co_filename):
        name = f"{Path(code.co_filename).stem}.{code.co_qualname}"
        return name, data, _of_code(code) if name.endswith("<lambda>") else b""
    names, attributes = _names_in(code)
    used = {n: x for n, x in function.__globals__.items() if n in names}
    used = {n: _of_module(x, attributes, ()) for n, x in used.items()}
    return _of_code(code), data, used


def _names_in(code: types.CodeType) -> tuple[set[str], set[str]]:
    """Global names in a function and those within it, and names of attributes."""
    names, attributes = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(step.argval)
        elif isinstance(step.argval, types.CodeType):
            for known, more in zip((names, attributes), _names_in(step.argval)):
                known |= more
    return names, attributes


def _of_module(value: Any, attributes: set[str], within: tuple[Any, ...]) -> Any:
    """What may be used of a module of one's own; any other value is itself."""
    if not inspect.ismodule(value) or not _is_own(value.__name__) or value in within:
        return value
    used = {n: x for n, x in vars(value).items() if n in attributes}
    return {n: _of_module(x, attributes, (*within, value)) for n, x in used.items()}


def _of_code(code: types.CodeType) -> bytes:
    """Instructions, names and constants of a function and of those within it."""
    plain = [
        sorted(map(repr, x)) if isinstance(x, frozenset) else x
        for x in code.co_consts
        if not isinstance(x, types.CodeType)
    ]
    within = [_of_code(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    words = repr((code.co_names, given, plain)).encode()
    return b"".join([code.co_code, words, *within])


def _of_class(cls: type) -> Any:
    """Name of a class, with what it and its bases of one's own define."""
    defined = {}
    for base in cls.__mro__:
        if not _is_own(base.__module__):
            continue
        for name, x in vars(base).items():
            x = getattr(x, "__func__", x)
            x = (x.fget, x.fset) if isinstance(x, property) else x
            x = x.func if isinstance(x, cached_property) else x
            of_python = name.startswith(("__", "_abc_"))
            if not of_python or name == "__call__" or _is_written(x):
                defined[f"{base.__qualname__}.{name}"] = x
    return _name(cls), defined


def _is_written(method: Any) -> bool:
    """Whether it is a function that a person has written, no decorator."""
    return inspect.isfunction(method) and method.__code__.co_filename != "<string>"


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_own(name: str) -> bool:
    """Whether a module is not installed."""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names:
        return False
    of = lambda name: getattr(sys.modules.get(name), "__file__", None)
    return not _is_installed(of(name) or of(package) or "")


def _is_installed(file: str) -> bool:
    """Whether a file is of Python, of this package or of another one."""
    return file.startswith(INSTALLED) or "-packages" in file


def _has_fields(value: Any) -> bool:
    """Whether a value is a named tuple or an instance of a data class."""
    named = isinstance(value, tuple) and hasattr(value, "_fields")
    return named or dataclasses.is_dataclass(value) and not inspect.isclass(value)


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple):
        return value._asdict()  # pyright: ignore[reportAttributeAccessIssue]
    names = {field.name for field in dataclasses.fields(value)}
    names -= {"_cached"}  # the program of `equinox.filter_jit`
    return {name: getattr(value, name, None) for name in sorted(names)}


def _state(value: Any) -> Any:
    """What an object is made of, as `pickle` asks it; None where it does not say."""
    try:
        made = value.__reduce_ex__(2)
    except TypeError:
        return None
    if isinstance(made, str):
        return made
    function, arguments, state, items, pairs = (*made, None, None, None)[:5]
    if isinstance(state, dict):
        known = lambda n: isinstance(getattr(type(value), n, None), cached_property)
        state = {n: x for n, x in state.items() if not known(n)}
    return function, arguments, state, [*(items or ())], [*(pairs or ())]


def _told_apart(value: Any) -> bytes:
    """Bytes that tell a value from others: what `repr` says."""
    words = repr(value)
    if re.search(r" at 0x[0-9a-f]{6,}", words):
        raise TypeError(
            f"{words[:80]} has no description by which a file could be known to be of "
            "it: give its class a __reduce__ that says what it holds."
        )
    return words.encode()
