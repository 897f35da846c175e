"""truecal: how far a classifier's confidence is from the truth, how sure that answer is, and what fixes it.

>>> import truecal as tc
>>> float(tc.calibration_error([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], estimator=tc.BinnedECE(bins=2)))
0.275

Importing the package loads nothing but this file: public names and modules are bound on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ does the same on first use
    from truecal import clinical as clinical
    from truecal import engines as engines
    from truecal import errors as errors
    from truecal import estimators as estimators
    from truecal import groups as groups
    from truecal import inference as inference
    from truecal import integrations as integrations
    from truecal import lab as lab
    from truecal import lenses as lenses
    from truecal import plot as plot
    from truecal import profile as profile
    from truecal import recalibration as recalibration
    from truecal import scores as scores
    from truecal import selective as selective
    from truecal import study as study
    from truecal import train as train
    from truecal.engines import Accumulator as Accumulator
    from truecal.engines import scan as scan
    from truecal.errors import InputError as InputError
    from truecal.errors import TruecalError as TruecalError
    from truecal.errors import TruecalWarning as TruecalWarning
    from truecal.estimators import BinnedECE as BinnedECE
    from truecal.estimators import DebiasedECE as DebiasedECE
    from truecal.estimators import Estimate as Estimate
    from truecal.estimators import GeneralizedECE as GeneralizedECE
    from truecal.estimators import NearestECE as NearestECE
    from truecal.estimators import RankSeries as RankSeries
    from truecal.estimators import SmoothECE as SmoothECE
    from truecal.estimators import SweepECE as SweepECE
    from truecal.groups import audit as audit
    from truecal.groups import likert as likert
    from truecal.groups import subgroups as subgroups
    from truecal.inference import calibration_error as calibration_error
    from truecal.inference import compare as compare
    from truecal.inference import like as like
    from truecal.inference import measure as measure
    from truecal.inference import verify as verify
    from truecal.integrations import scorer as scorer
    from truecal.lenses import AllLabels as AllLabels
    from truecal.lenses import Canonical as Canonical
    from truecal.lenses import ClassWise as ClassWise
    from truecal.lenses import Grouping as Grouping
    from truecal.lenses import OneClass as OneClass
    from truecal.lenses import TopK as TopK
    from truecal.lenses import TopLabel as TopLabel
    from truecal.pages import report as report
    from truecal.predictions import Predictions as Predictions
    from truecal.predictions import by_column as by_column
    from truecal.predictions import by_label as by_label
    from truecal.predictions import by_output as by_output
    from truecal.predictions import read as read
    from truecal.profile import Sketch as Sketch
    from truecal.recalibration import evaluate as evaluate
    from truecal.scores import decision_loss as decision_loss
    from truecal.watch import Watch as Watch

# The folder of each public name.
_HOMES = {
    "engines": "Accumulator scan",
    "errors": "InputError TruecalError TruecalWarning",
    "estimators": "BinnedECE DebiasedECE Estimate GeneralizedECE NearestECE RankSeries SmoothECE SweepECE",
    "groups": "audit likert subgroups",
    "inference": "calibration_error compare like measure verify",
    "integrations": "scorer",
    "lenses": "AllLabels Canonical ClassWise Grouping OneClass TopK TopLabel",
    "pages": "report",
    "predictions": "Predictions by_column by_label by_output read",
    "profile": "Sketch",
    "recalibration": "evaluate",
    "scores": "decision_loss",
    "watch": "Watch",
}
_FOLDER_OF = {name: folder for folder, names in _HOMES.items() for name in names.split()}
_MODULES = (
    "clinical",
    "engines",
    "errors",
    "estimators",
    "groups",
    "inference",
    "integrations",
    "lab",
    "lenses",
    "plot",
    "profile",
    "recalibration",
    "scores",
    "selective",
    "study",
    "train",
)

__all__ = sorted([*_FOLDER_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    """Import a public name or module on first use; `__version__` is that of the installed package."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("truecal")
    elif name in _FOLDER_OF:
        value = getattr(_import(_FOLDER_OF[name]), name)
    elif name in _MODULES:
        value = _import(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _import(folder: str) -> Any:
    """Import the module truecal.FOLDER; if an optional package is missing, name the extra that installs it."""
    try:
        return import_module(f"truecal.{folder}")
    except ModuleNotFoundError as error:
        from truecal.errors import MissingExtraError

        missing = MissingExtraError.behind(error)
        if missing is None:
            raise
        raise missing from error


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
