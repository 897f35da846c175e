"""Displays on the scikit-learn convention: computed numbers in, `plot(ax=)` draws them, `frame()` returns them."""

from truecal.plot.curves import AbstentionDisplay, DecisionDisplay, DecisionLossDisplay, FlexibleDisplay
from truecal.plot.intervals import ForestDisplay, LikertDisplay
from truecal.plot.reliability import ReliabilityDisplay

__all__ = [
    "AbstentionDisplay",
    "DecisionDisplay",
    "DecisionLossDisplay",
    "FlexibleDisplay",
    "ForestDisplay",
    "LikertDisplay",
    "ReliabilityDisplay",
]
