"""The nearest-neighbour calibration error: every score against its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.estimate import Estimate
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s, Indices

_FEW = 5  # derived: a mean of fewer outcomes has a standard error of at least 0.22 at rate 1/2
_MAX_ROWS = 65_536  # more rows than this are first joined into so many cells of equal mass
_STRIPES = 500  # resolution with which the dense region is searched
_DENSE = 8.0  # a stripe is dense when it holds so many times the mass it would hold if scores were uniform


@dataclass(frozen=True)
class NearestECE(Estimator):
    r"""Estimate the calibration error from the nearest neighbours of every score.

    Parameters
    ----------
    neighbors : int, "auto" or "risk", default "auto"
        Number k of neighbours, the score itself included; "auto" by the rule of the paper, "risk" by leave-one-out prediction.
    norm : float, default 2
        The p of the error; infinity for the largest gap.
    region : pair of float, default None
        Dense region of scores for "auto"; None to search it.
    alpha : float, default 100
        Constant of the rule "auto".
    score : {"mean", "own"}, default "mean"
        Whether the mean score of the neighbours, or each score itself, is compared with their mean outcome.

    Raises
    ------
    InputError
        For options out of range, and for weights with "risk".

    Notes
    -----
    :math:`\mathrm{ECE}_{KNN} = (\frac1n \sum_i |\bar c_{N(i)} - \bar y_{N(i)}|^p)^{1/p}`, with N(i) the k scores nearest to
    c_i. With neighbors="auto", k = (n - n_r) / (1 + ln(n/alpha)), where n_r counts the scores in the dense region; the paper
    picks that region by eye (for example [0.998, 1] on CIFAR-10), here it is searched: of 500 stripes of equal width, the run
    around the fullest in which every stripe holds at least 8 times its uniform share. Give `region` to set it by hand. Where n
    < alpha the logarithm would be negative; the divisor then stays at 1, so that k <= n - n_r.

    neighbors="risk" needs neither alpha nor a region: of k = 2, 3, 4, 6, 8, 11, ... n (powers of the root of 2) it takes the one
    whose windows, each without its own row, predict the gap of that row best: least (1/n) sum_i ((c_i - y_i - g_i) / (1 - h_i))^2,
    g_i the mean gap of the window and h_i = 1 / max(k, rows that share the score) the part the row has in it. Rows with weights
    are refused; resamples keep the k of the data, since a repeated row predicts itself.

    score="own" compares each score itself, not the mean of its neighbours, with their mean outcome (the remark after equation 6;
    equation 2 of Roelofs et al. with these neighbours, ECE_NEIGH). Its value includes how far scores lie apart within a window.

    In one dimension the k nearest form a window of the sorted scores, and the window's start only ever moves up: one search per
    score. Of two scores equally far the lower counts as nearer; a group of equal scores that is only partly among the k counts
    with the mean of its outcomes. Above 65,536 rows the neighbours are counted among 65,536 cells of equal mass, which moves the
    value by less than one part in ten thousand. From a sketch the value has no bound.

    References
    ----------
    Peng, S., Alamzadeh, P. and Ester, M. (2023). Better calibration error estimation for reliable uncertainty quantification.

    See Also
    --------
    truecal.RankSeries : Without a number of neighbours, and with its bias corrected.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.1, 0.2, 0.7, 0.8], [0, 1, 1, 0])
    >>> round(tc.NearestECE(neighbors=2, norm=1)(profile).value, 6)
    0.3
    """

    neighbors: int | Literal["auto", "risk"] = "auto"
    norm: float = 2
    region: tuple[float, float] | None = None
    alpha: float = 100
    score: Literal["mean", "own"] = "mean"

    def __post_init__(self) -> None:
        options.norm(self.norm)
        if self.neighbors not in ("auto", "risk"):
            options.whole(self.neighbors, "neighbors")
        options.between(self.alpha, "alpha", 0, np.inf)
        options.choice(self.score, ("mean", "own"), "score")
        if self.region is not None and not (len(self.region) == 2 and 0 <= self.region[0] <= self.region[1] <= 1):
            raise InputError(f"region must be (low, high) with 0 <= low <= high <= 1, not {self.region!r}")

    def count(self, profile: Profile) -> Float64s:
        """Choose the number of neighbours of every dataset.

        Parameters
        ----------
        profile : Profile
            Scores and outcomes.

        Returns
        -------
        array of shape (batch,)
        """
        n = profile.size
        if self.neighbors == "risk":
            return self._least_risk(profile)
        if self.neighbors != "auto":
            return np.minimum(float(self.neighbors), np.maximum(n, 1.0))
        inside = _share_in(profile, self.region) if self.region is not None else _dense_share(profile)
        k = np.rint(n * (1 - inside) / np.maximum(1 + np.log(n) - log(self.alpha), 1.0))
        return np.clip(k, 1.0, np.maximum(n, 1.0))

    def estimate(self, profile: Profile) -> Findings:
        k = self.count(profile)
        fine = profile.coarsen(_MAX_ROWS, moments=False)
        warnings = self._warnings(k)
        if fine.weights is None:
            return Findings(self._by_rows(fine, k.astype(np.intp)), warnings=warnings, settings={"neighbors": k})
        everywhere = fine.at_count(np.arange(fine.rows + 1)[None, :])
        if fine.has_ties:  # at_count shares by rows; weighted ties share by weight
            everywhere = fine.at_mass(np.broadcast_to(fine.prefix("w"), (fine.batch, fine.rows + 1)))
        ones = fine.sums("y", everywhere)
        surplus = -ones if self.score == "own" else fine.sums("c", everywhere) - ones
        power = np.empty(profile.batch)
        for i in range(profile.batch):
            c, weight = fine.scores[i % len(fine.scores)], fine.prefix("w")[i % len(fine.weights)]
            gaps = _gaps_by_weight(c, weight, surplus[i], k[i] * profile.total[i] / profile.size[i])
            gaps = np.abs(gaps + c if self.score == "own" else gaps)
            share = fine.weights[i % len(fine.weights)]
            if self.norm == np.inf:
                power[i] = gaps[share > 0].max()
            else:
                power[i] = np.average(gaps if self.norm == 1 else gaps**self.norm, weights=share)
        return Findings(power, warnings=warnings, settings={"neighbors": k})

    def _fix_choices(self, profile: Profile) -> NearestECE:
        return replace(self, neighbors=int(self.count(profile)[0])) if self.neighbors == "risk" else self

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        return SketchBound(0.0, 1.0)

    def _warnings(self, k: Float64s) -> tuple[str, ...]:
        """Too few neighbours to tell a rate from chance: nearly all scores lie in the dense region."""
        if self.neighbors != "auto" or k.min() >= _FEW:
            return ()
        return (
            f"only {k.min():.0f} neighbours are left: nearly all scores lie in the dense region, so the value is mostly noise; "
            "give region= or neighbors=",
        )

    def _least_risk(self, profile: Profile) -> Float64s:
        """Choose the k of lowest leave-one-out prediction risk of each dataset, shape (batch,)."""
        if profile.weights is not None:
            raise InputError("neighbors='risk' leaves out one row at a time and takes no weights; give neighbors=K")
        n = profile.rows
        tried = np.unique(np.append(np.rint(2 ** (np.arange(2, 2 * np.log2(max(n, 2)) + 1e-9) / 2)), n).clip(max=n))
        ones = profile.shared_ones()
        surplus = -ones if self.score == "own" else profile.prefix("c") - ones
        first, last = profile.groups
        chosen = np.empty(profile.batch)
        for i in range(profile.batch):
            c = profile.scores[i % len(profile.scores)].astype(np.float64)
            shared = (last - first)[i % len(first)]
            remaining = c - profile.outcomes[i] - (c if self.score == "own" else 0.0)
            risks = []
            for k in tried.tolist():
                off = remaining - _gaps_by_rows(c, surplus[i], int(k))
                off /= 1 - 1 / np.maximum(shared, max(k, 2))
                risks.append(off @ off)
            chosen[i] = tried[int(np.argmin(risks))]
        return chosen

    def _by_rows(self, fine: Profile, k: Indices) -> Float64s:
        """Compute the p-th power of each dataset from windows of whole rows, shape (batch,)."""
        ones = fine.shared_ones()
        surplus = -ones if self.score == "own" else fine.prefix("c") - ones
        power = np.empty(fine.batch)
        for i, count in enumerate(k.tolist()):
            c = fine.scores[i].astype(np.float64, copy=False)
            gaps = _gaps_by_rows(c, surplus[i], count)
            if self.score == "own":
                gaps = gaps + c
            if self.norm == np.inf:
                power[i] = np.abs(gaps).max()
            elif self.norm == 2:
                power[i] = gaps @ gaps / fine.rows
            else:
                power[i] = (np.abs(gaps) ** self.norm).mean()
        return power


def _gaps_by_rows(c: Float64s, surplus: Float64s, k: int) -> Float64s:
    """Surplus per row in the window of k rows around every row: mean c - mean y, or -mean y."""
    if k >= len(c):
        return np.full(len(c), surplus[-1] / len(c))
    row = np.arange(len(c))
    middle = (c[:-k] + c[k:]) / 2  # a window leaves row s for row s + k once the score passes their middle
    start = _count_below(c, middle)
    np.maximum(start, row - (k - 1), out=start)  # a row is its own neighbour, however middles round
    np.minimum(start, row, out=start)
    gaps = surplus[k:] - surplus[:-k]
    gaps /= k
    return gaps[start]


def _count_below(values: Float64s, others: Float64s) -> Indices:
    """Count the `others` below each value; both ascend within [0, 1].

    The bits of such floats sort like them and leave the highest one free, so that the lowest can say whose they are: two ascending
    runs, which a stable sort merges in one pass, several times faster than one search per value.
    """
    keys = np.concatenate([values, others]).view(np.uint64)
    keys <<= np.uint64(1)
    keys[len(values) :] |= np.uint64(1)  # of equal numbers the value comes first
    keys.sort(kind="stable")
    return np.flatnonzero((keys & np.uint64(1)) == 0) - np.arange(len(values))


def _gaps_by_weight(c: Float64s, weight: Float64s, surplus: Float64s, width: float) -> Float64s:
    """Compute gaps of windows of a given weight, which may begin and end within a row."""
    total = weight[-1]
    width = min(width, float(total))
    starts = np.sort(np.concatenate([weight[:-1], weight[1:] - width]))
    starts = starts[(starts >= 0) & (starts < total - width)]
    last = len(c) - 1
    lower = np.clip(np.searchsorted(weight, starts, "right") - 1, 0, last)
    right = np.clip(np.searchsorted(weight, starts + width, "right") - 1, 0, last)
    middle = (c[lower].astype(np.float64) + c[right]) / 2
    begin = np.append(starts, total - width)[np.searchsorted(middle, c)]
    limits = weight[:-1], weight[1:] - width  # the window holds its own row, or lies within it
    begin = np.clip(begin, np.minimum(*limits), np.maximum(*limits))
    return np.asarray(np.interp(begin + width, weight, surplus) - np.interp(begin, weight, surplus)) / width


def _share_in(profile: Profile, region: tuple[float, float]) -> Float64s:
    """Return the share of weight with scores in a closed region (low, high), shape (batch,)."""
    low, high = profile.places(np.array(region[:1]), "left"), profile.places(np.array(region[1:]), "right")
    inside = profile.sums("w", Cut(high, high)) - profile.sums("w", Cut(low, low))
    return inside[:, 0] / profile.total


def _dense_share(profile: Profile) -> Float64s:
    """Share of the data in the run of dense stripes around the fullest one; 0 where no stripe is dense."""
    share = np.diff(profile.sums("w", profile.width_cut(_STRIPES)), axis=1) / profile.total[:, None]
    dense = share * _STRIPES >= _DENSE
    dense_share = np.zeros(profile.batch)
    for i, peak in enumerate(share.argmax(axis=1)):
        if dense[i, peak]:
            gaps = np.flatnonzero(~dense[i])
            position = np.searchsorted(gaps, peak)
            first = gaps[position - 1] + 1 if position else 0
            last = gaps[position] if position < len(gaps) else _STRIPES
            dense_share[i] = share[i, first:last].sum()
    return dense_share
