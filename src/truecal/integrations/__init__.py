"""The error inside other tools: scikit-learn, lm-eval, Inspect, evaluate, MLflow, Weights & Biases, pytest."""

from truecal.integrations.sklearn import scorer

__all__ = ["scorer"]
