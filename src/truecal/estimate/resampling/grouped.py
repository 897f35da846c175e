"""Resamples of whole groups of rows, the same for all models on the same rows.

What every group holds in every cell of scores is summed once; drawing groups is a product of small matrices after that. Independent
rows go to groups at random, which leaves the distribution of sums as it is.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truecal.estimate.bins import Bins
from truecal.estimate.resampling.bootstrap import Bootstrap, Resampling
from truecal.estimate.resampling.folded import Folded
from truecal.estimate.resampling.units import Units, one_sided
from truecal.lens import Sample
from truecal.profile import Cut
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
        profile = sample.profile
        cells, groups = len(places) - 1, units.count
        sorted_scores = profile.scores[0]
        begins = places[1:-1]
        edges = np.where(begins < profile.rows, sorted_scores[np.minimum(begins, profile.rows - 1)], np.inf)
        scores = np.abs(sample.scores)
        place = units.of_row * cells + np.searchsorted(edges.astype(scores.dtype), scores, side="right")
        weight = None if sample.weights is None else sample.weights * float(profile.size[0] / profile.total[0])
        of_rows = [np.ones(len(scores)), scores, sample.outcomes]
        if weight is not None:
            of_rows = [weight * values for values in of_rows]
        sums = [
            np.bincount(place, None if weight is None and i == 0 else values, groups * cells).reshape(groups, cells)
            for i, values in enumerate(of_rows)
        ]
        count, score = sums[0].sum(axis=0), sums[1].sum(axis=0)
        n = float(count.sum())
        share = (1.0 / groups if one_sided(profile) else 1.0 / n) * count
        middle = share * score / np.where(count > 0, count, 1.0)
        made_up = (share, share), (middle, middle), (np.zeros(cells), share)
        return cls(*(np.concatenate([held, np.stack(more)]) for held, more in zip(sums, made_up, strict=True)))

    def drawn(self, times: Float64s) -> Bins:
        """The cells as bins, of groups taken so many times each."""
        count, score, ones = (times @ held for held in (self.count, self.score, self.ones))
        return Bins(count, score, ones, count, single=False)


class _Binned(Resampling, Protocol):
    """What is asked of the estimator."""

    def of_bins(self, bins: Bins) -> Float64s: ...


def in_grouped_bins(estimator: _Binned, sample: Sample, cut: Cut, draws: GroupDraws, level: float) -> Bootstrap:
    """The distribution of an estimate in fixed bins; see :class:`truecal.uncertainty.bootstrap.bootstrap.Bootstrap`.

    Near calibration signs of whole groups are turned, which residuals of a calibrated model may have either way (Liu 1988).
    """
    found = estimator.found(sample.profile)
    power = float(found.power[0])
    sums = GroupSums.of(sample, draws.units, cut.below[0])
    drawn = sums.drawn(draws.times)
    powers = estimator.of_bins(drawn)
    signs = None
    if estimator.folds:
        folded = Folded(len(powers))
        folded.add(1.0, Bins.of(sample.profile, cut), [drawn], together=False)
        deviations, signs = folded.deviations(powers), folded.signs()
    else:
        centre = powers.mean() if estimator.corrected else estimator.of_bins(sums.drawn(np.ones_like(draws.times[:1])))
        deviations = powers - centre
    p = 0.0 if estimator.unbiased else _chance(estimator, sums, draws.turns, power)
    return Bootstrap(estimator, power, powers, deviations, level, "percentile", "rows", p, signs=signs)


def _chance(estimator: _Binned, sums: GroupSums, turns: Float64s, power: float) -> float:
    """How often residuals with turned signs give an error as large."""
    groups = turns.shape[1]
    count, score = (held[:groups].sum(axis=0)[None] for held in (sums.count, sums.score))
    residual = turns @ (sums.ones - sums.score)[:groups]
    calibrated = Bins(np.broadcast_to(count, residual.shape), score, score + residual, count, single=False)
    reached = np.count_nonzero(estimator.of_bins(calibrated) >= power * (1 - 1e-12))
    return float(1 + reached) / (1 + len(turns))
