"""The heart: sorted scores, prefix sums, cuts."""

from truecal.profile.profile import Cut, Profile

__all__ = ["Cut", "Profile"]
