"""Displays of many models: a colour and a marker per family, larger dots for larger models, whiskers for intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.plot.display import BLUE, GREY, SERIES, Display, Numbers, add_legend, axes_width, name_points
from truecal.table import Frame

NO_FAMILY = "no family"
DOTTED = {"color": GREY, "linestyle": ":", "linewidth": 1}
_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00", "#8b1a4a")
_MARKERS = "os^DvP*Xph<"  # their number is coprime to that of the colours: 88 families with different pairs
MAX_NAMED = 12  # models whose names fit beside their dots
_FULL_WIDTH = 4.5  # inches of axes below which dots become smaller


def family_styles(families: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    """Return colour and marker of every distinct family by name, in alphabetical order; None is NO_FAMILY."""
    names = sorted({NO_FAMILY if family is None else family for family in families})
    return {
        name: {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKERS[i % len(_MARKERS)]}
        for i, name in enumerate(names)
    }


def families_of(frame: Frame) -> list[str]:
    """Return the family of every row as text, NO_FAMILY if it has none."""
    return [NO_FAMILY if family is None else str(family) for family in frame["family"].tolist()]


def choose_rows(table: Any, **values: str | float | None) -> Frame:
    """Return the rows of a polars table with the given value in each named column.

    A value of None needs a column with a single value; refuses several, and values that do not occur.
    """
    for name, value in values.items():
        distinct = table[name].unique().sort().to_list()
        words = ", ".join(f"{v:g}" if isinstance(v, float) else repr(v) for v in distinct[:8])
        words += ", ..." if len(distinct) > 8 else ""
        if value is None and len(distinct) > 1:
            raise InputError(f"there is more than one {name} to draw; choose {name}= one of {words}")
        if value is not None:
            if value not in distinct:
                raise InputError(f"there is no {name} {value!r} to draw; there is {words}")
            table = table.filter(table[name] == value)
    return frame_of(table)


def frame_of(table: Any) -> Frame:
    """Convert a polars table to a Frame; nulls become None, also among numbers."""
    return Frame({name: table[name].to_list() for name in table.columns})


def draw_models(
    ax: Any,
    frame: Frame,
    x: str,
    y: str,
    *,
    bars: bool = True,
    filled: bool = True,
    styles: dict[str, dict[str, Any]] | None = None,
) -> None:
    """Draw a dot per row at columns `x` and `y` in the style of its family, with an area by `relative_size` or `size`.

    `bars` draws intervals too, if the frame has them; `filled=False` draws outlines without entries in the legend. Styles are those
    of `family_styles` unless given.
    """
    across, up = (frame[name].tolist() for name in (x, y))
    shrink = min(1.0, (axes_width(ax) / _FULL_WIDTH) ** 2)
    families, areas = families_of(frame), [area * shrink for area in _dot_areas(frame)]
    for family, style in (styles or family_styles(families)).items():
        rows = [i for i, name in enumerate(families) if name == family]
        if not rows:
            continue
        dots = {"facecolors": style["color"] if filled else "none", "edgecolors": style["color"]}
        label = family if filled else None
        points = ([column[i] for i in rows] for column in (across, up, areas))
        ax.scatter(*points, marker=style["marker"], alpha=0.85, label=label, zorder=3, **dots)
        if bars:
            _draw_whiskers(ax, frame, rows, x, y, style["color"])


def _draw_whiskers(ax: Any, frame: Frame, rows: list[int], x: str, y: str, color: str) -> None:
    """Draw the intervals of `x` and `y` of some rows, where the frame has columns of limits and they are finite.

    They are low and high for "value", else <column>_low and <column>_high.
    """
    for value, other, draw in ((y, x, ax.vlines), (x, y, ax.hlines)):
        names = (other, *(("low", "high") if value == "value" else (f"{value}_low", f"{value}_high")))
        if all(name in frame for name in names):
            ends = np.array([[frame[name].tolist()[i] for i in rows] for name in names], float)
            draw(*ends[:, np.isfinite(ends).all(axis=0)], color=color, linewidth=0.8, alpha=0.6)


def _dot_areas(frame: Frame) -> list[float]:
    """Return the area of every dot in points squared: 30 + 90 size / largest of the family, 40 if the size is unknown."""
    if "relative_size" in frame:
        relative = np.array(frame["relative_size"].tolist(), float)
    else:
        relative = np.array(frame["size"].tolist() if "size" in frame else [None] * len(frame), float)
        families = np.array(families_of(frame))
        for family in set(families):
            rows = (families == family) & np.isfinite(relative)
            relative[rows] /= relative[rows].max(initial=0.0) or 1.0
    return [float(area) for area in np.where(np.isfinite(relative), 30 + 90 * relative, 40)]


def name_models(ax: Any, frame: Frame, x: str, y: str) -> None:
    """Write the names of at most MAX_NAMED models beside their dots, where there is room; limits must be set before."""
    if len(frame) <= MAX_NAMED:
        name_points(ax, *(frame[name].tolist() for name in ("model", x, y)))


def family_legend(ax: Any, frame: Frame) -> None:
    """Add a legend of the families above the axes, unless no row has a family."""
    if set(families_of(frame)) != {NO_FAMILY}:
        add_legend(ax)


# ----------------------------------------------------------------------------------------------------
# Displays


class ConditionDisplay(Display):
    """Draw one condition of an analysis of :mod:`truecal.study`: a dataset at a severity of shift.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        The numbers to draw.
    """

    @classmethod
    def from_result(
        cls,
        result: tc.study.Analysis,
        *,
        metric: str | None = None,
        dataset: str | None = None,
        severity: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw one condition of an analysis.

        Parameters
        ----------
        result : Analysis
            The result of the analysis.
        metric : str, default None
            Which metric, where the result has several.
        dataset : str, default None
            Which dataset; None where there is only one.
        severity : float, default None
            Which severity of shift; None where there is only one.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        table = result.frame()
        values = {"metric": metric} if "metric" in table.columns and "metric" not in cls.needed else {}
        return cls._from_result(choose_rows(table, dataset=dataset, severity=severity, **values), result).plot(ax)

    @classmethod
    def _from_result(cls, frame: Frame, result: tc.study.Analysis) -> Self:
        """Return the display of the selected rows of an analysis."""
        return cls(frame)


class MetricDisplay(ConditionDisplay):
    """Draw one metric of models under one condition.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        The numbers to draw.
    metric : str, default "calibration error"
        Name of the metric.
    """

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error") -> None:
        super().__init__(numbers)
        self.metric = metric

    @classmethod
    def _from_result(cls, frame: Frame, result: tc.study.Analysis) -> Self:
        return cls(frame, metric=result.metric or str(frame["metric"][0]))

    def _draw_named(self, ax: Any, x: str, y: str, *, bars: bool = True, bottom: float | None = None) -> None:
        """Draw models with the legend of families and their names; `bottom` is the lower end of the vertical axis."""
        draw_models(ax, self._frame, x, y, bars=bars)
        ax.set_ylim(bottom=bottom)
        family_legend(ax, self._frame)
        name_models(ax, self._frame, x, y)


class ErrorCalibrationDisplay(MetricDisplay):
    """Draw models by classification error (across) and a calibration metric (up).

    `from_result` draws one condition of :func:`truecal.study.error_against_calibration`.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `family`, `error`, `value`; optionally `size` and limits.
    metric : str, default "calibration error"
        Name of the metric.

    Examples
    --------
    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [1.0, 2.0], "error": [0.1, 0.2], "value": [0.02, 0.01]}
    >>> ErrorCalibrationDisplay(frame).frame()["value"].tolist()
    [0.02, 0.01]
    """

    needed = ("model", "family", "error", "value")

    def _draw(self, ax: Any) -> None:
        ax.set(xlabel="Classification error", ylabel=self.metric)
        self._draw_named(ax, "error", "value", bottom=0)


class InOutDisplay(MetricDisplay):
    """Draw a metric on clean data (across) and on shifted data (up); on the dotted line nothing has changed.

    `from_result` draws one condition of :func:`truecal.study.in_and_out`.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `family`, `inside`, `outside`; optionally `size`.
    metric : str, default "calibration error"
        Name of the metric.

    Examples
    --------
    >>> frame = {"model": ["a"], "family": [None], "size": [None], "inside": [0.02], "outside": [0.05]}
    >>> InOutDisplay(frame).frame()["outside"].tolist()
    [0.05]
    """

    needed = ("model", "family", "inside", "outside")

    def _draw(self, ax: Any) -> None:
        inside, outside = self._columns("inside", "outside")
        ends = min(*inside, *outside), max(*inside, *outside)
        ax.plot(ends, ends, **DOTTED)
        ax.set(xlabel=f"{self.metric} on clean data", ylabel=f"{self.metric} on shifted data")
        self._draw_named(ax, "inside", "outside")


class RecalibrationDisplay(MetricDisplay):
    """Draw models by error and a calibration metric, before (hollow) and after recalibration (filled), joined by a line.

    `from_result` draws one condition of :func:`truecal.study.effect_of_recalibration`.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `family`, `error`, `before`, `after`; optionally `error_after` and `size`.
    metric : str, default "calibration error"
        Name of the metric.
    after : str, default "recalibration"
        Name of the method.

    Examples
    --------
    >>> frame = {"model": ["a"], "family": [None], "size": [None], "error": [0.1], "before": [0.05], "after": [0.01]}
    >>> RecalibrationDisplay(frame).frame()["after"].tolist()
    [0.01]
    """

    needed = ("model", "family", "error", "before", "after")

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error", after: str = "recalibration") -> None:
        super().__init__(numbers, metric=metric)
        self.after = after

    @classmethod
    def _from_result(cls, frame: Frame, result: tc.study.Analysis) -> Self:
        return cls(frame, metric=result.metric, after=result.recalibrator)

    def _draw(self, ax: Any) -> None:
        error, before, after = self._columns("error", "before", "after")
        error_after = self._columns("error_after")[0] if "error_after" in self._frame else error
        for start, end, high, low in zip(error, error_after, before, after, strict=True):
            ax.plot([start, end], [high, low], color=GREY, linewidth=0.8, alpha=0.7)
        draw_models(ax, self._frame, "error", "before", bars=False, filled=False)
        moved_frame = self._frame.with_columns(error=error_after)
        draw_models(ax, moved_frame, "error", "after", bars=False)
        ax.set(xlabel="Classification error", ylabel=f"{self.metric} (hollow: before {self.after})")
        ax.set_ylim(bottom=0)
        name_models(ax, moved_frame, "error", "after")
        family_legend(ax, self._frame)


class ResidualDisplay(MetricDisplay):
    """Draw residuals of a score against classification error; below the line a model does better than its accuracy predicts.

    `from_result` draws one score and condition of :func:`truecal.study.residuals`.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `family`, `error`, `residual`; optionally `size`.
    metric : str, default "calibration error"
        Name of the score.

    Examples
    --------
    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [None, None], "error": [0.1, 0.2], "residual": [0.02, -0.02]}
    >>> ResidualDisplay(frame).frame()["residual"].tolist()
    [0.02, -0.02]
    """

    needed = ("model", "family", "error", "residual")

    def _draw(self, ax: Any) -> None:
        ax.axhline(0, **DOTTED)
        ax.set(xlabel="Classification error", ylabel=f"{self.metric} beyond what error explains")
        self._draw_named(ax, "error", "residual", bars=False)


class ParetoDisplay(ConditionDisplay):
    """Draw models by two quantities of which less is better; those that no other beats in both are joined by a line.

    `frame()` has the columns it was given and `front`: whether a model is on the line. `from_result` draws one metric and
    condition of :func:`truecal.study.pareto`.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `name` and the two quantities.
    x : str, default "error"
        Column of the horizontal axis.
    y : str, default "calibration"
        Column of the vertical axis.

    Examples
    --------
    >>> display = ParetoDisplay({"name": ["a", "b", "c"], "error": [0.1, 0.2, 0.3], "calibration": [0.05, 0.01, 0.03]})
    >>> display.frame()["front"].tolist()  # b is better than c in both
    [True, True, False]
    """

    def __init__(self, numbers: Numbers, *, x: str = "error", y: str = "calibration") -> None:
        self.x, self.y, self.needed = x, y, ("name", x, y)
        super().__init__(numbers)
        self._frame = self._frame.with_columns(front=tc.study.on_front(*self._columns(x, y)))

    @classmethod
    def _from_result(cls, frame: Frame, result: tc.study.Analysis) -> Self:
        name = str(frame["metric"][0])
        return cls({"name": frame["model"], "error": frame["error"], name: frame["value"]}, y=name)

    def _draw(self, ax: Any) -> None:
        names, across, up, front = (np.array(column) for column in self._columns("name", self.x, self.y, "front"))
        order = np.argsort(~front, kind="stable")  # where names would cover each other, those on the line are written
        line = sorted(set(zip(across[front], up[front], strict=True)))
        ax.step(*zip(*line, strict=True), where="post", color=BLUE, linewidth=1)
        for x, y, on_line in zip(across, up, front, strict=True):
            ax.plot(x, y, marker="o" if on_line else "x", color=BLUE if on_line else GREY, linestyle="none")
        ax.set(xlabel=self.x, ylabel=self.y)
        name_points(ax, names[order].tolist(), across[order].tolist(), up[order].tolist())


class BinTrendDisplay(ConditionDisplay):
    """Draw the slope of binned errors on the classification error against their number of bins, debiased estimators at the right.

    `from_result` draws one condition of :func:`truecal.study.bin_trend`. A line that departs from the debiased ones as bins grow
    is the trend of a bias. Whiskers are intervals of the slope.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `metric`, `scheme`, `norm`, `bins`, `debiased`, `slope`, `low`, `high`.

    Examples
    --------
    >>> frame = {"metric": ["ece-mass-5-l1", "rank-series-l2"], "scheme": ["mass", None], "norm": [1.0, 2.0], "bins": [5, None]}
    >>> frame |= {"debiased": [False, True], "slope": [0.01, 0.0], "low": [0.0, -0.01], "high": [0.02, 0.01]}
    >>> BinTrendDisplay(frame).frame()["slope"].tolist()
    [0.01, 0.0]
    """

    needed = ("metric", "scheme", "norm", "bins", "debiased", "slope", "low", "high")

    def _draw(self, ax: Any) -> None:
        rows = list(self._frame)
        ax.axhline(0, **DOTTED)
        binned = sorted((row for row in rows if not row["debiased"]), key=lambda row: row["bins"])
        for i, (scheme, norm) in enumerate(sorted({(row["scheme"], row["norm"]) for row in binned})):
            group = [row for row in binned if (row["scheme"], row["norm"]) == (scheme, norm)]
            label = f"equal {scheme}, norm {norm:g}"
            x = [row["bins"] * 1.04**i for row in group]  # whiskers of several schemes stand side by side
            _draw_slopes(ax, group, x, label=label, **SERIES[i % len(SERIES)])
        ticks = {row["bins"]: f"{row['bins']:g}" for row in binned}
        debiased = [row for row in rows if row["debiased"]]
        for row in debiased:
            right = max([*ticks, 1]) * 1.6
            _draw_slopes(ax, [row], [right], color="black", marker="x", linestyle="none")
            ticks[right] = row["metric"]
        ax.set_xscale("log")
        ax.set_xticks(list(ticks), list(ticks.values()), rotation=90 if debiased else 0)
        ax.minorticks_off()
        xlabel = "Number of bins, and debiased estimators" if debiased else "Number of bins"
        ax.set(xlabel=xlabel, ylabel="Slope on classification error")
        add_legend(ax, max_columns=2)


def _draw_slopes(ax: Any, rows: list[dict[str, Any]], x: list[float], **style: Any) -> None:
    """Draw the slope of each row at `x` with its interval; `style` are keywords of `ax.errorbar`."""
    half_widths = [[row["slope"] - row["low"] for row in rows], [row["high"] - row["slope"] for row in rows]]
    ax.errorbar(x, [row["slope"] for row in rows], half_widths, capsize=1.5, markersize=4, linewidth=1, **style)


class ShiftDisplay(Display):
    """Draw a metric (or the error) against severity, a line per model in the colour and marker of its family.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `family`, `severity` and the value.
    value : str, default "value"
        Column to draw.
    label : str, default "calibration error"
        Title of the vertical axis.

    Examples
    --------
    >>> frame = {"model": ["a", "a"], "family": ["x", "x"], "severity": [0.0, 1.0], "value": [0.02, 0.05]}
    >>> ShiftDisplay(frame).frame()["value"].tolist()
    [0.02, 0.05]
    """

    def __init__(self, numbers: Numbers, *, value: str = "value", label: str = "calibration error") -> None:
        self.value, self.label, self.needed = value, label, ("model", "family", "severity", value)
        super().__init__(numbers)

    @classmethod
    def from_result(
        cls, result: tc.study.Analysis, *, dataset: str | None = None, value: str = "value", ax: Any = None
    ) -> Self:
        """Draw one dataset of :func:`truecal.study.shift`.

        Parameters
        ----------
        result : Analysis
            The result of the analysis.
        dataset : str, default None
            Which dataset; None where there is only one.
        value : str, default "value"
            Column to draw, such as "error" or "value_increase".
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : ShiftDisplay
            The display, drawn.
        """
        label = result.metric if value == "value" else value.replace("_", " ").replace("value", result.metric)
        return cls(choose_rows(result.frame(), dataset=dataset), value=value, label=label).plot(ax)

    def _draw(self, ax: Any) -> None:
        styles = family_styles(families_of(self._frame))
        frame = self._frame.with_columns(family=families_of(self._frame)).to_polars()
        frame = frame.filter(frame[self.value].is_not_null()).sort("severity")
        labelled: set[str] = set()
        for part in frame.partition_by("model", maintain_order=True):
            family = part["family"][0]
            dashes = SERIES[list(styles).index(family) % len(SERIES)]["linestyle"]
            line = {"linestyle": dashes, "linewidth": 1.2, "markersize": 4, "alpha": 0.85, **styles[family]}
            label = None if family in labelled else family
            ax.plot(part["severity"].to_list(), part[self.value].to_list(), label=label, **line)
            labelled.add(family)
        ax.set(xlabel="Severity of shift", ylabel=self.label)
        family_legend(ax, self._frame)
