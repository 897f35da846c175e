"""Evidence over time: for "has it ever been off?" and for "has it changed?", from what the experts won batch by batch.

A change can begin with any batch. For the first question the mixture is spread over starting times in advance (most of it evenly
over a thousand batches), and the result is one test supermartingale: it reaches 1 / alpha with probability at most alpha, ever
(Ville). For the second one the products of all starting times are added (the Shiryaev-Roberts e-detector of Shin, Ramdas and
Rinaldo 2023): the sum minus the number of batches is a supermartingale, so the mean number of batches until the sum reaches N is
at least N.

What is kept of a batch is rounded down to float32, as the state of a watch holds it: never more than was won.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truecal.types import Float64s
from truecal.watch.experts import Experts, Played, log_sum

_HORIZON = 1000  # batches over which most of the weight of starting times is spread
_FIRST, _EVENLY, _LATER = 0.1, 0.85, 0.05  # weight of a start at the first batch, within the horizon and after it


def starting_weight(batch: int) -> float:
    """Share of the evidence that is put on a change which begins with this batch (counted from 1); all together at most 1.

    >>> round(sum(starting_weight(t) for t in range(1, 100_001)), 3)
    1.0
    """
    after = batch - _HORIZON
    if after > 0:
        return _LATER / (after * (after + 1))
    return _EVENLY / _HORIZON + (_FIRST if batch == 1 else 0.0)


def unspent_weight(batch: int) -> float:
    """What starting times after this batch are still to have."""
    if batch == 0:
        return 1.0
    after = batch - _HORIZON
    return _LATER / (after + 1) if after >= 0 else _EVENLY * -after / _HORIZON + _LATER


@dataclass(frozen=True)
class Evidence:
    """Log evidence of every expert; `since` is the batch where the best product of each began."""

    batches: int
    ever: Float64s
    change: Float64s
    best: Float64s
    since: NDArray[np.int64]

    @classmethod
    def none(cls, experts: Experts) -> "Evidence":
        nothing = np.full(len(experts.prior), -np.inf)
        return cls(0, nothing, nothing, nothing, np.zeros(len(nothing), np.int64))

    def after(self, played: Played) -> "Evidence":
        """With one more batch."""
        batch, (won, entry) = self.batches + 1, played
        ever = np.logaddexp(self.ever, np.log(starting_weight(batch)) + entry) + won
        change = np.logaddexp(self.change, entry) + won
        best = np.maximum(self.best, entry) + won
        since = np.where(entry > self.best, batch, self.since)
        return Evidence(batch, rounded_down(ever), rounded_down(change), rounded_down(best), since)

    @cached_property
    def log_e(self) -> float:
        """Log of the evidence that calibration was ever off by more than the tolerance; 0 at the start."""
        return float(np.logaddexp(log_sum(self.ever), np.log(unspent_weight(self.batches))))

    @cached_property
    def log_change(self) -> float:
        """Log of the evidence for a change, summed over starting times; reaches log N once in N batches by chance, at most."""
        return float(log_sum(self.change))

    @property
    def start(self) -> int:
        """The batch (counted from 1) where the best product of all experts began: an estimate of when the change did."""
        return int(self.since[int(np.argmax(self.best))])


def rounded_down(values: Float64s) -> Float64s:
    """To the next float32."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)
