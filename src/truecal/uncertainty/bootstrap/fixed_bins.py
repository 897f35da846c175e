"""The quick bootstrap of an estimator with fixed bins: counts of zeros and ones in each bin are all that is resampled."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from truecal.estimate import BinnedECE, DebiasedECE, Estimator, RankSeries
from truecal.estimate.redraw import redraw
from truecal.profile import Cut, Profile
from truecal.types import Float64s, Indices
from truecal.uncertainty.bootstrap.cells import Counted
from truecal.uncertainty.bootstrap.draws import multinomial

REDRAWS = 199  # outcomes redrawn to ask whether an estimate is compatible with calibration


class BinProfile(Counted):
    """One row per bin: its cuts are made already, whatever an estimator asks for."""

    def width_cut(self, bins: int | Sequence[int] | Indices, closed: Literal["left", "right"] = "left") -> Cut:
        return self._between_rows()

    def mass_cut(self, bins: int | Sequence[int] | Indices, ties: Literal["keep", "split"] = "keep") -> Cut:
        return self._between_rows()

    def _between_rows(self) -> Cut:
        place = np.arange(self.rows + 1)[None, :]
        return Cut(place, place)


def bins_only(estimator: Estimator) -> bool:
    """Whether the estimate depends on counts, mean scores and outcome rates of fixed bins alone."""
    if isinstance(estimator, DebiasedECE):
        return estimator.correction == "kumar" or estimator.norm == 1
    return isinstance(estimator, BinnedECE)


def is_unbiased(estimator: Estimator) -> bool:
    """Whether the estimate of the power is free of bias: near zero it needs no help of a test."""
    return isinstance(estimator, (DebiasedECE, RankSeries)) and estimator.power_norm == 2


def resampled_bins(
    estimator: Estimator, profile: Profile, resamples: int, rng: np.random.Generator
) -> tuple[float, Float64s, Float64s, float]:
    """The estimate and estimates on resamples of its bins, as powers; what estimation adds to the truth; p of calibration.

    Zeros and ones of each bin are drawn together, each with its own mean score; the spread of scores within them, which only
    moves a bin's mean score a little, is added as a normal.

    A mean absolute error is corrected bin by bin (Kumar et al., as in :class:`DebiasedECE`), because a correction for all bins
    together scatters less than the bias it removes: near gaps of zero the bias moves against the estimate.
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
    share = weight / n
    middle = np.clip(score / weight, 0.0, 1.0)  # a difference of prefix sums may pass its bin in the last bit
    zero, soft = np.maximum(weight - one, 0.0) + share, one + share  # one more of each: see `soften`
    of_ones = (product + share * middle) / soft
    of_zeros = (score - product + share * middle) / zero
    within = np.maximum(square - one * of_ones**2 - (weight - one) * of_zeros**2, 0.0) / weight
    counts = multinomial(np.concatenate([zero, soft]), n, resamples, rng)
    zeros, ones = counts[:, : len(weight)], counts[:, len(weight) :]
    count = zeros + ones
    safe = np.where(count > 0, count, 1.0)
    mean = (zeros * of_zeros + ones * of_ones) / safe
    mean += rng.standard_normal(mean.shape) * np.sqrt(within / safe)
    drawn = BinProfile(mean, ones / safe, count)
    powers = estimator.find(drawn).power
    power = float(found.power[0])
    if isinstance(estimator, BinnedECE) and estimator.norm == 1:
        corrector = DebiasedECE(norm=1)
        corrected = corrector.find(drawn).power
        as_found = BinProfile(middle[None], (one / weight)[None], weight[None])
        deviations = corrected - corrected.mean() + power - corrector.find(as_found).power[0]
    elif isinstance(estimator, DebiasedECE):
        deviations = powers - powers.mean()
    else:
        total = zero + soft
        drawn_from = BinProfile(((zero * of_zeros + soft * of_ones) / total)[None], (soft / total)[None], weight[None])
        deviations = powers - estimator.find(drawn_from).power[0]
    surplus = redraw(weight, middle, np.maximum(score - square, 0.0), REDRAWS, rng)
    calibrated = BinProfile(middle[None], (surplus + score) / weight, weight[None])
    reached = np.count_nonzero(estimator.find(calibrated).power >= power * (1 - 1e-12))
    return power, powers, deviations, (1 + reached) / (1 + REDRAWS)
