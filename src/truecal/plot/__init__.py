"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them.

matplotlib is imported when something is drawn; its settings (rcParams) are never touched.
"""

from truecal.plot.abstention import AbstentionDisplay
from truecal.plot.agreement import AgreementDisplay
from truecal.plot.before_after import BeforeAfterDisplay
from truecal.plot.bias_map import BiasMapDisplay
from truecal.plot.bin_trend import BinTrendDisplay
from truecal.plot.class_wise import ClassWiseDisplay
from truecal.plot.cost_map import CostMapDisplay
from truecal.plot.error_calibration import ErrorCalibrationDisplay
from truecal.plot.granularity import GranularityDisplay
from truecal.plot.in_out import InOutDisplay
from truecal.plot.likert import LikertDisplay
from truecal.plot.pareto import ParetoDisplay
from truecal.plot.power import PowerDisplay
from truecal.plot.recalibration import RecalibrationDisplay
from truecal.plot.reliability import ReliabilityDisplay
from truecal.plot.residuals import ResidualDisplay
from truecal.plot.shift import ShiftDisplay
from truecal.plot.top_k import TopKDisplay

__all__ = [
    "AbstentionDisplay",
    "AgreementDisplay",
    "BeforeAfterDisplay",
    "BiasMapDisplay",
    "BinTrendDisplay",
    "ClassWiseDisplay",
    "CostMapDisplay",
    "ErrorCalibrationDisplay",
    "GranularityDisplay",
    "InOutDisplay",
    "LikertDisplay",
    "ParetoDisplay",
    "PowerDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "ShiftDisplay",
    "TopKDisplay",
]
