r"""Functions of floating-point numbers, in vectors: exponentials and logarithms.

$e^x = 2^n (1 + E(r))$,  $\tanh x = E / (E + 2)$ with $E = e^{2x} - 1$,
$n = \mathrm{round}(x / \ln 2)$,  $r = x - n \ln 2$,  $|r| \le \ln(2) / 2$

E(r) is a Taylor polynomial to $r^{13}$, whose remainder is below 5e-18 of r; the
logarithm is the one of fdlibm.  Errors are at most 2 units in the last place, and 4 for
tanh.
"""

import math
import struct
from typing import Any

from llvmlite import ir

from statmech_attn.native.arithmetic import (
    Arithmetic,
    constant,
    DOUBLE,
    INT64,
    Value,
)


TAYLOR = [1 / math.factorial(n) for n in range(2, 14)]
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 1.5 * 2.0**52  # added to a double, leaves its nearest integer in the low bits
SUBNORMAL = 2.0**-1022
FDLIBM_LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


class Functions(Arithmetic):
    """Arithmetic, and functions that are written with it."""

    def exp(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        return self._scaled(*self._exponential(self._between(-746.0, x, 710.0)))

    def exp2(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        x = self._between(-1076.0, x, 1025.0)
        power, n = self._rounded(x, 1.0)
        r = self.multiply(self.builder.fsub(x, n), math.log(2))
        return self._scaled(power, self._beyond(self.value(r, x.type)))

    def _between(self, least: float, x: Value, most: float) -> Value:
        x = self._at_most(x, most)
        return self.select(self.compare("<", x, least), least, x)

    def _scaled(self, n: Value, beyond) -> Any:
        """2^n (1 + beyond), in two steps: the result may be subnormal."""
        half = self.builder.ashr(n, constant(1, n.type))
        scaled = self.multiply(self.add(1.0, beyond), self._power_of_two(half))
        return self.multiply(scaled, self._power_of_two(self.builder.sub(n, half)))

    def expm1(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        power, beyond = self._exponential(x)
        scale = self._power_of_two(power)
        small = self.add(self.multiply(scale, beyond), self.subtract(scale, 1.0))
        large = self.subtract(self.exp(x), 1.0)
        far = self.compare(">", self.intrinsic("fabs", x), 700.0)
        result = self.select(far, large, small)
        return self._odd_at_zero(x, result)

    def _odd_at_zero(self, x: Value, result):
        """A result that is a zero of the same sign where x is one."""
        return self.select(self.compare("==", x, 0.0), x, result)

    def tanh(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        size = self.intrinsic("fabs", x)
        twice = self._at_most(self.builder.fadd(size, size), 44.0)
        power, beyond = self._exponential(twice)
        scale = self._power_of_two(power)
        grown = self.add(self.multiply(scale, beyond), self.subtract(scale, 1.0))
        return self.intrinsic("copysign", self.divide(grown, self.add(grown, 2.0)), x)

    def _at_most(self, x: Value, most: float) -> Value:
        return self.select(self.compare(">", x, most), most, x)

    def _exponential(self, x: Value) -> tuple[Value, Any]:
        """n as integers, and E(r), for numbers whose n is an exponent of a double."""
        power, n = self._rounded(x, 1 / math.log(2))
        r = self.fused(n, constant(-LN2_HIGH, x.type), x)
        r = self.fused(n, constant(-LN2_LOW, x.type), r)
        return power, self._beyond(r)

    def _rounded(self, x: Value, scale: float) -> tuple[Value, Value]:
        """The integer that is nearest to x times a scale, and the same as a double."""
        rounder = constant(ROUNDER, x.type)
        shifted = self.fused(x, constant(scale, x.type), rounder)
        integers = self.bits(shifted)
        first = struct.unpack("<q", struct.pack("<d", ROUNDER))[0]
        rounded = self.builder.sub(integers, constant(first, integers.type))
        return rounded, self.builder.fsub(shifted, rounder)

    def _beyond(self, r: Value) -> Value:
        """E(r)."""
        square = self.value(self.multiply(r, r), r.type)
        even, odd = (self._horner(TAYLOR[i::2], square) for i in (0, 1))
        beyond = self.add(even, self.multiply(odd, r))
        return self.fused(square, self.value(beyond, r.type), r)

    def _horner(self, coefficients, x: Value):
        total: Any = coefficients[-1]
        for coefficient in coefficients[-2::-1]:
            total = self.add(self.multiply(total, x), coefficient)
        return total

    def polynomial(self, x, *coefficients):
        return self._horner(coefficients, x)

    def bits(self, x: Value) -> Value:
        wide = isinstance(x.type, ir.VectorType)
        return self.builder.bitcast(x, self.vector(INT64) if wide else INT64)

    def double(self, bits: Value) -> Value:
        wide = isinstance(bits.type, ir.VectorType)
        return self.builder.bitcast(bits, self.vector(DOUBLE) if wide else DOUBLE)

    def _power_of_two(self, n: Value) -> Value:
        biased = self.builder.add(n, constant(1023, n.type))
        return self.double(self.builder.shl(biased, constant(52, n.type)))

    def log(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        tiny = self.compare("<", x, SUBNORMAL)
        normal = self.select(tiny, self.multiply(x, 2.0**54), x)
        bits = self.bits(normal)
        lowest = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
        shift, above = constant(52, bits.type), constant(lowest, bits.type)
        exponent = self.builder.ashr(self.builder.sub(bits, above), shift)
        mantissa = self.double(
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
        positive = self.compare(">=", x, 0.0)
        return self.select(positive, result, math.nan)

    def one_minus_square(self, x):
        """1 - x^2 without loss near 1, which derivatives use since jax 0.12."""
        return self.multiply(self.subtract(1.0, x), self.add(1.0, x))

    def log1p(self, x):
        (x,) = self.alike(x, type=DOUBLE)
        one_plus_x = self.add(1.0, x)
        lost = self.subtract(x, self.subtract(one_plus_x, 1.0))
        beside = self.divide(lost, one_plus_x)
        for end in (0.0, math.inf):
            beside = self.select(self.compare("==", one_plus_x, end), 0.0, beside)
        result = self.add(self.log(one_plus_x), beside)
        return self._odd_at_zero(x, result)
