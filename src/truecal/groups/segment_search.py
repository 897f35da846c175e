"""`tc.audit`: search the intersections of columns for miscalibrated segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import digits, options, parallel
from truecal.errors import InputError, printable
from truecal.groups.group_tables import GroupedSketches
from truecal.groups.segment_tests import (
    CONTRASTS,
    SLOPE,
    SegmentNull,
    SegmentTests,
    critical_value,
    difference,
    joint_null,
    select_explaining_segments,
)
from truecal.groups.segments import (
    REGIONS,
    Column,
    Level,
    Records,
    SegmentSums,
    join_records,
    read_column,
    records_of,
    records_of_groups,
    rows_within,
)
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.special import positive
from truecal.table import Frame, Tabular, plain
from truecal.types import Float64s

_NUMBERS = (
    *("name", "region", "rows", "share", "mean_score", "mean_outcome", "difference", "low", "high", "p_value"),
    *("beyond", "contribution", "explains"),
)
_MAX_NAME = 48  # by choice: characters of a column or value that are printed
_MAX_NOTE = 200  # by choice: characters of a note
_MIN_SEGMENT_ROWS = 50  # by choice: of a segment that is tested, unless min_rows differs ...
_MIN_SHARE_DIVISOR = 1000  # by choice: ... and at least one row in so many of all rows
_MAX_SUBSETS = 600  # by choice: sets of columns searched; where there are more, the depth is reduced
_FEW_CLUSTERS = 20  # derived: a sum over g clusters lies at most sqrt(g) standard deviations from 0 under sign flips


@dataclass(frozen=True)
class Segment:
    """Rows with certain values of some columns whose scores are wrong by more than chance explains.

    Attributes
    ----------
    levels : tuple
        One level (a value or a range) per column; empty for all rows.
    region : str
        The scores at which the evidence is strongest: all, a half, a quarter, or the low against the high ones.
    rows : int
        Rows of the segment in that region.
    share : float
        Their share of all rows, by weight where rows have weights.
    mean_score : float
        Mean score of those rows.
    mean_outcome : float
        Mean outcome of those rows.
    difference : float
        Mean score minus mean outcome: positive where scores are too high. For low against high scores half of the
        difference between both ends, positive where scores are too extreme.
    low : float
        Lower limit of the difference; limits hold for all segments searched at once.
    high : float
        Upper limit of the difference.
    p_value : float
        Family-wise p-value over all segments and regions.
    beyond : bool or None
        Whether both limits lie beyond the tolerance; None without a tolerance.
    explains : int
        How many other significant segments are no longer significant once this one is corrected.
    curve : tuple of (float, float, int)
        Mean score, mean outcome and rows in each quarter of the scores.

    See Also
    --------
    truecal.audit : The function that finds them.
    """

    levels: tuple[Level, ...]
    region: str
    rows: int
    share: float
    mean_score: float
    mean_outcome: float
    difference: float
    low: float
    high: float
    p_value: float
    beyond: bool | None
    explains: int
    curve: tuple[tuple[float, float, int], ...]

    @property
    def name(self) -> str:
        """The levels in words, such as "country is BR, age 30 to below 60"; "all rows" without levels.

        Control characters are escaped, and names and values cut to 48 characters.
        """
        relations = {"value": " is ", "other": " is one of ", "missing": " is ", "range": " "}
        levels = (f"{_shorten(level.column)}{relations[level.kind]}{_shorten(level.text)}" for level in self.levels)
        return ", ".join(levels) or "all rows"

    @property
    def contribution(self) -> float:
        """Share times (mean score - mean outcome): what the segment adds to the mean difference of all rows."""
        return self.share * (self.mean_score - self.mean_outcome)

    @property
    def least(self) -> float:
        """Smallest absolute difference between both limits; 0 where they lie on both sides of 0 or one is not a number."""
        return max(self.low, -self.high, 0.0) if self.low <= self.high else 0.0

    def mask(self, preds: tc.Predictions) -> NDArray[np.bool_]:
        """Mark the rows of predictions that belong to this segment.

        Parameters
        ----------
        preds : Predictions
            Any rows with the columns of the segment.

        Returns
        -------
        array of bool, shape (n,)
            True where a row has all levels of the segment.

        Raises
        ------
        InputError
            A column is missing, or holds text where the segment is a range of numbers.
        """
        return rows_within(self.levels, preds.columns, len(preds))


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Tabular):
    """Miscalibrated segments, those with the strongest evidence first, and what was searched.

    Attributes
    ----------
    segments : tuple of Segment
        Segments that together explain all significant ones.
    overall : Estimate
        The error of all rows together.
    by : tuple of str
        The columns searched.
    depth : int
        Largest number of columns that define a segment.
    level : float
        1 - the family-wise error rate; the level of the limits.
    tolerance : float or None
        The difference up to which a segment is acceptable.
    min_rows : int
        Rows of the smallest segment tested.
    n : int
        Rows in all.
    searched : int
        Segments tested.
    tests : int
        Tests of segments in regions of the scores.
    flagged : int
        Significant segments, overlapping ones included.
    notes : tuple of str
        Values that were joined, columns that were left out, and other warnings.

    See Also
    --------
    truecal.audit : The function that returns it.
    truecal.recalibration.SegmentOffsets : Correct the scores of the segments.
    """

    segments: tuple[Segment, ...]
    overall: tc.Estimate
    by: tuple[str, ...]
    depth: int
    level: float
    tolerance: float | None
    min_rows: int
    n: int
    searched: int
    tests: int
    flagged: int
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no segment is beyond the tolerance; without a tolerance, whether none is significant."""
        return not any(segment.beyond is not False for segment in self.segments)

    @property
    def gate(self) -> str:
        """Last line of a gate: PASS or FAIL, the level, and the worst segment, that whose limits lie farthest from 0.

        It fails on segments beyond the tolerance, or on any significant one without a tolerance; of these the worst is named,
        with the limit nearer to 0, and the remedy. PASS names the worst of all segments, or that none is shown to be off.
        """
        sure = f"at {self.level:.0%} for all {self.searched:,} segments together"
        failing = [segment for segment in self.segments if segment.beyond is not False]
        if not failing and not self.segments:
            limit = "" if self.tolerance is None else f" by more than {self.tolerance:g}"
            return f"PASS: {sure}, no segment is shown to be off{limit}; more rows might show one"
        worst = max(failing or self.segments, key=lambda segment: segment.least)
        lower = f"{worst.least:.{digits.decimals(worst.low, worst.high)}f}"
        where = f"the segment '{worst.name}' is" if worst.levels else "all rows are"
        allowed = "" if self.tolerance is None else f", and {self.tolerance:g} is allowed"
        if not failing:
            return f"PASS: {sure}, {where} off by at least {lower}{allowed}; none is shown to be off by more"
        remedy = "recalibrate by segment" if worst.levels else "recalibrate the model"
        return f"FAIL: {sure}, {where} off by at least {lower}{allowed}; {remedy}"

    def tree(self) -> Iterator[tuple[int, Segment]]:
        """Yield (depth, segment) of every segment, each followed by those whose parent it is.

        The parent is the listed segment of most columns whose levels are a proper subset; segments without one have depth 0.
        """
        containing = {s: [t for t in self.segments if set(t.levels) < set(s.levels)] for s in self.segments}
        parents = {s: max(larger, key=lambda t: len(t.levels), default=None) for s, larger in containing.items()}

        def below(parent: Segment | None, depth: int) -> Iterator[tuple[int, Segment]]:
            """Yield (depth, segment) of the segments with this parent (None: no parent), each followed by those below it."""
            for segment in self.segments:
                if parents[segment] == parent:
                    yield depth, segment
                    yield from below(segment, depth + 1)

        yield from below(None, 0)

    def frame(self) -> Frame:
        """Return one row per segment in the order of the tree.

        Columns: depth, name, region, rows, share, mean_score, mean_outcome, difference, low, high, p_value, beyond, contribution,
        explains.
        """
        rows = list(self.tree())
        numbers = {name: [getattr(segment, name) for _, segment in rows] for name in _NUMBERS}
        return Frame({"depth": [depth for depth, _ in rows], **numbers})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the attributes, "passed", "segments" in the order of the tree, and "overall".

        A segment has its depth, "where" (column and value of each level), numbers and curve; "overall" error, norm, low, high,
        p_value.
        """
        segments = [
            {
                "depth": depth,
                "where": [{"column": level.column, "value": level.text} for level in segment.levels],
                **{name: getattr(segment, name) for name in _NUMBERS},
                "curve": segment.curve,
            }
            for depth, segment in self.tree()
        ]
        overall = {
            "error": self.overall.value,
            "norm": self.overall.norm,
            "low": None if self.overall.interval is None else self.overall.interval.low,
            "high": None if self.overall.interval is None else self.overall.interval.high,
            "p_value": self.overall.p_value,
        }
        return {**super().to_dict(), **plain({"passed": self.passed, "segments": segments, "overall": overall})}

    def summary(self) -> str:
        """Return in words how many segments are miscalibrated, what was searched, and how many are beyond a tolerance.

        What was searched: number of segments, of columns each, of rows they have at least, of tests and of all rows. The last
        sentence stands only with a tolerance and a segment that is listed.
        """
        columns = f"{self.depth} column{'s' if self.depth > 1 else ''}"
        searched = f"{self.searched:,} segments of at least {self.min_rows:,} rows, by up to {columns}, were searched"
        text = f"{self._verdict()} {searched} ({self.tests:,} tests, n = {self.n:,})."
        if self.segments and self.tolerance is not None:
            beyond = sum(segment.beyond is True for segment in self.segments)
            text += f" {beyond} of those listed {'is' if beyond == 1 else 'are'} beyond the tolerance of {self.tolerance:g}."
        return text

    def _verdict(self) -> str:
        """Write how many segments are miscalibrated, and how many of the significant ones the listed ones explain.

        Such as "4 segments are miscalibrated. They overlap: one segment explains the other 3."; without any "No segment is
        miscalibrated beyond chance."
        """
        listed, others = len(self.segments), self.flagged - len(self.segments)
        if not listed:
            return "No segment is miscalibrated beyond chance."
        significant = f"{self.flagged:,} segment{' is' if self.flagged == 1 else 's are'} miscalibrated."
        if others <= 0:
            return significant
        explained = "the other" if others == 1 else f"the other {others:,}"
        subject = "one segment explains" if listed == 1 else f"{listed} segments explain"
        return f"{significant} They overlap: {subject} {explained}."

    def __str__(self) -> str:
        """Write the summary, then a table of segments in the order of the tree, two spaces to the right per depth, then the
        notes.
        """
        lines = [self.summary()]
        rows = [("  " * depth + s.name, s) for depth, s in self.tree()]
        width = max([len(name) for name, _ in rows] + [7])
        if rows:
            lines.append(f"{'segment':<{width}}  {'rows':>9}  {'score - outcome':<26}  {'p':>7}  where")
        for name, s in rows:
            limits = digits.with_interval(s.difference, s.low, s.high, sign=True)
            beyond = "  beyond tolerance" if s.beyond else ""
            lines.append(
                f"{name:<{width}}  {s.rows:>9,}  {limits:<26}  {digits.p_text(s.p_value):>7}  {s.region}{beyond}"
            )
        lines += [f"note: {_shorten(note, _MAX_NOTE)}" for note in self.notes]
        return "\n".join(lines)


def _shorten(text: object, longest: int = _MAX_NAME) -> str:
    """Escape control characters, and cut text to `longest` characters.

    >>> _shorten("x" * 60)[-3:]
    'xx…'
    """
    safe = printable(text)
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


# ----------------------------------------------------------------------------------------------------
# The search: columns, joint null, and the segments that explain the others


@takes_arrays
def audit(
    preds: tc.Predictions | GroupedSketches,
    by: str | Sequence[str] | None = None,
    depth: int = 3,
    lens: Lens | None = None,
    level: float = 0.95,
    min_rows: int | None = None,
    tolerance: float | None = None,
    progress: parallel.Progress | None = None,
) -> Audit:
    """Search all intersections of columns for miscalibrated segments.

    Parameters
    ----------
    preds : Predictions or Scan
        Predictions with columns, or a Scan that was grouped by the columns to search; or ``y_true, y_prob`` with ``columns=``.
    by : str or sequence of str, default None
        The columns to search; None is all of them. Numbers are cut at quintiles, missing values are a level of their own.
    depth : int, default 3
        Largest number of columns that define a segment.
    lens : Lens, default None
        What is judged; None is the positive class of two, the top label of more. A class-wise lens adds the class as a column.
    level : float, default 0.95
        1 - the family-wise error rate of the search; the level of the limits.
    min_rows : int, default None
        Smallest segment that is tested; None is 50 rows, or a thousandth of all rows if that is more.
    tolerance : float, default None
        Difference up to which a segment is acceptable; it decides `Segment.beyond` and `Audit.passed`.
    progress : callable, default None
        Called with a Step after each block of redraws; None reports nothing.

    Returns
    -------
    Audit
        The segments that explain all significant ones, and what was searched.

    Raises
    ------
    InputError
        No column to search, fewer rows than one segment needs, or a lens of several probabilities.

    Notes
    -----
    Every segment is tested as a whole, in halves and quarters of the scores, and for a slope along them, so that errors
    that cancel in the mean are detected. One joint null distribution (outcomes redrawn from the scores; signs of whole clusters
    flipped where there are some) gives family-wise p-values by step-down maximum statistics: the probability that any
    calibrated segment is listed is at most 1 - `level`, however many were searched. Of overlapping segments the strongest is
    listed; its scores are corrected, and the search goes on with what is still significant. Limits hold for all segments at
    once, hence for the worst one too.

    References
    ----------
    Westfall, Young. Resampling-based multiple testing. Wiley, 1993.

    See Also
    --------
    truecal.subgroups : Measure groups that are known in advance.
    truecal.recalibration.SegmentOffsets : Correct the scores of the segments.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> columns = {"country": rng.choice(["BR", "DE", "US"], 20000), "device": rng.choice(["mobile", "desktop"], 20000)}
    >>> p = rng.beta(2, 2, 20000)
    >>> bad = (columns["country"] == "BR") & (columns["device"] == "mobile")
    >>> result = tc.audit(tc.Predictions.from_probs(p, rng.random(20000) < p - 0.1 * bad * (p > 0.1), columns=columns))
    >>> [(segment.name, round(segment.difference, 2)) for segment in result.segments]
    [('country is BR, device is mobile', 0.1)]
    """
    level = options.level(level)
    options.whole(depth, "depth")
    check_lens(lens)
    if tolerance is not None:
        options.between(tolerance, "tolerance", 0, 1)
    if isinstance(preds, tc.Predictions):
        records = records_of(preds, default_lens(preds) if lens is None else lens)
        overall = tc.measure(preds, lens=lens, level=level)
    else:
        if not hasattr(preds, "sketches"):
            check_predictions(preds)
        if lens is not None:
            raise InputError("a Scan was made with its lens; give the lens to tc.scan")
        records, overall = records_of_groups(preds), preds.measure(level=level)
    smallest = _smallest_segment(records, min_rows)
    columns, notes = read_columns(records, by, smallest)
    records, columns = join_records(records, columns)
    sums = SegmentSums(records, columns, _reduce_depth(len(columns), depth, notes), smallest)
    draws = int(np.ceil(10 / (1 - level) - 1e-9)) - 1  # derived: p-values resolve 1 - level to a tenth
    null = joint_null(SegmentTests.of(sums), draws, level, progress or parallel.ignore_progress)
    p_values = null.p_values(level)
    # u of the significant tests; 1e-12 absorbs the rounding of 1 - level
    significant = np.where(p_values <= 1 - level + 1e-12, null.observed, -np.inf)
    # Limits are those of the first step, which hold for all tests at once.
    limit = null.limit(level)
    return Audit(
        segments=tuple(
            _describe_segment(null, test, explains, float(p_values[test]), limit, tolerance)
            for test, explains in select_explaining_segments(null, significant, limit)
        ),
        overall=overall,
        by=tuple(column.name for column in columns),
        depth=sums.max_depth,
        level=level,
        tolerance=tolerance,
        min_rows=smallest,
        n=round(float(records.count.sum())),
        searched=len(sums),
        tests=len(null.tests.index),
        flagged=len(np.unique(null.tests.segment[np.isfinite(significant)])),
        notes=(*notes, *_warnings(records)),
    )


def _smallest_segment(records: Records, min_rows: int | None) -> int:
    """Return the fewest rows of a tested segment: `min_rows`, or without it the larger of 50 and rows // 1000.

    Refuses a `min_rows` below 2 and more rows than there are.

    >>> rows = Records.of(np.linspace(0, 1, 90_000), np.zeros(90_000), {})
    >>> _smallest_segment(rows, None), _smallest_segment(rows, 20)
    (90, 20)
    """
    total = float(records.count.sum())
    if min_rows is not None:
        options.whole(min_rows, "min_rows", 2)
    smallest = max(_MIN_SEGMENT_ROWS, int(total // _MIN_SHARE_DIVISOR)) if min_rows is None else int(min_rows)
    if total < smallest:
        raise InputError(
            f"no segment has {smallest} rows ({total:,.0f} in all); lower min_rows (--min-rows), or give more rows"
        )
    return smallest


def read_columns(records: Records, by: str | Sequence[str] | None, smallest: int) -> tuple[list[Column], list[str]]:
    """Read the columns to search (`by`; None: all) and notes on joined values and columns left out.

    The class column of a class-wise lens is always added. Columns of one level are left out with a note, and without `by` so are
    columns that cannot be divided into levels. Refuses unknown columns, and if no column remains.
    """
    names = list(records.columns) if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if by is not None and records.class_column is not None and records.class_column not in names:
        names.append(records.class_column)
    columns, notes = [], []
    for name in names:
        if name not in records.columns:
            present = ", ".join(map(repr, records.columns)) or "none; pass columns={...} to Predictions"
            raise InputError(f"there is no column {name!r}; the columns are {present}")
        try:
            column = read_column(str(name), np.asarray(records.columns[name]), records.count, smallest)
        except InputError as error:
            if by is not None:
                raise
            notes.append(f"left out: {error}")
            continue
        notes += column.notes
        if len(column.levels) > 1:
            columns.append(column)
        else:
            notes.append(f"column {name!r} has one value only and was left out")
    if not columns:
        raise InputError("there is no column to divide the rows by; " + ("; ".join(notes) or "pass columns={...}"))
    return columns, notes


def _reduce_depth(columns: int, depth: int, notes: list[str]) -> int:
    """Return `depth`, at most `columns`, lowered while so many columns have more than 600 sets of this size.

    A lowered depth is stated in a note added to `notes`.

    >>> notes = []
    >>> _reduce_depth(3, 5, notes), _reduce_depth(40, 2, notes)  # 780 pairs of columns
    (3, 1)
    >>> notes
    ['40 columns have 780 sets of 2: searched to depth 1; name fewer columns with by=']
    """
    depth = min(depth, columns)
    reduced = depth
    while reduced > 1 and comb(columns, reduced) > _MAX_SUBSETS:
        reduced -= 1
    if reduced < depth:
        many = f"{columns} columns have {comb(columns, depth):,} sets of {depth}"
        notes.append(f"{many}: searched to depth {reduced}; name fewer columns with by=")
    return reduced


def _warnings(records: Records) -> list[str]:
    """Write notes on scores of exactly 0 or 1 with the opposite outcome, and on fewer than 20 clusters; [] for neither."""
    notes = []
    certain = (records.score == 0) | (records.score == 1)
    contradicted = certain & (records.ones != records.count * records.score)
    if contradicted.any():
        count = int(records.count[contradicted].sum())
        notes.append(f"Rows with a score of exactly 0 or 1 and the other outcome: {count:,}")
    clusters = 0 if records.unit is None else len(np.unique(records.unit))
    if 0 < clusters < _FEW_CLUSTERS:
        notes.append(f"only {clusters} clusters: too few to show that any segment is miscalibrated")
    return notes


def _describe_segment(
    null: SegmentNull, test: int, explains: int, p_value: float, limit: float, tolerance: float | None
) -> Segment:
    """Compute the numbers of the segment of a test, over its rows in the quarters of the scores that its contrast compares.

    `test` is an index into the tests; `limit` is the u at which tests are significant, from which the limits of the difference
    follow. `explains` and `p_value` are passed on; `beyond` is whether both limits lie above the tolerance, or below minus it.
    """
    tests, records, sums = null.tests, null.tests.records, null.tests.sums
    segment, contrast = int(tests.segment[test]), int(tests.contrast[test])
    inside = sums.mask(segment)
    critical = critical_value(limit, float(tests.log_multiplicity[test]))
    value, low, high = difference(records, inside, contrast, critical, float(null.deviation[test]))
    in_region = inside & (CONTRASTS[contrast][records.region] != 0)
    mass = float(records.mass[in_region].sum())
    mean_score = float((records.mass * records.score)[in_region].sum()) / mass
    return Segment(
        levels=tuple(sums.columns[j].levels[code] for j, code in sums.levels(segment)),
        region=_region(records.edges, contrast),
        rows=round(float(records.count[in_region].sum())),
        share=mass / float(records.mass.sum()),
        mean_score=mean_score,
        mean_outcome=mean_score + float(records.residual(records.score)[in_region].sum()) / mass,
        difference=value,
        low=low,
        high=high,
        p_value=p_value,
        # a limit that is not a number is beyond every tolerance
        beyond=None if tolerance is None else not (low <= tolerance and high >= -tolerance),
        explains=explains,
        curve=_curve(records, inside),
    )


def _curve(records: Records, inside: NDArray[np.bool_]) -> tuple[tuple[float, float, int], ...]:
    """Return (mean score, mean outcome, rows) of the records of a mask, (records,), in each quarter of the scores that has rows.

    Means are weighted by the mass of records; mean outcomes are clipped to [0, 1].
    """
    region, mass = records.region[inside], records.mass[inside]
    divisor = positive(np.bincount(region, mass, REGIONS))
    rows = np.bincount(region, records.count[inside], REGIONS)
    score = np.bincount(region, mass * records.score[inside], REGIONS) / divisor
    outcome = score + np.bincount(region, records.residual(records.score)[inside], REGIONS) / divisor
    return tuple(
        (float(score[q]), float(np.clip(outcome[q], 0.0, 1.0)), round(float(rows[q])))
        for q in np.flatnonzero(rows).tolist()
    )


def _region(edges: Float64s, contrast: int) -> str:
    """Write the range of scores that a contrast compares, such as "scores from 0.2 to below 0.5".

    `contrast` is an index into CONTRASTS, `edges`, shape (3,), the scores between quarters.

    >>> edges = np.array([0.2, 0.5, 0.8])
    >>> [_region(edges, contrast) for contrast in range(len(CONTRASTS))]
    ['all scores', 'scores below 0.5', 'scores from 0.5', 'scores below 0.2', 'scores from 0.2 to below 0.5', 'scores from
    0.5 to below 0.8', 'scores from 0.8', 'low against high scores']
    """
    if contrast == 0:
        return "all scores"
    if contrast == SLOPE:
        return "low against high scores"
    inside = np.flatnonzero(CONTRASTS[contrast])
    low = None if inside[0] == 0 else f"{edges[inside[0] - 1]:.3g}"
    high = None if inside[-1] == REGIONS - 1 else f"{edges[inside[-1]]:.3g}"
    if low is None:
        return f"scores below {high}"
    return f"scores from {low}" if high is None else f"scores from {low} to below {high}"
