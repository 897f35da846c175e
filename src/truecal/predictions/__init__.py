"""Predictions: validated scores or class probabilities, labels, weights, clusters and columns; readers and selections."""

from truecal.predictions.predictions import Predictions
from truecal.predictions.readers import read
from truecal.predictions.selection import Selection, by_column, by_label, by_output

__all__ = ["Predictions", "Selection", "by_column", "by_label", "by_output", "read"]
