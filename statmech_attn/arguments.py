"""Arguments are checked against the annotations of what is called, at the door.

A face offers its functions so that a wrong argument is refused in one line that names
it, before anything is computed (`checked`, by `lazy`); `checks` does so for a method.
What the package itself calls is not looked at again.

An annotation says the type; `Annotated` with marks of `annotated_types` the range; that
of an array, by jaxtyping or a text such as "P *batch" among the marks, its axes, which
have one size in all arguments of a call where they have one name.
"""

import functools
import importlib
import inspect
import math
import operator
import re
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    Literal,
    TypeVar,
    Union,
)

from annotated_types import Ge, Gt, Le, Lt, MultipleOf


_F = TypeVar("_F", bound=Callable[..., Any])
MISSING = "may be NaN or infinite"  # marks arrays
INFINITE = "may be infinite"  # marks numbers
EMPTY = "may be empty"  # marks arrays
INCREASING = "(low, high) with low < high"  # marks a pair, which may be infinite
_NUMBERS = {"real numbers": "fiu", "whole numbers": "iu", "truth values": "b"}
_LIMITS: dict[type, tuple[str, Callable[[Any, Any], bool], str]] = {
    Ge: ("ge", operator.ge, "at least {}"),
    Gt: ("gt", operator.gt, "above {}"),
    Le: ("le", operator.le, "at most {}"),
    Lt: ("lt", operator.lt, "below {}"),
    MultipleOf: ("multiple_of", lambda x, of: x % of == 0, "a multiple of {}"),
}
_KINDS = {  # of `numpy.dtype.kind`, by the name in jaxtyping
    **{"Bool": "b", "Int": "iu", "Float": "fiu", "Real": "fiu", "Complex": "fiuc"},
    **{"Num": "fiuc", "Inexact": "fiuc", "Shaped": "fiubc", "Key": ""},
}


def either(names: Sequence[str]) -> str:
    """Names of which one is meant.

    Example:
        >>> either(["a", "b", "c"])
        "'a', 'b' or 'c'"
    """
    *most, last = map(repr, names)
    return f"{', '.join(most)} or {last}" if most else last


class _Checked:
    """A function whose arguments are checked against its annotations before it runs."""

    def __init__(self, function: Callable[..., Any], face: str, name: str):
        functools.update_wrapper(self, function)
        self._place = face, name

    def __call__(self, *given: Any, **named: Any) -> Any:
        function = self.__wrapped__
        if _within():
            return function(*given, **named)
        first, others = as_annotated(function, given, named)
        return function(*first, **others)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:  # such as `lower` of a compiled function
        return getattr(object.__getattribute__(self, "__wrapped__"), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _offered, self._place

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def _within() -> bool:
    """Whether the package itself calls: what it hands on was checked at its door."""
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return caller.startswith(f"{__package__}.")


def _offered(face: str, name: str) -> Any:
    return getattr(importlib.import_module(face), name)


def checked(value: Any, face: str, name: str) -> Any:
    """What a face offers: a function of the package with its arguments checked.

    Numbers in lists become the arrays that annotations ask for.  Calls of the package
    itself and what JAX traces pass unseen, and everything else that a face offers stays
    what it is.

    Args:
        value: what a module holds.
        face: the package that offers it.
        name: under which it does.

    """
    if isinstance(value, type) or not inspect.isfunction(inspect.unwrap(value)):
        return value
    return _Checked(value, face, name)


def checks(method: _F) -> _F:
    """A method whose arguments are checked, as those of a function on a face are."""

    @functools.wraps(method)
    def checked_method(*given: Any, **named: Any) -> Any:
        if _within():
            return method(*given, **named)
        first, others = as_annotated(method, given, named)
        return method(*first, **others)

    return cast(Any, checked_method)


def as_annotated(
    function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments of a call, each of the kind that its annotation says.

    Args:
        function: what is called.
        given: arguments by position.
        named: arguments by name.

    Raises:
        ValueError: one is of another kind or out of range, or two arrays do not fit
            each other; a line that names it.

    Example:
        >>> def wait(steps: Annotated[int, Ge(1)]): ...
        >>> as_annotated(wait, [0], {})
        Traceback (most recent call last):
        ValueError: steps must be at least 1; got 0.
    """
    names, kinds = _asked(function)
    first = names[: len(given)]
    if not named.keys().isdisjoint(first):
        return given, named  # Python says which argument is given twice
    arguments, sizes = {**dict(zip(first, given)), **named}, {}
    for name, value in arguments.items():
        kind = kinds.get(name, kinds.get("**", Any))
        if kind is Any or _traced(value):
            continue
        arguments[name] = value = _as_array(value, kind)
        known = type(value) is kind is not float
        allowed = "" if known else mismatch(value, kind)
        if allowed := allowed or _unlike(name, value, kind, sizes):
            raise ValueError(f"{name} must be {allowed}; got {shown(value)}.")
    rest = given[len(names) :]
    return [*(arguments.pop(name) for name in first), *rest], arguments


@functools.cache
def _asked(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    """Names of the arguments by position, and the kind of each; "**" of any other."""
    plain = inspect.unwrap(function)
    names, kinds = [], {}
    for parameter in inspect.signature(plain).parameters.values():
        name, kind = parameter.name, parameter.kind
        if kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
        name = "**" if kind is parameter.VAR_KEYWORD else name
        if kind is not parameter.VAR_POSITIONAL:
            kind = _evaluated(parameter.annotation, plain)
            kinds[name] = kind if parameter.default is not None else kind | None
    return names, kinds


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """The type that an annotation says, also one that type checkers alone import."""
    if not isinstance(annotation, str):
        return Any if annotation is inspect.Parameter.empty else annotation
    face = sys.modules[function.__module__.rpartition(".")[0]]
    words = set(re.findall(r"\w+", annotation)) - set(function.__globals__)
    named = {word: getattr(face, word) for word in words if word in dir(face)}
    try:
        return eval(annotation, function.__globals__, named)
    except (AttributeError, NameError):
        return Any


def _traced(value: Any) -> bool:
    """JAX compiles: the numbers of a value are not known yet."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def shown(value: Any) -> str:
    """A value in one short line."""
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and 10 < math.prod(shape or (1,)):
        return f"an array of the shape {shape}"
    return " ".join(reprlib.repr(value).split())


def mismatch(value: Any, kind: Any) -> str:
    """What a value should be and is not; "" where it is what it should be."""
    parts, origin = get_args(kind), get_origin(kind)
    if kind is Any or _traced(value):
        return ""
    if origin is Annotated:
        base, *marks = parts
        if EMPTY in marks and not getattr(value, "size", 1):
            return ""
        if marks[0] in _NUMBERS:
            missing = not {MISSING, INFINITE}.isdisjoint(marks)
            refusal, (_, least, most) = (
                _of_numbers(value, _NUMBERS[marks[0]], missing),
                _shape(kind),
            )
            if not refusal and INFINITE in marks and (_numpy(value) != value).any():
                refusal = "a number"
            if not refusal and not least <= _numpy(value).ndim <= most:
                refusal = f"an array of the shape ({', '.join(_shape(kind)[0])})"
        elif MISSING in marks:
            refusal = _of_array(value, base, missing=True)
        elif INFINITE in marks:
            refusal = mismatch(value, base)
            refusal = "" if _is_infinite(value) else refusal
        elif marks[0] == INCREASING:
            ends = [mismatch(x, float) and not _is_infinite(x) for x in _ends(value)]
            fits = len(ends) == 2 and not any(ends) and value[0] < value[1]
            return "" if fits else marks[0]
        else:
            refusal = mismatch(value, base)
        return refusal or _beyond(value, marks)
    if origin is Literal:
        same = (type(value) is type(part) and value == part for part in parts)
        return "" if any(same) else either(parts)
    if origin in (Union, types.UnionType):
        refusals = [mismatch(value, part) for part in parts]
        told = [x for x, part in zip(refusals, parts) if part is not type(None)]
        told = ["finite"] if "finite" in told else told
        return "" if "" in refusals else " or ".join(dict.fromkeys(told))
    if hasattr(kind, "dim_str"):
        return _of_array(value, kind)
    if isinstance(origin, type):
        return _of_parts(value, origin, parts)
    return _of_type(value, kind) if isinstance(kind, type) else ""


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _ends(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _beyond(value: Any, limits: Sequence[Any]) -> str:
    for limit in limits:
        if type(limit) in _LIMITS:
            name, holds, words = _LIMITS[type(limit)]
            bound = getattr(limit, name)
            if isinstance(value, int | float):
                held = holds(value, bound) or value != value
            else:
                numbers = _numpy(value)
                held = (holds(numbers, bound) | (numbers != numbers)).all()
            if not held:  # NaN was seen before
                return words.format(f"{bound:.9g}" if type(bound) is float else bound)
    return ""


def _of_type(value: Any, kind: type) -> str:
    """A truth value is no number."""
    if kind in (int, float):
        try:
            number = operator.index(value) if kind is int else float(value)
            usable = abs(number) < math.inf and not _is(value, bool, str)
        except (TypeError, ValueError, OverflowError):
            usable = False
        return "" if usable else "a whole number" if kind is int else "a finite number"
    if kind.__name__ == "PyTree":
        return _of_tree(value)
    if kind.__name__ in ("Array", "ndarray"):
        return _of_numbers(value, "fiub", missing=True)
    if kind.__name__ == "Callable":
        return "" if callable(value) else "a function"
    if kind in (Sequence, Iterable, Mapping, tuple, list, dict):
        return _of_parts(value, kind, ())
    if getattr(kind, "_is_protocol", False):
        parts = (name for name in vars(kind) if name[0] != "_")
        usable = all(hasattr(value, name) for name in parts)
    else:
        usable = _is(value, kind)
    return "" if usable else "text" if kind is str else f"of the type {kind.__name__}"


def _is(value: Any, *kinds: type) -> bool:
    """Truth values and texts of NumPy are among them."""
    return isinstance(value, kinds) or (
        bool in kinds and getattr(getattr(value, "dtype", None), "kind", "") == "b"
    )


def _of_parts(value: Any, origin: type, parts: tuple[Any, ...]) -> str:
    """Lists count as tuples, and arrays as sequences."""
    if origin is Callable:
        return "" if callable(value) else "a function"
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return "a dictionary"
        values = value.values() if parts else ()
        each = next(filter(None, (mismatch(x, parts[1]) for x in values)), "")
        return f"a dictionary, each value {each}" if each else ""
    if not issubclass(origin, Iterable):
        return "" if isinstance(value, origin) else f"of the type {origin.__name__}"
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        return "a sequence"
    if issubclass(origin, Sequence) and not hasattr(value, "__len__"):
        return "a sequence"
    if getattr(value, "ndim", 1) == 0:
        return "a sequence"
    if origin is tuple and parts and parts[-1] is not ...:
        if len(value) != len(parts):
            return f"a sequence of {len(parts)}"
        pairs = zip(value, parts)
    elif parts and (isinstance(value, Sequence) or hasattr(value, "dtype")):
        pairs = ((x, parts[0]) for x in value)
    else:
        pairs = ()
    each = next(filter(None, (mismatch(x, part) for x, part in pairs)), "")
    return f"a sequence, each of it {each}" if each else ""


def _of_tree(value: Any) -> str:
    """Arrays and numbers in tuples, dictionaries and objects of JAX; keys, too."""
    leaves = sys.modules["jax"].tree.leaves(value)
    usable = lambda x: _traced(x) or not (_of_key(x) and _of_numbers(x, "fiubc"))
    return "" if leaves and all(map(usable, leaves)) else "a tree of finite numbers"


def _numpy(value: Any) -> Any:
    return sys.modules["numpy"].asarray(value)


def _of_numbers(value: Any, kinds: str, missing: bool = False) -> str:
    """Real numbers in an array or in lists, of some kinds of `numpy.dtype.kind`."""
    try:
        array = _numpy(value)
        if array.dtype.kind == "V":  # bfloat16
            array = array.astype("f4")
    except (TypeError, ValueError):
        return "an array of real numbers"
    if "f" in kinds and not array.size:
        return "an array that is not empty"
    if array.dtype.kind not in kinds:
        words = {"b": "truth values", "iu": "whole numbers"}
        return f"an array of {words.get(kinds, 'real numbers')}"
    if not missing and array.dtype.kind in "fc":
        if not sys.modules["numpy"].isfinite(array).all():
            return "finite"
    return ""


def _of_array(value: Any, kind: Any, missing: bool = False) -> str:
    """What an array of jaxtyping should be, by its kind of number and its shape."""
    kinds, (dims, least, most) = _KINDS[kind.__name__.partition("[")[0]], _shape(kind)
    if not kinds:
        return _of_key(value)
    if refusal := _of_numbers(value, kinds, missing):
        return refusal
    fits = least <= _numpy(value).ndim <= most
    return "" if fits else f"an array of the shape ({', '.join(dims)})"


@functools.cache
def _shape(kind: Any) -> tuple[tuple[str, ...], int, float]:
    """Axes of an array, by jaxtyping or by a text in its marks; the least and most."""
    texts = [x for x in getattr(kind, "__metadata__", ()) if isinstance(x, str)]
    said = [x for x in texts if x not in (*_NUMBERS, MISSING, INFINITE, EMPTY)]
    dims = getattr(kind, "dim_str", said[0] if said else "...").split()
    fixed = [dim for dim in dims if not ("*" in dim or dim == "...")]
    return tuple(dims), len(fixed), len(dims) if fixed == dims else math.inf


def _of_key(value: Any) -> str:
    """Also a key as `jax.random.PRNGKey` makes it."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    usable = str(dtype).startswith("key<") and shape == ()
    usable = usable or (str(dtype) == "uint32" and shape == (2,))
    return "" if usable else "a random key, as jax.random.key makes it"


def _as_array(value: Any, kind: Any) -> Any:
    """A list as the tuple, or the array of numbers, that an annotation asks for."""
    if isinstance(value, list) and get_origin(kind) is tuple:
        return tuple(value)
    if not isinstance(value, (list, tuple)) or not (array := _wanted(kind)):
        return value
    if _of_numbers(value, "fiub", missing=True):
        return value
    jax = sys.modules["jax"]
    return jax.numpy.asarray(value) if array is jax.Array else _numpy(value)


@functools.cache
def _wanted(kind: Any) -> type | None:
    """The type of array that alone is asked for."""
    parts = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    asked = [x for x in parts if x is not type(None)]
    if not all(_is_array(x) for x in asked) or all(_shape(x)[1] == 0 for x in asked):
        return None
    return getattr(asked[0], "array_type", object)


def _unlike(name: str, value: Any, kind: Any, sizes: dict[str, tuple[Any, str]]) -> str:
    """Of which size an array should be beside those before it; "" if it is.

    So is each array of an object, by the annotations of its class.
    """
    fields = [] if isinstance(value, int | float | str) else _fields(type(value))
    arrays = [(getattr(value, field), part) for field, part in fields]
    for array, part in arrays or [(value, kind)]:
        shape = getattr(array, "shape", None)
        if isinstance(shape, tuple):
            for dim, axes in _named(part, len(shape)):
                size = shape[axes]
                if isinstance(axes, slice) and fields:
                    continue  # parameters may have more points than a state
                first = (int(dim), "") if dim.isdigit() else (size, name)
                known, where = sizes.setdefault(dim, first)
                if known != size and not (fields and where == name):
                    beside = "" if dim.isdigit() else f" in {dim}, as {where} is"
                    return f"of the size {known}{beside}, not {size}"
    return ""


def _is_array(kind: Any) -> bool:
    marks = getattr(kind, "__metadata__", ("",))
    return hasattr(kind, "dim_str") or marks[0] in _NUMBERS


@functools.cache
def _named(kind: Any, rank: int) -> Sequence[tuple[str, int | slice]]:
    """Names of axes and their numbers, of an array of some rank."""
    parts = (x for x in (kind, *get_args(kind)) if _is_array(x))
    for dims, least, most in map(_shape, parts):
        if least <= rank <= most:
            more = next((i for i, x in enumerate(dims) if "*" in x or x == "..."), rank)
            last = rank - len(dims) + 1 + more
            ends = [*enumerate(dims[:more]), *enumerate(dims[more + 1 :], last)]
            named = [(x, i) for i, x in ends if x[0].isalnum()]
            many = [(x, slice(more, last)) for x in dims[more : more + 1]]
            return named + [(x, i) for x, i in many if x[1:].isidentifier()]
    return []


@functools.cache
def _fields(kind: type) -> list[tuple[str, Any]]:
    """Arrays among the fields of a class."""
    names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "_fields", ())
    hints = get_type_hints(kind) if names else {}
    return [
        (name, hints[name]) for name in names if hasattr(hints.get(name), "dim_str")
    ]
