"""The error inside other tools: scikit-learn, lm-eval, Inspect, evaluate, MLflow, pytest."""

from truecal.integrations.sklearn import scorer

__all__ = ["scorer"]
