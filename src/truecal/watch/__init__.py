"""Calibration over time: an alarm that is valid whenever one looks."""

from truecal.watch.group import Settings, WatchedGroup
from truecal.watch.step import GroupStep, WatchStep
from truecal.watch.watch import Watch

__all__ = ["GroupStep", "Settings", "Watch", "WatchStep", "WatchedGroup"]
