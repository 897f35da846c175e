"""What all displays draw on and with: axes, colours that the colour-blind can tell apart, and the scale that zooms in on 1.

Every series also differs in marker or dash, so that a grey print can be read.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from textwrap import fill
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal.errors import InputError, extra
from truecal.predictions import validation
from truecal.table import Frame
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# What all displays draw on and with: axes, colours that the colour-blind can tell apart, and the scale that zooms in on 1

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#00795a", "#a5558c", "#5a6675"
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D"},
    {"color": GREY, "linestyle": (0, (5, 1, 1, 1)), "marker": "v"},
)


_NARROW = 3.2  # inches below which axes are those of a column of a paper
SMALL = 7.5  # points of their text
_LETTER = 0.55  # width of a character as a share of its size
_MARGIN = 0.03  # inches between text and the edge of the canvas
_HANDLE = 3.5  # sizes of text that the line and the margins of an entry of a legend take


def width_of(ax: Any) -> float:
    """Width of axes in inches, as they are placed now."""
    return float(ax.get_window_extent().width) / float(ax.figure.dpi)


def made_small(ax: Any) -> bool:
    """Ticks of narrow axes are set small and close, before their room is taken; whether they are narrow."""
    if width_of(ax) >= _NARROW:
        return False
    ax.tick_params(labelsize=SMALL, pad=2)
    for axis in (ax.xaxis, ax.yaxis):
        axis.labelpad = 1
    return True


def fit_small(axes: Sequence[Any]) -> None:
    """Make what was drawn on narrow axes fit a small figure: text small, on as many lines as its room needs.

    A figure that nothing lays out is laid out once if some text would leave its canvas.
    """
    from matplotlib.text import Text

    figure, (wide, high) = axes[0].figure, _room(axes[0])
    for ax in axes:
        ax.tick_params(labelsize=SMALL, pad=2)
        for text in ax.findobj(Text):
            text.set_size(min(text.get_size(), SMALL))
        for axis, room in ((ax.yaxis, 0.45 * wide), (ax.xaxis, 0.45 * high)):
            _break_ticks(axis, room)
        _break(ax.yaxis.label, 0.75 * high)
        beside = ax.yaxis.get_tightbbox()
        left = 0.95 * wide - (0.0 if beside is None else beside.width / figure.dpi)
        for words in (ax.xaxis.label, ax.title, ax._left_title, ax._right_title):
            _break(words, left)
        legend = ax.get_legend()
        for text in [] if legend is None else legend.get_texts():
            _break(text, left - _HANDLE * SMALL / 72)
    _keep_on_canvas(figure, axes)


def _room(ax: Any) -> tuple[float, float]:
    """Width and height in inches of the part of the figure that axes of a grid can use, with what is written around them."""
    wide, high = ax.figure.get_size_inches()
    place = ax.get_subplotspec()
    if place is not None:
        grid = place.get_topmost_subplotspec()
        rows, columns, *_ = grid.get_geometry()
        wide, high = wide * len(grid.colspan) / columns, high * len(grid.rowspan) / rows
    return float(wide), float(high)


def _break(text: Any, inches: float) -> None:
    if text.get_text():
        text.set_text(fitted(text.get_text(), inches, text.get_size()))


def _break_ticks(axis: Any, inches: float) -> None:
    """Long names at the ticks on lines of so many inches; slanted ones stay as they are."""
    from matplotlib.ticker import FixedLocator

    labels = axis.get_ticklabels()
    names = [label.get_text() for label in labels]
    broken = [fitted(name, inches, SMALL) for name in names]
    slanted = any(label.get_rotation() % 90 for label in labels)
    if isinstance(axis.get_major_locator(), FixedLocator) and broken != names and not slanted:
        axis.set_ticks(axis.get_ticklocs(), broken, parse_math=False, fontsize=SMALL)


def _keep_on_canvas(figure: Any, axes: Sequence[Any]) -> None:
    from matplotlib.layout_engine import PlaceHolderLayoutEngine
    from matplotlib.transforms import Bbox

    if not isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine | None):
        return
    covered = Bbox.union([ax.get_tightbbox() for ax in axes])
    canvas = figure.bbox.padded(-_MARGIN * figure.dpi)
    if Bbox.union([covered, canvas]).bounds != canvas.bounds:
        figure.tight_layout(pad=0.4)


def legend_above(ax: Any, most: int) -> None:
    """A legend over the axes, with as many columns as its longest entry allows, at most `most`."""
    labels = ax.get_legend_handles_labels()[1]
    inches = width_of(ax)
    points = SMALL if inches < _NARROW else 10.0
    entry = points / 72 * (_LETTER * max(map(len, labels)) + _HANDLE)
    columns = max(1, min(most, len(labels), int(inches / entry)))
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, fontsize=points)


def name_points(ax: Any, names: Sequence[str], across: Sequence[float], up: Sequence[float]) -> None:
    """Names beside dots: to the right, or where the axes end or another name stands to the left, or not at all."""
    points = SMALL if width_of(ax) < _NARROW else 9.0
    scale = ax.figure.dpi / 72
    taken: list[tuple[float, float, float, float]] = []
    frame = ax.get_window_extent()
    ax.get_xlim(), ax.get_ylim()  # limits that are not settled yet are settled when they are asked for
    for name, a, b in zip(names, across, up, strict=True):
        x, y = ax.transData.transform((a, b))
        length = _LETTER * points * len(str(name)) * scale
        for side in (1, -1):
            left = x + 5 * scale if side > 0 else x - 5 * scale - length
            box = (left, y + 2 * scale, left + length, y + (2 + points) * scale)
            free = all(box[2] < t[0] or t[2] < box[0] or box[3] < t[1] or t[3] < box[1] for t in taken)
            if free and frame.x0 <= box[0] and box[2] <= frame.x1:
                taken.append(box)
                ends = {"ha": "left" if side > 0 else "right", "va": "bottom", "textcoords": "offset points"}
                ax.annotate(name, (a, b), (5 * side, 2), fontsize=points, parse_math=False, color="black", **ends)
                break


def below(ax: Any, height: float, gap: float = 0.08) -> Any:
    """Axes under the given ones, with the same scale to the right; sizes are shares of their height.

    Their room is taken from the place of the axes given, so that both stay in the figure, whatever lays it out.
    """
    ax.tick_params(labelbottom=False)
    place = ax.get_subplotspec()
    if place is None:
        box, whole = ax.get_position(), 1 + height + gap
        ax.set_position((box.x0, box.y0 + box.height * (height + gap) / whole, box.width, box.height / whole))
        under = ax.figure.add_axes((box.x0, box.y0, box.width, box.height * height / whole))
    else:
        parts = place.subgridspec(2, 1, height_ratios=(1, height), hspace=gap)
        ax.set_subplotspec(parts[0])
        under = ax.figure.add_subplot(parts[1])
    made_small(under)
    return under


def fitted(words: str, inches: float, points: float) -> str:
    """Words on as many lines as the width needs; lines there are stay lines, with what they are indented by."""
    most = max(12, int(inches * 72 / (_LETTER * points)))
    words = words.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return "\n".join(
        fill(line, most, subsequent_indent=" " * (len(line) - len(line.lstrip()))) for line in words.split("\n")
    )


def new_axes(ax: Any, *, size: tuple[float, float] = (6.0, 5.0)) -> tuple[Any, Any]:
    """The figure and axes to draw on: those given, or new ones."""
    pyplot = extra("matplotlib.pyplot")
    if isinstance(ax, pyplot.Axes):
        return ax.figure, ax
    if ax is not None:
        raise InputError(f"ax must be axes of matplotlib, not {validation.shown(ax)}; plt.subplots() makes some")
    return pyplot.subplots(figsize=size, layout="constrained")


def fitted_limits(profile: tc.profile.Profile, coverage: float = 0.99) -> tuple[float, float]:
    """Return limits of an axis of probabilities that fit the scores: 0 and 1 unless nearly all of them lie in a part of it.

    >>> import numpy as np, truecal as tc
    >>> fitted_limits(tc.profile.Profile.from_arrays(np.linspace(0.01, 0.3, 500), np.zeros(500)))
    (0.0, 0.32)
    """
    scores = np.asarray(profile.scores[0], np.float64)
    weights = np.ones(len(scores)) if profile.weights is None else profile.weights[0]
    mass = np.cumsum(weights) / np.sum(weights)
    tail = (1 - coverage) / 2
    ends = np.searchsorted(mass, [tail, 1 - tail])
    low, high = (float(scores[min(end, len(scores) - 1)]) for end in ends)
    span = high - low
    if span <= 0 or span > 0.6:
        return 0.0, 1.0
    step = 10.0 ** np.floor(np.log10(span)) / 5
    low = 0.0 if low < 0.5 * span else np.floor((low - 0.05 * span) / step) * step
    high = 1.0 if 1 - high < 0.5 * span else np.ceil((high + 0.05 * span) / step) * step
    return round(float(max(low, 0.0)), 10), round(float(min(high, 1.0)), 10)


def zoomed(values: ArrayLike, floor: float) -> Float64s:
    """Distance from 1, at least `floor`: what a zoomed axis shows on a logarithmic scale."""
    return np.maximum(1 - np.asarray(values, np.float64), floor)


def zoom_axis(ax: Any, which: str, floor: float) -> None:
    """Turn an axis of distances from 1 into one of probabilities that spreads out towards 1: 0, 0.9, 0.99, ..."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    decades = round(-np.log10(floor))
    getattr(ax, f"set_{which}scale")("log")
    getattr(ax, f"set_{which}lim")(1.0, floor)
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(FixedLocator([10.0**-k for k in range(decades + 1)]))
    axis.set_major_formatter(FuncFormatter(lambda gap, _: f"{1 - gap:.{max(0, round(-np.log10(gap)))}f}"))
    axis.set_minor_locator(NullLocator())


def zoom_floor(n: float) -> float:
    """The smallest distance from 1 worth showing for n predictions, a power of ten."""
    return float(max(1e-6, 10.0 ** np.floor(np.log10(0.5 / max(n, 1.0)))))


# ----------------------------------------------------------------------------------------------------
# What a display is: computed numbers in, `plot(ax=)` draws them, `frame()` returns them

Numbers = Any  # whatever holds columns: see Frame.of


class Display(ABC):
    """A picture of the rows of a frame; after `plot`, `figure_` and `ax_` are what it was drawn on.

    The constructor takes numbers that were computed before (any mapping of columns); a classmethod `from_...` computes them.
    """

    def __init__(self, numbers: Numbers, *needed: str) -> None:
        self._frame = Frame.of(numbers)
        if not len(self._frame):
            raise InputError("there is nothing to draw: the columns are empty")
        missing = [name for name in needed if name not in self._frame]
        if missing:
            raise InputError(
                f"the numbers to draw have no column {missing[0]!r}; they have {', '.join(self._frame.columns)}"
            )
        self.figure_: Any = None
        self.ax_: Any = None
        self.narrow_ = False

    def frame(self) -> Frame:
        """The numbers of the picture, one row per thing drawn."""
        return self._frame

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""

    def _open(self, ax: Any, *, size: tuple[float, float] = (6.0, 5.0)) -> Any:
        """The axes to draw on, kept with their figure."""
        self.figure_, self.ax_ = new_axes(ax, size=size)
        self.narrow_ = made_small(self.ax_)
        return self.ax_

    def _done(self, *more: Any) -> Self:
        """What was drawn, made to fit where the axes are narrow; `more` are the other axes it was drawn on."""
        if self.narrow_:
            fit_small([self.ax_, *more])
        return self


def columns(frame: Frame, *names: str) -> list[list[Any]]:
    """Columns as lists of plain values."""
    return [frame[name].tolist() for name in names]
