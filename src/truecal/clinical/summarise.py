"""All numbers of one cohort together."""

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.clinical.curve.distance import curve_distance
from truecal.clinical.curve.spline import fit_spline
from truecal.clinical.line import calibration_line
from truecal.clinical.result import Clinical, Sites
from truecal.clinical.summaries import brier_score, c_statistic, observed_expected, scaled_brier

_FEW_EVENTS = 100  # events or non-events below which a validation is called small (Collins, Ogundimu and Altman 2016)
_FEW_PATIENTS = 20  # clusters below which their scatter is hardly known


def summarise(cohort: Cohort, level: float, rng: np.random.Generator, sites: Sites | None = None) -> Clinical:
    """All numbers of one cohort."""
    line = calibration_line(cohort, level)
    fit = fit_spline(cohort)
    distance = curve_distance(cohort, fit, level, rng)
    return Clinical(
        observed_expected(cohort, level),
        line.intercept,
        line.slope,
        distance.ici,
        distance.e50,
        distance.e90,
        distance.emax,
        c_statistic(cohort, level),
        brier_score(cohort, level),
        scaled_brier(cohort, level),
        cohort.rows,
        cohort.events,
        cohort.patients,
        cohort.prevalence,
        line.left_out,
        line.impossible,
        level,
        cohort.lens,
        _warnings(cohort, line.left_out, line.impossible),
        sites,
        cohort=cohort,
        fit=fit,
    )


def _warnings(cohort: Cohort, left_out: int, impossible: int) -> tuple[str, ...]:
    notes = []
    fewest = min(cohort.events, cohort.rows - cohort.events)
    if fewest < _FEW_EVENTS:
        kind = "events" if cohort.events == fewest else "non-events"
        notes.append(f"only {fewest} {kind}; fewer than {_FEW_EVENTS} leave a validation imprecise")
    if cohort.units is not None and cohort.patients < _FEW_PATIENTS:
        notes.append(f"only {cohort.patients} patients (clusters); intervals from fewer than {_FEW_PATIENTS} are rough")
    if left_out:
        wrong = f", {impossible:,} of them contradicted by the outcome" if impossible else ""
        notes.append(
            f"{left_out:,} rows have a score of exactly 0 or 1, which has no log odds{wrong}; "
            "intercept and slope leave them out, all other numbers count them"
        )
    return tuple(notes)
