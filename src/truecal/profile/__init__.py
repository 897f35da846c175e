"""Sorted scores with prefix sums, the one edge and tie rule, and sketches."""

from truecal.profile.binning import Cut, width_edges
from truecal.profile.cell_profile import CellProfile
from truecal.profile.cells import Tally
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch

__all__ = ["CellProfile", "Cut", "Profile", "Sketch", "Tally", "width_edges"]
