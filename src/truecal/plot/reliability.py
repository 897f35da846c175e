"""The numbers of a reliability diagram: bins with their intervals, the smooth curve with its band, isotonic steps, a histogram."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.plot.display import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Display,
    Numbers,
    below,
    fitted,
    fitted_limits,
    legend_above,
    new_axes,
    width_of,
    zoom_axis,
    zoom_floor,
    zoomed,
)
from truecal.profile.profile import check_profile
from truecal.table import Frame

# ----------------------------------------------------------------------------------------------------
# The numbers of a reliability diagram: bins with their intervals, the smooth curve with its band, isotonic steps, a histogram

Scheme = Literal["width", "mass", "sweep"]
_HISTOGRAM_BINS = 50


@dataclass(frozen=True)
class ReliabilityNumbers:
    """One frame per part of the diagram, and the estimates they come from."""

    bins: Frame  # score, outcome, low, high, count
    smooth: Frame  # score, outcome, low, high
    isotonic: Frame  # score, outcome
    histogram: Frame  # left, right, share
    zoomed_histogram: Frame  # the same in steps of 1 - score, for the zoomed scale
    binned: tc.Estimate
    estimate: tc.Estimate
    limits: tuple[float, float] = (0.0, 1.0)  # of the axes: around nearly all scores


def reliability_numbers(
    profile: tc.profile.Profile, *, bins: int = 15, scheme: Scheme = "width", level: float = 0.95, floor: float = 1e-4
) -> ReliabilityNumbers:
    """Everything a reliability diagram of one dataset shows.

    >>> import truecal as tc
    >>> numbers = reliability_numbers(tc.profile.Profile.from_arrays([0.2, 0.3, 0.8, 0.9], [0, 1, 1, 1]), bins=2)
    >>> numbers.bins["count"], numbers.bins["outcome"]
    (array([2., 2.]), array([0.5, 1. ]))
    """
    options.level(level)
    options.bins(bins)
    if not isinstance(profile, tc.profile.Profile) or profile.batch != 1:
        raise InputError("a reliability diagram shows one dataset; use ClassWiseDisplay for many classes")
    if not profile.single:
        profile = tc.profile.Profile(
            profile.scores, profile.outcomes, profile.weights, profile.squares, profile.products, single=True
        )
    binned = (tc.SweepECE(norm=1) if scheme == "sweep" else tc.BinnedECE(bins=bins, scheme=scheme))(profile)
    assert binned.bins is not None
    low, high = binned.bins.interval(level)
    estimate = tc.RankSeries(level=level)(profile)
    isotonic = tc.estimators.IsotonicError()(profile)
    assert estimate.curve is not None
    assert isotonic.curve is not None
    bottom, top = tc.inference.band(profile, level=level).at(estimate.curve.score)
    return ReliabilityNumbers(
        bins=Frame(
            {
                "score": binned.bins.mean_score,
                "outcome": binned.bins.mean_outcome,
                "low": low,
                "high": high,
                "count": binned.bins.counts,
            }
        ),
        smooth=Frame({"score": estimate.curve.score, "outcome": estimate.curve.outcome, "low": bottom, "high": top}),
        isotonic=Frame({"score": isotonic.curve.score, "outcome": isotonic.curve.outcome}),
        histogram=_histogram(profile, np.arange(_HISTOGRAM_BINS + 1) / _HISTOGRAM_BINS),
        zoomed_histogram=_histogram(profile, 1 - np.geomspace(1.0, floor, _HISTOGRAM_BINS + 1)),
        binned=binned,
        estimate=estimate,
        limits=fitted_limits(profile),
    )


def _histogram(profile: tc.profile.Profile, edges: np.ndarray) -> Frame:
    """Share of the predictions between rising edges; those beyond the last edge belong to the last bar."""
    places = profile.places(edges.astype(profile.scores.dtype), "left")
    places[:, 0], places[:, -1] = 0, profile.rows
    weight = np.concatenate(
        [[0.0], np.cumsum(np.ones(profile.rows) if profile.weights is None else profile.weights[0])]
    )
    share = np.diff(weight[places[0]]) / profile.total[0]
    return Frame({"left": edges[:-1], "right": edges[1:], "share": share})


# ----------------------------------------------------------------------------------------------------
# The reliability diagram

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
        profile: tc.profile.Profile,
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
                at(frame["score"]),
                at(frame["low"]),
                at(frame["high"]),
                color=ORANGE,
                alpha=0.15,
                linewidth=0,
                label="its band",
                zorder=1,
            )
            axes.plot(at(frame["score"]), at(frame["outcome"]), color=ORANGE, linewidth=2, label="smooth", zorder=3)
        if isotonic:
            frame = self.numbers.isotonic
            style = {"color": GREEN, "linestyle": ":", "linewidth": 2, "zorder": 3}
            axes.plot(at(frame["score"]), at(frame["outcome"]), label="isotonic", **style)
        if bins:
            self._draw_bins(at, counts)
        axes.set_ylabel(self.outcome)
        if zoom:
            for which in "xy":
                zoom_axis(axes, which, floor)
        else:
            axes.set(xlim=self.numbers.limits, ylim=self._outcome_limits())
        if histogram:
            self._draw_histogram(zoom, floor)
        (self.histogram_ax_ if histogram else axes).set_xlabel("Confidence")
        above = 6.0
        if bins or smooth or isotonic:  # outside the axes, where no interval of a small bin runs through it
            legend_above(axes, 4)
            above += float(axes.get_legend().get_window_extent().height) * 72 / float(self.figure_.dpi)
        words = fitted(self._title(), width_of(axes), 10.0)
        axes.set_title(words, loc="left", fontsize=10.0, parse_math=False, pad=above)
        return self._done(*([self.histogram_ax_] if histogram else []))

    def _outcome_limits(self) -> tuple[float, float]:
        """Limits of the vertical axis: those of the scores, and what the larger bins in view reach."""
        low, high = self.numbers.limits
        frame = self.numbers.bins
        share = frame["count"] / np.sum(frame["count"])
        shown = (share >= 0.01) & (frame["score"] >= low) & (frame["score"] <= high)
        ends = [low, high, *frame["low"][shown], *frame["high"][shown]]
        return float(min(ends)), float(max(ends))

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
            self.histogram_ax_.set_xlim(self.numbers.limits)
        for side in ("top", "right"):
            self.histogram_ax_.spines[side].set_visible(False)


# ----------------------------------------------------------------------------------------------------
# One small reliability diagram per class

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
