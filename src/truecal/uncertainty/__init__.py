"""How sure is the answer: the doors that measure, test, promise and compare."""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time names load on first use
    from truecal.estimate.resampling import Bootstrap as Bootstrap
    from truecal.uncertainty.band import Band as Band
    from truecal.uncertainty.band import band as band
    from truecal.uncertainty.below import below as below
    from truecal.uncertainty.bootstrap import bootstrap as bootstrap
    from truecal.uncertainty.compare import Comparison as Comparison
    from truecal.uncertainty.compare import compare as compare
    from truecal.uncertainty.compare import compare_many as compare_many
    from truecal.uncertainty.debiased_interval import debiased_interval as debiased_interval
    from truecal.uncertainty.measurement import calibration_error as calibration_error
    from truecal.uncertainty.measurement import measure as measure
    from truecal.uncertainty.measurement import measure_profile as measure_profile
    from truecal.uncertainty.multiplicity import holm as holm
    from truecal.uncertainty.scorer import scorer as scorer
    from truecal.uncertainty.tests.classical import hosmer_lemeshow as hosmer_lemeshow
    from truecal.uncertainty.tests.classical import spiegelhalter as spiegelhalter
    from truecal.uncertainty.tests.consistency import consistency_test as consistency_test
    from truecal.uncertainty.tests.cumulative import kuiper as kuiper
    from truecal.uncertainty.tests.rank_series import rank_series_test as rank_series_test
    from truecal.uncertainty.tests.verdict import Verdict as Verdict
    from truecal.uncertainty.verify.bounds import rows_needed as rows_needed
    from truecal.uncertainty.verify.verify import Verification as Verification
    from truecal.uncertainty.verify.verify import verify as verify

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.estimate.resampling": "Bootstrap",
        "truecal.uncertainty.band": "Band band",
        "truecal.uncertainty.below": "below",
        "truecal.uncertainty.bootstrap": "bootstrap",
        "truecal.uncertainty.compare": "Comparison compare compare_many",
        "truecal.uncertainty.debiased_interval": "debiased_interval",
        "truecal.uncertainty.measurement": "calibration_error measure measure_profile",
        "truecal.uncertainty.multiplicity": "holm",
        "truecal.uncertainty.scorer": "scorer",
        "truecal.uncertainty.tests.classical": "hosmer_lemeshow spiegelhalter",
        "truecal.uncertainty.tests.consistency": "consistency_test",
        "truecal.uncertainty.tests.cumulative": "kuiper",
        "truecal.uncertainty.tests.rank_series": "rank_series_test",
        "truecal.uncertainty.tests.verdict": "Verdict",
        "truecal.uncertainty.verify.bounds": "rows_needed",
        "truecal.uncertainty.verify.verify": "Verification verify",
    },
)
