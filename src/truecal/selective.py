"""Selective prediction: answer where the model is confident, abstain elsewhere, and compute the cost of both.

Minderer et al. 2021, section 4.4. A row is answered if its confidence (the largest probability) is high enough; the risk is the
share of wrong answers among the rows answered, the coverage the share of rows answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.estimate import Interval
from truecal.lenses.lens import Lens, check_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.profile.binning import Cut
from truecal.resampling import cells
from truecal.resampling.draws import CellBatch
from truecal.resampling.units import Units, UnitSums
from truecal.special import positive
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

__all__ = [
    "AbstentionCost",
    "Area",
    "BestThreshold",
    "CostMap",
    "RiskCoverage",
    "abstention_cost",
    "aurc",
    "best_threshold",
    "cost_map",
    "risk_coverage",
]

# ----------------------------------------------------------------------------------------------------
# Groups of equal confidence, the most confident first, with the rows and the errors in each


@dataclass(frozen=True, eq=False)
class ConfidenceGroups:
    """`confidence` of every group, falling, shape (groups,); number of rows and of errors, shape (batch, groups)."""

    confidence: Float64s
    count: Float64s
    wrong: Float64s

    @classmethod
    def of(cls, preds: tc.Predictions, lens: Lens | None = None) -> ConfidenceGroups:
        """Group the rows by confidence with one sort; counts are differences of prefix sums.

        >>> import truecal as tc
        >>> groups = ConfidenceGroups.of(tc.Predictions.from_probs([0.9, 0.1, 0.6, 0.7], [1, 1, 1, 0]))
        >>> groups.confidence, groups.count, groups.wrong
        (array([0.9, 0.7, 0.6]), array([[2., 1., 1.]]), array([[1., 1., 0.]]))
        """
        check_predictions(preds)
        profile: tc.profile.Profile = answer_lens(preds, lens)(preds)
        boundaries = cells.cell_starts(profile, profile.rows)[None]
        cut = Cut(boundaries, boundaries)
        weight, right = (np.diff(profile.sums(name, cut), axis=1)[:, ::-1] for name in ("w", "y"))
        scale = float(profile.size[0] / profile.total[0])
        scores = profile.scores[0, boundaries[0, :-1]].astype(np.float64)
        return cls(scores[::-1], weight * scale, np.clip(weight - right, 0.0, weight) * scale)

    @cached_property
    def answered(self) -> Float64s:
        """Rows answered when the first 0, 1, 2, ... groups are, shape (batch, groups + 1)."""
        return np.pad(np.cumsum(self.count, axis=1), ((0, 0), (1, 0)))

    @cached_property
    def errors(self) -> Float64s:
        """Errors among the rows answered when the first 0, 1, 2, ... groups are, shape (batch, groups + 1)."""
        return np.pad(np.cumsum(self.wrong, axis=1), ((0, 0), (1, 0)))

    @property
    def n(self) -> Float64s:
        """Number of rows, shape (batch,)."""
        return self.answered[:, -1]

    def loss(self, coverage: Float64s) -> Float64s:
        """Return the errors among the most confident shares `coverage` (q,) of rows, as a share of all rows: (batch, q).

        Within a group of equal confidences errors are interpolated.
        """
        datasets = zip(self.answered, self.errors, strict=True)
        return np.stack([np.interp(coverage * rows[-1], rows, errors) / rows[-1] for rows, errors in datasets])

    def area(self) -> Float64s:
        """Return the mean over k = 1..n of the risk of the k most confident rows, shape (batch,).

        In a group that starts after a rows with E errors, and has m rows with e errors, the k-th row brings the mean risk
        (E + (k - a) e/m) / k. Summed over the group: e + (E - a e/m) (H(a + m) - H(a)), with the harmonic numbers H.
        """
        a, before = self.answered[:, :-1], self.errors[:, :-1]
        rate = self.wrong / positive(self.count)
        return (self.wrong + (before - a * rate) * _harmonic(a, self.count)).sum(axis=1) / self.n

    def best_area(self) -> Float64s:
        """Return :meth:`area` of the ideal order, all right answers before all wrong ones, shape (batch,)."""
        wrong = self.errors[:, -1]
        right = self.n - wrong
        return (wrong - right * _harmonic(right, wrong)) / self.n


def answer_lens(preds: tc.Predictions, lens: Lens | None) -> Lens:
    """Return the lens that gives each row one answer and its confidence; by default the predicted class.

    Where rows are answers already (classes "wrong" and "correct"), their confidence is the probability itself, however small.
    """
    check_lens(lens)
    chosen: Lens = lens if lens is not None else tc.OneClass() if preds.of_answers else tc.TopLabel()
    if chosen.several or chosen.shares(preds) is not None:
        raise InputError("this lens gives several confidences per row; use tc.TopLabel() or tc.OneClass(name)")
    return chosen


def _harmonic(start: Float64s, length: Float64s) -> Float64s:
    """Sum 1/(start + 1) + ... + 1/(start + length); fractions of rows count in proportion (digamma)."""
    from scipy.special import psi

    return np.where(length == 1, 1 / (start + 1), psi(start + length + 1) - psi(start + 1))


# ----------------------------------------------------------------------------------------------------
# Bootstrap resamples of the groups

_CELLS = 256  # by choice: cells of confidences in a resample
_BATCH = 64  # by choice: resamples multiplied together


@dataclass(frozen=True, eq=False)
class ResampledGroups:
    """The groups of one model, and their resamples in cells.

    Resamples and their centre are smoothed by one right and one wrong row spread over the cells: without that the interval of a
    model without errors would have width 0.
    """

    groups: ConfidenceGroups
    centre: ConfidenceGroups
    resamples: ConfidenceGroups

    def deviations(self, statistic: Callable[[ConfidenceGroups], Float64s]) -> Float64s:
        """Return the statistic of the resamples, (resamples, ...), less that of their centre."""
        return statistic(self.resamples) - statistic(self.centre)


def resample(
    models: Sequence[tc.Predictions], lens: Lens | None, resamples: int, level: float, rng: int | np.random.Generator
) -> list[ResampledGroups]:
    """Resample one or several models on the same rows: one ResampledGroups per model, by the same draws of rows or clusters.

    Units are those of the first model; resamples are counted in up to 256 cells of neighbouring confidences of each.
    """
    options.level(level)
    options.resamples(resamples)
    groups = [ConfidenceGroups.of(preds, lens) for preds in models]
    generator = options.generator(rng)
    units = Units.of(answer_lens(models[0], lens).sample(models[0]), generator)
    counts = units.draws(resamples, generator)
    resampled = []
    for preds, exact in zip(models, groups, strict=True):
        sample = answer_lens(preds, lens).sample(preds).with_units(units.of_row)
        starts = cells.cell_starts(sample.profile, _CELLS)[None]
        sums = UnitSums.of(sample, units, Cut(starts, starts))
        confidence = sums.observed.score_sums[0] / positive(sums.observed.rows[0])
        batches = [sums.draw(counts[:, start : start + _BATCH]) for start in range(0, resamples, _BATCH)]
        centre = _groups_of_cells(confidence, sums.drawn_from)
        resampled.append(ResampledGroups(exact, centre, _groups_of_cells(confidence, *batches)))
    return resampled


def _groups_of_cells(confidence: Float64s, *batches: CellBatch) -> ConfidenceGroups:
    """Make groups of cells from batches of their rows and ones, (datasets, cells): all datasets joined, falling confidence.

    `confidence` (cells,) ascends, as the cells do.
    """
    rows, ones = (np.concatenate([getattr(batch, name) for batch in batches])[:, ::-1] for name in ("rows", "ones"))
    return ConfidenceGroups(confidence[::-1], rows, np.maximum(rows - ones, 0.0))


def bounds(value: Float64s, deviations: Float64s, level: float) -> tuple[Float64s, Float64s]:
    """Return limits of the shape of `value`: value plus quantiles of deviations (resamples, ...) at (1 -+ level) / 2.

    The limits are extended to the value.
    """
    low, high = np.quantile(deviations, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(value + low, value), np.maximum(value + high, value)


def interval(
    value: float, deviations: Float64s, level: float, *, lower_limit: float = 0.0, upper_limit: float = np.inf
) -> Interval:
    """Return the percentile interval of one number (:func:`bounds`) within [lower_limit, upper_limit], and containing the value."""
    low, high = bounds(np.array(value), deviations, level)
    method = f"percentile bootstrap of {len(deviations)} resamples"
    lower_limit, upper_limit = (
        min(lower_limit, value),
        max(upper_limit, value),
    )  # the ends may be rounded past the value
    return Interval(max(float(low), lower_limit), min(float(high), upper_limit), level, method)


def check_share(value: Any, name: str) -> float:
    """Return a number from 0 to 1 as float; raise InputError, with `name` in the message, for anything else."""
    if not options.is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


# ----------------------------------------------------------------------------------------------------
# The risk-coverage curve and the area under it

_GRID = np.arange(1, 101) / 100


@dataclass(frozen=True, repr=False)
class Area:
    """Area under the risk-coverage curve (AURC): the mean over k = 1..n of the risk among the k most confident rows.

    Attributes
    ----------
    value : float
        The area.
    interval : Interval
        Its interval.
    excess : float
        The area less that of the ideal order of the same right and wrong answers: 0 for confidences that put every right answer
        before every wrong one, whatever the accuracy.
    excess_interval : Interval
        Its interval.
    error : float
        Risk at full coverage.
    n : int
        Number of rows.

    See Also
    --------
    aurc : The function that returns it.
    """

    value: float
    interval: Interval
    excess: float
    excess_interval: Interval
    error: float
    n: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        size = digits.with_interval(self.value, float(self.interval.low), float(self.interval.high))
        return (
            f"area under the risk-coverage curve {size} at {self.interval.level:.0%}; a perfect ranking of these answers would "
            f"lower it by {self.excess:.4f}"
        )

    def __repr__(self) -> str:
        return f"Area: {self}"


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage(Tabular):
    """Risk against coverage, the most confident rows first.

    Attributes
    ----------
    threshold : ndarray of shape (groups,)
        The distinct confidences, falling.
    coverage : ndarray of shape (groups,)
        Share of rows with at least this confidence.
    risk : ndarray of shape (groups,)
        Share of wrong answers among them.
    area : Area
        The area under the curve, with its interval.
    n : int
        Number of rows.

    See Also
    --------
    risk_coverage : The function that returns it.
    """

    threshold: Float64s
    coverage: Float64s
    risk: Float64s
    area: Area
    n: int
    _groups: ConfidenceGroups
    _low: Float64s
    _high: Float64s

    def at(self, coverage: ArrayLike) -> Float64s:
        """Return the risk at any coverage above 0.

        Parameters
        ----------
        coverage : float or array-like
            Shares of rows answered, in (0, 1].

        Returns
        -------
        risk : ndarray of shape (q,)
            Within a group of equal confidences, the mean over which of them are answered.

        Examples
        --------
        >>> import truecal as tc
        >>> tc.selective.risk_coverage(tc.Predictions.from_probs([0.9, 0.1, 0.6, 0.7], [1, 1, 1, 0])).at([0.25, 0.75, 1])
        array([0.5       , 0.66666667, 0.5       ])
        """
        coverages = np.atleast_1d(validation.as_floats(coverage, "coverage").astype(np.float64))
        if coverages.ndim > 1:
            raise InputError(f"coverage must be one number or a list of them, not of shape {coverages.shape}")
        bad = ~((coverages > 0) & (coverages <= 1))
        if bad.any():
            raise InputError(f"coverage must lie above 0 and at most at 1, not {coverages[bad][0]:g}")
        return self._groups.loss(coverages)[0] / coverages

    def frame(self) -> Frame:
        """Return the curve at 1 %, 2 %, ..., 100 % of rows answered: answered, risk, low, high, threshold."""
        last = np.searchsorted(self.coverage, _GRID - 1e-12)
        threshold = self.threshold[np.minimum(last, len(self.threshold) - 1)]
        columns = {"answered": _GRID, "risk": self.at(_GRID), "low": self._low, "high": self._high}
        return Frame({**columns, "threshold": threshold})

    def __str__(self) -> str:
        shares = ", ".join(
            f"{risk:.2%} of {share:.0%}" for share, risk in zip((1, 0.9, 0.5), self.at((1, 0.9, 0.5)), strict=True)
        )
        cells = [
            {
                "answered": f"{row['answered']:.0%}",
                "from confidence": digits.percent(row["threshold"]),
                "wrong answers": f"{row['risk']:.1%}",
                f"{self.area.interval.level:.0%} interval": f"{row['low']:.1%} to {row['high']:.1%}",
            }
            for row in self.frame()
            if round(100 * row["answered"]) % 10 == 0
        ]
        title = f"wrong answers by share answered, the most confident first: {shares}; n = {self.n:,}"
        return "\n".join([title, Frame.from_records(cells).to_text(), str(self.area)])


@takes_arrays
def risk_coverage(
    preds: tc.Predictions,
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> RiskCoverage:
    """Compute the risk-coverage curve, with pointwise intervals.

    Parameters
    ----------
    preds : Predictions
        Probabilities, labels, weights and clusters; or ``y_true, y_prob``.
    lens : Lens, default None
        What is answered, with which confidence; None is the predicted class, or the answer itself where rows are answers
        (classes "wrong" and "correct", as :func:`truecal.read` makes of a column `correct`).
    level : float, default 0.95
        Level of the intervals.
    resamples : int, default 1000
        Number of bootstrap resamples of rows (or clusters).
    rng : int or Generator, default 0
        Seed of the resamples.

    Returns
    -------
    curve : RiskCoverage
        Threshold, coverage and risk for every distinct confidence, and the area under the curve.

    References
    ----------
    Geifman, Uziel, El-Yaniv. Bias-reduced uncertainty estimation for deep neural classifiers. ICLR 2019.
    https://doi.org/10.48550/arXiv.1805.08206

    See Also
    --------
    aurc : The area alone.
    best_threshold : The threshold of least cost.

    Examples
    --------
    >>> import truecal as tc
    >>> curve = tc.selective.risk_coverage(tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0]))
    >>> curve.threshold, curve.coverage, curve.risk
    (array([0.9, 0.8, 0.7, 0.6]), array([0.25, 0.5 , 0.75, 1.  ]), array([0. , 0.5 , 0.66666667, 0.5 ]))
    """
    (model,) = resample([preds], lens, resamples, level, rng)
    groups = model.groups
    answered, errors = groups.answered[0, 1:], groups.errors[0, 1:]
    n = round(float(groups.n[0]))
    area = float(groups.area()[0])
    excess = max(area - float(groups.best_area()[0]), 0.0)
    excess_deviations = model.deviations(lambda g: g.area() - g.best_area())
    summary = Area(
        area,
        interval(area, model.deviations(ConfidenceGroups.area), level, upper_limit=1.0),
        excess,
        interval(excess, excess_deviations, level, upper_limit=1.0),
        float(errors[-1] / answered[-1]),
        n,
    )
    risk = groups.loss(_GRID)[0] / _GRID
    low, high = bounds(risk, model.deviations(lambda g: g.loss(_GRID) / _GRID), level)
    band = (np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))
    return RiskCoverage(groups.confidence, answered / answered[-1], errors / answered, summary, n, groups, *band)


@takes_arrays
def aurc(
    preds: tc.Predictions,
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Area:
    """Compute the area under the risk-coverage curve, and its excess over the ideal order, with intervals.

    Parameters
    ----------
    preds : Predictions
        Probabilities, labels, weights and clusters; or ``y_true, y_prob``.
    lens : Lens, default None
        What is answered, with which confidence; None is the predicted class, or the answer itself where rows are answers
        (classes "wrong" and "correct", as :func:`truecal.read` makes of a column `correct`).
    level : float, default 0.95
        Level of the intervals.
    resamples : int, default 1000
        Number of bootstrap resamples of rows (or clusters).
    rng : int or Generator, default 0
        Seed of the resamples.

    Returns
    -------
    area : Area
        The area, its excess and their intervals.

    References
    ----------
    Geifman, Uziel, El-Yaniv. Bias-reduced uncertainty estimation for deep neural classifiers. ICLR 2019.
    https://doi.org/10.48550/arXiv.1805.08206

    See Also
    --------
    risk_coverage : The whole curve.

    Examples
    --------
    >>> import truecal as tc
    >>> area = tc.selective.aurc(tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0]))
    >>> round(area.value, 4), round(area.excess, 4)  # (0 + 1/2 + 2/3 + 2/4) / 4; best (0 + 0 + 1/3 + 2/4) / 4
    (0.4167, 0.2083)
    """
    return risk_coverage(preds, lens=lens, level=level, resamples=resamples, rng=rng).area


# ----------------------------------------------------------------------------------------------------
# The cost of abstaining, and the best threshold


@dataclass(frozen=True)
class AbstentionCost:
    """Cost per row of abstaining on a share of rows, the least confident ones.

    Attributes
    ----------
    value : float
        Cost per row, in units of the cost of an error.
    interval : Interval
        Its interval.
    rate : float
        Share of rows not answered.
    cost_ratio : float
        Cost of an abstention, in units of the cost of an error.
    risk : float or None
        Share of wrong answers among the rows answered; None if none is.
    threshold : float
        Confidence of the last row answered.
    n : int
        Number of rows.

    See Also
    --------
    abstention_cost : The function that returns it.
    """

    value: float
    interval: Interval
    rate: float
    cost_ratio: float
    risk: float | None
    threshold: float
    n: int

    def __str__(self) -> str:
        cost = digits.with_interval(self.value, float(self.interval.low), float(self.interval.high))
        risk = "none" if self.risk is None else f"{self.risk:.2%}"
        return f"cost {cost} at {self.interval.level:.0%} if {self.rate:.0%} are not answered; wrong {risk}, n={self.n}"

    def __repr__(self) -> str:
        return f"AbstentionCost: {self}"

    def __float__(self) -> float:
        return self.value


@takes_arrays
def abstention_cost(
    preds: tc.Predictions,
    *,
    rate: float,
    cost_ratio: float,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> AbstentionCost:
    """Compute the cost per row when the least confident share of rows is not answered.

    Parameters
    ----------
    preds : Predictions
        Probabilities, labels, weights and clusters; or ``y_true, y_prob``.
    rate : float
        Share of rows not answered, in [0, 1].
    cost_ratio : float
        Cost of an abstention, in units of the cost of an error, in [0, 1].
    lens : Lens, default None
        What is answered, with which confidence; None is the predicted class, or the answer itself where rows are answers
        (classes "wrong" and "correct", as :func:`truecal.read` makes of a column `correct`).
    level : float, default 0.95
        Level of the intervals.
    resamples : int, default 1000
        Number of bootstrap resamples of rows (or clusters).
    rng : int or Generator, default 0
        Seed of the resamples.

    Returns
    -------
    cost : AbstentionCost
        Errors per row plus cost_ratio times rate, with its interval.

    References
    ----------
    Minderer et al. Revisiting the calibration of modern neural networks. NeurIPS 2021.
    https://doi.org/10.48550/arXiv.2106.07998

    See Also
    --------
    best_threshold : The threshold of least cost.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0])
    >>> tc.selective.abstention_cost(preds, rate=0.5, cost_ratio=0.2).value  # one of four wrong, two of four not answered
    0.35
    """
    rate, cost_ratio = check_share(rate, "rate"), check_share(cost_ratio, "cost_ratio")
    (model,) = resample([preds], lens, resamples, level, rng)
    groups, coverage = model.groups, np.array([1 - rate])
    loss = float(groups.loss(coverage)[0, 0])
    value = loss + cost_ratio * rate
    deviations = model.deviations(lambda g: g.loss(coverage)[:, 0])
    last = int(np.searchsorted(groups.answered[0, 1:], coverage[0] * groups.n[0] * (1 - 1e-12)))
    return AbstentionCost(
        value,
        interval(value, deviations, level, lower_limit=cost_ratio * rate, upper_limit=cost_ratio * rate + 1 - rate),
        rate,
        cost_ratio,
        loss / (1 - rate) if rate < 1 else None,
        float(groups.confidence[last]) if rate < 1 else np.inf,
        round(float(groups.n[0])),
    )


@dataclass(frozen=True)
class BestThreshold:
    """The confidence from which answering is cheapest.

    Attributes
    ----------
    threshold : float
        Answer from this confidence on; infinite if never answering is cheapest. Of equal costs the one that answers more.
    threshold_interval : Interval
        Of the threshold on resampled rows; often wide, because costs are flat near their minimum.
    cost : float
        Cost per row on these rows, on which the threshold was chosen.
    optimism : float
        Bootstrap estimate of the bias of that choice: on new rows the cost is about cost + optimism.
    interval : Interval
        Of the cost of this threshold on new rows.
    rate : float
        Share of rows not answered.
    risk : float or None
        Share of wrong answers; None if no row is answered.
    cost_ratio : float
        Cost of an abstention, in units of the cost of an error.
    answer_all : float
        Cost per row of answering every row.
    answer_none : float
        Cost per row of answering none.
    calibrated_threshold : float
        1 - cost_ratio, the best threshold of a calibrated model (Chow 1970).
    calibrated_cost : float
        Its cost per row on these rows.
    n : int
        Number of rows.

    See Also
    --------
    best_threshold : The function that returns it.
    """

    threshold: float
    threshold_interval: Interval
    cost: float
    optimism: float
    interval: Interval
    rate: float
    risk: float | None
    cost_ratio: float
    answer_all: float
    answer_none: float
    calibrated_threshold: float
    calibrated_cost: float
    n: int

    def __str__(self) -> str:
        low, high = float(self.threshold_interval.low), float(self.threshold_interval.high)
        cost = digits.with_interval(self.cost, float(self.interval.low), float(self.interval.high))
        return (
            f"answer from a confidence of {self.threshold:.3f} [{low:.3f}, {high:.3f}] on ({self.rate:.0%} not answered): cost "
            f"{cost} on new rows at {self.interval.level:.0%}; answering all {self.answer_all:.4f}, none {self.answer_none:.4f}"
        )

    def __repr__(self) -> str:
        return f"BestThreshold: {self}"


@takes_arrays
def best_threshold(
    preds: tc.Predictions,
    *,
    cost_ratio: float,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> BestThreshold:
    """Choose the threshold of least cost among all distinct confidences, with its expected cost on new rows.

    Parameters
    ----------
    preds : Predictions
        Probabilities, labels, weights and clusters; or ``y_true, y_prob``.
    cost_ratio : float
        Cost of an abstention, in units of the cost of an error, in [0, 1].
    lens : Lens, default None
        What is answered, with which confidence; None is the predicted class, or the answer itself where rows are answers
        (classes "wrong" and "correct", as :func:`truecal.read` makes of a column `correct`).
    level : float, default 0.95
        Level of the intervals.
    resamples : int, default 1000
        Number of bootstrap resamples of rows (or clusters).
    rng : int or Generator, default 0
        Seed of the resamples.

    Returns
    -------
    best : BestThreshold
        The threshold, its cost, and the costs of simpler rules.

    Notes
    -----
    Optimism: thresholds chosen on resamples cost more on the original rows than on their resample; the mean difference is added
    to the cost.

    References
    ----------
    Chow. On optimum recognition error and reject tradeoff. IEEE Transactions on Information Theory 16, 1970.
    https://doi.org/10.1109/TIT.1970.1054406

    See Also
    --------
    abstention_cost : The cost at a rate.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7, 0.95], [1, 1, 1, 0, 1])
    >>> best = tc.selective.best_threshold(preds, cost_ratio=0.3)
    >>> best.threshold, round(best.cost, 2), best.answer_all  # three of five not answered, no answer wrong
    (0.9, 0.18, 0.4)
    """
    cost_ratio = check_share(cost_ratio, "cost_ratio")
    (model,) = resample([preds], lens, resamples, level, rng)
    groups, costs = model.groups, _costs(model.groups, cost_ratio)[0]
    best = int(_cheapest(costs[None])[0])  # number of groups answered
    threshold, chow = _threshold(groups, best), 1 - cost_ratio

    resampled, centre = _costs(model.resamples, cost_ratio), _costs(model.centre, cost_ratio)[0]
    chosen = _cheapest(resampled)
    optimism = max(0.0, float((centre[chosen] - resampled[np.arange(len(resampled)), chosen]).mean()))
    cells_answered = int((model.centre.confidence >= threshold).sum())  # at the chosen threshold
    deviations = resampled[:, cells_answered] - centre[cells_answered] + optimism
    thresholds = np.array([_threshold(model.centre, int(k)) for k in chosen])
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(thresholds, tails, method="inverted_cdf")  # no interpolation: an end may be infinite
    answered, errors, n = (float(number) for number in (groups.answered[0, best], groups.errors[0, best], groups.n[0]))
    return BestThreshold(
        threshold=threshold,
        threshold_interval=Interval(
            min(float(low), threshold), max(float(high), threshold), level, "bootstrap of the choice"
        ),
        cost=float(costs[best]),
        optimism=optimism,
        interval=interval(float(costs[best]), deviations, level, upper_limit=1.0),
        rate=1 - answered / n,
        risk=errors / answered if answered else None,
        cost_ratio=cost_ratio,
        answer_all=float(costs[-1]),
        answer_none=float(costs[0]),
        calibrated_threshold=chow,
        calibrated_cost=float(costs[int((groups.confidence >= chow).sum())]),
        n=round(n),
    )


def _costs(groups: ConfidenceGroups, cost_ratio: float) -> Float64s:
    """Return the cost per row of answering the first 0, 1, 2, ... groups, shape (batch, groups + 1).

    An error costs 1, a row without an answer `cost_ratio`.
    """
    n = groups.n[:, None]
    return groups.errors / n + cost_ratio * (1 - groups.answered / n)


def _cheapest(costs: Float64s) -> Indices:
    """Return the position of the last minimum (up to 1e-12) of each row of costs: of equal costs the rule that answers more."""
    is_minimum = costs <= costs.min(axis=1, keepdims=True) + 1e-12
    return costs.shape[1] - 1 - is_minimum[:, ::-1].argmax(axis=1)


def _threshold(groups: ConfidenceGroups, answered: int) -> float:
    """Return the threshold at which the first `answered` groups are answered: the confidence of the last; infinite for none."""
    return float(groups.confidence[answered - 1]) if answered else np.inf


# ----------------------------------------------------------------------------------------------------
# Costs of two models that may abstain (Minderer et al. 2021, Figure 7)

RATES = tuple(i / 20 for i in range(20))
COST_RATIOS = tuple(i / 20 for i in range(1, 21))


@dataclass(frozen=True, eq=False, repr=False)
class CostMap(Tabular):
    """Costs of two models over abstention rates (rows) and cost ratios (columns).

    Attributes
    ----------
    rates : ndarray of shape (r,)
        Shares of rows not answered.
    cost_ratios : ndarray of shape (c,)
        Costs of an abstention, in units of the cost of an error.
    cost_a : ndarray of shape (r, c)
        Cost per row of the first model.
    cost_b : ndarray of shape (r, c)
        Cost per row of the second model.
    difference : ndarray of shape (r,)
        cost_a - cost_b at each rate; the same for every cost ratio, because both models abstain equally often.
    low : ndarray of shape (r,)
        Lower limit of the difference, from resamples of the same rows for both models.
    high : ndarray of shape (r,)
        Upper limit.
    level : float
        Level of the intervals, each for one rate.
    n : int
        Number of rows.

    See Also
    --------
    cost_map : The function that returns it.
    """

    rates: Float64s
    cost_ratios: Float64s
    cost_a: Float64s
    cost_b: Float64s
    difference: Float64s
    low: Float64s
    high: Float64s
    level: float
    n: int

    @property
    def relative(self) -> Float64s:
        """Relative difference of the costs, cost_a / cost_b - 1; negative where a is cheaper, infinite where only b is free."""
        is_equal = self.cost_a == self.cost_b
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(is_equal, 0.0, self.cost_a / self.cost_b - 1)

    @property
    def supported(self) -> np.ndarray:
        """Whether the interval of the difference excludes 0, at each rate."""
        return (self.low > 0) | (self.high < 0)

    def frame(self) -> Frame:
        """Return a table with one row per rate and cost ratio."""
        by_rate = {"rate": self.rates, "difference": self.difference, "low": self.low, "high": self.high}
        columns = {
            **{name: values[:, None] for name, values in by_rate.items()},
            "cost_ratio": self.cost_ratios[None],
            "cost_a": self.cost_a,
            "cost_b": self.cost_b,
            "relative": self.relative,
            "supported": self.supported[:, None],
        }
        order = ("rate", "cost_ratio", "cost_a", "cost_b", "relative", "difference", "low", "high", "supported")
        return Frame({name: np.broadcast_to(columns[name], self.cost_a.shape).ravel() for name in order})

    def __str__(self) -> str:
        cheaper = int((self.high < 0).sum()), int((self.low > 0).sum())
        return (
            f"costs of two models at {len(self.rates)} abstention rates and {len(self.cost_ratios)} cost ratios, n={self.n}: "
            f"the first is cheaper at {cheaper[0]} rates, the second at {cheaper[1]} ({self.level:.0%}, each rate by itself)"
        )


def cost_map(
    a: tc.Predictions,
    b: tc.Predictions,
    *,
    rates: Sequence[float] = RATES,
    cost_ratios: Sequence[float] = COST_RATIOS,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> CostMap:
    """Compute the costs of two models on the same rows, each abstaining on its least confident ones.

    Parameters
    ----------
    a : Predictions
        The first model.
    b : Predictions
        The second model, on the same rows. Labels may differ where rows are answers (classes "wrong" and "correct").
    rates : sequence of float, default 0, 0.05, ..., 0.95
        Shares of rows not answered.
    cost_ratios : sequence of float, default 0.05, 0.1, ..., 1
        Costs of an abstention, in units of the cost of an error.
    lens : Lens, default None
        What is answered, with which confidence; None is the predicted class, or the answer itself where rows are answers
        (classes "wrong" and "correct", as :func:`truecal.read` makes of a column `correct`).
    level : float, default 0.95
        Level of the intervals.
    resamples : int, default 1000
        Number of bootstrap resamples of rows (or clusters).
    rng : int or Generator, default 0
        Seed of the resamples.

    Returns
    -------
    costs : CostMap
        Costs of both models, and their paired difference with intervals.

    Raises
    ------
    InputError
        The models have different rows, labels, weights or clusters.

    References
    ----------
    Minderer et al. Revisiting the calibration of modern neural networks. NeurIPS 2021.
    https://doi.org/10.48550/arXiv.2106.07998

    See Also
    --------
    abstention_cost : The cost of one model.

    Examples
    --------
    >>> import truecal as tc
    >>> labels = [1, 1, 1, 0]
    >>> a, b = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.3], labels), tc.Predictions.from_probs([0.9, 0.2, 0.4, 0.3], labels)
    >>> costs = tc.selective.cost_map(a, b, rates=[0, 0.5], cost_ratios=[0.1])
    >>> costs.cost_a.tolist(), costs.cost_b.tolist(), costs.relative.round(6).tolist()
    ([[0.25], [0.3]], [[0.5], [0.3]], [[-0.5], [0.0]])
    """
    shares = np.array([check_share(rate, "rate") for rate in rates])
    ratios = np.array([check_share(ratio, "cost_ratio") for ratio in cost_ratios])
    if not len(shares) or not len(ratios):
        raise InputError("a cost map needs at least one rate and one cost ratio")
    for model in (a, b):
        check_predictions(model)
    _refuse_other_rows(a, b)
    resampled = resample([a, b], lens, resamples, level, rng)
    loss_a, loss_b = (model.groups.loss(1 - shares)[0] for model in resampled)
    deviations_a, deviations_b = (model.deviations(lambda groups: groups.loss(1 - shares)) for model in resampled)
    low, high = bounds(loss_a - loss_b, deviations_a - deviations_b, level)
    abstained = shares[:, None] * ratios
    cost_a, cost_b = (loss[:, None] + abstained for loss in (loss_a, loss_b))
    return CostMap(shares, ratios, cost_a, cost_b, loss_a - loss_b, low, high, level, len(a))


def _refuse_other_rows(a: tc.Predictions, b: tc.Predictions) -> None:
    """Raise InputError if models differ in number of rows, weights, clusters, or labels (unless these mark right answers)."""
    if len(a) != len(b):
        raise InputError(f"the models have {len(a)} and {len(b)} rows; compare them on the same rows")
    different = np.flatnonzero(a.labels != b.labels)
    if len(different) and not (a.of_answers and b.of_answers):
        raise InputError(
            f"row {int(different[0])} has different labels for the two models; compare them on the same rows, or name the "
            "classes wrong and correct if the labels say whether each model was right"
        )
    for name in ("weights", "clusters"):
        if not np.array_equal(np.asarray(getattr(a, name)), np.asarray(getattr(b, name))):
            raise InputError(f"the models have different {name}; give both the same")
