"""What the operations of JAX come to: (emitter, equation, *arguments) -> results."""

import collections
import itertools
import math
from collections.abc import Callable

import numpy as np

from statmech_attn.native.arithmetic import (
    Arithmetic,
    BOOL,
    constant,
    DOUBLE,
    INT64,
    known,
    number,
)
from statmech_attn.native.emitter import (
    array,
    bits_type,
    elements_of,
    elementwise,
    Emitter,
    scalar_type,
    short,
    TRACED,
    Unsupported,
)


def _each(function: Callable, type_of: Callable = scalar_type) -> Callable:
    """Rule of an operation of single numbers: function(emitter, *elements, type)."""

    def rule(emitter, equation, *arguments):
        type = type_of(equation.invars[0])
        return [elementwise(lambda *xs: function(emitter, *xs, type), *arguments)]

    return rule


def _of_doubles(name: str) -> Callable:
    """Rule of a function of `Arithmetic` of floating-point numbers."""

    def function(emitter, *elements):
        *elements, type = elements
        if type is not DOUBLE:
            raise Unsupported(f"it takes {name} of whole numbers")
        return getattr(emitter, name)(*elements)

    return _each(function)


def _known_to_llvm(name: str) -> Callable:
    def function(emitter, x, type):
        if type is not DOUBLE:
            raise Unsupported(f"it takes {name} of whole numbers")
        return emitter.intrinsic(name, *emitter.alike(x, type=DOUBLE))

    return _each(function)


def _of_library(name: str) -> Callable:
    return _each(lambda emitter, *xs: emitter.external(name, *xs[:-1]))


def _absolute(emitter, x, type):
    if number(x):
        return known(abs(x), type)
    if type is DOUBLE:
        return emitter.intrinsic("fabs", *emitter.alike(x, type=type))
    return emitter.largest(x, emitter.negative(x, type), type)


def _square_root(emitter, x):
    return emitter.intrinsic("sqrt", *emitter.alike(x, type=DOUBLE))


def _logistic(emitter, x, type):
    """The logistic function by the exponential below 1: the other may be infinite."""
    power = emitter.exp(emitter.negative(_absolute(emitter, x, type)))
    above = emitter.select(emitter.compare("<", x, 0.0), power, 1.0)
    return emitter.divide(above, emitter.add(1.0, power))


def _sign(emitter, x, type):
    zero, unit = (0.0, 1.0) if type is DOUBLE else (0, 1)
    up = emitter.select(emitter.compare(">", x, zero, type), unit, x, type)
    return emitter.select(emitter.compare("<", x, zero, type), -unit, up, type)


def _power(emitter, equation, x):
    exponent, type = equation.params["y"], scalar_type(equation.outvars[0])
    return [elementwise(lambda x: emitter.power(x, exponent, type), x)]


def _general_power(emitter, equation, x, y):
    of_base, kind = map(scalar_type, equation.invars)
    if of_base is not DOUBLE:
        raise Unsupported("it takes pow of whole numbers")
    power = lambda x, y: emitter.external("pow", x, emitter.convert(y, kind, DOUBLE))
    return [elementwise(power, x, y)]


def _select(emitter, equation, which, *cases):
    kind, type = scalar_type(equation.invars[0]), scalar_type(equation.outvars[0])

    def choose(place, *values):
        result = values[-1]
        for i, value in reversed(list(enumerate(values[:-1]))):
            earlier = emitter.compare("<=", place, i, kind)
            result = emitter.select(earlier, value, result, type)
        return result

    return [elementwise(choose, which, *cases)]


def _round(emitter, equation, x):
    to_even = int(equation.params["rounding_method"]) == 1
    rule = _known_to_llvm("rint" if to_even else "round")
    return rule(emitter, equation, x)


def _reduce_precision(emitter, equation, x):
    """No change: the precision of a double, which checkpoints ask for."""
    bits = [equation.params[f"{part}_bits"] for part in ("exponent", "mantissa")]
    if scalar_type(equation.invars[0]) is not DOUBLE or bits != [11, 52]:
        raise Unsupported("it uses reduce_precision to less than a double")
    return [x]


def _leading_zeros(emitter, x, type):
    (x,) = emitter.alike(x, type=type)
    return emitter.intrinsic("ctlz", x, constant(False, BOOL))


def _ones(emitter, x, type):
    return emitter.intrinsic("ctpop", *emitter.alike(x, type=type))


def _same_bits(emitter, equation, x):
    old, new = bits_type(equation.invars[0]), bits_type(equation.outvars[0])
    if old is new:
        return [x]
    if {old, new} != {DOUBLE, INT64}:
        raise Unsupported("it takes the bits of numbers of another width")
    read = emitter.double if new is DOUBLE else emitter.bits
    return [elementwise(lambda x: read(*emitter.alike(x, type=old)), x)]


def _log_of_sum(emitter, x, y, type):
    high, low = emitter.largest(x, y), emitter.smallest(x, y)
    apart = emitter.subtract(low, high)
    apart = emitter.select(emitter.compare("==", x, y), 0.0, apart)  # infinities
    return emitter.add(high, emitter.log1p(emitter.exp(apart)))


def _cumulative(function: Callable) -> Callable:
    """Rule of sums, or others, of the elements up to each."""

    def rule(emitter, equation, x):
        axis, type = equation.params["axis"], scalar_type(equation.invars[0])
        if equation.invars[0].aval.shape[axis] == TRACED:
            raise Unsupported("it adds up, or compares, lanes")
        combine = lambda a, b: elementwise(
            lambda *xs: function(emitter, *xs, type), a, b
        )
        order = slice(None, None, -1 if equation.params["reverse"] else 1)
        rows = np.split(x, x.shape[axis], axis)[order] if x.size else [x]
        return [np.concatenate(list(itertools.accumulate(rows, combine))[order], axis)]

    return rule


def _place_of(how: str) -> Callable:
    """Rule of the place of the first of the largest, or smallest, elements, or NaN."""

    def rule(emitter, equation, x):
        (axis,), shape = equation.params["axes"], equation.invars[0].aval.shape
        if shape[axis] == TRACED:
            raise Unsupported("it adds up, or compares, lanes")
        type, kind = map(scalar_type, (equation.invars[0], equation.outvars[0]))

        def place(*column):
            best, chosen = column[0], 0
            for i, element in enumerate(column[1:], 1):
                beyond = emitter.compare(how, element, best, type)
                if type is DOUBLE:
                    strange = emitter.compare("!=", element, element)
                    usual = emitter.compare("==", best, best)
                    first = emitter.logical("and", strange, usual, BOOL)
                    beyond = emitter.logical("or", beyond, first, BOOL)
                best = emitter.select(beyond, element, best, type)
                chosen = emitter.select(beyond, i, chosen, kind)
            return chosen

        rows = np.split(x, x.shape[axis], axis)
        return [np.squeeze(elementwise(place, *rows), axis)]

    return rule


def _pad(emitter, equation, x, filling):
    before, after = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    sources, targets = [], []
    for n, size, (low, high, between) in zip(
        before, after, equation.params["padding_config"], strict=True
    ):
        if n == TRACED and (low, high, between) != (0, 0, 0):
            raise Unsupported("it pads lanes")
        n, size = short((n,))[0], short((size,))[0]
        places = low + (between + 1) * np.arange(n)
        sources.append(np.flatnonzero((places >= 0) & (places < size)))
        targets.append(places[sources[-1]])
    shape = short(after)
    result = array(shape, [filling.item()] * math.prod(shape))
    result[np.ix_(*targets)] = x[np.ix_(*sources)]
    return [result]


def _convert(emitter, equation, x):
    old, new = scalar_type(equation.invars[0]), scalar_type(equation.outvars[0])
    return [elementwise(lambda x: emitter.convert(x, old, new), x)]


def _clamp(emitter, equation, low, x, high):
    type = scalar_type(equation.outvars[0])
    between = lambda low, x, high: emitter.smallest(
        emitter.largest(x, low, type), high, type
    )
    return [elementwise(between, low, x, high)]


def _broadcast(emitter, equation, x, *_):
    shape = short(equation.params["shape"])
    inner = [1] * len(shape)
    for axis, size in zip(
        equation.params["broadcast_dimensions"], x.shape, strict=True
    ):
        inner[axis] = size
    return [np.broadcast_to(x.reshape(inner), shape)]


def _reshape(emitter, equation, x, *_):
    old, new = equation.invars[0].aval.shape, equation.params["new_sizes"]
    before = lambda shape: math.prod(shape[: shape.index(TRACED)])
    if TRACED in old and (TRACED not in new or before(old) != before(tuple(new))):
        raise Unsupported("it joins the axis of lanes with others")
    return [x.reshape(short(new))]


def _slice(emitter, equation, x):
    params = equation.params
    strides = params["strides"] or [1] * x.ndim
    places = []
    for n, a, b, s in zip(
        equation.invars[0].aval.shape,
        params["start_indices"],
        params["limit_indices"],
        strides,
        strict=True,
    ):
        if n == TRACED and (a, b, s) != (0, n, 1):
            raise Unsupported("it takes some of the lanes")
        places.append(slice(0, 1) if n == TRACED else slice(a, b, s))
    return [x[tuple(places)]]


def _split(emitter, equation, x):
    axis, sizes = equation.params["axis"], equation.params["sizes"]
    if equation.invars[0].aval.shape[axis] == TRACED:
        raise Unsupported("it takes some of the lanes")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _reverse(emitter, equation, x):
    axes = equation.params["dimensions"]
    if any(equation.invars[0].aval.shape[a] == TRACED for a in axes):
        raise Unsupported("it changes the order of the lanes")
    return [np.flip(x, axes)]


def _iota(emitter, equation):
    shape, axis = equation.params["shape"], equation.params["dimension"]
    if shape[axis] == TRACED:
        raise Unsupported("it numbers the lanes")
    inner = [1] * len(shape)
    inner[axis] = shape[axis]
    numbers = np.arange(shape[axis]).astype(equation.params["dtype"])
    return [np.broadcast_to(elements_of(numbers.reshape(inner)), short(shape))]


def _concatenate(emitter, equation, *arrays):
    axis = equation.params["dimension"]
    if any(v.aval.shape[axis] == TRACED for v in equation.invars):
        raise Unsupported("it joins lanes")
    return [np.concatenate(arrays, axis=axis)]


def _divide(emitter, equation, x, y):
    """Divide; several numbers over the same one by its reciprocal."""
    type = scalar_type(equation.outvars[0])
    x, y = np.broadcast_arrays(x, y)
    times = collections.Counter(map(id, y.flat))
    often = {id(e): e for e in y.flat if times[id(e)] > 1 and not number(e)}
    if type is not DOUBLE:
        often = {}
    reciprocals = {key: emitter.divide(1.0, e) for key, e in often.items()}

    def quotient(x, y):
        if id(y) in reciprocals:
            return emitter.multiply(x, reciprocals[id(y)])
        return emitter.divide(x, y, type)

    return [elementwise(quotient, x, y)]


def _finite(emitter, x, type):
    if number(x):
        return math.isfinite(x)
    return emitter.compare("<", _absolute(emitter, x, type), math.inf)


def _inline(emitter, equation, *arguments):
    return emitter.inlined(equation, *arguments)


def _reduce(name: str) -> Callable:
    return lambda e, equation, x: e.reduced(equation, x, getattr(e, name))


def _scatter(name: str) -> Callable:
    return lambda e, equation, *xs: e.scattered(equation, *xs, getattr(e, name))


def _reduce_logical(how: str) -> Callable:
    function = lambda e: lambda x, y, type: e.logical(how, x, y, type)
    return lambda e, equation, x: e.reduced(equation, x, function(e))


OF_THE_PACKAGE = (
    *("exp", "exp2", "expm1", "log", "log1p", "tanh"),
    *("one_minus_square", "polynomial"),
)
OF_THE_LIBRARY = (
    *("log2", "nextafter"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "asinh", "acosh", "atanh"),
    *("cbrt", "erf", "erfc"),
)
RULES: dict[str, Callable] = {
    "add": _each(Arithmetic.add),
    "add_any": _each(Arithmetic.add),
    "sub": _each(Arithmetic.subtract),
    "mul": _each(Arithmetic.multiply),
    "div": _divide,
    "rem": _each(Arithmetic.remainder),
    "neg": _each(Arithmetic.negative),
    "max": _each(Arithmetic.largest),
    "min": _each(Arithmetic.smallest),
    "abs": _each(_absolute),
    "sign": _each(_sign),
    "square": _each(lambda e, x, type: e.multiply(x, x, type)),
    "integer_pow": _power,
    "pow": _general_power,
    "sqrt": _known_to_llvm("sqrt"),
    "rsqrt": _each(lambda e, x, type: e.divide(1.0, _square_root(e, x))),
    "logistic": _each(_logistic),
    "floor": _known_to_llvm("floor"),
    "ceil": _known_to_llvm("ceil"),
    "round": _round,
    "reduce_precision": _reduce_precision,
    **{name: _of_doubles(name) for name in OF_THE_PACKAGE},
    **{name: _of_library(name) for name in OF_THE_LIBRARY},
    "is_finite": _each(_finite),
    **{
        name: _each(lambda e, x, y, type, how=how: e.compare(how, x, y, type))
        for name, how in {
            "eq": "==",
            "ne": "!=",
            "lt": "<",
            "le": "<=",
            "gt": ">",
            "ge": ">=",
        }.items()
    },
    **{
        name: _each(
            lambda e, x, y, type, how=name: e.logical(how, x, y, type), bits_type
        )
        for name in ("and", "or", "xor")
    },
    "not": _each(Arithmetic.invert, bits_type),
    **{
        name: _each(lambda e, x, y, type, how=how: e.shift(how, x, y, type))
        for name, how in {
            "shift_left": "shl",
            "shift_right_logical": "lshr",
            "shift_right_arithmetic": "ashr",
        }.items()
    },
    "population_count": _each(_ones),
    "clz": _each(_leading_zeros),
    "bitcast_convert_type": _same_bits,
    "select_n": _select,
    "clamp": _clamp,
    "convert_element_type": _convert,
    **{
        name: lambda e, equation, *xs: list(xs)
        for name in ("copy", "copy_p", "stop_gradient", "optimization_barrier")
    },
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda e, q, x: [np.squeeze(x, q.params["dimensions"])],
    "expand_dims": lambda e, q, x: [np.expand_dims(x, q.params["dimensions"])],
    "transpose": lambda e, q, x: [np.transpose(x, q.params["permutation"])],
    "concatenate": _concatenate,
    "stack": lambda e, q, *xs: [np.stack(xs, q.params["axis"])],
    "unstack": lambda e, q, x: list(np.moveaxis(x, q.params["axis"], 0)),
    "slice": _slice,
    "split": _split,
    "rev": _reverse,
    "iota": _iota,
    "dynamic_slice": Emitter.dynamic_slice,
    "dynamic_update_slice": Emitter.dynamic_update_slice,
    "gather": Emitter.moved,
    "scatter": Emitter.moved,
    "scatter-add": _scatter("add"),
    "scatter-sub": _scatter("subtract"),
    "scatter-mul": _scatter("multiply"),
    "scatter-max": _scatter("largest"),
    "scatter-min": _scatter("smallest"),
    "reduce_sum": _reduce("add"),
    "reduce_prod": _reduce("multiply"),
    "reduce_max": _reduce("largest"),
    "reduce_min": _reduce("smallest"),
    "reduce_and": _reduce_logical("and"),
    "reduce_or": _reduce_logical("or"),
    "reduce_xor": _reduce_logical("xor"),
    "cumsum": _cumulative(Arithmetic.add),
    "cumprod": _cumulative(Arithmetic.multiply),
    "cummax": _cumulative(Arithmetic.largest),
    "cummin": _cumulative(Arithmetic.smallest),
    "cumlogsumexp": _cumulative(_log_of_sum),
    "argmax": _place_of(">"),
    "argmin": _place_of("<"),
    "pad": _pad,
    "dot_general": Emitter.dot_general,
    "while": Emitter.while_loop,
    "scan": Emitter.scan,
    "cond": Emitter.branches,
    **{
        name: _inline
        for name in (
            "jit",
            "pjit",
            "closed_call",
            "core_call",
            "remat",
            "checkpoint",
            "remat2",
            "custom_jvp_call",
            "custom_vjp_call",
            "custom_vjp_call_jaxpr",
        )
    },
}
