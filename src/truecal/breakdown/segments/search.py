"""The search itself: from the columns asked for, over the joint null, to the segments that are listed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import parallel
from truecal.breakdown.findings import Audit, Segment
from truecal.breakdown.segments.causes import Cause, find_causes
from truecal.breakdown.segments.levels import Column, Level, read_column
from truecal.breakdown.segments.limits import critical_value, difference
from truecal.breakdown.segments.null import CONTRASTS, SLOPE, Pairs, joint_null
from truecal.breakdown.segments.records import REGIONS, Records
from truecal.breakdown.segments.tables import Tables
from truecal.errors import InputError
from truecal.types import Float64s

_MOST_SUBSETS = 600  # subsets of columns searched; a larger number is cut down to a smaller depth
_FEW_UNITS = 20  # a sum over g units never stands out by more than sqrt(g) deviations


def columns_of(records: Records, by: str | Sequence[str] | None, smallest: int) -> tuple[list[Column], list[str]]:
    """The columns to search. Those not asked for by name and of no use are left out with a note."""
    names = list(records.columns) if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if by is not None and records.own is not None and records.own not in names:
        names.append(records.own)
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


def affordable(columns: int, depth: int, notes: list[str]) -> int:
    """The depth that can be searched: many columns have too many intersections, of which a note is made."""
    depth = min(depth, columns)
    less = depth
    while less > 1 and comb(columns, less) > _MOST_SUBSETS:
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
            depth=self.tables.most,
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

    def _segment(self, cause: Cause, score: Float64s, tolerance: float | None) -> Segment:
        records, test = self.records, cause.test
        contrast = int(self.null.tests.contrast[test])
        inside = self.tables.mask(cause.segment)
        critical = critical_value(self.limit, float(self.null.tests.price[test]))
        value, low, high = difference(records, inside, contrast, critical, float(self.null.deviation[test]))
        judged = inside & (CONTRASTS[contrast][records.region] != 0)
        mass = float(records.mass[judged].sum())
        rows = float(records.counts[judged].sum())
        beyond = None if tolerance is None else bool(low > tolerance or high < -tolerance)
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
