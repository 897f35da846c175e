"""What noise adds to a mean absolute error over bins, when many bins are judged together.

|gap + noise| is larger than |gap| on average, the more so the smaller the gap. The size of the gaps is not known bin by bin where
bins hold few rows, but over all bins of all datasets it is: the mean square of the gaps has an unbiased estimate. So every bin is
taken to have a gap of that size.
"""

from collections.abc import Sequence

import numpy as np

from truecal.estimators.bins import Bins
from truecal.estimators.noise import folded_mean
from truecal.estimators.signs import SignBounds, SignCells
from truecal.types import Float64s

_AT_ONCE = 1 << 15  # bins of resamples corrected at a time: what stays in cache


class Folded:
    """Collects the bins of datasets one by one, then corrects the estimate and its resamples."""

    def __init__(self, resamples: int) -> None:
        self._weights: list[Float64s] = []
        self._variances: list[Float64s] = []
        self._shares: list[float] = []
        self._signs: list[SignBounds] = []
        self._square = 0.0  # mean square of the gaps as found
        self._squares = np.zeros(resamples)  # the same in every resample

    def add(self, share: float, bins: Bins, squares: Float64s, drawn: Sequence[Bins] = ()) -> None:
        """One dataset of the given share: its bins, and the mean squares of the gaps of its resamples (`mean_square`).

        `drawn`: the resamples themselves, where outcomes of one unit are correlated: they tell how much.
        """
        filled = bins.weight[0] > 0
        weight, gap, n = bins.share[0, filled], bins.gap[0, filled], bins.count[0, filled]
        score = bins.score_sum[0, filled] / bins.weight[0, filled]
        rate = (n * bins.rate[0, filled] + score) / (n + 1)  # one row more, as the scores say
        variance = rate * (1 - rate) / (1 - n / (n + 1) ** 2) / n  # the former is too small by this factor
        alike = _shared(weight, variance, filled, drawn) if drawn else 1.0
        variance = variance * alike
        self._shares.append(share)
        self._signs.append(SignCells.of_bins(bins, alike).bounds().scale_variance(alike))
        self._weights.append(share * weight)
        self._variances.append(variance)
        self._square += share * float(weight @ gap**2)
        self._squares += share * squares

    def signs(self) -> SignBounds:
        """What left-out signs say of all datasets."""
        return SignBounds.combine(self._signs, np.array(self._shares))

    def deviations(self, powers: Float64s) -> Float64s:
        """What estimation adds to the truth in every resample, given their plain estimates."""
        weight, variance = np.concatenate(self._weights), np.concatenate(self._variances)
        size = self._square - float(weight @ variance)  # mean square of the true gaps
        moved = self._squares - self._squares.mean()
        squares = np.concatenate([[size], size + moved])
        step = max(1, _AT_ONCE // len(weight))
        bias = [_bias(squares[i : i + step], weight, variance) for i in range(0, len(squares), step)]
        found, drawn = bias[0][0], np.concatenate(bias)[1:]
        corrected = powers - drawn
        return np.asarray(corrected - corrected.mean() + found)


def mean_square(bins: Bins) -> Float64s:
    """That of the gaps of every dataset."""
    mean: Float64s = (bins.share * bins.gap**2).sum(axis=1)
    return mean


def _bias(squares: Float64s, weight: Float64s, variance: Float64s) -> Float64s:
    """Of a mean of absolute gaps whose mean square is each of these."""
    gap = np.sqrt(np.maximum(squares, 0.0) / weight.sum())[:, None]
    return np.vecdot(folded_mean(gap, variance) - gap, weight)


def _shared(weight: Float64s, variance: Float64s, filled: object, drawn: Sequence[Bins]) -> float:
    """How many times the variance of independent rows the gaps have when units are drawn; at least 1."""
    gaps = np.concatenate([part.gap[:, filled] for part in drawn])  # type: ignore[index]
    alone = float(weight**2 @ variance)
    return max(1.0, float(weight**2 @ gaps.var(axis=0)) / alone) if alone > 0 else 1.0
