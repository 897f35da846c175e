"""Displays of decisions: abstention, net benefit, flexible curves, cost maps."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal.clinical.curves import FlexibleCurve
from truecal.clinical.decisions import DecisionComparison, DecisionCurve
from truecal.plot.display import GREEN, GREY, SERIES, Display, Numbers, columns
from truecal.plot.study import Result
from truecal.predictions import validation
from truecal.table import Frame

# ----------------------------------------------------------------------------------------------------
# What it costs to answer less often


class AbstentionDisplay(Display):
    """Cost (or error) against the share of cases answered, the most confident first; one line per model.

    Columns `low` and `high`, where there are some, are drawn as bands.

    >>> display = AbstentionDisplay({"answered": [0.5, 1.0], "cost": [0.02, 0.1], "series": ["a", "a"]})
    >>> display.frame()["cost"]
    array([0.02, 0.1 ])
    """

    def __init__(self, numbers: Numbers, *, series: str = "series", cost: str = "cost") -> None:
        super().__init__(numbers, "answered", cost, series)
        self.series, self.cost = series, cost

    @classmethod
    def from_curves(cls, curves: Mapping[str, tc.selective.RiskCoverage], *, ax: Any = None) -> Self:
        """Draw risk-coverage curves of :func:`truecal.selective.risk_coverage`, by the names of their models."""
        rows = [{"series": name, **row} for name, curve in curves.items() for row in curve.frame()]
        return cls(Frame.from_records(rows), cost="risk").plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        answered, cost, series = columns(self._frame, "answered", self.cost, self.series)
        axes = self._open(ax)
        for i, name in enumerate(dict.fromkeys(series)):
            rows = sorted((j for j in range(len(cost)) if series[j] == name), key=lambda j: (answered[j], cost[j]))
            across, style = [answered[j] for j in rows], SERIES[i % len(SERIES)]
            every = max(1, len(rows) // 20)  # a marker on each of a hundred points would hide the line
            up = [cost[j] for j in rows]
            axes.plot(across, up, label=str(name), markersize=4, markevery=every, **style)
            if "low" in self._frame and "high" in self._frame:
                low, high = (self._frame[bound][rows] for bound in ("low", "high"))
                axes.fill_between(across, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set(xlabel="Share of cases answered", ylabel=self.cost, xlim=(0, 1.02))
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# The decision curve: net benefit against the threshold


class DecisionDisplay(Display):
    """Net benefit of models with intervals, of treating everyone and no one, and of perfectly recalibrated risks.

    Columns: `model`, `threshold`, `net_benefit`, `low`, `high`, `treat_all` and `recalibrated`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> curve = tc.clinical.net_benefit(tc.Predictions.from_probs(p, rng.random(500) < p), [0.2, 0.5])
    >>> DecisionDisplay.from_curve(curve, plot=False).frame()["threshold"]
    array([0.2, 0.5])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "model", "threshold", "net_benefit", "low", "high", "treat_all", "recalibrated")

    @classmethod
    def from_curve(cls, curve: DecisionCurve | DecisionComparison, *, plot: bool = True, ax: Any = None) -> Self:
        """Draw what :func:`truecal.clinical.net_benefit` found."""
        frame = curve.frame()
        made = cls(frame if "model" in frame else frame.with_columns(model=["model"] * len(frame)))
        return made.plot(ax) if plot else made

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure; the vertical axis starts a little below 0, as decision curves are read above it."""
        model, threshold, everyone = columns(self._frame, "model", "threshold", "treat_all")
        axes = self._open(ax)
        names = list(dict.fromkeys(model))
        for i, name in enumerate(names):
            rows = [j for j in range(len(model)) if model[j] == name]
            style = {k: v for k, v in SERIES[i % len(SERIES)].items() if k != "marker"}
            x, y, low, high, best = (
                self._frame[c][rows] for c in ("threshold", "net_benefit", "low", "high", "recalibrated")
            )
            axes.plot(x, y, label=str(name), linewidth=1.8, **style)
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
            if len(names) == 1:
                axes.plot(x, best, label="recalibrated", color=GREEN, linestyle=":", linewidth=1.4)
        first = [j for j in range(len(model)) if model[j] == names[0]]
        across, all_ = np.array(threshold)[first], np.array(everyone)[first]
        axes.plot(across, all_, color=GREY, linestyle="--", linewidth=1.2, label="treat everyone")
        axes.axhline(0, color=GREY, linewidth=1.2, label="treat no one")
        top = float(max(np.max(self._frame["high"]), np.max(everyone)))
        axes.set_ylim(-0.15 * top, 1.08 * top)
        axes.set(xlabel="Threshold probability", ylabel="Net benefit")
        axes.legend(frameon=False)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# The flexible calibration curve with its bands, for one cohort or several sites

_MOST_BANDS = 2  # with more curves, bands would hide each other


class FlexibleDisplay(Display):
    """Outcome against predicted risk: curve, pointwise band (dark) and simultaneous band (light), and the scores beneath.

    Columns: `curve`, `score`, `outcome`, `low`, `high`, `lowest` and `highest`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(p, rng.random(500) < p), scores=[0.2, 0.5])
    >>> FlexibleDisplay.from_curves({"spline": curve}, plot=False).frame()["score"]
    array([0.2, 0.5])
    """

    def __init__(self, numbers: Numbers, *, scores: ArrayLike | None = None) -> None:
        super().__init__(numbers, "curve", "score", "outcome", "low", "high", "lowest", "highest")
        self.scores = None if scores is None else validation.check_scores(scores)

    @classmethod
    def from_curves(
        cls, curves: Mapping[str, FlexibleCurve], *, scores: ArrayLike | None = None, plot: bool = True, ax: Any = None
    ) -> Self:
        """Draw what :func:`truecal.clinical.flexible_curve` found, by name; `scores` of the rows give the histogram."""
        rows = [{"curve": name, **row} for name, curve in curves.items() for row in curve.frame()]
        made = cls(Frame.from_records(rows), scores=scores)
        return made.plot(ax) if plot else made

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        (curve,) = columns(self._frame, "curve")
        axes = self._open(ax, size=(5.5, 5.5))
        names = list(dict.fromkeys(curve))
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 4)), linewidth=1, zorder=1)
        for i, name in enumerate(names):
            rows = [j for j in range(len(curve)) if curve[j] == name]
            style = {k: v for k, v in SERIES[i % len(SERIES)].items() if k != "marker"}
            x, y = self._frame["score"][rows], self._frame["outcome"][rows]
            axes.plot(x, y, label=str(name), linewidth=1.8, zorder=3, **style)
            if len(names) <= _MOST_BANDS:
                for below, above, shade in (("lowest", "highest", 0.12), ("low", "high", 0.2)):
                    bottom, top = self._frame[below][rows], self._frame[above][rows]
                    axes.fill_between(x, bottom, top, color=style["color"], alpha=shade, linewidth=0, zorder=2)
        if self.scores is not None:
            count, edges = np.histogram(self.scores, 50, (0, 1))
            height = 0.08 * count / max(count.max(), 1)
            axes.bar(edges[:-1], height, width=0.02, align="edge", color=GREY, alpha=0.6, linewidth=0)
        axes.set(xlabel="Predicted risk", ylabel="Observed frequency", xlim=(0, 1), ylim=(0, 1))
        if len(names) > 1:
            axes.legend(frameon=False, loc="upper left")
        return self._done()


# ----------------------------------------------------------------------------------------------------
# The relative cost of two models that may abstain


class CostMapDisplay(Display):
    """Cost of model a relative to b over cost ratio (across) and abstention rate (up): blue where a is cheaper, orange where b is.

    Hatched where the interval of the difference holds 0: there the rows do not tell which is cheaper.

    >>> frame = {"rate": [0.0, 0.5], "cost_ratio": [0.1, 0.1], "relative": [-0.5, 0.0], "supported": [True, False]}
    >>> CostMapDisplay(frame).table().tolist()
    [[-0.5], [0.0]]
    """

    def __init__(self, numbers: Numbers, *, names: tuple[str, str] = ("a", "b")) -> None:
        super().__init__(numbers, "rate", "cost_ratio", "relative", "supported")
        self.names = names

    @classmethod
    def from_result(cls, result: Result, *, names: tuple[str, str] = ("a", "b"), ax: Any = None) -> "CostMapDisplay":
        """Draw what :func:`truecal.selective.cost_map` found."""
        return cls(result.frame(), names=names).plot(ax)

    def table(self, name: str = "relative") -> np.ndarray:
        """A column as a matrix: a row per rate, a column per cost ratio."""
        rate, ratio, value = columns(self._frame, "rate", "cost_ratio", name)
        down, across = sorted(set(rate)), sorted(set(ratio))
        matrix = np.full((len(down), len(across)), np.nan)
        for y, x, v in zip(rate, ratio, value, strict=True):
            matrix[down.index(y), across.index(x)] = v
        return matrix

    def plot(self, ax: Any = None) -> "CostMapDisplay":
        """Draw on `ax`, or on a new figure."""
        from matplotlib.colors import LinearSegmentedColormap

        matrix, doubtful = self.table(), self.table("supported") != 1
        rates, ratios = (sorted(set(column)) for column in columns(self._frame, "rate", "cost_ratio"))
        self._open(ax)
        colours = LinearSegmentedColormap.from_list("cost", ["#0072b2", "#ffffff", "#d55e00"])
        finite = np.abs(matrix[np.isfinite(matrix)])
        reach = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        x, y = _edges(ratios), _edges(rates)
        image = self.ax_.pcolormesh(x, y, np.clip(matrix, -reach, reach), cmap=colours, vmin=-reach, vmax=reach)
        for low, high, open_ in zip(y[:-1], y[1:], doubtful.any(axis=1), strict=True):
            if open_:
                self.ax_.axhspan(low, high, facecolor="none", edgecolor=GREY, hatch="///", linewidth=0)
        first, second = self.names
        self.ax_.set(xlabel="Cost of abstaining / cost of an error", ylabel="Share of cases not answered")
        self.ax_.set_title(f"blue: {first} is cheaper, orange: {second}", fontsize="medium", parse_math=False)
        bar = self.figure_.colorbar(image, ax=self.ax_, label="Relative difference of cost")
        return self._done(bar.ax)


def _edges(values: list[float]) -> np.ndarray:
    """Borders of cells around sorted values, halfway between neighbours."""
    if len(values) == 1:
        return np.array([values[0] - 0.025, values[0] + 0.025])
    middle = (np.array(values[1:]) + np.array(values[:-1])) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
