"""Where the model is wrong: subgroups, the audit of segments, answer scales, classes beyond the first."""

from truecal.groups.answer_scales import LikertReport, likert
from truecal.groups.group_tables import Subgroups, subgroups
from truecal.groups.lower_ranks import BeyondTop, beyond_top
from truecal.groups.segment_search import Audit, Segment, audit

__all__ = ["Audit", "BeyondTop", "LikertReport", "Segment", "Subgroups", "audit", "beyond_top", "likert", "subgroups"]
