"""The Conclusion: one verdict about a dataset, from which every text, table, page and exit code is rendered."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isnan, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from truecal import digits, names, options
from truecal.errors import InputError
from truecal.estimators.bins import Bins, distinct_cut
from truecal.estimators.estimate import Estimate
from truecal.inference.measurement import is_rejected
from truecal.profile.binning import Cut, width_edges
from truecal.profile.profile import Profile
from truecal.table import Frame, Tabular, plain
from truecal.types import Indices

VerdictWord = Literal["within", "outside", "groups differ", "not enough data"]
Assumption = Literal["smooth"]

# By choice. Cells of equal width, and as many of equal mass, among which the worst region is searched. Measured on 150 datasets
# of 600 rows: a bump 0.16 wide is found in 0.84, 0.63, 0.31 of them by 10, 20, 40 cells; of calibrated ones 0.02, 0.01, 0 have a
# region. Ten cells find more; 20 name a range of 0.05 rather than 0.1.
_CELLS = 20
_MAX_VALUES = (
    _CELLS  # distinct scores up to which each is a region. derived: no more regions, so the same adjusted level
)
# derived: three cells of equal width; cells of equal mass in sparse ranges would average errors of opposite sign. On even and
# U-shaped scores 0.1 to 1 made no difference (the datasets above).
_MAX_WIDTH = 3 / _CELLS
_MAX_ROWS = 10**12  # derived: a forecast beyond every dataset is none
# Share of the error below which the mean difference does not describe it. derived: |mean| / rms of an error of one sign that is
# confined to 1/16 of the rows is 1/4; smaller ratios come from errors of both signs.
_ONE_SIDED = 0.25
CASES = 1000  # by choice: of a decision, by which sentences and tables count its loss
_MIN_DIRECTION = 0.0005  # derived: a mean difference that rounds to 0.0 points

# ----------------------------------------------------------------------------------------------------
# What a conclusion is made from, as plain records


@dataclass(frozen=True)
class GroupError:
    """The calibration error of one group of rows.

    Attributes
    ----------
    name : str
        Value of the column, or values joined by commas.
    n : int
        Number of rows.
    value : float
        The error.
    low : float
        Lower limit of the error, which should be one among those of all groups.
    high : float
        Upper limit of the error.
    p_value : float or None
        Of "this group is calibrated", adjusted for all groups where they are judged together.
    direction : float
        Mean score minus frequency.

    See Also
    --------
    conclude : takes groups.
    """

    name: str
    n: int
    value: float
    low: float
    high: float
    p_value: float | None = None
    direction: float = 0.0

    @classmethod
    def of(cls, name: str, estimate: Estimate) -> "GroupError":
        """Make the record of a group from its estimate, which has an interval.

        Parameters
        ----------
        name : str
            Name of the group.
        estimate : Estimate
            Its error, with an interval.

        Returns
        -------
        GroupError
        """
        p, direction = _p_value(estimate), float(estimate.direction)
        return cls(name, estimate.n, float(estimate.value), *limits(estimate), p, direction)


@dataclass(frozen=True)
class Slope:
    """The slope of a logistic recalibration: 1 for a calibrated model, below 1 for too extreme scores.

    Parameters
    ----------
    value : float
        The slope.
    low : float
        Lower limit of its interval.
    high : float
        Upper limit of its interval.

    Examples
    --------
    >>> Slope(0.70, 0.53, 0.87).differs
    True
    """

    value: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1.

        >>> Slope(0.8, 0.7, 0.9).differs, Slope(0.9, 0.7, 1.1).differs
        (True, False)
        """
        return self.high < 1 or self.low > 1

    def __str__(self) -> str:
        """Write value and limits with two decimals.

        >>> print(Slope(0.8, 0.7, 0.9))
        0.80 [0.70, 0.90]
        """
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class LossAt:
    """The loss at one threshold, per case, with the interval of this threshold alone or of all together.

    Parameters
    ----------
    threshold : float
        Score from which a case is acted on.
    value : float
        What miscalibration costs per case.
    low : float
        Lower limit of the loss.
    high : float
        Upper limit of the loss.
    level : float
        Level of the limits.
    unit : float, default 1.0
        What a false alarm and a missed event cost together.

    See Also
    --------
    truecal.decision_loss : Computes losses; `at(t)` and `maximum` are of this kind.

    Examples
    --------
    >>> print(LossAt(0.2, 0.0031, 0.0012, 0.0054, 0.95))
    acting at 0.2, miscalibration costs 3.1 per 1,000 cases [1.2, 5.4] (a false alarm costs 0.2, a missed event 0.8)
    """

    threshold: float
    value: float
    low: float
    high: float
    level: float
    unit: float = 1.0

    def __str__(self) -> str:
        """Write the loss per 1,000 cases with its limits, and the costs of a false alarm and of a missed event."""
        value, low, high = (CASES * x for x in (self.value, self.low, self.high))
        spec = f".{digits.significant_decimals(low, high)}f"
        return (
            f"acting at {self.threshold:g}, miscalibration costs {value:{spec}} per {CASES:,} cases [{low:{spec}}, {high:{spec}}] "
            f"(a false alarm costs {self.unit * self.threshold:.3g}, a missed event {self.unit * (1 - self.threshold):.3g})"
        )


@dataclass(frozen=True)
class RowCounts:
    """How many rows were read, dropped and analysed.

    Parameters
    ----------
    read : int
        Rows of the source.
    analysed : int
        Rows that were measured.
    dropped : int, default 0
        Rows left out because of missing values.
    selection : str, default ""
        Which rows were selected, in words; empty for all.

    Examples
    --------
    >>> RowCounts(read=1065, analysed=1000, dropped=65).sentence
    '65 of 1,065 rows were dropped because of missing values.'
    """

    read: int
    analysed: int
    dropped: int = 0
    selection: str = ""

    @property
    def sentence(self) -> str:
        """What happened to the rows, in words; empty where every row that was read was analysed.

        >>> RowCounts(1000, 990, 10, "").sentence, RowCounts(1000, 1000, 0, "").sentence
        ('10 of 1,000 rows were dropped because of missing values.', '')
        """
        parts = []
        if self.dropped:
            parts.append(f"{self.dropped:,} of {self.read:,} rows were dropped because of missing values")
        if self.selection:
            parts.append(f"{self.analysed:,} rows were selected: {self.selection}")
        return f"{_capitalised('; '.join(parts))}." if parts else ""


@dataclass(frozen=True)
class Region:
    """Neighbouring scores, with what was observed there.

    Attributes
    ----------
    lowest : float
        Smallest score of the region.
    highest : float
        Largest score of the region.
    mean_score : float
        Mean score.
    frequency : float
        How often the outcome happened.
    low : float
        Lower Clopper-Pearson limit of the frequency, at the level of the conclusion.
    high : float
        Upper limit of the frequency.
    rows : int
        Number of rows (the effective number under importance weights).
    outcomes : int
        Number of rows in which the outcome happened.
    weighted : bool
        Whether importance weights make these numbers no counts.

    See Also
    --------
    worst_region : finds the region that adds most to the error.
    stated_values : makes one of every distinct score.
    """

    lowest: float
    highest: float
    mean_score: float
    frequency: float
    low: float
    high: float
    rows: int
    outcomes: int
    weighted: bool = False

    def sentence(self, lens: str) -> str:
        """Say what was predicted and what was observed.

        Parameters
        ----------
        lens : str
            What the scores are of, in words.

        Returns
        -------
        str

        Examples
        --------
        >>> Region(0.45, 0.55, 0.5, 1 / 3, 0.24, 0.44, 96, 32).sentence("positive class")
        'Predictions of about 50% (45% to 55%) came true in 32 of 96 rows (33%, 24% to 44%).'
        >>> Region(0.9, 0.9999, 0.998, 0.9, 0.85, 0.95, 100, 90).sentence("top label")
        'Answers with a confidence of over 99% (90% to over 99%) were right in 90 of 100 rows (90%, 85% to 95%).'
        """
        score, lowest, highest = digits.percents(self.lowest, self.highest, self.mean_score, self.lowest, self.highest)
        span = "" if self.lowest == self.highest else f" ({lowest} to {highest})"
        answers = names.judges_answers(lens)
        score = score if score.startswith(("over", "under")) else f"about {score}"
        subject = f"{'Answers with a confidence' if answers else 'Predictions'} of {score}"
        verb = "were right" if answers else "came true"
        frequency, low, high = digits.percents(self.low, self.high, self.frequency, self.low, self.high)
        rate = f"{frequency}, {low} to {high}"
        count = (
            f"at a weighted rate of {rate}" if self.weighted else f"in {self.outcomes:,} of {self.rows:,} rows ({rate})"
        )
        return f"{subject}{span} {verb} {count}."


# ----------------------------------------------------------------------------------------------------
# Regions of scores by observed counts


def stated_values(profile: Profile, level: float = 0.95) -> tuple[Region, ...]:
    """Return one region per distinct score, in ascending order; none where there are more than 20.

    Parameters
    ----------
    profile : Profile
        Scores and outcomes of one dataset.
    level : float, default 0.95
        Of the interval of each frequency.

    Returns
    -------
    tuple of Region

    Examples
    --------
    >>> import truecal as tc
    >>> for region in stated_values(tc.profile.Profile.from_arrays([0.5, 0.5, 0.9, 0.9], [0, 1, 1, 1])):
    ...     print(region.sentence("positive class"))
    Predictions of about 50% came true in 1 of 2 rows (50%, 1% to 99%).
    Predictions of about 90% came true in 2 of 2 rows (100%, 16% to 100%).
    """
    if int(profile.distinct[0]) > _MAX_VALUES:
        return ()
    return _regions(profile, distinct_cut(profile).below[0], level)


def worst_region(profile: Profile, level: float = 0.95) -> Region | None:
    """Find the neighbouring scores that add most to the squared error, by observed counts.

    Regions are the distinct scores where they are few, else cells of equal width and cells of equal mass that span at most 0.15.
    A region counts only if its interval, at a level adjusted for all regions, excludes its mean score.

    Parameters
    ----------
    profile : Profile
        Scores and outcomes of one dataset.
    level : float, default 0.95
        Of the statement that the region is off, and of the interval that is given.

    Returns
    -------
    Region or None
        None where no region is off by more than chance.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.5] * 96 + [0.9] * 100, [1] * 32 + [0] * 64 + [1] * 90 + [0] * 10)
    >>> region = worst_region(profile)
    >>> region.outcomes, region.rows
    (32, 96)
    """
    return max(_regions_off(profile, level), key=_contribution, default=None)


def _regions_off(profile: Profile, level: float) -> list[Region]:
    """Return the regions that add to the error and whose interval, at a level adjusted for all regions, excludes their score."""
    if int(profile.distinct[0]) <= _MAX_VALUES:
        partitions = [distinct_cut(profile).below[0]]
    else:
        width = profile.count_below(width_edges(_CELLS, profile.precision)[1:-1], "left")
        partitions = [width, profile.mass_cut(_CELLS).below]
    count = sum(len(np.unique(starts)) for starts in partitions)
    adjusted, regions = 1 - (1 - level) / count, []
    for starts in partitions:
        pairs = zip(_regions(profile, starts, level), _regions(profile, starts, adjusted), strict=True)
        regions += [region for region, wide in pairs if not wide.low <= wide.mean_score <= wide.high]
    return [region for region in regions if region.highest - region.lowest <= _MAX_WIDTH and _contribution(region) > 0]


def _contribution(region: Region) -> float:
    """Compute what a region adds to the squared error, times the number of rows: n ((c - y)^2 - y (1 - y) / n)."""
    noise = region.frequency * (1 - region.frequency) / max(region.rows, 1)
    return region.rows * ((region.mean_score - region.frequency) ** 2 - noise)


def _regions(profile: Profile, starts: Indices, level: float) -> tuple[Region, ...]:
    """Return the region between each two consecutive positions `starts` of the sorted rows, 0 and the end added.

    Frequencies have Clopper-Pearson limits at `level`. Repeated positions count once, so no region is empty.
    """
    scores = profile.scores
    edges = np.unique(np.concatenate([[0], np.ravel(starts), [profile.rows]]))
    bins = replace(Bins.of(profile, Cut(edges[None], edges[None])), single=True)
    low, high = bins.interval(level)
    # cells of a sketch have lower and upper ends
    lowest, highest = (np.ravel(getattr(profile, name, scores)) for name in ("low", "high"))
    weighted = profile.weights is not None and not profile.counted
    return tuple(
        Region(
            lowest=float(lowest[start]),
            highest=float(highest[end - 1]),
            mean_score=min(max(float(bins.mean_score[i]), float(lowest[start])), float(highest[end - 1])),
            frequency=float(bins.mean_outcome[i]),
            low=float(low[i]),
            high=float(high[i]),
            rows=round(float(bins.counts[i])),
            outcomes=round(float(bins.counts[i] * bins.mean_outcome[i])),
            weighted=weighted,
        )
        for i, (start, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    )


# ----------------------------------------------------------------------------------------------------
# The conclusion


@dataclass(frozen=True, repr=False)
class Conclusion(Tabular):
    """One verdict about a dataset, with every fact that a rendering may show.

    Attributes
    ----------
    verdict : "within", "outside", "groups differ", "not enough data" or None
        "within" if the upper limit of the error (and with `every_group` that of every group) is at most the tolerance, "outside"
        if the lower limit is above it, "groups differ" if it is not outside but a group is. None without a tolerance.
    tolerance : float or None
        Largest acceptable error, on the scale of probabilities.
    level : float
        Of all limits.
    metric : str
        What kind of average the error is.
    lens : str
        What the scores are of, in words.
    n : int
        Number of rows judged.
    value : float
        The error.
    low : float or None
        Its lower limit, widened by what a sketch leaves open; None without an interval.
    high : float or None
        Its upper limit, likewise.
    p_value : float or None
        Of the test that the scores are calibrated.
    direction : float or None
        Mean score minus frequency; None where that is not known.
    direction_margin : float
        How large the direction of a calibrated model may be by chance, at the level; 0 where that is not known.
    region : Region or None
        The scores that add most to the error, by observed counts; None where none stands out.
    both_signs : bool or None
        Whether some scores are predicted too high and others too low by more than chance; None where no region stands out.
    groups : tuple of GroupError
        Errors of groups of rows.
    slope : Slope or None
        Of a logistic recalibration.
    rows : RowCounts or None
        How many rows were read, dropped and selected.
    losses : tuple of LossAt
        What miscalibration costs at the thresholds that the user acts at.
    every_group : bool
        Whether "within" requires that every group is within, as a gate over groups does.
    assumption : "smooth" or None
        Assumption of the upper limit that a gate does not accept; None where there is none, or it was accepted.
    warnings : tuple of str
        What to know before quoting the numbers.

    See Also
    --------
    conclude : makes one.
    """

    verdict: VerdictWord | None
    tolerance: float | None
    level: float
    metric: str
    lens: str
    n: int
    value: float
    low: float | None
    high: float | None
    p_value: float | None = None
    direction: float | None = None
    direction_margin: float = 0.0
    region: Region | None = None
    both_signs: bool | None = None
    groups: tuple[GroupError, ...] = ()
    slope: Slope | None = None
    rows: RowCounts | None = None
    losses: tuple[LossAt, ...] = ()
    every_group: bool = False
    assumption: Assumption | None = None
    warnings: tuple[str, ...] = ()

    # ------------------------------------------------------------------ facts

    @property
    def passed(self) -> bool | None:
        """Whether a gate at the tolerance passes: the verdict is "within", and `assumption` is None; None without a tolerance."""
        return None if self.verdict is None else self.verdict == "within" and self.assumption is None

    @property
    def miscalibrated(self) -> bool:
        """Whether the test, the slope or a group shows that the scores are not calibrated."""
        return bool(self._evidence())

    @property
    def worst_group(self) -> GroupError | None:
        """The group with the largest lower limit among those outside, else that with the highest upper limit."""
        return next(iter(self._groups_outside()), None) or max(self.groups, key=lambda group: group.high, default=None)

    @property
    def further(self) -> int | None:
        """About how many further rows would make an undecided gate pass if the estimates are right; None where none would.

        The larger number of that of all rows (`rows_to_pass`) and the sum over undecided groups.
        """
        whole, groups = ([self._rows_to_pass(error) for error in errors] for errors in self._undecided())
        if self.verdict != "not enough data" or None in (*whole, *groups):
            return None
        return max(sum(rows or 0 for rows in whole), sum(rows or 0 for rows in groups))

    # ------------------------------------------------------------------ words

    @property
    def headline(self) -> str:
        """The verdict in a few words.

        With a tolerance "Within tolerance", "Outside tolerance", "Groups differ: 1 of 3 groups outside tolerance", "Not enough
        data" or, where miscalibration is shown, "Miscalibrated, size uncertain". Without one "Miscalibrated" or
        "No miscalibration shown".
        """
        if self.verdict in ("within", "outside"):
            return f"{self.verdict.capitalize()} tolerance"
        if self.verdict == "groups differ":
            return f"Groups differ: {self._count_outside() if len(self.groups) > 1 else '1 group'} outside tolerance"
        if self.verdict == "not enough data":
            return "Miscalibrated, size uncertain" if self.miscalibrated else "Not enough data"
        return "Miscalibrated" if self.miscalibrated else "No miscalibration shown"

    @property
    def sentence(self) -> str:
        """The verdict with the numbers behind it, in one to three sentences.

        First the error with its interval, and how it compares with the tolerance; then, where that is undecided, what else shows
        miscalibration; then a sentence on the groups if there are any.
        """
        if self.tolerance is None:
            return f"The {self.metric} is {self._size()}."
        tolerance = f"the tolerance of {100 * self.tolerance:g} points"
        finding = f"The {self.metric} {'of all rows together ' if self.groups else ''}is {self._size()}"
        evidence = self._evidence()
        if self._whole == "within":
            text = f"{finding}, within {tolerance}."
        elif self._whole == "outside":
            text = f"{finding}, more than {tolerance}."
        elif evidence:
            proofs = " and ".join([*([", ".join(evidence[:-1])] if evidence[1:] else []), evidence[-1]])
            text = f"{finding}. Miscalibration is shown by {proofs}; whether it is more than {tolerance} is open."
        else:
            text = f"{finding}: {self.n:,} rows are too few to tell whether it is within {tolerance}."
            text += "" if self.low else " No miscalibration could be shown."
        return f"{text} {self._group_sentence()}".strip()

    @property
    def reading(self) -> str:
        """What the verdict means for someone who uses the scores: direction and worst region, or that nothing was shown."""
        if self._evidence_of_all_rows() or self._whole == "outside":
            region = "" if self.region is None else self.region.sentence(self.lens)
            return f"{self._direction_sentence()} {region}".strip()
        groups = [*self._groups_outside(), *self._miscalibrated_groups()]
        if groups:
            has_direction = abs(groups[0].direction) >= _MIN_DIRECTION
            direction = f"In {groups[0].name}: {self._tendency(groups[0].direction)}." if has_direction else ""
            return f"All rows together are not shown to be miscalibrated. {direction}".strip()
        return "" if self.p_value is None else f"No test rejects calibration ({digits.p_equation(self.p_value)})."

    @property
    def additions(self) -> tuple[str, ...]:
        """What losses, slope and rows add, one sentence each."""
        lines = [f"A{str(loss)[1:]}." for loss in self.losses]
        if self.slope is not None:
            kind = f"the scores are too {'extreme' if self.slope.value < 1 else 'moderate'}"
            finding = kind if self.slope.differs else "1, a calibrated model, is not excluded"
            lines.append(f"Calibration slope {self.slope}: {finding}.")
        if self.rows is not None and self.rows.sentence:
            lines.append(self.rows.sentence)
        return tuple(lines)

    @property
    def gate(self) -> str:
        """Last line of a gate: PASS or FAIL, the number that decides, and what would change it; empty without a tolerance.

        PASS names the upper limit. FAIL names one of these: that a smooth curve must be assumed, the groups outside, the lower
        limit above the tolerance, or the upper limit with the number of further rows that would let it pass.
        """
        if self.tolerance is None or self.low is None or self.high is None:
            return ""
        limit, start, worst = f"{self.tolerance:g}", f"at {self.level:.0%} the error", self.worst_group
        errors: list[Conclusion | GroupError] = [self, *(self.groups if self.every_group else ())]
        widest = max(errors, key=lambda error: error.high or 0.0)  # whose upper limit decides
        upper = digits.beside_limit(widest.high or 0.0, self.tolerance, digits.decimals(widest.low, widest.high))
        if self.passed:
            every = " in every group" if self.every_group and self.groups else ""
            return f"PASS: {start} is at most {upper}{every}, and {limit} is allowed"
        if self.verdict == "within":
            return (
                f"FAIL: {start} is at most {upper}, below {limit}, only if the calibration curve is smooth; "
                "--assume-smooth accepts that, and recalibrate fit --method scaling-binning makes the outputs few, which needs "
                "no such assumption"
            )
        if worst is not None and self._groups_outside() and (self.every_group or self.verdict == "groups differ"):
            undecided = len(self._undecided_groups())
            undecided_note = f"; it may be in {undecided} more" if undecided else ""
            group_low = digits.beside_limit(worst.low, self.tolerance, digits.decimals(worst.low, worst.high))
            return (
                f"FAIL: {start} is above {limit} in {self._count_outside()}, most in {worst.name} "
                f"(at least {group_low}){undecided_note}; recalibrate by group"
            )
        if self.verdict == "outside":
            low = digits.beside_limit(self.low, self.tolerance, digits.decimals(self.low, self.high))
            return f"FAIL: {start} is at least {low}, and {limit} is allowed; recalibrate the model"
        remedy = f"about {digits.about(self.further or 0)} further rows would let it pass if the estimate is right"
        if self.further is None:
            whole, groups = self._undecided()
            blocked = next(error for error in (*whole, *groups) if self._rows_to_pass(error) is None)
            value = f"{blocked.value:.{digits.decimals(blocked.low, blocked.high)}f}{_where(blocked)}"
            remedy = f"if the estimate of {value} is right, more rows would not let it pass"
        if widest.high == 1:
            remedy = "these rows give no upper limit below 1"
        return f"FAIL: {start} may be as large as {upper}{_where(widest)}, and {limit} is allowed; {remedy}"

    def group_finding(self, name: str) -> str:
        """Return what is shown of one group, in words; empty where no miscalibration of it is shown.

        Parameters
        ----------
        name : str
            Name of the group.

        Returns
        -------
        str
            Where its p-value is at most 1 - level: "miscalibrated, within tolerance", "outside tolerance", or
            "miscalibrated, size uncertain" where its limits lie on both sides of the tolerance or there is none. Else "".
        """
        findings = {"within": "miscalibrated, within tolerance", "outside": "outside tolerance"}
        group = next((group for group in self._miscalibrated_groups() if group.name == name), None)
        uncertain = "miscalibrated, size uncertain"
        return "" if group is None else findings.get(str(_verdict(group, self.tolerance)), uncertain)

    # ------------------------------------------------------------------ renderings

    def frame(self) -> Frame:
        """Return one row: verdict, tolerance, value, low, high, level, p_value, direction, n, lens."""
        numbers = ("verdict", "tolerance", "value", "low", "high", "level", "p_value", "direction", "n", "lens")
        return Frame.from_records([{name: getattr(self, name) for name in numbers}])

    def to_dict(self) -> dict[str, Any]:
        """Return all facts and words as plain values, as `--json` prints them under "conclusion".

        Keys are the fields, worst_group (a name or None), groups_outside (names), headline, sentence, reading, additions, gate,
        passed and further.
        """
        properties = ("headline", "sentence", "reading", "additions", "gate", "passed", "further")
        worst = self.worst_group
        return {
            **super().to_dict(),
            "worst_group": None if worst is None else worst.name,
            "groups_outside": [group.name for group in self._groups_outside()],
            **{name: plain(getattr(self, name)) for name in properties},
        }

    def __str__(self) -> str:
        """Write headline, sentence, reading, additions, warnings and gate, a line each; empty ones are left out."""
        lines = [f"{self.headline}. {self.sentence}", self.reading, *self.additions]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(line for line in [*lines, self.gate] if line)

    # ------------------------------------------------------------------ parts of facts and words

    @property
    def _whole(self) -> VerdictWord | None:
        """The verdict of all rows together by their limits, without regard to groups; None without a tolerance."""
        return _verdict(self, self.tolerance)

    def _undecided(self) -> tuple[Sequence["Conclusion | GroupError"], Sequence["Conclusion | GroupError"]]:
        """Return what keeps an undecided gate from passing: all rows together, and with `every_group` undecided groups."""
        whole = [self] if self._whole == "not enough data" or not self.groups else []
        return whole, self._undecided_groups() if self.every_group else []

    def _rows_to_pass(self, error: "Conclusion | GroupError") -> int | None:
        """Forecast how many further rows bring the upper limit of all rows or of a group down to the tolerance."""
        return rows_to_pass(error.value, error.high or 0.0, self.tolerance or 0.0, error.n)

    def _groups_outside(self) -> list[GroupError]:
        """Return the groups whose lower limit is above the tolerance, the highest lower limit first."""
        outside = [group for group in self.groups if _verdict(group, self.tolerance) == "outside"]
        return sorted(outside, key=lambda group: -group.low)

    def _undecided_groups(self) -> list[GroupError]:
        """Return the groups whose limits lie on both sides of the tolerance, the highest upper limit first."""
        undecided = [group for group in self.groups if _verdict(group, self.tolerance) == "not enough data"]
        return sorted(undecided, key=lambda group: -group.high)

    def _miscalibrated_groups(self) -> list[GroupError]:
        """Return the groups whose test rejects at 1 - level, the highest lower limit first; groups without a test are left out."""
        tested = [
            group for group in self.groups if group.p_value is not None and is_rejected(group.p_value, self.level)
        ]
        return sorted(tested, key=lambda group: -group.low)

    def _evidence_of_all_rows(self) -> list[str]:
        """List in words what shows that all rows together are not calibrated: the test, the slope, both or none.

        The test does if it rejects at 1 - level, the slope if its interval excludes 1.
        """
        parts = []
        if self.p_value is not None and is_rejected(self.p_value, self.level):
            parts.append(f"the test of calibration ({digits.p_equation(self.p_value)})")
        if self.slope is not None and self.slope.differs:
            parts.append(f"the calibration slope ({self.slope})")
        return parts

    def _evidence(self) -> list[str]:
        """List in words what shows that the scores are not calibrated: test and slope of all rows, and the number of groups.

        The last has the form "2 of 5 groups"; [] if nothing shows it.
        """
        groups = len(self._miscalibrated_groups())
        return [*self._evidence_of_all_rows(), *([f"{groups} of {len(self.groups)} groups"] if groups else [])]

    def _direction_sentence(self) -> str:
        """Write the direction of the mean difference and its size; "" where it is not known or rounds to 0.0 points.

        A mean difference below a quarter of the error comes from errors of both signs, unless the regions that stand out have one
        sign: the sentence then says so instead.
        """
        if self.direction is None:
            return ""
        if (
            self.both_signs is not False
            and self.value > _MIN_DIRECTION
            and abs(self.direction) < _ONE_SIDED * self.value
        ):
            high, low = (names.tendency(self.lens, sign) for sign in (1.0, -1.0))
            subject = "Answers are" if names.judges_answers(self.lens) else "Outcomes are"
            return f"{subject} {high} in some ranges of the score and {low.removeprefix('predicted ')} in others."
        if abs(self.direction) < _MIN_DIRECTION:
            return ""
        chance = ", which may be chance" if abs(self.direction) < self.direction_margin else ""
        return f"{_capitalised(self._tendency(self.direction))}{chance}."

    def _tendency(self, direction: float) -> str:
        """Write a direction in words with its size, such as "predicted too high by 3.1 points on average"."""
        return f"{names.tendency(self.lens, direction)} by {digits.points(abs(direction))} on average"

    def _size(self) -> str:
        """Write the error and its interval in percentage points: "at most" the upper limit where the lower one is 0.

        Without limits the error alone.
        """
        if self.low is None or self.high is None:
            return digits.points(self.value)
        confidence = f"{self.level:.0%} confidence"
        if self.low <= 0:
            return f"at most {digits.points(self.high, self.tolerance)} ({confidence})"
        value = digits.points_within(self.value, self.low, self.high, self.tolerance)
        return f"{value} ({confidence}: {digits.points_between(self.low, self.high, 'to', self.tolerance)})"

    def _count_outside(self) -> str:
        """Write the number of groups outside of the tolerance, such as "2 of 5 groups"."""
        return f"{len(self._groups_outside())} of {len(self.groups)} groups"

    def _group_sentence(self) -> str:
        """Write how groups compare with the tolerance (outside, undecided, or all within); "" without groups.

        Outside: their number, the error with interval of the worst, and how many more are undecided. Undecided: their number,
        and the group with the highest upper limit.
        """
        outside, undecided, worst = self._groups_outside(), self._undecided_groups(), self.worst_group
        if worst is None:
            return ""
        if outside:
            value = digits.points_within(worst.value, worst.low, worst.high, self.tolerance)
            size = f"{value}, {digits.points_between(worst.low, worst.high, 'to', self.tolerance)}"
            verb = "is" if len(outside) == 1 else "are"
            undecided_note = f"; {len(undecided)} more may be" if undecided else ""
            return f"{self._count_outside()} {verb} outside it, most in {worst.name} ({size}){undecided_note}."
        if undecided:
            count = f"{len(undecided)} of {len(self.groups)} groups {'has' if len(undecided) == 1 else 'have'}"
            return f"{count} too few rows to tell; the upper limit is highest in {worst.name}."
        return "Every group is within it."


def _where(error: Conclusion | GroupError) -> str:
    """Write " in <name>" for a group, "" for all rows together."""
    return f" in {error.name}" if isinstance(error, GroupError) else ""


def _capitalised(text: str) -> str:
    """Capitalise the first letter and leave the others as they are.

    >>> _capitalised("predicted too LOW")
    'Predicted too LOW'
    """
    return f"{text[0].upper()}{text[1:]}"


def limits(estimate: Estimate) -> tuple[float, float]:
    """Return the limits of an error: those of its interval, widened by the sketch error, within [0, 1].

    A lower limit that is not a number is 0, an upper one 1.

    Raises
    ------
    InputError
        If the estimate has no interval.
    """
    if estimate.interval is None:
        raise InputError(
            "a verdict needs an interval, which a class-wise scan does not have; judge one class with --lens class=NAME"
            if estimate.sketch_error is not None
            else "a verdict needs an interval, which this estimator does not have; use the default, rank-series"
        )
    sketch_error = estimate.sketch_error or 0.0
    low, high = float(estimate.interval.low) - sketch_error, float(estimate.interval.high) + sketch_error
    return 0.0 if isnan(low) else max(low, 0.0), 1.0 if isnan(high) else min(high, 1.0)


def _p_value(estimate: Estimate) -> float | None:
    """Return the p-value of an estimate; None where there is none or it is not a number."""
    return None if estimate.p_value is None or isnan(float(estimate.p_value)) else float(estimate.p_value)


def rows_to_settle(value: float, low: float, high: float, tolerance: float, n: int) -> int | None:
    """Forecast how many further rows settle whether an error is below a tolerance, if limits shrink as 1 / sqrt(n).

    Parameters
    ----------
    value, low, high : float
        Estimated error with its limits.
    tolerance : float
        The error to be judged against.
    n : int
        Rows of the estimate.

    Returns
    -------
    int or None
        None where the estimate is as large as the tolerance, or too near to it for any number of rows, or where nothing limits the
        error.

    Examples
    --------
    >>> rows_to_settle(0.01, 0.0, 0.03, 0.02, 1000)
    3000
    """
    half_width, distance = (high - value, tolerance - value) if value < tolerance else (value - low, value - tolerance)
    if value < tolerance and high >= 1:
        return None
    further = n * (half_width / distance) ** 2 - n if distance > 0 else inf
    return ceil(further) if 0 < further < _MAX_ROWS else None


def rows_to_pass(value: float, high: float, tolerance: float, n: int) -> int | None:
    """Forecast how many further rows bring an upper limit down to a tolerance if the estimate is right; None where none do.

    n ((high - value) / (tolerance - value))^2 - n, rounded up; None for a value of at least the tolerance.

    >>> rows_to_pass(0.01, 0.03, 0.02, 1000), rows_to_pass(0.03, 0.05, 0.02, 1000)
    (3000, None)
    """
    return rows_to_settle(value, value, high, tolerance, n) if value < tolerance else None


def _direction_margin(profile: Profile | None, estimate: Estimate, level: float) -> float:
    """Compute z sqrt(E[c (1 - c)] / n), z the two-sided normal quantile; n is the effective number of rows.

    The mean difference of a calibrated model is larger with probability 1 - level. Without a profile the mean of c (1 - c) is
    taken as 1/4, the largest there is. With clusters it is z sqrt(sum of the squared sums of c - y of each) / n.
    """
    z, n = NormalDist().inv_cdf(0.5 + level / 2), float(estimate.effective_n)
    if profile is None:
        return z * sqrt(0.25 / n) if n > 0 else 0.0
    if profile.units is not None:
        weights = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
        unit = np.unique(profile.units, return_inverse=True)[1]
        sums = np.bincount(unit, weights * (profile.scores[0] - profile.outcomes[0]))
        return z * sqrt(float((sums**2).sum())) / float(weights.sum())
    whole = profile.whole()
    scores, squares = (float(profile.sums(name, whole)[0, 0]) for name in ("c", "cc"))
    return z * sqrt(max(scores - squares, 0.0) / float(profile.total[0]) / n)


def _verdict(error: Conclusion | GroupError, tolerance: float | None) -> VerdictWord | None:
    """Compare the limits of an error with a tolerance: "within" if high <= tolerance, "outside" if low > tolerance.

    Else "not enough data"; None if a limit or the tolerance is missing.
    """
    if error.low is None or error.high is None or tolerance is None:
        return None
    return "within" if error.high <= tolerance else "outside" if error.low > tolerance else "not enough data"


def conclude(
    estimate: Estimate,
    *,
    tolerance: float | None = None,
    profile: Profile | None = None,
    groups: Iterable[GroupError] = (),
    slope: Slope | None = None,
    rows: RowCounts | None = None,
    losses: Iterable[LossAt] = (),
    every_group: bool = False,
    level: float = 0.95,
) -> Conclusion:
    """Reach the one verdict about a dataset.

    Parameters
    ----------
    estimate : Estimate
        The error of all rows, with its interval and test.
    tolerance : float or None, default None
        The largest acceptable error, on the scale of probabilities. Without it there is no verdict, only what was measured.
    profile : Profile or None, default None
        Scores and outcomes, in which the worst region is searched.
    groups : iterable of GroupError, default ()
        Errors of groups of rows.
    slope : Slope or None, default None
        Slope of a logistic recalibration.
    rows : RowCounts or None, default None
        How many rows were read, dropped and selected.
    losses : iterable of LossAt, default ()
        What miscalibration costs at the thresholds that the user acts at: ``tc.decision_loss(...).at(t)``.
    every_group : bool, default False
        Whether "within" requires that every group is within, as a gate over groups does.
    level : float, default 0.95
        Used where the estimate has no interval.

    Returns
    -------
    Conclusion

    Raises
    ------
    InputError
        If a tolerance is given and the estimate has no interval, or the tolerance is not in [0, 1].

    Notes
    -----
    With limits [l, u] of the error and tolerance t: "within" if u <= t (with `every_group`, also in every group); "outside" if
    l > t; "groups differ" if all rows are not outside but l > t in a group; else "not enough data".

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> preds = tc.Predictions.from_probs(p, rng.random(4000) < p**2)
    >>> conclusion = conclude(tc.measure(preds), tolerance=0.02, profile=tc.OneClass()(preds))
    >>> conclusion.verdict, conclusion.passed, conclusion.reading.partition(". ")[0]
    ('outside', False, 'Predicted too high by 17 points on average')
    """
    if tolerance is not None and (not options.is_number(tolerance) or not 0 <= tolerance <= 1):
        raise InputError(f"tolerance must lie in [0, 1], not {tolerance!r}; it is on the scale of probabilities")
    interval, warnings = estimate.interval, estimate.warnings
    low, high = limits(estimate) if tolerance is not None or interval is not None else (None, None)
    if interval is not None:
        level = interval.level
        if isnan(float(interval.low)) or isnan(float(interval.high)):
            warnings = ("a limit of the interval is not a number, so every error is possible", *warnings)
    regions = [] if profile is None else _regions_off(profile, level)
    facts = Conclusion(
        verdict=None,
        tolerance=None if tolerance is None else float(tolerance),
        level=level,
        metric=estimate.metric,
        lens=estimate.lens,
        n=estimate.n,
        value=float(estimate.value),
        low=low,
        high=high,
        p_value=_p_value(estimate),
        direction=float(estimate.direction),
        direction_margin=_direction_margin(profile, estimate, level),
        region=max(regions, key=_contribution, default=None),
        both_signs=len({region.mean_score > region.frequency for region in regions}) == 2 if regions else None,
        groups=tuple(groups),
        slope=slope,
        rows=rows,
        losses=tuple(losses),
        every_group=every_group,
        warnings=warnings,
    )
    verdict = _verdict(facts, tolerance)
    if verdict != "outside" and facts._groups_outside():
        verdict = "groups differ"
    elif verdict == "within" and every_group and facts._undecided_groups():
        verdict = "not enough data"
    return replace(facts, verdict=verdict)
