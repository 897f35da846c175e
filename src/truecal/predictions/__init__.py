"""What a classifier said and what was true: built from arrays, frames and files, and checked once."""

from truecal.predictions.predictions import Predictions
from truecal.predictions.readers.files import read

__all__ = ["Predictions", "read"]
