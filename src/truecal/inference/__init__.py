"""How sure is the answer: measure, compare, verify, tests and bands."""

from truecal.inference.bands import Band, band
from truecal.inference.comparison import Comparison, compare, compare_many
from truecal.inference.conclusion import (
    Conclusion,
    GroupError,
    LossAt,
    Region,
    RowCounts,
    Slope,
    conclude,
    stated_values,
    worst_region,
)
from truecal.inference.conventions import Convention, like
from truecal.inference.intervals import bootstrap
from truecal.inference.measurement import calibration_error, measure
from truecal.inference.tests import (
    Verdict,
    below,
    consistency_test,
    holm,
    hosmer_lemeshow,
    kuiper,
    rank_series_test,
    spiegelhalter,
)
from truecal.inference.verification import Verification, rows_needed, verify
from truecal.judged import JudgedEstimate

__all__ = [
    "Band",
    "Comparison",
    "Conclusion",
    "Convention",
    "GroupError",
    "JudgedEstimate",
    "LossAt",
    "Region",
    "RowCounts",
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
