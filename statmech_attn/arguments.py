"""Arguments are checked against the annotations of what is called, at the door.

A face offers its functions so that a wrong argument is refused in one line that names
it, before anything is computed (`checked`, by `lazy`); `checks` does so for a method.
What the package itself calls is not looked at again.

An annotation says the type; `Annotated` with marks of `annotated_types` the range; that
of an array, by jaxtyping or a text such as "P *batch" among the marks, its axes, which
have one size in all arguments of a call where they have one name, one more in "P+1".
A text among the marks of a sequence is the name of its length, which is not zero.
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
from functools import partial
from itertools import repeat
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
_HOUSE, _COMMANDS = f"{__package__}.", f"{__package__}.cli."
MISSING = "may be NaN or infinite"  # marks arrays
INFINITE = "may be infinite"  # marks numbers
EMPTY = "may be empty"  # marks arrays
_LIMIT = Annotated[float, INFINITE]
INCREASING = "(low, high) with low < high"  # marks a pair, which may be infinite
_NUMBERS = {"real numbers": "fiu", "whole numbers": "iu", "truth values": "b"}
_LIMITS: dict[type, tuple[str, Callable[[Any, Any], bool], str]] = {
    Ge: ("ge", operator.ge, "at least {}"),
    Gt: ("gt", operator.gt, "above {}"),
    Le: ("le", operator.le, "at most {}"),
    Lt: ("lt", operator.lt, "below {}"),
    MultipleOf: ("multiple_of", lambda x, of: x % of == 0, "a multiple of {}"),
}
_REAL = "fiub", ("...",), 0, math.inf  # see `_shape`
_KINDS = {  # of `numpy.dtype.kind`, by the name in jaxtyping
    **{"Bool": "b", "Int": "iu", "Float": "fiu", "Real": "fiu", "Complex": "fiuc"},
    **{"Num": "fiuc", "Inexact": "fiuc", "Shaped": "fiubc"},
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
        return _called(self.__wrapped__, given, named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:  # such as `lower` of a compiled function
        return getattr(object.__getattribute__(self, "__wrapped__"), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _offered, self._place

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def _within(depth: int) -> bool:
    """The package itself asks, but for its commands: what it has was checked before."""
    caller = sys._getframe(depth).f_globals.get("__name__", "")
    return caller.startswith(_HOUSE) and not caller.startswith(_COMMANDS)


class _Module(types.ModuleType):
    """A module on a face, whose functions are checked as those of the face are."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name[0] == "_" or _within(2):
            return value
        return checked(value, self.__name__, name)

    def __reduce__(self) -> tuple[Any, ...]:  # other processes import it
        return importlib.import_module, (self.__name__,)


def _called(function: Callable, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if not _within(3):
        given, named = as_annotated(function, given, named)
    return function(*given, **named)


def _offered(face: str, name: str) -> Any:
    return getattr(importlib.import_module(face), name)


def checked(value: Any, face: str, name: str) -> Any:
    """What a face offers: a function of the package with its arguments checked.

    Those of a module that it offers are checked as well, where others ask for them.
    Numbers in lists become the arrays that annotations ask for.  Calls of the package
    itself and what JAX traces pass unseen, and everything else that a face offers stays
    what it is.

    Args:
        value: what a module holds.
        face: the package that offers it.
        name: under which it does.
    """
    if type(value) is types.ModuleType:
        value.__class__ = _Module
        return value
    plain = value if isinstance(value, type | _Checked) else inspect.unwrap(value)
    if not inspect.isfunction(plain) or not plain.__module__.startswith(_HOUSE):
        return value
    return _Checked(value, face, name)


def checks(method: _F) -> _F:
    """A method whose arguments are checked, as those of a function on a face are."""
    checked_method = lambda *given, **named: _called(method, given, named)
    return cast(_F, functools.wraps(method)(checked_method))


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
        kind, refusal, axes = kinds.get(name) or kinds.get("**", _ANY)
        if kind is Any or _traced(value):
            continue
        if issubclass(type(value), (list, tuple)):
            arguments[name] = value = _as_array(value, kind)
        if allowed := refusal(value) or _unlike(name, value, axes, sizes):
            raise ValueError(f"{name} must be {allowed}; got {shown(value)}.")
    rest = given[len(names) :]
    return [*(arguments.pop(name) for name in first), *rest], arguments


@functools.cache
def _asked(function: Callable[..., Any]) -> tuple[list[str], dict[str, tuple]]:
    """Names of arguments by position, and what is asked of each; "**": any other."""
    plain = inspect.unwrap(function)
    names, kinds = [], {}
    for parameter in inspect.signature(plain).parameters.values():
        name, kind = parameter.name, parameter.kind
        if kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
        name = "**" if kind is parameter.VAR_KEYWORD else name
        if kind is not parameter.VAR_POSITIONAL:
            kind = _evaluated(parameter.annotation, plain)
            kind = kind if parameter.default is not None else kind | None
            kinds[name] = kind, _refusal(kind), _axes(kind)
    return names, kinds


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """The type that an annotation says, also one that type checkers alone import."""
    if not isinstance(annotation, str):
        return Any if annotation is inspect.Parameter.empty else annotation
    names = function.__module__.split(".")
    faces = [sys.modules[".".join(names[:n])] for n in range(2, len(names))]
    words = set(re.findall(r"\w+", annotation)) - set(function.__globals__)
    named = {w: getattr(face, w) for face in faces for w in words & set(dir(face))}
    try:
        return eval(annotation, function.__globals__, named)
    except (AttributeError, NameError):
        return Any


def _traced(value: Any) -> bool:
    """JAX compiles: the numbers of a value are not known yet."""
    jax = sys.modules.get("jax")
    return jax is not None and issubclass(type(value), jax.core.Tracer)


def shown(value: Any) -> str:
    """A value in one short line."""
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and 10 < math.prod(shape or (1,)):
        return f"an array of the shape {shape}"
    return " ".join(reprlib.repr(value).split())


def mismatch(value: Any, kind: Any) -> str:
    """What a value should be and is not; "" where it is what it should be."""
    return "" if _traced(value) else _refusal(kind)(value)


@functools.cache
def _refusal(kind: Any) -> Callable[[Any], str]:
    """`mismatch` of one kind, for values that are not traced."""
    parts, origin = get_args(kind), get_origin(kind)
    if kind is Any:
        return lambda value: ""
    if origin is Annotated:
        return _of_marks(kind, *parts)
    if origin is Literal:
        same = lambda x, part: type(x) is type(part) and x == part
        return lambda x: "" if any(same(x, part) for part in parts) else either(parts)
    if origin in (Union, types.UnionType):
        refusals = [_refusal(part) for part in parts if part is not types.NoneType]
        if len(refusals) < len(parts):  # what may be left out may be an empty tree
            whole = partial(_of_tree, empty=True)
            refusals = [whole if x is _of_tree else x for x in refusals]
        return partial(_of_union, refusals, len(refusals) < len(parts))
    if hasattr(kind, "dim_str"):
        is_key = kind.__name__.startswith("Key[")
        return _of_key if is_key else partial(_of_array, of=_shape(kind))
    if isinstance(origin, type) and origin is not Callable:
        return partial(_of_parts, origin, parts)
    kind = origin or kind
    return _of_type(kind) if isinstance(kind, type) else lambda value: ""


def _of_union(refusals: Sequence[Callable], none: bool, value: Any) -> str:
    if none and value is None:
        return ""
    told = [refusal(value) for refusal in refusals]
    words = "finite" if "finite" in told else " or ".join(dict.fromkeys(told))
    return "" if "" in told else words


def _of_marks(kind: Any, base: Any, *marks: Any) -> Callable[[Any], str]:
    limits = [(*_LIMITS[type(x)], x) for x in marks if type(x) in _LIMITS]
    missing, infinite, empty = (x in marks for x in (MISSING, INFINITE, EMPTY))
    numbers, named = _mark(kind) in _NUMBERS, _mark(kind).isidentifier()
    if marks[0] == INCREASING:
        return _of_pair
    if numbers or missing:
        asked = {"of": _shape(kind), "missing": missing, "infinite": infinite}
        of = partial(_of_array, **asked)
    else:
        of = _refusal(base)

    endless = lambda x: isinstance(x, float) and math.isinf(x)

    def refusal(value: Any) -> str:
        if empty and not getattr(value, "size", 1):
            return ""
        told = "" if infinite and not numbers and endless(value) else of(value)
        if named and not told and not len(value):
            told = "a sequence that is not empty"
        return told or _beyond(value, limits)

    return refusal


def _of_pair(value: Any) -> str:
    ends = value if isinstance(value, (tuple, list)) else ()
    fits = len(ends) == 2 and not any(map(_refusal(_LIMIT), ends)) and ends[0] < ends[1]
    return "" if fits else INCREASING


def _beyond(value: Any, limits: Sequence[Any]) -> str:
    """NaN was seen before."""
    for name, holds, words, limit in limits:
        bound = getattr(limit, name)
        if isinstance(value, (int, float)):
            held = holds(value, bound) or value != value
        else:
            numbers = _numpy(value)
            held = holds(numbers, bound)
            held = held.all() or (held | (numbers != numbers)).all()
        if not held:
            return words.format(f"{bound:.9g}" if type(bound) is float else bound)
    return ""


def _of_type(kind: type) -> Callable[[Any], str]:
    if kind in (int, float):
        return partial(_of_number, kind)
    if kind.__name__ == "PyTree":
        return _of_tree
    if kind.__name__ in ("Array", "ndarray"):
        return partial(_of_array, missing=True)
    if kind.__name__ == "Callable":
        return lambda value: "" if callable(value) else "a function"
    if kind in (Sequence, Iterable, Mapping, tuple, list, dict):
        return partial(_of_parts, kind, ())
    words = "text" if kind is str else f"of the type {kind.__name__}"
    if getattr(kind, "_is_protocol", False):
        parts = [name for name in vars(kind) if name[0] != "_"]
        return lambda value: "" if all(hasattr(value, x) for x in parts) else words
    return lambda value: "" if type(value) is kind or _is(value, kind) else words


def _of_number(kind: type, value: Any) -> str:
    """A truth value is no number."""
    most = 2**63 if kind is int else math.inf
    try:
        number = operator.index(value) if kind is int else float(value)
        usable = -most < number < most
        usable = usable and (type(value) is kind or not _is(value, bool, str))
    except (TypeError, ValueError, OverflowError):
        usable = False
    return "" if usable else "a whole number" if kind is int else "a finite number"


def _is(value: Any, *kinds: type) -> bool:
    """Truth values and texts of NumPy are among them."""
    return isinstance(value, kinds) or (
        bool in kinds and getattr(getattr(value, "dtype", None), "kind", "") == "b"
    )


def _of_parts(origin: type, parts: tuple[Any, ...], value: Any) -> str:
    """Lists count as tuples, and arrays as sequences."""
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return "a dictionary"
        for key in value if parts else ():
            if told := mismatch(value[key], parts[1]):
                return f"a dictionary, {key!r} in it {told}"
        return ""
    if not issubclass(origin, Iterable):
        return "" if isinstance(value, origin) else f"of the type {origin.__name__}"
    sized = not issubclass(origin, Sequence) or hasattr(value, "__len__")
    several = hasattr(value, "__iter__") and getattr(value, "ndim", 1)
    if not (sized and several) or isinstance(value, (str, bytes, Mapping)):
        return "a sequence"
    fixed = origin is tuple and parts and parts[-1] is not ...
    if fixed and len(value) != len(parts):
        return f"a sequence of {len(parts)}"
    readable = parts and (isinstance(value, Sequence) or hasattr(value, "dtype"))
    pairs = zip(value, parts if fixed else repeat(parts[0])) if readable else ()
    unfit = next(filter(None, (mismatch(x, part) for x, part in pairs)), "")
    return f"a sequence, each of it {unfit}" if unfit else ""


def _of_tree(value: Any, empty: bool = False) -> str:
    """Arrays and numbers in tuples, dictionaries and objects of JAX; keys, too."""
    leaves = sys.modules["jax"].tree.leaves(value)
    usable = lambda x: _traced(x) or not (_of_array(x) and _of_key(x))
    fits = (leaves or empty) and all(map(usable, leaves))
    return "" if fits else "a tree of finite real numbers"


def _numpy(value: Any) -> Any:
    return sys.modules["numpy"].asarray(value)


def _of_array(
    value: Any, of=_REAL, missing: bool = False, infinite: bool = False
) -> str:
    """Real numbers in an array or in lists, of some kinds of `numpy.dtype.kind`."""
    kinds, dims, least, most = of
    if type(value) is float and "f" in kinds and not least and value - value == 0:
        return ""
    try:
        array = _numpy(value)
        if array.dtype.kind == "V":  # bfloat16
            array = array.astype("f4")
    except (TypeError, ValueError):
        return "an array of real numbers"
    kind = array.dtype.kind
    if "f" in kinds and not array.size:
        return "an array that is not empty"
    if kind not in kinds:
        words = {"b": "truth values", "iu": "whole numbers"}
        return f"an array of {words.get(kinds, 'real numbers')}"
    if infinite and (array != array).any():
        return "a number"
    finite = missing or infinite or kind not in "fc"
    if not finite and not sys.modules["numpy"].isfinite(array).all():
        return "finite"
    fits = least <= array.ndim <= most
    return "" if fits else f"an array of the shape ({', '.join(dims)})"


@functools.cache
def _shape(kind: Any) -> tuple[str, tuple[str, ...], int, float]:
    """Kinds of numbers of an array and its axes, at least and at most so many."""
    base, *marks = get_args(kind) if get_origin(kind) is Annotated else [kind]
    texts = [x for x in marks if isinstance(x, str)]
    said = [x for x in texts if x not in (*_NUMBERS, MISSING, INFINITE, EMPTY)]
    dims = getattr(base, "dim_str", said[0] if said else "...").split()
    fixed = [dim for dim in dims if not ("*" in dim or dim == "...")]
    name = getattr(base, "__name__", "").partition("[")[0]
    kinds = _NUMBERS.get(_mark(kind), _KINDS.get(name, ""))
    return kinds, tuple(dims), len(fixed), len(dims) if fixed == dims else math.inf


def _of_key(value: Any) -> str:
    """Also a key as `jax.random.PRNGKey` makes it."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    usable = str(dtype).startswith("key<") and shape == ()
    usable = usable or (str(dtype) == "uint32" and shape == (2,))
    return "" if usable else "a random key, as jax.random.key makes it"


def _as_array(value: Any, kind: Any) -> Any:
    """A list as the tuple, or the array of numbers, that an annotation asks for."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if isinstance(value, list) and get_origin(bare) is tuple:
        return tuple(value)
    array = _wanted(kind)
    if array is None or _of_array(value, missing=True):
        return value
    jax = sys.modules["jax"]
    return jax.numpy.asarray(value) if array is jax.Array else _numpy(value)


@functools.cache
def _wanted(kind: Any) -> type | None:
    """The type of array that alone is asked for."""
    parts = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    asked = [x for x in parts if x is not types.NoneType]
    if not all(_is_array(x) for x in asked) or all(_shape(x)[2] == 0 for x in asked):
        return None
    return getattr(asked[0], "array_type", object)


def _unlike(
    name: str, value: Any, axes: Callable[[int], Any], sizes: dict[str, tuple[Any, str]]
) -> str:
    """Of which size an array should be beside those before it; "" if it is.

    So is each array of an object, by the annotations of its class.
    """
    for field, axes_of in _fields(type(value)) or [("", axes)]:
        array = object.__getattribute__(value, field) if field else value
        plain = issubclass(type(array), (list, tuple))
        shape: Any = (len(array),) if plain else getattr(array, "shape", None)
        if shape is None:
            continue
        for dim, base, more, axis in axes_of(len(shape)):
            if field and (isinstance(axis, slice) or dim.isdigit()):
                continue  # more points than a state; a batch may come first
            size: Any = shape[axis]
            bare = max(size - more, 1) if more else size
            first = (int(dim), "") if dim.isdigit() else (bare, name)
            known, where = sizes.setdefault(base, first)
            known = known + more if more else known
            if known != size and not (field and where == name):
                of = f" in {dim}" * (where != "")
                of += f" to fit {where}" * (where not in ("", name))
                return f"of the size {known}{of}, not {size}"
    return ""


@functools.cache
def _fields(kind: type) -> list[tuple[str, Callable[[int], Any]]]:
    """Arrays among the fields of a class, each with its axes."""
    names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "_fields", ())
    hints = get_type_hints(kind) if names else {}
    return [(x, _axes(hints[x])) for x in names if hasattr(hints.get(x), "dim_str")]


def _is_array(kind: Any) -> bool:
    return hasattr(kind, "dim_str") or _mark(kind) in _NUMBERS


def _mark(kind: Any) -> str:
    """What numbers are in an array, or the name of the length of a sequence."""
    mark = getattr(kind, "__metadata__", ("",))[0]
    return mark if isinstance(mark, str) else ""


@functools.cache
def _axes(kind: Any) -> Callable[[int], Sequence[tuple[str, str, int, int | slice]]]:
    """Names of axes of an array of some rank, bare and by how much longer; numbers."""

    @functools.cache
    def axes(rank: int) -> Sequence[tuple[str, str, int, int | slice]]:
        for part in (kind, *get_args(kind)):
            _, dims, least, most = _shape(part)
            named = _is_array(part) or _mark(part).isidentifier()
            if not (named and least <= rank <= most):
                continue
            more = next((i for i, x in enumerate(dims) if "*" in x or x == "..."), rank)
            last = rank - len(dims) + 1 + more
            ends = [*enumerate(dims[:more]), *enumerate(dims[more + 1 :], last)]
            named = [(x, i) for i, x in ends if x[0].isalnum()]
            many = [(x, slice(more, last)) for x in dims[more : more + 1]]
            named += [(x, i) for x, i in many if x[1:].isidentifier()]
            cut = [(x, *x.partition("+")[::2], i) for x, i in named]
            return [(x, base, int(plus or 0), i) for x, base, plus, i in cut]
        return []

    return axes


_ANY = Any, _refusal(Any), _axes(Any)
