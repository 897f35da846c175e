"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them.

matplotlib is imported when something is drawn; its settings (rcParams) are never touched.
"""

from truecal.plot.lab.bias_map import BiasMapDisplay
from truecal.plot.lab.power import PowerDisplay
from truecal.plot.model.abstention import AbstentionDisplay
from truecal.plot.model.audit import AuditDisplay
from truecal.plot.model.before_after import BeforeAfterDisplay
from truecal.plot.model.class_wise import ClassWiseDisplay
from truecal.plot.model.context import ContextDisplay
from truecal.plot.model.decision import DecisionDisplay
from truecal.plot.model.evaluation import EvaluationDisplay
from truecal.plot.model.flexible import FlexibleDisplay
from truecal.plot.model.forest import ForestDisplay
from truecal.plot.model.granularity import GranularityDisplay
from truecal.plot.model.likert import LikertDisplay
from truecal.plot.model.over_time import OverTimeDisplay
from truecal.plot.model.reliability import ReliabilityDisplay
from truecal.plot.model.top_k import TopKDisplay
from truecal.plot.study.agreement import AgreementDisplay
from truecal.plot.study.bin_trend import BinTrendDisplay
from truecal.plot.study.cost_map import CostMapDisplay
from truecal.plot.study.error_calibration import ErrorCalibrationDisplay
from truecal.plot.study.in_out import InOutDisplay
from truecal.plot.study.pareto import ParetoDisplay
from truecal.plot.study.recalibration import RecalibrationDisplay
from truecal.plot.study.residuals import ResidualDisplay
from truecal.plot.study.shift import ShiftDisplay

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
