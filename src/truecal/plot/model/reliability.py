"""The reliability diagram."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.frame import Frame
from truecal.lens import Lens, check_lens, default_lens
from truecal.plot.canvas import BLUE, GREEN, GREY, ORANGE, below, fitted, width_of, zoom_axis, zoom_floor, zoomed
from truecal.plot.display import Display
from truecal.plot.model.reliability_numbers import ReliabilityNumbers, Scheme, reliability_numbers
from truecal.profile import check_profile

Part = Literal["bins", "smooth", "isotonic", "histogram"]
_MOST_LABELS = 20  # counts are written beside so many bins at most


class ReliabilityDisplay(Display):
    """How often predictions of each confidence come true.

    Bins with Clopper-Pearson intervals (dots grow with their counts, which are written beside them), the smooth rank-series curve
    with its simultaneous band, the isotonic (CORP) steps, and a histogram of the confidences beneath.

    Build it with :meth:`from_predictions`, :meth:`from_estimator` or :meth:`from_profile`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions(rng.random(500) < p**1.5, p, bins=5, plot=False)
    >>> display.frame()["count"]
    array([ 96.,  82., 105., 100., 117.])
    """

    def __init__(self, numbers: ReliabilityNumbers, *, name: str = "", outcome: str = "Frequency") -> None:
        super().__init__(numbers.bins, "score", "outcome", "low", "high", "count")
        self.numbers = numbers
        self.name = name
        self.outcome = outcome
        self.histogram_ax_: Any = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        lens: Lens | None = None,
        sample_weight: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        **options: Any,
    ) -> Self:
        """Compute and draw; labels and probabilities as in :func:`calibration_error`, `options` as in :meth:`from_profile`."""
        preds = tc.Predictions.from_probs(y_prob, y_true, weights=sample_weight, classes=classes)
        check_lens(lens)
        judged = default_lens(preds) if lens is None else lens
        if judged.shares(preds) is not None:
            raise InputError("this lens looks at many classes; use ClassWiseDisplay")
        return cls.from_profile(judged(preds), outcome=judged.outcome_name.capitalize(), **options)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
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
        profile: tc.Profile,
        *,
        bins: int = 15,
        scheme: Scheme = "width",
        level: float = 0.95,
        name: str = "",
        outcome: str = "Frequency",
        plot: bool = True,
        **options: Any,
    ) -> Self:
        """Compute and (unless `plot` is False) draw for the sorted scores of one dataset; `options` as in :meth:`plot`."""
        check_profile(profile)
        floor = zoom_floor(float(profile.size[0]))
        numbers = reliability_numbers(profile, bins=bins, scheme=scheme, level=level, floor=floor)
        made = cls(numbers, name=name, outcome=outcome)
        return made.plot(**options) if plot else made

    def frame(self, part: Part = "bins") -> Frame:
        """The numbers of a part of the picture."""
        options.choice(part, ("bins", "smooth", "isotonic", "histogram"), "part")
        numbers: Frame = getattr(self.numbers, part)
        return numbers

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
    ) -> Self:
        """Draw on `ax`, or on a new figure. `zoom` spreads both axes out towards 1, for scores of which most are above 0.99."""
        axes = self._open(ax)
        floor = zoom_floor(self.numbers.estimate.n)

        def at(values: Any) -> Any:
            return zoomed(values, floor) if zoom else np.asarray(values)

        ends = at([0.0, 1.0])
        axes.plot(ends, ends, color=GREY, linestyle=(0, (4, 4)), linewidth=1, zorder=1)
        if smooth:
            frame = self.numbers.smooth
            axes.fill_between(
                at(frame["score"]), at(frame["low"]), at(frame["high"]), color=ORANGE, alpha=0.15, linewidth=0, zorder=1
            )
            axes.plot(at(frame["score"]), at(frame["outcome"]), color=ORANGE, linewidth=2, label="smooth", zorder=3)
        if isotonic:
            frame = self.numbers.isotonic
            style = {"color": GREEN, "linestyle": ":", "linewidth": 2, "zorder": 3}
            axes.plot(at(frame["score"]), at(frame["outcome"]), label="isotonic", **style)
        if bins:
            self._draw_bins(at, counts)
        axes.set_ylabel(self.outcome)
        for which in "xy":
            if zoom:
                zoom_axis(axes, which, floor)
            else:
                getattr(axes, f"set_{which}lim")(0, 1)
        if histogram:
            self._draw_histogram(zoom, floor)
        (self.histogram_ax_ if histogram else axes).set_xlabel("Confidence")
        if bins or smooth or isotonic:
            axes.legend(loc="upper left", frameon=False)
        axes.set_title(fitted(self._title(), width_of(axes), 10.0), loc="left", fontsize=10.0, parse_math=False)
        return self._done(*([self.histogram_ax_] if histogram else []))

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
        if counts and len(x) <= _MOST_LABELS and not self.narrow_:  # they would cover the points
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
        self.histogram_ax_ = below(self.ax_, 0.22)
        left, right = (zoomed(frame[side], floor) if zoom else np.asarray(frame[side]) for side in ("left", "right"))
        self.histogram_ax_.bar(left, frame["share"], width=right - left, align="edge", color=GREY, alpha=0.8)
        self.histogram_ax_.set_ylabel("Share")
        if zoom:
            zoom_axis(self.histogram_ax_, "x", floor)
        else:
            self.histogram_ax_.set_xlim(0, 1)
        for side in ("top", "right"):
            self.histogram_ax_.spines[side].set_visible(False)
