"""truecal: how far a classifier's confidence is from the truth, how sure that answer is, and what fixes it.

>>> import truecal as tc
>>> float(tc.calibration_error([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], estimator=tc.BinnedECE(bins=2)))
0.275
"""

from importlib import import_module
from typing import Any

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
from truecal.lens import ClassWise, OneClass, TopLabel
from truecal.measure import calibration_error, measure
from truecal.predictions import Predictions, read
from truecal.profile import Profile

# Names that need optional packages or heavy parts of scipy, and the module each is loaded from on first use.
_ON_USE = {"lab": "truecal.lab", "scores": "truecal.scores"}

__all__ = [
    "BinnedECE",
    "ClassWise",
    "DebiasedECE",
    "Estimate",
    "FileError",
    "InputError",
    "IsotonicError",
    "KernelDensityECE",
    "LabelBinnedECE",
    "MissingExtraError",
    "NearestECE",
    "OneClass",
    "Predictions",
    "Profile",
    "RankSeries",
    "SmoothECE",
    "SweepECE",
    "TopLabel",
    "TruecalError",
    "TruecalWarning",
    "calibration_error",
    "lab",
    "measure",
    "read",
    "scores",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("truecal")
    if name not in _ON_USE:
        raise AttributeError(f"module 'truecal' has no attribute {name!r}")
    module = import_module(_ON_USE[name])
    found = module if _ON_USE[name] == f"truecal.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
