"""A fitted map as a small program of array operations, written once and exported to ONNX and to torch.

A map describes itself by `Value`s: columns of numbers, one row per prediction, in float64. Every value has two
dimensions, so that rows stay rows. The vocabulary is small on purpose: each operation exists in both targets with the
same meaning (see OPERATIONS), and nothing in it depends on the number of rows.
"""

from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

OPERATIONS = (
    # two values, element by element
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal", "both", "either"),
    # one value, element by element
    *("negative", "log", "exp", "sigmoid", "opposite", "single"),
    # over the columns of each row
    *("softmax", "row_sum", "row_max", "is_largest"),
    # choices and tables
    *("where", "matmul", "concat", "columns", "count_reached", "look_up"),
)
Operand = Union["Value", ArrayLike]


@dataclass(frozen=True)
class Node:
    """One operation: its name and the places of its operands."""

    operation: str
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """The operations in order. Place 0 is the input; a place holds a Node or a constant array."""

    places: list[Node | NDArray[Any] | None] = field(default_factory=lambda: [None])

    def input(self) -> "Value":
        return Value(self, 0)

    def constant(self, value: ArrayLike) -> "Value":
        """A constant: floats as float64, whole numbers (places of columns) as they are, booleans too."""
        array = np.asarray(value)
        if array.dtype.kind == "f" or (array.ndim == 0 and array.dtype.kind in "iu"):
            array = array.astype(np.float64)
        self.places.append(array)
        return Value(self, len(self.places) - 1)

    def apply(self, operation: str, *operands: Operand) -> "Value":
        assert operation in OPERATIONS, operation
        values = [x if isinstance(x, Value) else self.constant(x) for x in operands]
        self.places.append(Node(operation, tuple(v.place for v in values)))
        return Value(self, len(self.places) - 1)


@dataclass(frozen=True, eq=False)
class Value:
    """What stands at one place of a graph. Arithmetic on values adds operations to the graph."""

    graph: Graph
    place: int

    # numpy arrays leave arithmetic with a Value to the Value
    __array_ufunc__ = None

    def _do(self, operation: str, *others: Operand) -> "Value":
        return self.graph.apply(operation, self, *others)

    def __add__(self, other: Operand) -> "Value":
        return self._do("add", other)

    def __radd__(self, other: ArrayLike) -> "Value":
        return self._do("add", other)

    def __sub__(self, other: Operand) -> "Value":
        return self._do("subtract", other)

    def __rsub__(self, other: ArrayLike) -> "Value":
        return self.graph.apply("subtract", other, self)

    def __mul__(self, other: Operand) -> "Value":
        return self._do("multiply", other)

    def __rmul__(self, other: ArrayLike) -> "Value":
        return self._do("multiply", other)

    def __truediv__(self, other: Operand) -> "Value":
        return self._do("divide", other)

    def __rtruediv__(self, other: ArrayLike) -> "Value":
        return self.graph.apply("divide", other, self)

    def __matmul__(self, other: Operand) -> "Value":
        return self._do("matmul", other)

    def __neg__(self) -> "Value":
        return self._do("negative")

    def __lt__(self, other: Operand) -> "Value":
        return self._do("less", other)

    def __le__(self, other: Operand) -> "Value":
        return self._do("less_equal", other)

    def __and__(self, other: Operand) -> "Value":
        return self._do("both", other)

    def __or__(self, other: Operand) -> "Value":
        return self._do("either", other)

    def __invert__(self) -> "Value":
        return self._do("opposite")

    def log(self) -> "Value":
        return self._do("log")

    def exp(self) -> "Value":
        return self._do("exp")

    def sigmoid(self) -> "Value":
        return self._do("sigmoid")

    def single(self) -> "Value":
        """Rounded to float32, and float64 again."""
        return self._do("single")

    def softmax(self) -> "Value":
        """Over the columns of each row."""
        return self._do("softmax")

    def sum(self) -> "Value":
        """Of each row, as one column."""
        return self._do("row_sum")

    def max(self) -> "Value":
        """Of each row, as one column."""
        return self._do("row_max")

    def is_largest(self, columns: int) -> "Value":
        """True in the column of the first largest number of each row."""
        return self._do("is_largest", np.arange(columns))

    def at_least(self, low: Operand) -> "Value":
        return self._do("maximum", low)

    def at_most(self, high: Operand) -> "Value":
        return self._do("minimum", high)

    def where(self, yes: Operand, no: Operand) -> "Value":
        """`yes` where this (a condition) holds, else `no`."""
        return self._do("where", yes, no)

    def columns(self, places: ArrayLike) -> "Value":
        """Some of the columns, in the order asked for."""
        return self._do("columns", np.asarray(places, np.int64))

    def column(self, place: int) -> "Value":
        return self.columns([place])

    def beside(self, *others: Operand) -> "Value":
        """The columns of this and then of the others."""
        return self._do("concat", *others)

    def count_reached(self, edges: ArrayLike) -> "Value":
        """How many of the rising `edges` each number of this one column has reached: numpy's searchsorted from the right."""
        return self._do("count_reached", np.asarray(edges, np.float64))

    def look_up(self, table: ArrayLike) -> "Value":
        """The entry of `table` at each place counted by `count_reached`."""
        return self._do("look_up", np.asarray(table, np.float64))
