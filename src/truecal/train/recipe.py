"""What is trained and how, as values that need no torch."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["mlp", "cnn"]
NETWORKS: tuple[Kind, ...] = ("cnn", "mlp")


@dataclass(frozen=True)
class Recipe:
    """A base model and how it is trained: stochastic gradient descent with momentum, the rate falling to 0 along a half cosine."""

    network: Kind = "cnn"
    width: int = 16
    epochs: int = 20
    batch: int = 64
    learning_rate: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.0
