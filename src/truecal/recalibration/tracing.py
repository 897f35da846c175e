"""Record the numpy operations of a fitted map, so that a map is written once and served by numpy, ONNX and torch.

A `Tracer` stands for an array of shape (rows, columns). numpy hands every operation on it to the tracer (NEP 13 and 18), which
appends the operation to a graph instead of computing it. The operations are few: each has the same meaning in ONNX and in torch,
and none depends on the number of rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from truecal import special

OPERATIONS = {
    *("add", "subtract", "multiply", "divide", "negative", "maximum", "minimum", "less", "less_equal", "equal"),
    *("log", "exp", "sigmoid", "where", "matmul", "softmax", "sum", "max", "argmax", "column_stack", "columns"),
    *("searchsorted", "take", "round_to_float32"),
}


@dataclass(frozen=True)
class Node:
    """One operation, by numpy's name, and the positions of its operands in the graph."""

    operation: str
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """Operations and constants in the order of computation: the first entry is the input, the last one the result."""

    entries: list[Node | NDArray[Any] | None] = field(default_factory=lambda: [None])

    def input(self) -> "Tracer":
        """Tracer of the model outputs, the first entry."""
        return Tracer(self, 0)

    def record(self, operation: str, operands: Sequence[Any]) -> "Tracer":
        """Append an operation; operands that are no tracers become constants."""
        if operation not in OPERATIONS:
            raise NotImplementedError(f"{operation} cannot be exported")
        positions = tuple(x.position if isinstance(x, Tracer) else self._add_constant(x) for x in operands)
        self.entries.append(Node(operation, positions))
        return Tracer(self, len(self.entries) - 1)

    def _add_constant(self, value: Any) -> int:
        """Append a constant and return its position."""
        array = np.asarray(value)
        # arrays of whole numbers are positions of columns and stay whole; single numbers take part in arithmetic
        is_real = array.dtype.kind == "f" or (array.ndim == 0 and array.dtype.kind in "iu")
        self.entries.append(array.astype(np.float64) if is_real else array)
        return len(self.entries) - 1


class Tracer(NDArrayOperatorsMixin):
    """An array of a graph; each numpy operation on it becomes an entry of the graph."""

    def __init__(self, graph: Graph, position: int) -> None:
        self.graph = graph
        self.position = position

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        if ufunc is np.absolute:
            return np.maximum(operands[0], -operands[0])
        if ufunc is np.log1p:
            return np.log(1 + operands[0])
        return self.graph.record(ufunc.__name__, operands)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, options: Any) -> "Tracer":
        return self.graph.record(function.__name__, args[0] if function is np.column_stack else args)

    def __getitem__(self, key: tuple[slice, Any]) -> "Tracer":
        return self.graph.record("columns", (self, np.atleast_1d(key[1])))

    def sum(self, axis: int, keepdims: bool) -> "Tracer":
        """Record the sum over columns."""
        return self.graph.record("sum", (self,))

    def max(self, axis: int, keepdims: bool) -> "Tracer":
        """Record the maximum over columns."""
        return self.graph.record("max", (self,))

    def argmax(self, axis: int, keepdims: bool) -> "Tracer":
        """Record the index of the largest column."""
        return self.graph.record("argmax", (self,))

    def astype(self, dtype: type) -> "Tracer":
        """Record the rounding to float32; other types change nothing, since graphs compute in float64."""
        return self.graph.record("round_to_float32", (self,)) if dtype is np.float32 else self


def softmax(logits: Any) -> Any:
    """Softmax of each row."""
    return logits.graph.record("softmax", (logits,)) if isinstance(logits, Tracer) else special.softmax(logits)


def sigmoid(logits: Any) -> Any:
    """1 / (1 + exp(-z)) of each number."""
    return logits.graph.record("sigmoid", (logits,)) if isinstance(logits, Tracer) else special.expit(logits)


def look_up(table: NDArray[Any], index: Any) -> Any:
    """Select the entries of a table at positions that `np.searchsorted` returned."""
    return index.graph.record("take", (table, index)) if isinstance(index, Tracer) else table[index]


def is_row_maximum(values: Any, columns: int) -> Any:
    """Mark the first largest number of each row, shape (n, columns)."""
    return values.argmax(axis=1, keepdims=True) == np.arange(columns)
