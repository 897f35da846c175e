"""The numbers of a reliability diagram: bins with their intervals, the smooth curve with its band, isotonic steps, a histogram."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.frame import Frame

Scheme = Literal["width", "mass", "sweep"]
_HISTOGRAM_BINS = 50


@dataclass(frozen=True)
class ReliabilityNumbers:
    """One frame per part of the diagram, and the estimates they come from."""

    bins: Frame  # score, outcome, low, high, count
    smooth: Frame  # score, outcome, low, high
    isotonic: Frame  # score, outcome
    histogram: Frame  # left, right, share
    zoomed_histogram: Frame  # the same in steps of 1 - score, for the zoomed scale
    binned: tc.Estimate
    estimate: tc.Estimate


def reliability_numbers(
    profile: tc.Profile, *, bins: int = 15, scheme: Scheme = "width", level: float = 0.95, floor: float = 1e-4
) -> ReliabilityNumbers:
    """Everything a reliability diagram of one dataset shows.

    >>> import truecal as tc
    >>> numbers = reliability_numbers(tc.Profile.from_arrays([0.2, 0.3, 0.8, 0.9], [0, 1, 1, 1]), bins=2)
    >>> numbers.bins["count"], numbers.bins["outcome"]
    (array([2., 2.]), array([0.5, 1. ]))
    """
    options.level(level)
    options.bins(bins)
    if not isinstance(profile, tc.Profile) or profile.batch != 1:
        raise InputError("a reliability diagram shows one dataset; use ClassWiseDisplay for many classes")
    if not profile.single:
        profile = tc.Profile(
            profile.scores, profile.outcomes, profile.weights, profile.squares, profile.products, single=True
        )
    binned = (tc.SweepECE(norm=1) if scheme == "sweep" else tc.BinnedECE(bins=bins, scheme=scheme))(profile)
    assert binned.bins is not None
    low, high = binned.bins.interval(level)
    estimate = tc.RankSeries(level=level)(profile)
    isotonic = tc.IsotonicError()(profile)
    assert estimate.curve is not None
    assert isotonic.curve is not None
    bottom, top = tc.band(profile, level=level).at(estimate.curve.score)
    return ReliabilityNumbers(
        bins=Frame(
            {
                "score": binned.bins.mean_score,
                "outcome": binned.bins.mean_outcome,
                "low": low,
                "high": high,
                "count": binned.bins.counts,
            }
        ),
        smooth=Frame({"score": estimate.curve.score, "outcome": estimate.curve.outcome, "low": bottom, "high": top}),
        isotonic=Frame({"score": isotonic.curve.score, "outcome": isotonic.curve.outcome}),
        histogram=_histogram(profile, np.arange(_HISTOGRAM_BINS + 1) / _HISTOGRAM_BINS),
        zoomed_histogram=_histogram(profile, 1 - np.geomspace(1.0, floor, _HISTOGRAM_BINS + 1)),
        binned=binned,
        estimate=estimate,
    )


def _histogram(profile: tc.Profile, edges: np.ndarray) -> Frame:
    """Share of the predictions between rising edges; those beyond the last edge belong to the last bar."""
    places = profile.places(edges.astype(profile.scores.dtype), "left")
    places[:, 0], places[:, -1] = 0, profile.rows
    weight = np.concatenate(
        [[0.0], np.cumsum(np.ones(profile.rows) if profile.weights is None else profile.weights[0])]
    )
    share = np.diff(weight[places[0]]) / profile.total[0]
    return Frame({"left": edges[:-1], "right": edges[1:], "share": share})
