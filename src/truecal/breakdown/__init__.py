"""What a user relies on, in tables: words for confidence (Likert), subgroups, and what happened beyond the top class."""

from truecal.breakdown.audit import audit
from truecal.breakdown.beyond_top import BeyondTop, beyond_top, entropy
from truecal.breakdown.findings import Audit, Segment
from truecal.breakdown.likert import SCALE, Category, LikertReport, checked_scale, likert
from truecal.breakdown.segments.levels import Level, rows_within
from truecal.breakdown.subgroups import Subgroups, subgroups

__all__ = [
    "SCALE",
    "Audit",
    "BeyondTop",
    "Category",
    "Level",
    "LikertReport",
    "Segment",
    "Subgroups",
    "audit",
    "beyond_top",
    "checked_scale",
    "entropy",
    "likert",
    "rows_within",
    "subgroups",
]
