"""The heart: sorted scores, prefix sums, cuts."""

from truecal.profile.cut import Cut
from truecal.profile.profile import Profile

__all__ = ["Cut", "Profile"]
