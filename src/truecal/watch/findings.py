"""What an alarm is about: the region of scores that is off the most, its direction, and whether an offset would correct it.

These are descriptions of the rows since the estimated start of the change, not tests: the alarm itself is the test.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truecal.types import Float64s
from truecal.watch.experts import Experts, log_odds

Advice = Literal["wait", "offset suffices", "refit"]

_UNLIKELY = 0.01  # what an offset leaves over is called a misfit at this p-value
_STEPS = 50


@dataclass(frozen=True)
class Region:
    """Scores from `low` to `high`, with what was predicted and what happened; error = mean score - frequency."""

    low: float
    high: float
    rows: int
    mean_score: float
    frequency: float

    @property
    def error(self) -> float:
        return self.mean_score - self.frequency

    @property
    def direction(self) -> str:
        return "overconfident" if self.error > 0 else "underconfident"

    def __str__(self) -> str:
        where = "all scores" if (self.low, self.high) == (0.0, 1.0) else f"scores {self.low:.4g} to {self.high:.4g}"
        return f"{where}: {self.direction} by {abs(self.error):.4f} (mean {self.mean_score:.4f}, came true {self.frequency:.4f})"


def worst_region(sums: Float64s, experts: Experts) -> Region:
    """The run of bins whose error beyond the tolerance is largest beside its standard error."""
    n, ones, scores = np.concatenate([np.zeros((3, 1)), np.cumsum(sums, axis=1)], axis=1)
    rate = np.where(sums[0] > 0, sums[2] / np.maximum(sums[0], 1), 0.5)
    noise = np.concatenate([[0.0], np.cumsum(np.maximum(sums[0] * rate * (1 - rate), 0.0))])
    first, last = np.triu_indices(sums.shape[1] + 1, k=1)
    rows = n[last] - n[first]
    beyond = np.abs(scores[last] - scores[first] - ones[last] + ones[first]) - experts.tolerance * rows
    strength = np.where(rows > 0, beyond / np.sqrt(noise[last] - noise[first] + 1.0), -np.inf)
    best = int(np.argmax(strength))
    i, j = int(first[best]), int(last[best])
    ends = (0.0, *experts.cuts, 1.0)
    return Region(
        low=ends[i],
        high=ends[j],
        rows=round(float(rows[best])),
        mean_score=float((scores[j] - scores[i]) / rows[best]),
        frequency=float((ones[j] - ones[i]) / rows[best]),
    )


def fitted_offset(sums: Float64s) -> float:
    """The offset in log odds that makes the mean score of all rows equal to their frequency (maximum likelihood).

    Rows that all came true, or none of them, have no finite one; half a row of either outcome is added.
    """
    n, ones, scores = (part[sums[0] > 0] for part in sums)
    before, size = log_odds(scores / n), n.sum()
    rate = (ones.sum() + 0.5) / (size + 1.0)
    low, high = -20.0, 20.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (n @ (1 / (1 + np.exp(-before - middle)))) / size < rate:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def advice(sums: Float64s, experts: Experts, *, alarmed: bool) -> tuple[Advice, float]:
    """What to do, and the offset in log odds that fits the rows since the change.

    Without an alarm: wait. Otherwise the offset is fitted, and the bins are asked whether it leaves an error beyond the tolerance
    (a chi-squared statistic of what is left beyond it): if so the curve has changed its shape, and a refit is needed.
    """
    offset = fitted_offset(sums)
    if not alarmed:
        return "wait", offset
    from scipy.stats import chi2

    n, ones, scores = (part[sums[0] > 0] for part in sums)
    expected = 1 / (1 + np.exp(-log_odds(scores / n) - offset))
    left = np.maximum(np.abs(ones - n * expected) - experts.tolerance * n, 0.0)
    statistic = float(np.sum(left**2 / np.maximum(n * expected * (1 - expected), 1.0)))
    misfit = len(n) > 1 and float(chi2.sf(statistic, len(n) - 1)) < _UNLIKELY
    return ("refit" if misfit else "offset suffices"), offset
