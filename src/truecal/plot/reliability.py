"""Reliability diagrams: of one dataset, of every class, before and after recalibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.bins import Bins
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.plot.display import (
    BLUE,
    DASHED,
    GREEN,
    GREY,
    ORANGE,
    SERIES,
    Display,
    Numbers,
    add_below,
    add_legend,
    add_title,
    default_scheme,
    fill_band,
    fitted_limits,
)
from truecal.profile.profile import check_profile
from truecal.table import Frame
from truecal.types import Float64s

Scheme = Literal["width", "mass", "sweep"]
Part = Literal["bins", "smooth", "isotonic", "histogram"]
_HISTOGRAM_BINS = 50
_MAX_LABELS = 20  # bins beside which counts are written
_CLASS_LETTERS = 12  # of a class name above a small diagram
_ACROSS = 3  # small diagrams side by side, which fit the column of a paper


def bin_frame(bins: Bins | None, level: float) -> Frame:
    """Return mean score, mean outcome with its limits (low, high) at `level`, and count of every bin."""
    assert bins is not None
    low, high = bins.interval(level)
    columns = (bins.mean_score, bins.mean_outcome, low, high, bins.counts)
    return Frame(dict(zip(("score", "outcome", "low", "high", "count"), columns, strict=True)))


def _smooth_frame(profile: tc.profile.Profile, estimate: tc.Estimate, level: float) -> Frame:
    """Return score, outcome, low and high: the curve of the rank series with its simultaneous band."""
    assert estimate.curve is not None
    low, high = tc.inference.band(profile, level=level).at(estimate.curve.score)
    return Frame({"score": estimate.curve.score, "outcome": estimate.curve.outcome, "low": low, "high": high})


def _histogram_frame(profile: tc.profile.Profile, edges: Float64s) -> Frame:
    """Return left, right and share of the weight between rising edges; scores at 1 belong to a last bar that ends there."""
    rows = profile.places(edges.astype(profile.scores.dtype), "left")[0]
    if edges[-1] == 1:
        rows[-1] = profile.rows
    weights = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    shares = np.diff(np.concatenate([[0.0], np.cumsum(weights)])[rows]) / profile.total[0]
    return Frame({"left": edges[:-1], "right": edges[1:], "share": shares})


# ----------------------------------------------------------------------------------------------------
# One dataset


@dataclass(frozen=True)
class ReliabilityNumbers:
    """The numbers of a reliability diagram: a frame per part, and the rank-series estimate in its title."""

    bins: Frame  # score, outcome, low, high, count
    smooth: Frame  # score, outcome, low, high
    isotonic: Frame  # score, outcome
    histogram: Frame  # left, right, share
    estimate: tc.Estimate
    limits: tuple[float, float] = (0.0, 1.0)  # of the axes: around nearly all scores


def reliability_numbers(
    profile: tc.profile.Profile, *, bins: int = 15, scheme: Scheme | None = None, level: float = 0.95
) -> ReliabilityNumbers:
    """Compute everything a reliability diagram of one dataset shows; refuse several datasets.

    Without a `scheme`, bins are of equal width, or of equal mass if nearly all scores lie in less than a third of [0, 1].

    >>> import truecal as tc
    >>> numbers = reliability_numbers(tc.profile.Profile.from_arrays([0.2, 0.3, 0.8, 0.9], [0, 1, 1, 1]), bins=2)
    >>> numbers.bins["count"], numbers.bins["outcome"]
    (array([2., 2.]), array([0.5, 1. ]))
    """
    options.level(level)
    options.bins(bins)
    if not profile.single:
        raise InputError("a reliability diagram shows one dataset; use ClassWiseDisplay for many classes")
    limits = fitted_limits(profile)
    if scheme is None:  # bins of equal width would be few where scores lie in a small part of the axis
        scheme = default_scheme(limits)
    binned = (tc.SweepECE(norm=1) if scheme == "sweep" else tc.BinnedECE(bins=bins, scheme=scheme))(profile)
    estimate = tc.RankSeries(level=level)(profile)
    steps = tc.estimators.IsotonicError()(profile).curve
    assert steps is not None
    return ReliabilityNumbers(
        bins=bin_frame(binned.bins, level),
        smooth=_smooth_frame(profile, estimate, level),
        isotonic=Frame({"score": steps.score, "outcome": steps.outcome}),
        histogram=_histogram_frame(profile, np.linspace(*limits, _HISTOGRAM_BINS + 1)),
        estimate=estimate,
        limits=limits,
    )


class ReliabilityDisplay(Display):
    """Draw how often predictions of each confidence come true.

    Bins with Clopper-Pearson intervals (dots grow with their counts, which are written beside them), the smooth rank-series curve
    with its simultaneous band, the isotonic (CORP) steps, and a histogram of the confidences beneath.
    Build it with :meth:`from_predictions`, :meth:`from_estimator` or :meth:`from_profile`.

    Parameters
    ----------
    numbers : ReliabilityNumbers
        The numbers to draw.
    name : str, default ""
        Name of the model, in the title.
    outcome : str, default "Frequency"
        Title of the vertical axis.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions(rng.random(500) < p**1.5, p, bins=5, plot=False)
    >>> display.frame()["count"]
    array([ 96.,  82., 105., 100., 117.])
    """

    def __init__(self, numbers: ReliabilityNumbers, *, name: str = "", outcome: str = "Frequency") -> None:
        super().__init__(numbers.bins)
        self.numbers, self.name, self.outcome = numbers, name, outcome
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
        """Compute and draw, from labels and probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n,) or (n, K)
            Probabilities, as in :func:`truecal.calibration_error`.
        lens : Lens, default None
            What is judged; None is the default lens.
        sample_weight : array-like of shape (n,), default None
            Weights of rows.
        classes : sequence, default None
            Names of the classes, in the order of the columns.
        **options : Any
            As in :meth:`from_profile`.

        Returns
        -------
        display : ReliabilityDisplay
            The display.
        """
        preds = tc.Predictions.from_probs(y_prob, y_true, weights=sample_weight, classes=classes)
        check_lens(lens)
        lens = default_lens(preds) if lens is None else lens
        if lens.shares(preds) is not None:
            raise InputError("this lens looks at many classes; use ClassWiseDisplay")
        return cls.from_profile(lens(preds), outcome=lens.outcome_name.capitalize(), **options)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
        """Compute and draw, from a fitted classifier.

        Parameters
        ----------
        estimator : classifier with `predict_proba`
            The model.
        X : array-like
            Rows to predict.
        y : array-like of shape (n,)
            Their labels.
        **options : Any
            As in :meth:`from_profile`.

        Returns
        -------
        display : ReliabilityDisplay
            The display.
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(f"{type(estimator).__name__} has no predict_proba; its confidence cannot be judged")
        options.setdefault("name", type(estimator).__name__)
        probs, classes = np.asarray(estimator.predict_proba(X)), list(estimator.classes_)
        return cls.from_predictions(y, probs[:, 1] if len(classes) == 2 else probs, classes=classes, **options)

    @classmethod
    def from_profile(
        cls,
        profile: tc.profile.Profile,
        *,
        bins: int = 15,
        scheme: Scheme | None = None,
        level: float = 0.95,
        name: str = "",
        outcome: str = "Frequency",
        plot: bool = True,
        **options: Any,
    ) -> Self:
        """Compute and draw, from the sorted scores of one dataset.

        Parameters
        ----------
        profile : Profile
            The sorted scores.
        bins : int, default 15
            Number of bins.
        scheme : {"width", "mass", "sweep"}, default None
            Where bins are cut; None is equal width, and equal mass where nearly all scores lie in a third of [0, 1].
        level : float, default 0.95
            Level of intervals and band.
        name : str, default ""
            Name of the model, in the title.
        outcome : str, default "Frequency"
            Title of the vertical axis.
        plot : bool, default True
            Whether to draw now.
        **options : Any
            As in :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The display.
        """
        check_profile(profile)
        display = cls(reliability_numbers(profile, bins=bins, scheme=scheme, level=level), name=name, outcome=outcome)
        return display.plot(**options) if plot else display

    def frame(self, part: Part = "bins") -> Frame:
        """Return the numbers of a part of the picture.

        Parameters
        ----------
        part : {"bins", "smooth", "isotonic", "histogram"}, default "bins"
            Which part.

        Returns
        -------
        numbers : Frame
            One row per bin, point or bar.
        """
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
    ) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.
        bins : bool, default True
            Draw bins with intervals.
        smooth : bool, default True
            Draw the smooth curve with its band.
        isotonic : bool, default False
            Draw the isotonic steps.
        histogram : bool, default True
            Draw a histogram of the scores beneath.
        counts : bool, default True
            Write counts beside the bins.

        Returns
        -------
        display : ReliabilityDisplay
            The display itself.
        """
        drawn = {"bins": bins, "smooth": smooth, "isotonic": isotonic, "histogram": histogram, "counts": counts}
        self._drawn = {part for part, enabled in drawn.items() if enabled}
        return super().plot(ax)

    def _draw(self, ax: Any) -> list[Any]:
        ax.plot([0, 1], [0, 1], zorder=1, **DASHED)
        if "smooth" in self._drawn:
            smooth = self.numbers.smooth
            ax.plot(smooth["score"], smooth["outcome"], color=ORANGE, linewidth=2, label="smooth", zorder=3)
            fill_band(ax, smooth["score"], smooth["low"], smooth["high"], ORANGE, label="its band", zorder=1)
        if "isotonic" in self._drawn:
            steps = self.numbers.isotonic
            style = {"color": GREEN, "linestyle": ":", "linewidth": 2, "zorder": 3}
            ax.plot(steps["score"], steps["outcome"], label="isotonic", **style)
        if "bins" in self._drawn:
            self._draw_bins(ax)
        ax.set(xlim=self.numbers.limits, ylim=self._outcome_limits())
        below = [self._draw_histogram(ax)] if "histogram" in self._drawn else []
        ax.set_ylabel(self.outcome)
        [ax, *below][-1].set_xlabel("Confidence")
        add_legend(ax)
        add_title(ax, self._title())
        return below

    def _draw_bins(self, ax: Any) -> None:
        """Draw bins with intervals, dots growing with their share of the rows; counts beside up to _MAX_LABELS of them."""
        x, y, low, high, count = (self._frame[name] for name in ("score", "outcome", "low", "high", "count"))
        ax.vlines(x, low, high, color=BLUE, linewidth=1.2, zorder=2)
        size = 20 + 180 * np.minimum(count / count.sum(), 0.5)
        first, last = self.numbers.limits
        outside = (x < first) | (x > last)  # else dots at 0 and 1 are drawn whole
        style = {"color": BLUE, "edgecolor": ax.get_facecolor(), "linewidth": 0.8, "clip_on": bool(outside.any())}
        ax.scatter(x, y, s=size, label="bins", zorder=4, **style)
        if "counts" in self._drawn and len(x) <= _MAX_LABELS and not self.narrow_:  # they would cover the points
            for across, up, number in zip(x, y, count, strict=True):
                label = {"textcoords": "offset points", "fontsize": "x-small", "color": GREY}
                ax.annotate(f"{number:,.6g}", (across, up), (5, -9), **label)

    def _draw_histogram(self, above: Any) -> Any:
        """Draw the histogram of the scores below the axes `above`, and return its axes."""
        bars = self.numbers.histogram
        start, end = bars["left"], bars["right"]
        ax = self.histogram_ax_ = add_below(above, 0.22)
        ax.bar(start, bars["share"], width=end - start, align="edge", color=GREY, alpha=0.8)
        ax.set(ylabel="Share", xlim=self.numbers.limits)
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _outcome_limits(self) -> tuple[float, float]:
        """Return limits of the vertical axis: those of the scores, widened to intervals of visible bins with 1 % of the rows."""
        low, high = self.numbers.limits
        frame = self.numbers.bins
        share = frame["count"] / np.sum(frame["count"])
        visible = (share >= 0.01) & (frame["score"] >= low) & (frame["score"] <= high)
        ends = [low, high, *frame["low"][visible], *frame["high"][visible]]
        return float(min(ends)), float(max(ends))

    def _title(self) -> str:
        """Return "name: RMS error value [low, high], n = rows", without the name if there is none."""
        estimate = self.numbers.estimate
        assert estimate.interval is not None
        limits = (float(estimate.interval.low), float(estimate.interval.high))
        words = f"RMS error {digits.with_interval(float(estimate.value), *limits)}, n = {estimate.n:,}"
        return f"{self.name}: {words}" if self.name else words


# ----------------------------------------------------------------------------------------------------
# Every class


class ClassWiseDisplay(Display):
    """Draw small multiples: the calibration of every class, those with the largest errors first.

    `frame()` has one row per class and bin; after `plot`, `axes_` are the small diagrams.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `class`, `score`, `outcome`, `low`, `high`.
    errors : mapping of str to float
        The debiased error of each class, in the order of the diagrams.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], 300)
    >>> display = ClassWiseDisplay.from_predictions(rng.integers(0, 3, 300), probs, bins=4, plot=False)
    >>> sorted(display.errors)
    ['0', '1', '2']
    """

    needed = ("class", "score", "outcome", "low", "high")

    def __init__(self, numbers: Numbers, errors: Mapping[str, float]) -> None:
        if not errors:
            raise InputError("there are no classes to draw")
        super().__init__(numbers)
        self.errors = dict(errors)
        self.axes_: Any = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        max_classes: int = 12,
        bins: int = 10,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        plot: bool = True,
        ax: Any = None,
    ) -> Self:
        """Compute and draw the classes with the largest errors, in bins of equal mass.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, K)
            Class probabilities.
        max_classes : int, default 12
            Number of classes drawn.
        bins : int, default 10
            Number of bins.
        level : float, default 0.95
            Level of the intervals.
        sample_weight : array-like of shape (n,), default None
            Weights of rows.
        classes : sequence, default None
            Names of the classes, in the order of the columns.
        plot : bool, default True
            Whether to draw now.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : ClassWiseDisplay
            The display.
        """
        options.level(level)
        options.whole(max_classes, "max_classes")
        preds = tc.Predictions.from_probs(y_prob, y_true, weights=sample_weight, classes=classes)
        labels = range(preds.class_count) if preds.classes is None else preds.classes
        profiles = [tc.OneClass(label)(preds) for label in labels]
        errors = [float(tc.DebiasedECE(correction="exact")(profile).value) for profile in profiles]
        worst = sorted(range(len(errors)), key=lambda k: (-errors[k], k))[:max_classes]
        rows: list[dict[str, Any]] = []
        for k in worst:
            binned = tc.BinnedECE(bins=bins, scheme="mass")(profiles[k]).bins
            rows += [{"class": preds.class_name(k), **row} for row in bin_frame(binned, level)]
        return cls(Frame.from_records(rows), {preds.class_name(k): errors[k] for k in worst})._plot_if(plot, ax)

    def _size(self) -> tuple[float, float]:
        across = min(_ACROSS, len(self.errors))
        return 2.6 * across, 2.6 * -(-len(self.errors) // across)

    def _draw(self, ax: Any) -> list[Any]:
        across = min(_ACROSS, len(self.errors))
        down = -(-len(self.errors) // across)
        ax.set_axis_off()
        spec = ax.get_subplotspec()
        if spec is None:
            boxes = [((i + 0.15) / across, 1 - (j + 0.85) / down) for j in range(down) for i in range(across)]
            small = [ax.inset_axes((*corner, 0.75 / across, 0.65 / down)) for corner in boxes]
        else:
            # room for numbers and titles, where no layout makes it
            gaps = {} if self.figure_.get_layout_engine() else {"hspace": 0.8, "wspace": 0.4}
            parts = spec.subgridspec(down, across, **gaps)
            small = [self.figure_.add_subplot(parts[j, i]) for j in range(down) for i in range(across)]
        self.axes_ = np.array(small, object).reshape(down, across)
        for diagram, name in zip(small, self.errors, strict=False):
            self._draw_class(diagram, name)
        self.axes_[-1, (across - 1) // 2].set_xlabel("Probability of the class")
        self.axes_[(down - 1) // 2, 0].set_ylabel("Frequency of the class")
        for unused in small[len(self.errors) :]:
            unused.set_axis_off()
        return small

    def _draw_class(self, ax: Any, name: str) -> None:
        """Draw bins with intervals of one class, on equal axes that fit them, with its name and error as title."""
        rows = self._frame["class"] == name
        score, outcome, low, high = (self._frame[column][rows] for column in self.needed[1:])
        end = min(1.0, 1.08 * float(max(score.max(), high.max())))
        ax.plot([0, end], [0, end], **DASHED)
        ax.vlines(score, low, high, color=BLUE, linewidth=1)
        ax.plot(score, outcome, color=BLUE, marker="o", markersize=3, linewidth=0)
        ax.set(xlim=(0, end), ylim=(0, end))
        ax.locator_params(nbins=3)
        ax.tick_params(labelsize="x-small")
        short = name if len(name) <= _CLASS_LETTERS else f"{name[: _CLASS_LETTERS - 1]}…"
        ax.set_title(f"{short}\n{self.errors[name]:.3f}", fontsize="small", parse_math=False)


# ----------------------------------------------------------------------------------------------------
# Before and after recalibration


class BeforeAfterDisplay(Display):
    """Draw smooth calibration curves of several sets of predictions of the same labels, in one diagram.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `name`, `score`, `outcome`, `low`, `high`.
    errors : mapping of str to (float, float, float)
        Value and limits of the error of each set of predictions, by name.
    outcome : str, default "Frequency"
        Title of the vertical axis.
    limits : tuple of two float, default (0.0, 1.0)
        Limits of the horizontal axis.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> display = BeforeAfterDisplay.from_predictions(y, {"before": p, "after": p**2}, plot=False)
    >>> display.errors["before"][0] > display.errors["after"][0]
    True
    """

    needed = ("name", "score", "outcome", "low", "high")

    def __init__(
        self,
        numbers: Numbers,
        errors: Mapping[str, tuple[float, float, float]],
        *,
        outcome: str = "Frequency",
        limits: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(numbers)
        self.errors, self.outcome, self.limits = dict(errors), outcome, limits

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
        """Compute and draw, from labels and several sets of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_probs : mapping of str to array-like
            Probabilities by name, such as "before" and "after".
        lens : Lens, default None
            What is judged; None is the default lens.
        level : float, default 0.95
            Level of intervals and bands.
        sample_weight : array-like of shape (n,), default None
            Weights of rows.
        classes : sequence, default None
            Names of the classes, in the order of the columns.
        plot : bool, default True
            Whether to draw now.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : BeforeAfterDisplay
            The display.
        """
        options.level(level)
        if not 1 <= len(y_probs) <= len(SERIES):
            raise InputError(f"one to {len(SERIES)} sets of predictions fit in one diagram, not {len(y_probs)}")
        rows: list[dict[str, Any]] = []
        errors, limits, outcome = {}, [], ""
        for name, probs in y_probs.items():
            preds = tc.Predictions.from_probs(probs, y_true, weights=sample_weight, classes=classes)
            name_lens = default_lens(preds) if lens is None else lens
            profile, outcome = name_lens(preds), name_lens.outcome_name.capitalize()
            if profile.batch != 1:
                raise InputError(
                    f"one curve is drawn per name, and {name_lens!r} has several; choose OneClass or TopLabel"
                )
            estimate = tc.RankSeries(level=level)(profile)
            assert estimate.interval is not None
            rows += [{"name": name, **row} for row in _smooth_frame(profile, estimate, level)]
            errors[name] = (float(estimate.value), float(estimate.interval.low), float(estimate.interval.high))
            limits.append(fitted_limits(profile))
        ends = min(low for low, _ in limits), max(high for _, high in limits)
        return cls(Frame.from_records(rows), errors, outcome=outcome, limits=ends)._plot_if(plot, ax)

    def _draw(self, ax: Any) -> None:
        ax.plot([0, 1], [0, 1], **DASHED)
        labels = {name: f"{name}: {digits.with_interval(*error)}" for name, error in self.errors.items()}
        self._draw_lines(ax, "name", "score", "outcome", ("low", "high"), labels=labels, marker="")
        low, high = self.limits
        visible = (self._frame["score"] >= low) & (self._frame["score"] <= high)
        outcomes = [low, high, *self._frame["outcome"][visible]]
        ax.set(xlim=self.limits, ylim=(min(outcomes), max(outcomes)), xlabel="Confidence", ylabel=self.outcome)
        add_legend(ax, max_columns=1)
