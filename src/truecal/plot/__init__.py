"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them.

matplotlib is imported when something is drawn; its settings (rcParams) are never touched.
"""

from truecal.plot.abstention import AbstentionDisplay
from truecal.plot.before_after import BeforeAfterDisplay
from truecal.plot.bias_map import BiasMapDisplay
from truecal.plot.class_wise import ClassWiseDisplay
from truecal.plot.granularity import GranularityDisplay
from truecal.plot.likert import LikertDisplay
from truecal.plot.pareto import ParetoDisplay
from truecal.plot.power import PowerDisplay
from truecal.plot.reliability import ReliabilityDisplay
from truecal.plot.top_k import TopKDisplay

__all__ = [
    "AbstentionDisplay",
    "BeforeAfterDisplay",
    "BiasMapDisplay",
    "ClassWiseDisplay",
    "GranularityDisplay",
    "LikertDisplay",
    "ParetoDisplay",
    "PowerDisplay",
    "ReliabilityDisplay",
    "TopKDisplay",
]
