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
    from truecal.study.analyses.covariates import CovariateTrend as CovariateTrend
    from truecal.study.analyses.covariates import covariate_trend as covariate_trend
    from truecal.study.analyses.dominance import Dominance as Dominance
    from truecal.study.analyses.dominance import dominance as dominance
    from truecal.study.analyses.error_calibration import ErrorAgainstCalibration as ErrorAgainstCalibration
    from truecal.study.analyses.error_calibration import error_against_calibration as error_against_calibration
    from truecal.study.analyses.error_residuals import Residuals as Residuals
    from truecal.study.analyses.error_residuals import residuals as residuals
    from truecal.study.analyses.log_fits import LogFits as LogFits
    from truecal.study.analyses.log_fits import log_fits as log_fits
    from truecal.study.analyses.pareto_sets import ParetoSets as ParetoSets
    from truecal.study.analyses.pareto_sets import on_front as on_front
    from truecal.study.analyses.pareto_sets import pareto as pareto
    from truecal.study.analyses.points import points as points
    from truecal.study.analyses.rankings.rank_flips import RankAgreement as RankAgreement
    from truecal.study.analyses.rankings.rank_flips import rank_agreement as rank_agreement
    from truecal.study.analyses.rankings.ranking import Ranking as Ranking
    from truecal.study.analyses.rankings.ranking import rank as rank
    from truecal.study.analyses.shifts.in_out import InAndOut as InAndOut
    from truecal.study.analyses.shifts.in_out import in_and_out as in_and_out
    from truecal.study.analyses.shifts.over_types import ShiftOverTypes as ShiftOverTypes
    from truecal.study.analyses.shifts.over_types import shift_over_types as shift_over_types
    from truecal.study.analyses.shifts.severities import Shift as Shift
    from truecal.study.analyses.shifts.severities import shift as shift
    from truecal.study.analyses.trend_of_bins import BinTrend as BinTrend
    from truecal.study.analyses.trend_of_bins import bin_trend as bin_trend
    from truecal.study.example.example import make_example as make_example
    from truecal.study.importing.importing import import_table as import_table
    from truecal.study.interventions.compare import Comparison as Comparison
    from truecal.study.interventions.compare import compare_interventions as compare_interventions
    from truecal.study.interventions.config import Plan as Plan
    from truecal.study.run.predictions import predictions_of as predictions_of
    from truecal.study.store import Store as Store
    from truecal.study.study import Study as Study

# Where each public name is at home.
__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.study.analyses.before_after": "RecalibrationEffect effect_of_recalibration",
        "truecal.study.analyses.bias_of_bins": "BinBias bin_bias",
        "truecal.study.analyses.error_residuals": "Residuals residuals",
        "truecal.study.analyses.shifts.in_out": "InAndOut in_and_out",
        "truecal.study.interventions.config": "Plan",
        "truecal.study.interventions.compare": "Comparison compare_interventions",
        "truecal.study.analyses.shifts.severities": "Shift shift",
        "truecal.study.analyses.trend_of_bins": "BinTrend bin_trend",
        "truecal.study.analyses.error_calibration": "ErrorAgainstCalibration error_against_calibration",
        "truecal.study.analyses.pareto_sets": "ParetoSets on_front pareto",
        "truecal.study.analyses.rankings.rank_flips": "RankAgreement rank_agreement",
        "truecal.study.analyses.points": "points",
        "truecal.study.analyses.rankings.ranking": "Ranking rank",
        "truecal.study.example.example": "make_example",
        "truecal.study.importing.importing": "import_table",
        "truecal.study.analyses.shifts.over_types": "ShiftOverTypes shift_over_types",
        "truecal.study.analyses.log_fits": "LogFits log_fits",
        "truecal.study.analyses.covariates": "CovariateTrend covariate_trend",
        "truecal.study.analyses.dominance": "Dominance dominance",
        "truecal.study.run.predictions": "predictions_of",
        "truecal.study.store": "Store",
        "truecal.study.study": "Study",
    },
)


def __dir__() -> list[str]:
    return list(__all__)
