"""The risk-coverage curve and the area under it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimate import Interval
from truecal.frame import Frame
from truecal.lens import Lens
from truecal.predictions import border
from truecal.selective.ladder import Ladder
from truecal.selective.resampled import bounds, draw, interval
from truecal.types import Float64s

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
        wanted = np.atleast_1d(border.as_floats(coverage, "coverage").astype(np.float64))
        if wanted.ndim > 1:
            raise InputError(f"coverage must be one number or a list of them, not of shape {wanted.shape}")
        bad = ~((wanted > 0) & (wanted <= 1))
        if bad.any():
            raise InputError(f"coverage must lie above 0 and at most at 1, not {wanted[bad][0]:g}")
        return self._ladder.loss(wanted)[0] / wanted

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
        interval(area, areas - centre, level, most=1.0),
        max(area - best, 0.0),
        interval(max(area - best, 0.0), over - over_centre, level, most=1.0),
        float(errors[-1] / answered[-1]),
        n,
    )
    risk = ladder.loss(_GRID)[0] / _GRID
    low, high = bounds(risk, drawn.resamples.loss(_GRID) / _GRID - drawn.centre.loss(_GRID) / _GRID, level)
    band = (np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))
    return RiskCoverage(ladder.confidence, answered / answered[-1], errors / answered, summary, n, ladder, *band)


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
