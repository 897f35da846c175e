"""The nearest-neighbour calibration error: every score against its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.bins import power_mean
from truecal.estimators.estimate import Estimate
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s

_FEW = 5  # derived: a mean of fewer outcomes has a standard error of at least 0.22 at rate 1/2
_MAX_ROWS = 65_536  # by choice: cells of equal mass, each 1.5e-5 of the data, far less than any window
_STRIPES = 500  # derived: stripes as narrow as the region that the paper picks on CIFAR-10, [0.998, 1]
_DENSE = 8.0  # times the uniform mass of a stripe; tuned on the paper's worlds: mean bias -0.12 %, as with regions chosen by eye


@dataclass(frozen=True)
class NearestECE(Estimator):
    r"""Estimate the calibration error from the nearest neighbours of every score.

    Parameters
    ----------
    neighbors : int or "auto", default "auto"
        Number k of neighbours, the score itself included; "auto" by the rule of the paper.
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
        For options out of range.

    Notes
    -----
    :math:`\mathrm{ECE}_{KNN} = (\frac1n \sum_i |\bar c_{N(i)} - \bar y_{N(i)}|^p)^{1/p}`, with N(i) the k scores nearest to
    c_i. With neighbors="auto", k = (n - n_r) / (1 + ln(n/alpha)), where n_r counts the scores in the dense region; the paper
    picks that region by eye (for example [0.998, 1] on CIFAR-10), here it is searched: of 500 stripes of equal width, the run
    around the fullest in which every stripe holds at least 8 times its uniform share. Give `region` to set it by hand. Where n
    < alpha the logarithm would be negative; the divisor then stays at 1, so that k <= n - n_r.

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

    neighbors: int | Literal["auto"] = "auto"
    norm: float = 2
    region: tuple[float, float] | None = None
    alpha: float = 100
    score: Literal["mean", "own"] = "mean"

    def __post_init__(self) -> None:
        """Raise InputError for an invalid norm, number of neighbours or alpha, and a region other than 0 <= low <= high <= 1."""
        options.norm(self.norm)
        if self.neighbors != "auto":
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
            `neighbors`, at most the sample size n; of "auto" the whole number nearest to n (1 - s) / (1 + log(n / alpha)),
            between 1 and n, with s the share of rows in the region.
        """
        n = profile.size
        if self.neighbors != "auto":
            return np.minimum(float(self.neighbors), np.maximum(n, 1.0))
        inside = _share_in(profile, self.region) if self.region is not None else _dense_share(profile)
        k = np.rint(n * (1 - inside) / np.maximum(1 + np.log(n) - log(self.alpha), 1.0))
        return np.clip(k, 1.0, np.maximum(n, 1.0))

    def estimate(self, profile: Profile) -> Findings:
        """Compute the mean |gap|^norm over windows of nearest neighbours, shape (batch,); warn of fewer than 5 neighbours.

        The gap of a row is the mean outcome of its window minus the mean score of the window, or minus its own score for
        score="own". `settings["neighbors"]` is the number of neighbours, shape (batch,). Above 65,536 distinct scores, cells of
        equal mass are used.
        """
        k = self.count(profile)
        cells = profile.coarsen(_MAX_ROWS, moments=False)
        weight = np.broadcast_to(cells.prefix("w"), (cells.batch, cells.rows + 1))
        rows = np.arange(cells.rows + 1)[None]
        cut = cells.at_mass(weight) if cells.has_ties else Cut(rows, rows)  # equal scores share their outcomes
        surplus = -cells.sums("y", cut)
        if self.score == "mean":
            surplus = cells.sums("c", cut) + surplus
        power = np.empty(profile.batch)
        for i, width in enumerate(k * profile.total / profile.size):
            scores = cells.scores[i % len(cells.scores)].astype(np.float64, copy=False)
            gaps = _window_gaps(scores, weight[i], surplus[i], width)
            power[i] = power_mean(
                gaps if self.score == "mean" else gaps + scores, np.diff(weight[i]) / weight[i, -1], self.norm
            )
        warning = (
            f"only {k.min():.0f} neighbours are left: nearly all scores lie in the dense region, so the value is mostly noise; "
            "give region= or neighbors="
        )
        few = self.neighbors == "auto" and k.min() < _FEW
        return Findings(power, warnings=(warning,) if few else (), settings={"neighbors": k})

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Return the bounds 0 and 1: cells do not say which scores are nearest.

        >>> import truecal as tc
        >>> cells = tc.Sketch.from_arrays([0.25, 0.75], [0, 1]).to_profile()
        >>> bound = NearestECE().sketch_bound(cells, NearestECE()(cells))
        >>> bound.low, bound.high
        (0.0, 1.0)
        """
        return SketchBound(0.0, 1.0)


def _window_gaps(scores: Float64s, weight: Float64s, surplus: Float64s, width: float) -> Float64s:
    """Compute the mean surplus in the window of weight `width` nearest to every ascending score, shape (rows,).

    `weight` and `surplus` are cumulative sums, from 0, over the rows in order, shape (rows + 1,). A window may begin and end
    within a row, and has at most the total weight.

    >>> _window_gaps(np.array([0.1, 0.2, 0.9]), np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0, 1.0]), 2.0)
    array([0.5, 0.5, 0. ])
    """
    total = weight[-1]
    width = min(width, float(total))
    starts = np.sort(np.concatenate([weight[:-1], weight[1:] - width]))
    starts = starts[(starts >= 0) & (starts < total - width)]
    last = len(scores) - 1
    left = np.clip(np.searchsorted(weight, starts, "right") - 1, 0, last)
    right = np.clip(np.searchsorted(weight, starts + width, "right") - 1, 0, last)
    middle = (scores[left] + scores[right]) / 2  # a window leaves row `left` once the score passes the middle
    begin = np.append(starts, total - width)[np.searchsorted(middle, scores)]
    limits = weight[:-1], weight[1:] - width  # the window holds its own row, or lies within it
    begin = np.clip(begin, np.minimum(*limits), np.maximum(*limits))
    return np.asarray(np.interp(begin + width, weight, surplus) - np.interp(begin, weight, surplus)) / width


def _share_in(profile: Profile, region: tuple[float, float]) -> Float64s:
    """Return the share of weight with scores in a closed region (low, high), shape (batch,).

    >>> _share_in(Profile.from_arrays([0.25, 0.5, 0.75, 0.75], [0, 1, 0, 1]), (0.5, 0.7))
    array([0.25])
    """
    low, high = profile.count_below(np.array(region[:1]), "left"), profile.count_below(np.array(region[1:]), "right")
    inside = profile.sums("w", Cut(high, high)) - profile.sums("w", Cut(low, low))
    return inside[:, 0] / profile.total


def _dense_share(profile: Profile) -> Float64s:
    """Compute the share of the data in neighbouring dense stripes around the fullest one, shape (batch,); 0 if none is dense.

    Stripes are 500 intervals of equal width on [0, 1]; one is dense if it has at least 8 / 500 of the data.

    >>> _dense_share(Profile.from_arrays([0.25, 0.999, 0.999, 0.999], [0, 1, 0, 1]))  # a quarter is dense beside 8 / 500
    array([0.75])
    """
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
