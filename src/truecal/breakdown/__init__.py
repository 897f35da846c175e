"""What a user relies on, in tables: words for confidence (Likert), subgroups, and what happened beyond the top class."""

from truecal.breakdown.beyond_top import BeyondTop, beyond_top, entropy, group_confidence
from truecal.breakdown.likert import SCALE, LikertReport, likert
from truecal.breakdown.subgroups import Subgroups, subgroups

__all__ = [
    "SCALE",
    "BeyondTop",
    "LikertReport",
    "Subgroups",
    "beyond_top",
    "entropy",
    "group_confidence",
    "likert",
    "subgroups",
]
