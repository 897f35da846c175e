"""The monotone sweep: as many bins as monotonicity allows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.binned import Binning
from truecal.estimate.bins import Bins
from truecal.estimate.estimator import Estimator, Findings, check_norm, power_mean
from truecal.profile import Cut, Profile
from truecal.types import Float64s

_TOLERANCE = 1e-12  # a fall this small is rounding, not a violation
_LONG = 1024  # after so many bins it pays to ask whether any number of bins would do


@dataclass(frozen=True)
class SweepECE(Estimator):
    r"""ECE_SWEEP: the binned error with the largest number of bins before the bin means of y stop being non-decreasing.

    b = 1 is always admissible; b = 2, 3, ... are tried in turn and the sweep ends before the first b whose bins violate
    monotonicity (Roelofs et al. 2020, Algorithm 1), or at the number of distinct scores, beyond which there is nothing more to
    see. Equal mass is the authors' recommendation. Empty bins are passed over. Costs O(b) per step given a Profile.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> est = tc.SweepECE(norm=1)(profile)  # two bins rise (1/2, 1/2); three (1/2, 0, 1) do not
    >>> est.bins.filled, est.value
    (2, 0.275)
    """

    scheme: Literal["width", "mass"] = "mass"
    norm: float = 2
    ties: Literal["keep", "split"] = "keep"

    def __post_init__(self) -> None:
        check_norm(self.norm)
        _ = self.binning(1)

    def binning(self, bins: int) -> Binning:
        return Binning(bins, self.scheme, self.ties, "left")

    @property
    def power_norm(self) -> float:
        return self.norm

    def find(self, profile: Profile) -> Findings:
        count, power = self.sweep(profile)
        bins = Bins.of(profile, self.binning(int(count[0])).cut(profile)) if profile.batch == 1 else None
        return Findings(power, bins, _warnings(profile, count), {"details": {"bins": count}})

    def sweep(self, profile: Profile) -> tuple[NDArray[np.intp], Float64s]:
        """The number of bins the sweep settles on in every dataset, and the error with them."""
        most = profile.distinct
        count = np.ones(profile.batch, np.intp)
        power = self._power(Bins.of(profile, self.binning(1).cut(profile)))
        active = np.flatnonzero(most > 1)
        part, members = profile, np.arange(profile.batch)  # the datasets still at hand, and where they belong
        b = 2
        while len(active):
            if len(active) * 2 <= len(members):
                part, members = part.take(np.searchsorted(members, active)), active
            if b == _LONG:
                endless = members[_rises(_finest(part))]
                for i in np.intersect1d(endless, active):
                    count[i] = most[i]
                    alone = profile.take(np.array([i]))
                    power[i] = self._power(Bins.of(alone, self.binning(int(most[i])).cut(alone)))[0]
                active = np.setdiff1d(active, endless)
            bins = Bins.of(part, self.binning(b).cut(part))
            risen = members[_rises(bins)]
            active = np.intersect1d(active, risen, assume_unique=True)
            count[active] = b
            power[active] = self._power(bins)[np.searchsorted(members, active)]
            b += 1
            active = active[most[active] >= b]
        return count, power

    def _power(self, bins: Bins) -> Float64s:
        return power_mean(bins.gap, bins.share, self.norm)


def _rises(bins: Bins) -> NDArray[np.bool_]:
    """Whether the outcome rates of the filled bins are non-decreasing, per dataset."""
    if (bins.weight > 0).all():
        return np.all(np.diff(bins.rate, axis=1) >= -_TOLERANCE, axis=1)
    filled = bins.weight > 0
    highest = np.maximum.accumulate(np.where(filled, bins.rate, -np.inf), axis=1)
    return np.all(~filled | (bins.rate >= highest - _TOLERANCE), axis=1)


def _finest(profile: Profile) -> Bins:
    """One bin per distinct score: if these rise, so does every coarser partition."""
    everywhere: Cut = profile.at_count(np.arange(profile.rows + 1)[None, :]).keep_ties()
    return Bins.of(profile, everywhere)


def _warnings(profile: Profile, count: NDArray[np.intp]) -> tuple[str, ...]:
    if (profile.distinct == 1).any():
        return ("all scores are equal, so there is a single bin and the value is only |mean score - mean outcome|",)
    if (count == 1).any():
        return (
            "outcomes do not rise with the scores (are the scores reversed, or of the wrong class?): the sweep stopped at one bin, "
            "so the value is only |mean score - mean outcome|",
        )
    return ()
