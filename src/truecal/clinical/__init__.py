"""What a clinical reviewer and a decision maker ask."""

from truecal.clinical.distance import curve_distance
from truecal.clinical.line import calibration_line

__all__ = ["calibration_line", "curve_distance"]
