"""Operations of numbers of LLVM, one or several lanes at once.

An element is a number of Python, known while the program is made; a value of LLVM, a
scalar or a vector of lanes; or a product that is not rounded yet, so that a sum may
take it in (a fused multiply-add).  Which products are fused is decided here and not by
LLVM: numbers are then the same, to the last bit, for every width of vectors and on
every processor.

Zeros that are known, as those of unit vectors, are left out of products and sums, so
that 0 times infinity is 0, and the sign of a zero may be another one than XLA's.
"""

import math
from typing import Any

from llvmlite import ir


Value = Any  # of LLVM: llvmlite declares no types
Type = Any
DOUBLE: Type = ir.DoubleType()
INT64: Type = ir.IntType(64)
INT32: Type = ir.IntType(32)
BOOL: Type = ir.IntType(1)
TYPES = {"float64": DOUBLE, "int64": INT64, "int32": INT32, "bool": BOOL}
LARGEST = 40_000  # operations of a program: of more LLVM takes minutes


class Unsupported(ValueError):
    """A function that cannot be written as a native program, and why."""


class Product:
    """A product that is rounded when it is asked for, once in a block."""

    def __init__(self, left: Value, right: Value):
        self.left, self.right = left, right
        self.block: Any = None
        self.rounded: Value = None


class Arithmetic:
    """Operations on elements, written by a builder of LLVM.

    Functions are declared in `module`, vectors have `lanes`, and `library` says how the
    mathematical library calls a function of a name of C.
    """

    def __init__(self, module: ir.Module, lanes: int, library: str = "{}"):
        self.module, self.lanes, self._library = module, lanes, library
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
        vector = self.builder.insert_element(blank, x, INT32(0))
        zeros = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(vector, blank, zeros)

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
            return known(x + y, type)
        if type is not DOUBLE:
            return self.builder.add(*self.alike(x, y, type=type))
        if is_zero(x) or is_zero(y):
            return y if is_zero(x) else x
        if not isinstance(x, Product):
            x, y = y, x
        if isinstance(x, Product):
            first, second, y = self.alike(x.left, x.right, y, type=type)
            return self.fused(first, second, y)
        return self.builder.fadd(*self.alike(x, y, type=type))

    def subtract(self, x, y, type=DOUBLE):
        if numbers(x, y):
            return known(x - y, type)
        if type is not DOUBLE:
            return self.builder.sub(*self.alike(x, y, type=type))
        if is_zero(y):
            return x
        if isinstance(y, Product):
            first, second, x = self.alike(y.left, y.right, x, type=type)
            return self.fused(self.builder.fneg(first), second, x)
        if isinstance(x, Product):
            first, second, y = self.alike(x.left, x.right, y, type=type)
            return self.fused(first, second, self.builder.fneg(y))
        return self.builder.fsub(*self.alike(x, y, type=type))

    def multiply(self, x, y, type=DOUBLE):
        if numbers(x, y):
            return known(x * y, type)
        if type is not DOUBLE:
            return self.builder.mul(*self.alike(x, y, type=type))
        for factor, cofactor in ((x, y), (y, x)):
            if number(factor) and factor in (0, 1):
                return cofactor if factor == 1 else 0.0
        return Product(*self.alike(x, y, type=type))

    def divide(self, x, y, type=DOUBLE):
        if number(y) and y == 1:
            return x
        if type is not DOUBLE:
            return self._whole_divided(x, y, type)[0]
        if numbers(x, y) and y != 0:
            return x / y
        return self.builder.fdiv(*self.alike(x, y, type=type))

    def remainder(self, x, y, type):
        if type is not DOUBLE:
            return self._whole_divided(x, y, type)[1]
        return self.external("fmod", x, y)

    def _whole_divided(self, x, y, type):
        """Quotient, towards zero, and rest; by 0 they are -1 and x, as in XLA."""
        if numbers(x, y):
            sign = 1 if (x < 0) == (y < 0) else -1
            quotient = sign * (abs(x) // abs(y)) if y else -1
            return known(quotient, type), known(x - quotient * y, type)
        by_zero, by_minus_one = (self.compare("==", y, n, type) for n in (0, -1))
        divisor = self.select(by_minus_one, 1, self.select(by_zero, 1, y, type), type)
        pair = self.alike(x, divisor, type=type)  # on others processors may stop
        quotient, remainder = self.builder.sdiv(*pair), self.builder.srem(*pair)
        quotient = self.select(by_minus_one, self.negative(x, type), quotient, type)
        return (
            self.select(by_zero, -1, quotient, type),
            self.select(by_zero, x, remainder, type),
        )

    def negative(self, x, type=DOUBLE):
        if number(x):
            return known(-x, type)
        (x,) = self.alike(x, type=type)
        return self.builder.fneg(x) if type is DOUBLE else self.builder.neg(x)

    def fused(self, x: Value, y: Value, z: Value) -> Value:
        return self.intrinsic("fma", x, y, z)

    def power(self, x, exponent: int, type=DOUBLE):
        """Integer power, by squaring."""
        if exponent < 0:
            return self.divide(1.0, self.power(x, -exponent))
        result: Any = 1.0 if type is DOUBLE else 1
        while exponent:
            if exponent & 1:
                result = self.multiply(result, x, type)
            exponent >>= 1
            if exponent:
                x = self.multiply(x, x, type)
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
        if x is y or (numbers(x, y) and x == y and _sign(x) == _sign(y)):
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
        """The larger or smaller of two: NaN of NaN, and -0 is smaller than 0."""
        if numbers(x, y):
            strange = [n for n in (x, y) if n != n]
            extreme = max if how == ">" else min
            return (strange or [extreme(x, y, key=lambda n: (n, _sign(n)))])[0]
        x, y = self.alike(x, y, type=type)
        if type is DOUBLE:
            return self.intrinsic("maximum" if how == ">" else "minimum", x, y)
        return self.select(self.compare(how, x, y, type), x, y, type)

    def logical(self, how: str, x, y, type):
        if numbers(x, y):
            return LOGICAL[how](x, y)
        names = {"and": "and_", "or": "or_", "xor": "xor"}
        return getattr(self.builder, names[how])(*self.alike(x, y, type=type))

    def shift(self, how: str, x, y, type):
        """Bits moved by y places: `shl`, `lshr` or `ashr`; beyond the last, all are."""
        last = type.width - 1
        beyond = self.logical(
            "or",
            self.compare("<", y, 0, type),
            self.compare(">", y, last, type),
            BOOL,
        )
        # LLVM's PTX has the low half of a place where it may leave out the choice.
        places = self.logical("and", y, last, type)
        if how == "ashr":
            places = self.select(beyond, last, places, type)
        moved = getattr(self.builder, how)(*self.alike(x, places, type=type))
        return moved if how == "ashr" else self.select(beyond, 0, moved, type)

    def in_any_lane(self, condition):
        """Whether a condition holds in one of the lanes."""
        if number(condition) or not isinstance(condition.type, ir.VectorType):
            return condition
        bits = self.builder.bitcast(condition, ir.IntType(condition.type.count))
        return self.builder.icmp_unsigned("!=", bits, constant(0, bits.type))

    def invert(self, x, type):
        if number(x):
            return (not x) if type is BOOL else ~x
        return self.builder.not_(x)

    def convert(self, x, old: Type, new: Type):
        """A number converted to another type."""
        if number(x):
            return converted(x, new)
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
            return self.intrinsic("fptosi.sat", x, result=target)
        elif old.width < new.width:
            convert = self.builder.zext if old is BOOL else self.builder.sext
        else:
            convert = self.builder.trunc
        return convert(x, target)

    # Functions

    def intrinsic(self, name: str, *values: Value, result: Type = None) -> Value:
        """A function that LLVM knows, such as sqrt and fma, without types in its name.

        The first value has the type of the function, and of the result where none is
        given.
        """
        (type, *_) = types = [x.type for x in values]
        suffixes = map(_suffix, [type] if result is None else [result, type])
        full = ".".join(("llvm", name, *suffixes))
        result = type if result is None else result
        return self.builder.call(self._declared(full, types, result), values)

    def external(self, name: str, *elements) -> Value:
        """A function of the mathematical library, lane by lane."""
        name, values = self._library.format(name), self.alike(*elements, type=DOUBLE)
        function = self._declared(name, [DOUBLE] * len(values), DOUBLE)
        if not isinstance(values[0].type, ir.VectorType):
            return self.builder.call(function, values)
        result = ir.Constant(values[0].type, ir.Undefined)
        for lane in map(INT32, range(self.lanes)):
            operands = [self.builder.extract_element(x, lane) for x in values]
            value = self.builder.call(function, operands)
            result = self.builder.insert_element(result, value, lane)
        return result

    def _declared(self, name: str, arguments, result) -> ir.Function:
        if name in self.module.globals:
            return self.module.globals[name]
        return ir.Function(self.module, ir.FunctionType(result, arguments), name)


def constant(x: Any, type: Type) -> ir.Constant:
    """A number in all lanes of a type."""
    if isinstance(type, ir.VectorType):
        return ir.Constant(type, [constant(x, type.element)] * type.count)
    return ir.Constant(type, float(x) if type is DOUBLE else int(x))


def known(x: Any, type: Type) -> Any:
    """A number; a whole one is what is left of it in the bits of its type."""
    if type is DOUBLE or type is BOOL:
        return x
    half = 1 << (type.width - 1)
    return (int(x) + half) % (2 * half) - half


def converted(x: Any, type: Type) -> Any:
    """A number as another type: the nearest whole number of it, and 0 of NaN."""
    if type is DOUBLE or type is BOOL:
        return float(x) if type is DOUBLE else bool(x)
    if not isinstance(x, float):
        return known(x, type)
    most = 1 << (type.width - 1)
    return 0 if math.isnan(x) else int(min(max(x, -most), most - 1))


def number(x: Any) -> bool:
    """Whether an element is known while the program is made."""
    return not isinstance(x, ir.Value | Product)


def numbers(*elements: Any) -> bool:
    return all(map(number, elements))


def is_zero(x: Any) -> bool:
    return number(x) and x == 0


def _sign(x: Any) -> float:
    return math.copysign(1, x)


def _suffix(type: Type) -> str:
    """Name of a type in the names of LLVM's functions."""
    if isinstance(type, ir.VectorType):
        return f"v{type.count}{_suffix(type.element)}"
    return "f64" if type is DOUBLE else f"i{type.width}"


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
