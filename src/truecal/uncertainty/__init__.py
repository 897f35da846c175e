"""How sure is the answer: intervals, tests of calibration, comparisons of models."""

from truecal.uncertainty.band import Band, band
from truecal.uncertainty.below import below
from truecal.uncertainty.bootstrap.bootstrap import Bootstrap, bootstrap
from truecal.uncertainty.compare import Comparison, compare, compare_many
from truecal.uncertainty.debiased_interval import debiased_interval
from truecal.uncertainty.tests.classical import hosmer_lemeshow, spiegelhalter
from truecal.uncertainty.tests.consistency import consistency_test
from truecal.uncertainty.tests.cumulative import kuiper
from truecal.uncertainty.tests.rank_series import rank_series_test
from truecal.uncertainty.tests.tcal import tcal_test
from truecal.uncertainty.tests.verdict import Verdict

__all__ = [
    "Band",
    "Bootstrap",
    "Comparison",
    "Verdict",
    "band",
    "below",
    "bootstrap",
    "compare",
    "compare_many",
    "consistency_test",
    "debiased_interval",
    "hosmer_lemeshow",
    "kuiper",
    "rank_series_test",
    "spiegelhalter",
    "tcal_test",
]
