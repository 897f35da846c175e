"""Sign flips: residuals of whole units with random signs, which have the distribution of a calibrated model.

Under calibration the residuals y - c of a unit (a cluster, a random group of rows) have mean zero however
they are correlated (wild bootstrap, Liu 1988): exact for symmetric sums, else for many units.
"""

from typing import Any

import numpy as np

from truecal import options
from truecal.profile.profile import Profile
from truecal.resampling.cells import Counted, cell_starts, collapse
from truecal.resampling.draws import NullDistribution, RedrawTest, Statistic
from truecal.types import Float64s

_SIGNS_AT_ONCE = 1 << 20  # derived: signs drawn at a time: 8 MiB


def draw_signs(flips: int, units: int, rng: np.random.Generator) -> Float64s:
    """Draw -1.0 or 1.0 for every unit with equal chances, shape (flips, units).

    >>> np.unique(draw_signs(10, 3, np.random.default_rng(0)))
    array([-1.,  1.])
    """
    return np.asarray(rng.integers(0, 2, (flips, units)) * 2.0 - 1, np.float64)


def flip_sums(sums: Any, flips: int, rng: np.random.Generator) -> Float64s:
    """Sum the rows of `sums` (units, ...), each times a random sign, `flips` times, shape (flips, ...); `sums` may be sparse.

    >>> flip_sums(np.array([[1.0], [2.0]]), 3, np.random.default_rng(0)).shape
    (3, 1)
    """
    step = max(1, _SIGNS_AT_ONCE // sums.shape[0])
    sizes = [min(step, flips - start) for start in range(0, flips, step)]
    return np.concatenate([np.asarray(draw_signs(size, sums.shape[0], rng) @ sums) for size in sizes])


def sign_flip_test(
    profile: Profile, statistic: Statistic, *, resamples: int = 999, rng: int | np.random.Generator = 0
) -> RedrawTest:
    """Test one clustered dataset for calibration by random signs of the residuals y - c of whole units.

    The statistic is a function of a Profile, large when calibration fails; it is evaluated on up to 4096 cells of scores whose
    rates are c plus the flipped residuals. Returned are the statistic and its p-value, shape (1,). Rows of weight 0 are ignored.
    """
    options.resamples(resamples)
    generator = options.generator(rng)
    assert profile.units is not None
    cells = collapse(profile)
    assert cells.weights is not None
    unit = np.unique(profile.units, return_inverse=True)[1]
    starts = cell_starts(profile, 4096)
    cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    weight = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    weighted = weight > 0
    cell = np.unique(cell[weighted], return_inverse=True)[1]
    residual = (profile.outcomes[0] - profile.scores[0].astype(np.float64)) * weight
    residual *= profile.size[0] / profile.total[0]
    from scipy.sparse import csr_array

    sums = csr_array((residual[weighted], (unit[weighted], cell)), shape=(int(unit.max()) + 1, cells.rows))
    scores, weights = cells.scores.astype(np.float64), cells.weights

    def draw(flips: int, rng: np.random.Generator) -> Float64s:
        """Compute the statistic for random signs, shape (flips,)."""
        rates: Float64s = scores + flip_sums(sums, flips, rng) / weights
        return statistic(Counted(cells.scores, rates, weights))

    observed = statistic(cells)
    p = NullDistribution(draw).p_value(float(observed[0]), resamples, generator)
    return RedrawTest(observed, np.array([p]))
