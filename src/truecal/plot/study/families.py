"""How models are drawn: a colour and a marker for each family, larger dots for larger models, whiskers for intervals."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar, Protocol, Self

from truecal.errors import InputError
from truecal.frame import Frame
from truecal.plot.canvas import SERIES, name_points
from truecal.plot.display import Display, columns

_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00", "#8b1a4a")
_MARKERS = "os^DvP*Xph<"  # as many as are coprime to the number of colours: 88 families until a pair comes again
_FEW = 12  # models whose names fit beside their dots
NO_FAMILY = "no family"


class Result(Protocol):
    """What an analysis found: a table with one row per thing to draw."""

    def frame(self) -> Any:
        """The table (polars, or columns)."""


class MetricResult(Result, Protocol):
    """The same, of one metric."""

    @property
    def metric(self) -> str:
        """The metric's name."""


class ConditionDisplay(Display):
    """A picture of one condition of an analysis of :mod:`truecal.study`: a dataset at a severity of shift."""

    named_by_result: ClassVar[tuple[str, ...]] = ()  # options of the picture that the result knows

    @classmethod
    def from_result(
        cls, result: Result, *, dataset: str | None = None, severity: float | None = None, ax: Any = None
    ) -> Self:
        """Draw one condition of the analysis; what there is only one of need not be named."""
        options = {name: getattr(result, name) for name in cls.named_by_result}
        return cls(chosen(result.frame(), dataset=dataset, severity=severity), **options).plot(ax)


def family_styles(families: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    """Colour and marker of every family, in the order of their names."""
    names = sorted({NO_FAMILY if family is None else family for family in families})
    return {
        name: {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKERS[i % len(_MARKERS)]}
        for i, name in enumerate(names)
    }


def families_of(frame: Frame) -> list[str]:
    """The family of every row."""
    return [NO_FAMILY if family is None else str(family) for family in frame["family"].tolist()]


def chosen(table: Any, **wanted_of: str | float | None) -> Frame:
    """The rows of a result that one diagram can show, as columns: those with one value of each column named.

    Where no value is wanted (None) there must be only one.
    """
    for name, wanted in wanted_of.items():
        there = table[name].unique().sort().to_list()
        if wanted is None:
            if len(there) > 1:
                raise InputError(f"there is more than one {name} to draw; choose {name}= one of {_listed(there)}")
            continue
        if wanted not in there:
            raise InputError(f"there is no {name} {wanted!r} to draw; there is {_listed(there)}")
        table = table.filter(table[name] == wanted)
    return frame_of(table)


def frame_of(table: Any) -> Frame:
    """A polars table as a frame; what is null stays None, also among numbers."""
    return Frame({name: table[name].to_list() for name in table.columns})


def draw_models(
    ax: Any,
    frame: Frame,
    x: str,
    y: str,
    *,
    bars: bool = True,
    filled: bool = True,
    styles: dict[str, dict[str, Any]] | None = None,
) -> None:
    """A dot per model, its family's colour and marker, its size by `relative_size` or `size` within the family.

    `styles` are those of all families where several diagrams must agree.
    """
    across, up = columns(frame, x, y)
    families, sizes = families_of(frame), _areas(frame)
    for family, style in (styles or family_styles(families)).items():
        rows = [i for i, name in enumerate(families) if name == family]
        if not rows:
            continue
        face = style["color"] if filled else "none"
        ax.scatter(
            [across[i] for i in rows],
            [up[i] for i in rows],
            [sizes[i] for i in rows],
            marker=style["marker"],
            facecolors=face,
            edgecolors=style["color"],
            alpha=0.85,
            label=family if filled else None,
            zorder=3,
        )
        if bars:
            _whiskers(ax, frame, rows, x, y, style["color"])


def name_models(ax: Any, frame: Frame, x: str, y: str) -> None:
    """The names of few models beside their dots; the limits of the axes are set before."""
    names, across, up = columns(frame, "model", x, y)
    if len(names) <= _FEW:
        name_points(ax, names, across, up)


def family_legend(ax: Any, frame: Frame) -> None:
    """A legend where there are families to tell apart."""
    if set(families_of(frame)) != {NO_FAMILY}:
        for text in ax.legend(frameon=False).get_texts():
            text.set_parse_math(False)


def _whiskers(ax: Any, frame: Frame, rows: list[int], x: str, y: str, color: str) -> None:
    for value, other, draw in ((y, x, ax.vlines), (x, y, ax.hlines)):
        ends = ("low", "high") if value == "value" else (f"{value}_low", f"{value}_high")
        if not all(name in frame for name in ends):
            continue
        low, high, across = columns(frame, *ends, other)
        known = [i for i in rows if low[i] is not None and high[i] is not None]
        where = [across[i] for i in known]
        draw(where, [low[i] for i in known], [high[i] for i in known], color=color, linewidth=0.8, alpha=0.6)


def _areas(frame: Frame) -> list[float]:
    """Area of every dot: 30 to 120 by size within the family, 40 where sizes are unknown."""
    if "relative_size" in frame:
        (relative,) = columns(frame, "relative_size")
    else:
        size = columns(frame, "size")[0] if "size" in frame else [None] * len(frame)
        families = families_of(frame)
        most: dict[str, float] = {}
        for family, value in zip(families, size, strict=True):
            most[family] = max(most.get(family, 0.0), value or 0.0)
        relative = [value / most[f] if value else None for f, value in zip(families, size, strict=True)]
    return [40.0 if part is None or not isfinite(part) else 30 + 90 * part for part in relative]


def _listed(values: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(f"{value:g}" if isinstance(value, float) else repr(value) for value in values[:most])
    return shown + (", ..." if len(values) > most else "")
