"""A model before and after recalibration."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from truecal.errors import InputError
from truecal.estimate import RankSeries
from truecal.lens import Lens, OneClass, TopLabel
from truecal.plot.canvas import GREY, SERIES, Frame, new_axes
from truecal.predictions import Predictions
from truecal.uncertainty.band import band


class BeforeAfterDisplay:
    """Smooth calibration curves of several sets of predictions of the same labels, in one diagram.

    `frame()` has one row per curve and point: name, score, outcome, low, high. `errors` holds value and interval of each.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> display = BeforeAfterDisplay.from_predictions(y, {"before": p, "after": p**2}, plot=False)
    >>> display.errors["before"][0] > display.errors["after"][0]
    True
    """

    def __init__(
        self, frame: Frame, errors: dict[str, tuple[float, float, float]], *, outcome: str = "Outcome rate"
    ) -> None:
        self._frame = frame
        self.errors = errors
        self.outcome = outcome
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_probs: Mapping[str, ArrayLike],
        *,
        lens: Lens | None = None,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        plot: bool = True,
        ax: Any = None,
    ) -> "BeforeAfterDisplay":
        """Compute and draw; `y_probs` maps names ("before", "after", ...) to probabilities."""
        if not 1 <= len(y_probs) <= len(SERIES):
            raise InputError(
                f"one to {len(SERIES)} sets of predictions can be told apart in one diagram, not {len(y_probs)}"
            )
        frame: Frame = {name: [] for name in ("name", "score", "outcome", "low", "high")}
        errors = {}
        outcome = "Outcome rate"
        for name, probs in y_probs.items():
            preds = Predictions.from_probs(probs, y_true, weights=sample_weight, classes=classes)
            judged = lens or (OneClass() if preds.binary else TopLabel())
            outcome = "Accuracy" if isinstance(judged, TopLabel) else outcome
            profile = judged(preds)
            estimate = RankSeries(level=level)(profile)
            assert estimate.curve is not None
            assert estimate.interval is not None
            low, high = band(profile, level=level).at(estimate.curve.score)
            frame["name"] += [name] * len(low)
            frame["score"] += estimate.curve.score.tolist()
            frame["outcome"] += estimate.curve.outcome.tolist()
            frame["low"] += low.tolist()
            frame["high"] += high.tolist()
            errors[name] = (float(estimate.value), float(estimate.interval.low), float(estimate.interval.high))
        made = cls(frame, errors, outcome=outcome)
        return made.plot(ax) if plot else made

    def frame(self) -> Frame:
        """One row per curve and point, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "BeforeAfterDisplay":
        """Draw on `ax`, or on a new figure."""
        self.figure_, self.ax_ = new_axes(ax)
        self.ax_.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 4)), linewidth=1)
        for style, (name, (value, low, high)) in zip(SERIES, self.errors.items(), strict=False):
            rows = [i for i, owner in enumerate(self._frame["name"]) if owner == name]
            x, y, bottom, top = ([self._frame[c][i] for i in rows] for c in ("score", "outcome", "low", "high"))
            self.ax_.fill_between(x, bottom, top, color=style["color"], alpha=0.1, linewidth=0)
            label = f"{name}: {value:.3f} [{low:.3f}, {high:.3f}]"
            self.ax_.plot(x, y, color=style["color"], linestyle=style["linestyle"], linewidth=2, label=label)
        self.ax_.set(xlim=(0, 1), ylim=(0, 1), xlabel="Confidence", ylabel=self.outcome)
        self.ax_.legend(loc="upper left", frameon=False)
        return self
