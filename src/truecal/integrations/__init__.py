"""The error inside other tools: scikit-learn, lm-eval, Inspect, evaluate, MLflow, Weights & Biases, pytest."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truecal.integrations.sklearn import scorer as scorer

__all__ = ["scorer"]


def __getattr__(name: str) -> Any:
    """Import `scorer` on first use; AttributeError for other names. pytest imports this folder at every start."""
    if name != "scorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from truecal.integrations.sklearn import scorer

    return scorer
