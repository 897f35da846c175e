"""What a clinical reviewer and a decision maker ask: `tc.clinical`, flexible curves, net benefit, sample size, weights."""

from truecal.clinical.censoring import KnownOutcomes, censoring_weights, missing_outcomes
from truecal.clinical.curve.band import FlexibleCurve, flexible_curve
from truecal.clinical.curve.belt import CalibrationBelt, calibration_belt
from truecal.clinical.decision.curve import DecisionCurve
from truecal.clinical.decision.net_benefit import DecisionComparison, net_benefit
from truecal.clinical.quantity import Quantity
from truecal.clinical.result import Clinical, Sites
from truecal.clinical.sample_size import SampleSize, sample_size, sample_size_by_simulation
from truecal.clinical.validation import clinical

__all__ = [
    "CalibrationBelt",
    "Clinical",
    "DecisionComparison",
    "DecisionCurve",
    "FlexibleCurve",
    "KnownOutcomes",
    "Quantity",
    "SampleSize",
    "Sites",
    "calibration_belt",
    "censoring_weights",
    "clinical",
    "flexible_curve",
    "missing_outcomes",
    "net_benefit",
    "sample_size",
    "sample_size_by_simulation",
]
