"""Recalibrators on the scikit-learn contract, cross-fitted evaluation, and promises that can be checked."""

from truecal.recalibrate.beta import BetaCalibration
from truecal.recalibrate.bias_corrected import BiasCorrectedTemperature
from truecal.recalibrate.bin_choice import BinChoice, choose_bins
from truecal.recalibrate.classifier import RecalibratedClassifier
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.evaluate import Evaluation, evaluate
from truecal.recalibrate.histogram import HistogramBinning
from truecal.recalibrate.isotonic import IsotonicCalibration
from truecal.recalibrate.platt import PlattScaling
from truecal.recalibrate.scaling_binning import ScalingBinning
from truecal.recalibrate.temperature import TemperatureScaling
from truecal.recalibrate.vector import VectorScaling
from truecal.recalibrate.verify import Verification, verify

__all__ = [
    "BetaCalibration",
    "BiasCorrectedTemperature",
    "BinChoice",
    "Evaluation",
    "HistogramBinning",
    "IsotonicCalibration",
    "PlattScaling",
    "RecalibratedClassifier",
    "Recalibrator",
    "ScalingBinning",
    "TemperatureScaling",
    "VectorScaling",
    "Verification",
    "choose_bins",
    "evaluate",
    "verify",
]
