"""Grades of our numbers beside the printed ones, by tests that the page prints.

A test is a list of clauses, separated by `;`. A name stands for a quantity of the experiment, with its standard error (se):

    bias = -0.115 ~ 0.05           the printed number, and the tolerance within which ours must lie
    bias = -0.01 ~ 0.05 vs -0.281  the same, for a number whose effect is its distance from another one than 0
    cells ~ 0.35                   every cell of a printed table, each within the tolerance
    cells ~ 2.9 se                 the same, in standard errors of the printed cell, where print is a mean of few draws
    sweep < debiased               a direction; `1.5 * debiased` and plain numbers are allowed on either side

A number agrees if |ours - printed| <= tolerance + 2 se and 2 se <= tolerance, and disagrees if |ours - printed| > tolerance + 2 se;
a direction is decided where the difference exceeds 2 se. What is neither is not decided. No tolerance is wider than the effect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, hypot, isfinite, log10
from statistics import NormalDist

import numpy as np

DIRECTION_ONLY, FAILS = "direction only", "does not hold"
UNDECIDED = "not decided within two standard errors"
AGREES = "number agrees within"
NOT_COMPUTABLE = "not computable here because"
SE_FACTOR = 2.0  # standard errors allowed to chance

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_NAME = r"[A-Za-z_]\w*"
_VERSUS = rf"(?:\s+vs\s+(?P<reference>{_NUMBER}))?"
_PRINTED = re.compile(rf"(?P<name>{_NAME})\s*=\s*(?P<printed>{_NUMBER})\s*~\s*(?P<tolerance>{_NUMBER}){_VERSUS}$", re.I)
_CELLS = re.compile(rf"(?P<name>{_NAME})\s*~\s*(?P<tolerance>{_NUMBER})(?P<in_se>\s+se)?$", re.I)
_TERM = rf"(?:(?:({_NUMBER})\s*\*\s*)?({_NAME})|({_NUMBER}))"
_DIRECTION = re.compile(rf"{_TERM}\s*([<>])\s*{_TERM}$", re.I)


@dataclass(frozen=True)
class Number:
    """A value and its standard error; 0 where nothing was drawn at random."""

    value: float
    se: float = 0.0

    def __str__(self) -> str:
        if not self.se > 1e-12 * abs(self.value) or not isfinite(self.se):  # none, or the noise of rounding
            return f"{self.value:.4g}"
        digits = max(0, 1 - floor(log10(self.se))) if self.se < 10 else 0
        return f"{self.value:.{digits}f} ± {self.se:.{digits}f}"


@dataclass(frozen=True)
class Cells:
    """Our cells of a table, and the printed ones, with their standard errors where print is a mean of few draws."""

    ours: tuple[Number, ...]
    printed: tuple[float, ...]
    printed_se: tuple[float, ...] = ()

    def in_printed_se(self) -> "Cells":
        """Divide every cell by the standard error of the printed one."""
        cells = list(zip(self.ours, self.printed, self.printed_se, strict=True))
        return Cells(tuple(Number(n.value / se, n.se / se) for n, _, se in cells), tuple(p / se for _, p, se in cells))

    def __str__(self) -> str:
        if self.printed_se:
            return f"{self.in_printed_se()} (in standard errors of the printed numbers)"
        gaps = np.abs([n.value - p for n, p in zip(self.ours, self.printed, strict=True)])
        largest = Number(float(gaps.max()), self.ours[int(gaps.argmax())].se)
        return f"{len(gaps)} cells, mean difference {gaps.mean():.2g}, largest {largest}"


Quantity = Number | Cells
Quantities = Mapping[str, Quantity]


@dataclass(frozen=True)
class Clause:
    """One clause of a test: a printed number (`tolerance` set), the cells of a table, or a direction."""

    text: str
    name: str = ""
    printed: float | None = None
    tolerance: float | None = None
    reference: float = 0.0
    in_se: bool = False  # the tolerance is in standard errors of the printed cells
    sides: tuple[tuple[float, str], tuple[float, str]] | None = (
        None  # (factor, name), lesser side first; "" is a number
    )

    @property
    def names(self) -> list[str]:
        """The quantities that it names."""
        return [self.name] if self.sides is None else [name for _, name in self.sides if name]

    def outcome(self, ours: Quantities) -> bool | None:
        """Whether it holds; None where the standard error is too large to tell."""
        if self.sides is not None:
            (less, less_se), (more, more_se) = (_term(*side, ours) for side in self.sides)
            return _decided(more - less, hypot(less_se, more_se))
        assert self.tolerance is not None
        quantity = ours[self.name]
        if isinstance(quantity, Cells):
            quantity = quantity.in_printed_se() if self.in_se else quantity
            pairs = list(zip(quantity.ours, quantity.printed, strict=True))
        else:
            assert self.printed is not None, self.text
            pairs = [(quantity, self.printed)]
        outcomes = [_agrees(number, printed, self.tolerance) for number, printed in pairs]
        return False if False in outcomes else None if None in outcomes else True


def _term(factor: float, name: str, ours: Quantities) -> tuple[float, float]:
    if not name:
        return factor, 0.0
    quantity = ours[name]
    assert isinstance(quantity, Number), f"{name} is a table"
    return factor * quantity.value, abs(factor) * quantity.se


def _agrees(number: Number, printed: float, tolerance: float) -> bool | None:
    noise = SE_FACTOR * number.se
    if not abs(number.value - printed) <= (tolerance + noise) * (1 + 1e-9):
        return False
    return True if noise <= tolerance else None


def _decided(margin: float, se: float) -> bool | None:
    if se == 0:
        return margin > 0
    return None if abs(margin) <= SE_FACTOR * se else margin > 0


def parse(test: str) -> tuple[Clause, ...]:
    """The clauses of a test.

    >>> [clause.text for clause in parse("bias = -0.115 ~ 0.05; sweep < 2 * debiased")]
    ['bias = -0.115 ~ 0.05', 'sweep < 2 * debiased']
    """
    return tuple(_clause(text.strip()) for text in test.split(";") if text.strip())


def _clause(text: str) -> Clause:
    if match := _PRINTED.match(text):
        reference = float(match["reference"] or 0.0)
        return Clause(text, match["name"], float(match["printed"]), float(match["tolerance"]), reference)
    if match := _CELLS.match(text):
        return Clause(text, match["name"], tolerance=float(match["tolerance"]), in_se=bool(match["in_se"]))
    match = _DIRECTION.match(text)
    if not match:
        raise ValueError(f"no clause: {text!r}")
    first, second = _side(*match.group(1, 2, 3)), _side(*match.group(5, 6, 7))
    return Clause(text, sides=(first, second) if match[4] == "<" else (second, first))


def _side(factor: str | None, name: str | None, number: str | None) -> tuple[float, str]:
    return (float(factor or 1.0), name) if name else (float(number or 0.0), "")


def grade(test: str | tuple[Clause, ...], ours: Quantities) -> str:
    """The grade of an item.

    >>> grade("bias = -0.115 ~ 0.05", {"bias": Number(-0.1, 0.01)})
    'number agrees within 0.05'
    >>> grade("bias = -0.115 ~ 0.05", {"bias": Number(-0.1, 0.04)})
    'not decided within two standard errors'
    >>> grade("bias = -0.115 ~ 0.05; bias < 0", {"bias": Number(-0.3, 0.01)})
    'direction only'
    >>> grade("bias = -0.115 ~ 0.05; bias < 0", {"bias": Number(0.3, 0.01)})
    'does not hold'
    """
    clauses = parse(test) if isinstance(test, str) else test
    numbers = [clause.outcome(ours) for clause in clauses if clause.sides is None]
    directions = [clause.outcome(ours) for clause in clauses if clause.sides is not None]
    if False in directions or (False in numbers and not directions):
        return FAILS
    if None in directions or (None in numbers and False not in numbers):
        return UNDECIDED
    if not numbers or False in numbers:
        return DIRECTION_ONLY
    tolerances = dict.fromkeys(
        f"{clause.tolerance:g}" + (" standard errors of the printed numbers" if clause.in_se else "")
        for clause in clauses
        if clause.sides is None
    )
    return f"{AGREES} {', '.join(tolerances)}"


def effect_of(clause: Clause, ours: Quantities) -> float:
    """What the tolerance of a number must be smaller than: its distance from the reference, or the spread of a table."""
    if clause.printed is not None:
        return abs(clause.printed - clause.reference)
    quantity = ours[clause.name]
    assert isinstance(quantity, Cells)
    if clause.in_se:
        return float(np.abs(quantity.in_printed_se().printed).min())
    return float(np.std(quantity.printed))


def shown(clauses: tuple[Clause, ...], ours: Quantities) -> str:
    """Every quantity that a test names."""
    names = dict.fromkeys(name for clause in clauses for name in clause.names)
    return "; ".join(f"{name} {ours[name]}" for name in names)


def average(numbers: list[Number], *, absolute: bool = False) -> Number:
    """Mean of independent numbers (or of their absolute values), with its standard error.

    Noise raises the mean of absolute values: by how much, for normal noise about our numbers, is part of the standard error.
    """
    values = np.array([n.value for n in numbers])
    se = np.array([n.se for n in numbers])
    error = float(np.sqrt(np.sum(se**2))) / len(numbers)
    if not absolute:
        return Number(float(values.mean()), error)
    gap = np.abs(values)
    z = np.divide(gap, se, out=np.full(gap.shape, 40.0), where=se > 0)
    raised = se * (np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) - 2 * z * np.vectorize(NormalDist().cdf)(-z))
    return Number(float(gap.mean()), hypot(error, float(raised.mean()) / SE_FACTOR))


def ratio(first: Number, second: Number) -> Number:
    """first / second, with its standard error."""
    value = first.value / second.value
    return Number(value, abs(value) * hypot(first.se / first.value, second.se / second.value))


def difference(first: Number, second: Number) -> Number:
    """first - second, with its standard error."""
    return Number(first.value - second.value, hypot(first.se, second.se))


def share(hits: float, count: int) -> Number:
    """A share of independent cases; its standard error is that of one case where all or none hit."""
    part = hits / count
    return Number(part, float(np.sqrt(max(part * (1 - part), 1 / count) / count)) if count > 1 else 0.0)
