"""What recalibration would gain: the score of every map, split into calibration and refinement."""

from typing import Any, Protocol, Self

import numpy as np

from truecal.frame import Frame
from truecal.plot.canvas import BLUE, GREY, ORANGE, legend_above
from truecal.plot.display import Display, Numbers, columns


class Evaluated(Protocol):
    """What :func:`truecal.evaluate` found."""

    @property
    def score(self) -> str: ...
    @property
    def recommended(self) -> str: ...
    def frame(self) -> Frame: ...


class EvaluationDisplay(Display):
    """One bar per recalibrator: what no map removes, and beyond it what the best map still would, with its interval.

    >>> numbers = {"recalibrator": ["uncalibrated", "beta"], "log_loss_refinement": [0.5, 0.5]}
    >>> numbers |= {"log_loss_calibration": [0.1, 0.0], "log_loss_calibration_low": [0.08, 0.0]}
    >>> numbers |= {"log_loss_calibration_high": [0.12, 0.0]}
    >>> EvaluationDisplay(numbers, recommended="beta").frame()["log_loss_calibration"]
    array([0.1, 0. ])
    """

    def __init__(self, numbers: Numbers, *, score: str = "log loss", recommended: str | None = None) -> None:
        self.stem = score.replace(" ", "_")
        parts = [f"{self.stem}_{part}" for part in ("refinement", "calibration", "calibration_low", "calibration_high")]
        super().__init__(numbers, "recalibrator", *parts)
        self.parts, self.score, self.recommended = parts, score, recommended

    @classmethod
    def from_evaluation(cls, evaluation: Evaluated, *, plot: bool = True, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.evaluate`, by the score that it was decided by."""
        display = cls(evaluation.frame(), score=evaluation.score, recommended=evaluation.recommended)
        return display.plot(ax) if plot else display

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure. Infinite scores are named and have no bar."""
        names, *numbers = columns(self._frame, "recalibrator", *self.parts)
        refinement, calibration, low, high = (np.array(values, np.float64) for values in numbers)
        axes = self._open(ax)
        place = np.arange(len(names))[::-1]
        finite = np.isfinite(calibration)
        shown = np.where(finite, calibration, 0.0)
        axes.barh(place, refinement, color=GREY, alpha=0.35, label="refinement: no map removes it")
        axes.barh(place, shown, left=refinement, color=ORANGE, label="calibration: the best map removes it")
        ends = np.isfinite(low) & np.isfinite(high)
        errors = np.stack([np.where(ends, shown - low, 0.0), np.where(ends, high - shown, 0.0)])
        axes.errorbar(refinement + shown, place, xerr=np.maximum(errors, 0.0), fmt="none", ecolor=BLUE, capsize=3)
        for at, base, whole in zip(place, refinement, finite, strict=True):
            if not whole:
                axes.text(base, at, " infinite", va="center")
        marked = [f"{name} (recommended)" if name == self.recommended else str(name) for name in names]
        axes.set_yticks(place, marked, parse_math=False)
        # the part in question is small beside the whole: start the axis below it
        reach = refinement + shown + np.where(ends, np.maximum(high - shown, 0.0), 0.0)
        least = float(refinement.min())
        axes.set_xlim(left=max(0.0, least - 1.5 * float((reach - least).max() or least)))
        axes.set(xlabel=f"{self.score.capitalize()} on held-out folds")
        legend_above(axes, 1)
        return self._done()
