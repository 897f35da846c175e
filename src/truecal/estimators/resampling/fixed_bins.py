"""The quick bootstrap of an estimator with fixed bins: counts of zeros and ones in each bin are all that is resampled."""

from typing import Protocol

import numpy as np

from truecal.errors import InputError
from truecal.estimators.bins import Bins
from truecal.estimators.noise import debiased_gaps, over_usable
from truecal.estimators.resampling.bootstrap import Bootstrap, Method, Resampling
from truecal.estimators.resampling.draws import multinomial
from truecal.estimators.resampling.redraw import REDRAWS, redraw
from truecal.estimators.signs import SignCells
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s


class _Binned(Resampling, Protocol):
    """What is asked of the estimator."""

    def of_bins(self, bins: Bins) -> Float64s: ...


def in_fixed_bins(
    estimator: _Binned,
    profile: Profile,
    cut: Cut,
    *,
    resamples: int,
    level: float,
    method: Method,
    rng: np.random.Generator,
) -> Bootstrap:
    """The estimate and estimates on resamples of its bins, as powers; what estimation adds to the truth; p of calibration.

    Zeros and ones of each bin are drawn together, each with its own mean score; the spread of scores within them, which only
    moves a bin's mean score a little, is added as a normal.

    A mean absolute error is corrected bin by bin (Kumar et al., as in :class:`DebiasedECE`), because a correction for all bins
    together scatters less than the bias it removes: near gaps of zero the bias moves against the estimate.
    """
    power = float(estimator.find(profile).power[0])
    weight, score, one, square, product = (
        np.diff(profile.sums(name, cut), axis=1)[0] for name in ("w", "c", "y", "cc", "cy")
    )
    filled = weight > 0
    if not filled.any():
        raise InputError("no row lies in any bin of the estimator: nothing is judged; lower its threshold")
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
    safe = positive(count)
    mean = (zeros * of_zeros + ones * of_ones) / safe
    mean += rng.standard_normal(mean.shape) * np.sqrt(within / safe)
    drawn = _bins(mean, ones / safe, count)
    powers = estimator.of_bins(drawn)
    signs = None
    if estimator.folds:
        corrected = over_usable(drawn, debiased_gaps(drawn, 1), 1)[0]
        as_found = _bins(middle[None], (one / weight)[None], weight[None])
        signs = SignCells.of_bins(as_found).bounds()
        deviations = corrected - corrected.mean() + power - over_usable(as_found, debiased_gaps(as_found, 1), 1)[0][0]
    elif estimator.corrected:
        deviations = powers - powers.mean()
    else:
        total = zero + soft
        drawn_from = _bins(((zero * of_zeros + soft * of_ones) / total)[None], (soft / total)[None], weight[None])
        deviations = powers - estimator.of_bins(drawn_from)[0]
    surplus = redraw(weight, middle, np.maximum(score - square, 0.0), REDRAWS, rng)
    calibrated = _bins(middle[None], (surplus + score) / weight, weight[None])
    reached = np.count_nonzero(estimator.of_bins(calibrated) >= power * (1 - 1e-12))
    p = (1 + reached) / (1 + REDRAWS)
    return Bootstrap(estimator, power, powers, deviations, level, method, "rows", p, signs=signs)


def _bins(score: Float64s, rate: Float64s, count: Float64s) -> Bins:
    """Bins of whole rows from their means; the mean score or the count may be shared by all datasets."""
    shape = np.broadcast_shapes(score.shape, rate.shape, count.shape)
    weight = np.broadcast_to(count, shape)
    return Bins(weight, score * weight, rate * weight, weight, single=False)
