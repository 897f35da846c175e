"""The base of all displays: columns in, axes and a layout that fits the column of a paper out.

Series differ in marker or dash as well as in colour, so that a grey print can be read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import InputError, extra
from truecal.predictions import validation
from truecal.table import Frame
from truecal.writing import write_whole

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#00795a", "#a5558c", "#5a6675"
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D"},
    {"color": GREY, "linestyle": (0, (5, 1, 1, 1)), "marker": "v"},
)
DASHED = {"color": GREY, "linestyle": (0, (4, 4)), "linewidth": 1}
SMALL = 7.5  # by choice: points of the text of narrow axes

_NARROW = 3.2  # by choice: inches below which axes are those of a column of a paper
_TICK_ROOM = 0.4  # by choice: inches between the ticks of narrow axes
_LETTER = 0.55  # by choice: width of a character as a share of its size
_HANDLE = 3.5  # by choice: multiples of the size of text that line and margins of an entry of a legend take
_LETTERS = 24  # by choice: of a name in a small figure; a longer one would leave no room for what is drawn
_MARKERS = 20  # by choice: on a line; one per point would hide it

Numbers = Any  # whatever holds columns: see Frame.of


class Display(ABC):
    """Draw the rows of a table.

    The constructor takes numbers that were computed before; a classmethod `from_...` computes them. After `plot`, `figure_` and
    `ax_` are what was drawn on.

    Parameters
    ----------
    numbers : Frame, mapping of columns, or polars, pandas or pyarrow frame
        The numbers to draw.

    Raises
    ------
    InputError
        A column is missing, or there are no rows.
    """

    needed: tuple[str, ...] = ()  # columns

    def __init__(self, numbers: Numbers) -> None:
        """Store numbers as a Frame; raise InputError for an empty one, and for one that lacks a column of `needed`."""
        self._frame = Frame.of(numbers)
        if not len(self._frame):
            raise InputError("there is nothing to draw: the columns are empty")
        missing = [name for name in self.needed if name not in self._frame]
        if missing:
            raise InputError(
                f"the numbers to draw have no column {missing[0]!r}; they have {', '.join(self._frame.columns)}"
            )
        self.figure_: Any = None
        self.ax_: Any = None
        self.narrow_ = False

    def frame(self) -> Frame:
        """Return the numbers of the picture, one row per thing drawn."""
        return self._frame

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : Display
            The display itself.
        """
        self.figure_, self.ax_ = new_axes(ax, size=self._size())
        self.narrow_ = shrink_ticks(self.ax_)
        further_axes = self._draw(self.ax_) or ()
        if self.narrow_:
            fit_small([self.ax_, *further_axes])
        return self

    def _size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 6.0, 5.0

    @abstractmethod
    def _draw(self, ax: Any) -> Sequence[Any] | None:
        """Draw the numbers on axes; return further axes that were added, None if there are none."""

    def _plot_if(self, plot: bool, ax: Any) -> Self:
        """Draw on `ax` (None: a new figure) if `plot`; return the display."""
        return self.plot(ax) if plot else self

    def _columns(self, *names: str) -> list[list[Any]]:
        """Return columns of `frame()` by name as lists of Python values, in the order of `names`."""
        return [self._frame[name].tolist() for name in names]

    def _series(self, name: str) -> Iterator[tuple[Any, NDArray[np.intp], dict[str, Any]]]:
        """Yield (value, positions of its rows, style) for each distinct value of a column, in the order of first occurrence.

        The style is an entry of SERIES with color, linestyle and marker; they repeat after five values.
        """
        values = self._frame[name].tolist()
        for i, value in enumerate(dict.fromkeys(values)):
            rows = np.flatnonzero([other == value for other in values])
            yield value, rows, SERIES[i % len(SERIES)]

    def _draw_lines(
        self,
        ax: Any,
        series: str,
        x: str,
        y: str,
        *bands: tuple[str, str],
        labels: Mapping[str, str] | None = None,
        **line: Any,
    ) -> None:
        """Draw a line of column `y` over rising column `x` per value of the column `series`, and bands between pairs of columns.

        `bands` are names (low, high); `labels` replaces the values of `series` in the legend; `line` are keywords of `ax.plot`.
        """
        for name, rows, style in self._series(series):
            order = rows[np.lexsort((self._frame[y][rows], self._frame[x][rows]))]
            across = self._frame[x][order]
            for low, high in bands:
                fill_band(ax, across, self._frame[low][order], self._frame[high][order], style["color"])
            label = str(name) if labels is None else labels[name]
            marker_step = max(1, len(rows) // _MARKERS)
            style_of_line = {**style, "linewidth": 1.8, "markersize": 5, "markevery": marker_step, **line}
            ax.plot(across, self._frame[y][order], label=label, **style_of_line)


# ----------------------------------------------------------------------------------------------------
# Axes, and text that fits them


def new_axes(ax: Any, *, size: tuple[float, float] = (6.0, 5.0)) -> tuple[Any, Any]:
    """Return figure and axes to draw on: those of `ax`, or new ones of `size` inches; refuse what is no axes."""
    pyplot = extra("matplotlib.pyplot")
    if isinstance(ax, pyplot.Axes):
        return ax.figure, ax
    if ax is not None:
        raise InputError(f"ax must be axes of matplotlib, not {validation.shown(ax)}; plt.subplots() makes some")
    return pyplot.subplots(figsize=size, layout="constrained")


def save_figure(figure: Any, path: Path, **options: Any) -> Path:
    """Write a figure to a file (whole or not at all), close it, and return the path; `options` are keywords of `savefig`."""
    write_whole(path, partial(figure.savefig, format=path.suffix.lstrip(".") or None, **options))
    extra("matplotlib.pyplot").close(figure)
    return path


def text_color() -> str:
    """Return the colour of text of the style in use, dark or light."""
    return str(extra("matplotlib").rcParams["text.color"])


def fill_band(ax: Any, x: Any, low: Any, high: Any, color: str, **more: Any) -> None:
    """Fill the space between two curves in a transparent colour; `more` are keywords of `fill_between`."""
    ax.fill_between(x, low, high, **{"color": color, "alpha": 0.2, "linewidth": 0, **more})


def axes_width(ax: Any) -> float:
    """Return the width of axes in inches."""
    return float(ax.get_window_extent().width) / float(ax.figure.dpi)


def shrink_ticks(ax: Any) -> bool:
    """Return whether axes are narrower than 3.2 inches; if so, make tick labels 7.5 points and the gaps to labels 2 points."""
    narrow = axes_width(ax) < _NARROW
    if narrow:
        ax.tick_params(labelsize=SMALL, pad=2)
        ax.xaxis.labelpad = ax.yaxis.labelpad = 2
    return narrow


def wrap(words: str, inches: float, points: float) -> str:
    """Break each line of text at spaces into lines of `inches` in type of `points`, keeping its indentation.

    A letter is 0.55 times as wide as the type; a line may always have 12 letters. "n = 5" and "[0.1, 0.2]" are not broken.

    >>> print(wrap("one two three four", 1.0, 10.0))  # 13 letters
    one two three
    four
    """
    letters = max(12, int(inches * 72 / (_LETTER * points)))
    words = re.sub(r" = |(?<=\d), (?=\d)", lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), words)
    return "\n".join(
        fill(line, letters, subsequent_indent=" " * (len(line) - len(line.lstrip()))) for line in words.split("\n")
    )


def shorten(name: str, letters: int = _LETTERS) -> str:
    """Return a name of at most `letters` unchanged, else its beginning and end, because groups may differ in the end only.

    >>> shorten("University Hospital, female", 18)
    'University…female'
    """
    if len(name) <= letters:
        return name
    tail = (letters - 1) * 2 // 5
    return f"{name[: letters - 1 - tail].rstrip(' ,')}…{name[len(name) - tail :]}"


def fit_small(axes: Sequence[Any]) -> None:
    """Fit the text of narrow axes of one figure: type of at most 7.5 points, few ticks, titles and legends broken into lines.

    The space for lines is that of the first axes' part of the figure. The figure gets a tight layout if it has no layout engine.
    """
    from matplotlib.layout_engine import PlaceHolderLayoutEngine
    from matplotlib.text import Text

    figure = axes[0].figure
    width, height = _share_of_figure(axes[0])
    for ax in axes:
        ax.tick_params(labelsize=SMALL, pad=2)
        for text in ax.findobj(Text):
            text.set_size(min(text.get_size(), SMALL))
        _fit_ticks(ax.yaxis, 0.45 * width)
        _fit_ticks(ax.xaxis, 0.45 * height)
        ticks = ax.yaxis.get_tightbbox()
        across = 0.95 * width - (0.0 if ticks is None else ticks.width / figure.dpi)
        legend = ax.get_legend()
        entries = [] if legend is None else legend.get_texts()
        titles = [(text, across) for text in (ax.xaxis.label, ax.title, ax._left_title, ax._right_title)]
        legend_texts = [(text, across - _HANDLE * SMALL / 72) for text in entries]
        for text, inches in [(ax.yaxis.label, 0.75 * height), *titles, *legend_texts]:
            if text.get_text():
                text.set_text(wrap(text.get_text(), inches, text.get_size()))
    if isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine | None):
        figure.set_layout_engine(
            "tight", pad=0.4
        )  # at each draw: letters are wider at some resolutions of a saved file


def _share_of_figure(ax: Any) -> tuple[float, float]:
    """Return width and height in inches of the part of the figure that a grid gives to axes; of all of it without a grid."""
    width, height = ax.figure.get_size_inches()
    spec = ax.get_subplotspec()
    if spec is not None:
        grid = spec.get_topmost_subplotspec()
        rows, columns, *_ = grid.get_geometry()
        width, height = width * len(grid.colspan) / columns, height * len(grid.rowspan) / rows
    return float(width), float(height)


def _fit_ticks(axis: Any, inches: float) -> None:
    """Limit automatic ticks to 2 to 5 intervals, and break names at fixed ticks into lines of `inches` unless they are slanted.

    `axis` is `ax.xaxis` or `ax.yaxis`.
    """
    from matplotlib.ticker import AutoLocator, FixedLocator

    locator = axis.get_major_locator()
    if isinstance(locator, AutoLocator):
        box = axis.axes.get_window_extent()
        length = (box.width if axis.axis_name == "x" else box.height) / axis.axes.figure.dpi
        locator.set_params(nbins=max(2, min(5, int(length / _TICK_ROOM))))
    labels = axis.get_ticklabels()
    names = [label.get_text() for label in labels]
    lines = [wrap(name, inches, SMALL) for name in names]
    slanted = any(label.get_rotation() % 90 for label in labels)
    if isinstance(locator, FixedLocator) and lines != names and not slanted:
        axis.set_ticks(axis.get_ticklocs(), lines, parse_math=False, fontsize=SMALL)


def add_legend(ax: Any, title: str = "", *, min_entries: int = 1, max_columns: int = 4) -> None:
    """Add a legend above the axes in as many columns as fit their width, from `max_columns` down to 1 (which need not fit).

    Nothing is added for fewer than `min_entries` entries.
    """
    count = len(ax.get_legend_handles_labels()[1])
    points = SMALL if axes_width(ax) < _NARROW else 10.0
    style: dict[str, Any] = {"frameon": False, "loc": "lower left", "bbox_to_anchor": (0, 1), "alignment": "left"}
    style |= {"borderaxespad": 0.2, "columnspacing": 1.2, "fontsize": points, "title": title or None}
    if points == SMALL:
        style |= {"handlelength": 1.6, "handletextpad": 0.5, "labelspacing": 0.3}
    for columns in range(min(max_columns, count) if count >= min_entries else 0, 0, -1):
        legend = ax.legend(ncols=columns, **style)
        plain_text(legend)
        if legend.get_window_extent().width <= ax.get_window_extent().width:
            return


def add_title(ax: Any, words: str, *, size: float = 10.0) -> None:
    """Set a title of `size` points at the left above axes and legend, in lines of the axes' width; "$" is not mathematics."""
    legend = ax.get_legend()
    above = 0.0 if legend is None else float(legend.get_window_extent().height) * 72 / float(ax.figure.dpi)
    ax.set_title(wrap(words, axes_width(ax), size), loc="left", fontsize=size, parse_math=False, pad=6.0 + above)


def plain_text(legend: Any) -> None:
    """Show the entries of a legend as text: "$" does not begin mathematics."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def name_points(ax: Any, names: Sequence[str], across: Sequence[float], up: Sequence[float]) -> None:
    """Write each name (shortened) at the first corner of its point where it lies in the axes and covers no point or name.

    A name with no such corner is left out. `across` and `up` (n,) are coordinates of the data; limits of the axes must be set.
    """
    ax.figure.draw_without_rendering()  # settles limits, and the place that labels leave to the axes
    points = SMALL if axes_width(ax) < _NARROW else 9.0
    frame = ax.get_window_extent().padded(-3)  # other resolutions round the widths of letters otherwise
    pixels = ax.transData.transform(np.column_stack([across, up]))
    boxes: list[Any] = []
    for name, x, y in zip(names, across, up, strict=True):
        for (dy, vertical), (dx, horizontal) in product(((2, "bottom"), (-2, "top")), ((5, "left"), (-5, "right"))):
            style = {"ha": horizontal, "va": vertical, "textcoords": "offset points", "fontsize": points}
            text = ax.annotate(shorten(name), (x, y), (dx, dy), parse_math=False, **style)
            text.set_in_layout(False)  # axes keep the size at which the names were placed
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not box.count_contains(pixels) and not box.padded(2).count_overlaps(boxes):
                boxes.append(box)
                break
            text.remove()


def add_below(ax: Any, height: float, gap: float = 0.08) -> Any:
    """Split axes into two and return the new ones below; `height` and `gap` are shares of the upper ones' height.

    The upper axes lose their horizontal tick labels; the lower ones do not share limits with them.
    """
    ax.tick_params(labelbottom=False)
    spec = ax.get_subplotspec()
    if spec is None:
        box, total = ax.get_position(), 1 + height + gap
        ax.set_position((box.x0, box.y0 + box.height * (height + gap) / total, box.width, box.height / total))
        below = ax.figure.add_axes((box.x0, box.y0, box.width, box.height * height / total))
    else:
        parts = spec.subgridspec(2, 1, height_ratios=(1, height), hspace=gap)
        ax.set_subplotspec(parts[0])
        below = ax.figure.add_subplot(parts[1])
    shrink_ticks(below)
    return below


# ----------------------------------------------------------------------------------------------------
# Limits of axes of probabilities


def fitted_limits(profile: tc.profile.Profile, coverage: float = 0.99) -> tuple[float, float]:
    """Return `rounded_limits` of the two quantiles between which the central `coverage` of the scores lies, by weight.

    >>> import numpy as np, truecal as tc
    >>> fitted_limits(tc.profile.Profile.from_arrays(np.linspace(0.01, 0.3, 500), np.zeros(500)))
    (0.0, 0.32)
    """
    scores, tail = profile.scores[0], (1 - coverage) / 2
    if profile.weights is None:
        ends = np.array([tail, 1 - tail]) * len(scores)
    else:
        mass = np.cumsum(profile.weights[0])
        ends = np.searchsorted(mass, np.array([tail, 1 - tail]) * mass[-1])
    low, high = (float(scores[min(int(end), len(scores) - 1)]) for end in ends)
    return rounded_limits(low, high)


def default_scheme(limits: tuple[float, float]) -> Literal["width", "mass"]:
    """Return "width" for limits that span at least a third of [0, 1], else "mass": bins of equal width would be few.

    >>> default_scheme((0.5, 1.0)), default_scheme((0.0, 0.1))
    ('width', 'mass')
    """
    return "width" if limits[1] - limits[0] >= 1 / 3 else "mass"


def rounded_limits(low: float, high: float) -> tuple[float, float]:
    """Return limits around [low, high] within [0, 1]: a margin of 5 % of its length L, then the next multiple of a round step.

    The step is a fifth of the largest power of 10 up to L. An end is 0 or 1 if that is closer than L / 2; both are if L is 0 or
    above 0.6.

    >>> rounded_limits(0.42, 0.58), rounded_limits(0.02, 0.5), rounded_limits(0.5, 0.5)
    ((0.4, 0.6), (0.0, 0.54), (0.0, 1.0))
    """
    span = high - low
    if span <= 0 or span > 0.6:
        return 0.0, 1.0
    step = 10.0 ** np.floor(np.log10(span)) / 5
    low = 0.0 if low < 0.5 * span else np.floor((low - 0.05 * span) / step) * step
    high = 1.0 if 1 - high < 0.5 * span else np.ceil((high + 0.05 * span) / step) * step
    return round(float(max(low, 0.0)), 10), round(float(min(high, 1.0)), 10)
