"""Resamples of whole groups of rows, the same for all models on the same rows.

What every group holds in every cell of scores is summed once; drawing groups is a product of small matrices after that. Independent
rows go to groups at random, which leaves the distribution of sums as it is.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truecal.estimators.bins import Bins
from truecal.estimators.resampling.bootstrap import Bootstrap, Resampling
from truecal.estimators.resampling.folded import Folded, mean_square
from truecal.estimators.resampling.units import Units, one_sided
from truecal.lenses.sample import Sample
from truecal.profile.binning import Cut
from truecal.special import positive
from truecal.types import Float64s, Indices


@dataclass(frozen=True, eq=False)
class GroupDraws:
    """Groups of independent rows, how often each is drawn, and signs of the residuals of whole groups.

    `times` has two columns more than there are groups, for a zero and a one that are made up and shared out like the rows: they
    keep resamples of a model that is always right from being all alike.
    """

    units: Units
    times: Float64s  # (resamples, groups + 2)
    turns: Float64s  # (redraws, groups), -1 or 1


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Rows, sums of scores and ones of every group in every cell of scores, shape (groups + 2, cells)."""

    count: Float64s
    score: Float64s
    ones: Float64s

    @classmethod
    def of(cls, sample: Sample, units: Units, places: Indices) -> "GroupSums":
        """`places`: where in the sorted rows the cells begin, and where the last one ends; equal scores share a cell."""
        profile, groups = sample.profile, units.count
        cells = len(places) - 1
        cell = np.repeat(np.arange(cells), np.diff(places))[sample.places]
        place = units.of_row * cells + cell
        of_rows = [None, np.abs(sample.scores), sample.outcomes]
        if sample.weights is not None:
            weight = sample.weights * float(profile.size[0] / profile.total[0])
            of_rows = [weight if values is None else weight * values for values in of_rows]
        sums = [np.bincount(place, values, (groups + 2) * cells).reshape(groups + 2, cells) for values in of_rows]
        count, score, ones = (held.astype(np.float64, copy=False) for held in sums)
        rows, total = count[:groups].sum(axis=0), score[:groups].sum(axis=0)
        share = (1.0 / groups if one_sided(profile) else 1.0 / float(rows.sum())) * rows
        count[groups:] = share
        score[groups:] = share * total / positive(rows)
        ones[groups + 1] = share
        return cls(count, score, ones)

    def drawn(self, times: Float64s) -> Bins:
        """The cells as bins, of groups taken so many times each."""
        count, score, ones = (times @ held for held in (self.count, self.score, self.ones))
        return Bins(count, score, ones, count, single=False)


class _Binned(Resampling, Protocol):
    """What is asked of the estimator."""

    def of_bins(self, bins: Bins) -> Float64s: ...


def in_grouped_bins(estimator: _Binned, sample: Sample, cut: Cut, draws: GroupDraws, level: float) -> Bootstrap:
    """The distribution of an estimate in fixed bins; see `Bootstrap` in `resampling/bootstrap.py`.

    Near calibration signs of whole groups are turned, which residuals of a calibrated model may have either way (Liu 1988).
    """
    found = estimator.found(sample.profile)
    power = float(found.power[0])
    # Estimators that look at the same bins share what is drawn; the draws are kept with it, so that no other has their id.
    key = f"drawn {id(draws)} {cut.below.tobytes().hex()}"
    sums, drawn, _ = sample.profile.once(key, lambda _: _drawn(sample, cut, draws))
    powers = estimator.of_bins(drawn)
    signs = None
    if estimator.folds:
        folded = Folded(len(powers))
        folded.add(1.0, found.bins or Bins.of(sample.profile, cut), mean_square(drawn))
        deviations, signs = folded.deviations(powers), folded.signs()
    else:
        centre = powers.mean() if estimator.corrected else estimator.of_bins(sums.drawn(np.ones_like(draws.times[:1])))
        deviations = powers - centre
    p = 0.0 if estimator.unbiased else _chance(estimator, sums, draws.turns, power)
    return Bootstrap(estimator, power, powers, deviations, level, "percentile", "rows", p, signs=signs)


def _drawn(sample: Sample, cut: Cut, draws: GroupDraws) -> tuple[GroupSums, Bins, GroupDraws]:
    sums = GroupSums.of(sample, draws.units, cut.below[0])
    return sums, sums.drawn(draws.times), draws


def _chance(estimator: _Binned, sums: GroupSums, turns: Float64s, power: float) -> float:
    """How often residuals with turned signs give an error as large."""
    groups = turns.shape[1]
    count, score = (held[:groups].sum(axis=0)[None] for held in (sums.count, sums.score))
    residual = turns @ (sums.ones - sums.score)[:groups]
    calibrated = Bins(count, score, score + residual, count, single=False)
    reached = np.count_nonzero(estimator.of_bins(calibrated) >= power * (1 - 1e-12))
    return float(1 + reached) / (1 + len(turns))
