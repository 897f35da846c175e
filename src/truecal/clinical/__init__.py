"""Measures of clinical prediction models."""

from truecal.clinical.censoring import censoring_weights
from truecal.clinical.curves import flexible_curve
from truecal.clinical.decisions import net_benefit
from truecal.clinical.planning import sample_size, sample_size_by_simulation
from truecal.clinical.summaries import summary

__all__ = [
    "censoring_weights",
    "flexible_curve",
    "net_benefit",
    "sample_size",
    "sample_size_by_simulation",
    "summary",
]
