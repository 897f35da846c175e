"""Studies: many models, many datasets, many metrics, from one YAML file.

    study = tc.study.Study.read("study.yaml")     validated: all problems at once, with their lines
    store = study.run("results", workers=2)       resumable; every number is kept
    store.frame()                                 one row per number

Every name comes from its module on first use.
"""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ does the same on use
    from truecal.study.analyses.before_after import RecalibrationEffect as RecalibrationEffect
    from truecal.study.analyses.before_after import effect_of_recalibration as effect_of_recalibration
    from truecal.study.analyses.bias_of_bins import BinBias as BinBias
    from truecal.study.analyses.bias_of_bins import bin_bias as bin_bias
    from truecal.study.analyses.error_calibration import ErrorAgainstCalibration as ErrorAgainstCalibration
    from truecal.study.analyses.error_calibration import error_against_calibration as error_against_calibration
    from truecal.study.analyses.error_residuals import Residuals as Residuals
    from truecal.study.analyses.error_residuals import residuals as residuals
    from truecal.study.analyses.in_out import InAndOut as InAndOut
    from truecal.study.analyses.in_out import in_and_out as in_and_out
    from truecal.study.analyses.pareto_sets import ParetoSets as ParetoSets
    from truecal.study.analyses.pareto_sets import on_front as on_front
    from truecal.study.analyses.pareto_sets import pareto as pareto
    from truecal.study.analyses.points import points as points
    from truecal.study.analyses.rank_flips import RankAgreement as RankAgreement
    from truecal.study.analyses.rank_flips import rank_agreement as rank_agreement
    from truecal.study.analyses.ranking import Ranking as Ranking
    from truecal.study.analyses.ranking import rank as rank
    from truecal.study.analyses.severities import Shift as Shift
    from truecal.study.analyses.severities import shift as shift
    from truecal.study.analyses.trend_of_bins import BinTrend as BinTrend
    from truecal.study.analyses.trend_of_bins import bin_trend as bin_trend
    from truecal.study.example.example import make_example as make_example
    from truecal.study.interventions.compare import Comparison as Comparison
    from truecal.study.interventions.compare import compare_interventions as compare_interventions
    from truecal.study.store import Store as Store
    from truecal.study.study import Study as Study

# Where each public name is at home.
__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.study.analyses.before_after": "RecalibrationEffect effect_of_recalibration",
        "truecal.study.analyses.bias_of_bins": "BinBias bin_bias",
        "truecal.study.analyses.error_residuals": "Residuals residuals",
        "truecal.study.analyses.in_out": "InAndOut in_and_out",
        "truecal.study.interventions.compare": "Comparison compare_interventions",
        "truecal.study.analyses.severities": "Shift shift",
        "truecal.study.analyses.trend_of_bins": "BinTrend bin_trend",
        "truecal.study.analyses.error_calibration": "ErrorAgainstCalibration error_against_calibration",
        "truecal.study.analyses.pareto_sets": "ParetoSets on_front pareto",
        "truecal.study.analyses.rank_flips": "RankAgreement rank_agreement",
        "truecal.study.analyses.points": "points",
        "truecal.study.analyses.ranking": "Ranking rank",
        "truecal.study.example.example": "make_example",
        "truecal.study.store": "Store",
        "truecal.study.study": "Study",
    },
)


def __dir__() -> list[str]:
    return list(__all__)
