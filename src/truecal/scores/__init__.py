"""Proper scores and what they are made of, and what miscalibration costs a decision."""

from truecal.scores.decisions import (
    DecisionLoss,
    DecisionLosses,
    ScoreDecomposition,
    decision_loss,
    decompose_score,
)
from truecal.scores.proper import (
    Decomposition,
    Summary,
    accuracy,
    brier,
    briers,
    decompose,
    log_loss,
    log_losses,
    mean_confidence,
    summary,
)

__all__ = [
    "DecisionLoss",
    "DecisionLosses",
    "Decomposition",
    "ScoreDecomposition",
    "Summary",
    "accuracy",
    "brier",
    "briers",
    "decision_loss",
    "decompose",
    "decompose_score",
    "log_loss",
    "log_losses",
    "mean_confidence",
    "summary",
]
