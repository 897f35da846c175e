"""The items of TRIPOD+AI that concern calibration and its evaluation, with what this validation answers to each.

Item numbers and topics follow Collins et al. (2024), TRIPOD+AI statement, BMJ 385:e078378; the wording is ours.
Items not about calibration or its evaluation are left to the authors.
"""

from collections.abc import Sequence

from truecal.clinical import Clinical, DecisionCurve

TO_ADD = "to be stated by the authors"


def checklist(result: Clinical, decisions: DecisionCurve, clustered: bool) -> list[tuple[str, str, str]]:
    """Item number, topic and answer."""
    oe, intercept, slope = result.oe, result.intercept, result.slope
    sites = (
        "not asked for"
        if result.sites is None
        else f"{len(result.sites.names)} groups by {' x '.join(result.sites.by)}"
    )
    units = (
        f"{result.patients:,} patients with {result.rows:,} rows"
        if clustered
        else f"{result.rows:,} rows, one per patient"
    )
    span = f"{decisions.thresholds.min():g} to {decisions.thresholds.max():g}"
    return [
        ("5a, 6", "Source of data, participants, setting", TO_ADD),
        ("8a", "Outcome and time horizon", f"{result.lens}; definition and assessment {TO_ADD}"),
        ("10", "Sample size", f"{units}, {result.events:,} events; width of the O/E interval {oe.high - oe.low:.2f}"),
        ("11", "Missing data", f"no row was dropped or imputed for these numbers; handling before {TO_ADD}"),
        (
            "12d",
            "Heterogeneity across clusters",
            "random effects over groups (Hartung-Knapp), prediction interval for a new group"
            if result.sites is not None
            else f"not asked for; {TO_ADD}",
        ),
        (
            "12e",
            "Measures of performance",
            "O/E, intercept, slope, flexible curve, ICI, c-statistic, Brier score, net benefit",
        ),
        (
            "12f",
            "Recalibration of the model",
            f"none was made; the model's output was judged as given ({TO_ADD} if otherwise)",
        ),
        ("12g", "How predictions were calculated", TO_ADD),
        ("14", "Fairness", f"performance in groups: {sites}; approaches {TO_ADD}"),
        (
            "20a, 20b, 21",
            "Numbers of participants and events",
            f"{units}, {result.events:,} events ({result.prevalence:.1%})",
        ),
        ("23a", "Calibration in the large", f"O/E {oe}; intercept {intercept}"),
        ("23a", "Calibration slope", f"{slope}"),
        (
            "23a",
            "Flexible calibration curve",
            f"figure 1; ICI {result.ici}, E50 {result.e50}, E90 {result.e90}, Emax {result.emax}",
        ),
        ("23a", "Discrimination, overall performance", f"c-statistic {result.c_statistic}; Brier score {result.brier}"),
        ("23a", "Clinical utility", f"net benefit at thresholds {span}: figure 2 and table 2"),
        ("23b", "Heterogeneity between groups", _heterogeneity(result)),
    ]


def _heterogeneity(result: Clinical) -> str:
    if result.sites is None:
        return "not asked for; give a column of sites or groups"
    spread = result.sites.heterogeneity
    if not spread:
        return "fewer than two groups could be compared"
    names = {"oe": "O/E", "intercept": "intercept", "slope": "slope", "c_statistic": "c-statistic"}
    parts = [f"{names[k]} in a new group {h.low:.2f} to {h.high:.2f} (I2 {h.i2:.0%})" for k, h in spread.items()]
    return "; ".join(parts)


def methods(result: Clinical, decisions: DecisionCurve, clustered: bool) -> Sequence[str]:
    """The methods paragraph, sentence by sentence."""
    counted = (
        "Rows of one patient are correlated; all intervals are built from the sum of influence functions over patients "
        "(cluster-robust) with Student's distribution and Satterthwaite's degrees of freedom."
        if clustered
        else "All intervals are built from influence functions (robust standard errors) with Student's distribution and "
        "Satterthwaite's degrees of freedom."
    )
    saturated = (
        f"{result.left_out:,} rows with a risk of exactly 0 or 1 have no log odds and were left out of intercept and slope. "
        if result.left_out
        else ""
    )
    return (
        "Calibration in the large was assessed by the ratio of observed to expected events (interval on the logarithmic scale) and "
        "by the intercept of a logistic recalibration with slope 1; weak calibration by its slope [1]. " + saturated,
        f"Moderate calibration was assessed by a logistic regression on a restricted cubic spline of the log odds "
        f"({result.curve.method.rpartition(', ')[2]}) with pointwise and simultaneous bands [2]; the integrated calibration index "
        "(ICI) and E50, E90 and Emax summarise its distance from the diagonal [3], with intervals by inversion of a test so that "
        "calibrated models are covered.",
        "Discrimination is the c-statistic (interval on the logit scale after DeLong [4], over patients after Obuchowski [5]); the "
        "Brier score and its scaled form summarise overall performance. ",
        "Clinical utility is the net benefit of treating at or above a threshold [6], with score intervals; net benefit after "
        "recalibration was estimated by five-fold cross-fitting. ",
        counted,
        f"Intervals are at {result.level:.0%}.",
    )


REFERENCES = (
    "Cox DR. Two further applications of a model for binary regression. Biometrika 1958;45:562-565.",
    "Harrell FE. Regression Modeling Strategies, 2nd ed. Springer 2015.",
    "Austin PC, Steyerberg EW. The Integrated Calibration Index (ICI) and related metrics. Stat Med 2019;38:4051-4065.",
    "DeLong ER, DeLong DM, Clarke-Pearson DL. Comparing the areas under correlated ROC curves. Biometrics 1988;44:837-845.",
    "Obuchowski NA. Nonparametric analysis of clustered ROC curve data. Biometrics 1997;53:567-578.",
    "Vickers AJ, Elkin EB. Decision curve analysis. Med Decis Making 2006;26:565-574.",
    "Collins GS et al. TRIPOD+AI statement. BMJ 2024;385:e078378.",
)
