"""What a clinical reviewer and a decision maker ask: `tc.clinical`, flexible curves, net benefit, sample size, weights."""

from truecal.clinical.curve.band import FlexibleCurve, flexible_curve
from truecal.clinical.decision.net_benefit import DecisionComparison, net_benefit
from truecal.clinical.quantity import Quantity
from truecal.clinical.result import Clinical, Sites
from truecal.clinical.validation import clinical

__all__ = [
    "Clinical",
    "DecisionComparison",
    "FlexibleCurve",
    "Quantity",
    "Sites",
    "clinical",
    "flexible_curve",
    "net_benefit",
]
