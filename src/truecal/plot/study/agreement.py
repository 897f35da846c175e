"""How far estimators agree in ranking models."""

from typing import Any

import numpy as np

from truecal.plot.display import Numbers, columns
from truecal.plot.study.families import ConditionDisplay


class AgreementDisplay(ConditionDisplay):
    """A heat map of Kendall's tau between the rankings by every two metrics; the number is written in each cell.

    `from_result` draws one condition of :func:`truecal.study.rank_agreement`.

    >>> display = AgreementDisplay({"metric_a": ["x"], "metric_b": ["y"], "tau": [0.5]})
    >>> display.table().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "metric_a", "metric_b", "tau")

    def names(self) -> list[str]:
        """The metrics, in order."""
        first, second = columns(self._frame, "metric_a", "metric_b")
        return sorted({*first, *second})

    def table(self) -> np.ndarray:
        """tau as a symmetric matrix in the order of `names()`; NaN where a pair is missing or has no tau."""
        names = self.names()
        matrix = np.full((len(names), len(names)), np.nan)
        np.fill_diagonal(matrix, 1.0)
        for a, b, tau in zip(*columns(self._frame, "metric_a", "metric_b", "tau"), strict=True):
            i, j = names.index(a), names.index(b)
            matrix[i, j] = matrix[j, i] = np.nan if tau is None else tau
        return matrix

    def plot(self, ax: Any = None) -> "AgreementDisplay":
        """Draw on `ax`, or on a new figure."""
        matrix, names = self.table(), self.names()
        side = 2.5 + 0.5 * len(names)
        self._open(ax, size=(side + 1, side))
        image = self.ax_.imshow(matrix, cmap="cividis", vmin=-1, vmax=1)
        if len(names) <= 20:
            for i, j in np.argwhere(~np.isnan(matrix)):
                shade = "black" if matrix[i, j] > 0.2 else "white"
                self.ax_.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize="small", color=shade)
        self.ax_.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
        self.ax_.set_yticks(range(len(names)), names, parse_math=False)
        bar = self.figure_.colorbar(image, ax=self.ax_, label="Kendall's tau")
        return self._done(bar.ax)
