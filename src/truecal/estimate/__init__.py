"""Estimators of calibration error, one file or folder each, and the Estimate they return."""

from truecal.estimate.binned import BinnedECE
from truecal.estimate.binning import Binning
from truecal.estimate.bins import Bins
from truecal.estimate.combine import combined, power_mean
from truecal.estimate.debiased import DebiasedECE
from truecal.estimate.estimate import Curve, Estimate, Interval
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
from truecal.estimate.kernel_density import KernelDensityECE
from truecal.estimate.label_binned import LabelBinnedECE
from truecal.estimate.nearest import NearestECE
from truecal.estimate.noise import debiased_absolute
from truecal.estimate.pivot import Pivot
from truecal.estimate.rank_series.clustered import ClusteredSeries
from truecal.estimate.rank_series.series import RankSeries
from truecal.estimate.resampling import (
    METHODS,
    Bootstrap,
    Method,
    Statistic,
    against_redraws,
    alike,
    cell_places,
    collapse,
    refuse_batch,
)
from truecal.estimate.resampling.joint import Joint, resampled_jointly
from truecal.estimate.resampling.units import Units, softened_incidence
from truecal.estimate.smooth import SmoothECE
from truecal.estimate.sweep import SweepECE

__all__ = [
    "METHODS",
    "BinnedECE",
    "Binning",
    "Bins",
    "Bootstrap",
    "ClassWeighted",
    "ClusteredSeries",
    "Curve",
    "DebiasedECE",
    "EqualMass",
    "EqualWidth",
    "Estimate",
    "Estimator",
    "GeneralizedECE",
    "InterInterval",
    "Interval",
    "IsotonicError",
    "Joint",
    "KDTree",
    "KernelDensityECE",
    "LabelBinnedECE",
    "Lp",
    "Mahalanobis",
    "Method",
    "NearestECE",
    "Pivot",
    "RankSeries",
    "SketchRange",
    "SmoothECE",
    "Statistic",
    "SweepECE",
    "TotalVariation",
    "Units",
    "against_redraws",
    "alike",
    "cell_places",
    "check_estimator",
    "collapse",
    "combined",
    "debiased_absolute",
    "isotonic_blocks",
    "power_mean",
    "refuse_batch",
    "resampled_jointly",
    "softened_incidence",
    "sweep_granularity",
    "sweep_sample_size",
]
