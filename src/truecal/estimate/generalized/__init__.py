"""The generalized calibration error: any lens, distance and binning."""

from truecal.estimate.generalized.bins import EqualMass, EqualWidth
from truecal.estimate.generalized.distances import ClassWeighted, InterInterval, Lp, Mahalanobis, TotalVariation
from truecal.estimate.generalized.estimator import GeneralizedECE
from truecal.estimate.generalized.granularity import GranularitySweep, sweep_granularity
from truecal.estimate.generalized.kd_tree import KDTree

__all__ = [
    "ClassWeighted",
    "EqualMass",
    "EqualWidth",
    "GeneralizedECE",
    "GranularitySweep",
    "InterInterval",
    "KDTree",
    "Lp",
    "Mahalanobis",
    "TotalVariation",
    "sweep_granularity",
]
