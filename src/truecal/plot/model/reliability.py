"""The reliability diagram."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import InputError
from truecal.lens import Lens, OneClass, TopLabel
from truecal.plot.canvas import BLUE, GREEN, GREY, ORANGE, Frame, new_axes, zoom_axis, zoom_floor, zoomed
from truecal.plot.model.reliability_numbers import ReliabilityNumbers, Scheme, reliability_numbers
from truecal.predictions import Predictions
from truecal.profile import Profile

Part = Literal["bins", "smooth", "isotonic", "histogram"]
_MOST_LABELS = 20  # counts are written beside so many bins at most


class ReliabilityDisplay:
    """How often predictions of each confidence come true.

    Bins with Clopper-Pearson intervals (dots grow with their counts, which are written beside them), the smooth rank-series curve
    with its simultaneous band, the isotonic (CORP) steps, and a histogram of the confidences beneath.

    Build it with :meth:`from_predictions`, :meth:`from_estimator` or :meth:`from_profile`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions(rng.random(500) < p**1.5, p, bins=5, plot=False)
    >>> display.frame()["count"]
    [96.0, 82.0, 105.0, 100.0, 117.0]
    """

    def __init__(self, numbers: ReliabilityNumbers, *, name: str = "", outcome: str = "Outcome rate") -> None:
        self.numbers = numbers
        self.name = name
        self.outcome = outcome
        self.figure_: Any = None
        self.ax_: Any = None
        self.histogram_ax_: Any = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        lens: Lens | None = None,
        bins: int = 15,
        scheme: Scheme = "width",
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        name: str = "",
        plot: bool = True,
        ax: Any = None,
        **options: Any,
    ) -> "ReliabilityDisplay":
        """Compute and draw. Labels and probabilities as in :func:`truecal.calibration_error`; `options` go to :meth:`plot`."""
        preds = Predictions.from_probs(y_prob, y_true, weights=sample_weight, classes=classes)
        if lens is None:
            lens = OneClass() if preds.binary else TopLabel()
        if lens.shares(preds) is not None:
            raise InputError("this lens looks at many classes; use ClassWiseDisplay")
        outcome = "Accuracy" if isinstance(lens, TopLabel) else "Outcome rate"
        profile = lens(preds)
        return cls.from_profile(
            profile, bins=bins, scheme=scheme, level=level, name=name, outcome=outcome, plot=plot, ax=ax, **options
        )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> "ReliabilityDisplay":
        """Compute and draw for a fitted classifier: its `predict_proba` on X against the labels y."""
        if not hasattr(estimator, "predict_proba"):
            raise InputError(f"{type(estimator).__name__} has no predict_proba; its confidence cannot be judged")
        probs = np.asarray(estimator.predict_proba(X))
        classes = list(estimator.classes_)
        options.setdefault("name", type(estimator).__name__)
        return cls.from_predictions(y, probs[:, 1] if len(classes) == 2 else probs, classes=classes, **options)

    @classmethod
    def from_profile(
        cls,
        profile: Profile,
        *,
        bins: int = 15,
        scheme: Scheme = "width",
        level: float = 0.95,
        name: str = "",
        outcome: str = "Outcome rate",
        plot: bool = True,
        ax: Any = None,
        **options: Any,
    ) -> "ReliabilityDisplay":
        """Compute and draw for the sorted scores of one dataset."""
        floor = zoom_floor(float(profile.size[0]))
        made = cls(
            reliability_numbers(profile, bins=bins, scheme=scheme, level=level, floor=floor), name=name, outcome=outcome
        )
        return made.plot(ax, **options) if plot else made

    def frame(self, part: Part = "bins") -> Frame:
        """The numbers of a part of the picture, as columns."""
        if part not in ("bins", "smooth", "isotonic", "histogram"):
            raise InputError(f"there is no part {part!r}; ask for bins, smooth, isotonic or histogram")
        found: Frame = getattr(self.numbers, part)
        return found

    def plot(
        self,
        ax: Any = None,
        *,
        bins: bool = True,
        smooth: bool = True,
        isotonic: bool = False,
        histogram: bool = True,
        counts: bool = True,
        zoom: bool = False,
    ) -> "ReliabilityDisplay":
        """Draw on `ax`, or on a new figure. `zoom` spreads both axes out towards 1, for scores of which most are above 0.99."""
        self.figure_, self.ax_ = new_axes(ax)
        floor = zoom_floor(self.numbers.estimate.n)

        def at(values: Any) -> Any:
            return zoomed(values, floor) if zoom else np.asarray(values)

        ends = at([0.0, 1.0])
        self.ax_.plot(ends, ends, color=GREY, linestyle=(0, (4, 4)), linewidth=1, zorder=1)
        if smooth:
            frame = self.numbers.smooth
            self.ax_.fill_between(
                at(frame["score"]), at(frame["low"]), at(frame["high"]), color=ORANGE, alpha=0.15, linewidth=0, zorder=1
            )
            self.ax_.plot(at(frame["score"]), at(frame["outcome"]), color=ORANGE, linewidth=2, label="smooth", zorder=3)
        if isotonic:
            frame = self.numbers.isotonic
            self.ax_.plot(
                at(frame["score"]),
                at(frame["outcome"]),
                color=GREEN,
                linestyle=":",
                linewidth=2,
                label="isotonic",
                zorder=3,
            )
        if bins:
            self._draw_bins(at, counts)
        self.ax_.set_ylabel(self.outcome)
        for which in "xy":
            if zoom:
                zoom_axis(self.ax_, which, floor)
            else:
                getattr(self.ax_, f"set_{which}lim")(0, 1)
        if histogram:
            self._draw_histogram(zoom, floor)
        (self.histogram_ax_ if histogram else self.ax_).set_xlabel("Confidence")
        if bins or smooth or isotonic:
            self.ax_.legend(loc="upper left", frameon=False)
        self.ax_.set_title(self._title(), loc="left", fontsize="medium")
        return self

    def _title(self) -> str:
        estimate = self.numbers.estimate
        assert estimate.interval is not None
        low, high = float(estimate.interval.low), float(estimate.interval.high)
        words = f"RMS error {float(estimate.value):.3f} [{low:.3f}, {high:.3f}], n = {estimate.n:,}"
        return f"{self.name}: {words}" if self.name else words

    def _draw_bins(self, at: Any, counts: bool) -> None:
        frame = self.numbers.bins
        x, y = at(frame["score"]), at(frame["outcome"])
        self.ax_.vlines(x, at(frame["low"]), at(frame["high"]), color=BLUE, linewidth=1.2, zorder=2)
        share = np.asarray(frame["count"]) / np.sum(frame["count"])
        size = 20 + 180 * np.minimum(share, 0.5)
        self.ax_.scatter(x, y, s=size, color=BLUE, edgecolor="white", linewidth=0.8, label="bins", zorder=4)
        if counts and len(x) <= _MOST_LABELS:
            for left, bottom, count in zip(x, y, frame["count"], strict=True):
                self.ax_.annotate(
                    f"{count:,.6g}",
                    (left, bottom),
                    (5, -9),
                    textcoords="offset points",
                    fontsize="x-small",
                    color=GREY,
                )

    def _draw_histogram(self, zoom: bool, floor: float) -> None:
        frame = self.numbers.zoomed_histogram if zoom else self.numbers.histogram
        self.histogram_ax_ = self.ax_.inset_axes((0, -0.32, 1, 0.2))
        left, right = (zoomed(frame[side], floor) if zoom else np.asarray(frame[side]) for side in ("left", "right"))
        self.histogram_ax_.bar(left, frame["share"], width=right - left, align="edge", color=GREY, alpha=0.8)
        self.histogram_ax_.set_ylabel("Share")
        if zoom:
            zoom_axis(self.histogram_ax_, "x", floor)
        else:
            self.histogram_ax_.set_xlim(0, 1)
        for side in ("top", "right"):
            self.histogram_ax_.spines[side].set_visible(False)
