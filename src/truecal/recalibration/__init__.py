"""Recalibration methods on the scikit-learn contract, and their evaluation."""

from truecal.recalibration.binning_maps import HistogramBinning, ScalingBinning, SharedBinning
from truecal.recalibration.contract import Recalibrator
from truecal.recalibration.evaluation import BinChoice, Evaluation, choose_bins, evaluate
from truecal.recalibration.monotone_maps import CenteredIsotonic, IsotonicCalibration, SplineCalibration, VennAbers
from truecal.recalibration.score_maps import BetaCalibration, PlattScaling
from truecal.recalibration.softmax_maps import (
    BiasCorrectedTemperature,
    DirichletCalibration,
    EnsembleTemperature,
    MatrixScaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopVersusAll,
    VectorScaling,
)
from truecal.recalibration.wrappers import PerLabel, PriorShift, RecalibratedClassifier, SegmentOffsets

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
    "PerLabel",
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
