"""Studies: many models, many datasets, many metrics, from one YAML file."""

from truecal.study.analyses.base import Analysis, points
from truecal.study.analyses.pareto import pareto
from truecal.study.analyses.rankings import effect_of_recalibration, rank, rank_agreement
from truecal.study.analyses.shifts import in_and_out, shift
from truecal.study.analyses.trends import bin_trend, covariate_trend, error_against_calibration, log_fits, residuals
from truecal.study.example import make_example
from truecal.study.importing import import_table
from truecal.study.interventions.comparison import compare_interventions
from truecal.study.interventions.plan import Plan
from truecal.study.run import Study
from truecal.study.store import Store

__all__ = [
    "Analysis",
    "Plan",
    "Store",
    "Study",
    "bin_trend",
    "compare_interventions",
    "covariate_trend",
    "effect_of_recalibration",
    "error_against_calibration",
    "import_table",
    "in_and_out",
    "log_fits",
    "make_example",
    "pareto",
    "points",
    "rank",
    "rank_agreement",
    "residuals",
    "shift",
]
