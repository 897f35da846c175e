"""The monotone sweep: as many bins as monotonicity allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.bins import Binning, Bins, power_mean
from truecal.estimators.estimate import Estimate, Interval
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.sketch_bounds import any_bins_range
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s

_TOLERANCE = 1e-12  # a fall this small is rounding, not a violation
_LONG = 1024  # bins beyond which it is checked first whether every number of bins is monotone
_AHEAD = 32  # numbers of bins tried at first on a single dataset, where a step costs more than what it looks at
_STEP = 1 << 20  # cuts looked at together
_TENTHS, _VISIBLE = 10, 3.7  # bins compared to see whether outcomes fall, and by how many standard errors they must
_LENGTHS = (32, 256, 2048)  # datasets with about as many bins are measured together


@dataclass(frozen=True)
class SweepECE(Estimator):
    """Estimate the calibration error in the largest number of bins whose outcome rates are non-decreasing.

    Parameters
    ----------
    scheme : {"width", "mass"}, default "mass"
        Bins of equal width, or of equal numbers of rows, which the authors recommend.
    norm : float, default 2
        The p >= 1 of the error, or inf.
    ties : {"keep", "split"}, default "keep"
        For equal mass, whether rows of equal score stay in one bin or are shared between bins.

    Notes
    -----
    b = 1 is always admissible; b = 2, 3, ... are tried in turn, and the sweep ends before the first b whose bins violate
    monotonicity, or at b = n (Roelofs et al. 2022, algorithm 1). Empty bins are passed over. A step costs O(b) given a Profile;
    where the rates of all distinct scores rise, every b does, and none is tried.

    Assumes that outcomes rise with the scores. Where they visibly do not, the value says little, and
    the interval is widened to contain that of the rank series.

    References
    ----------
    Roelofs, R., Cain, N., Shlens, J. and Mozer, M. C. (2022). Mitigating bias in calibration error estimation. AISTATS 2022.
    arXiv:2012.08668

    See Also
    --------
    BinnedECE : A fixed number of bins.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> est = tc.SweepECE(norm=1)(profile)  # two bins rise (1/2, 1/2); three (1/2, 0, 1) do not
    >>> est.bins.filled, est.value
    (2, 0.275)
    """

    scheme: Literal["width", "mass"] = "mass"
    norm: float = 2
    ties: Literal["keep", "split"] = "keep"

    def __post_init__(self) -> None:
        options.norm(self.norm)
        self.binning(1).check()

    def binning(self, bins: int) -> Binning:
        """Choose which rows share a bin.

        Parameters
        ----------
        bins : int
            Number of bins.

        Returns
        -------
        Binning
            The rule for so many bins.
        """
        return Binning(bins, self.scheme, self.ties)

    def estimate(self, profile: Profile) -> Findings:
        count, finest, power = self.sweep(profile)
        bins = self._bins(profile, count, bool(finest[0])) if profile.batch == 1 else None
        return Findings(power, bins, _warnings(profile, count), settings={"bins": count.astype(np.float64)})

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        if not (cells.low < cells.high).any():  # every cell is one score: nothing is open
            power = float(estimate.power)
            return SketchBound(power - cells.rounding, power + cells.rounding)
        return SketchBound(*any_bins_range(cells, self.norm))

    def _resampled_interval(
        self, profile: Profile, level: float, rng: np.random.Generator, p_value: float | None
    ) -> Interval:
        """Bootstrap rows; widen the interval to that of the rank series where outcomes visibly fall with the scores."""
        interval = super()._resampled_interval(profile, level, rng, p_value)
        if not _falls(profile):
            return interval
        other = RankSeries(norm=1 if self.norm == 1 else 2, level=level)(profile).interval
        assert other is not None
        high = 1.0 if self.norm > 2 else max(float(interval.high), float(other.high))
        low = min(float(interval.low), float(other.low))
        return Interval(low, high, level, f"{interval.method}, widened: outcomes fall with the scores")

    def sweep(self, profile: Profile) -> tuple[NDArray[np.intp], NDArray[np.bool_], Float64s]:
        """Sweep the numbers of bins of every dataset.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes of one dataset or of a batch.

        Returns
        -------
        count : ndarray of shape (batch,)
            The number of bins at which the sweep ends.
        finest : ndarray of bool of shape (batch,)
            Whether these bins separate all scores.
        power : ndarray of shape (batch,)
            The power of the error in these bins.
        """
        # What a norm does not change is found once for all of them.
        key = f"sweep {self.scheme} {self.ties}"
        if key not in profile.cache:
            profile.cache[key] = self._counts(profile)
        count, finest = profile.cache[key]
        power = np.empty(profile.batch)
        length = np.where(finest, len(_LENGTHS) + 1, np.searchsorted(_LENGTHS, count))
        for i in range(len(_LENGTHS) + 2):
            members = np.flatnonzero(length == i)
            if len(members):
                part = profile if len(members) == profile.batch else profile.take(members)
                bins = self._bins(part, count[members, None], i > len(_LENGTHS))
                power[members] = power_mean(bins.gap, bins.share, self.norm)
        return count, finest, power

    def _bins(self, profile: Profile, count: NDArray[np.intp], finest: bool) -> Bins:
        """Bin each dataset into `count` bins, shape (batch,), or between all distinct scores if `finest`."""
        if profile.batch == 1 and not finest:
            return self.binning(int(count.item())).bins_of(profile)
        cut = _between_scores(profile) if finest else self.binning(1).cut(profile, np.atleast_2d(count))
        return Bins.of(profile, cut)

    def _counts(self, profile: Profile) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Find the largest number of bins before rates fall, and whether bins of single scores are monotone, each (batch,)."""
        largest = np.minimum(profile.total if profile.counted else profile.rows, options.MAX_BINS).astype(np.intp)
        largest = (
            np.broadcast_to(largest, (profile.batch,))
            if profile.weights is not None
            else np.full(profile.batch, profile.rows)
        )
        count, finest = np.ones(profile.batch, np.intp), np.zeros(profile.batch, bool)
        few = int(profile.distinct.max()) <= _LONG  # looking at all of them first costs little
        datasets, part = np.arange(profile.batch), profile  # the datasets looked at
        active = profile.distinct > 1  # those of them whose sweep goes on
        b = 2
        while active.any():
            if 2 * active.sum() <= len(
                datasets
            ):  # looking at some in vain costs less than copying the others at every step
                datasets, active, part = datasets[active], np.ones(int(active.sum()), bool), part.take(active)
            if b > _LONG or (b == 2 and few):
                endless = active & _rises(*_finest(part))
                count[datasets[endless]] = largest[datasets[endless]]
                finest[datasets[endless]] = self.scheme == "mass"
                if endless.any():
                    active &= ~endless
                    continue
            ahead = max(b, _AHEAD) if len(datasets) == 1 else b  # several at a time, ever more
            tried = range(b, b + max(1, min(ahead, _STEP // (len(datasets) * b))))
            cut = self.binning(1).cut(part, tried)
            weight, ones = (np.diff(part.sums(name, cut), axis=1) for name in ("w", "y"))
            passed = _rises_each(weight, ones, np.asarray(tried)) & (largest[datasets][:, None] >= np.asarray(tried))
            steps = np.where(active, np.logical_and.accumulate(passed, axis=1).sum(axis=1), 0)
            count[datasets] += steps
            active = steps == len(tried)
            b = tried.stop
        return count, finest


def _falls(profile: Profile) -> bool:
    """Whether outcomes visibly fall somewhere: one of ten bins of equal mass has a rate far above that of a later one.

    Far: beyond 3.7 standard errors, which among 45 pairs of bins happens by chance in less than one dataset of a hundred.
    """
    bins = Bins.of(profile, profile.mass_cut(_TENTHS))
    n = np.maximum(bins.count[0], 1.0)
    rate = (bins.rate[0] * n + 1) / (n + 2)
    variance = rate * (1 - rate) / n
    fall = (rate[:, None] - rate[None, :]) / np.sqrt(variance[:, None] + variance[None, :])
    filled = bins.count[0] > 0
    later = np.triu(np.outer(filled, filled), 1)
    return bool((fall[later] > _VISIBLE).any())


def _rises(weight: Float64s, ones: Float64s) -> NDArray[np.bool_]:
    """Whether the outcome rates of the filled bins are non-decreasing, per dataset."""
    filled = weight > 0
    rate = ones / np.where(filled, weight, 1.0)
    highest = np.maximum.accumulate(np.where(filled, rate, -np.inf), axis=1)
    return np.all(~filled | (rate >= highest - _TOLERANCE), axis=1)


def _rises_each(weight: Float64s, ones: Float64s, counts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Apply `_rises` to several numbers of bins, concatenated with one unused entry between; shape (batch, len(counts))."""
    starts = np.cumsum(counts + 1) - (counts + 1)
    between = starts[1:] - 1
    weight = weight.copy()
    weight[:, between] = np.inf  # a rate of 0 between one set of bins and the next ...
    if not (weight > 0).all():
        each = [_rises(weight[:, s : s + b], ones[:, s : s + b]) for s, b in zip(starts, counts, strict=True)]
        return np.stack(each, axis=1)
    rate = ones / weight
    falls = rate[:, 1:] < rate[:, :-1] - _TOLERANCE
    falls[:, between - 1] = False  # ... to which falling does not count
    return ~np.logical_or.reduceat(falls, starts, axis=1)


def _between_scores(profile: Profile) -> Cut:
    """Cuts between all distinct scores."""
    return profile.at_count(np.arange(profile.rows + 1)[None, :]).keep_ties()


def _finest(profile: Profile) -> tuple[Float64s, Float64s]:
    """Weight and ones of every distinct score: if their rates rise, so do those of every coarser partition."""
    everywhere = _between_scores(profile)
    weight, ones = (np.diff(profile.sums(name, everywhere), axis=1) for name in ("w", "y"))
    return weight, ones


def _warnings(profile: Profile, count: NDArray[np.intp]) -> tuple[str, ...]:
    """Return warnings for a single distinct score and for a sweep that stopped at one bin."""
    if (profile.distinct == 1).any():
        return ("all scores are equal, so there is a single bin and the value is only |mean score - mean outcome|",)
    if (count == 1).any():
        return (
            "outcomes do not rise with the scores (are the scores reversed, or of the wrong class?): the sweep stopped at one bin, "
            "so the value is only |mean score - mean outcome|",
        )
    return ()
