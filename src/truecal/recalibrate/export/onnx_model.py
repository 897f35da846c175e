"""A graph as an ONNX model. It computes in float64 whatever the type of its input, so that it agrees with
`predict_proba`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from truecal.errors import extra
from truecal.recalibrate.export.graph import Graph, Node

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
