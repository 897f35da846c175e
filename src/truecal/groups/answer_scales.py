"""Likert scales: may we show "high confidence" to people?

Outputs are shown as named intervals. A category is kept when, among the outputs it covers, the event happens with a frequency
inside the interval's own limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Bins
from truecal.estimators.generalized import binning, distances
from truecal.estimators.generalized.binning import EqualMass, EqualWidth, KDTree, VectorBins
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import Closed, Selection, check_selection
from truecal.special import clopper_pearson, kish
from truecal.table import Frame, Tabular

SCALE: Mapping[str, tuple[float, float]] = {"low": (0.0, 0.33), "medium": (0.33, 0.66), "high": (0.66, 1.0)}


@dataclass(frozen=True, eq=False)
class Category:
    """One interval of the scale and what happened in it; the numbers are None when no output fell into it.

    Attributes
    ----------
    name, low, high, closed : the interval. count, share : how many outputs fell into it.
    mean_output, mean_outcome : their means. outcome_low, outcome_high : Clopper-Pearson interval of the outcome's frequency, with
        the effective number of rows where rows come in clusters.
    inter_interval : error that leaves the interval (InterInterval), by bins inside it. within : total variation by the same bins.
    """

    name: str
    low: float
    high: float
    closed: Closed
    count: int
    share: float
    mean_output: float | None = None
    mean_outcome: float | None = None
    outcome_low: float | None = None
    outcome_high: float | None = None
    inter_interval: tc.Estimate | None = None
    within: tc.Estimate | None = None

    @property
    def kept(self) -> bool | None:
        """Whether the frequency lies inside the interval: True or False where its confidence interval says so, else None."""
        if self.outcome_low is None or self.outcome_high is None:
            return None
        if self.outcome_low >= self.low and self.outcome_high <= self.high:
            return True
        if self.outcome_high < self.low or self.outcome_low > self.high:
            return False
        return None


@dataclass(frozen=True, eq=False, repr=False)
class LikertReport(Tabular):
    """The categories of a scale, lowest first; `outside` counts the outputs that no category covers."""

    categories: tuple[Category, ...]
    outside: int
    level: float

    def frame(self) -> Frame:
        """One row per category."""
        plain = (
            "name",
            "low",
            "high",
            "count",
            "share",
            "mean_output",
            "mean_outcome",
            "outcome_low",
            "outcome_high",
            "kept",
        )
        columns: dict[str, list[Any]] = {name: [getattr(c, name) for c in self.categories] for name in plain}
        for name in ("inter_interval", "within"):
            estimates = [getattr(c, name) for c in self.categories]
            columns[name] = [None if e is None else e.value for e in estimates]
            columns[f"{name}_low"] = [None if e is None else e.interval.low for e in estimates]
            columns[f"{name}_high"] = [None if e is None else e.interval.high for e in estimates]
        return Frame(columns)

    def to_dict(self) -> dict[str, Any]:
        """The categories as plain values."""
        return {"categories": list(self.frame()), "outside": self.outside, "level": float(self.level)}

    def _headline(self) -> str:
        outside = f", {self.outside} outside" if self.outside else ""
        return f"{sum(c.count for c in self.categories)} predictions in {len(self.categories)} categories{outside}"

    def __str__(self) -> str:
        lines = [
            f"{'category':<14}{'interval':<15}{'count':>8}  {'outcome':<26}{'error beyond the interval':<26}  kept"
        ]
        words = {True: "yes", False: "no", None: "not sure"}
        for c in self.categories:
            start = f"{c.name:<14}{f'{c.low:g} to {c.high:g}':<15}{c.count:>8}"
            if c.inter_interval is None or c.inter_interval.interval is None or c.mean_outcome is None:
                lines.append(start)
                continue
            rate = f"{c.mean_outcome:.3f} [{c.outcome_low:.3f}, {c.outcome_high:.3f}]"
            reach = c.inter_interval.interval
            error = f"{c.inter_interval.value:.4f} [{reach.low:.4f}, {reach.high:.4f}]"
            lines.append(f"{start}  {rate:<26}{error:<26}  {words[c.kept]}")
        return "\n".join(lines)


@takes_arrays
def likert(
    preds: tc.Predictions,
    scale: Mapping[str, tuple[float, float]] = SCALE,
    *,
    of: object = None,
    select: Selection | None = None,
    binning: binning.KDTree | binning.EqualWidth | binning.EqualMass | None = None,
    level: float = 0.95,
    replicates: int = 500,
    rng: int = 0,
) -> LikertReport:
    """Judge outputs as people see them: as categories of a scale.

    Kirchenbauer, Oaks & Heim (2022), section 5.3: for each interval [l, h] the inter-interval error (their eq. 7) of the outputs
    inside it, and for comparison the total variation (their Figure 13), both with `binning` applied inside the interval.

    Parameters
    ----------
    scale : names and intervals, which may touch but not overlap. An end shared by two intervals belongs to the upper one; every
        other end belongs to its interval.
    of : the class whose probability is shown; by default P(positive) of binary predictions, or that of the predicted class.
    select : judge only these rows.
    binning : default KDTree(0.1).

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> report = tc.likert(tc.Predictions.from_probs(p, rng.random(3000) < p))
    >>> report.frame()["kept"].tolist()
    [True, True, True]
    """
    check_predictions(preds)
    check_selection(select)
    level = options.level(level)
    binning = KDTree() if binning is None else binning
    kinds = (KDTree, EqualWidth, EqualMass)
    options.instance(
        binning, kinds, "binning", "one of truecal's, such as tc.estimators.KDTree() or tc.estimators.EqualWidth(15)"
    )
    ordered = checked_scale(scale)
    chosen = preds if select is None else select(preds)
    lens = tc.OneClass(of) if of is not None else default_lens(preds)
    categories = []
    covered = np.zeros(len(chosen), bool)
    for i, (name, (low, high)) in enumerate(ordered):
        shared = i + 1 < len(ordered) and ordered[i + 1][1][0] == high
        closed: Closed = "left" if shared else "both"
        inside = tc.by_output(of, low, high, closed=closed)
        rows = inside.mask(chosen)
        covered |= rows
        count = int(np.count_nonzero(rows))
        category = Category(name, low, high, closed, count, count / len(chosen))
        if count:
            judged = chosen.take(rows)
            category = _measured(category, judged, lens, binning, level, replicates, rng)
        categories.append(category)
    return LikertReport(tuple(categories), len(covered) - int(np.count_nonzero(covered)), level)


def _measured(
    category: Category,
    judged: tc.Predictions,
    lens: Lens,
    binning: binning.KDTree | binning.EqualWidth | binning.EqualMass,
    level: float,
    replicates: int,
    rng: int,
) -> Category:
    sample = lens.sample(judged).weighing()
    partition = binning.partition(sample)

    def estimator(distance: distances.InterInterval | distances.TotalVariation) -> tc.GeneralizedECE:
        return tc.GeneralizedECE(
            lens=lens, distance=distance, binning=binning, level=level, replicates=replicates, rng=rng
        )

    # As the estimators say it of these rows; both distances are seen in the same bins.
    bins = VectorBins.of(sample, partition)
    total = estimator(distances.TotalVariation()).measure_sample(sample, options.generator(rng), partition, bins)
    beyond = estimator(distances.InterInterval(category.low, category.high))
    inter_interval = beyond.measure_sample(sample, options.generator(rng), partition, bins)
    within = total.but(lens=lens.describe(judged))
    bin_sums = within.bins
    assert bin_sums is not None
    weight, score, outcome, count = (
        a.sum(axis=1, keepdims=True)
        for a in (bin_sums.weight, bin_sums.score_sum, bin_sums.outcome_sum, bin_sums.count)
    )
    whole = Bins(weight, score, outcome, count, single=True)
    if sample.independent:
        low, high = (float(end[0]) for end in whole.interval(level))
    else:
        low, high = clustered_frequency(sample, level)
    return replace(
        category,
        mean_output=float(whole.mean_score[0]),
        mean_outcome=float(whole.mean_outcome[0]),
        outcome_low=low,
        outcome_high=high,
        inter_interval=inter_interval.but(lens=lens.describe(judged)),
        within=within,
    )


def clustered_frequency(sample: tc.lenses.Sample, level: float) -> tuple[float, float]:
    """Interval of the frequency of an event in rows that come in units (Korn & Graubard 1998).

    Clopper-Pearson's with the effective number of rows n* = p (1 - p) / Var(p) in the place of n, at most n, where Var is that of
    the ratio of unit totals, times (t_{n-1} / t_{J-1})^2 for the J units it rests on. Outcomes all alike say nothing about how
    units differ: then n* = J.

    >>> sample = tc.lenses.Sample(np.full(40, 0.5), np.repeat([0, 1], 20), units=np.repeat(np.arange(4), 10))
    >>> tuple(round(end, 2) for end in clustered_frequency(sample, 0.95))
    (0.0, 1.0)
    """
    from scipy.special import stdtrit

    assert sample.units is not None
    unit = np.unique(sample.units, return_inverse=True)[1]
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    total, units = float(weight.sum()), int(unit.max()) + 1
    rate = float((weight * sample.outcomes).sum()) / total
    if units < 2:
        return 0.0, 1.0
    rows = float(kish(weight))
    deviations = np.bincount(unit, weight * (sample.outcomes - rate), units) / total
    variance = float((deviations**2).sum()) * units / (units - 1)
    size = min(rows, rate * (1 - rate) / variance) if variance > 0 else float(units)
    tail = 0.5 + level / 2
    size *= min(1.0, float(stdtrit(max(rows - 1, 1), tail) / stdtrit(units - 1, tail)) ** 2)
    low, high = clopper_pearson(rate * size, size, 1 - tail)
    return float(low), float(high)


def checked_scale(scale: Mapping[str, tuple[float, float]]) -> list[tuple[str, tuple[float, float]]]:
    """The intervals of a scale in rising order; refuses what are no intervals, or overlap."""
    if not isinstance(scale, Mapping) or not scale:
        raise InputError(f"scale must name intervals, such as {{'low': (0, 0.33), 'high': (0.66, 1)}}, not {scale!r}")
    for name, ends in scale.items():
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise InputError(f"category {name!r} must be an interval (low, high), not {ends!r}")
        distances.InterInterval(*ends)  # refuses ends that are not probabilities in order
        if ends[0] == ends[1]:
            raise InputError(f"category {name!r} is the single point {ends[0]:g}; give it a width")
    ordered = sorted(
        ((name, (float(low), float(high))) for name, (low, high) in scale.items()), key=lambda item: item[1]
    )
    for (first, (_, end)), (second, (start, _)) in pairwise(ordered):
        if start < end:
            raise InputError(
                f"categories {first!r} and {second!r} overlap between {start:g} and {end:g}; they may only touch"
            )
    return ordered
