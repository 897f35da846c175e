"""Recalibrators on the scikit-learn contract, cross-fitted evaluation, and promises that can be checked."""

from truecal.recalibrate.bin_choice import BinChoice, choose_bins
from truecal.recalibrate.classifier import RecalibratedClassifier
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.evaluate import evaluate
from truecal.recalibrate.evaluation import Evaluation
from truecal.recalibrate.methods.scores.beta import BetaCalibration
from truecal.recalibrate.methods.scores.centered import CenteredIsotonic
from truecal.recalibrate.methods.scores.histogram import HistogramBinning
from truecal.recalibrate.methods.scores.isotonic import IsotonicCalibration
from truecal.recalibrate.methods.scores.platt import PlattScaling
from truecal.recalibrate.methods.scores.scaling_binning import ScalingBinning
from truecal.recalibrate.methods.scores.shared_binning import SharedBinning
from truecal.recalibrate.methods.scores.spline import SplineCalibration
from truecal.recalibrate.methods.scores.venn_abers import VennAbers
from truecal.recalibrate.methods.segments import SegmentOffsets
from truecal.recalibrate.methods.softmax.bias_corrected import BiasCorrectedTemperature
from truecal.recalibrate.methods.softmax.dirichlet import DirichletCalibration
from truecal.recalibrate.methods.softmax.ensemble import EnsembleTemperature
from truecal.recalibrate.methods.softmax.matrix import MatrixScaling
from truecal.recalibrate.methods.softmax.structured import StructuredMatrixScaling
from truecal.recalibrate.methods.softmax.temperature import TemperatureScaling
from truecal.recalibrate.methods.softmax.vector import VectorScaling
from truecal.recalibrate.methods.whole.prior_shift import PriorShift
from truecal.recalibrate.methods.whole.top_versus_all import TopVersusAll

__all__ = [
    "BetaCalibration",
    "BiasCorrectedTemperature",
    "BinChoice",
    "CenteredIsotonic",
    "DirichletCalibration",
    "EnsembleTemperature",
    "Evaluation",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "PriorShift",
    "RecalibratedClassifier",
    "Recalibrator",
    "ScalingBinning",
    "SegmentOffsets",
    "SharedBinning",
    "SplineCalibration",
    "StructuredMatrixScaling",
    "TemperatureScaling",
    "TopVersusAll",
    "VectorScaling",
    "VennAbers",
    "choose_bins",
    "evaluate",
]
