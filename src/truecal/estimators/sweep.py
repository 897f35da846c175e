"""The monotone sweep: as many bins as monotonicity allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.bins import Binning, Bins, distinct_cut, power_mean
from truecal.estimators.estimate import Estimate, Interval
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s

_TOLERANCE = 1e-12  # derived: a smaller fall of a rate is rounding
_CUTS = 1 << 20  # derived: cuts made together, a few arrays of 8 MiB
_TENTHS, _VISIBLE = 10, 3.7  # derived: one of 45 pairs of bins differs by 3.7 standard errors with probability 0.005


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
    where the rates of all distinct scores rise, so do those of every b. From a sketch the value has no bound, unless every
    cell holds one score.

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
        """Compute the plug-in power in the bins of the sweep, shape (batch,); `settings["bins"]` are their numbers.

        Warns of a single distinct score, and of a sweep that stopped at one bin.
        """
        count, finest = self.sweep(profile)
        power, bins = np.empty(profile.batch), None
        for chosen in (np.flatnonzero(finest), np.flatnonzero(~finest)):
            if len(chosen):
                part = profile if len(chosen) == profile.batch else profile.take(chosen)
                separate = finest[chosen[0]]  # then `count` may be far larger than the number of scores
                cut = distinct_cut(part) if separate else self.binning(1).cut(part, count[chosen, None])
                bins = Bins.of(part, cut)
                power[chosen] = power_mean(bins.gap, bins.share, self.norm)
        settings = {"bins": count.astype(np.float64)}
        return Findings(power, bins if profile.batch == 1 else None, _warnings(profile, count), settings=settings)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows: by rounding where every cell holds one score, else 0 and 1."""
        if not (cells.low < cells.high).any():  # every cell holds one score: no cut runs through it
            power = float(estimate.power)
            return SketchBound(power - cells.rounding, power + cells.rounding)
        return SketchBound(0.0, 1.0)

    def _resampled_interval(
        self, profile: Profile, level: float, rng: np.random.Generator, p_value: float | None
    ) -> Interval:
        """Bootstrap rows; widen the interval to contain that of the rank series where outcomes fall with the scores (`_falls`).

        The rank series has norm 1 for norm 1, else 2; for norms above 2 the upper limit is then 1.
        """
        interval = super()._resampled_interval(profile, level, rng, p_value)
        if not _falls(profile):
            return interval
        of_series = RankSeries(norm=1 if self.norm == 1 else 2, level=level)(profile).interval
        assert of_series is not None
        high = 1.0 if self.norm > 2 else max(float(interval.high), float(of_series.high))
        low = min(float(interval.low), float(of_series.low))
        return Interval(low, high, level, f"{interval.method}, widened: outcomes fall with the scores")

    def sweep(self, profile: Profile) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Sweep the numbers of bins of every dataset.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes of one dataset or of a batch.

        Returns
        -------
        count : ndarray of shape (batch,)
            The largest number of bins before rates fall.
        finest : ndarray of bool of shape (batch,)
            Whether these bins have equal mass and separate all distinct scores.
        """
        key = f"sweep {self.scheme} {self.ties}"  # the norm does not matter
        if key not in profile.cache:
            profile.cache[key] = self._sweep(profile)
        count, finest = profile.cache[key]
        return count, finest

    def _sweep(self, profile: Profile) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Sweep the numbers of bins of every dataset, several at a time; return (count, finest) of :meth:`sweep`.

        A dataset is done at the first number at which outcome rates do not rise. Once as many cuts were made as there are rows,
        bins of one distinct score are tried: where their rates rise, those of all coarser bins do too, and the largest number
        is the answer.
        """
        largest = np.full(profile.batch, profile.rows)
        if profile.weights is not None:
            sizes = profile.total if profile.counted else largest
            largest = np.minimum(sizes, options.MAX_BINS).astype(np.intp)
        count, finest = np.ones(profile.batch, np.intp), np.zeros(profile.batch, bool)
        active, compared = np.flatnonzero(profile.distinct > 1), False
        b = 2
        while len(active):
            part = profile if len(active) == profile.batch else profile.take(active)
            if b * b >= profile.rows and not compared:  # as many cuts as rows were made by now
                bins, compared = Bins.of(part, distinct_cut(part)), True
                rising = _rates_rise(bins.weight, bins.outcome_sum, np.array([bins.weight.shape[1]]))[:, 0]
                count[active[rising]], finest[active[rising]] = largest[active[rising]], self.scheme == "mass"
                active = active[~rising]
                continue
            numbers = np.arange(b, b + max(1, min(b, _CUTS // (len(active) * b))))
            cut = self.binning(1).cut(part, numbers)
            weight, ones = (np.diff(part.sums(name, cut), axis=1) for name in ("w", "y"))
            passed = _rates_rise(weight, ones, numbers) & (numbers <= largest[active, None])
            steps = np.logical_and.accumulate(passed, axis=1).sum(axis=1)
            count[active] += steps
            active = active[steps == len(numbers)]
            b += len(numbers)
        return count, finest


def _falls(profile: Profile) -> bool:
    """Decide whether outcomes of one dataset fall with the scores: one of ten bins of equal mass has a higher rate than a later.

    It is higher by more than 3.7 standard errors, which among 45 pairs of bins happens by chance in less than one dataset of a
    hundred.
    """
    bins = Bins.of(profile, profile.mass_cut(_TENTHS))
    n = np.maximum(bins.count[0], 1.0)
    rate = (bins.rate[0] * n + 1) / (n + 2)
    variance = rate * (1 - rate) / n
    fall = (rate[:, None] - rate[None, :]) / np.sqrt(variance[:, None] + variance[None, :])
    filled = bins.count[0] > 0
    later = np.triu(np.outer(filled, filled), 1)
    return bool((fall[later] > _VISIBLE).any())


def _rates_rise(weight: Float64s, ones: Float64s, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Decide whether the rates of the filled bins are non-decreasing, bool (batch, len(numbers)), for several numbers of bins.

    `weight` and `ones` have the bins of one number after those of the other, with one entry without meaning between each two,
    shape (batch, sum(numbers) + len(numbers) - 1); `weight` is changed in place.

    >>> weight, ones = np.array([[2.0, 2.0, 0.0, 4.0]]), np.array([[2.0, 0.0, 0.0, 2.0]])
    >>> _rates_rise(weight, ones, np.array([2, 1]))  # two bins at the rates 1 and 0, one at 1/2
    array([[False,  True]])
    """
    ends = np.cumsum(numbers + 1)
    weight[:, ends[:-1] - 1] = 0.0
    filled = weight > 0
    offset = 2.0 * np.repeat(np.arange(len(numbers)), numbers + 1)[:-1]  # rates are above those of fewer bins
    rate = ones / np.where(filled, weight, 1.0) + offset
    highest = np.maximum.accumulate(np.where(filled, rate, 0.0), axis=1)
    return np.logical_and.reduceat(~filled | (rate >= highest - _TOLERANCE), ends - numbers - 1, axis=1)


def _warnings(profile: Profile, count: NDArray[np.intp]) -> tuple[str, ...]:
    """Return warnings for a single distinct score and for a sweep that stopped at one bin.

    >>> _warnings(Profile.from_arrays([0.5, 0.5], [0, 1]), np.array([1]))[0][:20]
    'all scores are equal'
    """
    if (profile.distinct == 1).any():
        return ("all scores are equal, so there is a single bin and the value is only |mean score - mean outcome|",)
    if (count == 1).any():
        return (
            "outcomes do not rise with the scores (are the scores reversed, or of the wrong class?): the sweep stopped at one bin, "
            "so the value is only |mean score - mean outcome|",
        )
    return ()
