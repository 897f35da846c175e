"""How much of a binned calibration error is chance: the exact bias of the squared gap of a bin (Minderer et al. 2021, eq. 5)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

import truecal as tc
from truecal import estimate as estimators
from truecal import options
from truecal.estimate import Bins, resampling
from truecal.types import Float64s


@dataclass(frozen=True, eq=False)
class BinBias:
    """The bias of every bin with at least two rows, and of the squared error they add up to.

    bias = (V[A] + V[C] - 2 Cov[C, A]) / count, with A the outcome and C the confidence within the bin, as unbiased sample moments.
    """

    count: Float64s
    share: Float64s  # of all rows, in each bin
    outcome_variance: Float64s
    confidence_variance: Float64s
    covariance: Float64s

    @property
    def bias(self) -> Float64s:
        """By how much the squared gap of each bin is too large on average."""
        return (self.outcome_variance + self.confidence_variance - 2 * self.covariance) / self.count

    @property
    def total(self) -> float:
        """By how much the squared (norm 2) binned error is too large on average."""
        return float((self.share * self.bias).sum())


def bin_bias(profile: tc.Profile, *, bins: int = 100, scheme: Literal["width", "mass"] = "mass") -> BinBias:
    """The bias of the plug-in squared gap, bin by bin, from the prefix sums of a profile.

    It depends on accuracy twice over: outcomes of an accurate model vary less, and go with its confidence more. Hence models of
    different accuracy differ in their many-bin error even where their calibration is the same.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(10_000)
    >>> found = tc.study.bin_bias(tc.Profile.from_arrays(c, rng.random(10_000) < c), bins=100)
    >>> round(found.total, 4)  # a calibrated model: 100 bins / 10,000 rows * E[C (1 - C)] = 0.01 / 6
    0.0017
    """
    options.bins(bins)
    resampling.refuse_batch(profile)
    binning = estimators.Binning(bins, scheme, "keep", "left")
    binning.check()
    cut = binning.cut(profile)
    contents = Bins.of(profile, cut)
    squares, products = (np.diff(profile.sums(name, cut), axis=1)[0] for name in ("cc", "cy"))
    weight, outcome, score = (
        contents.safe[0],
        contents.outcome_sum[0] / contents.safe[0],
        contents.score_sum[0] / contents.safe[0],
    )
    count = contents.count[0]
    usable = count >= 2
    stretch = count[usable] / (count[usable] - 1)  # sample moments, not those of the rows at hand

    def moment(mean_product: Float64s, a: Float64s, b: Float64s) -> Float64s:
        return stretch * (mean_product - a * b)[usable]

    return BinBias(
        count[usable],
        contents.share[0][usable],
        np.maximum(moment(outcome, outcome, outcome), 0.0),
        np.maximum(moment(squares / weight, score, score), 0.0),
        moment(products / weight, score, outcome),
    )


def squared_bias(power: Float64s, mean_square: Float64s, n: Float64s, bins: Float64s) -> Float64s:
    """The same total for equal-mass bins, from numbers that a store keeps.

    `power` is the squared binned error, `mean_square` the mean of (A - C)^2 over all rows (the Brier score of the confidence).
    Every bin holds n / bins rows, and within bins (A - C)^2 has what the gaps leave of its mean, so that the total is
    (mean_square - power) / (n / bins - 1).

    >>> float(squared_bias(np.array(0.002), np.array(0.152), np.array(1000.0), np.array(100.0)).round(6))
    0.016667
    """
    return (mean_square - power) / (n / bins - 1)
