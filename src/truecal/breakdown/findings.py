"""What an audit found: a short list of segments, as a tree, a table, text and HTML."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.breakdown.segments.levels import Level, rows_within
from truecal.errors import printable
from truecal.frame import Frame, Tabular, plain

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
    squared : what its regions add to the mean squared difference of all rows, stronger segments being mended first.
    explains : how many other significant segments are so no longer once this one is mended.
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
            shown = (
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
            rows.append(f"<tr>{indent}{''.join(f'<td>{cell}</td>' for cell in shown)}</tr>")
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
