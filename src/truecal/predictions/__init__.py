"""What a classifier said and what was true: built from arrays, frames and files, and checked once."""

from truecal.predictions.border import (
    SUM_TOLERANCE,
    as_array,
    as_floats,
    check_classes,
    check_labels,
    check_outcomes,
    check_scores,
    check_weights,
)
from truecal.predictions.predictions import Predictions
from truecal.predictions.readers.files import FRAME_FORMATS, read_arrays, read_frame
from truecal.predictions.readers.frames import matching
from truecal.predictions.readers.read import Wanted, read, read_file
from truecal.predictions.softmax import sigmoid, softmax

__all__ = [
    "FRAME_FORMATS",
    "SUM_TOLERANCE",
    "Predictions",
    "Wanted",
    "as_array",
    "as_floats",
    "check_classes",
    "check_labels",
    "check_outcomes",
    "check_scores",
    "check_weights",
    "matching",
    "read",
    "read_arrays",
    "read_file",
    "read_frame",
    "sigmoid",
    "softmax",
]
