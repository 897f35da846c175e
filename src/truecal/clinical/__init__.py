"""Measures of clinical prediction models."""

from truecal.clinical.belt import calibration_belt
from truecal.clinical.censoring import censoring_weights, missing_outcomes
from truecal.clinical.curves import flexible_curve
from truecal.clinical.decisions import net_benefit
from truecal.clinical.planning import sample_size, sample_size_by_simulation
from truecal.clinical.summaries import summary

__all__ = [
    "calibration_belt",
    "censoring_weights",
    "flexible_curve",
    "missing_outcomes",
    "net_benefit",
    "sample_size",
    "sample_size_by_simulation",
    "summary",
]
