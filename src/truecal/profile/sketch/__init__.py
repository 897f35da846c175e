"""The Sketch: a Profile's bounded cousin."""

from truecal.profile.sketch.cells import CELL_RULE
from truecal.profile.sketch.sketch import Sketch
from truecal.profile.sketch.tally import Tally

__all__ = ["CELL_RULE", "Sketch", "Tally"]
