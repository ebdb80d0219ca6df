"""Every operation of single numbers on special values: NumPy's, XLA's, exact numbers.

XLA takes subnormal numbers for zeros, here and in its results, and is not asked there.
"""

import functools
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxprs_in_params

from statmech_attn import native
from statmech_attn.batches.hardware import has_cuda


pytest.importorskip("llvmlite", exc_type=ImportError)
rules = pytest.importorskip("statmech_attn.native.rules", exc_type=ImportError)
LEAST = 2.0**-1022  # of the normal numbers
LONG = np.longdouble
PI = 4 * np.arctan(LONG(1))
REALS = np.array(
    [
        *(0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 20.0, np.inf),
        *(5e-324, 1e-310, LEAST, 1e-300, 1e-17, 1e300, np.finfo(float).max),
        *(1 - 2**-53, 1 + 2**-52, 0.5 - 2**-54),
        *(2.0**52 + 0.5, 2.0**53 + 2, 2.0**31 - 1, 2.0**31, 2.0**63, 1e19),
        *(709.7, 710.5, 745.1, 745.2, 1023.9, 1024.0, 1074.0, 1075.5),
    ]
)
REALS = np.concatenate([REALS, -REALS, [np.nan]])
BOOLEANS = np.array([False, True])


def wholes(dtype):
    ends = np.iinfo(dtype)
    some = [0, 1, 2, 3, 7, 12345, ends.bits - 1, ends.bits, ends.bits + 1]
    return np.array(
        [*some, *(-n for n in some), ends.max, ends.min, ends.min + 1], dtype
    )


KINDS = {
    "float64": REALS,
    "int32": wholes("int32"),
    "int64": wholes("int64"),
    "bool": BOOLEANS,
}


def gpu():
    """An NVIDIA GPU where there is one; None for the processor."""
    device = jax.devices()[0]
    return device if has_cuda(device) else None


def of_lanes(function, *arguments):
    """A function of arrays with lanes, natively."""
    example = lambda n: tuple(np.zeros((*x.shape[:-1], n), x.dtype) for x in arguments)
    program = native.Native(function, example, device=gpu())
    return jax.tree.map(np.asarray, program(*arguments))


def pairs(values, others=None, times=2):
    """All pairs of some values, or triples, as arguments."""
    others = values if others is None else others
    return [
        np.array(x, a.dtype)
        for x, a in zip(
            zip(*itertools.product(values, *[others] * (times - 1)), strict=True),
            [values, *[others] * (times - 1)],
            strict=True,
        )
    ]


def identical(x, y):
    """The same bits, but for those of a NaN."""
    if x.dtype != float:
        return x == y
    return np.where(
        np.isnan(x), np.isnan(y), (x == y) & (np.signbit(x) == np.signbit(y))
    )


def normal(*arrays):
    """Where no number is subnormal, or is the least normal one, which XLA may round."""
    at = lambda x: (x == 0) | ~(abs(x) <= LEAST) if x.dtype == float else x == x
    return np.all([at(np.asarray(x)) for x in arrays], axis=0)


def check(function, arguments, exact=None):
    """Bits of NumPy everywhere, and those of XLA where it has no subnormal numbers."""
    result = np.asarray(of_lanes(function, *arguments))
    expected = np.asarray(jax.jit(function)(*arguments))
    assert result.dtype == expected.dtype
    if exact is not None:
        with np.errstate(all="ignore"):
            true = np.asarray(exact(*arguments))
        wrong = ~identical(result, true)
        assert not wrong.any(), [x[wrong] for x in (*arguments, result, true)]
        expected = np.where(normal(expected), expected, true)
        asked = normal(*arguments, true)
    else:
        asked = normal(*arguments, result, expected)
    wrong = asked & ~identical(result, expected)
    assert not wrong.any(), [x[wrong] for x in (*arguments, result, expected)]


def rounded(method):
    return lambda x: lax.round(x, getattr(lax.RoundingMethod, method))


def to(dtype):
    return lambda x: x.astype(dtype)


def sign_of(x):
    return np.where(np.isnan(x) | (x == 0), x, np.copysign(1.0, x))


def one_minus_square(x):
    """What later versions of JAX have one operation for."""
    operation = getattr(lax, "one_minus_square_p", None)
    return operation.bind(x) if operation else (1 - x) * (1 + x)


# Function, types, and the same of NumPy where the standard fixes the result.
UNARY = {
    "neg": (lax.neg, "float64 int32 int64", np.negative),
    "abs": (lax.abs, "float64 int32 int64", np.abs),
    "sign": (lax.sign, "int32 int64", np.sign),
    "sign of reals": (lax.sign, "float64", sign_of),
    "square": (lax.square, "float64 int32 int64", np.square),
    "one_minus_square": (one_minus_square, "float64", lambda x: (1 - x) * (1 + x)),
    "sqrt": (lax.sqrt, "float64", np.sqrt),
    "floor": (lax.floor, "float64", np.floor),
    "ceil": (lax.ceil, "float64", np.ceil),
    "round to even": (rounded("TO_NEAREST_EVEN"), "float64", np.rint),
    "round away": (rounded("AWAY_FROM_ZERO"), "float64", None),
    "is_finite": (lax.is_finite, "float64", np.isfinite),
    "not": (lax.bitwise_not, "int32 int64 bool", np.invert),
    "population_count": (lax.population_count, "int32 int64", None),
    "clz": (lax.clz, "int32 int64", None),
    "stop_gradient": (lax.stop_gradient, "float64 int32 bool", lambda x: x),
    "reduce_precision": (
        lambda x: lax.reduce_precision(x, 11, 52),
        "float64",
        lambda x: x,
    ),
    "barrier": (lax.optimization_barrier, "float64", lambda x: x),
    **{
        f"power {n}": (
            lambda x, n=n: lax.integer_pow(x, n),
            "float64 int32 int64",
            None,
        )
        for n in (0, 1, 2, 3, 7)
    },
    "power -1": (lambda x: lax.integer_pow(x, -1), "float64", lambda x: 1 / x),
    "power -2": (lambda x: lax.integer_pow(x, -2), "float64", lambda x: 1 / (x * x)),
    **{f"to {kind}": (to(kind), " ".join(KINDS), None) for kind in KINDS},
    "bits": (
        lambda x: lax.bitcast_convert_type(x, "int64"),
        "float64 int64",
        lambda x: x.view("int64"),
    ),
    "number of bits": (
        lambda x: lax.bitcast_convert_type(x, "float64"),
        "float64 int64",
        lambda x: x.view("float64"),
    ),
    "half of the bits": (
        lambda x: lax.bitcast_convert_type(
            lax.bitcast_convert_type(x, "uint64") & np.uint64(0xFFFFFFFF << 32),
            "float64",
        ),
        "float64",
        lambda x: (x.view("uint64") & np.uint64(0xFFFFFFFF << 32)).view("float64"),
    ),
}
ORDERED = "float64 int32 int64 bool"
BINARY = {
    "add": (lax.add, "float64 int32 int64", np.add),
    "sub": (lax.sub, "float64 int32 int64", np.subtract),
    "mul": (lax.mul, "float64 int32 int64", np.multiply),
    "div": (lax.div, "float64", np.divide),
    "div of wholes": (lax.div, "int32 int64", None),
    "rem": (lax.rem, "float64", np.fmod),
    "nextafter": (lax.nextafter, "float64", np.nextafter),
    "rem of wholes": (lax.rem, "int32 int64", None),
    "max": (lax.max, ORDERED, None),
    "min": (lax.min, ORDERED, None),
    "and": (lax.bitwise_and, "int32 int64 bool", np.bitwise_and),
    "or": (lax.bitwise_or, "int32 int64 bool", np.bitwise_or),
    "xor": (lax.bitwise_xor, "int32 int64 bool", np.bitwise_xor),
    "shift_left": (lax.shift_left, "int32 int64", None),
    "shift_right_logical": (lax.shift_right_logical, "int32 int64", None),
    "shift_right_arithmetic": (lax.shift_right_arithmetic, "int32 int64", None),
    "eq": (lax.eq, ORDERED, np.equal),
    "ne": (lax.ne, ORDERED, np.not_equal),
    "lt": (lax.lt, ORDERED, np.less),
    "le": (lax.le, ORDERED, np.less_equal),
    "gt": (lax.gt, ORDERED, np.greater),
    "ge": (lax.ge, ORDERED, np.greater_equal),
}
OTHERS = {
    "clamp": (lax.clamp, [x[::3] for x in pairs(REALS, REALS[::2], 3)]),
    "select_n": (lambda w, *xs: lax.select_n(w, *xs), [REALS > 0, REALS, -REALS]),
    "select_n of three": (
        lambda w, *xs: lax.select_n(w, *xs),
        [np.arange(REALS.size, dtype="int32") % 3, REALS, -REALS, REALS[::-1].copy()],
    ),
}


def typed(table):
    return [
        pytest.param(function, kind, exact, id=f"{name}-{kind}")
        for name, (function, kinds, exact) in table.items()
        for kind in kinds.split()
    ]


@pytest.mark.parametrize(("function", "kind", "exact"), typed(UNARY))
def test_an_exact_function_has_the_same_bits(function, kind, exact):
    check(function, [KINDS[kind]], exact)


@pytest.mark.parametrize(("function", "kind", "exact"), typed(BINARY))
def test_an_exact_operation_has_the_same_bits(function, kind, exact):
    check(function, pairs(KINDS[kind]), exact)


@pytest.mark.parametrize(("function", "arguments"), OTHERS.values(), ids=OTHERS)
def test_a_choice_has_the_same_bits(function, arguments):
    check(function, arguments)


@pytest.mark.parametrize(("function", "kind", "exact"), typed(BINARY))
def test_numbers_that_are_known_give_the_same_bits(function, kind, exact):
    """What is worked out while the program is made; of zeros the sign may differ."""
    values = KINDS[kind][[0, 1, 2, 5, -1, -2, -3]] if kind != "bool" else BOOLEANS
    values = values[normal(values)]
    x, y = pairs(values)
    known = lambda lanes: jnp.broadcast_to(
        function(jnp.asarray(x), jnp.asarray(y))[:, None], (x.size, lanes.size)
    )
    result = of_lanes(known, np.zeros(8))[:, 0]
    expected = function(x, y)
    asked = normal(x, y, expected)
    np.testing.assert_array_equal(result[asked], np.asarray(expected)[asked])


# Exact functions of numbers with 64 bits of mantissa


def error_function(x):
    """erf by its series of positive terms, in which nothing cancels."""
    square, term = x * x, 2 * x / np.sqrt(PI)
    total = term.copy()
    for n in range(1, 200):
        term = term * 2 * square / (2 * n + 1)
        total += term
    return np.where(abs(x) > 6.5, np.sign(x), np.exp(-square) * total)


def complement(x):
    """erfc by its continued fraction, from 1 on."""
    fraction = x.copy()
    for n in range(1000, 0, -1):
        fraction = x + LONG(n) / 2 / fraction
    far = np.exp(-x * x) / fraction / np.sqrt(PI)
    far = np.where(np.isinf(x), 0, far)
    return np.where(x < 1, 1 - error_function(x), far)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def horner(x, coefficients):
    return functools.reduce(lambda total, c: total * x + c, coefficients[::-1])


EVEN = (1.0, 0.0, 0.5, 0.0, 0.25)  # coefficients without cancellation
# Function, the same of longer numbers, range of random numbers, error in units.
ANALYTIC = {
    "exp": (lax.exp, np.exp, (-745, 709.7), 2),
    "exp2": (lax.exp2, np.exp2, (-1074, 1023.9), 2),
    "expm1": (lax.expm1, np.expm1, (-40, 709.7), 2),
    "log": (lax.log, np.log, (0, 1e3), 2),
    "log2": (jnp.log2, np.log2, (0, 1e3), 2),
    "log1p": (lax.log1p, np.log1p, (-1, 1e3), 2),
    "tanh": (lax.tanh, np.tanh, (-20, 20), 4),
    "logistic": (lax.logistic, logistic, (-745, 40), 3),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x), (0, 1e3), 2),
    "sin": (lax.sin, np.sin, (-1e6, 1e6), 1),
    "cos": (lax.cos, np.cos, (-1e6, 1e6), 1),
    "tan": (lax.tan, np.tan, (-1e6, 1e6), 1),
    "asin": (lax.asin, np.arcsin, (-1, 1), 1),
    "acos": (lax.acos, np.arccos, (-1, 1), 1),
    "atan": (lax.atan, np.arctan, (-50, 50), 1),
    "sinh": (lax.sinh, np.sinh, (-709, 709), 2),
    "cosh": (lax.cosh, np.cosh, (-709, 709), 2),
    "asinh": (lax.asinh, np.arcsinh, (-1e3, 1e3), 2),
    "acosh": (lax.acosh, np.arccosh, (1, 1e3), 2),
    "atanh": (lax.atanh, np.arctanh, (-1, 1), 2),
    "cbrt": (lax.cbrt, np.cbrt, (-1e3, 1e3), 4),
    "polynomial": (
        lambda x: getattr(lax, "polynomial", horner)(x, EVEN),
        lambda x: horner(x, EVEN),
        (-50, 50),
        2,
    ),
    "erf": (lax.erf, error_function, (-6, 6), 2),
    "erfc": (lax.erfc, complement, (-6, 26.5), 4),
}
OF_CUDA = 3  # units, of functions of the mathematical library
ANALYTIC_OF_TWO = {
    "pow": (lax.pow, np.power, 1),
    "atan2": (lax.atan2, np.arctan2, 1),
}


def in_units(name, most):
    """The largest error of a function here: CUDA's library has its own."""
    of_library = name in (*rules.OF_THE_LIBRARY, "pow")
    return max(most, OF_CUDA) if of_library and gpu() else most


def errors(result, exact):
    """In units in the last place of the nearest double; infinite for another class."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(float)
        alike = identical(result, nearest)
        size = np.abs(result.astype(LONG) - exact) / np.spacing(np.abs(nearest))
        zeros = (result == 0) == (nearest == 0)
        side = np.signbit(result) == np.signbit(nearest)
        near = np.where(
            np.isfinite(result) & side & (zeros | (size <= 1)), size, np.inf
        )
    return np.where(alike, np.where(np.isfinite(size), size, 0), near)


def as_xla(function, arguments, result):
    """The same classes as XLA's, and the same function."""
    expected = np.asarray(jax.jit(function)(*arguments))
    asked = (
        normal(*arguments, result, expected)
        & np.isfinite(expected)
        & np.isfinite(result)
    )
    np.testing.assert_allclose(result[asked], expected[asked], rtol=1e-11)
    nan = normal(*arguments)
    np.testing.assert_array_equal(np.isnan(result)[nan], np.isnan(expected)[nan])


@pytest.mark.parametrize("name", ANALYTIC)
def test_a_function_is_within_its_units_in_the_last_place(name):
    function, exact, (low, high), most = ANALYTIC[name]
    most = in_units(name, most)
    assert np.finfo(LONG).nmant >= 63
    rng = np.random.default_rng(1)
    small = 10 ** rng.uniform(-12, 0, 20_000)
    x = [REALS, rng.uniform(low, high, 40_000), small, -small, 1 + small, 1 - small]
    x = np.concatenate(x)
    result = of_lanes(function, x)
    with np.errstate(all="ignore"):
        worst = errors(result, exact(x.astype(LONG)))
    assert worst.max() <= most, x[worst > most]
    as_xla(function, [REALS], of_lanes(function, REALS))


@pytest.mark.parametrize("name", ANALYTIC_OF_TWO)
def test_a_function_of_two_is_within_its_units_in_the_last_place(name):
    function, exact, most = ANALYTIC_OF_TWO[name]
    most = in_units(name, most)
    rng = np.random.default_rng(2)
    random = np.exp(rng.uniform(-3, 3, (2, 40_000)))
    x, y = (np.concatenate(pair) for pair in zip(pairs(REALS), random, strict=True))
    x, y = (z[abs(y) != 2.0**63] for z in (x, y))  # which powl takes for odd
    result = of_lanes(function, x, y)
    with np.errstate(all="ignore"):
        worst = errors(result, exact(x.astype(LONG), y.astype(LONG)))
    assert worst.max() <= most, (x[worst > most], y[worst > most])


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_power_takes_a_whole_exponent(kind):
    x, n = pairs(REALS[normal(REALS)], np.array([-3, -1, 0, 1, 2, 5], kind))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(LONG), n)
    assert errors(of_lanes(lax.pow, x, n), exact).max() <= 1


# Rows


def rows(kind, count=3):
    return np.stack(pairs(KINDS[kind][::2] if count > 2 else KINDS[kind], times=count))


def of_rows(function):
    return lambda x: function(x, axis=0)


def scattered(name):
    """The first two rows combined with the second one, the third with one outside."""
    return lambda x: getattr(x.at[np.array([1, 1, 5])], name)(x, mode="drop")


def scattered_by(function):
    def combined(x):
        rows = x.copy()
        function.at(rows, [1, 1], x[:2])
        return rows

    return combined


REALS_AND_WHOLES = "float64 int32 int64"
REDUCED = {
    "sum": (lambda x: jnp.sum(x, 0), "float64 int64", np.add.reduce),
    "product": (lambda x: jnp.prod(x, 0), "float64 int64", np.multiply.reduce),
    "max": (lambda x: jnp.max(x, 0), REALS_AND_WHOLES, np.maximum.reduce),
    "min": (lambda x: jnp.min(x, 0), REALS_AND_WHOLES, np.minimum.reduce),
    "and": (lambda x: jnp.all(x, 0), "bool", np.logical_and.reduce),
    "or": (lambda x: jnp.any(x, 0), "bool", np.logical_or.reduce),
    "xor": (
        lambda x: lax.reduce(x, np.array(0, x.dtype), lax.bitwise_xor, [0]),
        "int32 int64 bool",
        np.bitwise_xor.reduce,
    ),
    "cumsum": (lax.cumsum, "float64 int64", np.add.accumulate),
    "cumprod": (lax.cumprod, "float64 int64", np.multiply.accumulate),
    "cummax": (lax.cummax, REALS_AND_WHOLES, np.maximum.accumulate),
    "cummin": (lax.cummin, REALS_AND_WHOLES, np.minimum.accumulate),
    "cumlogsumexp": (lax.cumlogsumexp, "float64", np.logaddexp.accumulate),
    "argmax": (lambda x: lax.argmax(x, 0, int), REALS_AND_WHOLES, of_rows(np.argmax)),
    "argmin": (lambda x: lax.argmin(x, 0, int), REALS_AND_WHOLES, of_rows(np.argmin)),
    **{
        f"scattered {name}": (
            scattered(name),
            REALS_AND_WHOLES,
            scattered_by(function),
        )
        for name, function in {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "max": np.maximum,
            "min": np.minimum,
        }.items()
    },
}


@pytest.mark.parametrize(("function", "kind", "exact"), typed(REDUCED))
def test_rows_are_taken_together_in_their_order(function, kind, exact):
    """As NumPy does it; XLA loses a NaN among the rows of a maximum."""
    x = rows(kind)
    with np.errstate(all="ignore"):
        expected = exact(x)
    result = of_lanes(function, x)
    if function is lax.cumlogsumexp:
        np.testing.assert_allclose(result, expected, rtol=1e-15, atol=1e-15)
    else:  # maxima of zeros of both signs are either
        np.testing.assert_array_equal(result, expected.astype(result.dtype))


@pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]
)
def test_cumulative_operations_go_backwards(name):
    x = np.random.default_rng(0).normal(size=(5, 2, 8))
    function = lambda x: getattr(lax, name)(x, axis=0, reverse=True)
    np.testing.assert_allclose(of_lanes(function, x), function(x), rtol=1e-13)


@pytest.mark.parametrize("padding", [(1, 2, 0), (0, 0, 2), (-1, 3, 1), (2, -2, 0)])
def test_arrays_are_padded(padding):
    x = np.random.default_rng(0).normal(size=(3, 2, 8))
    function = lambda x: lax.pad(x, 0.5, [padding, (1, 0, 0), (0, 0, 0)])
    np.testing.assert_array_equal(of_lanes(function, x), function(x))


def test_products_of_whole_matrices():
    x = np.arange(48, dtype="int64").reshape(2, 3, 8) - 20
    function = lambda x: jnp.einsum("ijl,kjl->ikl", x, x)
    np.testing.assert_array_equal(of_lanes(function, x), function(x))


# The table is whole


ELSEWHERE = {  # tests/native/test_native.py, and every program that is traced
    *("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose"),
    *("concatenate", "stack", "unstack", "slice", "split", "rev", "iota"),
    *("dynamic_slice", "dynamic_update_slice", "gather", "scatter", "dot_general"),
    *("while", "scan", "cond", "copy", "copy_p", "add_any", "pad"),
    *("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    *(
        "log2",
        "polynomial",
        "one_minus_square",
    ),  # of later versions of JAX, there in the tables
}


def names(jaxpr):
    """Names of the operations of a function, and of those that it calls."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from names(inner)


def test_every_rule_is_in_a_table():
    traced = [
        *(jax.make_jaxpr(f)(KINDS[kinds.split()[0]]) for f, kinds, _ in UNARY.values()),
        *(
            jax.make_jaxpr(f)(*pairs(KINDS[kinds.split()[0]]))
            for f, kinds, _ in BINARY.values()
        ),
        *(jax.make_jaxpr(f)(*arguments) for f, arguments in OTHERS.values()),
        *(
            jax.make_jaxpr(f)(rows(kinds.split()[0]))
            for f, kinds, _ in REDUCED.values()
        ),
        *(jax.make_jaxpr(f)(REALS) for f, *_ in ANALYTIC.values()),
        *(jax.make_jaxpr(f)(REALS, REALS) for f, *_ in ANALYTIC_OF_TWO.values()),
    ]
    tested = {name for closed in traced for name in names(closed.jaxpr)}
    assert set(rules.RULES) - tested == ELSEWHERE - tested


# Attention


def normalised(x):
    mean = x.mean(0, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(0, keepdims=True) + 1e-6)


def masked(x):
    mask = jnp.tril(jnp.ones((4, 4), bool))[:, :, None]
    scores = jnp.einsum("ihl,jhl->ijl", x, x)
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=1)
    return jnp.einsum("ijl,jhl->ihl", weights, x)


def hardest(x):
    return jax.nn.one_hot(jnp.argmax(x, 0), 4, axis=0) * jnp.cumsum(x, 0)


PARTS = {
    "softmax": lambda x: jax.nn.softmax(x, 0),
    "log_softmax": lambda x: jax.nn.log_softmax(x, 0),
    "logsumexp": lambda x: jax.nn.logsumexp(x, 0),
    "logsumexp with signs": lambda x: jax.nn.logsumexp(x, 0, b=x, return_sign=True)[0],
    "layer norm": normalised,
    "masked attention": masked,
    "one-hot attention": hardest,
    "padded": lambda x: jnp.pad(x, ((1, 1), (0, 0), (0, 0)), constant_values=2.0),
    "rounded": lambda x: jnp.round(x, 1),
    "parity": lambda x: (jnp.cumsum(x > 0, 0) % 2 == 1) ^ (x > 1),
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "derivative of gelu": lambda x: jax.jvp(
        lambda y: jax.nn.gelu(y, approximate=False), (x,), (x,)
    )[1],
    "derivative of erfc": lambda x: jax.jvp(lax.erfc, (x,), (x,))[1],
    "copysign": lambda x: jnp.copysign(x, x[::-1]),
    "updated rows": lambda x: jnp.asarray(x).at[np.array([0, 2])].add(x[1:3]),
    "checkpointed": lambda x: jax.jvp(jax.checkpoint(masked), (x,), (x,))[1],
    "derivative": lambda x: jax.jvp(lambda y: jax.nn.softmax(y, 0), (x,), (x * x,))[1],
    **{
        name: getattr(jax.nn, name)
        for name in (
            *("relu", "gelu", "silu", "softplus", "elu", "selu", "mish", "celu"),
            *("log_sigmoid", "hard_tanh", "soft_sign", "relu6", "hard_swish"),
        )
    },
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_attention_are_those_of_jax(name):
    x = np.random.default_rng(0).normal(size=(4, 3, 8)) * 2
    result, expected = of_lanes(PARTS[name], x), jax.jit(PARTS[name])(x)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: jnp.sort(x, axis=0), "sort"),
        (lambda x: lax.top_k(x.T, 1)[0].T, "top_k"),
        (lambda x: lax.lgamma(x), "lgamma"),
        (lambda x: x + jnp.linalg.inv(2 * jnp.eye(3))[:, :1], "lu"),
        (lambda x: lax.reduce_precision(x, 8, 7), "reduce_precision"),
        (lambda x: x + jax.random.normal(jax.random.key(0), (3, 1)), "random"),
        (lambda x: lax.cumsum(x, 1), "lanes"),
        (lambda x: lax.argmax(x, 1, int), "lanes"),
        (lambda x: lax.pad(x, 0.0, [(0, 0, 0), (1, 0, 0)]), "lanes"),
    ],
)
def test_an_operation_that_is_not_known_is_named_in_one_line(function, name):
    with pytest.raises(native.Unsupported, match=name) as refusal:
        of_lanes(function, np.ones((3, 8)))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("parameter", ["num_consts", "ft_in"])
def test_what_another_jax_writes_is_refused_by_name(monkeypatch, parameter):
    """Whatever reading it ends in; the first error stays at hand for `--debug`."""

    def renamed(emitter, equation, x):
        return [x, equation.params[parameter]]

    monkeypatch.setitem(rules.RULES, "neg", renamed)
    reason = f"it uses neg as JAX .* cannot be read .KeyError: '{parameter}'."
    with pytest.raises(native.Unsupported, match=reason) as refusal:
        of_lanes(lambda x: jax.jit(lax.neg)(x), np.ones(8))
    assert "\n" not in str(refusal.value)
    assert isinstance(refusal.value.__cause__, KeyError)


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_are_read_from_their_variables(monkeypatch, reverse):
    """What is fixed, carried or stacked, whatever JAX calls the numbers of these."""

    def function(x):
        def turn(carry, row):
            y, n = carry
            return (jnp.sin(y) * row + x[0], n + 1), (y, row * n)

        (y, n), records = lax.scan(turn, (x[1], 0), x, reverse=reverse)
        (y, n) = lax.while_loop(
            lambda c: c[1] < n + 3, lambda c: (c[0] * x[2], c[1] + 1), (y, n)
        )
        return y, n, records

    def without_numbers(rule):
        def read(emitter, equation, *arguments):
            params = {
                name: equation.params[name]
                for name in ("reverse", "length", "jaxpr", "cond_jaxpr", "body_jaxpr")
                if name in equation.params
            }
            variables = dict(invars=equation.invars, outvars=equation.outvars)
            known = types.SimpleNamespace(params=params, **variables)
            return rule(emitter, known, *arguments)

        return read

    for name in ("scan", "while"):
        monkeypatch.setitem(rules.RULES, name, without_numbers(rules.RULES[name]))
    x = np.random.default_rng(0).normal(size=(4, 8))
    result, expected = of_lanes(function, x), jax.jit(function)(x)
    for one, other in zip(
        jax.tree.leaves(result), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-13)
