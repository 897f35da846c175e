"""Where predictions are read from: files, frames and the logs of evaluations.

Names load on first use: `Predictions` itself is built from frames, so the folder cannot load all its files with the first one.
"""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:
    from truecal.predictions.readers.columns import choose as choose
    from truecal.predictions.readers.columns import choose_predictions as choose_predictions
    from truecal.predictions.readers.files import DAMAGED_ZIP as DAMAGED_ZIP
    from truecal.predictions.readers.files import FRAME_FORMATS as FRAME_FORMATS
    from truecal.predictions.readers.files import existing as existing
    from truecal.predictions.readers.files import kind_of as kind_of
    from truecal.predictions.readers.files import read_arrays as read_arrays
    from truecal.predictions.readers.files import read_frame as read_frame
    from truecal.predictions.readers.frames import class_names as class_names
    from truecal.predictions.readers.frames import matching as matching
    from truecal.predictions.readers.read import Wanted as Wanted
    from truecal.predictions.readers.read import read_file as read_file

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.predictions.readers.columns": "choose choose_predictions",
        "truecal.predictions.readers.files": "DAMAGED_ZIP FRAME_FORMATS existing kind_of read_arrays read_frame",
        "truecal.predictions.readers.frames": "class_names matching",
        "truecal.predictions.readers.read": "Wanted read_file",
    },
)
