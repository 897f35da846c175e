"""Selective prediction: answer where the model is confident, abstain elsewhere, and compute the cost of both.

Minderer et al. 2021, section 4.4. A row is answered if its confidence (the largest probability) is high enough; the risk is the
share of wrong answers among the rows answered, the coverage the share of rows answered.
"""

from __future__ import annotations

from collections.abc import Callable
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
from truecal.types import Float64s

__all__ = [
    "AbstentionCost",
    "Area",
    "RiskCoverage",
    "abstention_cost",
    "aurc",
    "risk_coverage",
]

# ----------------------------------------------------------------------------------------------------
# Groups of equal confidence, the most confident first, with the rows and the errors in each


@dataclass(frozen=True, eq=False)
class ConfidenceGroups:
    """Groups of rows of equal confidence, or of neighbouring ones, the most confident first; `confidence` (groups,) falls.

    `count` and `wrong` (batch, groups) are numbers of rows and of errors, whole-number weights counting repetitions; importance
    weights are scaled to sum to Kish's effective size.
    """

    confidence: Float64s
    count: Float64s
    wrong: Float64s

    @classmethod
    def of(cls, preds: tc.Predictions, lens: Lens | None = None) -> ConfidenceGroups:
        """Group the rows by equal confidence, descending, a batch of 1; `lens` None is the predicted class.

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
        """Rows answered when the first 0, 1, 2, ... groups are, shape (batch, groups + 1).

        >>> ConfidenceGroups(np.array([0.9, 0.6]), np.array([[2.0, 1.0]]), np.array([[1.0, 1.0]])).answered
        array([[0., 2., 3.]])
        """
        return np.pad(np.cumsum(self.count, axis=1), ((0, 0), (1, 0)))

    @cached_property
    def errors(self) -> Float64s:
        """Errors among the rows answered when the first 0, 1, 2, ... groups are, shape (batch, groups + 1).

        >>> ConfidenceGroups(np.array([0.9, 0.6]), np.array([[2.0, 1.0]]), np.array([[1.0, 1.0]])).errors
        array([[0., 1., 2.]])
        """
        return np.pad(np.cumsum(self.wrong, axis=1), ((0, 0), (1, 0)))

    @property
    def n(self) -> Float64s:
        """Number of rows, shape (batch,); effective ones with importance weights.

        >>> ConfidenceGroups(np.array([0.9, 0.6]), np.array([[2.0, 1.0]]), np.array([[1.0, 1.0]])).n
        array([3.])
        """
        return self.answered[:, -1]

    def loss(self, coverage: Float64s) -> Float64s:
        """Return the errors among the most confident shares `coverage` (q,) of rows, as a share of all rows: (batch, q).

        Within a group of equal confidences errors are interpolated.

        >>> groups = ConfidenceGroups(np.array([0.9, 0.6]), np.array([[2.0, 2.0]]), np.array([[0.0, 1.0]]))
        >>> groups.loss(np.array([0.5, 0.75, 1.0]))  # half of the second group has half an error, of 4 rows
        array([[0.   , 0.125, 0.25 ]])
        """
        datasets = zip(self.answered, self.errors, strict=True)
        return np.stack([np.interp(coverage * rows[-1], rows, errors) / rows[-1] for rows, errors in datasets])

    def area(self) -> Float64s:
        """Return the mean over k = 1..n of the risk of the k most confident rows, shape (batch,).

        In a group that starts after a rows with E errors, and has m rows with e errors, the k-th row brings the mean risk
        (E + (k - a) e/m) / k. Summed over the group: e + (E - a e/m) (H(a + m) - H(a)), with the harmonic numbers H.

        >>> groups = ConfidenceGroups(np.array([0.9, 0.6]), np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]]))
        >>> groups.area()  # (0/1 + 1/2) / 2
        array([0.25])
        """
        a, before = self.answered[:, :-1], self.errors[:, :-1]
        rate = self.wrong / positive(self.count)
        return (self.wrong + (before - a * rate) * _harmonic(a, self.count)).sum(axis=1) / self.n

    def best_area(self) -> Float64s:
        """Return :meth:`area` of the ideal order, all right answers before all wrong ones, shape (batch,).

        >>> groups = ConfidenceGroups(np.array([0.9, 0.6]), np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
        >>> groups.area(), groups.best_area()  # (1/1 + 1/2) / 2, and (0/1 + 1/2) / 2
        (array([0.75]), array([0.25]))
        """
        wrong = self.errors[:, -1]
        right = self.n - wrong
        return (wrong - right * _harmonic(right, wrong)) / self.n


def answer_lens(preds: tc.Predictions, lens: Lens | None) -> Lens:
    """Return the lens that gives each row one answer and its confidence: `lens`, or by default `TopLabel()`, the predicted
    class.

    Where rows are answers already (classes "wrong" and "correct") the default is `OneClass()`: their confidence is the
    probability of "correct" itself, however small. InputError for a lens with several scores per row, such as `AllLabels()`.

    >>> answer_lens(tc.Predictions.from_probs([0.9, 0.2], [1, 0]), None)
    TopLabel()
    """
    check_lens(lens)
    chosen: Lens = lens if lens is not None else tc.OneClass() if preds.of_answers else tc.TopLabel()
    if chosen.several or chosen.shares(preds) is not None:
        raise InputError("this lens gives several confidences per row; use tc.TopLabel() or tc.OneClass(name)")
    return chosen


def _harmonic(start: Float64s, length: Float64s) -> Float64s:
    """Sum 1/(start + 1) + ... + 1/(start + length), elementwise; fractions of rows count in proportion (digamma).

    >>> _harmonic(np.array([0.0, 1.0]), np.array([2.0, 1.0]))  # 1/1 + 1/2, and 1/2
    array([1.5, 0.5])
    """
    from scipy.special import psi

    return np.where(length == 1, 1 / (start + 1), psi(start + length + 1) - psi(start + 1))


# ----------------------------------------------------------------------------------------------------
# Bootstrap resamples of the groups

_CELLS = 256  # by choice: cells of confidences in a resample
_BATCH = 64  # by choice: resamples multiplied together


@dataclass(frozen=True, eq=False)
class ResampledGroups:
    """The groups of one model by exact confidence, and their resamples (a batch) and the centre of these (a batch of 1) in cells.

    Resamples and their centre are smoothed by one right and one wrong row spread over the cells: without that the interval of a
    model without errors would have width 0.
    """

    groups: ConfidenceGroups
    centre: ConfidenceGroups
    resamples: ConfidenceGroups

    def deviations(self, statistic: Callable[[ConfidenceGroups], Float64s]) -> Float64s:
        """Return the statistic of the resamples, (resamples, ...), less that of their centre.

        >>> centre, resampled = (ConfidenceGroups(np.array([0.9]), np.array([[4.0]]), np.array([[k]])) for k in (1.0, 3.0))
        >>> ResampledGroups(centre, centre, resampled).deviations(lambda g: g.errors[:, -1])
        array([2.])
        """
        return statistic(self.resamples) - statistic(self.centre)


def resample(
    preds: tc.Predictions, lens: Lens | None, resamples: int, rng: int | np.random.Generator
) -> ResampledGroups:
    """Resample the rows (or clusters) of a model with replacement, counted in up to 256 cells of neighbouring confidences.

    `lens` None is that of `answer_lens`; refuse `resamples` that are no whole number of at least 1.
    """
    options.resamples(resamples)
    exact = ConfidenceGroups.of(preds, lens)
    generator = options.generator(rng)
    sample = answer_lens(preds, lens).sample(preds)
    units = Units.of(sample, generator)
    counts = units.draws(resamples, generator)
    starts = cells.cell_starts(sample.profile, _CELLS)[None]
    sums = UnitSums.of(sample.with_units(units.of_row), units, Cut(starts, starts))
    confidence = sums.observed.score_sums[0] / positive(sums.observed.rows[0])
    batches = [sums.draw(counts[:, start : start + _BATCH]) for start in range(0, resamples, _BATCH)]
    centre = _groups_of_cells(confidence, sums.drawn_from)
    return ResampledGroups(exact, centre, _groups_of_cells(confidence, *batches))


def _groups_of_cells(confidence: Float64s, *batches: CellBatch) -> ConfidenceGroups:
    """Make groups from the `rows` and `ones` (right answers) of cells, (datasets, cells) in each batch: all datasets joined.

    `confidence` (cells,) ascends, as the cells do; the groups are in falling order. Wrong answers are rows - ones, at least 0.
    """
    rows, ones = (np.concatenate([getattr(batch, name) for batch in batches])[:, ::-1] for name in ("rows", "ones"))
    return ConfidenceGroups(confidence[::-1], rows, np.maximum(rows - ones, 0.0))


def bounds(value: Float64s, deviations: Float64s, level: float) -> tuple[Float64s, Float64s]:
    """Return limits of the shape of `value`: value plus quantiles of deviations (resamples, ...) at (1 -+ level) / 2.

    The limits are extended to the value.

    >>> bounds(np.array(0.5), np.linspace(-0.1, 0.3, 41), 0.5)  # quartiles of the deviations: 0 and 0.2
    (np.float64(0.5), np.float64(0.7))
    """
    low, high = np.quantile(deviations, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(value + low, value), np.maximum(value + high, value)


def interval(
    value: float, deviations: Float64s, level: float, *, lower_limit: float = 0.0, upper_limit: float = np.inf
) -> Interval:
    """Return the percentile interval of one number (:func:`bounds`) within [lower_limit, upper_limit], and containing the
    value.

    >>> limits = interval(0.1, np.array([-0.2, 0.0, 0.2]), 0.5, lower_limit=0.05)
    >>> limits.low, limits.high, limits.method
    (0.05, 0.2, 'percentile bootstrap of 3 resamples')
    """
    low, high = bounds(np.array(value), deviations, level)
    method = f"percentile bootstrap of {len(deviations)} resamples"
    lower_limit, upper_limit = (
        min(lower_limit, value),
        max(upper_limit, value),
    )  # the ends may be rounded past the value
    return Interval(max(float(low), lower_limit), min(float(high), upper_limit), level, method)


def check_share(value: Any, name: str) -> float:
    """Return a number from 0 to 1 as float; raise InputError, with `name` in the message, for anything else.

    >>> check_share(1, "rate")
    1.0
    """
    if not options.is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


# ----------------------------------------------------------------------------------------------------
# The risk-coverage curve and the area under it

_GRID = np.arange(1, 101) / 100  # by choice: shares of rows answered at which the curve is listed


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
        """Return `value`."""
        return self.value

    def __str__(self) -> str:
        """Write value, interval, level and excess in one sentence.

        >>> import truecal as tc
        >>> limits = Interval(0.1, 0.2, 0.95, "")
        >>> print(Area(0.15, limits, 0.05, limits, 0.2, 100))
        area under the risk-coverage curve 0.150 [0.100, 0.200] at 95%; a perfect ranking of these answers would lower it by 0.0500
        """
        size = digits.with_interval(self.value, float(self.interval.low), float(self.interval.high))
        return (
            f"area under the risk-coverage curve {size} at {self.interval.level:.0%}; a perfect ranking of these answers would "
            f"lower it by {self.excess:.4f}"
        )

    def __repr__(self) -> str:
        """Return "Area: " and the text of `str`."""
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

        Raises
        ------
        InputError
            A coverage is not in (0, 1], or they have more than one dimension.

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
        """Return the curve at 1 %, 2 %, ..., 100 % of rows answered, one row each.

        Columns: answered (the share), risk (share of wrong answers), low and high (its pointwise interval), threshold
        (confidence of the last row answered).
        """
        last = np.searchsorted(self.coverage, _GRID - 1e-12)
        threshold = self.threshold[np.minimum(last, len(self.threshold) - 1)]
        columns = {"answered": _GRID, "risk": self.at(_GRID), "low": self._low, "high": self._high}
        return Frame({**columns, "threshold": threshold})

    def __str__(self) -> str:
        """Write the risk at 100 %, 90 % and 50 % of rows answered, a table of it at 10 %, 20 %, ..., 100 %, and the area."""
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
    abstention_cost : The cost at a share of rows not answered.

    Examples
    --------
    >>> import truecal as tc
    >>> curve = tc.selective.risk_coverage(tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0]))
    >>> curve.threshold, curve.coverage, curve.risk
    (array([0.9, 0.8, 0.7, 0.6]), array([0.25, 0.5 , 0.75, 1.  ]), array([0. , 0.5 , 0.66666667, 0.5 ]))
    """
    options.level(level)
    model = resample(preds, lens, resamples, rng)
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
# The cost of abstaining


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
        """Write cost, interval, rate, risk and number of rows in one line.

        >>> import truecal as tc
        >>> print(AbstentionCost(0.35, Interval(0.3, 0.4, 0.95, ""), 0.5, 0.2, 0.25, 0.8, 100))
        cost 0.350 [0.300, 0.400] at 95% if 50% are not answered; wrong 25.00%, n=100
        """
        cost = digits.with_interval(self.value, float(self.interval.low), float(self.interval.high))
        risk = "none" if self.risk is None else f"{self.risk:.2%}"
        return f"cost {cost} at {self.interval.level:.0%} if {self.rate:.0%} are not answered; wrong {risk}, n={self.n}"

    def __repr__(self) -> str:
        """Return "AbstentionCost: " and the text of `str`."""
        return f"AbstentionCost: {self}"

    def __float__(self) -> float:
        """Return `value`."""
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

    Raises
    ------
    InputError
        `rate` or `cost_ratio` is not in [0, 1], or the lens gives several confidences per row.

    References
    ----------
    Minderer et al. Revisiting the calibration of modern neural networks. NeurIPS 2021.
    https://doi.org/10.48550/arXiv.2106.07998

    See Also
    --------
    risk_coverage : The risk at every share of rows answered.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0])
    >>> tc.selective.abstention_cost(preds, rate=0.5, cost_ratio=0.2).value  # one of four wrong, two of four not answered
    0.35
    """
    rate, cost_ratio = check_share(rate, "rate"), check_share(cost_ratio, "cost_ratio")
    options.level(level)
    model = resample(preds, lens, resamples, rng)
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
