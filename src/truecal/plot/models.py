"""Displays of models: before and after recalibration, evaluations, over time."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.plot.display import (
    BLUE,
    GREY,
    ORANGE,
    SERIES,
    Display,
    Numbers,
    below,
    columns,
    fitted_limits,
    legend_above,
)
from truecal.table import Frame

# ----------------------------------------------------------------------------------------------------
# A model before and after recalibration


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
        self,
        numbers: Numbers,
        errors: Mapping[str, tuple[float, float, float]],
        *,
        outcome: str = "Frequency",
        limits: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(numbers, "name", "score", "outcome", "low", "high")
        self.errors = dict(errors)
        self.outcome, self.limits = outcome, limits

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
        errors, limits = {}, []
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
            limits.append(fitted_limits(profile))
            low, high = tc.inference.band(profile, level=level).at(estimate.curve.score)
            columns = (estimate.curve.score, estimate.curve.outcome, low, high)
            points["name"] += [name] * len(low)
            for column, values in zip(("score", "outcome", "low", "high"), columns, strict=True):
                points[column] += values.tolist()
            errors[name] = (float(estimate.value), float(estimate.interval.low), float(estimate.interval.high))
        ends = min(low for low, _ in limits), max(high for _, high in limits)
        made = cls(points, errors, outcome=outcome, limits=ends)
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
        low, high = self.limits
        drawn = (self._frame["score"] >= low) & (self._frame["score"] <= high)
        outcomes = [low, high, *self._frame["outcome"][drawn]]
        axes.set(xlim=self.limits, ylim=(min(outcomes), max(outcomes)), xlabel="Confidence", ylabel=self.outcome)
        legend_above(axes, 1)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# What recalibration would gain: the score of every map, split into calibration and refinement


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


# ----------------------------------------------------------------------------------------------------
# Calibration over time: the error of every batch and the evidence that it is off

_COLUMNS = ("at", "batch_error", "error", "low", "high", "log_e")


class OverTimeDisplay(Display):
    """Errors of the batches of a watch, the mean error so far with its confidence sequence, and the e-value beneath.

    After `plot`, `evidence_ax_` holds the evidence on a log scale, with the alarm as a dashed line.

    >>> import truecal as tc
    >>> watch = tc.Watch()
    >>> step = watch.update(tc.Predictions.from_probs([0.2, 0.8] * 50, [0, 1] * 50), at="2026-05-01")
    >>> OverTimeDisplay(watch.frame(), tolerance=0.02).frame()["at"].tolist()
    ['2026-05-01']
    """

    def __init__(self, numbers: Numbers, *, tolerance: float, alpha: float = 0.05, name: str = "") -> None:
        super().__init__(numbers, *_COLUMNS)
        self.tolerance, self.alpha, self.name = tolerance, alpha, name
        self.evidence_ax_: Any = None

    @classmethod
    def from_watch(cls, watch: "tc.Watch", *group: object, ax: Any = None) -> Self:
        """Draw a group of a :class:`truecal.Watch`."""
        settings = watch.settings
        made = cls(
            watch.frame(*group), tolerance=settings.tolerance, alpha=settings.alpha, name=", ".join(map(str, group))
        )
        return made.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        axes = self._open(ax)
        at, batch, error, low, high, log_e = (self._frame[name] for name in _COLUMNS)
        place = np.arange(len(at))
        axes.fill_between(place, low, high, color=ORANGE, alpha=0.15, linewidth=0)
        axes.plot(place, error, color=ORANGE, linewidth=2, label="so far")
        axes.plot(place, batch, color=BLUE, marker="o", markersize=3, linewidth=0, label="batch")
        for side in (-1, 1):
            axes.axhline(side * self.tolerance, color=GREY, linewidth=1, linestyle=(0, (4, 4)))
        axes.set(ylabel="Score - frequency", title=self.name, xticks=[])
        axes.legend(frameon=False, loc="upper left")
        self.evidence_ax_ = below(axes, 0.8)
        self.evidence_ax_.plot(place, log_e / np.log(10), color="black", linewidth=1.5)
        self.evidence_ax_.axhline(-np.log10(self.alpha), color=GREY, linewidth=1, linestyle=(0, (4, 4)))
        shown = np.unique(np.linspace(0, len(at) - 1, min(6, len(at))).astype(int))
        self.evidence_ax_.set_xticks(shown, [str(at[i]) for i in shown], rotation=30, ha="right")
        self.evidence_ax_.set_ylabel("log10 e-value")
        return self._done(self.evidence_ax_)
