"""How sure is the answer: the doors that measure, test, promise and compare."""

from truecal.estimate.resampling import Bootstrap
from truecal.uncertainty.band import Band, band
from truecal.uncertainty.below import below
from truecal.uncertainty.bootstrap import bootstrap
from truecal.uncertainty.compare import Comparison, compare, compare_many
from truecal.uncertainty.debiased_interval import debiased_interval
from truecal.uncertainty.measurement import calibration_error, measure, measure_profile
from truecal.uncertainty.multiplicity import holm
from truecal.uncertainty.tests.classical import hosmer_lemeshow, spiegelhalter
from truecal.uncertainty.tests.consistency import consistency_test
from truecal.uncertainty.tests.cumulative import kuiper
from truecal.uncertainty.tests.rank_series import rank_series_test
from truecal.uncertainty.tests.tcal import tcal_test
from truecal.uncertainty.tests.verdict import Verdict
from truecal.uncertainty.verify.bounds import rows_needed
from truecal.uncertainty.verify.verify import Verification, verify

__all__ = [
    "Band",
    "Bootstrap",
    "Comparison",
    "Verdict",
    "Verification",
    "band",
    "below",
    "bootstrap",
    "calibration_error",
    "compare",
    "compare_many",
    "consistency_test",
    "debiased_interval",
    "holm",
    "hosmer_lemeshow",
    "kuiper",
    "measure",
    "measure_profile",
    "rank_series_test",
    "rows_needed",
    "spiegelhalter",
    "tcal_test",
    "verify",
]
