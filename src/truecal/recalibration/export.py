"""Export fitted maps: record the numpy operations of a map once, and write them as an ONNX model or a torch module.

A `Tracer` stands for an array of shape (rows, columns). numpy hands every operation on it to the tracer (NEP 13 and 18), which
appends the operation to a graph instead of computing it. The operations are few: each has the same meaning in ONNX and in torch,
and none depends on the number of rows. Exported models compute in float64 whatever their input.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from truecal import special
from truecal.errors import extra

if TYPE_CHECKING:
    import torch

# ----------------------------------------------------------------------------------------------------
# Graphs of recorded operations

OPERATIONS = {
    *("add", "subtract", "multiply", "divide", "negative", "maximum", "minimum", "less", "less_equal", "equal"),
    *("log", "exp", "sigmoid", "where", "matmul", "softmax", "sum", "max", "argmax", "column_stack", "columns"),
    *("searchsorted", "take", "round_to_float32"),
}


@dataclass(frozen=True)
class Node:
    """One operation, by its name in `OPERATIONS`, and the positions of its operands among the entries of the graph."""

    operation: str
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """Operations (Node) and constants (arrays) in the order of computation.

    The first entry, None, stands for the input, model outputs (n, columns); the last one is the result.
    """

    entries: list[Node | NDArray[Any] | None] = field(default_factory=lambda: [None])

    def input(self) -> "Tracer":
        """Return the tracer of the model outputs, the first entry.

        >>> Graph().input().position
        0
        """
        return Tracer(self, 0)

    def record(self, operation: str, operands: Sequence[Any]) -> "Tracer":
        """Append an operation and return the tracer of its result; operands that are no tracers become constants.

        Raise NotImplementedError for an operation that is not in `OPERATIONS`.

        >>> graph = Graph()
        >>> graph.record("add", (graph.input(), 1)).position, graph.entries[1:]
        (2, [array(1.), Node(operation='add', operands=(0, 1))])
        """
        if operation not in OPERATIONS:
            raise NotImplementedError(f"{operation} cannot be exported")
        positions = tuple(x.position if isinstance(x, Tracer) else self._add_constant(x) for x in operands)
        self.entries.append(Node(operation, positions))
        return Tracer(self, len(self.entries) - 1)

    def _add_constant(self, value: Any) -> int:
        """Append a constant and return its position; floats, and single numbers, become float64.

        >>> graph = Graph()
        >>> graph._add_constant(3), graph.entries[-1]
        (1, array(3.))
        """
        array = np.asarray(value)
        # arrays of whole numbers are positions of columns and stay whole; single numbers take part in arithmetic
        is_real = array.dtype.kind == "f" or (array.ndim == 0 and array.dtype.kind in "iu")
        self.entries.append(array.astype(np.float64) if is_real else array)
        return len(self.entries) - 1


class Tracer(NDArrayOperatorsMixin):
    """An array of a graph; each numpy operation on it becomes an entry of the graph."""

    def __init__(self, graph: Graph, position: int) -> None:
        """Stand for the entry at `position` of a graph."""
        self.graph = graph
        self.position = position

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        """Record a ufunc by its name; |x| as max(x, -x) and log1p(x) as log(1 + x).

        >>> graph = Graph()
        >>> doubled = graph.input() * 2.0
        >>> graph.entries[-1]
        Node(operation='multiply', operands=(0, 1))
        """
        if ufunc is np.absolute:
            return np.maximum(operands[0], -operands[0])
        if ufunc is np.log1p:
            return np.log(1 + operands[0])
        return self.graph.record(ufunc.__name__, operands)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, options: Any) -> "Tracer":
        """Record a numpy function by its name."""
        return self.graph.record(function.__name__, args[0] if function is np.column_stack else args)

    def __getitem__(self, key: tuple[slice, Any]) -> "Tracer":
        """Record the selection of columns, `tracer[:, columns]`.

        >>> graph = Graph()
        >>> first = graph.input()[:, 0]
        >>> graph.entries[-2:]
        [array([0]), Node(operation='columns', operands=(0, 1))]
        """
        return self.graph.record("columns", (self, np.atleast_1d(key[1])))

    def sum(self, axis: int, keepdims: bool) -> "Tracer":
        """Record the sum over columns, (n, 1), whatever the arguments.

        >>> graph = Graph()
        >>> total = graph.input().sum(axis=1, keepdims=True)
        >>> graph.entries[-1]
        Node(operation='sum', operands=(0,))
        """
        return self.graph.record("sum", (self,))

    def max(self, axis: int, keepdims: bool) -> "Tracer":
        """Record the maximum over columns, (n, 1), whatever the arguments.

        >>> graph = Graph()
        >>> largest = graph.input().max(axis=1, keepdims=True)
        >>> graph.entries[-1]
        Node(operation='max', operands=(0,))
        """
        return self.graph.record("max", (self,))

    def argmax(self, axis: int, keepdims: bool) -> "Tracer":
        """Record the index of the largest column, (n, 1), whatever the arguments.

        >>> graph = Graph()
        >>> first = graph.input().argmax(axis=1, keepdims=True)
        >>> graph.entries[-1]
        Node(operation='argmax', operands=(0,))
        """
        return self.graph.record("argmax", (self,))

    def astype(self, dtype: type) -> "Tracer":
        """Record the rounding to float32; other types change nothing, since graphs compute in float64.

        >>> graph = Graph()
        >>> rounded = graph.input().astype(np.float32)
        >>> graph.entries[-1]
        Node(operation='round_to_float32', operands=(0,))
        """
        return self.graph.record("round_to_float32", (self,)) if dtype is np.float32 else self


def softmax(logits: Any) -> Any:
    """Compute the softmax of each row of an array (n, K); record it where `logits` is a tracer.

    >>> softmax(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    return logits.graph.record("softmax", (logits,)) if isinstance(logits, Tracer) else special.softmax(logits)


def sigmoid(logits: Any) -> Any:
    """Compute 1 / (1 + exp(-z)) of every number of an array; record it where `logits` is a tracer.

    >>> sigmoid(np.array([0.0]))
    array([0.5])
    """
    return logits.graph.record("sigmoid", (logits,)) if isinstance(logits, Tracer) else special.expit(logits)


def look_up(table: NDArray[Any], index: Any) -> Any:
    """Return table[index], for positions that `np.searchsorted` returned; record it where `index` is a tracer.

    >>> look_up(np.array([5.0, 6.0]), np.array([1, 0]))
    array([6., 5.])
    """
    return index.graph.record("take", (table, index)) if isinstance(index, Tracer) else table[index]


def is_row_maximum(values: Any, columns: int) -> Any:
    """Mark the first largest number of each row of (n, columns) values, shape (n, columns).

    >>> is_row_maximum(np.array([[1.0, 3.0, 3.0]]), 3)
    array([[False,  True, False]])
    """
    return values.argmax(axis=1, keepdims=True) == np.arange(columns)


# ----------------------------------------------------------------------------------------------------
# ONNX and torch

_OPSET = 17  # by choice: version of the operators
_IR_VERSION = 8  # by choice: read by the runtimes of the last years
# The ONNX operator of each operation, and its attributes. Operations that take more than one node are written in _OnnxWriter.
_ONNX: dict[str, tuple[str, dict[str, Any]]] = {
    "add": ("Add", {}),
    "subtract": ("Sub", {}),
    "multiply": ("Mul", {}),
    "divide": ("Div", {}),
    "maximum": ("Max", {}),
    "minimum": ("Min", {}),
    "less": ("Less", {}),
    "less_equal": ("LessOrEqual", {}),
    "equal": ("Equal", {}),
    "negative": ("Neg", {}),
    "log": ("Log", {}),
    "exp": ("Exp", {}),
    "sigmoid": ("Sigmoid", {}),
    "where": ("Where", {}),
    "matmul": ("MatMul", {}),
    "softmax": ("Softmax", {"axis": 1}),
    "max": ("ReduceMax", {"axes": [1], "keepdims": 1}),
    "argmax": ("ArgMax", {"axis": 1, "keepdims": 1}),
    "column_stack": ("Concat", {"axis": 1}),
    "columns": ("Gather", {"axis": 1}),
    "take": ("Gather", {"axis": 0}),
}


class _OnnxWriter:
    """Nodes and constants of an ONNX graph while it is written."""

    def __init__(self, onnx: Any) -> None:
        """Start without nodes and constants; `onnx` is the module of that name."""
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        """Add a node with one output and return the name of that output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def add_constant(self, array: Any) -> str:
        """Add an array as an initializer and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def cast(self, name: str, kind: int) -> str:
        """Add a cast of a value to an ONNX type and return the name of its output."""
        return self.add_node("Cast", [name], to=kind)

    def add_operation(self, operation: str, operands: list[str]) -> str:
        """Add the ONNX nodes of an operation of a graph (`OPERATIONS`) and return the name of its output."""
        kinds = self.onnx.TensorProto
        if operation == "round_to_float32":
            return self.cast(self.cast(operands[0], kinds.FLOAT), kinds.DOUBLE)
        if operation == "searchsorted":  # edges, then scores: count the edges at or below each score
            below = self.cast(self.add_node("LessOrEqual", operands), kinds.INT64)
            return self.add_operation("sum", [below])
        if operation == "sum":
            return self.add_node("ReduceSum", [*operands, self.add_constant(np.array([1]))], keepdims=1)
        kind, attributes = _ONNX[operation]
        return self.add_node(kind, operands, **attributes)


def onnx_model(graph: Graph, *, columns: int, input_name: str, dtype: str, notes: Mapping[str, str]) -> Any:
    """Write a graph as an ONNX model: input (rows, columns) of `dtype`, output "probabilities" of the same type.

    `notes` become the model's properties.
    """
    onnx = extra("onnx")
    helper = onnx.helper
    kind = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}[dtype]
    writer = _OnnxWriter(onnx)
    names = [writer.cast(input_name, onnx.TensorProto.DOUBLE)]
    for entry in graph.entries[1:]:
        if isinstance(entry, Node):
            names.append(writer.add_operation(entry.operation, [names[i] for i in entry.operands]))
        else:
            names.append(writer.add_constant(entry))
    writer.nodes.append(helper.make_node("Cast", [names[-1]], ["probabilities"], to=kind))
    body = helper.make_graph(
        writer.nodes,
        "recalibrate",
        [helper.make_tensor_value_info(input_name, kind, ["rows", columns])],
        [helper.make_tensor_value_info("probabilities", kind, ["rows", None])],
        writer.constants,
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    helper.set_model_props(model, dict(notes))
    onnx.checker.check_model(model)
    return model


def torch_module(graph: Graph, *, single_column: bool) -> "torch.nn.Module":
    """Write a graph as a torch module from model outputs to probabilities of the same type.

    Constants are buffers, so that the module moves between devices and saves its state. With `single_column` it also takes
    one-dimensional input.
    """
    torch, fx = extra("torch"), extra("torch.fx")
    # other operations have torch's functions of the same name
    functions: dict[str, tuple[Any, dict[str, Any]]] = {
        "equal": (torch.eq, {}),
        "softmax": (torch.softmax, {"dim": 1}),
        "sum": (torch.sum, {"dim": [1], "keepdim": True}),
        "max": (torch.amax, {"dim": [1], "keepdim": True}),
        "argmax": (torch.argmax, {"dim": 1, "keepdim": True}),
    }
    root, code = torch.nn.Module(), fx.Graph()

    def add_operation(operation: str, operands: list[Any]) -> Any:
        """Add the call of an operation on nodes of the torch graph, and return its node."""
        if operation == "round_to_float32":
            return code.call_method("to", (code.call_method("to", (operands[0], torch.float32)), torch.float64))
        if operation == "column_stack":
            return code.call_function(torch.cat, (operands,), {"dim": 1})
        if operation == "columns":
            return code.call_function(torch.index_select, (operands[0], 1, operands[1]))
        if operation == "searchsorted":
            return code.call_function(torch.bucketize, (operands[1], operands[0]), {"right": True})
        function, options = functions.get(operation) or (getattr(torch, operation), {})
        return code.call_function(function, tuple(operands), options)

    def add_constant(value: Any, name: str) -> Any:
        """Register an array as a buffer and return the node that reads it."""
        root.register_buffer(name, torch.as_tensor(value))
        constant = code.get_attr(name)
        # a module moved to half precision keeps its arithmetic in float64
        is_real = getattr(root, name).is_floating_point()
        return code.call_method("to", (constant, torch.float64)) if is_real else constant

    outputs = code.placeholder("outputs")
    first = code.call_method("to", (outputs, torch.float64))
    values = [code.call_method("reshape", (first, (-1, 1))) if single_column else first]
    for entry in graph.entries[1:]:
        if isinstance(entry, Node):
            values.append(add_operation(entry.operation, [values[i] for i in entry.operands]))
        else:
            values.append(add_constant(entry, f"c{len(values)}"))
    code.output(code.call_method("type_as", (values[-1], outputs)))
    return fx.GraphModule(root, code, class_name="Recalibration")
