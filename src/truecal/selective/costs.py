"""What abstaining costs, and where to draw the line.

A wrong answer costs 1, an abstention `cost_ratio`, a right answer nothing: the cost of a rule, per row, is
(share of rows answered wrongly) + cost_ratio * (share of rows not answered).
"""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal import options
from truecal.estimate import Interval
from truecal.lens import Lens
from truecal.selective.ladder import Ladder
from truecal.selective.resampled import check_share, draw, interval
from truecal.types import Float64s, Indices


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
        interval(value, deviations, level, least=cost_ratio * rate, most=cost_ratio * rate + 1 - rate),
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
        interval(float(costs[best]), deviations, level, most=1.0),
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
    least = costs <= costs.min(axis=1, keepdims=True) + 1e-12
    return costs.shape[1] - 1 - least[:, ::-1].argmax(axis=1)


def _threshold(ladder: Ladder, groups: int) -> float:
    return float(ladder.confidence[groups - 1]) if groups else np.inf
