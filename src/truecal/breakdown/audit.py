"""Audit: where is the model wrong, searched for in all intersections of columns and judged for the search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from truecal.breakdown.findings import Audit, Segment
from truecal.breakdown.groups import Grouped
from truecal.breakdown.segments.causes import Cause, find_causes
from truecal.breakdown.segments.levels import Column, Level, read_column
from truecal.breakdown.segments.limits import critical_value, difference
from truecal.breakdown.segments.null import CONTRASTS, SLOPE, Null, Tests, contrasted, joint_null, surprise
from truecal.breakdown.segments.records import REGIONS, Records, records_of, records_of_groups
from truecal.breakdown.segments.tables import Tables
from truecal.checks import check_between, check_level, check_whole
from truecal.errors import InputError
from truecal.estimate import Estimate
from truecal.lens import Lens, default_lens
from truecal.parallel import Progress, unheard
from truecal.predictions import Predictions
from truecal.types import Float64s
from truecal.uncertainty import measure

_MOST_SUBSETS = 600  # subsets of columns searched; a larger number is cut down to a smaller depth
_LEAST_ROWS = 50  # of a segment, unless there are more than 50,000 rows in all ...
_LEAST_SHARE = 1000  # ... or told otherwise: then a thousandth of them
_FEW_UNITS = 20  # a sum over g units never stands out by more than sqrt(g) deviations


def audit(
    preds: Predictions | Grouped,
    by: str | Sequence[str] | None = None,
    depth: int = 3,
    lens: Lens | None = None,
    level: float = 0.95,
    min_rows: int | None = None,
    tolerance: float | None = None,
    progress: Progress = unheard,
) -> Audit:
    """Which segments of the rows are miscalibrated? All intersections of up to `depth` columns, with one family-wise p-value.

    Every segment is tested as a whole and in halves and quarters of the scores and along them, so that errors that cancel are
    seen. One joint null (outcomes redrawn from the scores; signs of whole clusters where there are some) judges all of
    them together: the chance that any calibrated segment is listed is at most 1 - `level`, however many were looked at. One row is
    listed per cause, not its overlapping intersections. Limits hold for all segments at once, hence for the worst one too.

    Parameters
    ----------
    preds : Predictions with columns, or a Scan that was grouped by the columns to audit.
    by : the columns to search; by default all. Numbers are cut at quintiles, missing values are a level of their own.
    depth : how many columns a segment may combine.
    lens : what is judged; by default the positive class, or the top label. A class-wise lens adds the class as a column.
    level : of the search and of the intervals.
    min_rows : segments of fewer rows are not judged; by default 50, or a thousandth of the rows.
    tolerance : a difference up to which a segment is not worth a failure; see `Segment.beyond`.
    progress : told how many redraws are done.

    References
    ----------
    Westfall, Young. Resampling-based multiple testing. 1993. Liu. Bootstrap procedures under some non-i.i.d. models. 1988.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> columns = {"country": rng.choice(["BR", "DE", "US"], 20000), "device": rng.choice(["mobile", "desktop"], 20000)}
    >>> p = rng.beta(2, 2, 20000)
    >>> bad = (columns["country"] == "BR") & (columns["device"] == "mobile")
    >>> found = tc.audit(tc.Predictions.from_probs(p, rng.random(20000) < p - 0.1 * bad * (p > 0.1), columns=columns))
    >>> [(segment.name, round(segment.difference, 2)) for segment in found.segments]
    [('country is BR, device is mobile', 0.1)]
    """
    check_level(level)
    check_whole(depth, "depth")
    if tolerance is not None:
        check_between(tolerance, "tolerance", 0, 1)
    records = _judged(preds, lens)
    total = float(records.counts.sum())
    if min_rows is None:
        smallest = max(_LEAST_ROWS, int(total // _LEAST_SHARE))
    else:
        check_whole(min_rows, "min_rows", 2)
        smallest = int(min_rows)
    if total < smallest:
        raise InputError(f"no segment has {smallest} rows ({total:,.0f} in all); lower min_rows or give more rows")
    columns, notes = _columns(records, by, smallest)
    depth, short = _affordable(len(columns), min(depth, len(columns)))
    tables = Tables(records, columns, depth, smallest)
    tests = Tests.of(tables, smallest)
    # Twenty redraws beyond the limit tell p-values near it apart to a fifth.
    null = joint_null(records, tables, tests, int(np.ceil(10 / (1 - level) - 1e-9)) - 1, progress)
    search = _Search(records, tables, null, level, tolerance)
    segments = search.segments()
    return Audit(
        segments=segments,
        overall=_overall(preds, lens, level),
        by=tuple(column.name for column in columns),
        depth=depth,
        level=level,
        tolerance=tolerance,
        min_rows=smallest,
        n=round(total),
        searched=len(tables),
        tests=len(tests.index),
        flagged=search.flagged,
        notes=(*notes, *short, *search.notes),
    )


def _judged(preds: Predictions | Grouped, lens: Lens | None) -> Records:
    """The rows, or the cells of a scan."""
    if isinstance(preds, Predictions):
        return records_of(preds, default_lens(preds) if lens is None else lens)
    if not hasattr(preds, "sketches"):
        raise InputError(f"Predictions or a grouped Scan are needed, not {type(preds).__name__}")
    if lens is not None:
        raise InputError("a Scan was made with its lens; give the lens to tc.scan")
    return records_of_groups(preds)


def _overall(preds: Predictions | Grouped, lens: Lens | None, level: float) -> Estimate:
    """The error of all rows together."""
    return measure(preds, lens=lens, level=level) if isinstance(preds, Predictions) else preds.measure(level=level)


def _columns(records: Records, by: str | Sequence[str] | None, smallest: int) -> tuple[list[Column], list[str]]:
    """The columns to search. Those not asked for by name and of no use are left out with a note."""
    names = list(records.columns) if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if by is not None and "class" in records.columns and "class" not in names:
        names.append("class")
    columns, notes = [], []
    for name in names:
        if name not in records.columns:
            known = ", ".join(map(repr, records.columns)) or "none; pass columns={...} to Predictions"
            raise InputError(f"there is no column {name!r}; the columns are {known}")
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
            notes.append(f"column {name!r} has one level only and parts nothing: it was left out")
    if not columns:
        raise InputError("there is no column to part the rows by; " + ("; ".join(notes) or "pass columns={...}"))
    return columns, notes


def _affordable(columns: int, depth: int) -> tuple[int, list[str]]:
    """The depth that can be searched: many columns have too many intersections."""
    less = depth
    while less > 1 and comb(columns, less) > _MOST_SUBSETS:
        less -= 1
    if less == depth:
        return depth, []
    count = comb(columns, depth)
    return less, [
        f"{columns} columns have {count:,} sets of {depth}: searched to depth {less}; name fewer columns with by="
    ]


class _Search:
    """From the joint null to the segments that are listed."""

    def __init__(self, records: Records, tables: Tables, null: Null, level: float, tolerance: float | None) -> None:
        self.records, self.tables, self.null, self.tolerance = records, tables, null, tolerance
        sums = contrasted(tables(records.residual(records.score)[:, None]), null.tests)[:, 0]
        u = surprise(null.scores(sums), null.tests.price)
        self.p = null.p_values(u, level)
        # Limits at the first step of the search hold for all tests at once.
        self.limit = null.limit(level)
        self.significant = np.where(self.p <= 1 - level + 1e-12, u, -np.inf)
        self.flagged = len(np.unique(null.tests.segment[np.isfinite(self.significant)]))

    def segments(self) -> tuple[Segment, ...]:
        """One for each cause, strongest first, each with the closest listed segment that contains it."""
        score, segments = self.records.score, []
        for cause in find_causes(self.records, self.tables, self.null, self.significant):
            segments.append(self._segment(cause, score))
            score = cause.mended
        places = {segment.levels: i for i, segment in enumerate(segments)}
        return tuple(replace(segment, parent=_parent(segment, places)) for segment in segments)

    @property
    def notes(self) -> list[str]:
        notes = []
        certain = (self.records.score == 0) | (self.records.score == 1)
        missed = certain & (self.records.ones != self.records.counts * self.records.score)
        if missed.any():
            count = int(self.records.counts[missed].sum())
            notes.append(f"{count:,} rows have a score of exactly 0 or 1 and the other outcome")
        units = 0 if self.records.unit is None else len(np.unique(self.records.unit))
        if 0 < units < _FEW_UNITS:
            notes.append(f"only {units} clusters: no segment can be told from chance with so few")
        return notes

    def _segment(self, cause: Cause, score: Float64s) -> Segment:
        records, test = self.records, cause.test
        contrast = int(self.null.tests.contrast[test])
        inside = self.tables.mask(cause.segment)
        critical = critical_value(self.limit, float(self.null.tests.price[test]))
        value, low, high = difference(records, inside, contrast, critical, float(self.null.deviation[test]))
        judged = inside & (CONTRASTS[contrast][records.region] != 0)
        mass = float(records.mass[judged].sum())
        rows = float(records.counts[judged].sum())
        beyond = None if self.tolerance is None else bool(low > self.tolerance or high < -self.tolerance)
        mean_score = float((records.mass * records.score)[judged].sum()) / mass
        pieces = self._pieces(inside, score)
        return Segment(
            levels=tuple(self.tables.columns[j].levels[code] for j, code in self.tables.levels(cause.segment)),
            region=_region(records.edges, contrast),
            rows=round(rows),
            share=mass / float(records.mass.sum()),
            mean_score=mean_score,
            mean_outcome=mean_score + float(records.residual(records.score)[judged].sum()) / mass,
            difference=value,
            low=low,
            high=high,
            p_value=float(self.p[test]),
            beyond=beyond,
            squared=max(float(((pieces[3] - pieces[2]) ** 2 - pieces[4]) @ pieces[1]), 0.0),
            explains=cause.explains,
            curve=self._curve(inside),
        )

    def _pieces(self, inside: NDArray[np.bool_], score: Float64s) -> tuple[Float64s, ...]:
        """Of every region of the segment: rows, share of all mass, mean score, mean outcome, variance of the latter."""
        records, region = self.records, self.records.region[inside]
        total = float(records.mass.sum())
        mass = np.bincount(region, records.mass[inside], REGIONS)
        safe = np.where(mass > 0, mass, 1.0)
        mean = np.bincount(region, (records.mass * score)[inside], REGIONS) / safe
        outcome = mean + np.bincount(region, records.residual(score)[inside], REGIONS) / safe
        squares = (
            np.bincount(region, records.mass[inside] ** 2 / records.counts[inside].clip(1e-300), REGIONS) / safe**2
        )
        rate = np.clip(outcome, 0.0, 1.0)
        rows = np.bincount(region, records.counts[inside], REGIONS).astype(np.float64)
        return rows, mass / total, mean, outcome, squares * rate * (1 - rate)

    def _curve(self, inside: NDArray[np.bool_]) -> tuple[tuple[float, float, int], ...]:
        """Mean score, mean outcome and rows in every filled region of the segment: its reliability diagram in four points."""
        rows, _, mean, outcome, _ = self._pieces(inside, self.records.score)
        return tuple(
            (float(mean[q]), float(np.clip(outcome[q], 0.0, 1.0)), round(float(rows[q])))
            for q in range(REGIONS)
            if rows[q] > 0
        )


def _region(edges: Float64s, contrast: int) -> str:
    """Where in the scores a contrast looks, in words."""
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


def _parent(segment: Segment, places: Mapping[tuple[Level, ...], int]) -> int | None:
    """The listed segment with the most conditions that contains this one."""
    larger = [levels for levels in places if set(levels) < set(segment.levels)]
    return places[max(larger, key=len)] if larger else None
