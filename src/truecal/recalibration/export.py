"""Write the graph of a fitted map as an ONNX model or as a torch module; both compute in float64 whatever their input."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal.errors import extra
from truecal.recalibration.tracing import Graph, Node

if TYPE_CHECKING:
    import torch

_OPSET = 17
_IR_VERSION = 8  # read by the runtimes of the last years
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
        """Add the ONNX nodes of an operation of a graph (`tracing.OPERATIONS`) and return the name of its output."""
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
    """Write a graph as an ONNX model: input (rows, columns) of `dtype`, output "probabilities" of the same type."""
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
