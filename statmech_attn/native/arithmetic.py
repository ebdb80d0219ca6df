r"""Operations of numbers of LLVM, one or several lanes at once, and exp, tanh, log.

An element is a number of Python, known while the program is made; a value of LLVM, a
scalar or a vector of lanes; or a product that is not rounded yet, so that a sum may
take it in (a fused multiply-add).  Which products are fused is decided here and not by
LLVM: numbers are then the same, to the last bit, for every width of vectors and on
every processor.

$e^x = 2^n (1 + E(r))$,  $\tanh x = E / (E + 2)$ with $E = e^{2x} - 1$,
$n = \mathrm{round}(x / \ln 2)$,  $r = x - n \ln 2$,  $|r| \le \ln(2) / 2$

E(r) is a Taylor polynomial to $r^{13}$, whose remainder is below 5e-18 of r; the
logarithm is the one of fdlibm.  Errors are at most 2 units in the last place for exp
and log, and 4 for tanh.
"""

import math
import struct
from typing import Any

from llvmlite import ir


Value = Any  # of LLVM: llvmlite declares no types
Type = Any
DOUBLE: Type = ir.DoubleType()
INT64: Type = ir.IntType(64)
INT32: Type = ir.IntType(32)
BOOL: Type = ir.IntType(1)
TYPES = {"float64": DOUBLE, "int64": INT64, "int32": INT32, "bool": BOOL}
TAYLOR = [1 / math.factorial(n) for n in range(2, 14)]
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 1.5 * 2.0**52  # added to a double, leaves its nearest integer in the low bits
SUBNORMAL = 2.0**-1022
LARGEST = 40_000  # operations of a program: of more LLVM takes minutes
FDLIBM_LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


class Unsupported(ValueError):
    """A function that cannot be written as a native program, and why.

    Example:
        >>> raise Unsupported("it adds up lanes")
        Traceback (most recent call last):
        statmech_attn.native.arithmetic.Unsupported: it adds up lanes
    """


class Product:
    """A product that is rounded when it is asked for, once in a block."""

    def __init__(self, left: Value, right: Value):
        self.left, self.right = left, right
        self.block: Any = None
        self.rounded: Value = None


class Arithmetic:
    """Operations on elements, written by a builder of LLVM."""

    def __init__(self, module: ir.Module, lanes: int):
        self.module, self.lanes = module, lanes
        self.builder: Any = None  # of the block that is being written
        self.size = 0  # operations written so far

    # Elements

    def value(self, x: Any, type: Type) -> Value:
        """An element as a value of this type: a constant, rounded, or in all lanes."""
        if isinstance(x, Product):
            if x.block is not self.builder.block:
                x.block = self.builder.block
                x.rounded = self.builder.fmul(x.left, x.right)
            x = x.rounded
        if not isinstance(x, ir.Value):
            return constant(x, type)
        if isinstance(type, ir.VectorType) and not isinstance(_type(x), ir.VectorType):
            return self._in_all_lanes(x, type)
        return x

    def vector(self, type: Type) -> Type:
        return ir.VectorType(type, self.lanes)

    def _in_all_lanes(self, x: Value, type: Type) -> Value:
        blank = ir.Constant(type, ir.Undefined)
        one = self.builder.insert_element(blank, x, INT32(0))
        zeros = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, blank, zeros)

    def alike(self, *elements: Any, type: Type) -> list[Value]:
        """Elements as values of one width, for an operation."""
        self.size += 1
        if self.size > LARGEST:
            raise Unsupported(f"it has more than {LARGEST} operations")
        if any(isinstance(_type(x), ir.VectorType) for x in elements):
            type = self.vector(type)
        return [self.value(x, type) for x in elements]

    # Arithmetic

    def add(self, x, y, type=DOUBLE):
        if numbers(x, y):
            return x + y
        if type is not DOUBLE:
            return self.builder.add(*self.alike(x, y, type=type))
        if is_zero(x) or is_zero(y):
            return y if is_zero(x) else x
        if not isinstance(x, Product):
            x, y = y, x
        if isinstance(x, Product):
            left, right, y = self.alike(x.left, x.right, y, type=type)
            return self.fused(left, right, y)
        return self.builder.fadd(*self.alike(x, y, type=type))

    def subtract(self, x, y, type=DOUBLE):
        if numbers(x, y):
            return x - y
        if type is not DOUBLE:
            return self.builder.sub(*self.alike(x, y, type=type))
        if is_zero(y):
            return x
        if isinstance(y, Product):
            left, right, x = self.alike(y.left, y.right, x, type=type)
            return self.fused(self.builder.fneg(left), right, x)
        if isinstance(x, Product):
            left, right, y = self.alike(x.left, x.right, y, type=type)
            return self.fused(left, right, self.builder.fneg(y))
        return self.builder.fsub(*self.alike(x, y, type=type))

    def multiply(self, x, y, type=DOUBLE):
        if numbers(x, y):
            return x * y
        if type is not DOUBLE:
            return self.builder.mul(*self.alike(x, y, type=type))
        for one, other in ((x, y), (y, x)):
            if number(one) and one in (0, 1):
                return other if one == 1 else 0.0
        return Product(*self.alike(x, y, type=type))

    def divide(self, x, y, type=DOUBLE):
        if numbers(x, y) and type is DOUBLE and y != 0:
            return x / y
        if number(y) and y == 1:
            return x
        x, y = self.alike(x, y, type=type)
        return self.builder.fdiv(x, y) if type is DOUBLE else self.builder.sdiv(x, y)

    def remainder(self, x, y, type):
        if numbers(x, y) and type is not DOUBLE:
            return int(math.fmod(x, y))
        x, y = self.alike(x, y, type=type)
        return self.builder.frem(x, y) if type is DOUBLE else self.builder.srem(x, y)

    def negative(self, x, type=DOUBLE):
        if number(x):
            return -x
        (x,) = self.alike(x, type=type)
        return self.builder.fneg(x) if type is DOUBLE else self.builder.neg(x)

    def fused(self, x: Value, y: Value, z: Value) -> Value:
        return self.intrinsic("fma", x, y, z)

    def power(self, x, exponent: int):
        """Integer power, by squaring."""
        if exponent < 0:
            return self.divide(1.0, self.power(x, -exponent))
        result: Any = 1.0
        while exponent:
            if exponent & 1:
                result = self.multiply(result, x)
            exponent >>= 1
            if exponent:
                x = self.multiply(x, x)
        return result

    def compare(self, how: str, x, y, type=DOUBLE):
        if numbers(x, y):
            return COMPARED[how](x, y)
        x, y = self.alike(x, y, type=type)
        if type is DOUBLE:
            unordered = self.builder.fcmp_unordered
            return (unordered if how == "!=" else self.builder.fcmp_ordered)(how, x, y)
        if type is BOOL:
            return self.builder.icmp_unsigned(how, x, y)
        return self.builder.icmp_signed(how, x, y)

    def select(self, condition, x, y, type=DOUBLE):
        """x where the condition holds, y elsewhere."""
        if number(condition):
            return x if condition else y
        if x is y or (numbers(x, y) and x == y):
            return x
        wide = isinstance(condition.type, ir.VectorType)
        if wide:
            type = self.vector(type)
        x, y = (
            (self.value(x, type), self.value(y, type))
            if wide
            else self.alike(x, y, type=type)
        )
        return self.builder.select(condition, x, y)

    def largest(self, x, y, type=DOUBLE):
        return self._extreme(">", x, y, type)

    def smallest(self, x, y, type=DOUBLE):
        return self._extreme("<", x, y, type)

    def _extreme(self, how, x, y, type):
        if numbers(x, y):
            return (max if how == ">" else min)(x, y)
        x, y = self.alike(x, y, type=type)
        chosen = self.select(self.compare(how, x, y, type), x, y, type)
        if type is not DOUBLE:
            return chosen
        return self.select(self.compare("!=", x, x), x, chosen)  # NaN stays NaN

    def logical(self, how: str, x, y, type):
        if numbers(x, y):
            return LOGICAL[how](x, y)
        return getattr(self.builder, f"{how}_")(*self.alike(x, y, type=type))

    def invert(self, x, type):
        if number(x):
            return (not x) if type is BOOL else ~x
        return self.builder.not_(x)

    def convert(self, x, old: Type, new: Type):
        """The same number as another type."""
        if number(x):
            return {DOUBLE: float, BOOL: bool}.get(new, int)(x)
        if old is new:
            return x
        wide = isinstance(_type(x), ir.VectorType)
        x = self.value(x, self.vector(old) if wide else old)
        target = self.vector(new) if wide else new
        if new is BOOL:
            return self.compare("!=", x, 0.0 if old is DOUBLE else 0, old)
        if new is DOUBLE:
            convert = self.builder.uitofp if old is BOOL else self.builder.sitofp
        elif old is DOUBLE:
            convert = self.builder.fptosi
        elif old.width < new.width:
            convert = self.builder.zext if old is BOOL else self.builder.sext
        else:
            convert = self.builder.trunc
        return convert(x, target)

    # Functions

    def intrinsic(self, name: str, *values: Value) -> Value:
        """A function that LLVM knows, such as sqrt and fma."""
        (type, *_) = [x.type for x in values]
        wide = isinstance(type, ir.VectorType)
        full = f"llvm.{name}.v{self.lanes}f64" if wide else f"llvm.{name}.f64"
        return self.builder.call(
            self._declared(full, [type] * len(values), type), values
        )

    def external(self, name: str, *elements) -> Value:
        """A function of the system's mathematical library, lane by lane."""
        values = self.alike(*elements, type=DOUBLE)
        function = self._declared(name, [DOUBLE] * len(values), DOUBLE)
        if not isinstance(values[0].type, ir.VectorType):
            return self.builder.call(function, values)
        result = ir.Constant(values[0].type, ir.Undefined)
        for lane in map(INT32, range(self.lanes)):
            one = [self.builder.extract_element(x, lane) for x in values]
            done = self.builder.call(function, one)
            result = self.builder.insert_element(result, done, lane)
        return result

    def _declared(self, name: str, arguments, result) -> ir.Function:
        if name in self.module.globals:
            return self.module.globals[name]
        return ir.Function(self.module, ir.FunctionType(result, arguments), name)

    def exp(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        x = self._at_most(x, 710.0)
        x = self.select(self.compare("<", x, -746.0), -746.0, x)
        whole, beyond = self._exponential(x)
        half = self.builder.ashr(whole, constant(1, whole.type))
        scaled = self.multiply(self.add(1.0, beyond), self._power_of_two(half))
        rest = self.builder.sub(
            whole, half
        )  # in two steps: the result may be subnormal
        return self.multiply(scaled, self._power_of_two(rest))

    def expm1(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        whole, beyond = self._exponential(x)
        scale = self._power_of_two(whole)
        small = self.add(self.multiply(scale, beyond), self.subtract(scale, 1.0))
        large = self.subtract(self.exp(x), 1.0)
        far = self.compare(">", self.intrinsic("fabs", x), 700.0)
        return self.select(far, large, small)

    def tanh(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        size = self.intrinsic("fabs", x)
        twice = self._at_most(self.builder.fadd(size, size), 44.0)
        whole, beyond = self._exponential(twice)
        scale = self._power_of_two(whole)
        grown = self.add(self.multiply(scale, beyond), self.subtract(scale, 1.0))
        return self.intrinsic("copysign", self.divide(grown, self.add(grown, 2.0)), x)

    def _at_most(self, x: Value, most: float) -> Value:
        return self.select(self.compare(">", x, most), most, x)

    def _exponential(self, x: Value) -> tuple[Value, Any]:
        """n as integers, and E(r), for numbers whose n is an exponent of a double."""
        rounder = constant(ROUNDER, x.type)
        shifted = self.fused(x, constant(1 / math.log(2), x.type), rounder)
        n = self.builder.fsub(shifted, rounder)
        r = self.fused(n, constant(-LN2_HIGH, x.type), x)
        r = self.fused(n, constant(-LN2_LOW, x.type), r)
        square = self.value(self.multiply(r, r), x.type)
        even, odd = (self._horner(TAYLOR[i::2], square) for i in (0, 1))
        beyond = self.add(even, self.multiply(odd, r))
        integers = self._bits(shifted)
        first = struct.unpack("<q", struct.pack("<d", ROUNDER))[0]
        whole = self.builder.sub(integers, constant(first, integers.type))
        return whole, self.fused(square, self.value(beyond, x.type), r)

    def _horner(self, coefficients, x: Value):
        total: Any = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            total = self.add(self.multiply(total, x), coefficient)
        return total

    def _bits(self, x: Value) -> Value:
        wide = isinstance(x.type, ir.VectorType)
        return self.builder.bitcast(x, self.vector(INT64) if wide else INT64)

    def _double(self, bits: Value) -> Value:
        wide = isinstance(bits.type, ir.VectorType)
        return self.builder.bitcast(bits, self.vector(DOUBLE) if wide else DOUBLE)

    def _power_of_two(self, n: Value) -> Value:
        biased = self.builder.add(n, constant(1023, n.type))
        return self._double(self.builder.shl(biased, constant(52, n.type)))

    def log(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        tiny = self.compare("<", x, SUBNORMAL)
        normal = self.select(tiny, self.multiply(x, 2.0**54), x)
        bits = self._bits(normal)
        lowest = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
        shift, above = constant(52, bits.type), constant(lowest, bits.type)
        exponent = self.builder.ashr(self.builder.sub(bits, above), shift)
        mantissa = self._double(
            self.builder.sub(bits, self.builder.shl(exponent, shift))
        )
        f = self.builder.fsub(mantissa, constant(1.0, x.type))
        s = self.divide(f, self.add(f, 2.0))
        z = self.value(self.multiply(s, s), x.type)
        rest = self.multiply(self._horner(FDLIBM_LOG, z), z)
        half = self.value(self.multiply(self.multiply(f, 0.5), f), x.type)
        n = self.convert(exponent, INT64, DOUBLE)
        n = self.subtract(n, self.select(tiny, 54.0, 0.0))
        low = self.multiply(s, self.add(half, rest))
        low = self.add(self.multiply(n, LN2_LOW), self.value(low, x.type))
        result = self.subtract(f, self.subtract(half, low))
        result = self.add(self.multiply(n, LN2_HIGH), result)
        infinite = self.compare("==", x, math.inf)
        result = self.select(infinite, math.inf, result)
        result = self.select(self.compare("==", x, 0.0), -math.inf, result)
        known = self.compare(">=", x, 0.0)
        return self.select(known, result, math.nan)

    def log1p(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        whole = self.add(1.0, x)
        lost = self.subtract(x, self.subtract(whole, 1.0))
        usual = self.add(self.log(whole), self.divide(lost, whole))
        return self.select(self.compare("<", whole, math.inf), usual, self.log(whole))


def constant(x: Any, type: Type) -> ir.Constant:
    """A number in all lanes of a type."""
    if isinstance(type, ir.VectorType):
        return ir.Constant(type, [constant(x, type.element)] * type.count)
    return ir.Constant(type, float(x) if type is DOUBLE else int(x))


def number(x: Any) -> bool:
    """Whether an element is known while the program is made."""
    return not isinstance(x, ir.Value | Product)


def numbers(*elements: Any) -> bool:
    return all(map(number, elements))


def is_zero(x: Any) -> bool:
    return number(x) and x == 0


def _type(x: Any) -> Type | None:
    if isinstance(x, Product):
        return x.left.type
    return getattr(x, "type", None)


COMPARED = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
LOGICAL = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
