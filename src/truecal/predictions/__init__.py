"""What a classifier said and what was true: built from arrays, frames and files, and checked once."""

from truecal.predictions.files import read
from truecal.predictions.predictions import Predictions

__all__ = ["Predictions", "read"]
