"""The few kinds of picture the experiments need, drawn on a matplotlib figure from plain numbers."""

from collections.abc import Mapping, Sequence
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
_STYLES = ("-", "--", ":", "-.")


def banded(rows: Sequence[Mapping[str, float]], x: str, y: str) -> Line:
    """A line over rows of a table, with the 90 % interval of each as its band."""
    return [r[x] for r in rows], [r[y] for r in rows], [r["low_90"] for r in rows], [r["high_90"] for r in rows]


def panels(figure: Figure, count: int, *, columns: int = 3, share_y: bool = True) -> list[Axes]:
    """A grid of axes, unused ones removed."""
    columns = min(columns, count)
    grid = figure.subplots(-(-count // columns), columns, sharey=share_y, squeeze=False)
    for spare in grid.flat[count:]:
        spare.remove()
    return list(grid.flat[:count])


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
        axes.axhline(0.0, color="green", linewidth=0.8)
    for i, (label, line) in enumerate(curves.items()):
        xs, ys = np.asarray(line[0]), np.asarray(line[1])
        (drawn,) = axes.plot(xs, ys, _STYLES[i // 10 % 4], marker=".", linewidth=1.2, markersize=4, label=label)
        if len(line) > 2:
            low, high = (ys - np.asarray(line[2]), ys + np.asarray(line[2])) if len(line) == 3 else line[2:]
            axes.fill_between(xs, low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    if log_x:
        axes.set_xscale("log")
    axes.set(title=title, xlabel=x, ylabel=y)
    if legend:
        axes.legend(fontsize="small")


def shared_legend(figure: Figure, axes: Axes) -> None:
    """One legend for a grid of panels whose lines mean the same, taken from one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize="small")


def heat(
    axes: Axes,
    numbers: Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    axis_names: tuple[str, str] = ("samples", "bins"),
    limit: float | None = None,
) -> None:
    """A table of numbers, coloured by sign and size; panels of one figure share `limit`, and so the meaning of a colour."""
    values = np.asarray(numbers, dtype=float)
    limit = limit or float(np.abs(values).max()) or 1.0
    axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        dark = abs(value) > 0.6 * limit
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize="small", color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(title=title, xlabel=axis_names[0], ylabel=axis_names[1])


def bars(axes: Axes, edges: Sequence[float], heights: Sequence[float], *, title: str = "", x: str, y: str) -> None:
    """A histogram from its edges and heights."""
    axes.stairs(heights, edges, fill=True, alpha=0.6)
    axes.set(title=title, xlabel=x, ylabel=y)
