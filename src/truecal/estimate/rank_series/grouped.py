"""The rank series on resamples of whole groups of rows, without fitting it again.

With r = y - c, m the fitted gap and phi_k its terms, the squared error is the mean of 2 r m - m^2, whose first variation in the
resample is that of the mean, and the noise of the coefficients adds the sum of squares of mean*(phi_k (r - m)): what is left near
calibration, where the first vanishes. The number of terms stays the chosen one.
"""

import numpy as np

from truecal.estimate.rank_series.fit import fit_series
from truecal.estimate.resampling.cells import CELLS, cell_places, collapse
from truecal.estimate.resampling.grouped import GroupDraws, GroupSums
from truecal.lens import Sample
from truecal.types import Float64s


def deviations_in_groups(sample: Sample, draws: GroupDraws) -> Float64s:
    """What estimation adds to the squared error in every resample, shape (resamples,)."""
    profile = sample.profile
    fit = fit_series(profile.once(f"{CELLS} cells", lambda rows: collapse(rows, CELLS)))
    phi = fit.basis.functions(fit.cells)[0, : int(fit.chosen[0].sum())]
    gap = fit.beta[0, : len(phi)] @ phi
    sums = GroupSums.of(sample, draws.units, cell_places(profile, CELLS))
    residual = sums.ones - sums.score
    linear = residual @ (2 * gap) - sums.count @ gap**2
    noise = (residual - sums.count * gap) @ phi.T
    drawn = draws.times @ np.column_stack([sums.count.sum(axis=1), linear, noise])
    drawn[:, 1:] /= drawn[:, :1]
    first = drawn[:, 1]
    second = ((drawn[:, 2:] - drawn[:, 2:].mean(axis=0)) ** 2).sum(axis=1)
    moved: Float64s = first - first.mean() + second - second.mean()
    return moved
