"""`tc.audit`: search the intersections of columns for miscalibrated segments."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options, parallel
from truecal.errors import InputError, printable
from truecal.groups.group_tables import GroupedSketches
from truecal.groups.segment_tests import (
    CONTRASTS,
    SLOPE,
    Cause,
    Pairs,
    critical_value,
    difference,
    find_causes,
    joint_null,
)
from truecal.groups.segments import (
    REGIONS,
    Column,
    Level,
    Records,
    Tables,
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

# ----------------------------------------------------------------------------------------------------
# What an audit found: a short list of segments, as a tree, a table, text and HTML

_COLUMNS = (
    *("name", "region", "rows", "share", "mean_score", "mean_outcome", "difference", "low", "high", "p_value"),
    *("beyond", "contribution", "squared", "explains"),
)
_LONGEST = 48  # characters of a name or value that are printed


@dataclass(frozen=True)
class Segment:
    """One segment whose scores are wrong, by more than chance among all segments looked at.

    Attributes
    ----------
    levels : one level per column; none for all rows. name : the same in words.
    region : where in the scores the error is largest beyond chance: all, a half, a quarter, or the low against the high ones.
    rows, share : rows of the segment in that region, and their share of all rows (by weight where there are weights).
    mean_score, mean_outcome, difference : means over those rows, and score minus outcome: positive is overconfident. For the
        low against the high scores: half the difference between both ends, positive where scores are too extreme.
    low, high : limits of the difference that hold for all segments at once.
    p_value : family-wise. beyond : whether both limits are beyond the tolerance; None without one.
    contribution : share x (mean_score - mean_outcome), what the segment adds to the mean difference of all rows.
    squared : what its regions add to the mean squared difference of all rows, stronger segments being corrected first.
    explains : how many other significant segments are so no longer once this one is corrected.
    curve : (mean score, mean outcome, rows) in each quarter of the scores.
    parent : place in the list of the closest segment that contains this one, or None.
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
    squared: float
    explains: int
    curve: tuple[tuple[float, float, int], ...]
    parent: int | None = None

    @property
    def name(self) -> str:
        return self.named(self.levels)

    @property
    def contribution(self) -> float:
        return self.share * (self.mean_score - self.mean_outcome)

    def named(self, levels: tuple[Level, ...]) -> str:
        """Levels in words that are safe to print, however the columns and values are named."""
        if not levels:
            return "all rows"
        words = {"value": " is ", "other": " is one of ", "missing": " is ", "range": " "}
        return ", ".join(f"{_short(level.column)}{words[level.kind]}{_short(level.text)}" for level in levels)

    def mask(self, preds: tc.Predictions) -> NDArray[np.bool_]:
        """The rows of any predictions that belong to this segment."""
        return rows_within(self.levels, preds.columns, len(preds))


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Tabular):
    """Segments whose scores are wrong, one per cause, strongest first, and what was searched.

    Attributes
    ----------
    segments : see :class:`Segment`. overall : the error of all rows together.
    by, depth, min_rows : what was searched. n : rows. searched, tests : segments, and tests of their regions.
    flagged : all significant segments, overlapping ones included, of which `segments` are the causes.
    level : of the family-wise error and the limits. tolerance : see `Segment.beyond`. notes : what was joined or left out.
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
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether no segment is beyond the tolerance; without one, whether none was found."""
        return not any(segment.beyond is not False for segment in self.segments)

    def tree(self) -> Iterator[tuple[int, Segment]]:
        """Every segment with its depth in the tree, below the segment that contains it."""

        def below(parent: int | None, depth: int) -> Iterator[tuple[int, Segment]]:
            for i, segment in enumerate(self.segments):
                if segment.parent == parent:
                    yield depth, segment
                    yield from below(i, depth + 1)

        yield from below(None, 0)

    def frame(self) -> Frame:
        """One row per segment, in the order of the tree."""
        listed = list(self.tree())
        return Frame(
            {
                "depth": [depth for depth, _ in listed],
                **{name: [getattr(segment, name) for _, segment in listed] for name in _COLUMNS},
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        searched = ("depth", "level", "tolerance", "min_rows", "n", "searched", "tests", "flagged")
        return {
            "passed": self.passed,
            "segments": [
                {
                    "depth": depth,
                    "where": [{"column": level.column, "value": level.text} for level in segment.levels],
                    **{name: getattr(segment, name) for name in _COLUMNS},
                    "curve": [list(point) for point in segment.curve],
                }
                for depth, segment in self.tree()
            ],
            "overall": {"error": float(self.overall.value), "norm": self.overall.norm, **_ends(self.overall)},
            "by": list(self.by),
            **{name: plain(getattr(self, name)) for name in searched},
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """What was searched and found, in a sentence."""
        where = f"{self.searched:,} segments of at least {self.min_rows:,} rows ({self.tests:,} tests) to depth {self.depth}"
        if not self.segments:
            return f"no segment is miscalibrated beyond chance, of {where}; n = {self.n:,}"
        causes = "1 cause" if len(self.segments) == 1 else f"{len(self.segments)} causes"
        text = f"{causes} behind {self.flagged:,} miscalibrated segments, of {where}; n = {self.n:,}"
        if self.tolerance is not None:
            beyond = sum(segment.beyond is True for segment in self.segments)
            text += f"; {beyond} beyond the tolerance of {self.tolerance:g}"
        return text

    def __str__(self) -> str:
        lines = [self.summary()]
        listed = [("  " * depth + s.name, s) for depth, s in self.tree()]
        width = max([len(name) for name, _ in listed] + [7])
        if listed:
            lines.append(f"{'segment':<{width}}  {'rows':>9}  {'score - outcome':<26}  {'p':>7}  where")
        for name, s in listed:
            reach = f"{s.difference:+.4f} [{s.low:+.4f}, {s.high:+.4f}]"
            mark = "  beyond tolerance" if s.beyond else ""
            lines.append(f"{name:<{width}}  {s.rows:>9,}  {reach:<26}  {s.p_value:>7.3g}  {s.region}{mark}")
        lines += [f"note: {_short(note, 200)}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = ("segment", "rows", "score", "outcome", "difference", "limits", "p", "where", "")
        cells = "".join(f"<th>{title}</th>" for title in head)
        rows = []
        for depth, s in self.tree():
            cells_text = (
                f"{s.rows:,}",
                f"{s.mean_score:.3f}",
                f"{s.mean_outcome:.3f}",
                f"{s.difference:+.3f}",
                f"{s.low:+.3f} to {s.high:+.3f}",
                f"{s.p_value:.3g}",
                escape(s.region),
                _diagram(s),
            )
            indent = f'<td style="text-align:left;padding-left:{0.5 + 1.5 * depth}em">{escape(s.name)}</td>'
            rows.append(f"<tr>{indent}{''.join(f'<td>{cell}</td>' for cell in cells_text)}</tr>")
        table = f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""
        notes = "".join(f"<p>{escape(_short(note, 200))}</p>" for note in self.notes)
        return f"<div><p>{escape(self.summary())}</p>{table}{notes}</div>"


def _ends(estimate: tc.Estimate) -> dict[str, float | None]:
    reach, p = estimate.interval, estimate.p_value
    return {
        "low": None if reach is None else float(reach.low),
        "high": None if reach is None else float(reach.high),
        "p_value": None if p is None else float(p),
    }


def _diagram(segment: Segment) -> str:
    """A reliability diagram of the quarters, as a small picture."""
    points = "".join(
        f'<circle cx="{4 + 40 * score:.1f}" cy="{44 - 40 * outcome:.1f}" r="2.5" fill="#0072b2"/>'
        for score, outcome, _ in segment.curve
    )
    line = '<path d="M4 44L44 4" stroke="#5a6675" stroke-dasharray="2 2"/>'
    words = "; ".join(f"score {score:.2f}, outcome {outcome:.2f}" for score, outcome, _ in segment.curve)
    return f'<svg width="48" height="48" role="img" aria-label="{escape(words)}">{line}{points}</svg>'


def _short(text: object, longest: int = _LONGEST) -> str:
    """Text that cannot steer a terminal, and not too long.

    >>> _short("x" * 60)[-3:]
    'xx…'
    """
    safe = printable(text)
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


# ----------------------------------------------------------------------------------------------------
# The search itself: from the columns asked for, over the joint null, to the segments that are listed

_MAX_SUBSETS = 600  # subsets of columns searched; a larger number is cut down to a smaller depth
_FEW_UNITS = 20  # a sum over g units never stands out by more than sqrt(g) deviations


def columns_of(records: Records, by: str | Sequence[str] | None, smallest: int) -> tuple[list[Column], list[str]]:
    """The columns to search. Those not asked for by name and of no use are left out with a note."""
    names = list(records.columns) if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if by is not None and records.class_column is not None and records.class_column not in names:
        names.append(records.class_column)
    columns, notes = [], []
    for name in names:
        if name not in records.columns:
            listed = ", ".join(map(repr, records.columns)) or "none; pass columns={...} to Predictions"
            raise InputError(f"there is no column {name!r}; the columns are {listed}")
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


def affordable(columns: int, depth: int, notes: list[str]) -> int:
    """The depth that can be searched: many columns have too many intersections, of which a note is made."""
    depth = min(depth, columns)
    less = depth
    while less > 1 and comb(columns, less) > _MAX_SUBSETS:
        less -= 1
    if less < depth:
        many = f"{columns} columns have {comb(columns, depth):,} sets of {depth}"
        notes.append(f"{many}: searched to depth {less}; name fewer columns with by=")
    return less


class Search:
    """From records and tables to the segments that are listed."""

    def __init__(self, records: Records, tables: Tables, level: float, progress: parallel.Progress) -> None:
        # Nine redraws may reach a find: a limit known to a third costs next to no power.
        draws = int(np.ceil(10 / (1 - level) - 1e-9)) - 1
        null = joint_null(records, tables, Pairs.of(tables), draws, level, progress)
        self.records, self.tables, self.null, self.level = records, tables, null, level
        self.p = null.p_values(level)
        # Limits at the first step of the search hold for all tests at once.
        self.limit = null.limit(level)
        self.significant = np.where(self.p <= 1 - level + 1e-12, null.observed, -np.inf)
        self.flagged = len(np.unique(null.tests.segment[np.isfinite(self.significant)]))

    def audit(self, overall: tc.Estimate, tolerance: float | None, notes: Sequence[str]) -> Audit:
        """All that was searched and found."""
        return Audit(
            segments=self.segments(tolerance),
            overall=overall,
            by=tuple(column.name for column in self.tables.columns),
            depth=self.tables.max_depth,
            level=self.level,
            tolerance=tolerance,
            min_rows=self.tables.smallest,
            n=round(float(self.records.counts.sum())),
            searched=len(self.tables),
            tests=len(self.null.tests.index),
            flagged=self.flagged,
            notes=(*notes, *self.notes),
        )

    def segments(self, tolerance: float | None) -> tuple[Segment, ...]:
        """One for each cause, strongest first, each with the closest listed segment that contains it."""
        score, segments = self.records.score, []
        for cause in find_causes(self.records, self.tables, self.null, self.significant, self.limit):
            segments.append(self._segment(cause, score, tolerance))
            score = cause.corrected_score
        positions = {segment.levels: i for i, segment in enumerate(segments)}
        return tuple(replace(segment, parent=_parent(segment, positions)) for segment in segments)

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

    def _segment(self, cause: Cause, score: Float64s, tolerance: float | None) -> Segment:
        records, test = self.records, cause.test
        contrast = int(self.null.tests.contrast[test])
        inside = self.tables.mask(cause.segment)
        critical = critical_value(self.limit, float(self.null.tests.price[test]))
        value, low, high = difference(records, inside, contrast, critical, float(self.null.deviation[test]))
        in_region = inside & (CONTRASTS[contrast][records.region] != 0)
        mass = float(records.mass[in_region].sum())
        rows = float(records.counts[in_region].sum())
        beyond = None if tolerance is None else bool(low > tolerance or high < -tolerance)
        mean_score = float((records.mass * records.score)[in_region].sum()) / mass
        pieces = self._pieces(inside, score)
        return Segment(
            levels=tuple(self.tables.columns[j].levels[code] for j, code in self.tables.levels(cause.segment)),
            region=_region(records.edges, contrast),
            rows=round(rows),
            share=mass / float(records.mass.sum()),
            mean_score=mean_score,
            mean_outcome=mean_score + float(records.residual(records.score)[in_region].sum()) / mass,
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
        safe = positive(mass)
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


def _parent(segment: Segment, positions: Mapping[tuple[Level, ...], int]) -> int | None:
    """The listed segment with the most conditions that contains this one."""
    larger = [levels for levels in positions if set(levels) < set(segment.levels)]
    return positions[max(larger, key=len)] if larger else None


# ----------------------------------------------------------------------------------------------------
# Audit: where is the model wrong, searched for in all intersections of columns and judged for the search

_LEAST_ROWS = 50  # of a segment, unless there are more than 50,000 rows in all ...
_LEAST_SHARE = 1000  # ... or told otherwise: then a thousandth of them


@takes_arrays
def audit(
    preds: tc.Predictions | GroupedSketches,
    by: str | Sequence[str] | None = None,
    depth: int = 3,
    lens: Lens | None = None,
    level: float = 0.95,
    min_rows: int | None = None,
    tolerance: float | None = None,
    progress: parallel.Progress = parallel.unheard,
) -> Audit:
    """Which segments of the rows are miscalibrated? All intersections of up to `depth` columns, with one family-wise p-value.

    Every segment is tested as a whole and in halves and quarters of the scores and along them, so that errors that cancel are
    seen. One joint null (outcomes redrawn from the scores; whole clusters multiplied at random where there are some) judges all of
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

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> columns = {"country": rng.choice(["BR", "DE", "US"], 20000), "device": rng.choice(["mobile", "desktop"], 20000)}
    >>> p = rng.beta(2, 2, 20000)
    >>> bad = (columns["country"] == "BR") & (columns["device"] == "mobile")
    >>> found = tc.audit(tc.Predictions.from_probs(p, rng.random(20000) < p - 0.1 * bad * (p > 0.1), columns=columns))
    >>> [(segment.name, round(segment.difference, 2)) for segment in found.segments]
    [('country is BR, device is mobile', 0.1)]
    """
    level = options.level(level)
    options.whole(depth, "depth")
    check_lens(lens)
    if tolerance is not None:
        options.between(tolerance, "tolerance", 0, 1)
    records = _judged(preds, lens)
    smallest = _smallest(records, min_rows)
    columns, notes = columns_of(records, by, smallest)
    records, columns = join_records(records, columns)
    tables = Tables(records, columns, affordable(len(columns), depth, notes), smallest)
    return Search(records, tables, level, progress).audit(_overall(preds, lens, level), tolerance, notes)


def _smallest(records: Records, min_rows: int | None) -> int:
    """Rows from which a segment is judged."""
    total = float(records.counts.sum())
    if min_rows is not None:
        options.whole(min_rows, "min_rows", 2)
    smallest = max(_LEAST_ROWS, int(total // _LEAST_SHARE)) if min_rows is None else int(min_rows)
    if total < smallest:
        raise InputError(f"no segment has {smallest} rows ({total:,.0f} in all); lower min_rows or give more rows")
    return smallest


def _judged(preds: tc.Predictions | GroupedSketches, lens: Lens | None) -> Records:
    """The rows, or the cells of a scan."""
    if isinstance(preds, tc.Predictions):
        return records_of(preds, default_lens(preds) if lens is None else lens)
    if not hasattr(preds, "sketches"):
        check_predictions(preds)
    if lens is not None:
        raise InputError("a Scan was made with its lens; give the lens to tc.scan")
    return records_of_groups(preds)


def _overall(preds: tc.Predictions | GroupedSketches, lens: Lens | None, level: float) -> tc.Estimate:
    """The error of all rows together."""
    return (
        tc.measure(preds, lens=lens, level=level) if isinstance(preds, tc.Predictions) else preds.measure(level=level)
    )
