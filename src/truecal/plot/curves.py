"""Displays of curves: abstention, net benefit, decision loss, flexible calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal.clinical.curves import FlexibleCurve
from truecal.clinical.decisions import DecisionComparison, DecisionCurve
from truecal.plot.display import DASHED, GREY, Display, Numbers, add_legend, rounded_limits
from truecal.predictions import validation
from truecal.scores.decisions import DecisionLoss, DecisionLosses
from truecal.table import Frame
from truecal.types import Float64s

_MAX_BANDS = 2  # by choice: with more curves, bands would hide each other
_FLAT = 0.01  # by choice: share of the largest value below which the end of a curve over thresholds is flat, and not in view


def _with_model_column(curve: DecisionCurve | DecisionComparison | DecisionLoss | DecisionLosses) -> Frame:
    """Return the table `frame()` of one model or several; a single one gets a column `model` with the value "model"."""
    frame = curve.frame()
    return frame if "model" in frame else frame.with_columns(model=["model"] * len(frame))


def _end_where_flat(ax: Any, thresholds: Float64s, values: Float64s) -> None:
    """Limit the horizontal axis to [0, t], t the last threshold with a value above 1 % of the largest, in absolute value.

    Thresholds (n,) and values (n,) are of all curves, row by row. Limits are unchanged if t is the last threshold, or 0.
    """
    steep = np.abs(values) > _FLAT * np.abs(values).max(initial=0.0)
    end = thresholds[steep].max(initial=0.0)
    if 0 < end < thresholds.max():
        ax.set_xlim(0, end)


class AbstentionDisplay(Display):
    """Draw cost (or error) against the share of cases answered, the most confident first; one line per model.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `answered`, the cost and the series; optionally `low` and `high`, which are drawn as bands.
    series : str, default "series"
        Column of the models' names.
    cost : str, default "cost"
        Column of the cost.

    Examples
    --------
    >>> display = AbstentionDisplay({"answered": [0.5, 1.0], "cost": [0.02, 0.1], "series": ["a", "a"]})
    >>> display.frame()["cost"]
    array([0.02, 0.1 ])
    """

    def __init__(self, numbers: Numbers, *, series: str = "series", cost: str = "cost") -> None:
        """Store the numbers; `series` and `cost` name their columns of the model and of what is drawn."""
        self.series, self.cost, self.needed = series, cost, ("answered", cost, series)
        super().__init__(numbers)

    @classmethod
    def from_curves(cls, curves: Mapping[str, tc.selective.RiskCoverage], *, ax: Any = None) -> Self:
        """Draw risk-coverage curves of :func:`truecal.selective.risk_coverage`.

        Parameters
        ----------
        curves : mapping of str to RiskCoverage
            Curves by the names of their models.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : AbstentionDisplay
            The display, drawn.
        """
        rows = [{"series": name, **row} for name, curve in curves.items() for row in curve.frame()]
        return cls(Frame.from_records(rows), cost="risk").plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draw a line of the cost over the share answered per model, with bands if there are limits, and a legend."""
        bands = [("low", "high")] if "low" in self._frame and "high" in self._frame else []
        self._draw_lines(ax, self.series, "answered", self.cost, *bands, markersize=4)
        ax.set(xlabel="Share of cases answered", ylabel=self.cost.capitalize(), xlim=(0, 1.02))
        ax.set_ylim(bottom=0)
        add_legend(ax)


class DecisionDisplay(Display):
    """Draw decision curves: net benefit of models with intervals, of treating everyone and of treating no one.

    The vertical axis starts a little below 0, as decision curves are read above it.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `threshold`, `net_benefit`, `low`, `high`, `treat_all`.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> curve = tc.clinical.net_benefit(tc.Predictions.from_probs(p, rng.random(500) < p), [0.2, 0.5])
    >>> DecisionDisplay.from_curve(curve, plot=False).frame()["threshold"]
    array([0.2, 0.5])
    """

    needed = ("model", "threshold", "net_benefit", "low", "high", "treat_all")

    @classmethod
    def from_curve(cls, curve: DecisionCurve | DecisionComparison, *, plot: bool = True, ax: Any = None) -> Self:
        """Draw the result of :func:`truecal.clinical.net_benefit`.

        Parameters
        ----------
        curve : DecisionCurve or DecisionComparison
            One model or several.
        plot : bool, default True
            Whether to draw now.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : DecisionDisplay
            The display.
        """
        return cls(_with_model_column(curve))._plot_if(plot, ax)

    def _draw(self, ax: Any) -> None:
        """Draw net benefit over thresholds with a band per model, treating everyone (dashed) and no one (0), and a legend."""
        self._draw_lines(ax, "model", "threshold", "net_benefit", ("low", "high"), marker="")
        _, rows, _ = next(self._series("model"))
        threshold, everyone = (self._frame[n][rows] for n in ("threshold", "treat_all"))
        ax.plot(threshold, everyone, color=GREY, linestyle="--", linewidth=1.2, label="treat everyone")
        ax.axhline(0, color=GREY, linewidth=1.2, label="treat no one")
        top = float(max(np.max(self._frame["high"]), np.max(everyone)))
        ax.set_ylim(-0.15 * top, 1.08 * top)
        ax.set(xlabel="Threshold probability", ylabel="Net benefit")
        _end_where_flat(ax, self._frame["threshold"], self._frame["net_benefit"])
        add_legend(ax)


class DecisionLossDisplay(Display):
    """Draw the loss (or the cost: a Murphy diagram) at every threshold with its band, one line per model.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `threshold`, and the quantity with its limits: `loss`, `low`, `high`, or `cost`, `cost_low`, `cost_high`.
    quantity : {"loss", "cost"}, default "loss"
        What is drawn.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> loss = tc.decision_loss(rng.random(500) < p, p, thresholds=[0.2, 0.5])
    >>> DecisionLossDisplay.from_loss(loss, plot=False).frame()["threshold"]
    array([0.2, 0.5])
    """

    def __init__(self, numbers: Numbers, *, quantity: str = "loss") -> None:
        """Store the numbers; `quantity` is "loss", drawn with the columns low and high, or "cost", with cost_low and cost_high."""
        self.quantity, self.limits = quantity, ("low", "high") if quantity == "loss" else ("cost_low", "cost_high")
        self.needed = ("model", "threshold", quantity, *self.limits)
        super().__init__(numbers)

    @classmethod
    def from_loss(
        cls, loss: DecisionLoss | DecisionLosses, *, quantity: str = "loss", plot: bool = True, ax: Any = None
    ) -> Self:
        """Draw the result of :func:`truecal.decision_loss`.

        Parameters
        ----------
        loss : DecisionLoss or DecisionLosses
            One model or several.
        quantity : {"loss", "cost"}, default "loss"
            What is drawn.
        plot : bool, default True
            Whether to draw now.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : DecisionLossDisplay
            The display.
        """
        return cls(_with_model_column(loss), quantity=quantity)._plot_if(plot, ax)

    def _draw(self, ax: Any) -> None:
        """Draw the quantity over thresholds with its limits per model, and 0; a legend for two models or more."""
        line: dict[str, Any] = {} if len(set(self._frame["threshold"])) == 1 else {"marker": ""}
        self._draw_lines(ax, "model", "threshold", self.quantity, self.limits, **line)
        ax.axhline(0, color=GREY, linewidth=1)
        label = {"loss": "Loss by miscalibration per case", "cost": "Mean cost per case"}[self.quantity]
        ax.set(xlabel="Threshold", ylabel=label, xlim=(0, 1))
        _end_where_flat(ax, self._frame["threshold"], self._frame[self.quantity])
        add_legend(ax, min_entries=2)


class FlexibleDisplay(Display):
    """Draw flexible calibration curves: pointwise band (dark), simultaneous band (light), and the scores beneath.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `curve`, `score`, `outcome`, `low`, `high`, `lowest`, `highest`.
    scores : array-like, default None
        Scores of the rows, for the histogram.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(p, rng.random(500) < p), scores=[0.2, 0.5])
    >>> FlexibleDisplay.from_curves({"spline": curve}, plot=False).frame()["score"]
    array([0.2, 0.5])
    """

    needed = ("curve", "score", "outcome", "low", "high", "lowest", "highest")

    def __init__(self, numbers: Numbers, *, scores: ArrayLike | None = None) -> None:
        """Store the numbers, and the scores of the histogram beneath; refuse scores outside [0, 1]."""
        super().__init__(numbers)
        self.scores = None if scores is None else validation.check_scores(scores)

    @classmethod
    def from_curves(
        cls, curves: Mapping[str, FlexibleCurve], *, scores: ArrayLike | None = None, plot: bool = True, ax: Any = None
    ) -> Self:
        """Draw results of :func:`truecal.clinical.flexible_curve`.

        Parameters
        ----------
        curves : mapping of str to FlexibleCurve
            Curves by name.
        scores : array-like, default None
            Scores of the rows, for the histogram.
        plot : bool, default True
            Whether to draw now.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : FlexibleDisplay
            The display.
        """
        rows = [{"curve": name, **row} for name, curve in curves.items() for row in curve.frame()]
        return cls(Frame.from_records(rows), scores=scores)._plot_if(plot, ax)

    def _size(self) -> tuple[float, float]:
        """Return 5.5 x 5.5 inches."""
        return 5.5, 5.5

    def _draw(self, ax: Any) -> None:
        """Draw the diagonal, a line per curve (with bands for up to two), and below them a histogram of scores, if given."""
        ax.plot([0, 1], [0, 1], zorder=1, **DASHED)
        few = len(set(self._frame["curve"])) <= _MAX_BANDS
        bands = (("lowest", "highest"), ("low", "high")) if few else ()
        self._draw_lines(ax, "curve", "score", "outcome", *bands, marker="", zorder=3)
        low, high = rounded_limits(float(self._frame["score"].min()), float(self._frame["score"].max()))
        bottom, top = max(0.0, min(low, self._frame["low"].min())), min(1.0, max(high, self._frame["high"].max()))
        if self.scores is not None:
            counts, edges = np.histogram(self.scores, 50, (low, high))
            height = 0.08 * (top - bottom) * counts / max(counts.max(), 1)
            bars = {"width": np.diff(edges), "align": "edge", "color": GREY, "alpha": 0.6, "linewidth": 0}
            ax.bar(edges[:-1], height, bottom=bottom, **bars)
        ax.set(xlabel="Predicted risk", ylabel="Observed frequency", xlim=(low, high), ylim=(bottom, top))
        add_legend(ax, min_entries=2)
