"""What is judged unless a lens says otherwise."""

from truecal.lens.lens import Lens
from truecal.lens.one_class import OneClass
from truecal.lens.top_label import TopLabel
from truecal.predictions import Predictions

_POSITIVE, _TOP = OneClass(), TopLabel()


def default_lens(preds: Predictions) -> Lens:
    """The positive class of binary predictions, else the top label."""
    return _POSITIVE if preds.binary else _TOP
