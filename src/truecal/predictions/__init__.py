"""What a classifier said and what was true: built from arrays, frames and files, and checked once."""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names
from truecal.predictions import border
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.predictions.softmax import sigmoid, softmax

if TYPE_CHECKING:  # for type checkers and editors; at run time files are read by what loads on first use
    from truecal.predictions import readers as readers
    from truecal.predictions.readers.read import read as read

__getattr__, _ = lazy_names(__name__, {"truecal.predictions.readers.read": "read"})
__all__ = ["Predictions", "border", "check_predictions", "read", "readers", "sigmoid", "softmax"]
