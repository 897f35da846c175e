"""The items of TRIPOD+AI that concern calibration and its evaluation, with what this validation answers to each.

Item numbers and topics follow Collins et al. (2024), TRIPOD+AI statement, BMJ 385:e078378; the wording is ours.
Items not about calibration or its evaluation are left to the authors.
"""

import os
from collections.abc import Sequence
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import truecal as tc
from truecal import options
from truecal.clinical.decisions import DecisionCurve
from truecal.clinical.summaries import Clinical
from truecal.errors import InputError, extra
from truecal.lenses.lens import Lens
from truecal.pages.html import element, escaped
from truecal.pages.page import write_page
from truecal.pages.records import Provenance, fingerprint

# ----------------------------------------------------------------------------------------------------
# The items of TRIPOD+AI that concern calibration and its evaluation, with what this validation answers to each

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


# ----------------------------------------------------------------------------------------------------
# Gather the numbers of a dossier and write its page: static, self-contained, laid out for A4

KINDS = ("tripod-ai",)
_TABLED = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # thresholds in the table of net benefit unless others are given
_FOREST = 40  # groups whose forest plot fits on a page; more are in the table only


def write_dossier(
    preds: tc.Predictions,
    path: str | os.PathLike[str],
    *,
    kind: str = "tripod-ai",
    lens: Lens | None = None,
    by: str | Sequence[str] | None = None,
    thresholds: Sequence[float] = _TABLED,
    level: float = 0.95,
    title: str = "Validation of a prediction model: calibration",
    source: str | None = None,
    command: str | None = None,
    rng: int = 0,
) -> Path:
    """Write the dossier as one HTML file that prints to PDF, and return its path.

    Parameters
    ----------
    preds : the cohort, with clusters where patients have several rows.
    kind : which checklist; "tripod-ai".
    by : a column of sites or groups. thresholds : of the table of net benefit.
    lens, level, title, source, command, rng : as in :func:`truecal.pages`.

    >>> import tempfile, numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_dossier(tc.Predictions.from_probs(p, rng.random(400) < p), f"{folder}/dossier.html").read_text()
    >>> "Calibration slope" in page, "<script" in page
    (True, False)
    """
    options.choice(kind, KINDS, "dossier")
    numbers = tc.clinical.summary(preds, level=level, lens=lens, by=by, rng=rng)
    curve = tc.clinical.net_benefit(preds, level=level, lens=lens, rng=rng)
    table = tc.clinical.net_benefit(preds, thresholds, level=level, lens=lens, rng=rng)
    if not isinstance(curve, DecisionCurve) or not isinstance(table, DecisionCurve):
        raise InputError("a dossier is about one model; give its Predictions")
    settings = {"lens": numbers.lens, "by": by, "level": level, "seed": rng}
    prints = {"data": fingerprint([preds.probs, preds.labels, preds.weights, preds.clusters])}
    origin = Provenance(prints, command, settings)
    return write_page(path, lambda: _page(title, _body(numbers, curve, table, preds, (title, source, origin))))


def _page(title: str, body: str) -> str:
    style = (files("truecal.pages") / "assets" / "dossier.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{style}</style>"
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _body(
    result: Clinical,
    curve: DecisionCurve,
    table: DecisionCurve,
    preds: tc.Predictions,
    about: tuple[str, str | None, Provenance],
) -> str:
    title, source, origin = about
    clustered = preds.clusters is not None
    parts = [
        element("h1", escaped(title)),
        element("p", escaped(_summary(result, source, clustered)), class_="lead"),
        *(element("p", escaped(f"Note: {note}."), class_="note") for note in result.warnings),
        element("h2", "Calibration, discrimination and overall performance"),
        _numbers(result),
        element(
            "div",
            _figure(
                "Figure 1. Flexible calibration curve with pointwise (dark) and simultaneous (light) band; "
                "distribution of the risks beneath.",
                tc.plot.FlexibleDisplay.from_curves({"spline": result.curve}, scores=result.cohort.scores, plot=False),
                (4.6, 4.6),
            ),
            _figure(
                "Figure 2. Decision curve: net benefit of the model, with its interval.",
                tc.plot.DecisionDisplay.from_curve(curve, plot=False),
                (4.6, 4.6),
            ),
            class_="pair",
        ),
        element("h2", "Net benefit"),
        _benefit(table),
        *_sites(result),
        element("h2", "TRIPOD+AI items on calibration"),
        _table("Table 4. Items and answers", ("Item", "Topic", "This validation"), checklist(result, table, clustered)),
        element("h2", "Methods"),
        element("p", escaped(" ".join(s.strip() for s in methods(result, table, clustered)))),
        element("ol", *(element("li", escaped(text)) for text in REFERENCES), class_="references"),
        element("h2", "Reproducibility"),
        _table("Table 5. Origin of the numbers", ("What", "Value"), _origin(source, origin)),
    ]
    return element("main", *parts)


def _summary(result: Clinical, source: str | None, clustered: bool) -> str:
    people = f"{result.patients:,} patients, " if clustered else ""
    origin = f" of {source}" if source else ""
    return (
        f"{result.rows:,} rows{origin}, {people}{result.events:,} events ({result.prevalence:.1%}); {result.lens}. "
        f"O/E ratio {result.oe}, calibration slope {result.slope}, ICI {result.ici}, c-statistic {result.c_statistic} "
        f"(intervals at {result.level:.0%})."
    )


def _numbers(result: Clinical) -> str:
    rows = [
        (
            row["title"],
            f"{row['value']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            _shown(row["calibrated"]),
            row["reading"],
        )
        for row in result.frame()
    ]
    head = ("Number", "Value", f"{result.level:.0%} interval", "Calibrated", "Reading")
    return _table("Table 1. Performance", head, rows)


def _shown(value: Any) -> str:
    return "" if value is None or value != value else f"{value:g}"


def _benefit(table: DecisionCurve) -> str:
    rows = [
        (
            f"{row['threshold']:g}",
            f"{row['net_benefit']:.4f} [{row['low']:.4f}, {row['high']:.4f}]",
            f"{row['treat_all']:.4f}",
            f"{row['treated']:.1%}",
            f"{row['loss']:.4f} [{row['loss_low']:.4f}, {row['loss_high']:.4f}]",
        )
        for row in table.frame()
    ]
    head = ("Threshold", "Net benefit", "Treat everyone", "Treated", "Lost to miscalibration")
    return _table("Table 2. Net benefit per person (treating no one: 0)", head, rows)


def _sites(result: Clinical) -> list[str]:
    if result.sites is None:
        return []
    sites = result.sites
    rows = [
        (name, f"{r.events:,}/{r.rows:,}", f"{r.patients:,}", str(r.oe), str(r.slope), str(r.ici), str(r.c_statistic))
        for name, r in zip(sites.names, sites.results, strict=True)
    ]
    head = (" x ".join(sites.by), "Events/rows", "Patients", "O/E", "Slope", "ICI", "c-statistic")
    height = min(1.0 + 0.3 * (len(sites.names) + 2), 12.6)  # figure and caption stay on one page
    by = " x ".join(sites.by)
    forests = [
        _figure(
            f"Figure {i}. {text} by {by}.", tc.plot.ForestDisplay.from_sites(sites, name, plot=False), (4.6, height)
        )
        for i, name, text in ((3, "oe", "O/E ratio"), (4, "slope", "Calibration slope"))
        if len(sites.names) <= _FOREST
    ]
    return [
        element("h2", escaped(f"By {' x '.join(sites.by)}")),
        _table("Table 3. Groups", head, rows),
        element("div", *forests, class_="pair"),
    ]


def _origin(source: str | None, origin: Provenance) -> list[tuple[str, str]]:
    lines = [("Data", source or "in memory"), *((f"SHA-256 of {k}", v) for k, v in origin.fingerprints.items())]
    return [*lines, *origin.lines("write_dossier in Python"), ("Made", origin.made)]


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = element("thead", element("tr", *(element("th", escaped(name), scope="col") for name in head)))
    lines = [
        element("tr", element("th", escaped(first), scope="row"), *(_cell(cell) for cell in rest))
        for first, *rest in rows
    ]
    return element("table", element("caption", escaped(caption)), top, element("tbody", *lines))


def _cell(text: str) -> str:
    """A cell; a number may stand above its interval, and neither is broken."""
    number = len(text) <= 30 and text[:1] in "-0123456789"
    return element("td", escaped(text.replace(", ", ",\xa0").replace(" to ", "\xa0to\xa0") if number else text))


def _figure(caption: str, display: Any, size: tuple[float, float]) -> str:
    """A display as an inline SVG image."""
    with extra("matplotlib").rc_context({"svg.hashsalt": "truecal", "font.size": 9}):
        canvas = extra("matplotlib.figure").Figure(figsize=size, layout="constrained")
        display.plot(canvas.add_subplot())
        text = StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawing = text.getvalue()
    return element("figure", drawing[drawing.index("<svg") :], element("figcaption", escaped(caption)))
