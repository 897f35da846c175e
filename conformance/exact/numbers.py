"""Exact numbers: binary floats as fractions, fractions rounded to binary floats, and what is written into a case."""

from fractions import Fraction

import mpmath

DIGITS = 50
BITS = {"float16": 11, "float32": 24, "float64": 53}

Number = Fraction | mpmath.mpf


def rounded(x: Fraction, precision: str) -> Fraction:
    """The nearest binary float in [0, 1] of that precision; halfway cases to the even one (subnormals are not needed here)."""
    if x == 0:
        return x
    bits, exponent = BITS[precision], 0
    while x * 2**exponent < 2 ** (bits - 1):
        exponent += 1
    whole, rest = divmod(x * 2**exponent, 1)
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    return Fraction(whole, 2**exponent)


def real(x: Number) -> mpmath.mpf:
    """As a number of 50 digits."""
    return mpmath.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpmath.mpf(x)


def root(power: Number, norm: float) -> mpmath.mpf:
    """From the p-th power to the error; negative powers show as 0."""
    x = max(real(power), mpmath.mpf(0))
    return x if norm in (1, float("inf")) else x ** (mpmath.mpf(1) / int(norm))


def written(power: Number, norm: float) -> dict[str, str]:
    """The expected result of a case: the value, the signed p-th power, and the latter as a fraction where it is one."""
    result = {"value": text(root(power, norm)), "power": text(real(power))}
    if isinstance(power, Fraction) and len(str(power)) <= 120:
        result["fraction"] = str(power)
    return result


def text(x: mpmath.mpf) -> str:
    """50 digits, or fewer where they end earlier."""
    return mpmath.nstr(x, DIGITS, min_fixed=-8, max_fixed=8)
