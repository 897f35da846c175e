"""Estimators of calibration error and the Estimate they return."""

from truecal.estimators.base import Estimator
from truecal.estimators.binned import BinnedECE, DebiasedECE, LabelBinnedECE
from truecal.estimators.estimate import Estimate, Estimates, Interval
from truecal.estimators.generalized.binning import EqualMass, EqualWidth, KDTree
from truecal.estimators.generalized.distances import ClassWeighted, InterInterval, Lp, Mahalanobis, TotalVariation
from truecal.estimators.generalized.estimator import GeneralizedECE
from truecal.estimators.generalized.granularity import sweep_granularity
from truecal.estimators.isotonic import IsotonicError
from truecal.estimators.literature import AdaptiveECE, ConventionECE, DirichletECE, KernelError, KSError
from truecal.estimators.nearest import NearestECE
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.smoothing import KernelDensityECE, SmoothECE
from truecal.estimators.sweep import SweepECE

__all__ = [
    "AdaptiveECE",
    "BinnedECE",
    "ClassWeighted",
    "ConventionECE",
    "DebiasedECE",
    "DirichletECE",
    "EqualMass",
    "EqualWidth",
    "Estimate",
    "Estimates",
    "Estimator",
    "GeneralizedECE",
    "InterInterval",
    "Interval",
    "IsotonicError",
    "KDTree",
    "KSError",
    "KernelDensityECE",
    "KernelError",
    "LabelBinnedECE",
    "Lp",
    "Mahalanobis",
    "NearestECE",
    "RankSeries",
    "SmoothECE",
    "SweepECE",
    "TotalVariation",
    "sweep_granularity",
]
