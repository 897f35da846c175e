"""The rank series on resamples of whole groups of rows, without fitting it again.

The terms phi_k stay those of the whole sample, and with them the variance V_k of a coefficient; drawing groups moves the
coefficients beta_k = mean*(phi_k r), r = y - c. Every resample chooses its number of terms as the fit does: theta_k, the sum of
beta_j^2 - V_j over j <= k, at the least of -theta_k + 2 sum V_j (the mean square of a fit without its own row exceeds theta_k
by about that sum). With m the fitted gap, a resample in which m^2 is larger by d has a sum of squares larger by 2 d, because
its terms are not orthonormal in it; one d is taken back.
"""

import numpy as np

from truecal.estimators.rank_series.basis import basis_functions
from truecal.estimators.rank_series.fit import fit_series
from truecal.estimators.resampling.cells import CELLS, cell_places, collapse_at
from truecal.estimators.resampling.grouped import GroupDraws, GroupSums
from truecal.lenses.sample import Sample
from truecal.types import Float64s


def deviations_in_groups(sample: Sample, draws: GroupDraws) -> Float64s:
    """What estimation adds to the squared error in every resample, shape (resamples,)."""
    profile = sample.profile
    places = cell_places(profile, CELLS)
    fit = fit_series(profile.once(f"{CELLS} cells", lambda rows: collapse_at(rows, places)))
    phi, gap = basis_functions(fit.basis, fit.cells)[0], fit.gap[0]
    rate = fit.rate[0]
    variance = np.cumsum(phi**2 @ (fit.cells.shares[0] * rate * (1 - rate))) / fit.cells.n[0]
    sums = GroupSums.of(sample, draws.units, places)
    held = [sums.count.sum(axis=1), sums.count @ gap**2, (sums.ones - sums.score) @ phi.T]
    drawn = draws.times @ np.column_stack(held)
    drawn[:, 1:] /= drawn[:, :1]
    theta = np.cumsum(drawn[:, 2:] ** 2, axis=1) - variance
    best = (2 * variance - theta).argmin(axis=1)
    powers = np.take_along_axis(theta, best[:, None], axis=1)[:, 0] - drawn[:, 1]
    moved: Float64s = powers - powers.mean()
    return moved
