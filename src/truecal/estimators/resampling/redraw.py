"""Outcomes redrawn from the scores: what data of a perfectly calibrated model would look like; and p-values from that."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truecal import options
from truecal.estimators.resampling.cells import Counted, alike, cell_places, collapse, profile_of
from truecal.profile.profile import Profile
from truecal.types import Float64s

_NORMAL_FROM = 25.0  # a cell whose number of ones has a variance above this is drawn as a normal
_ROWS_AT_ONCE = 1 << 20  # resampled cells held at a time (a few arrays of 8 MiB)
_RELATIVE = 1e-12  # statistics that agree to rounding count as equal
REDRAWS = 199  # outcomes redrawn to ask whether an estimate is compatible with calibration
Statistic = Callable[[Profile], Float64s]


def redraw(count: Float64s, score: Float64s, variance: Float64s, resamples: int, rng: np.random.Generator) -> Float64s:
    """Surplus of ones over the expected number in every cell when outcomes follow the scores, shape (resamples, cells).

    `count` rows of mean `score` in each cell; `variance` is that of their number of ones, sum c (1 - c). Single rows are
    Bernoulli, cells of large variance normal, all others binomial. Under importance weights a cell of fractional size n stands
    for rint(n) rows, scaled.
    """
    if (count == 1).all():
        return (rng.random((resamples, len(count))) < score) - score
    drawn = np.empty((len(count), resamples))
    many = variance > _NORMAL_FROM
    drawn[many] = rng.standard_normal((int(many.sum()), resamples)) * np.sqrt(variance[many])[:, None]
    whole = np.rint(count).astype(np.int64)
    for cell in np.flatnonzero(~many):  # one call per cell: its sampler is set up once, not once per draw
        n, c = int(whole[cell]), min(max(float(score[cell]), 0.0), 1.0)  # a mean of scores may round past 1
        scale = float(count[cell]) / n if n else 0.0
        drawn[cell] = scale * (rng.binomial(n, c, resamples) - n * c)
    return drawn.T


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A statistic of every dataset, and how probable one as large is when outcomes follow the scores; arrays of shape (batch,)."""

    statistic: Float64s
    p_value: Float64s


def against_redraws(
    profile: Profile, statistic: Statistic, *, resamples: int = 999, rng: int | np.random.Generator = 0
) -> Redrawn:
    """Compare a statistic with its distribution when outcomes are redrawn from the scores: y* ~ Bernoulli(c), scores kept.

    p = (1 + number of redraws that reach the statistic) / (1 + resamples): valid at any n, ties or not. Datasets of a batch that
    share their scores share the redraws. A statistic is a function of a Profile, large when calibration fails; it sees
    one row per distinct score (above 4096 of them: per cell of neighbouring scores).
    """
    options.resamples(resamples)
    generator = options.generator(rng)
    statistics, p = np.empty(profile.batch), np.empty(profile.batch)
    for place, part in alike(profile):
        cells = collapse(part)
        statistics[place] = statistic(cells)
        reference = np.concatenate([statistic(fake) for fake in redrawn(cells, resamples, generator)])
        reference.sort()
        least = statistics[place] - _RELATIVE * np.minimum(np.abs(statistics[place]), np.finfo(float).max)
        p[place] = (1 + resamples - np.searchsorted(reference, least)) / (1 + resamples)
    return Redrawn(statistics, p)


def redrawn(cells: Profile, resamples: int, generator: np.random.Generator) -> list[Profile]:
    """Batches of datasets with the scores of `cells` and outcomes drawn from them."""
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    step = max(1, _ROWS_AT_ONCE // len(count))
    parts = []
    for start in range(0, resamples, step):
        surplus = redraw(count, score, count * score * (1 - score), min(step, resamples - start), generator)
        # Only the normal stand-in of large cells can leave the range
        ones = np.clip(surplus + count * score, 0.0, count)
        parts.append(profile_of(cells, count - ones, ones))
    return parts


def against_signs(
    profile: Profile, statistic: Statistic, *, resamples: int = 999, rng: int | np.random.Generator = 0
) -> Redrawn:
    """Compare a statistic with its distribution when the residuals y - c of whole units change sign (Liu 1988).

    Under calibration the residuals of a unit have mean zero whatever their correlation, so a turned unit is as probable as the one
    seen. For profiles that know their units; exact for symmetric residuals, else for many units.
    """
    options.resamples(resamples)
    generator = options.generator(rng)
    assert profile.units is not None
    cells = collapse(profile)
    assert cells.weights is not None
    unit = np.unique(profile.units, return_inverse=True)[1]
    count = int(unit.max()) + 1
    places = cell_places(profile, 4096)
    weight = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    residual = (profile.outcomes[0] - profile.scores[0].astype(np.float64)) * weight
    residual *= profile.size[0] / profile.total[0]
    cell = np.repeat(np.arange(len(places) - 1), np.diff(places))
    kept = np.unique(cell[weight > 0], return_inverse=True)[1] if (weight == 0).any() else cell
    from scipy.sparse import csr_array

    inside = weight > 0
    matrix = csr_array((residual[inside], (kept, unit[inside])), shape=(cells.rows, count))
    score = cells.scores.astype(np.float64)
    seen = float(statistic(cells)[0])
    reached, step = 0, max(1, _ROWS_AT_ONCE // max(cells.rows, count))
    for start in range(0, resamples, step):
        signs = generator.integers(0, 2, (count, min(step, resamples - start))) * 2.0 - 1
        turned = Counted(cells.scores, score + (matrix @ signs).T / cells.weights, cells.weights)
        reached += int(np.count_nonzero(statistic(turned) >= seen - _RELATIVE * min(abs(seen), np.finfo(float).max)))
    return Redrawn(np.array([seen]), np.array([(1 + reached) / (1 + resamples)]))
