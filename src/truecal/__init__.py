"""truecal: how far a classifier's confidence is from the truth, how sure that answer is, and what fixes it.

>>> import truecal as tc
>>> float(tc.calibration_error([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], estimator=tc.BinnedECE(bins=2)))
0.275

Importing the package loads nothing but this file: every name comes from its module on first use. A public function may have the
name of the folder that is private to it (`scan`, `report`): the name always means the function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ does the same on use
    from truecal import lab as lab
    from truecal import plot as plot
    from truecal import scores as scores
    from truecal import selective as selective
    from truecal import study as study
    from truecal import train as train
    from truecal import uncertainty as uncertainty
    from truecal.breakdown.audit import audit as audit
    from truecal.breakdown.beyond_top import beyond_top as beyond_top
    from truecal.breakdown.likert import likert as likert
    from truecal.breakdown.subgroups import subgroups as subgroups
    from truecal.clinical import calibration_belt as calibration_belt
    from truecal.clinical import censoring_weights as censoring_weights
    from truecal.clinical import clinical as clinical
    from truecal.clinical import flexible_curve as flexible_curve
    from truecal.clinical import missing_outcomes as missing_outcomes
    from truecal.clinical import net_benefit as net_benefit
    from truecal.clinical import sample_size_by_simulation as sample_size_by_simulation
    from truecal.clinical.sample_size import sample_size as sample_size
    from truecal.errors import FileError as FileError
    from truecal.errors import InputError as InputError
    from truecal.errors import MissingExtraError as MissingExtraError
    from truecal.errors import TruecalError as TruecalError
    from truecal.errors import TruecalWarning as TruecalWarning
    from truecal.estimate import AdaptiveECE as AdaptiveECE
    from truecal.estimate import BinnedECE as BinnedECE
    from truecal.estimate import ClassWeighted as ClassWeighted
    from truecal.estimate import DebiasedECE as DebiasedECE
    from truecal.estimate import DirichletECE as DirichletECE
    from truecal.estimate import EqualMass as EqualMass
    from truecal.estimate import EqualWidth as EqualWidth
    from truecal.estimate import Estimate as Estimate
    from truecal.estimate import ForeignECE as ForeignECE
    from truecal.estimate import GeneralizedECE as GeneralizedECE
    from truecal.estimate import InterInterval as InterInterval
    from truecal.estimate import IsotonicError as IsotonicError
    from truecal.estimate import KDTree as KDTree
    from truecal.estimate import KernelDensityECE as KernelDensityECE
    from truecal.estimate import KernelError as KernelError
    from truecal.estimate import KSError as KSError
    from truecal.estimate import LabelBinnedECE as LabelBinnedECE
    from truecal.estimate import Lp as Lp
    from truecal.estimate import Mahalanobis as Mahalanobis
    from truecal.estimate import NearestECE as NearestECE
    from truecal.estimate import RankSeries as RankSeries
    from truecal.estimate import SmoothECE as SmoothECE
    from truecal.estimate import SweepECE as SweepECE
    from truecal.estimate import TotalVariation as TotalVariation
    from truecal.estimate import sweep_granularity as sweep_granularity
    from truecal.lens import AllLabels as AllLabels
    from truecal.lens import Canonical as Canonical
    from truecal.lens import ClassWise as ClassWise
    from truecal.lens import Grouping as Grouping
    from truecal.lens import OneClass as OneClass
    from truecal.lens import Sample as Sample
    from truecal.lens import TopK as TopK
    from truecal.lens import TopLabel as TopLabel
    from truecal.like import Convention as Convention
    from truecal.like import like as like
    from truecal.predictions import Predictions as Predictions
    from truecal.predictions import read as read
    from truecal.profile import Profile as Profile
    from truecal.profile import Sketch as Sketch
    from truecal.recalibrate import BetaCalibration as BetaCalibration
    from truecal.recalibrate import BiasCorrectedTemperature as BiasCorrectedTemperature
    from truecal.recalibrate import CenteredIsotonic as CenteredIsotonic
    from truecal.recalibrate import DirichletCalibration as DirichletCalibration
    from truecal.recalibrate import EnsembleTemperature as EnsembleTemperature
    from truecal.recalibrate import HistogramBinning as HistogramBinning
    from truecal.recalibrate import IsotonicCalibration as IsotonicCalibration
    from truecal.recalibrate import MatrixScaling as MatrixScaling
    from truecal.recalibrate import PlattScaling as PlattScaling
    from truecal.recalibrate import PriorShift as PriorShift
    from truecal.recalibrate import RecalibratedClassifier as RecalibratedClassifier
    from truecal.recalibrate import ScalingBinning as ScalingBinning
    from truecal.recalibrate import SegmentOffsets as SegmentOffsets
    from truecal.recalibrate import SharedBinning as SharedBinning
    from truecal.recalibrate import SplineCalibration as SplineCalibration
    from truecal.recalibrate import StructuredMatrixScaling as StructuredMatrixScaling
    from truecal.recalibrate import TemperatureScaling as TemperatureScaling
    from truecal.recalibrate import TopVersusAll as TopVersusAll
    from truecal.recalibrate import VectorScaling as VectorScaling
    from truecal.recalibrate import VennAbers as VennAbers
    from truecal.recalibrate import choose_bins as choose_bins
    from truecal.recalibrate.evaluate import evaluate as evaluate
    from truecal.report import report as report
    from truecal.report import report_comparison as report_comparison
    from truecal.report import report_study as report_study
    from truecal.report import report_watch as report_watch
    from truecal.scan import Accumulator as Accumulator
    from truecal.scan import Scan as Scan
    from truecal.scan.scan import scan as scan
    from truecal.select import by_column as by_column
    from truecal.select import by_label as by_label
    from truecal.select import by_output as by_output
    from truecal.uncertainty import calibration_error as calibration_error
    from truecal.uncertainty import compare_many as compare_many
    from truecal.uncertainty import measure as measure
    from truecal.uncertainty import rows_needed as rows_needed
    from truecal.uncertainty.band import band as band
    from truecal.uncertainty.below import below as below
    from truecal.uncertainty.bootstrap import bootstrap as bootstrap
    from truecal.uncertainty.compare import compare as compare
    from truecal.uncertainty.scorer import scorer as scorer
    from truecal.uncertainty.verify.verify import verify as verify
    from truecal.watch import Watch as Watch

# Where each public name is at home.
_HOMES = {
    "truecal.breakdown": "audit beyond_top likert subgroups",
    "truecal.clinical": "calibration_belt censoring_weights clinical flexible_curve missing_outcomes net_benefit sample_size "
    "sample_size_by_simulation",
    "truecal.errors": "FileError InputError MissingExtraError TruecalError TruecalWarning",
    "truecal.estimate": "AdaptiveECE ForeignECE KSError DirichletECE KernelError "
    "BinnedECE ClassWeighted DebiasedECE EqualMass EqualWidth Estimate GeneralizedECE InterInterval "
    "IsotonicError KDTree KernelDensityECE LabelBinnedECE Lp Mahalanobis NearestECE RankSeries SmoothECE SweepECE TotalVariation "
    "sweep_granularity",
    "truecal.lens": "AllLabels Canonical ClassWise Grouping OneClass Sample TopK TopLabel",
    "truecal.like": "Convention like",
    "truecal.predictions": "Predictions read",
    "truecal.profile": "Profile Sketch",
    "truecal.recalibrate": "BetaCalibration BiasCorrectedTemperature CenteredIsotonic DirichletCalibration "
    "EnsembleTemperature HistogramBinning IsotonicCalibration MatrixScaling PlattScaling PriorShift "
    "RecalibratedClassifier ScalingBinning SegmentOffsets SharedBinning SplineCalibration StructuredMatrixScaling "
    "TemperatureScaling TopVersusAll VectorScaling VennAbers choose_bins",
    "truecal.recalibrate.evaluate": "evaluate",
    "truecal.report": "report report_comparison report_study report_watch",
    "truecal.scan": "Accumulator Scan scan",
    "truecal.select": "by_column by_label by_output",
    "truecal.uncertainty": "band below bootstrap calibration_error compare compare_many measure rows_needed scorer verify",
    "truecal.watch": "Watch",
}
_MODULES = ("lab", "plot", "scores", "selective", "study", "train", "uncertainty")
_find, _names = lazy_names(__name__, _HOMES)

__all__ = sorted([*_names, *_MODULES])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("truecal")  # from now on without a detour: it is read from a file
        return globals()[name]
    if name in _MODULES:
        return import_module(f"truecal.{name}")
    return _find(name)


def __dir__() -> list[str]:
    return list(__all__)
