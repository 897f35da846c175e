"""Selective prediction: answer where the model is confident, abstain elsewhere, and count what both cost.

Minderer et al. 2021, section 4.4. A row is answered if its confidence (the largest probability) is high enough; the risk is the
share of wrong answers among those given, the coverage the share of rows answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.estimate import Interval
from truecal.estimators.resampling import cells
from truecal.estimators.resampling.units import Units, softened_incidence
from truecal.lenses.lens import Lens, check_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.profile.binning import Cut
from truecal.special import positive
from truecal.table import Frame
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
# The ladder: groups of equal confidence, the most confident first, with the rows and the errors in each


@dataclass(frozen=True, eq=False)
class Ladder:
    """`confidence` of every group, falling, shape (groups,); number of rows and of errors, shape (batch, groups)."""

    confidence: Float64s
    count: Float64s
    wrong: Float64s

    @classmethod
    def of(cls, preds: tc.Predictions, lens: Lens | None = None) -> "Ladder":
        """From one sort of the rows by confidence; the rest is read from the prefix sums of the profile.

        >>> import truecal as tc
        >>> ladder = Ladder.of(tc.Predictions.from_probs([0.9, 0.1, 0.6, 0.7], [1, 1, 1, 0]))
        >>> ladder.confidence, ladder.count, ladder.wrong
        (array([0.9, 0.7, 0.6]), array([[2., 1., 1.]]), array([[1., 1., 0.]]))
        """
        check_predictions(preds)
        profile: tc.profile.Profile = answer_lens(preds, lens)(preds)
        boundaries = cells.cell_places(profile, profile.rows)[None]
        cut = Cut(boundaries, boundaries)
        weight, right = (np.diff(profile.sums(name, cut), axis=1)[:, ::-1] for name in ("w", "y"))
        scale = float(profile.size[0] / profile.total[0])
        scores = profile.scores[0, boundaries[0, :-1]].astype(np.float64)
        return cls(scores[::-1], weight * scale, np.clip(weight - right, 0.0, weight) * scale)

    @cached_property
    def answered(self) -> Float64s:
        """Rows answered when the first 0, 1, 2, ... groups are, shape (batch, groups + 1)."""
        return _sums(self.count)

    @cached_property
    def errors(self) -> Float64s:
        """Errors among them."""
        return _sums(self.wrong)

    @property
    def n(self) -> Float64s:
        """Number of rows, shape (batch,)."""
        return self.answered[:, -1]

    def loss(self, coverage: Float64s) -> Float64s:
        """Errors among the most confident share of rows, as a share of all rows, shape (batch, q)."""
        losses = np.empty((len(self.count), len(coverage)))
        for i, (answered, errors) in enumerate(zip(self.answered, self.errors, strict=True)):
            losses[i] = np.interp(coverage * answered[-1], answered, errors) / answered[-1]
        return losses

    def area(self) -> Float64s:
        """Mean over k = 1..n of the risk of the k most confident rows, shape (batch,).

        In a group that starts after a rows with E errors, and has m rows with e errors, the k-th row brings the mean risk
        (E + (k - a) e/m) / k. Summed over the group: e + (E - a e/m) (H(a + m) - H(a)), with the harmonic numbers H.
        """
        a, before = self.answered[:, :-1], self.errors[:, :-1]
        rate = self.wrong / positive(self.count)
        return (self.wrong + (before - a * rate) * _harmonic(a, self.count)).sum(axis=1) / self.n

    def best_area(self) -> Float64s:
        """The same if confidence had put all right answers before all wrong ones, shape (batch,)."""
        wrong = self.errors[:, -1]
        right = self.n - wrong
        return (wrong - right * _harmonic(right, wrong)) / self.n


def answer_lens(preds: tc.Predictions, lens: Lens | None) -> Lens:
    """What is answered with which confidence: the predicted class with its probability, unless told otherwise.

    Where rows are answers already (classes "wrong" and "correct"), their confidence is the probability itself, however small.
    """
    check_lens(lens)
    chosen: Lens = lens if lens is not None else tc.OneClass() if preds.of_answers else tc.TopLabel()
    if chosen.several or chosen.shares(preds) is not None:
        raise InputError("an answer has one confidence; use tc.TopLabel() or tc.OneClass(name)")
    return chosen


def _sums(values: Float64s) -> Float64s:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _harmonic(start: Float64s, length: Float64s) -> Float64s:
    """1/(start + 1) + ... + 1/(start + length); fractions of rows count in proportion (digamma)."""
    from scipy.special import psi

    return np.where(length == 1, 1 / (start + 1), psi(start + length + 1) - psi(start + 1))


# ----------------------------------------------------------------------------------------------------
# Resampled ladders: what the curve and its costs would be on other rows of the same kind

_CELLS = 256  # confidences kept apart in a resample
_AT_ONCE = 64  # resamples multiplied together


@dataclass(frozen=True, eq=False)
class Drawn:
    """The cells of one model, and all resamples of them; both with one more right and one more wrong row shared out over the cells,
    so that a model without errors is not taken to be certain."""

    centre: Ladder
    resamples: Ladder


def draw(
    models: Sequence[tc.Predictions], lens: Lens | None, *, resamples: int, level: float, rng: int | np.random.Generator
) -> list[Drawn]:
    """Resamples of one or several models on the same rows."""
    options.resamples(resamples)
    options.level(level)
    generator = options.generator(rng)
    units = Units.of(answer_lens(models[0], lens).sample(models[0]), generator)
    counts = units.draws(resamples, generator)
    drawn = []
    for preds in models:
        sample = answer_lens(preds, lens).sample(preds).with_units(units.of_row)
        cells, incidence = softened_incidence(sample, units, _CELLS)
        both = [
            incidence @ counts[:, start : start + _AT_ONCE].astype(np.float64)
            for start in range(0, resamples, _AT_ONCE)
        ]
        drawn.append(
            Drawn(
                _ladder(cells, np.asarray(incidence.sum(axis=1))[None]), _ladder(cells, np.concatenate(both, axis=1).T)
            )
        )
    return drawn


def _ladder(cells: tc.profile.Profile, both: Float64s) -> Ladder:
    """Counts of zeros, then of ones, in every cell, shape (batch, 2 x cells)."""
    zeros, ones = both[:, : cells.rows], both[:, cells.rows :]
    return Ladder(cells.scores[0, ::-1].astype(np.float64), (zeros + ones)[:, ::-1], zeros[:, ::-1])


def bounds(value: Float64s, deviations: Float64s, level: float) -> tuple[Float64s, Float64s]:
    """Percentile interval: the value moved by the quantiles of the deviations (resamples first), extended to hold the value."""
    low, high = np.quantile(deviations, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(value + low, value), np.maximum(value + high, value)


def interval(
    value: float, deviations: Float64s, level: float, *, lower_limit: float = 0.0, upper_limit: float = np.inf
) -> Interval:
    """The same for one number that lies between `least` and `most`."""
    low, high = bounds(np.array(value), deviations, level)
    method = f"percentile bootstrap of {len(deviations)} resamples"
    lower_limit, upper_limit = min(lower_limit, value), max(upper_limit, value)  # however the ends were rounded
    return Interval(max(float(low), lower_limit), min(float(high), upper_limit), level, method)


def check_share(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    if not options.is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


# ----------------------------------------------------------------------------------------------------
# The risk-coverage curve and the area under it

_GRID = np.arange(1, 101) / 100


@dataclass(frozen=True)
class Area:
    """Area under the risk-coverage curve (AURC): the mean over k = 1..n of the risk among the k most confident rows.

    `excess` is what it has above that of the best order of the same right and wrong answers (Geifman, Uziel and El-Yaniv 2019): 0
    for confidences that put every right answer before every wrong one, whatever the accuracy.
    """

    value: float
    interval: Interval
    excess: float
    excess_interval: Interval
    error: float
    n: int

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk against coverage, the most confident rows first.

    Attributes
    ----------
    threshold, coverage, risk : for every distinct confidence: answering all rows of at least this confidence answers this share of
        rows and is wrong in this share of the answers.
    area : the area under the curve, with interval.
    n : number of rows.
    """

    threshold: Float64s
    coverage: Float64s
    risk: Float64s
    area: Area
    n: int
    _ladder: Ladder
    _low: Float64s
    _high: Float64s

    def at(self, coverage: ArrayLike) -> Float64s:
        """Risk at any coverage above 0; within a group of equal confidences, the mean over which of them are answered.

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
        return self._ladder.loss(coverages)[0] / coverages

    def frame(self) -> Frame:
        """The curve at 1 %, 2 %, ..., 100 % of rows answered: answered, risk, low, high, threshold."""
        last = np.searchsorted(self.coverage, _GRID - 1e-12)
        columns = (
            _GRID,
            self.at(_GRID),
            self._low,
            self._high,
            self.threshold[np.minimum(last, len(self.threshold) - 1)],
        )
        return Frame(dict(zip(("answered", "risk", "low", "high", "threshold"), columns, strict=True)))


@takes_arrays
def risk_coverage(
    preds: tc.Predictions,
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> RiskCoverage:
    """The whole curve from one sort, with pointwise intervals from resampled rows (or clusters).

    `lens` says what is answered: by default the predicted class. Rows that are answers themselves (classes "wrong" and "correct",
    as :func:`truecal.read` makes of a column `correct`) are judged by the confidence in them; so with tc.OneClass().

    >>> import truecal as tc
    >>> curve = tc.selective.risk_coverage(tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0]))
    >>> curve.threshold, curve.coverage, curve.risk
    (array([0.9, 0.8, 0.7, 0.6]), array([0.25, 0.5 , 0.75, 1.  ]), array([0. , 0.5 , 0.66666667, 0.5 ]))
    """
    options.level(level)
    ladder = Ladder.of(preds, lens)
    (drawn,) = draw([preds], lens, resamples=resamples, level=level, rng=rng)
    answered, errors = ladder.answered[0, 1:], ladder.errors[0, 1:]
    n = round(float(ladder.n[0]))
    area, best = float(ladder.area()[0]), float(ladder.best_area()[0])
    areas, centre = drawn.resamples.area(), float(drawn.centre.area()[0])
    over, over_centre = areas - drawn.resamples.best_area(), centre - float(drawn.centre.best_area()[0])
    summary = Area(
        area,
        interval(area, areas - centre, level, upper_limit=1.0),
        max(area - best, 0.0),
        interval(max(area - best, 0.0), over - over_centre, level, upper_limit=1.0),
        float(errors[-1] / answered[-1]),
        n,
    )
    risk = ladder.loss(_GRID)[0] / _GRID
    low, high = bounds(risk, drawn.resamples.loss(_GRID) / _GRID - drawn.centre.loss(_GRID) / _GRID, level)
    band = (np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))
    return RiskCoverage(ladder.confidence, answered / answered[-1], errors / answered, summary, n, ladder, *band)


@takes_arrays
def aurc(
    preds: tc.Predictions,
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Area:
    """Area under the risk-coverage curve, and its excess over the best order, with intervals.

    >>> import truecal as tc
    >>> found = tc.selective.aurc(tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0]))
    >>> round(found.value, 4), round(found.excess, 4)  # (0 + 1/2 + 2/3 + 2/4) / 4; best (0 + 0 + 1/3 + 2/4) / 4
    (0.4167, 0.2083)
    """
    options.level(level)
    return risk_coverage(preds, lens=lens, level=level, resamples=resamples, rng=rng).area


# ----------------------------------------------------------------------------------------------------
# What abstaining costs, and where to draw the line


@dataclass(frozen=True)
class AbstentionCost:
    """Cost per row of abstaining at a rate: on that share of rows, the least confident ones.

    `risk` is the share of wrong answers among those given (None if none is), `threshold` the confidence of the last one answered.
    """

    value: float
    interval: Interval
    rate: float
    cost_ratio: float
    risk: float | None
    threshold: float
    n: int

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
    """Cost per row when the least confident share `rate` of rows is not answered; `lens` as in :func:`risk_coverage`.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7], [1, 1, 1, 0])
    >>> tc.selective.abstention_cost(preds, rate=0.5, cost_ratio=0.2).value  # one of four wrong, two of four not answered
    0.35
    """
    options.level(level)
    rate, cost_ratio = check_share(rate, "rate"), check_share(cost_ratio, "cost_ratio")
    ladder = Ladder.of(preds, lens)
    (drawn,) = draw([preds], lens, resamples=resamples, level=level, rng=rng)
    coverage = np.array([1 - rate])
    loss = float(ladder.loss(coverage)[0, 0])
    value = loss + cost_ratio * rate
    deviations = drawn.resamples.loss(coverage)[:, 0] - drawn.centre.loss(coverage)[0, 0]
    last = int(np.searchsorted(ladder.answered[0, 1:], coverage[0] * ladder.n[0] * (1 - 1e-12)))
    return AbstentionCost(
        value,
        interval(value, deviations, level, lower_limit=cost_ratio * rate, upper_limit=cost_ratio * rate + 1 - rate),
        rate,
        cost_ratio,
        loss / (1 - rate) if rate < 1 else None,
        float(ladder.confidence[last]) if rate < 1 else np.inf,
        round(float(ladder.n[0])),
    )


@dataclass(frozen=True)
class BestThreshold:
    """The confidence from which answering is cheapest.

    Attributes
    ----------
    threshold : answer from this confidence on; infinite if never answering is cheapest. Of equal costs the one that answers more.
    threshold_interval : where the threshold falls on resampled rows; often wide, because costs are flat near their minimum.
    cost : per row, on these rows. It was chosen to be low here: on new rows expect about `cost + optimism`.
    interval : for the cost of this threshold on new rows.
    rate, risk : share of rows not answered; share of wrong answers (None if none is given).
    answer_all, answer_none : cost per row of the two rules that need no model.
    calibrated_threshold, calibrated_cost : 1 - cost_ratio, the best threshold of a calibrated model (Chow 1970), and its cost here.
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
    """The threshold of least cost among all that the rows can tell apart, and what it will cost elsewhere.

    Optimism is the bootstrap's: thresholds chosen on resamples cost so much more on the rows at hand than on their own resample.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.7, 0.95], [1, 1, 1, 0, 1])
    >>> found = tc.selective.best_threshold(preds, cost_ratio=0.3)
    >>> found.threshold, round(found.cost, 2), found.answer_all  # three of five not answered, no answer wrong
    (0.9, 0.18, 0.4)
    """
    options.level(level)
    cost_ratio = check_share(cost_ratio, "cost_ratio")
    ladder = Ladder.of(preds, lens)
    (drawn,) = draw([preds], lens, resamples=resamples, level=level, rng=rng)
    costs = _costs(ladder, cost_ratio)[0]
    best = int(_cheapest(costs[None])[0])
    threshold = _threshold(ladder, best)
    chow = 1 - cost_ratio

    again, at_home = _costs(drawn.resamples, cost_ratio), _costs(drawn.centre, cost_ratio)[0]
    chosen = _cheapest(again)
    optimism = max(0.0, float((at_home[chosen] - again[np.arange(len(again)), chosen]).mean()))
    same = int((drawn.centre.confidence >= threshold).sum())
    deviations = again[:, same] - at_home[same] + optimism
    thresholds = np.array([_threshold(drawn.centre, int(k)) for k in chosen])
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(thresholds, tails, method="inverted_cdf")  # no interpolation: an end may be infinite
    spread = Interval(min(float(low), threshold), max(float(high), threshold), level, "bootstrap of the choice")
    answered, errors = float(ladder.answered[0, best]), float(ladder.errors[0, best])
    n = float(ladder.n[0])
    return BestThreshold(
        threshold,
        spread,
        float(costs[best]),
        optimism,
        interval(float(costs[best]), deviations, level, upper_limit=1.0),
        1 - answered / n,
        errors / answered if answered else None,
        cost_ratio,
        float(costs[-1]),
        float(costs[0]),
        chow,
        float(costs[int((ladder.confidence >= chow).sum())]),
        round(n),
    )


def _costs(ladder: Ladder, cost_ratio: float) -> Float64s:
    """Cost per row of answering the first 0, 1, 2, ... groups, shape (batch, groups + 1)."""
    n = ladder.n[:, None]
    return ladder.errors / n + cost_ratio * (1 - ladder.answered / n)


def _cheapest(costs: Float64s) -> Indices:
    """The last of the least (to rounding): of equal costs the rule that answers more."""
    is_minimum = costs <= costs.min(axis=1, keepdims=True) + 1e-12
    return costs.shape[1] - 1 - is_minimum[:, ::-1].argmax(axis=1)


def _threshold(ladder: Ladder, groups: int) -> float:
    return float(ladder.confidence[groups - 1]) if groups else np.inf


# ----------------------------------------------------------------------------------------------------
# Which of two models is cheaper when both may abstain? (Minderer et al. 2021, Figure 7)

RATES = tuple(i / 20 for i in range(20))
COST_RATIOS = tuple(i / 20 for i in range(1, 21))


@dataclass(frozen=True, eq=False)
class CostMap:
    """Costs of two models over abstention rates (rows) and cost ratios (columns).

    Attributes
    ----------
    cost_a, cost_b : cost per row, shape (rates, cost_ratios).
    relative : cost_a / cost_b - 1; negative where a is cheaper, infinite where only b is free.
    difference : cost_a - cost_b at each rate. It is the same for every cost ratio, because both models pay for as many abstentions;
        a cheap abstention only makes the same difference a larger part of the cost.
    low, high : its interval, from resamples of the same rows for both models.
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
        same = self.cost_a == self.cost_b
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(same, 0.0, self.cost_a / self.cost_b - 1)

    @property
    def supported(self) -> np.ndarray:
        """Whether the interval of the difference leaves out 0, at each rate."""
        return (self.low > 0) | (self.high < 0)

    def frame(self) -> Frame:
        """One row per rate and cost ratio: rate, cost_ratio, cost_a, cost_b, relative, difference, low,
        high, supported."""
        shape = self.cost_a.shape

        def spread(values: np.ndarray) -> list[Any]:
            return np.broadcast_to(values[:, None], shape).ravel().tolist()

        grids = {"cost_a": self.cost_a, "cost_b": self.cost_b, "relative": self.relative}
        return Frame(
            {
                "rate": spread(self.rates),
                "cost_ratio": np.broadcast_to(self.cost_ratios, shape).ravel().tolist(),
                **{name: grid.ravel().tolist() for name, grid in grids.items()},
                "difference": spread(self.difference),
                "low": spread(self.low),
                "high": spread(self.high),
                "supported": spread(self.supported),
            }
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
    """Costs of two models on the same rows, each abstaining on its own least confident ones.

    Labels may be each model's own where rows are answers (see :func:`risk_coverage`); rows are those of the same question then.

    >>> import truecal as tc
    >>> labels = [1, 1, 1, 0]
    >>> a, b = tc.Predictions.from_probs([0.9, 0.2, 0.6, 0.3], labels), tc.Predictions.from_probs([0.9, 0.2, 0.4, 0.3], labels)
    >>> found = tc.selective.cost_map(a, b, rates=[0, 0.5], cost_ratios=[0.1])
    >>> found.cost_a.tolist(), found.cost_b.tolist(), found.relative.round(6).tolist()
    ([[0.25], [0.3]], [[0.5], [0.3]], [[-0.5], [0.0]])
    """
    options.level(level)
    steps = np.array([check_share(rate, "rate") for rate in rates])
    ratios = np.array([check_share(ratio, "cost_ratio") for ratio in cost_ratios])
    if not len(steps) or not len(ratios):
        raise InputError("a cost map needs at least one rate and one cost ratio")
    ladders = [Ladder.of(a, lens), Ladder.of(b, lens)]
    _refuse_other_rows(a, b)
    drawn = draw([a, b], lens, resamples=resamples, level=level, rng=rng)
    loss_a, loss_b = (ladder.loss(1 - steps)[0] for ladder in ladders)
    moved_a, moved_b = (d.resamples.loss(1 - steps) - d.centre.loss(1 - steps) for d in drawn)
    low, high = bounds(loss_a - loss_b, moved_a - moved_b, level)
    abstained = steps[:, None] * ratios
    cost_a, cost_b = (loss[:, None] + abstained for loss in (loss_a, loss_b))
    return CostMap(steps, ratios, cost_a, cost_b, loss_a - loss_b, low, high, level, len(a))


def _refuse_other_rows(a: tc.Predictions, b: tc.Predictions) -> None:
    """Two models are compared on the same rows or not at all."""
    if len(a) != len(b):
        raise InputError(f"the models were judged on {len(a)} and {len(b)} rows; compare them on the same ones")
    other = np.flatnonzero(a.labels != b.labels)
    if len(other) and not (a.of_answers and b.of_answers):
        raise InputError(
            f"row {int(other[0])} has different labels for the two models; compare them on the same rows, or name the "
            "classes wrong and correct if the labels say whether each model was right"
        )
    for name in ("weights", "clusters"):
        mine, others = getattr(a, name), getattr(b, name)
        if (mine is None) != (others is None) or (mine is not None and not np.array_equal(mine, others)):
            raise InputError(f"the models have different {name}; give both the same")
