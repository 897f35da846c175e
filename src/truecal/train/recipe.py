"""What is trained and how, as values that need no torch."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["mlp", "cnn"]
NETWORKS: tuple[Kind, ...] = ("cnn", "mlp")


@dataclass(frozen=True)
class Recipe:
    """A base model and how it is trained: stochastic gradient descent with momentum, the rate falling to 0 along a half cosine.

    The model is one of NETWORKS, or one's `own`: a function that is imported and called with the shape of an input and the number
    of classes, and answers a torch.nn.Module from (n, *shape) to (n, classes) logits.
    """

    network: Kind = "cnn"
    own: str | None = None  # "module:function" that makes another network from (shape, classes)
    width: int = 16
    epochs: int = 20
    batch: int = 64
    learning_rate: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.0
