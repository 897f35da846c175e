"""The KS error (ECCE-MAD), of cumulative differences: no bins, no bandwidth."""

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
class KSError(Estimator):
    r"""max_k |F_k|, F_k = 1/n sum over the k lowest scores of (y - c): the largest distance between cumulative outcomes and scores.

    The KS calibration error of Gupta et al. (2021), "Calibration of neural networks using splines"; ECCE-MAD of Arrieta-Ibarra et
    al. (2022). It needs no bins and no bandwidth, is small when errors alternate in sign over short ranges, and is biased upwards
    for calibrated models; the interval resamples rows. :func:`truecal.uncertainty.kuiper` is the test.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.2, 0.6, 0.9], [0, 1, 1])  # F = -0.2/3, 0.2/3, 0.3/3
    >>> round(tc.KSError()(profile).value, 6)
    0.1
    """

    @property
    def power_norm(self) -> float:
        return 1.0

    @property
    def metric(self) -> str:
        return "Kolmogorov-Smirnov calibration error"

    def find(self, profile: Profile) -> Findings:
        return Findings(np.nanmax(np.abs(walks(profile)), axis=1))

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        # The walk is exact at the ends of cells; inside one it can leave the line between them by the cell's share, up or down.
        mass = cells.sums("w", cells.at_count(np.arange(cells.rows + 1)[None, :]))
        most = float(np.diff(mass, axis=1).max() / cells.total[0])
        value = float(estimate.value)
        return SketchRange(max(value - cells.rounding, 0.0), min(value + 2 * most + cells.rounding, 1.0))
