"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them."""

from truecal.plot.bars import TopKDisplay
from truecal.plot.curves import (
    AbstentionDisplay,
    DecisionDisplay,
    DecisionLossDisplay,
    FlexibleDisplay,
    OverTimeDisplay,
)
from truecal.plot.grids import AgreementDisplay, CostMapDisplay
from truecal.plot.intervals import AuditDisplay, ForestDisplay, LikertDisplay
from truecal.plot.reliability import BeforeAfterDisplay, ClassWiseDisplay, ReliabilityDisplay
from truecal.plot.study import (
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
    "BinTrendDisplay",
    "ClassWiseDisplay",
    "CostMapDisplay",
    "DecisionDisplay",
    "DecisionLossDisplay",
    "ErrorCalibrationDisplay",
    "FlexibleDisplay",
    "ForestDisplay",
    "InOutDisplay",
    "LikertDisplay",
    "OverTimeDisplay",
    "ParetoDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "ShiftDisplay",
    "TopKDisplay",
]
