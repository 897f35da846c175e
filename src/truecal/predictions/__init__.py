"""What a classifier said and what was true: built from arrays, frames and files, and checked once."""

from truecal.predictions import border, readers
from truecal.predictions.predictions import Predictions
from truecal.predictions.readers.read import read
from truecal.predictions.softmax import sigmoid, softmax

__all__ = ["Predictions", "border", "read", "readers", "sigmoid", "softmax"]
