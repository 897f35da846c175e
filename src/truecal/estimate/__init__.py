"""Estimators of calibration error, one file each, and the Estimate they return."""

from truecal.estimate.binned import BinnedECE
from truecal.estimate.debiased import DebiasedECE
from truecal.estimate.estimate import Curve, Estimate, Interval
from truecal.estimate.estimator import Estimator
from truecal.estimate.isotonic import IsotonicError
from truecal.estimate.kernel_density import KernelDensityECE
from truecal.estimate.label_binned import LabelBinnedECE
from truecal.estimate.nearest import NearestECE
from truecal.estimate.rank_series.series import RankSeries
from truecal.estimate.smooth import SmoothECE
from truecal.estimate.sweep import SweepECE

__all__ = [
    "BinnedECE",
    "Curve",
    "DebiasedECE",
    "Estimate",
    "Estimator",
    "Interval",
    "IsotonicError",
    "KernelDensityECE",
    "LabelBinnedECE",
    "NearestECE",
    "RankSeries",
    "SmoothECE",
    "SweepECE",
]
