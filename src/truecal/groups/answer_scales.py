"""`tc.likert`: outputs shown to people as words, each of which stands for an interval of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

import truecal as tc
from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.bins import Bins
from truecal.estimators.generalized import binning, distances
from truecal.estimators.generalized.binning import EqualMass, EqualWidth, KDTree
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import Closed, Selection, check_selection
from truecal.profile.binning import Cut
from truecal.table import Frame, Tabular

# by choice: thirds, the words and limits of a three-point scale
SCALE: Mapping[str, tuple[float, float]] = {"low": (0.0, 0.33), "medium": (0.33, 0.66), "high": (0.66, 1.0)}


@dataclass(frozen=True, eq=False)
class Category:
    """One word of a scale: its interval of outputs, and what was observed of the outputs in it.

    Attributes
    ----------
    name : str
        The word.
    low, high : float
        The interval.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to it.
    count : int
        Outputs in the interval.
    share : float
        Their share of all outputs.
    mean_output : float or None
        Their mean; None, like all that follows, where there is no output in the interval.
    mean_outcome : float or None
        The observed frequency of the event.
    outcome_low, outcome_high : float or None
        Clopper-Pearson interval of the frequency, on the effective number of rows where rows come in clusters.
    inter_interval : Estimate or None
        How far frequencies lie outside the interval, in bins of the outputs inside it.
    within : Estimate or None
        Total variation between outputs and frequencies, in the same bins.
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
    def holds(self) -> bool | None:
        """Whether all of the frequency's confidence interval lies in the word's interval (True) or outside (False).

        None where it lies in part inside, and without outputs.

        >>> Category("likely", 0.6, 0.9, "both", 100, 0.5, 0.75, 0.7, outcome_low=0.62, outcome_high=0.78).holds
        True
        >>> Category("likely", 0.6, 0.9, "both", 100, 0.5, 0.75, 0.5, outcome_low=0.42, outcome_high=0.58).holds
        False
        """
        if self.outcome_low is None or self.outcome_high is None:
            return None
        if self.outcome_low >= self.low and self.outcome_high <= self.high:
            return True
        if self.outcome_high < self.low or self.outcome_low > self.high:
            return False
        return None


_COLUMNS = (
    *("name", "low", "high", "count", "share", "mean_output", "mean_outcome", "outcome_low", "outcome_high"),
    "holds",
)


@dataclass(frozen=True, eq=False, repr=False)
class LikertReport(Tabular):
    """Words of a scale with the observed frequencies of the outputs in their intervals, the lowest first.

    Attributes
    ----------
    categories : tuple
        One record per word: `name`, `low`, `high`, `count`, `share`, `mean_output`, `mean_outcome` with its interval
        `outcome_low` and `outcome_high`, the errors `inter_interval` and `within`, and `holds`: whether the observed
        frequency lies inside the word's interval (None where that is not certain).
    outside : int
        Outputs that no word covers.
    level : float
        Level of all intervals.

    See Also
    --------
    truecal.likert : The function that returns it.
    """

    categories: tuple[Category, ...]
    outside: int
    level: float

    def frame(self) -> Frame:
        """Return one row per word: the attributes of :class:`Category` up to outcome_high, `holds`, and both errors.

        The errors are inter_interval and within, each with <name>_low and <name>_high; None without outputs in the interval.
        """
        columns: dict[str, list[Any]] = {name: [getattr(c, name) for c in self.categories] for name in _COLUMNS}
        for name in ("inter_interval", "within"):
            estimates = [getattr(c, name) for c in self.categories]
            columns[name] = [None if e is None else e.value for e in estimates]
            columns[f"{name}_low"] = [None if e is None else e.interval.low for e in estimates]
            columns[f"{name}_high"] = [None if e is None else e.interval.high for e in estimates]
        return Frame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: "categories" (the rows of :meth:`frame`), "outside" and "level".

        >>> LikertReport((), 2, 0.95).to_dict()
        {'categories': [], 'outside': 2, 'level': 0.95}
        """
        return {"categories": list(self.frame()), "outside": self.outside, "level": float(self.level)}

    @property
    def passed(self) -> bool:
        """Whether no word has `holds` False; a category whose `outcome_low` is NaN does not pass.

        >>> LikertReport((Category("likely", 0.6, 1.0, "both", 0, 0.0),), 0, 0.95).passed
        True
        """
        return not any(c.holds is False or c.outcome_low != c.outcome_low for c in self.categories)

    @property
    def gate(self) -> str:
        """Last line of a gate: "PASS: at 95% no word is shown to be wrong", with the number of words that are not certain.

        Or "FAIL: ..." about the first word that does not hold, with the limits of its frequency, its interval, and the remedy.
        """
        if self.passed:
            undecided = sum(category.holds is None for category in self.categories)
            undecided_note = (
                f"; {undecided} of {len(self.categories)} are not certain, and more rows would decide"
                if undecided
                else ""
            )
            return f"PASS: at {self.level:.0%} no word is shown to be wrong{undecided_note}"
        broken = next(c for c in self.categories if c.holds is False or c.outcome_low != c.outcome_low)
        rate = f"{digits.percent(broken.outcome_low or 0.0)} to {digits.percent(broken.outcome_high or 0.0)}"
        return (
            f"FAIL: at {self.level:.0%} the outcome of {broken.name!r} happens in {rate} of the rows, and the word stands for "
            f"{broken.low:g} to {broken.high:g}; recalibrate, or change the limits of the word"
        )

    def _headline(self) -> str:
        """Write the numbers of predictions and words, without the end if none is outside.

        >>> words = Category("rare", 0.0, 0.4, "both", 100, 0.25), Category("likely", 0.6, 1.0, "both", 300, 0.75)
        >>> LikertReport(words, 20, 0.95)._headline()
        '400 predictions in 2 categories, 20 outside'
        """
        outside = f", {self.outside} outside" if self.outside else ""
        return f"{sum(c.count for c in self.categories)} predictions in {len(self.categories)} categories{outside}"

    def __str__(self) -> str:
        """Write a table with a line per word: its interval, outputs, observed frequency, error outside the interval and
        verdict.

        A word without outputs has name, interval and 0 alone.

        >>> print(LikertReport((Category("likely", 0.6, 1.0, "both", 0, 0.0),), 0, 0.95))
        category      interval          count  observed                  error outside the interval  holds
        likely        0.6 to 1              0
        """
        lines = [
            f"{'category':<14}{'interval':<15}{'count':>8}  {'observed':<26}{'error outside the interval':<26}  holds"
        ]
        verdicts = {True: "yes", False: "no", None: "not certain"}
        for c in self.categories:
            start = f"{c.name:<14}{f'{c.low:g} to {c.high:g}':<15}{c.count:>8}"
            if c.inter_interval is None or c.inter_interval.interval is None or c.mean_outcome is None:
                lines.append(start)
                continue
            observed = f"{c.mean_outcome:.3f} [{c.outcome_low:.3f}, {c.outcome_high:.3f}]"
            limits = c.inter_interval.interval
            error = digits.with_interval(float(c.inter_interval.value), float(limits.low), float(limits.high))
            lines.append(f"{start}  {observed:<26}{error:<26}  {verdicts[c.holds]}")
        return "\n".join(lines)


@takes_arrays
def likert(
    preds: tc.Predictions,
    scale: Mapping[str, tuple[float, float]] = SCALE,
    *,
    class_name: object = None,
    select: Selection | None = None,
    binning: binning.KDTree | binning.EqualWidth | binning.EqualMass | None = None,
    level: float = 0.95,
    replicates: int = 500,
    rng: int = 0,
) -> LikertReport:
    """Compare words shown instead of probabilities with the observed frequencies.

    Parameters
    ----------
    preds : Predictions
        The predictions; or ``y_true, y_prob``.
    scale : mapping of str to (low, high), default {"low": (0, 0.33), "medium": (0.33, 0.66), "high": (0.66, 1)}
        Words and their intervals, which may touch and not overlap. An end shared by two intervals belongs to the upper
        one; every other end belongs to its interval.
    class_name : object, default None
        The class whose probability is shown; None is the positive class of two, the predicted class of more.
    select : Selection, default None
        Which rows are judged; None is all of them.
    binning : KDTree, EqualWidth or EqualMass, default None
        Bins of the outputs inside an interval, for the two errors; None is KDTree(0.1).
    level : float, default 0.95
        Level of all intervals.
    replicates : int, default 500
        Resamples behind the intervals of the errors.
    rng : int, default 0
        Seed of the resamples.

    Returns
    -------
    LikertReport
        One record per word.

    Raises
    ------
    InputError
        Intervals that overlap, are empty or no probabilities; a binning of another kind.

    Notes
    -----
    A word holds if, among the outputs in its interval [l, h], the event happens with a frequency in [l, h]: certainly so
    where the Clopper-Pearson interval of the frequency lies inside, certainly not where it lies outside. The
    inter-interval error (eq. 7 of the paper) averages over bins how far their frequencies lie outside [l, h]; the total
    variation (its Figure 13) how far they lie from the outputs. Rows of one cluster count as few independent rows (Korn
    and Graubard 1998).

    References
    ----------
    Kirchenbauer, Oaks, Heim. What is your metric telling you? Evaluating classifier calibration under context-specific
    definitions of reliability. 2022, section 5.3. https://doi.org/10.48550/arXiv.2205.11454

    See Also
    --------
    truecal.estimators.InterInterval : The distance behind the error.
    truecal.subgroups : Errors of groups of rows.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> report = tc.likert(tc.Predictions.from_probs(p, rng.random(3000) < p))
    >>> report.frame()["holds"].tolist()
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
    intervals = check_scale(scale)
    selected = preds if select is None else select(preds)
    lens = tc.OneClass(class_name) if class_name is not None else default_lens(preds)
    estimator = tc.GeneralizedECE(lens=lens, binning=binning, level=level, replicates=replicates, rng=rng)
    categories = []
    covered = np.zeros(len(selected), bool)
    for i, (name, (low, high)) in enumerate(intervals):
        shares_end = i + 1 < len(intervals) and intervals[i + 1][1][0] == high
        closed: Closed = "left" if shares_end else "both"
        rows = tc.by_output(class_name, low, high, closed=closed).mask(selected)
        covered |= rows
        count = int(np.count_nonzero(rows))
        category = Category(name, low, high, closed, count, count / len(selected))
        categories.append(_measure(category, selected.take(rows), lens, estimator, level) if count else category)
    return LikertReport(tuple(categories), len(covered) - int(np.count_nonzero(covered)), level)


def _measure(
    category: Category, preds: tc.Predictions, lens: Lens, estimator: tc.GeneralizedECE, level: float
) -> Category:
    """Return the category with mean output, observed frequency and errors of the rows `preds` in its interval (at least one).

    The frequency has Clopper-Pearson limits at `level`. `inter_interval` is the error of the distance InterInterval(low, high),
    `within` that of TotalVariation(), both of the same bins of the outputs and the same resamples. Rows of weight zero
    are left out.
    """
    sample = lens.sample(preds).weighing()

    def measure(distance: distances.InterInterval | distances.TotalVariation) -> tc.Estimate:
        """Estimate the error of this distance, with interval and test, in the bins of the category's rows."""
        rng = options.generator(estimator.rng)
        estimate = replace(estimator, distance=distance).measure_sample(sample, rng)
        return estimate.replace(lens=lens.describe(preds))

    ends = np.array([[0, sample.profile.rows]])
    whole = Bins.of(sample.profile, Cut(ends, ends))
    (outcome_low,), (outcome_high,) = whole.interval(level)
    return replace(
        category,
        mean_output=float(whole.mean_score[0]),
        mean_outcome=float(whole.mean_outcome[0]),
        outcome_low=float(outcome_low),
        outcome_high=float(outcome_high),
        inter_interval=measure(distances.InterInterval(category.low, category.high)),
        within=measure(distances.TotalVariation()),
    )


def check_scale(scale: Mapping[str, tuple[float, float]]) -> list[tuple[str, tuple[float, float]]]:
    """Return (word, (low, high)) of a scale by ascending interval; intervals may touch.

    Refuses an empty scale, ends that are not probabilities in order, single points, and intervals that overlap.

    >>> check_scale({"likely": (0.6, 1), "unlikely": (0, 0.4)})
    [('unlikely', (0.0, 0.4)), ('likely', (0.6, 1.0))]
    """
    if not isinstance(scale, Mapping) or not scale:
        raise InputError(f"scale must name intervals, such as {{'low': (0, 0.33), 'high': (0.66, 1)}}, not {scale!r}")
    for name, ends in scale.items():
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise InputError(f"category {name!r} must be an interval (low, high), not {ends!r}")
        distances.InterInterval(*ends)  # refuses ends that are not probabilities in order
        if ends[0] == ends[1]:
            raise InputError(f"category {name!r} is the single point {ends[0]:g}; give it a width")
    intervals = sorted(
        ((name, (float(low), float(high))) for name, (low, high) in scale.items()), key=lambda item: item[1]
    )
    for (first, (_, end)), (second, (start, _)) in pairwise(intervals):
        if start < end:
            raise InputError(
                f"categories {first!r} and {second!r} overlap between {start:g} and {end:g}; they may only touch"
            )
    return intervals
