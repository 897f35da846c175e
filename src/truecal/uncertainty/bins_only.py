"""The quick bootstrap of an estimator with fixed bins: counts of zeros and ones in each bin are all that is resampled."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from truecal.estimate import BinnedECE, DebiasedECE, Estimator
from truecal.estimate.redraw import redraw
from truecal.profile import Cut, Profile
from truecal.types import Float64s
from truecal.uncertainty.cells import Counted
from truecal.uncertainty.resample import multinomial


class BinProfile(Counted):
    """One row per bin: its cuts are made already, whatever an estimator asks for."""

    def width_cut(self, bins: int | Sequence[int], closed: Literal["left", "right"] = "left") -> Cut:
        return self._between_rows()

    def mass_cut(self, bins: int | Sequence[int], ties: Literal["keep", "split"] = "keep") -> Cut:
        return self._between_rows()

    def _between_rows(self) -> Cut:
        place = np.arange(self.rows + 1)[None, :]
        return Cut(place, place)


def bins_only(estimator: Estimator) -> bool:
    """Whether the estimate depends on counts, mean scores and outcome rates of fixed bins alone."""
    if isinstance(estimator, DebiasedECE):
        return estimator.correction == "kumar" or estimator.norm == 1
    return isinstance(estimator, BinnedECE)


def resampled_bins(
    estimator: Estimator, profile: Profile, resamples: int, rng: np.random.Generator
) -> tuple[float, Float64s, float, float]:
    """The estimate, estimates on resamples of its bins and the error these were drawn from, all as powers; p of calibration.

    Zeros and ones of each bin are drawn together, each with its own mean score; the spread of scores within them, which only
    moves a bin's mean score a little, is added as a normal.
    """
    assert isinstance(estimator, (BinnedECE, DebiasedECE))
    found = estimator.find(profile)
    assert found.bins is not None
    binning = estimator.binning if isinstance(estimator, BinnedECE) else estimator.binning(found.bins.weight.shape[1])
    cut = binning.cut(profile)
    weight, score, one, square, product = (
        np.diff(profile.sums(name, cut), axis=1)[0] for name in ("w", "c", "y", "cc", "cy")
    )
    filled = weight > 0
    weight, score, one, square, product = (a[filled] for a in (weight, score, one, square, product))
    n = max(1, round(float(profile.size[0])))
    weight, score, one, square, product = (a * n / weight.sum() for a in (weight, score, one, square, product))
    share, middle = weight / n, score / weight
    zero = (
        np.maximum(weight - one, 0.0) + share
    )  # one more zero and one more one, shared out like the rows: see `soften`
    soft = one + share
    of_ones = (product + share * middle) / soft
    of_zeros = (score - product + share * middle) / zero
    within = np.maximum(square - one * of_ones**2 - (weight - one) * of_zeros**2, 0.0) / weight
    counts = multinomial(np.concatenate([zero, soft]), n, resamples, rng)
    zeros, ones = counts[:, : len(weight)], counts[:, len(weight) :]
    count = zeros + ones
    safe = np.where(count > 0, count, 1.0)
    mean = (zeros * of_zeros + ones * of_ones) / safe
    mean += rng.standard_normal(mean.shape) * np.sqrt(within / safe)
    powers = estimator.find(BinProfile(mean, ones / safe, count)).power
    spread_out = zero + soft
    drawn_from = BinProfile(
        ((zero * of_zeros + soft * of_ones) / spread_out)[None], (soft / spread_out)[None], weight[None]
    )
    truth = float(estimator.find(drawn_from).power[0])
    surplus = redraw(weight, middle, np.maximum(score - square, 0.0), resamples, rng)
    calibrated = BinProfile(middle[None], (surplus + score) / weight, weight[None])
    reached = np.count_nonzero(estimator.find(calibrated).power >= found.power[0] * (1 - 1e-12))
    return float(found.power[0]), powers, truth, (1 + reached) / (1 + resamples)
