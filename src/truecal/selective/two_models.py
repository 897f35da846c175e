"""Which of two models is cheaper when both may abstain? (Minderer et al. 2021, Figure 7)"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.frame import Frame
from truecal.lens import Lens
from truecal.selective.ladder import Ladder
from truecal.selective.resampled import bounds, check_share, draw
from truecal.types import Float64s

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
