"""The forest plots of a page: one clinical number per group with its interval, the mean over groups, and a new group."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, isfinite, log, log10
from statistics import median

import truecal as tc
from truecal.clinical import Sites
from truecal.report.html import element, escaped

_WIDE, _LEFT, _RIGHT = 440, 150, 310  # pixels of the picture; between left and right lies the axis
_TOP, _LINE, _FOOT = 8, 24, 40  # pixels above the first line, of a line, and of the axis below the last
_LETTERS = 22  # of a name; the whole one is its tooltip
_REACH = 3  # median intervals beyond the outermost value at which longer ones are cut
_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class ForestRow:
    """A group ("site"), the mean over groups ("mean") or what a new group may have ("new site")."""

    name: str
    kind: str
    counts: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Forest:
    """One number of every group; `ideal` is that of a calibrated model, `ratio` says that its axis is logarithmic."""

    title: str
    ideal: float
    ratio: bool
    rows: tuple[ForestRow, ...]


def forests_of(sites: Sites) -> tuple[Forest, ...]:
    """O/E ratio and slope, as `tc.plot.ForestDisplay` has them."""
    return (
        Forest("O/E ratio", 1.0, True, _rows(sites, "oe")),
        Forest("Calibration slope", 1.0, False, _rows(sites, "slope")),
    )


def _rows(sites: Sites, number: str) -> tuple[ForestRow, ...]:
    names = {"mean": "mean over groups", "new site": "a new group"}
    return tuple(
        ForestRow(
            names.get(row["kind"], str(row["site"])),
            row["kind"],
            f"{row['events']:,} of {row['rows']:,}" if row["kind"] == "site" else "",
            *(float(row[end]) for end in ("value", "low", "high")),
        )
        for row in tc.plot.ForestDisplay.from_sites(sites, number, plot=False).frame()
    )


def forest_figure(forest: Forest, level: float) -> str:
    """The picture as HTML, with its caption."""
    axis = _Axis.of(forest)
    bottom = _TOP + _LINE * len(forest.rows)
    parts = [_ticks(axis, bottom), _upright(axis.place(forest.ideal), bottom, "ideal")]
    parts += [_line(row, axis, _TOP + _LINE * (i + 0.5)) for i, row in enumerate(forest.rows)]
    parts.append(_text((_LEFT + _RIGHT) / 2, bottom + 34, forest.title, "middle"))
    words = "; ".join(f"{row.name}: {_number(row)}" for row in forest.rows)
    box = f"0 0 {_WIDE} {bottom + _FOOT}"
    picture = element("svg", *parts, viewBox=box, role="img", aria_label=f"{forest.title}. {words}", class_="forest")
    caption = f"{forest.title} by group with {level:.0%} intervals; an arrow marks one that is longer. Dashed: a calibrated model."
    return element("figure", picture, element("figcaption", escaped(caption)))


@dataclass(frozen=True)
class _Axis:
    """From `low` to `high` on the scale of the picture, which is log(value) for ratios."""

    low: float
    high: float
    ratio: bool

    @classmethod
    def of(cls, forest: Forest) -> "_Axis":
        """Holds all finite values and the ideal one; intervals as far as `_REACH` of the median length."""

        def scaled(value: float) -> float | None:
            if forest.ratio:
                return log(value) if value > 0 and isfinite(value) else None
            return value if isfinite(value) else None

        triples = [[scaled(x) for x in (row.value, row.low, row.high)] for row in forest.rows]
        whole = [(v, a, b) for v, a, b in triples if v is not None and a is not None and b is not None]
        values = [v for v, _, _ in triples if v is not None]
        ideal = log(forest.ideal) if forest.ratio else forest.ideal
        usual = median([b - a for _, a, b in whole]) if whole else 0.1
        low, high = min([ideal, *values]), max([ideal, *values])
        low = max(min([low, *(a for _, a, _ in whole)]), low - _REACH * usual)
        high = min(max([high, *(b for _, _, b in whole)]), high + _REACH * usual)
        edge = 0.04 * (high - low) or 0.1
        return cls(low - edge, high + edge, forest.ratio)

    def place(self, value: float) -> float:
        """The pixel of a value; those beyond the axis, and infinite ones, lie outside it."""
        if self.ratio:
            value = -1e9 if value <= 0 else log(value) if isfinite(value) else 1e9
        share = (min(max(value, -1e9), 1e9) - self.low) / (self.high - self.low)
        return _LEFT + (_RIGHT - _LEFT) * share

    def ticks(self) -> Sequence[float]:
        """At most five round values."""
        if self.ratio:
            inside = [x for x in _RATIOS if self.low <= log(x) <= self.high]
            inside = inside or [float(f"{exp((self.low + self.high) / 2):.2g}")]
            return inside[:: ceil(len(inside) / 5)] if 1 not in inside else _around_one(inside)
        step = 10 ** floor(log10((self.high - self.low) / 5))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 5)
        first = ceil(self.low / step)
        return [round(step * k, 10) for k in range(first, floor(self.high / step) + 1)]


def _around_one(values: Sequence[float]) -> Sequence[float]:
    """Every so many of the values that at most five are left, 1 among them."""
    every = ceil(len(values) / 5)
    return [x for i, x in enumerate(values) if (i - values.index(1)) % every == 0]


def _ticks(axis: _Axis, bottom: float) -> str:
    base = element("path", d=f"M{_LEFT} {bottom}H{_RIGHT}", class_="axis")
    marks = [
        _upright(axis.place(x), bottom, "grid") + _text(axis.place(x), bottom + 16, f"{x:g}", "middle")
        for x in axis.ticks()
    ]
    return "".join([*marks, base])


def _line(row: ForestRow, axis: _Axis, y: float) -> str:
    """Name, interval with its value, and the numbers in words."""
    tip = element("title", escaped(": ".join(part for part in (row.name, row.counts) if part)))
    parts = [
        element("text", tip, escaped(tc.plot.ForestDisplay.shortened(row.name, _LETTERS)), x=0, y=f"{y + 4:.1f}"),
        _text(_RIGHT + 8, y + 4, _number(row)),
    ]
    kind = row.kind.replace(" ", "-")
    low, high = (min(max(axis.place(x), _LEFT), _RIGHT) for x in (row.low, row.high))
    parts.append(element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", class_=f"interval {kind}"))
    for end, place, side in ((low, axis.place(row.low), 5), (high, axis.place(row.high), -5)):
        if not _LEFT <= place <= _RIGHT:
            arrow = f"M{end:.1f} {y:.1f}l{side} -4v8z"
            parts.append(element("path", d=arrow, class_=f"mark {kind}"))
    middle = axis.place(row.value)
    if row.kind != "new site" and _LEFT <= middle <= _RIGHT:
        shape = "m0 -6l6 6l-6 6l-6 -6z" if row.kind == "mean" else "m-4 -4h8v8h-8z"
        parts.append(element("path", d=f"M{middle:.1f} {y:.1f}{shape}", class_=f"mark {kind}"))
    return "".join(parts)


def _number(row: ForestRow) -> str:
    ends = f"{row.low:.2f} to {row.high:.2f}"
    return ends if row.kind == "new site" else f"{row.value:.2f} ({ends})"


def _upright(x: float, bottom: float, kind: str) -> str:
    return element("path", d=f"M{x:.1f} {_TOP}V{bottom:.1f}", class_=kind)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return element("text", escaped(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)
