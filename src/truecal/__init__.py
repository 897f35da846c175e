"""truecal: how far a classifier's confidence is from the truth, how sure that answer is, and what fixes it.

>>> import truecal as tc
>>> float(tc.calibration_error([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], estimator=tc.BinnedECE(bins=2)))
0.275
"""

from importlib import import_module
from typing import Any

from truecal.beyond_top import beyond_top, group_confidence
from truecal.errors import FileError, InputError, MissingExtraError, TruecalError, TruecalWarning
from truecal.estimate import (
    BinnedECE,
    DebiasedECE,
    Estimate,
    IsotonicError,
    KernelDensityECE,
    LabelBinnedECE,
    NearestECE,
    RankSeries,
    SmoothECE,
    SweepECE,
)
from truecal.lens import Canonical, ClassWise, Grouping, OneClass, TopK, TopLabel
from truecal.likert import likert
from truecal.measure import calibration_error, measure
from truecal.predictions import Predictions, read
from truecal.profile import Profile
from truecal.report import report
from truecal.subgroups import subgroups

# Names loaded on first use, because they need optional packages or are rarely asked for: module -> names.
_LOADED_ON_USE = {
    "truecal.distance": "ClassWeighted InterInterval Lp Mahalanobis TotalVariation",
    "truecal.estimate.generalized": "GeneralizedECE",
    "truecal.estimate.granularity": "sweep_granularity sweep_sample_size",
    "truecal.estimate.kd_tree": "KDTree",
    "truecal.estimate.vector_bins": "EqualMass EqualWidth",
    "truecal.recalibrate": "BetaCalibration BiasCorrectedTemperature HistogramBinning IsotonicCalibration PlattScaling "
    "RecalibratedClassifier ScalingBinning TemperatureScaling VectorScaling choose_bins evaluate verify",
    "truecal.select": "by_column by_label by_output",
    "truecal.uncertainty": "band bootstrap compare compare_many",
}
_MODULES = ("lab", "scores", "uncertainty")
_ON_USE = {name: module for module, names in _LOADED_ON_USE.items() for name in names.split()}

__all__ = [
    "BetaCalibration",
    "BiasCorrectedTemperature",
    "BinnedECE",
    "Canonical",
    "ClassWeighted",
    "ClassWise",
    "DebiasedECE",
    "EqualMass",
    "EqualWidth",
    "Estimate",
    "FileError",
    "GeneralizedECE",
    "Grouping",
    "HistogramBinning",
    "InputError",
    "InterInterval",
    "IsotonicCalibration",
    "IsotonicError",
    "KDTree",
    "KernelDensityECE",
    "LabelBinnedECE",
    "Lp",
    "Mahalanobis",
    "MissingExtraError",
    "NearestECE",
    "OneClass",
    "PlattScaling",
    "Predictions",
    "Profile",
    "RankSeries",
    "RecalibratedClassifier",
    "ScalingBinning",
    "SmoothECE",
    "SweepECE",
    "TemperatureScaling",
    "TopK",
    "TopLabel",
    "TotalVariation",
    "TruecalError",
    "TruecalWarning",
    "VectorScaling",
    "band",
    "beyond_top",
    "bootstrap",
    "by_column",
    "by_label",
    "by_output",
    "calibration_error",
    "choose_bins",
    "compare",
    "compare_many",
    "evaluate",
    "group_confidence",
    "lab",
    "likert",
    "measure",
    "read",
    "report",
    "scores",
    "subgroups",
    "sweep_granularity",
    "sweep_sample_size",
    "uncertainty",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("truecal")
    if name in _MODULES:
        return import_module(f"truecal.{name}")
    if name not in _ON_USE:
        raise AttributeError(f"module 'truecal' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_ON_USE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
