"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them."""

from truecal.plot.bars import TopKDisplay
from truecal.plot.curves import (
    AbstentionDisplay,
    DecisionDisplay,
    DecisionLossDisplay,
    FlexibleDisplay,
)
from truecal.plot.grids import AgreementDisplay, CostMapDisplay
from truecal.plot.intervals import AuditDisplay, ForestDisplay, LikertDisplay
from truecal.plot.reliability import ReliabilityDisplay
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
    "BinTrendDisplay",
    "CostMapDisplay",
    "DecisionDisplay",
    "DecisionLossDisplay",
    "ErrorCalibrationDisplay",
    "FlexibleDisplay",
    "ForestDisplay",
    "InOutDisplay",
    "LikertDisplay",
    "ParetoDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "ShiftDisplay",
    "TopKDisplay",
]
