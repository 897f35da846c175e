"""How sure is the answer: measure, compare, verify, tests and bands."""

from truecal.inference.bands import Band, band
from truecal.inference.comparison import Comparison, compare, compare_many
from truecal.inference.conclusion import (
    Conclusion,
    GroupError,
    Region,
    RowCounts,
    Slope,
    conclude,
    stated_values,
    worst_region,
)
from truecal.inference.conventions import Convention, like
from truecal.inference.decisions import (
    DecisionLoss,
    DecisionLosses,
    LossAt,
    ScoreDecomposition,
    decision_loss,
    decompose_score,
)
from truecal.inference.intervals import below, bootstrap, debiased_interval
from truecal.inference.judged import JudgedEstimate
from truecal.inference.measurement import calibration_error, measure
from truecal.inference.tests import (
    Verdict,
    consistency_test,
    holm,
    hosmer_lemeshow,
    kuiper,
    rank_series_test,
    spiegelhalter,
)
from truecal.inference.verification import Verification, rows_needed, verify

__all__ = [
    "Band",
    "Comparison",
    "Conclusion",
    "Convention",
    "DecisionLoss",
    "DecisionLosses",
    "GroupError",
    "JudgedEstimate",
    "LossAt",
    "Region",
    "RowCounts",
    "ScoreDecomposition",
    "Slope",
    "Verdict",
    "Verification",
    "band",
    "below",
    "bootstrap",
    "calibration_error",
    "compare",
    "compare_many",
    "conclude",
    "consistency_test",
    "debiased_interval",
    "decision_loss",
    "decompose_score",
    "holm",
    "hosmer_lemeshow",
    "kuiper",
    "like",
    "measure",
    "rank_series_test",
    "rows_needed",
    "spiegelhalter",
    "stated_values",
    "verify",
    "worst_region",
]
