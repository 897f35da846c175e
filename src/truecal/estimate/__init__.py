"""Estimators of calibration error, one file or folder each, and the Estimate they return."""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time names load on first use
    from truecal.estimate.binned import BinnedECE as BinnedECE
    from truecal.estimate.binning import Binning as Binning
    from truecal.estimate.bins import Bins as Bins
    from truecal.estimate.bins import effective_size as effective_size
    from truecal.estimate.cited.adaptive import AdaptiveECE as AdaptiveECE
    from truecal.estimate.cited.cumulative import KSError as KSError
    from truecal.estimate.cited.dirichlet import DirichletECE as DirichletECE
    from truecal.estimate.cited.foreign import ForeignECE as ForeignECE
    from truecal.estimate.cited.kernel import KernelError as KernelError
    from truecal.estimate.combine import combined as combined
    from truecal.estimate.combine import power_mean as power_mean
    from truecal.estimate.debiased import DebiasedECE as DebiasedECE
    from truecal.estimate.estimate import Curve as Curve
    from truecal.estimate.estimate import Estimate as Estimate
    from truecal.estimate.estimate import Estimates as Estimates
    from truecal.estimate.estimate import Interval as Interval
    from truecal.estimate.estimator import Estimator as Estimator
    from truecal.estimate.estimator import SketchRange as SketchRange
    from truecal.estimate.estimator import check_estimator as check_estimator
    from truecal.estimate.generalized.bins import EqualMass as EqualMass
    from truecal.estimate.generalized.bins import EqualWidth as EqualWidth
    from truecal.estimate.generalized.distances import ClassWeighted as ClassWeighted
    from truecal.estimate.generalized.distances import InterInterval as InterInterval
    from truecal.estimate.generalized.distances import Lp as Lp
    from truecal.estimate.generalized.distances import Mahalanobis as Mahalanobis
    from truecal.estimate.generalized.distances import TotalVariation as TotalVariation
    from truecal.estimate.generalized.estimator import GeneralizedECE as GeneralizedECE
    from truecal.estimate.generalized.granularity import sweep_granularity as sweep_granularity
    from truecal.estimate.generalized.kd_tree import KDTree as KDTree
    from truecal.estimate.isotonic import IsotonicError as IsotonicError
    from truecal.estimate.isotonic import isotonic_blocks as isotonic_blocks
    from truecal.estimate.label_binned import LabelBinnedECE as LabelBinnedECE
    from truecal.estimate.nearest import NearestECE as NearestECE
    from truecal.estimate.noise import debiased_absolute as debiased_absolute
    from truecal.estimate.noise import symmetric_root as symmetric_root
    from truecal.estimate.pivot import Pivot as Pivot
    from truecal.estimate.rank_series.series import RankSeries as RankSeries
    from truecal.estimate.smoothing.kernel_density import KernelDensityECE as KernelDensityECE
    from truecal.estimate.smoothing.smooth import SmoothECE as SmoothECE
    from truecal.estimate.sweep import SweepECE as SweepECE

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.estimate.binned": "BinnedECE",
        "truecal.estimate.binning": "Binning",
        "truecal.estimate.bins": "Bins effective_size",
        "truecal.estimate.cited.adaptive": "AdaptiveECE",
        "truecal.estimate.cited.cumulative": "KSError",
        "truecal.estimate.cited.dirichlet": "DirichletECE",
        "truecal.estimate.cited.foreign": "ForeignECE",
        "truecal.estimate.cited.kernel": "KernelError",
        "truecal.estimate.combine": "combined power_mean",
        "truecal.estimate.debiased": "DebiasedECE",
        "truecal.estimate.estimate": "Curve Estimate Estimates Interval",
        "truecal.estimate.estimator": "Estimator SketchRange check_estimator",
        "truecal.estimate.generalized.bins": "EqualMass EqualWidth",
        "truecal.estimate.generalized.distances": "ClassWeighted InterInterval Lp Mahalanobis TotalVariation",
        "truecal.estimate.generalized.estimator": "GeneralizedECE",
        "truecal.estimate.generalized.granularity": "sweep_granularity",
        "truecal.estimate.generalized.kd_tree": "KDTree",
        "truecal.estimate.isotonic": "IsotonicError isotonic_blocks",
        "truecal.estimate.label_binned": "LabelBinnedECE",
        "truecal.estimate.nearest": "NearestECE",
        "truecal.estimate.noise": "debiased_absolute symmetric_root",
        "truecal.estimate.pivot": "Pivot",
        "truecal.estimate.rank_series.series": "RankSeries",
        "truecal.estimate.smoothing.kernel_density": "KernelDensityECE",
        "truecal.estimate.smoothing.smooth": "SmoothECE",
        "truecal.estimate.sweep": "SweepECE",
    },
)
