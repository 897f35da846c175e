"""The reliability diagram of one dataset."""

from __future__ import annotations

from collections.abc import Sequence
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
    Display,
    add_below,
    add_legend,
    add_title,
    default_scheme,
    fill_band,
    fitted_limits,
)
from truecal.profile.binning import Cut
from truecal.profile.profile import check_profile
from truecal.table import Frame
from truecal.types import Float64s

Scheme = Literal["width", "mass", "sweep"]
Part = Literal["bins", "smooth", "isotonic", "histogram"]
_HISTOGRAM_BINS = 50  # by choice
_MAX_LABELS = 20  # by choice: bins beside which counts are written


def bin_frame(bins: Bins | None, level: float) -> Frame:
    """Return a frame with a row per filled bin: score and outcome (means), low and high (limits of outcome at `level`), count.

    `bins` is that of an estimate by a binned estimator; None is not allowed.
    """
    assert bins is not None
    low, high = bins.interval(level)
    columns = (bins.mean_score, bins.mean_outcome, low, high, bins.counts)
    return Frame(dict(zip(("score", "outcome", "low", "high", "count"), columns, strict=True)))


def _smooth_frame(profile: tc.profile.Profile, estimate: tc.Estimate, level: float) -> Frame:
    """Return the curve of a rank-series estimate as score and outcome, with low and high of the simultaneous band at `level`."""
    assert estimate.curve is not None
    low, high = tc.inference.band(profile, level=level).at(estimate.curve.score)
    return Frame({"score": estimate.curve.score, "outcome": estimate.curve.outcome, "low": low, "high": high})


def _histogram_frame(profile: tc.profile.Profile, edges: Float64s) -> Frame:
    """Return left, right and share of the total weight in [left, right) for each two neighbouring edges (bars + 1,).

    Scores of 1 belong to the last bar if it ends at 1.
    """
    rows = profile.count_below(edges.astype(profile.scores.dtype), "left")[0]
    if edges[-1] == 1:
        rows[-1] = profile.rows
    shares = np.diff(profile.sums("w", Cut(rows[None], rows[None]))[0]) / profile.total[0]
    return Frame({"left": edges[:-1], "right": edges[1:], "share": shares})


# ----------------------------------------------------------------------------------------------------
# One dataset


@dataclass(frozen=True)
class ReliabilityNumbers:
    """The numbers of a reliability diagram: a frame per part, and the rank-series estimate in its title."""

    bins: Frame  # score, outcome, low, high, count
    smooth: Frame  # score, outcome, low, high
    isotonic: Frame  # score, outcome: ends of steps
    histogram: Frame  # left, right, share
    estimate: tc.Estimate  # rank series with interval
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
        raise InputError("a reliability diagram shows one dataset; draw one for each")
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
        """Store bins, band and curve; `name` is the model in the title, `outcome` the label of the vertical axis."""
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
            raise InputError("this lens judges every class; draw a diagram for each, with OneClass(name)")
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
        """Draw the diagonal and the parts in `_drawn`, legend and title; return the axes of the histogram, if it is drawn.

        Scores are horizontal ("Confidence"), outcomes vertical; the smooth curve is orange with its band, isotonic steps are
        dotted green, bins are those of `_draw_bins`.
        """
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
        """Draw bins with intervals, dots growing with their share of the rows; counts beside them if there are at most 20.

        Counts are also left out of narrow axes.
        """
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
        """Return limits of the vertical axis: those of the horizontal one, widened to the intervals of its bins.

        Bins with less than 1 % of the rows, or whose score lies outside the axis, do not count.
        """
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
