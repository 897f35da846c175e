"""Bins whose true frequency has a confidence interval that holds for every distribution and every sample size.

Edges taken from the rows that are counted make the counts of a bin depend on its edges. They are independent given the
edges if the edges are order statistics of fixed ranks and the rows that lie on them are left out (Gupta and Ramdas 2021,
uniform-mass double dipping): the rows strictly between two order statistics are then independent draws from the scores
between them. A score that is an edge and occurs several times is a bin of its own; its rows are all alike.

Each bin's count of positive outcomes is then binomial, and Clopper and Pearson's interval at 1 - alpha / (number of bins)
covers all bins at once with probability at least 1 - alpha. No normal approximation, no smoothness.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.recalibrate.methods.scores.steps import StepMap
from truecal.types import Float64s


@dataclass(frozen=True, eq=False)
class CountedSteps(StepMap):
    """Steps that know how many rows, and how many positive ones, each bin's value rests on."""

    rows: Float64s
    positive: Float64s

    def interval(self, scores: Float64s, alpha: float) -> tuple[Float64s, Float64s]:
        """The interval of the bin of each score, at 1 - alpha for a single bin."""
        low, high = clopper_pearson(self.positive, self.rows, alpha)
        at = np.searchsorted(self.edges, scores, side="right")
        return low[at], high[at]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "rows": self.rows.tolist(), "positive": self.positive.tolist()}


def fit_between_order_statistics(scores: Float64s, outcomes: Float64s, weights: Float64s, bins: int) -> CountedSteps:
    """At least `bins` bins of nearly equal numbers of rows (atoms on an edge are further bins)."""
    if (weights != 1).any():
        raise InputError(
            'scheme="guaranteed" counts independent rows and takes no weights; use scheme="mass" or plain rows'
        )
    n = len(scores)
    if n < 2 * bins:
        raise InputError(f"{n} rows cannot fill {bins} bins with a guarantee; use at most bins={max(n // 2, 1)}")
    ordered = np.sort(scores)
    rank = np.rint(np.arange(1, bins) * (n + 1) / bins).astype(np.intp)
    at = np.unique(ordered[rank - 1])
    copies = np.searchsorted(ordered, at, side="right") - np.searchsorted(ordered, at, side="left")
    atoms = at[copies > 1]
    edges = np.unique(np.r_[at, np.nextafter(atoms, np.inf)])
    # nothing lies above the largest score
    edges = edges[edges <= ordered[-1]]
    kept = ~np.isin(scores, at[copies == 1])
    return counted(edges, scores[kept], outcomes[kept])


def counted(edges: Float64s, scores: Float64s, outcomes: Float64s) -> CountedSteps:
    """Mean outcomes and counts of the bins between edges; a bin without rows takes the mean of all."""
    bin_of = np.searchsorted(edges, scores, side="right")
    rows = np.bincount(bin_of, minlength=len(edges) + 1).astype(np.float64)
    positive = np.bincount(bin_of, outcomes, len(edges) + 1).astype(np.float64)
    mean = float(outcomes.mean()) if len(outcomes) else 0.5
    return CountedSteps(edges, np.where(rows > 0, positive / np.maximum(rows, 1), mean), rows, positive)


def clopper_pearson(positive: Float64s, rows: Float64s, alpha: float) -> tuple[Float64s, Float64s]:
    """Exact two-sided binomial interval at 1 - alpha; [0, 1] without rows."""
    from scipy.special import betaincinv

    negative = rows - positive
    low = np.where(positive > 0, betaincinv(np.maximum(positive, 1), negative + 1, alpha / 2), 0.0)
    high = np.where(negative > 0, betaincinv(positive + 1, np.maximum(negative, 1), 1 - alpha / 2), 1.0)
    return low, high
