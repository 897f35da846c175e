"""A fitted map as a small program of array operations, written once and exported to ONNX and to torch.

A map describes itself by `Value`s: columns of numbers, one row per prediction, in float64. Every value has two
dimensions, so that rows stay rows. The vocabulary is small on purpose: each operation exists in both targets with the
same meaning (see OPERATIONS), and nothing in it depends on the number of rows.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import extra
from truecal.recalibration.likelihood import LOG_ZERO

if TYPE_CHECKING:
    import torch


# ----------------------------------------------------------------------------------------------------
# A fitted map as a small program of array operations, written once and exported to ONNX and to torch

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


# ----------------------------------------------------------------------------------------------------
# The graph counterparts of `outputs`: model outputs as logits, probabilities and one score per class


def traced_logits(outputs: Value, kind: str) -> Value:
    """One logit per class: the logits themselves, or the logarithms of probabilities; at least the logarithm of zero."""
    return outputs if kind == "logits" else outputs.log().at_least(LOG_ZERO)


def traced_floor(logits: Value, floor: float) -> Value:
    """Logits, none of them more than `floor` below its row's largest."""
    return logits.at_least(logits.max() - floor)


def traced_probs(outputs: Value, kind: str) -> Value:
    """Class probabilities."""
    return outputs if kind == "probs" else outputs.softmax()


def traced_scores(outputs: Value, kind: str, count: int) -> Value:
    """One score per class: its probability, or from logits its log odds against the rest (see `class_scores`)."""
    if kind == "probs":
        return outputs
    if count == 2:
        difference = outputs.column(1) - outputs.column(0)
        return (-difference).beside(difference)
    leads = outputs.is_largest(count)
    peak = outputs.max()
    mass = (outputs - peak).exp()
    rest = leads.where(1.0, mass.sum() - mass)
    others = leads.where(4 * LOG_ZERO, outputs)
    second = others.max()
    of_leader = peak - second - (others - second).exp().sum().log()
    return leads.where(of_leader, outputs - peak - rest.log())


# ----------------------------------------------------------------------------------------------------
# A graph as an ONNX model. It computes in float64 whatever the type of its input, so that it agrees with

_OPSET = 17
_SAME_NAME = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "both": "And",
    "either": "Or",
    "negative": "Neg",
    "log": "Log",
    "exp": "Exp",
    "sigmoid": "Sigmoid",
    "opposite": "Not",
    "where": "Where",
    "matmul": "MatMul",
}


class _Writer:
    """Nodes and constants of an ONNX graph while it is written."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def cast(self, name: str, kind: int) -> str:
        return self.node("Cast", [name], to=kind)

    # ------------------------------------------------------------------ operations that are more than one node

    def single(self, x: str) -> str:
        return self.cast(self.cast(x, self.onnx.TensorProto.FLOAT), self.onnx.TensorProto.DOUBLE)

    def softmax(self, x: str) -> str:
        return self.node("Softmax", [x], axis=1)

    def row_sum(self, x: str) -> str:
        return self.node("ReduceSum", [x, self.constant(np.array([1]))], keepdims=1)

    def row_max(self, x: str) -> str:
        return self.node("ReduceMax", [x], axes=[1], keepdims=1)

    def is_largest(self, x: str, places: str) -> str:
        return self.node("Equal", [self.node("ArgMax", [x], axis=1, keepdims=1), places])

    def concat(self, *parts: str) -> str:
        return self.node("Concat", list(parts), axis=1)

    def columns(self, x: str, places: str) -> str:
        return self.node("Gather", [x, places], axis=1)

    def count_reached(self, x: str, edges: str) -> str:
        reached = self.cast(self.node("LessOrEqual", [edges, x]), self.onnx.TensorProto.INT64)
        return self.row_sum(reached)

    def look_up(self, places: str, table: str) -> str:
        return self.node("Gather", [table, places], axis=0)


def onnx_model(graph: Graph, *, columns: int, input_name: str, dtype: str, notes: Mapping[str, str]) -> Any:
    """The model: input (rows, columns) of `dtype`, output "probabilities" (rows, classes) of the same type."""
    onnx = extra("onnx")
    helper = onnx.helper
    kind = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}[dtype]
    writer = _Writer(onnx)
    names = [writer.cast(input_name, onnx.TensorProto.DOUBLE)]
    for place in graph.places[1:]:
        if isinstance(place, Node):
            operands = [names[i] for i in place.operands]
            if place.operation in _SAME_NAME:
                names.append(writer.node(_SAME_NAME[place.operation], operands))
            else:
                make: Callable[..., str] = getattr(writer, place.operation)
                names.append(make(*operands))
        else:
            names.append(writer.constant(place))
    writer.nodes.append(helper.make_node("Cast", [names[-1]], ["probabilities"], to=kind))
    body = helper.make_graph(
        writer.nodes,
        "recalibrate",
        [helper.make_tensor_value_info(input_name, kind, ["rows", columns])],
        [helper.make_tensor_value_info("probabilities", kind, ["rows", None])],
        writer.initializers,
    )
    # an intermediate representation that runtimes of the last years read
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    helper.set_model_props(model, dict(notes))
    onnx.checker.check_model(model)
    return model


# ----------------------------------------------------------------------------------------------------
# A graph as a torch module: traced code with buffers, so it moves between devices, saves its state and can be


def torch_module(graph: Graph, *, single: bool) -> "torch.nn.Module":
    """A module from model outputs to probabilities of the same type; it computes in float64.

    With `single` it also takes one-dimensional input.
    """
    torch, fx = extra("torch"), extra("torch.fx")

    functions = _functions(torch)
    root, code = torch.nn.Module(), fx.Graph()

    def build(name: str, x: Any) -> Any:
        """Operations whose torch function takes more than the operands."""
        if name == "single":
            return code.call_method("to", (code.call_method("to", (x[0], torch.float32)), torch.float64))
        if name == "softmax":
            return code.call_function(torch.softmax, (x[0],), {"dim": 1})
        if name == "row_sum":
            return code.call_function(torch.sum, (x[0],), {"dim": [1], "keepdim": True})
        if name == "row_max":
            return code.call_function(torch.amax, (x[0],), {"dim": [1], "keepdim": True})
        if name == "is_largest":
            return code.call_function(torch.eq, (code.call_function(torch.argmax, (x[0], 1, True)), x[1]))
        if name == "concat":
            return code.call_function(torch.cat, (x,), {"dim": 1})
        if name == "columns":
            return code.call_function(torch.index_select, (x[0], 1, x[1]))
        if name == "count_reached":
            return code.call_function(torch.bucketize, (x[0], x[1]), {"right": True})
        # look_up: a table at places
        return code.call_function(torch.take, (x[1], x[0]))

    outputs = code.placeholder("outputs")
    first = code.call_method("to", (outputs, torch.float64))
    values = [code.call_method("reshape", (first, (-1, 1))) if single else first]
    for place in graph.places[1:]:
        if isinstance(place, Node):
            operands = [values[i] for i in place.operands]
            function = functions.get(place.operation)
            values.append(
                build(place.operation, operands) if function is None else code.call_function(function, tuple(operands))
            )
        else:
            name = f"c{len(values)}"
            root.register_buffer(name, torch.as_tensor(place))
            constant = code.get_attr(name)
            # a module moved to half precision keeps its arithmetic in float64
            values.append(
                code.call_method("to", (constant, torch.float64))
                if getattr(root, name).is_floating_point()
                else constant
            )
    code.output(code.call_method("type_as", (values[-1], outputs)))
    return fx.GraphModule(root, code, class_name="Recalibration")


def _functions(torch: Any) -> dict[str, Any]:
    """Operations of a graph whose function takes the operands alone."""
    return {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": operator.truediv,
        "maximum": torch.maximum,
        "minimum": torch.minimum,
        "less": torch.lt,
        "less_equal": torch.le,
        "both": torch.logical_and,
        "either": torch.logical_or,
        "opposite": torch.logical_not,
        "negative": operator.neg,
        "log": torch.log,
        "exp": torch.exp,
        "sigmoid": torch.sigmoid,
        "where": torch.where,
        "matmul": torch.matmul,
    }
