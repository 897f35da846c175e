"""One small reliability diagram per class."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.plot.canvas import BLUE, GREY, new_axes, width_of
from truecal.plot.display import Display, Numbers

_LONGEST, _LONGEST_NARROW = 24, 12  # characters of a class name that fit above a small diagram
_WIDE = 4.0  # inches in which four diagrams stand side by side


class ClassWiseDisplay(Display):
    """Small multiples: the calibration of every class, those with the largest errors first.

    `frame()` has one row per class and bin: class, score, outcome, low, high, count; `errors` the debiased error of each class.
    After `plot`, `axes_` are the small diagrams.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], 300)
    >>> display = ClassWiseDisplay.from_predictions(rng.integers(0, 3, 300), probs, bins=4, plot=False)
    >>> sorted(display.errors)
    ['0', '1', '2']
    """

    def __init__(self, numbers: Numbers, errors: Mapping[str, float]) -> None:
        if not errors:
            raise InputError("there are no classes to draw")
        super().__init__(numbers, "class", "score", "outcome", "low", "high")
        self.errors = dict(errors)
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
        ax: Any = None,
    ) -> Self:
        """Compute and draw the `most` classes with the largest errors, in bins of equal mass."""
        options.level(level)
        preds = tc.Predictions.from_probs(y_prob, y_true, weights=sample_weight, classes=classes)
        profiles = [
            tc.OneClass(k if preds.classes is None else preds.classes[k])(preds) for k in range(preds.class_count)
        ]
        judge = tc.DebiasedECE(correction="exact")
        errors = [float(judge(profile).value) for profile in profiles]
        options.whole(most, "most")
        worst = sorted(range(len(errors)), key=lambda k: (-errors[k], k))[:most]
        points: dict[str, list[Any]] = {name: [] for name in ("class", "score", "outcome", "low", "high", "count")}
        for k in worst:
            held = tc.BinnedECE(bins=bins, scheme="mass")(profiles[k]).bins
            assert held is not None
            low, high = held.interval(level)
            columns = (held.mean_score, held.mean_outcome, low, high, held.counts)
            points["class"] += [preds.class_name(k)] * len(low)
            for column, values in zip(("score", "outcome", "low", "high", "count"), columns, strict=True):
                points[column] += values.tolist()
        made = cls(points, {preds.class_name(k): errors[k] for k in worst})
        return made.plot(ax) if plot else made

    def plot(self, ax: Any = None) -> Self:
        """Draw in the place of `ax`, or on a new figure."""
        names = list(self.errors)
        across = min(4 if ax is None or width_of(new_axes(ax)[1]) > _WIDE else 3, len(names))
        down = -(-len(names) // across)
        place = self._open(ax, size=(2.6 * across, 2.6 * down))
        place.set_axis_off()
        spec = place.get_subplotspec()
        if spec is None:
            boxes = [((i + 0.15) / across, 1 - (j + 0.85) / down) for j in range(down) for i in range(across)]
            small = [place.inset_axes((left, low, 0.75 / across, 0.65 / down)) for left, low in boxes]
        else:
            # room for numbers and titles, where no layout makes it
            gaps = {} if self.figure_.get_layout_engine() else {"hspace": 0.8, "wspace": 0.4}
            parts = spec.subgridspec(down, across, **gaps)
            small = [self.figure_.add_subplot(parts[j, i]) for j in range(down) for i in range(across)]
        self.axes_ = np.array(small, object).reshape(down, across)
        for diagram, name in zip(small, names, strict=False):
            self._draw(diagram, name)
        self.axes_[-1, (across - 1) // 2].set_xlabel("Probability of the class")
        self.axes_[(down - 1) // 2, 0].set_ylabel("Frequency of the class")
        for unused in small[len(names) :]:
            unused.set_axis_off()
        return self._done(*small)

    def _draw(self, axes: Any, name: str) -> None:
        rows = self._frame["class"] == name
        score, outcome, low, high = (self._frame[column][rows] for column in ("score", "outcome", "low", "high"))
        largest = min(1.0, 1.08 * float(max(score.max(), high.max())))
        axes.plot([0, largest], [0, largest], color=GREY, linestyle=(0, (4, 4)), linewidth=1)
        axes.vlines(score, low, high, color=BLUE, linewidth=1)
        axes.plot(score, outcome, color=BLUE, marker="o", markersize=3, linewidth=0)
        axes.set(xlim=(0, largest), ylim=(0, largest))
        axes.locator_params(nbins=3)
        axes.tick_params(labelsize="x-small")
        longest = _LONGEST if not self.narrow_ else _LONGEST_NARROW
        shown = name if len(name) <= longest else f"{name[: longest - 1]}…"
        words = f"{shown}\n{self.errors[name]:.3f}" if self.narrow_ else f"{shown}: {self.errors[name]:.3f}"
        axes.set_title(words, fontsize="small", parse_math=False)
