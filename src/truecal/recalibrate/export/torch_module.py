"""A graph as a torch module: traced code with buffers, so it moves between devices, saves its state and can be
scripted."""

import operator
from typing import TYPE_CHECKING, Any

from truecal.errors import extra
from truecal.recalibrate.export.graph import Graph, Node

if TYPE_CHECKING:
    import torch


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
