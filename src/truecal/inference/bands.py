"""A simultaneous confidence band for the calibration curve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.estimators import bins
from truecal.estimators.bins import Bins
from truecal.predictions import validation
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.resampling import cells
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

_DRAWS = 9999  # by choice: the 95 % point of the largest run is known to 0.2 points
_CELLS = 40  # by choice: groups of neighbouring scores; more give finer steps, but more bounds that must hold at once


@dataclass(frozen=True, repr=False)
class Band(Tabular):
    """A band that holds the whole calibration curve with probability `level`.

    Attributes
    ----------
    score : array of shape (m,)
        Scores at which the band is stated, ascending; in between, use :meth:`at`.
    low : array of shape (m,)
        Lower limit of the curve at each score.
    high : array of shape (m,)
        Upper limit of the curve at each score.
    level : float
        Probability that the whole curve lies inside.

    See Also
    --------
    band : Computes it.
    """

    score: Float64s
    low: Float64s
    high: Float64s
    level: float

    def frame(self) -> Frame:
        """Return one row per score: score, low, high.

        >>> half = np.array([0.5])
        >>> Band(half, half - 0.25, half + 0.25, 0.9).frame()[0]
        {'score': 0.5, 'low': 0.25, 'high': 0.75}
        """
        return Frame({"score": self.score, "low": self.low, "high": self.high})

    def __str__(self) -> str:
        """Write level, number of scores and mean width in one line.

        >>> half = np.array([0.5])
        >>> print(Band(half, half - 0.25, half + 0.25, 0.9))
        90% band of the calibration curve at 1 scores, 0.5 wide on average
        """
        width = float(np.mean(self.high - self.low))
        return (
            f"{self.level:.0%} band of the calibration curve at {len(self.score)} scores, {width:.3g} wide on average"
        )

    def at(self, scores: ArrayLike) -> tuple[Float64s, Float64s]:
        """Evaluate the band at any scores.

        Parameters
        ----------
        scores : array of float
            Scores in [0, 1].

        Returns
        -------
        tuple of two arrays
            Lower and upper limits.
        """
        s = validation.check_points(scores, "scores")
        before = np.searchsorted(self.score, s, "right") - 1
        after = np.searchsorted(self.score, s, "left")
        low = np.where(before >= 0, self.low[np.maximum(before, 0)], 0.0)
        high = np.where(after < len(self.score), self.high[np.minimum(after, len(self.score) - 1)], 1.0)
        return low, high

    def contains(self, scores: ArrayLike, rates: ArrayLike) -> bool:
        """Decide whether a curve lies within the band at all given scores.

        Parameters
        ----------
        scores : array of float
            Scores in [0, 1].
        rates : array of float
            Values of the curve at these scores.

        Returns
        -------
        bool
        """
        low, high = self.at(scores)
        r = validation.check_points(rates, "rates", low.shape)
        return bool(((low <= r) & (r <= high)).all())


def band(profile: Profile, *, level: float = 0.95) -> Band:
    r"""Compute a simultaneous confidence band of the calibration curve E[y | c].

    Parameters
    ----------
    profile : Profile
        Scores and outcomes of one dataset. Rows that belong together (a profile made by a lens from clustered Predictions
        stores them) count by their effective number, run by run.
    level : float, default 0.95
        Probability that the whole curve lies inside.

    Returns
    -------
    Band

    Notes
    -----
    It holds for all c at once and any n, if the curve does not fall. For every run of neighbouring score groups there is a
    Clopper-Pearson bound for the mean of its outcome rates, at a level adjusted so that all bounds hold at once. A curve that
    does not fall is at least that mean beyond the run, and at most that mean before it; the best of all runs is taken (after
    Dimitriadis et al. 2023, with 40 groups of equal mass instead of every pair of scores). Outcomes of different rates are less
    scattered than binomial ones, so Clopper-Pearson stays valid (Hoeffding 1956). Runs overlap, so the joint level is that of
    the largest of all sums of neighbouring normal variables, over their standard deviations: at 90 % and 40 groups 3.36
    standard deviations, where Bonferroni's correction for 820 runs would require 3.84.

    Where the diagonal leaves the band, the model is shown to be miscalibrated there.

    References
    ----------
    Dimitriadis, T., Dümbgen, L., Henzi, A., Puke, M. and Ziegel, J. (2023). Honest calibration assessment for binary outcome
    predictions. Biometrika 110, 663-680. doi:10.1093/biomet/asac068

    Hoeffding, W. (1956). On the distribution of the number of successes in independent trials. Annals of Mathematical
    Statistics 27, 713-721.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(5000)
    >>> limits = band(tc.profile.Profile.from_arrays(c, rng.random(5000) < c**1.5))
    >>> grid = np.linspace(0, 1, 101)
    >>> limits.contains(grid, grid**1.5), limits.contains(grid, grid)
    (True, False)
    """
    options.level(level)
    cells.refuse_batch(profile)
    starts = cells.cell_starts(profile, _CELLS)
    count = len(starts) - 1
    first, last = np.triu_indices(count)
    sums = {name: profile.sums(name, Cut(starts[None], starts[None]))[0] for name in ("w", "c", "y")}
    scale = float(profile.size[0] / profile.total[0])
    weight, score, outcome = (sums[name][last + 1] - sums[name][first] for name in ("w", "c", "y"))
    effective = None if profile.units is None else _effective_runs(profile, profile.units, starts)
    runs = Bins(weight[None], score[None], outcome[None], weight[None] * scale, single=True, effective=effective)
    bottom, top = runs.interval(_run_level(count, level))
    low = np.zeros(count)
    high = np.ones(count)
    np.maximum.at(low, last, bottom)
    np.minimum.at(high, first, top)
    low = np.maximum.accumulate(low)  # from the last score of each group on
    high = np.minimum.accumulate(high[::-1])[::-1]  # up to the first score of each group
    begin, end = profile.scores[0, starts[:-1]], profile.scores[0, starts[1:] - 1]
    # a group's lower limit holds from its last score on, its upper limit up to its first one
    low_before = np.concatenate([[0.0], low[:-1]])
    high_after = np.concatenate([high[1:], [1.0]])
    one_score = begin == end
    x = np.concatenate([begin, end[~one_score]]).astype(np.float64)
    lows = np.concatenate([np.where(one_score, low, low_before), low[~one_score]])
    highs = np.concatenate([high, high_after[~one_score]])
    order = np.argsort(x, kind="stable")
    return Band(x[order], lows[order], highs[order], level)


def _run_level(groups: int, level: float) -> float:
    """Compute the two-sided level of the bound of each run of groups at which all bounds hold together with probability `level`.

    That of the `level` quantile of `_largest_runs`, if it is not above Bonferroni's 1 - (1 - level) / (number of runs), which is
    also taken where the draws do not reach `level`. There are groups (groups + 1) / 2 runs of neighbouring groups.
    """
    from scipy.special import ndtr

    largest = _largest_runs(groups)
    joint = 1 - (1 - level) / (groups * (groups + 1) / 2)  # Bonferroni's, for levels that the draws do not reach
    rank = int(np.ceil(level * (len(largest) + 1)))
    return joint if rank > len(largest) else min(joint, 1 - 2 * float(ndtr(-largest[rank - 1])))


@cache
def _largest_runs(groups: int) -> Float64s:
    """Simulate the largest |sum| / sqrt(length) over all runs of neighbours among `groups` standard normals; 9,999, ascending.

    That the variables have equal variances matters little: with variances that grow 100- or 1000-fold, or fall to both sides, the
    90 % point was 3.32 to 3.35 instead of 3.36 (4000 draws).

    >>> _largest_runs(1).shape, bool((np.diff(_largest_runs(1)) >= 0).all())
    ((9999,), True)
    """
    sums = np.cumsum(np.random.default_rng(0).standard_normal((_DRAWS, groups)), axis=1)
    sums = np.concatenate([np.zeros((_DRAWS, 1)), sums], axis=1)
    largest = np.zeros(_DRAWS)
    for length in range(1, groups + 1):
        run = np.abs(sums[:, length:] - sums[:, :-length]).max(axis=1) / np.sqrt(length)
        np.maximum(largest, run, out=largest)
    return np.sort(largest)


def _effective_runs(profile: Profile, units: Indices, starts: Indices) -> Float64s:
    """Compute the effective sample size of every run of groups of clustered rows, as `bins.effective_size`, shape (1, runs).

    Group g has the sorted rows from starts[g] up to starts[g + 1]; `units`, shape (rows,), are those of the sorted rows. Runs are
    in the order of their first, then their last group.
    """
    unit, of_row = np.unique(units, return_inverse=True)
    weight = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    weight = weight * (profile.size[0] / profile.total[0])
    groups = len(starts) - 1
    code = np.repeat(np.arange(groups), np.diff(starts)) * len(unit) + of_row
    size = groups * len(unit)
    rows, ones = (np.bincount(code, w, size).reshape(groups, -1) for w in (weight, weight * profile.outcomes[0]))
    effective: list[Float64s] = []
    for first in range(groups):
        run = np.repeat(np.arange(groups - first), len(unit))
        run_rows, run_ones = (np.cumsum(table[first:], axis=0, dtype=np.float64).ravel() for table in (rows, ones))
        effective.append(bins.effective_size(run, run_rows, run_ones, groups - first))
    return np.concatenate(effective)[None]
