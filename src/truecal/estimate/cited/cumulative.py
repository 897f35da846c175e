"""Errors of cumulative differences: no bins, no bandwidth. The cutoff error (ECCE-R, Kuiper) and the KS error (ECCE-MAD)."""

from dataclasses import dataclass

import numpy as np

from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.profile import CellProfile, Profile
from truecal.types import Float64s


def walks(profile: Profile) -> Float64s:
    """The sum of y - c over the k lowest scores over n, shape (batch, rows + 1); NaN inside groups of equal scores."""
    shape = (profile.batch, profile.rows + 1)
    surplus = np.broadcast_to(profile.prefix("y") - profile.prefix("c"), shape) / profile.total[:, None]
    scores = np.broadcast_to(profile.scores, (profile.batch, profile.rows))
    surplus[:, 1:-1][scores[:, 1:] == scores[:, :-1]] = np.nan
    return surplus


@dataclass(frozen=True)
class _CumulativeError(Estimator):
    """What both have in common."""

    @property
    def power_norm(self) -> float:
        return 1.0

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        # The walk is exact at the ends of cells; inside one it can leave the line between them by the cell's share, up or down.
        mass = cells.sums("w", cells.at_count(np.arange(cells.rows + 1)[None, :]))
        most = float(np.diff(mass, axis=1).max() / cells.total[0])
        value = float(estimate.value)
        return SketchRange(max(value - cells.rounding, 0.0), min(value + 2 * most + cells.rounding, 1.0))


@dataclass(frozen=True)
class CutoffError(_CumulativeError):
    r"""sup over intervals I of |E[(y - c) 1(c in I)]| = max_k F_k - min_k F_k, F_k = 1/n sum over the k lowest scores of (y - c).

    The cutoff calibration error of Rossellini et al. (2025); ECCE-R of Arrieta-Ibarra et al. (2022), after Kuiper. It says how
    wrong the expected count of events can be in the worst range of scores, as a share of all rows. It needs no bins, is estimated
    at the rate 1/sqrt(n) whatever the curve, and is small when errors alternate in sign over short ranges: it bounds decisions that
    cut the scores at thresholds, not the mean distance to the truth.

    The plug-in of a calibrated model is about 1.6 s / sqrt(n), s^2 = mean c (1 - c) (the range of a Brownian motion); the interval
    resamples rows and reaches down to 0 unless calibration is rejected. :func:`truecal.uncertainty.kuiper` is the test.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.2, 0.5, 0.5, 0.9], [0, 1, 0, 1])  # F = 0, -0.05, -0.05, -0.025
    >>> round(tc.CutoffError()(profile).value, 6)
    0.05
    """

    @property
    def metric(self) -> str:
        return "cutoff calibration error"

    def find(self, profile: Profile) -> Findings:
        surplus = walks(profile)
        return Findings(np.nanmax(surplus, axis=1) - np.nanmin(surplus, axis=1))


@dataclass(frozen=True)
class KSError(_CumulativeError):
    r"""max_k |F_k|, F_k = 1/n sum over the k lowest scores of (y - c): the largest distance between cumulative outcomes and scores.

    The KS calibration error of Gupta et al. (2021), "Calibration of neural networks using splines"; ECCE-MAD of Arrieta-Ibarra et
    al. (2022). At most :class:`CutoffError` and at least half of it. Like it small when errors alternate in sign, and biased
    upwards for calibrated models; the interval resamples rows.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.2, 0.6, 0.9], [0, 1, 1])  # F = -0.2/3, 0.2/3, 0.3/3
    >>> round(tc.KSError()(profile).value, 6)
    0.1
    """

    @property
    def metric(self) -> str:
        return "Kolmogorov-Smirnov calibration error"

    def find(self, profile: Profile) -> Findings:
        return Findings(np.nanmax(np.abs(walks(profile)), axis=1))
