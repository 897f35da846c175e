"""Sample size of a validation study: by formula (Riley et al. 2021) and by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.clinical.cohort import student_quantile
from truecal.clinical.summaries import summary
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.special import expit, logit
from truecal.table import Frame
from truecal.types import Float64s

_QUADRATURE = 200_001  # by choice: quadrature nodes of a population of risks
_MAX_ROWS = 10_000_000  # by choice: rows beyond which no validation is planned
_START_EVENTS = 20  # by choice: expected in the first simulated cohorts
_SIMULATED = ("oe", "intercept", "slope", "ici", "e50", "e90", "emax", "c_statistic", "brier", "scaled_brier", "error")


@dataclass(frozen=True, eq=False)
class SampleSize:
    """Rows and events needed for each number to reach its target width, and for all of them.

    Attributes
    ----------
    needed : Frame
        One row per number: its target width, rows and events needed, and the method.
    prevalence : float
        Share of events.

    See Also
    --------
    sample_size : By formula.
    sample_size_by_simulation : By simulated cohorts.
    """

    needed: Frame
    prevalence: float

    @property
    def rows(self) -> int:
        """Rows for all targets together: the most that one of them needs.

        >>> size = _tabulate([("oe", 0.2, 1001), ("slope", 0.3, 900)], 0.1, "formula")
        >>> size.rows, size.events
        (1001, 101)
        """
        return int(self.needed["rows"].max())

    @property
    def events(self) -> int:
        """Events expected among `rows`: rows times prevalence, rounded up.

        >>> _tabulate([("oe", 0.2, 1001)], 0.1, "formula").events
        101
        """
        return int(np.ceil(self.rows * self.prevalence))

    def frame(self) -> Frame:
        """Return one row per number: number, width, rows, events, method.

        >>> _tabulate([("oe", 0.2, 1001)], 0.1, "formula").frame()[0]
        {'number': 'oe', 'width': 0.2, 'rows': 1001, 'events': 101, 'method': 'formula'}
        """
        return self.needed

    def __str__(self) -> str:
        """Write rows and events for all targets, then the table `needed`."""
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
    sample_size_by_simulation : For numbers without a formula, and for miscalibrated models.

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
                f"there is no formula for {name!r}, only for {', '.join(formulas)}; use sample_size_by_simulation for it"
            )
        options.between(width, f"the width of {name}", 0, np.inf)
        needed += [(label, width, rows) for label, rows in _by_formula(name, p, float(width), points, level)]
    return _tabulate(needed, float(p.mean()), "formula")


def sample_size_by_simulation(
    risks: ArrayLike | None = None,
    *,
    prevalence: float | None = None,
    c_statistic: float | None = None,
    widths: Mapping[str, float],
    slope: float = 1.0,
    intercept: float = 0.0,
    cohorts: int = 20,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> SampleSize:
    """Compute the rows at which the mean width of intervals over simulated cohorts meets a target.

    Parameters
    ----------
    risks : array-like, default None
        Predicted risks of the same population (from a pilot or the development data); or
    prevalence : float, default None
        with `c_statistic`: share of events in a population of normally distributed log odds.
    c_statistic : float, default None
        c-statistic of that population.
    widths : dict of str to float
        Target widths, by name: any number of :func:`truecal.clinical.summary` (ICI has no formula), and "error", the
        root-mean-square calibration error of :func:`truecal.measure`.
    slope : float, default 1.0
        True slope: outcomes are drawn with logit P(y) = intercept + slope logit p.
    intercept : float, default 0.0
        True intercept.
    cohorts : int, default 20
        Cohorts simulated at each size.
    level : float, default 0.95
        Level of the intervals.
    rng : int or Generator, default 0
        Seed of the simulation.

    Returns
    -------
    size : SampleSize
        Rows and events for each number, and for all.

    Raises
    ------
    InputError
        A name is unknown, or a target needs more than 10 million rows.

    Notes
    -----
    Widths fall like a power of n near the target: sizes are doubled until they bracket it, and the answer is interpolated on a
    logarithmic scale, to within the noise of `cohorts` simulated cohorts.

    See Also
    --------
    sample_size : By formula, for O/E, intercept, slope, c-statistic and net benefit of a calibrated model.

    Examples
    --------
    >>> size = sample_size_by_simulation(prevalence=0.2, c_statistic=0.75, widths={"oe": 0.4}, cohorts=5)
    >>> 250 < size.rows < 550
    True
    """
    options.level(level)
    options.resamples(cohorts, "cohorts", 2)
    p = _population(risks, prevalence, c_statistic)
    generator = options.generator(rng)
    wrong = [name for name in widths if name not in _SIMULATED]
    if wrong or not widths:
        raise InputError(f"widths must be named by some of {', '.join(_SIMULATED)}, not {(wrong or ['nothing'])[0]!r}")
    for name, width in widths.items():
        options.between(width, f"the width of {name}", 0, np.inf)
    q = expit(intercept + slope * logit(p))
    if q.mean() * _MAX_ROWS < _START_EVENTS:
        raise InputError(
            f"a mean risk of {q.mean():g} gives fewer than {_START_EVENTS} events in {_MAX_ROWS:,} rows; check the risks"
        )
    sizes = [max(64, int(_START_EVENTS / q.mean()))]
    reached = [_mean_widths(list(widths), p, q, sizes[-1], cohorts, level, generator)]
    while wide := [name for name in widths if reached[-1][name] > widths[name]]:
        if sizes[-1] > _MAX_ROWS // 2:
            raise InputError(
                f"{wide[0]} needs more than {_MAX_ROWS:,} rows for a width of {widths[wide[0]]:g}; choose a larger width"
            )
        sizes.append(2 * sizes[-1])
        reached.append(_mean_widths(list(widths), p, q, sizes[-1], cohorts, level, generator))
    needed = [
        (name, width, _interpolate_size(sizes, [step[name] for step in reached], width))
        for name, width in widths.items()
    ]
    return _tabulate(needed, float(q.mean()), f"simulation, {cohorts} cohorts")


def _tabulate(needed: list[tuple[str, float, int]], prevalence: float, method: str) -> SampleSize:
    """Build the result from (number, target width, rows needed) of each target, one row each in `needed`, in this order.

    Events are rows times prevalence, rounded up.

    >>> _tabulate([("oe", 0.2, 1001)], 0.1, "formula").needed[0]
    {'number': 'oe', 'width': 0.2, 'rows': 1001, 'events': 101, 'method': 'formula'}
    """
    names, widths, rows = zip(*needed, strict=True)
    events = [int(np.ceil(n * prevalence)) for n in rows]
    columns = {"number": names, "width": [float(w) for w in widths], "rows": rows, "events": events}
    return SampleSize(Frame({**columns, "method": [method] * len(rows)}), prevalence)


def _mean_widths(
    names: list[str], p: Float64s, q: Float64s, rows: int, cohorts: int, level: float, rng: np.random.Generator
) -> dict[str, float]:
    """Simulate cohorts of `rows` rows, drawn with replacement from risks p (n,) with true risks q (n,); average widths by number.

    The width is high - low of the interval of each name: a number of the clinical summary, or "error" (measure).
    """
    total = dict.fromkeys(names, 0.0)
    for _ in range(cohorts):
        drawn = rng.integers(0, len(p), rows)
        preds = tc.Predictions.from_probs(p[drawn], rng.random(rows) < q[drawn])
        numbers = None if names == ["error"] else summary(preds, level=level, rng=rng)
        for name in names:
            interval: Any = (
                tc.measure(preds, level=level, rng=0).interval if name == "error" else getattr(numbers, name)
            )
            total[name] += float(interval.high) - float(interval.low)
    return {name: value / cohorts for name, value in total.items()}


def _interpolate_size(sizes: list[int], widths: list[float], target: float) -> int:
    """Return the smallest size whose width meets the target, on a power law between the two sizes around it, rounded up.

    `sizes` ascend and the last of `widths` meets the target. The first size that meets it is returned if it is the first of
    all, or not narrower than the one before.

    >>> _interpolate_size([100, 400], [0.4, 0.1], 0.2), _interpolate_size([100, 400], [0.4, 0.1], 0.5)
    (200, 100)
    """
    i = next(i for i, width in enumerate(widths) if width <= target)
    if i == 0 or not widths[i - 1] > widths[i]:
        return sizes[i]
    share = np.log(widths[i - 1] / target) / np.log(widths[i - 1] / widths[i])
    return int(np.ceil(sizes[i - 1] * (sizes[i] / sizes[i - 1]) ** min(share, 1.0)))


def _population(risks: ArrayLike | None, prevalence: float | None, c_statistic: float | None) -> Float64s:
    """Return risks (n,) of a population: those given, checked to lie in (0, 1), or those of a prevalence and c-statistic.

    The latter are 200,001 quantiles, ascending, of normal log odds whose mean and standard deviation give both numbers. Refuses
    both ways of giving a population at once, and neither.

    >>> _population([0.1, 0.3], None, None)
    array([0.1, 0.3])
    """
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
        """Compute risks (200,001,) of normal log odds with this standard deviation and the mean that gives the prevalence."""

        def excess(mean: float) -> float:
            """Compute the mean risk less the prevalence."""
            return float((0.5 * (1 + np.tanh((mean + spread * z) / 2))).mean() - prevalence)

        mean = brentq(excess, -60, 60, xtol=1e-8)
        return np.asarray(0.5 * (1 + np.tanh((mean + spread * z) / 2)))

    spread = brentq(lambda sd: _concordance(population(sd)) - c_statistic, 1e-3, 15, xtol=1e-6)
    p = population(float(spread))
    return np.asarray(np.clip(p, 1e-12, 1 - 1e-12))


def _concordance(p: Float64s) -> float:
    """Return the expected c-statistic of risks (n,), ascending, whose outcomes are drawn from them.

    >>> round(_concordance(np.array([0.25, 0.75])), 4)  # 0.25 x 0.75/2 + 0.75 x (0.75 + 0.25/2), over 1 x 1
    0.75
    """
    return float((p * (np.cumsum(1 - p) - (1 - p) / 2)).sum() / (p.sum() * (1 - p).sum()))


def _by_formula(name: str, p: Float64s, width: float, points: Float64s, level: float) -> list[tuple[str, int]]:
    """Compute the rows at which the interval of a number has a width (formulas of :func:`sample_size`) for risks p (n,).

    Returns one pair (name, rows), for net_benefit one ("net_benefit at t", rows) for each threshold of `points`.

    >>> _by_formula("oe", np.array([0.1, 0.1]), 0.2, np.array([]), 0.95)  # 9 / se^2, se = arcsinh(0.1) / 1.96
    [('oe', 3469)]
    """
    z, share = student_quantile(np.inf, level), float(p.mean())
    se = width / (2 * z)
    if name == "oe":
        se = float(np.arcsinh(width / 2)) / z  # exp(z se) - exp(-z se) = width
        return [(name, _round_up((1 - share) / (share * se**2)))]
    variance = p * (1 - p)
    if name == "intercept":
        return [(name, _round_up(1 / (variance.mean() * se**2)))]
    if name == "slope":
        z_risk = logit(p)
        i00, i01, i11 = (float((variance * z_risk**power).mean()) for power in (0, 1, 2))
        if not i00 * i11 - i01**2 > 1e-12 * i00 * i11:
            raise InputError("a slope needs risks that differ; these are all equal")
        return [(name, _round_up(i00 / (se**2 * (i00 * i11 - i01**2))))]
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
        answers.append((f"net_benefit at {t:g}", _round_up(variance / se**2)))
    return answers


def _newcombe(c: float, share: float, se: float) -> int:
    """Return the smallest n at which the standard error of a c-statistic is at most `se` (Newcombe 2006, method 4).

    se^2 q (1 - q) n^2 = c (1 - c) (1 + k (n/2 - 1)), k = (1 - c) / (2 - c) + c / (1 + c), solved for n; q, the prevalence, is
    `share`.

    >>> _newcombe(0.75, 0.1, 0.025)
    1049
    """
    k = (1 - c) / (2 - c) + c / (1 + c)
    square, linear, constant = se**2 * share * (1 - share), c * (1 - c) * k / 2, c * (1 - c) * (1 - k)
    return _round_up((linear + float(np.sqrt(linear**2 + 4 * square * constant))) / (2 * square))


def _round_up(n: float) -> int:
    """Round up to a whole number; a number less than 1e-9 above one is that whole number.

    >>> _round_up(2.1), _round_up(2.0 + 1e-12)
    (3, 2)
    """
    return int(np.ceil(n - 1e-9))
