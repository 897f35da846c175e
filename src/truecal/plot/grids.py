"""Displays of numbers over two settings: the bias of an estimator, relative costs, agreement of rankings."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

import truecal as tc
from truecal.plot.display import BLUE, GREY, ORANGE, Display, Numbers
from truecal.plot.study import ConditionDisplay
from truecal.table import Frame
from truecal.types import Float64s

_MAX_CELLS = 400  # in which numbers are written
_DARK = 1.2  # sum of red, green and blue below which text on a cell is white


def _diverging() -> Any:
    """Return a map of colours from blue (negative) over white to orange (positive)."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("diverging", [BLUE, "#ffffff", ORANGE])


def _ordered(values: list[Any]) -> list[Any]:
    """Return distinct values, numbers in rising order."""
    distinct = list(dict.fromkeys(values))
    return distinct if any(isinstance(value, str) for value in distinct) else sorted(distinct)


def _pivot(frame: Frame, x: str, y: str, value: str) -> tuple[list[Any], list[Any], Float64s]:
    """Return the values of x, those of y, and a matrix with a row per y and a column per x, NaN where there is none."""
    rows = list(zip(*(frame[name].tolist() for name in (x, y, value)), strict=True))
    across, down = (_ordered([row[i] for row in rows]) for i in (0, 1))
    matrix = np.full((len(down), len(across)), np.nan)
    for column, line, number in rows:
        matrix[down.index(line), across.index(column)] = np.nan if number is None else number
    return across, down, matrix


def _draw_matrix(ax: Any, matrix: Float64s, template: str, across: list[Any], down: list[Any], **colours: Any) -> Any:
    """Draw a cell per number, with the number in it, and names at the ticks; return the image."""
    image = ax.imshow(matrix, **colours)
    if matrix.size <= _MAX_CELLS:
        for i, j in np.argwhere(~np.isnan(matrix)):
            dark = sum(image.cmap(image.norm(matrix[i, j]))[:3]) < _DARK
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": "white" if dark else "black"}
            ax.text(j, i, template.format(matrix[i, j]), **style)
    ax.set_xticks(range(len(across)), [str(tick) for tick in across], parse_math=False)
    ax.set_yticks(range(len(down)), [str(tick) for tick in down], parse_math=False)
    return image


class BiasMapDisplay(Display):
    """Draw a heat map of bias: one cell per pair of settings, with its value in percentage points.

    Blue is a negative bias, orange a positive one, white none; the sign is written, so that grey prints can be read.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        The two settings and the bias.
    x : str, default "n"
        Column of the horizontal axis.
    y : str, default "bins"
        Column of the vertical axis.
    value : str, default "bias"
        Column of the bias.

    Examples
    --------
    >>> frame = {"n": [100, 100, 200, 200], "bins": [5, 10, 5, 10], "bias": [0.03, 0.05, 0.02, 0.03]}
    >>> BiasMapDisplay(frame, x="n", y="bins").table().tolist()
    [[0.03, 0.02], [0.05, 0.03]]
    """

    def __init__(self, numbers: Numbers, *, x: str = "n", y: str = "bins", value: str = "bias") -> None:
        self.x, self.y, self.value, self.needed = x, y, value, (x, y, value)
        super().__init__(numbers)

    def table(self) -> Float64s:
        """Return the values as a matrix: a row per value of y, a column per value of x, NaN where a pair is missing."""
        return _pivot(self._frame, self.x, self.y, self.value)[2]

    def _size(self) -> tuple[float, float]:
        down, across = self.table().shape
        return 2 + 0.7 * across, 1.5 + 0.45 * down

    def _draw(self, ax: Any) -> list[Any]:
        across, down, matrix = _pivot(self._frame, self.x, self.y, self.value)
        limit = float(np.nanmax(np.abs(matrix))) or 1.0
        colours = {"cmap": _diverging(), "vmin": -100 * limit, "vmax": 100 * limit, "aspect": "auto"}
        image = _draw_matrix(ax, 100 * matrix, "{:+.2f}", across, down, **colours)
        ax.set(xlabel=self.x, ylabel=self.y, title=f"{self.value}, percentage points")
        return [self.figure_.colorbar(image, ax=ax).ax]


class CostMapDisplay(Display):
    """Draw the cost of model a relative to b over cost ratio (across) and abstention rate (up).

    Blue where a is cheaper, orange where b is; hatched where the interval of the difference contains 0.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `rate`, `cost_ratio`, `relative`, `supported`.
    names : tuple of two str, default ("a", "b")
        Names of the models.

    Examples
    --------
    >>> frame = {"rate": [0.0, 0.5], "cost_ratio": [0.1, 0.1], "relative": [-0.5, 0.0], "supported": [True, False]}
    >>> CostMapDisplay(frame).table().tolist()
    [[-0.5], [0.0]]
    """

    needed = ("rate", "cost_ratio", "relative", "supported")

    def __init__(self, numbers: Numbers, *, names: tuple[str, str] = ("a", "b")) -> None:
        super().__init__(numbers)
        self.names = names

    @classmethod
    def from_result(cls, result: tc.study.Analysis, *, names: tuple[str, str] = ("a", "b"), ax: Any = None) -> Self:
        """Draw the result of :func:`truecal.selective.cost_map`.

        Parameters
        ----------
        result : CostMap
            The costs.
        names : tuple of two str, default ("a", "b")
            Names of the models.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : CostMapDisplay
            The display, drawn.
        """
        return cls(result.frame(), names=names).plot(ax)

    def table(self, name: str = "relative") -> Float64s:
        """Return a column as a matrix.

        Parameters
        ----------
        name : str, default "relative"
            The column.

        Returns
        -------
        matrix : ndarray of shape (rates, cost ratios)
            A row per rate, a column per cost ratio.
        """
        return _pivot(self._frame, "cost_ratio", "rate", name)[2]

    def _draw(self, ax: Any) -> list[Any]:
        ratios, rates, matrix = _pivot(self._frame, "cost_ratio", "rate", "relative")
        finite = np.abs(matrix[np.isfinite(matrix)])
        limit = float(finite.max(initial=0.0)) or 1.0
        x, y = _cell_edges(ratios), _cell_edges(rates)
        image = ax.pcolormesh(x, y, np.clip(matrix, -limit, limit), cmap=_diverging(), vmin=-limit, vmax=limit)
        for row in np.flatnonzero((self.table("supported") != 1).any(axis=1)):
            ax.axhspan(y[row], y[row + 1], facecolor="none", edgecolor=GREY, hatch="///", alpha=0.5, linewidth=0)
        ax.set(xlabel="Cost of abstaining / cost of an error", ylabel="Share of cases not answered")
        words = f"blue: {self.names[0]} is cheaper,\norange: {self.names[1]} is"
        ax.set_title(words, fontsize="medium", parse_math=False)
        return [self.figure_.colorbar(image, ax=ax, label="Relative difference of cost").ax]


def _cell_edges(values: list[float]) -> Float64s:
    """Return edges of cells around sorted values, halfway between neighbours."""
    if len(values) == 1:
        return np.array([values[0] - 0.025, values[0] + 0.025])
    middle = (np.array(values[1:]) + np.array(values[:-1])) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])


class AgreementDisplay(ConditionDisplay):
    """Draw a heat map of Kendall's tau between the rankings by every two metrics.

    `from_result` draws one condition of :func:`truecal.study.rank_agreement`.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `metric_a`, `metric_b`, `tau`.

    Examples
    --------
    >>> display = AgreementDisplay({"metric_a": ["x"], "metric_b": ["y"], "tau": [0.5]})
    >>> display.table().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    needed = ("metric_a", "metric_b", "tau")

    def names(self) -> list[str]:
        """Return the metrics, in order."""
        first, second = self._columns("metric_a", "metric_b")
        return sorted({*first, *second})

    def table(self) -> Float64s:
        """Return tau as a symmetric matrix in the order of `names()`; NaN where a pair is missing or has no tau."""
        names = self.names()
        matrix = np.where(np.eye(len(names), dtype=bool), 1.0, np.nan)
        for a, b, tau in zip(*self._columns("metric_a", "metric_b", "tau"), strict=True):
            i, j = names.index(a), names.index(b)
            matrix[i, j] = matrix[j, i] = np.nan if tau is None else tau
        return matrix

    def _size(self) -> tuple[float, float]:
        side = 2.5 + 0.5 * len(self.names())
        return side + 1, side

    def _draw(self, ax: Any) -> list[Any]:
        matrix, names = self.table(), self.names()
        image = _draw_matrix(ax, matrix, "{:.2f}", names, names, cmap="cividis", vmin=-1, vmax=1)
        ax.tick_params(axis="x", rotation=90)
        return [self.figure_.colorbar(image, ax=ax, label="Kendall's tau").ax]
