"""Estimators of calibration error, one file or folder each, and the Estimate they return."""

from truecal.estimate.binned import BinnedECE
from truecal.estimate.binning import Binning
from truecal.estimate.bins import Bins, effective_size
from truecal.estimate.cited.adaptive import AdaptiveECE
from truecal.estimate.cited.cumulative import CutoffError, KSError
from truecal.estimate.cited.dirichlet import DirichletECE
from truecal.estimate.cited.foreign import ForeignECE
from truecal.estimate.cited.kernel import KernelError
from truecal.estimate.cited.lipschitz import LipschitzError
from truecal.estimate.cited.rejected import RejectedShare
from truecal.estimate.combine import combined, power_mean
from truecal.estimate.debiased import DebiasedECE
from truecal.estimate.estimate import Curve, Estimate, Estimates, Interval
from truecal.estimate.estimator import Estimator, SketchRange, check_estimator
from truecal.estimate.generalized.bins import EqualMass, EqualWidth
from truecal.estimate.generalized.distances import (
    ClassWeighted,
    InterInterval,
    Lp,
    Mahalanobis,
    TotalVariation,
)
from truecal.estimate.generalized.estimator import GeneralizedECE
from truecal.estimate.generalized.granularity import sweep_granularity, sweep_sample_size
from truecal.estimate.generalized.kd_tree import KDTree
from truecal.estimate.isotonic import IsotonicError, isotonic_blocks
from truecal.estimate.label_binned import LabelBinnedECE
from truecal.estimate.nearest import NearestECE
from truecal.estimate.noise import debiased_absolute
from truecal.estimate.pivot import Pivot
from truecal.estimate.rank_series.series import RankSeries
from truecal.estimate.smoothing.kernel_density import KernelDensityECE
from truecal.estimate.smoothing.smooth import SmoothECE
from truecal.estimate.sweep import SweepECE

__all__ = [
    "AdaptiveECE",
    "BinnedECE",
    "Binning",
    "Bins",
    "ClassWeighted",
    "Curve",
    "CutoffError",
    "DebiasedECE",
    "DirichletECE",
    "EqualMass",
    "EqualWidth",
    "Estimate",
    "Estimates",
    "Estimator",
    "ForeignECE",
    "GeneralizedECE",
    "InterInterval",
    "Interval",
    "IsotonicError",
    "KDTree",
    "KSError",
    "KernelDensityECE",
    "KernelError",
    "LabelBinnedECE",
    "LipschitzError",
    "Lp",
    "Mahalanobis",
    "NearestECE",
    "Pivot",
    "RankSeries",
    "RejectedShare",
    "SketchRange",
    "SmoothECE",
    "SweepECE",
    "TotalVariation",
    "check_estimator",
    "combined",
    "debiased_absolute",
    "effective_size",
    "isotonic_blocks",
    "power_mean",
    "sweep_granularity",
    "sweep_sample_size",
]
