"""Displays of numbers over two settings: relative costs, agreement of rankings."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

import truecal as tc
from truecal.plot.display import BLUE, GREY, ORANGE, Display, Numbers
from truecal.plot.study import ConditionDisplay
from truecal.types import Float64s

_DARK = 1.2  # sum of red, green and blue below which text on a cell is white


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
        rates, rows = np.unique(self._frame["rate"], return_inverse=True)
        ratios, columns = np.unique(self._frame["cost_ratio"], return_inverse=True)
        matrix = np.full((len(rates), len(ratios)), np.nan)
        matrix[rows, columns] = self._frame[name].astype(float)
        return matrix

    def _draw(self, ax: Any) -> list[Any]:
        from matplotlib.colors import LinearSegmentedColormap

        x, y = (_cell_edges(np.unique(self._frame[name])) for name in ("cost_ratio", "rate"))
        matrix = self.table()
        limit = float(np.abs(matrix[np.isfinite(matrix)]).max(initial=0.0)) or 1.0
        colours = LinearSegmentedColormap.from_list("diverging", [BLUE, "#ffffff", ORANGE])
        image = ax.pcolormesh(x, y, np.clip(matrix, -limit, limit), cmap=colours, vmin=-limit, vmax=limit)
        for row in np.flatnonzero((self.table("supported") != 1).any(axis=1)):
            ax.axhspan(y[row], y[row + 1], facecolor="none", edgecolor=GREY, hatch="///", alpha=0.5, linewidth=0)
        ax.set(xlabel="Cost of abstaining / cost of an error", ylabel="Share of cases not answered")
        words = f"blue: {self.names[0]} is cheaper,\norange: {self.names[1]} is"
        ax.set_title(words, fontsize="medium", parse_math=False)
        return [self.figure_.colorbar(image, ax=ax, label="Relative difference of cost").ax]


def _cell_edges(values: Float64s) -> Float64s:
    """Return the n + 1 edges of cells around n rising values, halfway between neighbours; 0.025 to each side of a single one."""
    if len(values) == 1:
        return np.array([values[0] - 0.025, values[0] + 0.025])
    middle = (values[1:] + values[:-1]) / 2
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
        """Return the names of all metrics in alphabetical order."""
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
        image = ax.imshow(matrix, cmap="cividis", vmin=-1, vmax=1)
        for i, j in np.argwhere(~np.isnan(matrix)):
            dark = sum(image.cmap(image.norm(matrix[i, j]))[:3]) < _DARK
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": "white" if dark else "black"}
            ax.text(j, i, f"{matrix[i, j]:.2f}", **style)
        ax.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        return [self.figure_.colorbar(image, ax=ax, label="Kendall's tau").ax]
