"""Recalibrators on the scikit-learn contract, cross-fitted evaluation, and promises that can be checked."""

from truecal.recalibrate.bin_choice import BinChoice, choose_bins
from truecal.recalibrate.classifier import RecalibratedClassifier
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.evaluate import Evaluation, evaluate
from truecal.recalibrate.methods.beta import BetaCalibration
from truecal.recalibrate.methods.bias_corrected import BiasCorrectedTemperature
from truecal.recalibrate.methods.histogram import HistogramBinning
from truecal.recalibrate.methods.isotonic import IsotonicCalibration
from truecal.recalibrate.methods.platt import PlattScaling
from truecal.recalibrate.methods.scaling_binning import ScalingBinning
from truecal.recalibrate.methods.temperature import TemperatureScaling
from truecal.recalibrate.methods.vector import VectorScaling

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
    "choose_bins",
    "evaluate",
]
