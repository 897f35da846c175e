"""The error inside other tools: scikit-learn, lm-eval, Inspect, evaluate, MLflow, Weights & Biases, pytest."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truecal.integrations.sklearn import scorer as scorer

__all__ = ["scorer"]


def __getattr__(name: str) -> Any:
    """Import the scorer on first use: pytest imports this folder at every start, and should not wait for numpy."""
    if name != "scorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from truecal.integrations.sklearn import scorer

    return scorer
