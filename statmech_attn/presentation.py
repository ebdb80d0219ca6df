"""Results as users see them: lines of text, a table in a notebook, a data set.

A class of results says once, in rows of `labels.Variable`, what its numbers are, and
takes over the three methods that read them:

    class Rotation(eqx.Module):
        number: Float[Array, "*batch"]
        error: Float[Array, "*batch"]
        _shown = (Variable("rotation_number", "", "rotation number", value="number"),)
        __repr__, _repr_html_, to_dataset = presentation.METHODS
"""

import dataclasses
import functools
import html
import inspect
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, cast, TYPE_CHECKING, TypeVar

import numpy as np

from statmech_attn.labels import plural, STEP, unit_of, Variable


if TYPE_CHECKING:
    import xarray as xr


Function = TypeVar("Function", bound=Callable[..., Any])
PARAMETERS = "params", "parameters"  # names of arguments
SYSTEMS = "system", "field", "problem", "net"
_GIVEN = "_result_of"  # attribute of a result
LISTED = 6  # numbers of a row that are listed; of more there is their range
DIGITS = 6  # of a number that a person reads; an error below the last is not written
ZERO = ", 0 if none"  # ending of the name of a number that is 0 where there is none
PLAIN = -3, 6  # powers of ten of numbers that are written without one
HTML = "<table><caption>{}</caption>{}</table>"
HTML_ROW = '<tr><th style="text-align:left">{}</th><td style="text-align:left">{}</td>'


def quantity(value: Any, error: Any = math.nan) -> str:
    """A number with its error, to the digits that the error leaves, six at most.

    An error that lies below the sixth digit is left out: all that is written is known.
    """
    number, error = float(value), float(error)
    if not math.isfinite(number):
        return str(number).replace("inf", "∞").replace("nan", "NaN")
    size = math.floor(math.log10(abs(number))) if number else 0
    last = 10.0 ** (size - DIGITS + 1) if number else 0.0
    if not (math.isfinite(error) and error >= last and error):
        return f"{number:.{DIGITS}g}"
    error = float(f"{error:.1g}")
    place = -math.floor(math.log10(error))
    rounded = f"{round(number, place) + 0.0:.{max(place, 0)}f}"  # no minus sign of 0
    if not PLAIN[0] <= max(size, -place) < PLAIN[1] and number:
        rounded = f"{number:.{max(size + place, 0)}e}"
    return f"{rounded} ± {error:g}"


def text(self: Any) -> str:
    """Name of the class, and a line for every row; shapes while JAX traces it."""
    import equinox as eqx

    rows = _lines(self)
    if rows is None:
        return eqx.tree_pformat(self)
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"  {name:<{width}}  {words}" for name, words in rows]
    return "\n".join([type(self).__name__, *lines])


def as_html(self: Any) -> str:
    """A result as a table of HTML."""
    rows = _lines(self)
    if rows is None:
        return f"<pre>{html.escape(text(self))}</pre>"
    body = [HTML_ROW.format(*map(html.escape, row)) for row in rows]
    return HTML.format(html.escape(type(self).__name__), "".join(body))


def to_dataset(self: Any) -> "xr.Dataset":
    """All numbers with their names, units and errors; the axes of a batch first.

    `statmech_attn.storage.write` writes it, and so does its own `to_netcdf`.
    """
    import xarray as xr

    kind = _words_of(type(self).__name__)
    variables = {
        row.name: (row.dims.split(), x, row.attributes()) for row, x in columns(self)
    }
    attributes = {"kind": kind, "title": kind.replace("-", " ")}
    return _of_given(xr.Dataset(variables, attrs=attributes), _given_to(self))


def columns(
    self: Any, keep: Collection[str] | None = None
) -> Iterator[tuple[Variable, np.ndarray]]:
    """Numbers of a result with their labels, or of the rows named and of dimensions."""
    known = lambda row: keep is None or row.name in keep or row.name == row.dims
    for row, values, errors in _rows(self, filter(known, self._shown)):
        label = row.in_steps(getattr(self, "unit", STEP))
        error = label.ended(row.part_of_error)
        for part, numbers in ((label, values), (error, errors)):
            for ending, real in _real(numbers):
                name, dims = part.name + ending, " ".join(_dims(row, real))
                symbol = part.symbol or part.name
                yield part._replace(name=name, dims=dims, symbol=symbol), real


def knows_given(function: Function) -> Function:
    """A function whose results know the network, system and parameters it was given.

    Their data sets hold these; so do those of results that it makes of other results.
    What JAX traces has no numbers to be known.
    """
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        import jax
        import jax.core

        result, given = function(*arguments, **options), {}
        passed = dict(zip(names, arguments)) | options
        for value in passed.values():
            given |= _given_to(value)
        given |= {n: passed[n] for n in (*SYSTEMS, *PARAMETERS) if n in passed}
        traced = (isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(given))
        if hasattr(result, "_shown") and not any(traced):
            if not hasattr(result, "__dict__"):
                result = _roomy(type(result))(*result)
            vars(result)[_GIVEN] = given  # no part of the tree that it is
        return result

    return cast(Function, wrapped)


@functools.cache
def _roomy(kind: type) -> type:
    """A class of named tuples, with room beside the fields; pickles are as before."""
    members = {name: getattr(kind, name) for name in ("__module__", "__doc__")}
    members["__reduce__"] = lambda self: (kind, tuple(self))
    return type(kind.__name__, (kind,), members)


def _given_to(result: Any) -> dict[str, Any]:
    """What the function was given that made a result."""
    return getattr(result, "__dict__", {}).get(_GIVEN, {})


def _of_given(dataset: "xr.Dataset", given: Mapping[str, Any]) -> "xr.Dataset":
    """A data set with the parameters, along the axis of the only one that varies."""
    problem = given.get("problem")
    posed = getattr(problem, "parameters", problem)
    parameters = next((given[n] for n in PARAMETERS if n in given), posed)
    labels = {row.name: row for row in getattr(parameters, "_shown", ())}
    if dataclasses.is_dataclass(parameters):
        parameters = vars(parameters)
    of_batch = lambda d: d == "start" or str(d).startswith("batch")
    batch = tuple(str(d) for d in dataset.sizes if of_batch(d))
    shape, known = tuple(dataset.sizes[d] for d in batch), {}
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        values = np.asarray(value)
        free = name in dataset or name == getattr(problem, "free", "")
        if values.dtype.kind in "iuf" and values.size and not free:
            constant = (values == values.flat[0]).all()
            values = values.flat[0] if constant else values
            if np.shape(values) in ((), shape):
                label = labels.get(name, Variable(name, "", f"parameter {name}"))
                dims = batch if np.ndim(values) else ()
                known[name] = dims, values, label.attributes()
    dataset = dataset.assign_coords(known)
    along = [name for name, (dims, *_) in known.items() if dims]
    if len(along) == len(batch) == 1:
        dataset = dataset.swap_dims({batch[0]: along[0]})
    return dataset.assign_attrs(_words_of_given(given))


def about(result: Any) -> dict[str, Any]:
    """Attributes of a file: what a result was made of, and what its steps are."""
    unit = {"unit": result.unit} if hasattr(result, "unit") else {}
    return _words_of_given(_given_to(result)) | unit


def _words_of_given(given: Mapping[str, Any]) -> dict[str, Any]:
    step = next((given[n] for n in SYSTEMS if n in given), None)
    name = getattr(getattr(step, "step", step), "__name__", "")
    words = {"system": name} if name else {}
    net = given.get("net", getattr(given.get("problem"), "net", None))
    return words | getattr(net, "file_attributes", {})


METHODS = (text, as_html, to_dataset)  # __repr__, _repr_html_ and to_dataset


def batch_first(result: Any, values: np.ndarray, own: int) -> np.ndarray:
    """Numbers of a batch with its axes before their own ones, which are so many.

    The package puts the axes of a batch last, `jax.vmap` puts its own first.
    """
    leading = getattr(result, "leading_axes", 0)  # axes of a batch that stand first
    trailing = values.ndim - leading - own
    if trailing <= 0:
        return values
    last = range(values.ndim - trailing, values.ndim)
    return np.moveaxis(values, last, range(leading, leading + trailing))


def _rows(result: Any, rows: Iterable[Variable]):
    """Rows with their numbers and errors, or None where there are none."""
    for row in rows:
        value = _attribute(result, row.value or row.name)
        if value is None:
            continue
        error = _attribute(result, row.error) if row.error else None
        axes = len(row.dims.split())
        first = lambda x: batch_first(result, np.asarray(x), axes)
        yield row, first(value), None if error is None else first(error)


def _attribute(result: Any, path: str | Callable[[Any], Any]) -> Any:
    if not isinstance(path, str):
        return path(result)
    for name in path.split("."):
        result = getattr(result, name)
    return result


def _lines(result: Any) -> list[tuple[str, str]] | None:
    """Name and words of every row; None where the numbers are not known (yet)."""
    import jax
    import jax.core

    leaves = jax.tree.leaves(result)
    if any(isinstance(x, (jax.core.Tracer, jax.ShapeDtypeStruct)) for x in leaves):
        return None
    lines = []
    shown = [row for row in result._shown if row.line]
    for row, values, errors in _rows(result, shown):
        numbers = [x for x in (values, errors) if x is not None and x.dtype.kind == "f"]
        if not (numbers and all(np.isnan(x).all() for x in numbers)):
            if row.long_name.endswith(ZERO) and not values.any():
                lines.append((row.long_name.removesuffix(ZERO), "none"))
                continue
            labelled = row.in_steps(getattr(result, "unit", STEP))
            unit = unit_of(labelled.attributes())
            counts = unit.isalpha() and values.dtype.kind in "iu"
            unit = plural(unit) if counts and (values != 1).any() else unit
            unit = "" if unit == "1" else f" {unit}"
            lines.append((row.long_name, f"{_said(row, values, errors)}{unit}"))
    why = getattr(result, "explain", None)
    if why is not None and isinstance(words := why(), str):
        lines.append(("why", words))
    return lines


def _said(row: Variable, values: np.ndarray, errors: np.ndarray | None) -> str:
    """The numbers of a row in words."""
    if row.flags or values.dtype == bool:
        words = row.flags or ("no", "yes")
        if not values.ndim:
            return words[int(values)]
        codes, counts = np.unique(values.astype(int), return_counts=True)
        word = lambda code: words[code] if 0 <= code < len(words) else str(code)
        return ", ".join(f"{word(c)} {n}" for c, n in zip(codes, counts))
    if values.dtype.kind in "UO":
        return ", ".join(map(str, values.ravel()[:LISTED]))
    if errors is None:
        errors = np.full(values.shape, np.nan)
    if values.size <= LISTED:
        pairs = zip(values.ravel(), np.broadcast_to(errors, values.shape).ravel())
        return ", ".join(_complex(value, error) for value, error in pairs)
    sizes = " × ".join(map(str, values.shape))
    known = np.abs(values) if values.dtype.kind == "c" else values
    known = known[~np.isnan(known)]
    if not known.size:
        return f"NaN ({sizes})"
    low, high = quantity(known.min()), quantity(known.max())
    span = f"{low} to {high}" if low != high else f"all {low}"
    known_errors = errors[np.isfinite(errors)]
    bound = f", errors up to {known_errors.max():.1g}" if known_errors.any() else ""
    return f"{span}{bound} ({sizes})"


def _complex(value: Any, error: Any) -> str:
    """A number that may have an imaginary part."""
    if not np.iscomplexobj(value):
        return quantity(value, error)
    if value.imag == 0:
        return quantity(value.real)
    return f"{value.real:.6g} {'-' if value.imag < 0 else '+'} {abs(value.imag):.6g}i"


def _real(values: Any):
    """Real and imaginary parts with the endings of their names; real ones alone."""
    if values is None:
        return []
    if np.iscomplexobj(values):
        return [("_re", values.real), ("_im", values.imag)]
    return [("", values)]


def _dims(row: Variable, values: np.ndarray) -> tuple[str, ...]:
    """Dimensions of a variable, those of a batch first."""
    axes = row.dims.split()
    count = values.ndim - len(axes)
    batch = ["batch"] if count == 1 else [f"batch_{i + 1}" for i in range(count)]
    return (*batch, *axes)


def _words_of(name: str) -> str:
    """The name of a class as that of a kind of file."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).strip("-")


def png(figure: Any) -> bytes:
    """A figure as a picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
