"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them."""

from truecal.plot.decisions import AbstentionDisplay, CostMapDisplay, DecisionDisplay, FlexibleDisplay
from truecal.plot.groups import (
    AuditDisplay,
    ContextDisplay,
    ForestDisplay,
    GranularityDisplay,
    LikertDisplay,
    TopKDisplay,
)
from truecal.plot.lab import BiasMapDisplay, PowerDisplay
from truecal.plot.losses import DecisionLossDisplay
from truecal.plot.models import BeforeAfterDisplay, EvaluationDisplay, OverTimeDisplay
from truecal.plot.reliability import ClassWiseDisplay, ReliabilityDisplay
from truecal.plot.study import (
    AgreementDisplay,
    BinTrendDisplay,
    ErrorCalibrationDisplay,
    InOutDisplay,
    ParetoDisplay,
    RecalibrationDisplay,
    ResidualDisplay,
    ShiftDisplay,
)

__all__ = [
    "AbstentionDisplay",
    "AgreementDisplay",
    "AuditDisplay",
    "BeforeAfterDisplay",
    "BiasMapDisplay",
    "BinTrendDisplay",
    "ClassWiseDisplay",
    "ContextDisplay",
    "CostMapDisplay",
    "DecisionDisplay",
    "DecisionLossDisplay",
    "ErrorCalibrationDisplay",
    "EvaluationDisplay",
    "FlexibleDisplay",
    "ForestDisplay",
    "GranularityDisplay",
    "InOutDisplay",
    "LikertDisplay",
    "OverTimeDisplay",
    "ParetoDisplay",
    "PowerDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "ShiftDisplay",
    "TopKDisplay",
]
