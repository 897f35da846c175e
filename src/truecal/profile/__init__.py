"""The heart: sorted scores, prefix sums, cuts; and the sketch, its bounded cousin."""

from truecal.profile.cut import Cut, width_edges
from truecal.profile.profile import Profile, check_profile
from truecal.profile.sketch import CELL_RULE, Sketch, Tally
from truecal.profile.sketch.profile import CellProfile

__all__ = ["CELL_RULE", "CellProfile", "Cut", "Profile", "Sketch", "Tally", "check_profile", "width_edges"]
