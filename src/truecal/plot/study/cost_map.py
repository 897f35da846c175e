"""The relative cost of two models that may abstain."""

from typing import Any

import numpy as np

from truecal.plot.canvas import GREY
from truecal.plot.display import Display, Numbers, columns
from truecal.plot.study.families import Result


class CostMapDisplay(Display):
    """Cost of model a relative to b over cost ratio (across) and abstention rate (up): blue where a is cheaper, orange where b is.

    Hatched where the interval of the difference holds 0: there the rows do not tell which is cheaper.

    >>> frame = {"rate": [0.0, 0.5], "cost_ratio": [0.1, 0.1], "relative": [-0.5, 0.0], "supported": [True, False]}
    >>> CostMapDisplay(frame).table().tolist()
    [[-0.5], [0.0]]
    """

    def __init__(self, numbers: Numbers, *, names: tuple[str, str] = ("a", "b")) -> None:
        super().__init__(numbers, "rate", "cost_ratio", "relative", "supported")
        self.names = names

    @classmethod
    def from_result(cls, result: Result, *, names: tuple[str, str] = ("a", "b"), ax: Any = None) -> "CostMapDisplay":
        """Draw what :func:`truecal.selective.cost_map` found."""
        return cls(result.frame(), names=names).plot(ax)

    def table(self, name: str = "relative") -> np.ndarray:
        """A column as a matrix: a row per rate, a column per cost ratio."""
        rate, ratio, value = columns(self._frame, "rate", "cost_ratio", name)
        down, across = sorted(set(rate)), sorted(set(ratio))
        matrix = np.full((len(down), len(across)), np.nan)
        for y, x, v in zip(rate, ratio, value, strict=True):
            matrix[down.index(y), across.index(x)] = v
        return matrix

    def plot(self, ax: Any = None) -> "CostMapDisplay":
        """Draw on `ax`, or on a new figure."""
        from matplotlib.colors import LinearSegmentedColormap

        matrix, doubtful = self.table(), self.table("supported") != 1
        rates, ratios = (sorted(set(column)) for column in columns(self._frame, "rate", "cost_ratio"))
        self._open(ax)
        colours = LinearSegmentedColormap.from_list("cost", ["#0072b2", "#ffffff", "#d55e00"])
        finite = np.abs(matrix[np.isfinite(matrix)])
        reach = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        x, y = _edges(ratios), _edges(rates)
        image = self.ax_.pcolormesh(x, y, np.clip(matrix, -reach, reach), cmap=colours, vmin=-reach, vmax=reach)
        for low, high, open_ in zip(y[:-1], y[1:], doubtful.any(axis=1), strict=True):
            if open_:
                self.ax_.axhspan(low, high, facecolor="none", edgecolor=GREY, hatch="///", linewidth=0)
        first, second = self.names
        self.ax_.set(xlabel="Cost of abstaining / cost of an error", ylabel="Share of cases not answered")
        self.ax_.set_title(f"blue: {first} is cheaper, orange: {second}", fontsize="medium", parse_math=False)
        bar = self.figure_.colorbar(image, ax=self.ax_, label="Relative difference of cost")
        return self._done(bar.ax)


def _edges(values: list[float]) -> np.ndarray:
    """Borders of cells around sorted values, halfway between neighbours."""
    if len(values) == 1:
        return np.array([values[0] - 0.025, values[0] + 0.025])
    middle = (np.array(values[1:]) + np.array(values[:-1])) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
