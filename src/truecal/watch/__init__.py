"""Calibration over time: e-processes that may be looked at every day."""

from truecal.watch.findings import WatchStep
from truecal.watch.watch import Watch

__all__ = ["Watch", "WatchStep"]
