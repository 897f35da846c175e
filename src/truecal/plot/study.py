"""Drawings of many models: a colour and a marker per family, larger dots for larger models, whiskers for intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truecal.plot.display import GREY, SERIES, Display, add_legend, axes_width, name_points
from truecal.study.store import pl
from truecal.types import Float64s

NO_FAMILY = "no family"
DOTTED = {"color": GREY, "linestyle": ":", "linewidth": 1}
_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00", "#8b1a4a")
_MARKERS = "os^DvP*Xph<"  # their number is coprime to that of the colours: 88 families with different pairs
MAX_NAMED = 12  # by choice: models whose names fit beside their dots
_FULL_WIDTH = 4.5  # by choice: inches of axes below which dots become smaller
_DARK = 1.2  # by choice: sum of red, green and blue below which text on a cell is white


def family_styles(families: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    """Return {"color": ..., "marker": ...} by name of each distinct family, in alphabetical order; None is "no family".

    Colours and markers are those of _COLOURS and _MARKERS in turn, each begun again at its end.

    >>> list(family_styles(["vit", None, "mlp", "vit"]))
    ['mlp', 'no family', 'vit']
    """
    names = sorted({NO_FAMILY if family is None else family for family in families})
    return {
        name: {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKERS[i % len(_MARKERS)]}
        for i, name in enumerate(names)
    }


def draw_models(
    ax: Any, table: Any, x: str, y: str, styles: Mapping[str, dict[str, Any]], *, bars: bool = True
) -> None:
    """Draw a dot per row of a polars table at columns `x` and `y`, in the style of its family (columns family and size).

    Areas are 30 + 90 size / largest of the family in points squared, 40 if the size is null, less on small axes. Rows with a
    null, NaN or infinite `x` or `y` are left out; `bars` adds intervals (see `_draw_whiskers`).
    """
    shrink = min(1.0, (axes_width(ax) / _FULL_WIDTH) ** 2)
    family = pl.col("family").fill_null(NO_FAMILY)
    table = table.filter(pl.col(x).is_finite() & pl.col(y).is_finite())
    looks = [styles[name] for name in table.select(family).to_series()]
    largest = pl.col("size").max().over(family)
    areas = table.select(area=(shrink * (30 + 90 * pl.col("size") / largest)).fill_null(40 * shrink))["area"]
    draw_dots(ax, table.select(x, y).to_numpy(), areas.to_list(), looks, alpha=0.85)
    if bars:
        colours = pl.Series("_colour", [look["color"] for look in looks], pl.String)
        _draw_whiskers(ax, table.with_columns(colours), x, y)
    ax.autoscale_view()


def draw_dots(
    ax: Any, points: Float64s, areas: Sequence[float], looks: Sequence[Mapping[str, Any]], **options: Any
) -> None:
    """Draw a dot at each of `points` (n, 2) with its area (n, points squared), and color and marker of its look (n, mappings).

    All are one collection (`options` are its keywords), because matplotlib scales all shared axes anew with each one added.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.markers import MarkerStyle
    from matplotlib.transforms import IdentityTransform

    markers = {marker: MarkerStyle(marker) for marker in {look["marker"] for look in looks}}
    paths = {name: marker.get_path().transformed(marker.get_transform()) for name, marker in markers.items()}
    dots = PathCollection(
        [paths[look["marker"]] for look in looks],
        areas,
        offsets=points,
        offset_transform=ax.transData,
        color=[look["color"] for look in looks],
        zorder=3,
        **options,
    )
    dots.set_transform(IdentityTransform())
    ax.add_collection(dots)


def _draw_whiskers(ax: Any, table: Any, x: str, y: str) -> None:
    """Draw a line from lower to upper limit of the columns `x` and `y` per row with finite ones, in its colour (column _colour).

    Limits of "value" are the columns low and high, of others <column>_low and <column>_high; without such columns none is drawn.
    """
    for value, other, draw in ((y, x, ax.vlines), (x, y, ax.hlines)):
        low, high = ("low", "high") if value == "value" else (f"{value}_low", f"{value}_high")
        if {low, high} <= set(table.columns):
            part = table.filter(pl.col(low).is_finite() & pl.col(high).is_finite())
            draw(part[other], part[low], part[high], color=part["_colour"].to_list(), linewidth=0.8, alpha=0.6)


def name_models(ax: Any, table: Any, x: str, y: str) -> None:
    """Write the names (column model) beside the dots at columns `x` and `y` where there is room; none above 12 rows.

    Limits of the axes must be set before.
    """
    if table.height <= MAX_NAMED:
        name_points(ax, *(table[name].to_list() for name in ("model", x, y)))


class BinTrendDisplay(Display):
    """Draw the slope of binned errors on the classification error against their number of bins, debiased estimators at the right.

    A line that departs from the debiased ones as bins grow is the trend of a bias. Whiskers are intervals of the slope.

    Parameters
    ----------
    numbers : Frame, mapping of columns or polars frame
        `metric`, `scheme`, `norm`, `bins`, `debiased`, `slope`, `low`, `high`, of one dataset at one severity, as in the frame of
        :func:`truecal.study.bin_trend`.

    Examples
    --------
    >>> frame = {"metric": ["ece-mass-5-l1", "rank-series-l2"], "scheme": ["mass", None], "norm": [1.0, 2.0], "bins": [5, None]}
    >>> frame |= {"debiased": [False, True], "slope": [0.01, 0.0], "low": [0.0, -0.01], "high": [0.02, 0.01]}
    >>> BinTrendDisplay(frame).frame()["slope"].tolist()
    [0.01, 0.0]
    """

    needed = ("metric", "scheme", "norm", "bins", "debiased", "slope", "low", "high")

    def _draw(self, ax: Any) -> None:
        """Draw a line of slopes over bins per scheme and norm, and each debiased estimator as a cross at the right."""
        rows = list(self._frame)
        ax.axhline(0, **DOTTED)
        binned = sorted((row for row in rows if not row["debiased"]), key=lambda row: row["bins"])
        for i, (scheme, norm) in enumerate(sorted({(row["scheme"], row["norm"]) for row in binned})):
            group = [row for row in binned if (row["scheme"], row["norm"]) == (scheme, norm)]
            label = f"equal {scheme}, norm {norm:g}"
            x = [row["bins"] * 1.04**i for row in group]  # whiskers of several schemes stand side by side
            _draw_slopes(ax, group, x, label=label, **SERIES[i % len(SERIES)])
        ticks = {row["bins"]: f"{row['bins']:g}" for row in binned}
        debiased = [row for row in rows if row["debiased"]]
        for row in debiased:
            right = max([*ticks, 1]) * 1.6
            _draw_slopes(ax, [row], [right], color="black", marker="x", linestyle="none")
            ticks[right] = row["metric"]
        ax.set_xscale("log")
        ax.set_xticks(list(ticks), list(ticks.values()), rotation=90 if debiased else 0)
        ax.minorticks_off()
        xlabel = "Number of bins, and debiased estimators" if debiased else "Number of bins"
        ax.set(xlabel=xlabel, ylabel="Slope on classification error")
        add_legend(ax, max_columns=2)


def _draw_slopes(ax: Any, rows: list[dict[str, Any]], x: list[float], **style: Any) -> None:
    """Draw the slope of each row (slope, low, high) at its `x` with its interval; `style` are keywords of `ax.errorbar`."""
    half_widths = [[row["slope"] - row["low"] for row in rows], [row["high"] - row["slope"] for row in rows]]
    ax.errorbar(x, [row["slope"] for row in rows], half_widths, capsize=1.5, markersize=4, linewidth=1, **style)


class AgreementDisplay(Display):
    """Draw a heat map of Kendall's tau between the rankings by every two metrics.

    Parameters
    ----------
    numbers : Frame, mapping of columns or polars frame
        `metric_a`, `metric_b`, `tau`, of one dataset at one severity, as in the frame of :func:`truecal.study.rank_agreement`.

    Examples
    --------
    >>> display = AgreementDisplay({"metric_a": ["x"], "metric_b": ["y"], "tau": [0.5]})
    >>> display.table().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    needed = ("metric_a", "metric_b", "tau")

    def names(self) -> list[str]:
        """Return the names of all metrics in alphabetical order.

        >>> from truecal.table import Frame
        >>> AgreementDisplay(Frame({"metric_a": ["ece"], "metric_b": ["brier"], "tau": [0.5]})).names()
        ['brier', 'ece']
        """
        first, second = self._columns("metric_a", "metric_b")
        return sorted({*first, *second})

    def table(self) -> Float64s:
        """Return tau as a symmetric matrix (metrics, metrics) in the order of `names()`, 1 on the diagonal, NaN without a tau.

        >>> from truecal.table import Frame
        >>> AgreementDisplay(Frame({"metric_a": ["ece"], "metric_b": ["brier"], "tau": [0.5]})).table()
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        names = self.names()
        matrix = np.where(np.eye(len(names), dtype=bool), 1.0, np.nan)
        for a, b, tau in zip(*self._columns("metric_a", "metric_b", "tau"), strict=True):
            i, j = names.index(a), names.index(b)
            matrix[i, j] = matrix[j, i] = np.nan if tau is None else tau
        return matrix

    def _size(self) -> tuple[float, float]:
        """Return height 2.5 plus 0.5 inches per metric, and a width of one inch more, as (width, height)."""
        side = 2.5 + 0.5 * len(self.names())
        return side + 1, side

    def _draw(self, ax: Any) -> list[Any]:
        """Draw the matrix as a heat map with its numbers, names at the ticks; return the axes of the colour bar."""
        matrix, names = self.table(), self.names()
        image = ax.imshow(matrix, cmap="cividis", vmin=-1, vmax=1)
        for i, j in np.argwhere(~np.isnan(matrix)):
            dark = sum(image.cmap(image.norm(matrix[i, j]))[:3]) < _DARK
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": "white" if dark else "black"}
            ax.text(j, i, f"{matrix[i, j]:.2f}", **style)
        ax.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        return [self.figure_.colorbar(image, ax=ax, label="Kendall's tau").ax]
