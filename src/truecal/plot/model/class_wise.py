"""One small reliability diagram per class."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import InputError
from truecal.estimate import BinnedECE, DebiasedECE
from truecal.lens import OneClass
from truecal.plot.canvas import BLUE, GREY, Frame, new_axes
from truecal.predictions import Predictions


class ClassWiseDisplay:
    """Small multiples: the calibration of every class, those with the largest errors first.

    `frame()` has one row per class and bin: class, score, outcome, low, high, count; `errors` the debiased error of each class.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], 300)
    >>> display = ClassWiseDisplay.from_predictions(rng.integers(0, 3, 300), probs, bins=4, plot=False)
    >>> sorted(display.errors)
    ['0', '1', '2']
    """

    def __init__(self, frame: Frame, errors: dict[str, float]) -> None:
        self._frame = frame
        self.errors = errors
        self.figure_: Any = None
        self.axes_: Any = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        most: int = 12,
        bins: int = 10,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        plot: bool = True,
        figure: Any = None,
    ) -> "ClassWiseDisplay":
        """Compute and draw the `most` classes with the largest errors, in bins of equal mass."""
        preds = Predictions.from_probs(y_prob, y_true, weights=sample_weight, classes=classes)
        judge = DebiasedECE(correction="exact")
        errors = {
            k: float(judge(OneClass(k if preds.classes is None else preds.classes[k])(preds)).value)
            for k in range(preds.class_count)
        }
        worst = sorted(errors, key=lambda k: (-errors[k], k))[:most]
        frame: Frame = {name: [] for name in ("class", "score", "outcome", "low", "high", "count")}
        for k in worst:
            name = k if preds.classes is None else preds.classes[k]
            found = BinnedECE(bins=bins, scheme="mass")(OneClass(name)(preds)).bins
            assert found is not None
            low, high = found.interval(level)
            frame["class"] += [preds.class_name(k)] * len(low)
            for column, values in zip(
                ("score", "outcome", "low", "high", "count"),
                (found.mean_score, found.mean_outcome, low, high, found.counts),
                strict=True,
            ):
                frame[column] += values.tolist()
        made = cls(frame, {preds.class_name(k): errors[k] for k in worst})
        return made.plot(figure) if plot else made

    def frame(self) -> Frame:
        """One row per class and bin, as columns."""
        return self._frame

    def plot(self, figure: Any = None) -> "ClassWiseDisplay":
        """Draw on `figure`, or on a new one."""
        names = list(self.errors)
        if not names:
            raise InputError("there are no classes to draw")
        across = min(4, len(names))
        down = -(-len(names) // across)
        if figure is None:
            figure, ax = new_axes(None, size=(2.6 * across, 2.6 * down))
            ax.remove()
        self.figure_ = figure
        self.axes_ = figure.subplots(down, across, squeeze=False)
        table = {column: np.asarray(values) for column, values in self._frame.items()}
        for ax, name in zip(self.axes_.flat, names, strict=False):
            rows = table["class"] == name
            largest = min(1.0, 1.08 * float(max(table["score"][rows].max(), table["high"][rows].max())))
            ax.plot([0, largest], [0, largest], color=GREY, linestyle=(0, (4, 4)), linewidth=1)
            ax.vlines(table["score"][rows], table["low"][rows], table["high"][rows], color=BLUE, linewidth=1)
            ax.plot(table["score"][rows], table["outcome"][rows], color=BLUE, marker="o", markersize=3, linewidth=0)
            ax.set(xlim=(0, largest), ylim=(0, largest))
            ax.locator_params(nbins=3)
            ax.tick_params(labelsize="x-small")
            shown = name if len(name) <= 24 else f"{name[:23]}…"
            ax.set_title(f"{shown}: {self.errors[name]:.3f}", fontsize="small", parse_math=False)
        for ax in list(self.axes_.flat)[len(names) :]:
            ax.set_axis_off()
        figure.supxlabel("Probability of the class", fontsize="medium")
        figure.supylabel("How often it was the label", fontsize="medium")
        return self
