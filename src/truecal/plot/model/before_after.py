"""A model before and after recalibration."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.lens import Lens, default_lens
from truecal.plot.canvas import GREY, SERIES
from truecal.plot.display import Display, Numbers


class BeforeAfterDisplay(Display):
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
        self, numbers: Numbers, errors: Mapping[str, tuple[float, float, float]], *, outcome: str = "Frequency"
    ) -> None:
        super().__init__(numbers, "name", "score", "outcome", "low", "high")
        self.errors = dict(errors)
        self.outcome = outcome

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
    ) -> Self:
        """Compute and draw; `y_probs` maps names ("before", "after", ...) to probabilities."""
        options.level(level)
        if not 1 <= len(y_probs) <= len(SERIES):
            raise InputError(
                f"one to {len(SERIES)} sets of predictions can be told apart in one diagram, not {len(y_probs)}"
            )
        points: dict[str, list[Any]] = {name: [] for name in ("name", "score", "outcome", "low", "high")}
        errors = {}
        outcome = ""
        for name, probs in y_probs.items():
            preds = tc.Predictions.from_probs(probs, y_true, weights=sample_weight, classes=classes)
            judged = default_lens(preds) if lens is None else lens
            outcome = judged.outcome_name.capitalize()
            profile = judged(preds)
            if profile.batch != 1:
                raise InputError(
                    f"one curve is drawn per name, and {judged!r} has several; choose OneClass or TopLabel"
                )
            estimate = tc.RankSeries(level=level)(profile)
            assert estimate.curve is not None
            assert estimate.interval is not None
            low, high = tc.band(profile, level=level).at(estimate.curve.score)
            columns = (estimate.curve.score, estimate.curve.outcome, low, high)
            points["name"] += [name] * len(low)
            for column, values in zip(("score", "outcome", "low", "high"), columns, strict=True):
                points[column] += values.tolist()
            errors[name] = (float(estimate.value), float(estimate.interval.low), float(estimate.interval.high))
        made = cls(points, errors, outcome=outcome)
        return made.plot(ax) if plot else made

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        axes = self._open(ax)
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 4)), linewidth=1)
        for style, (name, (value, low, high)) in zip(SERIES, self.errors.items(), strict=False):
            rows = self._frame["name"] == name
            x, y, bottom, top = (self._frame[column][rows] for column in ("score", "outcome", "low", "high"))
            axes.fill_between(x, bottom, top, color=style["color"], alpha=0.1, linewidth=0)
            label = f"{name}: {value:.3f} [{low:.3f}, {high:.3f}]"
            axes.plot(x, y, color=style["color"], linestyle=style["linestyle"], linewidth=2, label=label)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="Confidence", ylabel=self.outcome)
        axes.legend(loc="upper left", frameon=False)
        return self._done()
