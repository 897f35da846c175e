"""Sample size of a validation study, by the formulas of Riley et al. (2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.clinical.cohort import student
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.special import logit
from truecal.table import Frame
from truecal.types import Float64s

_QUADRATURE = 200_001  # quadrature nodes of a population of risks
_MAX_ROWS = 10_000_000  # rows beyond which no validation is planned


@dataclass(frozen=True, eq=False)
class SampleSize:
    """Rows and events needed for each number to reach its target width, and for all of them.

    `frame()` has one row per number: its target width, rows and events needed, and the method.
    """

    needed: Frame
    prevalence: float

    @property
    def rows(self) -> int:
        """Rows for all targets together."""
        return int(self.needed["rows"].max())

    @property
    def events(self) -> int:
        """Events expected among them."""
        return int(np.ceil(self.rows * self.prevalence))

    def frame(self) -> Frame:
        """Return a table with one row per number."""
        return self.needed

    def __str__(self) -> str:
        return f"{self.rows:,} rows with {self.events:,} events\n{self.needed}"


def sample_size(
    risks: ArrayLike | None = None,
    *,
    prevalence: float | None = None,
    c_statistic: float | None = None,
    widths: Mapping[str, float] | None = None,
    thresholds: ArrayLike = (),
    level: float = 0.95,
) -> SampleSize:
    r"""Compute the rows of a validation study whose intervals have given widths, by formula.

    Parameters
    ----------
    risks : array-like, default None
        Predicted risks of the same population (from a pilot or the development data); or
    prevalence : float, default None
        with `c_statistic`: share of events in a population of normally distributed log odds.
    c_statistic : float, default None
        c-statistic of that population.
    widths : dict of str to float, default None
        Target widths of the intervals, by name; None is {"oe": 0.2, "slope": 0.2, "c_statistic": 0.1}, and 0.2 for net_benefit
        where thresholds are given.
    thresholds : array-like, default ()
        Thresholds of the standardised net benefit.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    size : SampleSize
        Rows and events for each number, and for all.

    Raises
    ------
    InputError
        Neither risks nor prevalence and c-statistic are given, or there is no formula for a number.

    Notes
    -----
    Assumes a calibrated model (criteria 1 to 4 of the paper). With q the prevalence, z the normal quantile, and I the mean
    information matrix of (1, logit p) under p (1 - p)::

        O/E          n = (1 - q) / (q se^2), se such that exp(z se) - exp(-z se) is the width
        intercept    n = 1 / (mean of p (1 - p) se^2)
        slope        n = I_00 / (se^2 (I_00 I_11 - I_01^2))
        c-statistic  the n at which Newcombe's standard error (2006) gives the width
        net_benefit  standardised net benefit at each threshold: n = [s (1 - s) / q + w^2 f (1 - f) / (1 - q)
                     + w^2 f^2 / (q (1 - q))] / se^2, s and f sensitivity and false positive rate, w = (1 - q) / q t / (1 - t)

    References
    ----------
    Riley et al. Minimum sample size for external validation of a clinical prediction model with a binary outcome. Statistics in
    Medicine 40, 2021. https://doi.org/10.1002/sim.9025

    See Also
    --------
    truecal.lab.samples_needed : Rows at which a test detects an error of a given size.

    Examples
    --------
    >>> size = sample_size(prevalence=0.1, c_statistic=0.8)
    >>> size.rows, size.events
    (4287, 429)
    """
    options.level(level)
    p = _population(risks, prevalence, c_statistic)
    points = np.ravel(validation.as_floats(thresholds, "thresholds").astype(np.float64))
    targets = dict(widths) if widths is not None else {"oe": 0.2, "slope": 0.2, "c_statistic": 0.1}
    if len(points) and "net_benefit" not in targets:
        targets["net_benefit"] = 0.2
    formulas = ("oe", "intercept", "slope", "c_statistic", "net_benefit")
    needed = []
    for name, width in targets.items():
        if name not in formulas:
            raise InputError(
                f"there is no formula for {name!r}, only for {', '.join(formulas)}; simulate cohorts and measure the width"
            )
        options.between(width, f"the width of {name}", 0, np.inf)
        needed += [(label, width, rows) for label, rows in _by_formula(name, p, float(width), points, level)]
    records = [
        {
            "number": name,
            "width": float(width),
            "rows": rows,
            "events": int(np.ceil(rows * p.mean())),
            "method": "formula",
        }
        for name, width, rows in needed
    ]
    return SampleSize(Frame.from_records(records), float(p.mean()))


def _population(risks: ArrayLike | None, prevalence: float | None, c_statistic: float | None) -> Float64s:
    """Return the risks of the population: those passed, or normal log odds with a prevalence and c-statistic."""
    if risks is not None:
        if prevalence is not None or c_statistic is not None:
            raise InputError("give risks, or prevalence and c_statistic, not both")
        p = validation.as_floats(risks, "risks").astype(np.float64).ravel()
        wrong = np.flatnonzero(~((p > 0) & (p < 1)))
        if not len(p) or len(wrong):
            where = "there are none" if not len(p) else f"row {wrong[0]} is {p[wrong[0]]}"
            raise InputError(f"risks must lie strictly between 0 and 1: {where}")
        return p
    if prevalence is None or c_statistic is None:
        raise InputError("give risks= of a pilot, or both prevalence= and c_statistic=")
    options.between(prevalence, "prevalence", 0, 1)
    options.between(c_statistic, "c_statistic", 0.5, 1)
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = ndtri((np.arange(_QUADRATURE) + 0.5) / _QUADRATURE)

    def population(spread: float) -> Float64s:
        def off(mean: float) -> float:
            return float((0.5 * (1 + np.tanh((mean + spread * z) / 2))).mean() - prevalence)

        mean = brentq(off, -60, 60, xtol=1e-8)
        return np.asarray(0.5 * (1 + np.tanh((mean + spread * z) / 2)))

    def surplus(spread: float) -> float:
        return _concordance(population(spread)) - c_statistic

    p = population(float(brentq(surplus, 1e-3, 15, xtol=1e-6)))
    return np.asarray(np.clip(p, 1e-12, 1 - 1e-12))


def _concordance(p: Float64s) -> float:
    """Return the c-statistic of calibrated risks in ascending order."""
    return float((p * (np.cumsum(1 - p) - (1 - p) / 2)).sum() / (p.sum() * (1 - p).sum()))


def _by_formula(name: str, p: Float64s, width: float, points: Float64s, level: float) -> list[tuple[str, int]]:
    """Compute the rows at which the interval of a quantity has a width, from its asymptotic variance, by (name, rows)."""
    z, share = student(np.inf, level), float(p.mean())
    se = width / (2 * z)
    if name == "oe":
        se = float(np.arcsinh(width / 2)) / z  # exp(z se) - exp(-z se) = width
        return [(name, _whole((1 - share) / (share * se**2)))]
    spread = p * (1 - p)
    if name == "intercept":
        return [(name, _whole(1 / (spread.mean() * se**2)))]
    if name == "slope":
        score = logit(p)
        a, b, c = float(spread.mean()), float((spread * score).mean()), float((spread * score**2).mean())
        if not a * c - b**2 > 1e-12 * a * c:
            raise InputError("a slope needs risks that differ; these are all equal")
        return [(name, _whole(a / (se**2 * (a * c - b**2))))]
    if name == "c_statistic":
        return [(name, _newcombe(_concordance(np.sort(p)), share, se))]
    if not len(points):
        raise InputError("the width of net_benefit needs thresholds=[...]")
    answers = []
    for t in points:
        options.between(float(t), "a threshold", 0, 1)
        treated = p >= t
        s, f = float(p[treated].sum() / p.sum()), float((1 - p[treated]).sum() / (1 - p).sum())
        w = (1 - share) / share * t / (1 - t)
        variance = s * (1 - s) / share + w**2 * f * (1 - f) / (1 - share) + w**2 * f**2 / (share * (1 - share))
        answers.append((f"net_benefit at {t:g}", _whole(variance / se**2)))
    return answers


def _newcombe(c: float, share: float, se: float) -> int:
    """Return the smallest n at which the standard error of a c-statistic is at most `se` (Newcombe 2006, method 4)."""

    def error(n: float) -> float:
        half = n / 2 - 1
        top = c * (1 - c) * (1 + half * (1 - c) / (2 - c) + half * c / (1 + c))
        return float(np.sqrt(top / (n**2 * share * (1 - share))))

    low, high = 2, 4
    while error(high) > se:
        low, high = high, high * 2
        if high > _MAX_ROWS * 100:
            raise InputError("the c-statistic cannot be estimated that precisely; choose a larger width")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) > se else (low, middle)
    return high


def _whole(n: float) -> int:
    """Round up to a whole number, up to rounding errors."""
    return int(np.ceil(n - 1e-9))
