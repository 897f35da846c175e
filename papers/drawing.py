"""The few kinds of picture the experiments need, drawn on a matplotlib figure from plain numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # an optional extra, loaded where a figure is made
    Axes = Figure = Any

# One line: x, y and, where known, the half-width of its band, or its lower and upper limits.
Numbers = Sequence[float]
Line = tuple[Numbers, Numbers] | tuple[Numbers, Numbers, Numbers] | tuple[Numbers, Numbers, Numbers, Numbers]
STYLE = Path(__file__).with_name("papers.mplstyle")
PAGE_WIDTH, COLUMN_WIDTH = 6.75, 3.3  # inches of a printed page and of one of its two columns
TRUE_LINE: Mapping[str, Any] = {
    "color": "green",
    "linewidth": 0.8,
}  # where an unbiased estimator or a calibrated model lies
_DASHES = ("-", "--", ":", "-.")
_COLOURS = 8  # of the style
_MARKED = 30  # longest line whose points are marked
_LETTERS_PER_INCH = 12  # of labels below bars; more are turned
_TICKS = 6  # on a logarithmic axis as wide as a page


def banded(rows: Sequence[Mapping[str, float]], x: str, y: str) -> Line:
    """A line over rows of a table, with the 90 % interval of each as its band."""
    return [r[x] for r in rows], [r[y] for r in rows], [r["low_90"] for r in rows], [r["high_90"] for r in rows]


def panels(
    figure: Figure,
    count: int,
    *,
    columns: int = 3,
    share_y: bool = True,
    height: float = 2.2,
    rows_heights: Sequence[float] | None = None,
) -> list[Axes]:
    """A grid of axes, each `height` inches high, as wide as a page; unused ones are removed."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure.set_size_inches(PAGE_WIDTH if columns > 1 else COLUMN_WIDTH, rows * height + 0.4)
    grid = figure.subplots(rows, columns, sharey=share_y, squeeze=False, height_ratios=rows_heights)
    for spare in grid.flat[count:]:
        spare.remove()
    return list(grid.flat[:count])


def panel(figure: Figure, *, wide: bool = False) -> Axes:
    """One pair of axes, as wide as a column or, where its labels need it, as a page."""
    figure.set_size_inches(PAGE_WIDTH if wide else COLUMN_WIDTH, 2.8)
    return figure.subplots()


def finish(figure: Figure, title: str) -> None:
    """Write the title, and the vertical label once for panels that share their axis."""
    figure.suptitle(fill(title, round(14 * figure.get_figwidth())))
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        shared = len(axes.get_shared_y_axes().get_siblings(axes)) > 1
        if shared and spec is not None and not spec.is_first_col():
            axes.set_ylabel("")


def lines(
    axes: Axes,
    curves: Mapping[str, Line],
    *,
    title: str = "",
    x: str,
    y: str,
    log_x: bool = False,
    zero: bool = False,
    legend: bool = True,
) -> None:
    """Labelled lines with bands; `zero` marks y = 0, where an unbiased estimator lies."""
    if zero:
        axes.axhline(0.0, **TRUE_LINE)
    for i, (label, line) in enumerate(curves.items()):
        xs, ys = np.asarray(line[0]), np.asarray(line[1])
        marker = "." if xs.size <= _MARKED else ""
        name = "plug-in" if label == "plugin" else label
        (drawn,) = axes.plot(xs, ys, _DASHES[i // _COLOURS % 4], marker=marker, label=name)
        if len(line) > 2:
            low, high = (ys - np.asarray(line[2]), ys + np.asarray(line[2])) if len(line) == 3 else line[2:]
            axes.fill_between(xs, low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    if log_x:
        label_log_axis(axes, sorted({float(value) for line in curves.values() for value in line[0]}))
    axes.set(title=title, xlabel=x, ylabel=y)
    if legend:
        axes.legend()


def label_log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with a few of these values as plain numbers below it."""
    axes.set_xscale("log")
    count = min(max(_TICKS - _columns(axes), 3), len(values))
    ticks = [values[round(k)] for k in np.linspace(0, len(values) - 1, count)]
    axes.set_xticks(ticks, [f"{v:g}" if v >= 0.1 else f"{v:.1g}" for v in ticks])
    axes.minorticks_off()


def _columns(axes: Axes) -> int:
    """How many panels stand side by side in the figure."""
    spec = axes.get_subplotspec()
    return 1 if spec is None else int(spec.get_gridspec().ncols)


def shared_legend(figure: Figure, axes: Axes) -> None:
    """One legend below a grid of panels whose lines mean the same, taken from one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4 if figure.get_figwidth() > COLUMN_WIDTH else 2)


def clusters(
    axes: Axes,
    groups: Sequence[str],
    heights: Mapping[str, Numbers],
    errors: Mapping[str, Numbers] | None = None,
    marks: Mapping[str, Numbers] | None = None,
    marks_label: str = "as printed",
) -> None:
    """Bars in a cluster per group, one of each name, with error bars and with marks (printed numbers or floors) across them."""
    width = 0.8 / len(heights)
    marks = marks or {}
    for i, (name, values) in enumerate(heights.items()):
        x = np.arange(len(groups)) + (i - (len(heights) - 1) / 2) * width
        error = None if errors is None else np.where(np.asarray(errors[name]) > 0, errors[name], np.nan)
        axes.bar(x, values, width, yerr=error, label=name, error_kw={"linewidth": 0.6})
        if name in marks:
            label = marks_label if name == next(iter(marks)) else "_nolegend_"
            axes.hlines(marks[name], x - width / 2, x + width / 2, color="black", linewidth=1.5, label=label)
    axes.axhline(0, color="black", linewidth=0.6)
    letters = sum(max(map(len, group.split("\n"))) for group in groups)
    width_of_panel = COLUMN_WIDTH if _columns(axes) == 1 else PAGE_WIDTH / _columns(axes)
    crowded = letters > _LETTERS_PER_INCH * width_of_panel
    axes.set_xticks(range(len(groups)), groups, rotation=40 * crowded, ha="right" if crowded else "center")


def heat(
    axes: Axes,
    numbers: Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    limit: float | None = None,
    signed: bool = True,
) -> None:
    """A table of numbers by bins and samples, coloured by sign and size; panels of one figure share `limit`."""
    values = np.asarray(numbers, dtype=float)
    limit = limit or float(np.abs(values).max()) or 1.0
    if signed:
        axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    else:
        axes.imshow(values, cmap="Reds", vmin=0, vmax=limit, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        dark = abs(value) > 0.6 * limit
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=6, color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(title=title, xlabel="samples", ylabel="bins")
