"""The dossier of a clinical validation: a static page for print, with the items of TRIPOD+AI that concern calibration.

Item numbers and topics follow Collins et al. (2024), TRIPOD+AI statement, BMJ 385:e078378; the wording is ours.
Items not about calibration or its evaluation are left to the authors.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import truecal as tc
from truecal.clinical.decisions import DecisionCurve
from truecal.clinical.summaries import Clinical
from truecal.errors import InputError, extra
from truecal.lenses.lens import Lens
from truecal.pages.model import group_errors
from truecal.pages.records import Provenance
from truecal.pages.render import picture, render, write_page
from truecal.pages.sources import source_of
from truecal.plot.display import Display

_FORESTS = {"oe": "O/E ratio", "slope": "Calibration slope"}  # numbers that are drawn group by group
_MAX_FOREST_GROUPS = 40  # that can be read on one page
_THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # of the table of net benefit unless others are given


def write_dossier(
    preds: tc.Predictions,
    path: str | os.PathLike[str],
    *,
    lens: Lens | None = None,
    by: str | Sequence[str] | None = None,
    thresholds: Sequence[float] = _THRESHOLDS,
    tolerance: float = 0.02,
    level: float = 0.95,
    title: str = "Validation of a prediction model: calibration",
    source: str | None = None,
    command: str | None = None,
    rng: int = 0,
    rows: tc.inference.RowCounts | None = None,
) -> Path:
    """Write the dossier as one HTML file that prints to PDF, and return its path.

    Parameters
    ----------
    preds : Predictions
        The cohort, with clusters where patients have several rows.
    path : str or PathLike
        Where to write the page.
    lens : Lens, optional
        What is judged; default the positive class.
    by : str or sequence of str, optional
        A column of sites or groups.
    thresholds : sequence of float
        Of the table of net benefit.
    tolerance : float, default 0.02
        The largest acceptable calibration error, which the conclusion is phrased against.
    level : float, default 0.95
        Of every interval.
    title, source, command : str
        Heading, name of the data, and what produced the page.
    rng : int, default 0
        Seed of resamples.
    rows : RowCounts, optional
        How many rows were read, dropped and judged; default all of `preds`.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile, numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_dossier(tc.Predictions.from_probs(p, rng.random(400) < p), f"{folder}/dossier.html").read_text()
    >>> "Calibration slope" in page, "<script" in page
    (True, False)
    """

    def make() -> str:
        """Compute the dossier and return its HTML text."""
        columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
        judged = source_of(preds, lens=lens, by=columns, level=level, rng=rng)
        numbers = tc.clinical.summary(preds, by=by, **judged.options)
        curve, benefit = (tc.clinical.net_benefit(preds, t, level=level, lens=lens) for t in (None, thresholds))
        if not isinstance(curve, DecisionCurve) or not isinstance(benefit, DecisionCurve):
            raise InputError("a dossier is about one model; give its Predictions")
        groups = [] if numbers.sites is None else [tc.subgroups(preds, numbers.sites.by, **judged.options)]
        conclusion = tc.inference.conclude(
            judged.measure(),
            tolerance=tolerance,
            profile=judged.profile,
            groups=group_errors(groups),
            slope=tc.inference.Slope(numbers.slope.value, numbers.slope.low, numbers.slope.high),
            rows=rows,
        )
        provenance_options = {"lens": numbers.lens, "by": ", ".join(columns) or None, "level": level}
        provenance_options |= {"tolerance": tolerance, "rng": rng}
        page = {
            "title": title,
            "source": source,
            "result": numbers,
            "benefit": benefit,
            "conclusion": conclusion,
            "clustered": preds.clusters is not None,
            "rows": rows,
            "figures": _figures(numbers, curve),
            "provenance": Provenance({"data": judged.fingerprint()}, command, provenance_options),
        }
        return render("dossier.html", page=page)

    return write_page(path, make)


def _figures(result: Clinical, curve: DecisionCurve) -> dict[str, str]:
    """Return addresses of the figures of the dossier by their captions; forest plots for up to _MAX_FOREST_GROUPS sites.

    The figures are the flexible calibration curve over the distribution of the risks, the decision curve, and a forest plot of
    each number in _FORESTS.
    """
    flexible = tc.plot.FlexibleDisplay.from_curves({"spline": result.curve}, scores=result.cohort.scores, plot=False)
    decision = tc.plot.DecisionDisplay.from_curve(curve, plot=False)
    figures = {
        "Flexible calibration curve with pointwise (dark) and simultaneous (light) band; "
        "distribution of the risks beneath.": _draw(flexible, 4.6),
        "Decision curve: net benefit of the model, with its interval.": _draw(decision, 4.6),
    }
    if result.sites is not None and len(result.sites.names) <= _MAX_FOREST_GROUPS:
        height = min(1.0 + 0.3 * (len(result.sites.names) + 2), 12.6)  # figure and caption stay on one page
        for name, title in _FORESTS.items():
            display = tc.plot.ForestDisplay.from_sites(result.sites, name, plot=False)
            figures[f"{title} by {' x '.join(result.sites.by)}."] = _draw(display, height)
    return figures


def _draw(display: Display, height: float) -> str:
    """Draw a display 4.6 inches wide and `height` inches high, with letters of 9 points; return its picture as a data address."""
    with extra("matplotlib").rc_context({"font.size": 9}):
        figure = extra("matplotlib.figure").Figure(figsize=(4.6, height), layout="constrained")
        display.plot(figure.add_subplot())
        return picture(figure)
