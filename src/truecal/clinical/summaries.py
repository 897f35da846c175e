"""The clinical summary of a cohort and of its sites: O/E, intercept, slope, ICI, c-statistic, Brier score."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import truecal as tc
from truecal import digits, options
from truecal.clinical.cohort import (
    Cohort,
    Quantity,
    Scale,
    calibration_line,
    from_scale,
    quantity,
    refuse_one_class,
    skewness_corrected,
    student_quantile,
    to_scale,
)
from truecal.clinical.curves import FlexibleCurve, SplineCurve, fit_spline, score_grid, spline_band
from truecal.clinical.distances import curve_distances
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.selection import Selection, check_selection, group_rows
from truecal.table import Frame, Tabular
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# O/E ratio, Brier score and c-statistic of a cohort, each with an interval


def observed_expected(cohort: Cohort, level: float) -> Quantity:
    """Compute O/E = sum of w y / sum of w p, observed over expected events; below 1, risks are too high.

    The influence of a row is (y - p O/E) / mean(p); the interval is built for log O/E. Where every risk is 0 the ratio is
    infinite and its interval (0, inf).

    >>> print(observed_expected(Cohort.of(tc.Predictions.from_probs([0.2, 0.3] * 50, [0, 1] * 50)), 0.95).value)  # 50 / 25
    2.0
    """
    expected = cohort.mean(cohort.scores)
    if expected == 0:
        return Quantity(np.inf, 0.0, np.inf, level, None, "every risk is 0: no finite ratio")
    ratio = cohort.prevalence / expected
    spread = cohort.spread((cohort.outcomes - ratio * cohort.scores) / expected)
    return quantity(ratio, spread.se, spread.df, level=level, scale="log", method="log, influence function")


def brier_score(cohort: Cohort, level: float) -> Quantity:
    """Compute the mean of (p - y)^2, with an interval on the logit scale.

    A score of exactly 0 (every risk was 0 or 1, and right) has variance 0: its upper limit u solves (1 - u)^J = (1 - level) /
    2, the probability of J patients without an error; a score of 1 (all wrong) has the lower limit 1 - u.

    >>> perfect = brier_score(Cohort.of(tc.Predictions.from_probs([0.0, 1.0] * 50, [0, 1] * 50)), 0.95)
    >>> perfect.value, round(perfect.high, 4)  # 1 - 0.025^(1 / 100)
    (0.0, 0.0362)
    """
    squares = (cohort.scores - cohort.outcomes) ** 2
    value = cohort.mean(squares)
    if 0 < value < 1:
        spread = cohort.spread(squares - value)
        return quantity(value, spread.se, spread.df, level=level, scale="logit", method="logit, influence function")
    bound = 1 - ((1 - level) / 2) ** (1 / cohort.patients)
    low, high = (0.0, bound) if value == 0 else (1 - bound, 1.0)
    return Quantity(value, low, high, level, None, "binomial bound")


def scaled_brier(cohort: Cohort, level: float) -> Quantity:
    """Compute 1 - Brier / (prevalence (1 - prevalence)): 1 is perfect, 0 no better than the prevalence for everyone.

    It depends on a few high risks, so its interval is corrected for the skewness of the contributions (Hall 1992). A value of 1
    has the lower limit that the upper limit of :func:`brier_score` gives.

    >>> cohort = Cohort.of(tc.Predictions.from_probs([0.25, 0.75] * 50, [0, 1] * 50))
    >>> round(scaled_brier(cohort, 0.95).value, 6)  # 1 - (1/16) / (1/4)
    0.75
    """
    squares = (cohort.scores - cohort.outcomes) ** 2
    brier, share = cohort.mean(squares), cohort.prevalence
    reference = share * (1 - share)  # Brier score of the prevalence for everyone
    ratio = brier / reference
    if ratio == 0:
        bound = brier_score(cohort, level)
        return Quantity(1.0, 1 - bound.high / reference, 1.0, level, None, "binomial bound")
    influence = ratio * (cohort.outcomes - share) ** 2 / reference - squares / reference
    spread = cohort.spread(influence)
    return skewness_corrected(
        1 - ratio, spread.se, spread.conditional_df, spread.skewness, level=level, method="influence function, skewness"
    )


def c_statistic(cohort: Cohort, level: float) -> Quantity:
    """Compute the probability that an event has a higher risk than a non-event, ties counting one half (area under the ROC
    curve).

    The influence of an event is the share of non-events below it, that of a non-event the share of events above it, centred and
    divided by the share of its group (DeLong, DeLong and Clarke-Pearson 1988; summed over clusters: Obuchowski 1997). The
    interval is built on the logit scale. Where the risks separate all events from all non-events the variance is 0: the lower
    limit is the binomial bound for the smaller of the two groups.

    >>> c_statistic(Cohort.of(tc.Predictions.from_probs([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])), 0.95).value  # 3.5 of 4 pairs
    0.875
    """
    share = cohort.prevalence
    placement = _placements(cohort)
    event = cohort.outcomes == 1
    value = float(cohort.weights[event] @ placement[event] / cohort.weights[event].sum())
    if 0 < value < 1:
        groups = [max(cohort.take(rows).patients, 2) for rows in (event, ~event)]
        ones, zeros = (np.sqrt(m / (m - 1)) for m in groups)
        influence = (placement - value) * np.where(event, ones / share, zeros / (1 - share))
        spread = cohort.spread(influence, 0)
        return quantity(value, spread.se, spread.df, level=level, scale="logit", method="logit, DeLong")
    min_patients = min(cohort.take(event).patients, cohort.take(~event).patients)
    bound = 1 - ((1 - level) / 2) ** (1 / min_patients)
    low, high = (0.0, bound) if value == 0 else (1 - bound, 1.0)
    return Quantity(value, low, high, level, None, "binomial bound")


def _placements(cohort: Cohort) -> Float64s:
    """Return (n,): for an event the weighted share of non-events below it, for a non-event that of events above; ties one half.

    >>> _placements(Cohort.of(tc.Predictions.from_probs([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])))
    array([1.  , 0.75, 0.75, 1.  ])
    """
    scores, position = np.unique(cohort.scores, return_inverse=True)
    event = cohort.outcomes == 1
    ones = np.bincount(position[event], cohort.weights[event], len(scores))
    zeros = np.bincount(position[~event], cohort.weights[~event], len(scores))
    below = (np.cumsum(zeros) - zeros / 2) / zeros.sum()
    above = 1 - (np.cumsum(ones) - ones / 2) / ones.sum()
    return np.where(event, below[position], above[position])


# ----------------------------------------------------------------------------------------------------
# Results: the numbers of one cohort, and of its sites

# Attribute, title, the value of a calibrated model (None where there is none), and how to read it.
QUANTITIES = (
    ("oe", "O/E ratio", 1.0, "above 1: risks too low overall; below 1: too high"),
    ("intercept", "calibration intercept", 0.0, "above 0: risks too low overall; below 0: too high"),
    ("slope", "calibration slope", 1.0, "below 1: risks too extreme (high ones too high, low ones too low)"),
    ("ici", "ICI", 0.0, "mean distance between curve and diagonal"),
    ("e50", "E50", 0.0, "median distance"),
    ("e90", "E90", 0.0, "90th percentile of the distance"),
    ("emax", "Emax", 0.0, "largest distance"),
    ("c_statistic", "c-statistic", None, "probability that an event has a higher risk than a non-event"),
    ("brier", "Brier score", None, "mean squared error of the risks"),
    ("scaled_brier", "scaled Brier score", None, "1: perfect; 0: no better than the prevalence for everyone"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Clinical(Tabular):
    """A clinical validation: every number is a :class:`Quantity` with `.value`, `.low` and `.high`.

    Attributes
    ----------
    oe : Quantity
        Observed over expected events.
    intercept : Quantity
        Of the logistic recalibration with slope 1.
    slope : Quantity
        Of the logistic recalibration.
    ici : Quantity
        Mean distance between spline curve and diagonal.
    e50 : Quantity
        Median distance.
    e90 : Quantity
        90th percentile of the distance.
    emax : Quantity
        Largest distance.
    c_statistic : Quantity
        Probability that an event has a higher risk than a non-event.
    brier : Quantity
        Mean squared error of the risks.
    scaled_brier : Quantity
        1 less the Brier score divided by that of the prevalence.
    rows : int
        Rows of positive weight.
    events : int
        Rows with the outcome.
    patients : int
        Clusters, or rows where there are none.
    prevalence : float
        Weighted share of events.
    left_out : int
        Rows without a log odds (scores of exactly 0 or 1), which intercept and slope leave out.
    impossible : int
        Those among them whose outcome contradicts the score.
    level : float
        Level of the intervals.
    lens : str
        What was judged, in words.
    warnings : tuple of str
        What to know before quoting the numbers.
    sites : Sites or None
        The same per value of a column, with heterogeneity.
    cohort : Cohort
        Risks, outcomes, weights and patients.
    fit : SplineCurve
        The spline behind `curve`.

    See Also
    --------
    summary : Computes it.
    """

    oe: Quantity
    intercept: Quantity
    slope: Quantity
    ici: Quantity
    e50: Quantity
    e90: Quantity
    emax: Quantity
    c_statistic: Quantity
    brier: Quantity
    scaled_brier: Quantity
    rows: int
    events: int
    patients: int
    prevalence: float
    left_out: int
    impossible: int
    level: float
    lens: str
    warnings: tuple[str, ...]
    sites: Sites | None = None
    cohort: Cohort = field(repr=False, kw_only=True)
    fit: SplineCurve = field(repr=False, kw_only=True)

    @cached_property
    def curve(self) -> FlexibleCurve:
        """The restricted cubic spline behind ICI, with bands at `level`, at 101 scores from the 1st to the 99th percentile."""
        return spline_band(self.fit, score_grid(self.cohort), self.level, np.random.default_rng(0))

    def frame(self) -> Frame:
        """Return one row per number: name, title, value, low, high, calibrated (value of a calibrated model), reading, method."""
        numbers: list[Quantity] = [getattr(self, name) for name, *_ in QUANTITIES]
        names, titles, ideals, readings = zip(*QUANTITIES, strict=True)
        return Frame(
            {
                "name": names,
                "title": titles,
                "value": [number.value for number in numbers],
                "low": [number.low for number in numbers],
                "high": [number.high for number in numbers],
                "calibrated": ideals,
                "reading": readings,
                "method": [number.method for number in numbers],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: counts and settings by name, every number as {"value", "low", "high"}, warnings, sites.

        Infinite numbers are None; "sites" is left out where there are none.
        """

        def plain(x: float) -> float | None:
            """Replace an infinite number by None."""
            return float(x) if np.isfinite(x) else None

        counts = ("level", "lens", "prevalence", "rows", "events", "patients", "left_out", "impossible")
        content: dict[str, Any] = {name: getattr(self, name) for name in counts}
        for name, *_ in QUANTITIES:
            number: Quantity = getattr(self, name)
            content[name] = {"value": plain(number.value), "low": plain(number.low), "high": plain(number.high)}
        content["warnings"] = list(self.warnings)
        if self.sites is not None:
            content["sites"] = self.sites.to_dict()
        return content

    def __str__(self) -> str:
        """Write rows, events and level, then a line per number with its interval and reading, then warnings and sites."""
        head = (
            f"{self.lens}: {self.rows:,} rows, {self.events:,} events ({self.prevalence:.1%})"
            + (f", {self.patients:,} patients" if self.cohort.units is not None else "")
            + f"; intervals at {self.level:.0%}"
        )
        lines = []
        for name, title, _, meaning in QUANTITIES:
            number = getattr(self, name)
            lines.append(f"{title:<22}{number!s:<26}{_finding(name, number) or meaning}")
        notes = [f"warning: {note}" for note in self.warnings]
        sites = [] if self.sites is None else ["", str(self.sites)]
        return "\n".join([head, *lines, *notes, *sites])


def _finding(name: str, number: Quantity) -> str:
    """Describe an O/E ratio, intercept or slope, such as "12% more events than predicted: risks are too low"; "" for others.

    If the interval contains the calibrated value, the text says so.

    >>> _finding("oe", Quantity(1.12, 1.05, 1.2, 0.95, None, "")), _finding("slope", Quantity(0.8, 0.5, 1.1, 0.95, None, ""))
    ('12% more events than predicted: risks are too low', '1, a calibrated model, is not excluded')
    """
    if name not in ("oe", "intercept", "slope"):
        return ""
    calibrated = 0 if name == "intercept" else 1
    if not (number.low > calibrated or number.high < calibrated):
        return f"{calibrated}, a calibrated model, is not excluded"
    above = number.value > calibrated
    if name == "slope":
        return f"risks are too {'moderate' if above else 'extreme'}"
    events = (
        f"{abs(number.value - 1):.0%} {'more' if above else 'fewer'} events than predicted: " if name == "oe" else ""
    )
    return f"{events}risks are too {'low' if above else 'high'}{'' if events else ' overall'}"


@dataclass(frozen=True)
class Heterogeneity:
    """Between-site variation of a number, by random-effects meta-analysis.

    Attributes
    ----------
    pooled : Quantity
        The mean over sites, with a confidence interval.
    low : float
        Lower limit of the prediction interval, which contains the number of a new site with probability `pooled.level`.
    high : float
        Upper limit of the prediction interval.
    tau : float
        Standard deviation between sites, on the scale of the pooling (log, logit or plain).
    i2 : float
        Share of the variation that is between sites (I squared).
    p_value : float
        Of Cochran's Q test of no differences.
    """

    pooled: Quantity
    low: float
    high: float
    tau: float
    i2: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Sites:
    """Clinical summaries of sites, in the order of their names, and the heterogeneity between them.

    Attributes
    ----------
    by : tuple of str
        Columns whose values are the sites.
    names : tuple of str
        Name of each site.
    results : tuple of Clinical
        Summary of each site.
    heterogeneity : dict of str to Heterogeneity
        Of O/E, intercept, slope and c-statistic; empty where fewer than two sites have an estimate.
    left_out : dict of str to int
        Rows of the sites that have no summary, because all their outcomes are equal.

    See Also
    --------
    summary : Computes it where `by` is given.
    """

    by: tuple[str, ...]
    names: tuple[str, ...]
    results: tuple[Clinical, ...]
    heterogeneity: dict[str, Heterogeneity]
    left_out: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Clinical:
        """Return the summary of the site of this name; InputError, which lists the names, for another."""
        if name not in self.names:
            raise InputError(f"there is no {' x '.join(self.by)} {name!r}; there are {', '.join(self.names)}")
        return self.results[self.names.index(name)]

    def frame(self) -> Frame:
        """Return one row per site: site, rows, events, patients, and every number x with its limits x_low and x_high.

        Numbers are those in QUANTITIES, in their order.
        """
        records = []
        for name, site in zip(self.names, self.results, strict=True):
            record: dict[str, Any] = {
                "site": name,
                "rows": site.rows,
                "events": site.events,
                "patients": site.patients,
            }
            for short, *_ in QUANTITIES:
                number: Quantity = getattr(site, short)
                record |= {short: number.value, f"{short}_low": number.low, f"{short}_high": number.high}
            records.append(record)
        return Frame.from_records(records)

    def curves(self) -> Frame:
        """Return the flexible curves of all sites as one table: site, score, outcome, low, high, lowest, highest."""
        frames = [(name, site.curve.frame()) for name, site in zip(self.names, self.results, strict=True)]
        return Frame.from_records([{"site": name, **row} for name, frame in frames for row in frame])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: "by", "each" (the summary by site) and "heterogeneity" by number.

        The latter hold pooled, low, high, prediction_low, prediction_high, tau, i2 and p_value.
        """
        spread = {
            name: {
                "pooled": h.pooled.value,
                "low": h.pooled.low,
                "high": h.pooled.high,
                "prediction_low": h.low,
                "prediction_high": h.high,
                "tau": h.tau,
                "i2": h.i2,
                "p_value": h.p_value,
            }
            for name, h in self.heterogeneity.items()
        }
        sites = {name: site.to_dict() for name, site in zip(self.names, self.results, strict=True)}
        return {"by": list(self.by), "each": sites, "heterogeneity": spread}

    def __str__(self) -> str:
        """Write a line per site with events, rows and four numbers (O/E, slope, ICI, c-statistic), then a line per pooled
        number.
        """
        columns = ("oe", "slope", "ici", "c_statistic")
        titles = {name: title for name, title, *_ in QUANTITIES}
        wide = max(20, *(len(name) + 1 for name in self.names))
        head = f"{' x '.join(self.by):<{wide}}{'events/rows':>14}  " + "".join(f"{titles[s]:<24}" for s in columns)
        lines = [head.rstrip()]
        for name, site in zip(self.names, self.results, strict=True):
            numbers = "".join(f"{getattr(site, s)!s:<24}" for s in columns)
            lines.append(f"{name:<{wide}}{f'{site.events}/{site.rows}':>14}  {numbers}".rstrip())
        for name, h in self.heterogeneity.items():
            lines.append(
                f"{titles[name]}: mean over sites {h.pooled}; prediction interval of a new site {h.low:.3f} to {h.high:.3f}; "
                f"I2 {h.i2:.0%}; test that sites do not differ: {digits.p_equation(h.p_value)}"
            )
        return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------
# All numbers of one cohort together

_FEW_EVENTS = (
    100  # by choice: events or non-events below which a validation is called small (Collins, Ogundimu and Altman 2016)
)
_FEW_PATIENTS = 20  # derived: clusters below which their variance has a relative standard error above 0.3


def summarise(cohort: Cohort, level: float, rng: np.random.Generator, sites: Sites | None = None) -> Clinical:
    """Compute all numbers of one cohort, with intervals at `level`; `rng` is for ICI, E50, E90 and Emax, `sites` is passed on."""
    line = calibration_line(cohort, level)
    fit = fit_spline(cohort)
    return Clinical(
        oe=observed_expected(cohort, level),
        intercept=line.intercept,
        slope=line.slope,
        **curve_distances(cohort, fit, level, rng),
        c_statistic=c_statistic(cohort, level),
        brier=brier_score(cohort, level),
        scaled_brier=scaled_brier(cohort, level),
        rows=cohort.rows,
        events=cohort.events,
        patients=cohort.patients,
        prevalence=cohort.prevalence,
        left_out=line.left_out,
        impossible=line.impossible,
        level=level,
        lens=cohort.lens,
        warnings=_warnings(cohort, line.left_out, line.impossible),
        sites=sites,
        cohort=cohort,
        fit=fit,
    )


def _warnings(cohort: Cohort, left_out: int, impossible: int) -> tuple[str, ...]:
    """Write warnings: under 100 events or non-events, under 20 clusters, rows with scores of exactly 0 or 1; () for none.

    >>> _warnings(Cohort.of(tc.Predictions.from_probs([0.2, 1.0] * 200, [0, 1] * 200)), 200, 0)
    ('200 rows have a score of exactly 0 or 1, which has no log odds; intercept and slope exclude them, all other numbers
    include them',)
    """
    notes = []
    fewest = min(cohort.events, cohort.rows - cohort.events)
    if fewest < _FEW_EVENTS:
        kind = "events" if cohort.events == fewest else "non-events"
        notes.append(f"only {fewest} {kind}; with fewer than {_FEW_EVENTS} the validation is imprecise")
    if cohort.units is not None and cohort.patients < _FEW_PATIENTS:
        notes.append(f"only {cohort.patients} patients (clusters); intervals from fewer than {_FEW_PATIENTS} are rough")
    if left_out:
        contradicted = f", {impossible:,} of them contradicted by the outcome" if impossible else ""
        notes.append(
            f"{left_out:,} rows have a score of exactly 0 or 1, which has no log odds{contradicted}; "
            "intercept and slope exclude them, all other numbers include them"
        )
    return tuple(notes)


# ----------------------------------------------------------------------------------------------------
# The clinical numbers site by site (or subgroup by subgroup), and how much sites differ beyond chance

_MAX_SITES = 200  # by choice: values of a column beyond which it is not a list of sites
# The numbers that are pooled, and the scale on which their estimates are nearly normal.
_POOLED: dict[str, Scale] = {"oe": "log", "intercept": "plain", "slope": "plain", "c_statistic": "logit"}


def summarise_sites(
    preds: tc.Predictions, cohort: Cohort, by: str | Sequence[str], level: float, rng: np.random.Generator
) -> Sites:
    """Summarise a cohort by the values of columns of `preds`, and pool the numbers over sites.

    A site that is one cluster has independent rows. Sites whose outcomes are all equal are left out, and named in `left_out`.
    Refuses more than 200 sites, and a cohort without any other site.
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise InputError("name the column to group by, such as by='site'")
    groups = group_rows(preds, columns)
    names = groups.names
    if len(names) > _MAX_SITES:
        raise InputError(f"{' x '.join(columns)} has {len(names)} values; group it into at most {_MAX_SITES} first")
    parts = {name: cohort.take(groups.member == i) for i, name in enumerate(names)}
    mixed = {name: part for name, part in parts.items() if 0 < part.prevalence < 1}
    if not mixed:
        refuse_one_class(parts[names[0]], f"{' x '.join(columns)} {names[0]}")
    results = []
    for part in mixed.values():
        if part.units is not None and part.patients == 1:  # the site is the cluster: within it, rows are independent
            part = replace(part, units=None)
        # the same draws for every site and for the whole cohort: no number depends on whether `by` is given
        results.append(summarise(part, level, deepcopy(rng)))
    spread = {
        name: heterogeneity
        for name, scale in _POOLED.items()
        if (heterogeneity := pool_sites([getattr(r, name) for r in results], scale, level)) is not None
    }
    left_out = {name: part.rows for name, part in parts.items() if name not in mixed}
    return Sites(columns, tuple(mixed), tuple(results), spread, left_out)


def pool_sites(numbers: Sequence[Quantity], scale: Scale, level: float) -> Heterogeneity | None:
    """Pool one number over sites by random-effects meta-analysis; None where fewer than two have a standard error above 0.

    tau^2 solves sum (x - mean)^2 / (se^2 + tau^2) = k - 1 (Paule and Mandel 1982); the mean's interval is that of Hartung and
    Knapp (2001) with k - 1 degrees of freedom, not narrower than that of a common effect; the prediction interval is mean -+
    t_(k-2) sqrt(tau^2 + se^2) (Higgins, Thompson and Spiegelhalter 2009; with two sites t_1). All are on `scale`.

    >>> site = Quantity(1.0, 0.5, 1.5, 0.95, 0.25, "")
    >>> pooled = pool_sites([site, site], "plain", 0.95)
    >>> pooled.pooled.value, pooled.tau, pooled.i2, pooled.p_value
    (1.0, 0.0, 0.0, 1.0)
    """
    from scipy.special import chdtrc

    estimates = [n for n in numbers if n.se is not None and n.se > 0 and np.isfinite(n.value)]
    if len(estimates) < 2:
        return None
    x, slope = np.array([to_scale(n.value, scale) for n in estimates]).T
    variance = np.array([float(n.se or 0.0) for n in estimates]) ** 2 * slope**2
    k = len(estimates)
    tau2 = _paule_mandel(x, variance)
    weight = 1 / (variance + tau2)
    mean = float(weight @ x / weight.sum())
    dispersion = float(weight @ (x - mean) ** 2 / (k - 1))
    se = float(np.sqrt(max(dispersion, 1.0) / weight.sum()))
    fixed = 1 / variance
    q = float(fixed @ (x - fixed @ x / fixed.sum()) ** 2)
    half_width = student_quantile(k - 1, level) * se
    prediction_width = student_quantile(max(k - 2, 1), level) * float(np.sqrt(tau2 + se**2))
    low, value, high, new_low, new_high = (
        from_scale(mean + shift, scale) for shift in (-half_width, 0.0, half_width, -prediction_width, prediction_width)
    )
    pool = Quantity(value, low, high, level, None, "random effects, Hartung-Knapp")
    i2 = max(0.0, (q - (k - 1)) / q) if q > 0 else 0.0
    return Heterogeneity(pool, new_low, new_high, float(np.sqrt(tau2)), i2, float(chdtrc(k - 1, q)))


def _paule_mandel(x: Float64s, variance: Float64s) -> float:
    """Return Paule and Mandel's tau^2, at which Q = sum (x - mean)^2 / (variance + tau^2) is k - 1; 0 where Q(0) is not above.

    x and `variance` are (k,); the mean is weighted by 1 / (variance + tau^2).

    >>> one = np.ones(2)
    >>> round(_paule_mandel(np.array([0.0, 2.0]), one), 6), _paule_mandel(np.array([0.0, 1.0]), one)
    (1.0, 0.0)
    """
    from scipy.optimize import brentq

    def excess(tau2: float) -> float:
        """Compute Q of the outer function at tau2 less its expectation k - 1."""
        weight = 1 / (variance + tau2)
        return float(weight @ (x - weight @ x / weight.sum()) ** 2) - (len(x) - 1)

    if excess(0.0) <= 0:
        return 0.0
    high = float((x.max() - x.min()) ** 2) + 1e-12
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-300, rtol=1e-14))


# ----------------------------------------------------------------------------------------------------
# The public function


@takes_arrays
def summary(
    preds: tc.Predictions,
    *,
    level: float = 0.95,
    lens: Lens | None = None,
    select: Selection | None = None,
    by: str | Sequence[str] | None = None,
    prevalence: float | None = None,
    rng: int | np.random.Generator = 0,
) -> Clinical:
    r"""Summarise calibration, discrimination and overall error of predicted risks, as TRIPOD+AI asks for, with intervals.

    Parameters
    ----------
    preds : Predictions
        One risk per row, with `clusters=` where patients have several rows and `weights=` where rows stand for different
        numbers of people; or ``y_true, y_prob``.
    level : float, default 0.95
        Level of the intervals.
    lens : Lens, default None
        What is judged; None is the positive class. `OneClass("malignant")` judges one diagnosis of several.
    select : Selection, default None
        Which rows; None is all.
    by : str or sequence of str, default None
        A column (site, sex), or several: the same numbers for each value, with heterogeneity between them. Values with equal
        outcomes are left out, with a warning.
    prevalence : float, default None
        Share of events in the population, where the sample was drawn by outcome (case-control).
    rng : int or Generator, default 0
        Seed of the draws behind the intervals of ICI, E50, E90 and Emax.

    Returns
    -------
    summary : Clinical
        Every number with `value`, `low` and `high`; prints as a table.

    Raises
    ------
    InputError
        There are no events or nothing but events (of all rows, or at every site), one cluster only, or the lens gives several risks
        per row.

    Notes
    -----
    With p the risk and y the outcome: O/E = sum y / sum p. Intercept and slope: logit P(y) = a + logit p, and
    logit P(y) = a' + b logit p, by maximum likelihood [1]_. ICI, E50, E90 and Emax: mean, median, 90th percentile and maximum of
    abs(curve - p) over the rows, the curve being a logistic regression on a restricted cubic spline of logit p [2]_.
    c-statistic: P(risk of an event > risk of a non-event), ties one half. Scaled Brier: 1 - Brier / (q (1 - q)), q the
    prevalence. Intervals are built from the contributions of patients (clusters), with their weights, not of rows.

    References
    ----------
    .. [1] Cox. Two further applications of a model for binary regression. Biometrika 45, 1958.
       https://doi.org/10.1093/biomet/45.3-4.562
    .. [2] Austin, Steyerberg. The integrated calibration index (ICI) and related metrics for quantifying the calibration of
       logistic regression models. Statistics in Medicine 38, 2019. https://doi.org/10.1002/sim.8281

    See Also
    --------
    flexible_curve : The calibration curve with bands.
    net_benefit : What decisions by the risks are worth.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(-1, 1, 2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))  # risks are too extreme
    >>> summary = tc.clinical.summary(tc.Predictions.from_probs(1 / (1 + np.exp(-z)), y))
    >>> round(summary.slope.value, 2), 0.7 in summary.slope, 1.0 in summary.slope
    (0.7, True, False)
    """
    level = options.level(level)
    check_selection(select)
    generator = options.generator(rng)
    chosen = preds if select is None else select(preds)
    cohort = Cohort.of(chosen, lens, prevalence=prevalence)
    sites = None if by is None else summarise_sites(chosen, cohort, by, level, generator)
    result = summarise(cohort, level, generator, sites)
    if sites is None:
        return result
    notes = [
        f"{' x '.join(sites.by)} {name}, {digits.count_of(rows, 'row')}, is left out of the sites: all its outcomes are equal"
        for name, rows in sites.left_out.items()
    ]
    return replace(result, warnings=(*result.warnings, *notes))
