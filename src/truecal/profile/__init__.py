"""The heart: sorted scores, prefix sums, cuts; and the sketch, its bounded cousin."""

from truecal.profile.cut import Cut, width_edges
from truecal.profile.profile import Profile
from truecal.profile.sketch.profile import CellProfile
from truecal.profile.sketch.sketch import Sketch

__all__ = ["CellProfile", "Cut", "Profile", "Sketch", "width_edges"]
