"""Errors in context: of groups of classes, among the rows of each label, or under any lenses."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import truecal as tc
from truecal.lens import Lens
from truecal.plot.canvas import BLUE, GREY
from truecal.plot.display import Display, Numbers, columns

_COLUMNS = ("name", "error", "low", "high", "if_calibrated", "n")


class ContextDisplay(Display):
    """One line per error: a dot with its interval, and a grey tick where a calibrated model with the same outputs would be.

    >>> display = ContextDisplay(
    ...     {"name": ["cats"], "error": [0.1], "low": [0.05], "high": [0.2], "if_calibrated": [0.03], "n": [400]}
    ... )
    >>> display.frame()["error"]
    array([0.1])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, *_COLUMNS)

    @classmethod
    def from_estimates(cls, estimates: Mapping[str, tc.Estimate], ax: Any = None) -> Self:
        """Draw estimates by name."""
        rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for name, estimate in estimates.items():
            interval = estimate.interval
            low, high = (None, None) if interval is None else (float(interval.low), float(interval.high))
            line = (name, float(estimate.value), low, high, estimate.chance, estimate.n)
            for column, value in zip(_COLUMNS, line, strict=True):
                rows[column].append(value)
        return cls(rows).plot(ax)

    @classmethod
    def from_labels(
        cls, preds: tc.Predictions, labels: Sequence[object] | None = None, *, lens: Lens | None = None, ax: Any = None
    ) -> Self:
        """Draw the error among the rows of each label (by default of every class)."""
        chosen = labels if labels is not None else preds.classes or range(preds.class_count)
        return cls.from_estimates(
            {str(name): tc.measure(preds, lens=lens, select=tc.by_label(name)) for name in chosen}, ax=ax
        )

    @classmethod
    def from_grouping(cls, preds: tc.Predictions, grouping: tc.Grouping, ax: Any = None) -> Self:
        """Draw the error of each group's probability, and of all groups together."""
        parts = dict(zip(grouping.names, grouping.parts(preds), strict=True))
        lenses: dict[str, Lens] = {**parts, "all groups": grouping}
        return cls.from_estimates({name: tc.measure(preds, lens=lens) for name, lens in lenses.items()}, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure as tall as the list needs."""
        names, error, low, high, chance, count = columns(self._frame, *_COLUMNS)
        axes = self._open(ax, size=(6.0, 1.2 + 0.4 * len(names)))
        for row in range(len(names)):
            if low[row] is not None:
                axes.hlines(row, low[row], high[row], color=BLUE, linewidth=1.5)
            axes.plot(error[row], row, marker="o", color=BLUE)
            if chance[row] is not None:
                axes.plot(chance[row], row, marker="|", color=GREY, markersize=14)
        ticks = [f"{name} (n = {n:,})" for name, n in zip(names, count, strict=True)]
        axes.set_yticks(range(len(names)), ticks, parse_math=False)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set(xlabel="Calibration error with interval; grey: a calibrated model")
        axes.set_xlim(left=0)
        return self._done()
