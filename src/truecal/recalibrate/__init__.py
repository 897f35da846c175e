"""Recalibrators on the scikit-learn contract, cross-fitted evaluation, and promises that can be checked."""

from truecal.recalibrate.bin_choice import BinChoice, choose_bins
from truecal.recalibrate.classifier import RecalibratedClassifier
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.evaluate import evaluate
from truecal.recalibrate.evaluation import Evaluation
from truecal.recalibrate.methods.scores.beta import BetaCalibration
from truecal.recalibrate.methods.scores.histogram import HistogramBinning
from truecal.recalibrate.methods.scores.isotonic import IsotonicCalibration
from truecal.recalibrate.methods.scores.platt import PlattScaling
from truecal.recalibrate.methods.scores.scaling_binning import ScalingBinning
from truecal.recalibrate.methods.softmax.bias_corrected import BiasCorrectedTemperature
from truecal.recalibrate.methods.softmax.temperature import TemperatureScaling
from truecal.recalibrate.methods.softmax.vector import VectorScaling

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
