"""How models are drawn: a colour and a marker for each family, larger dots for larger models, whiskers for intervals."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar, Protocol, Self

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.plot.display import BLUE, GREY, SERIES, Display, Numbers, columns, name_points
from truecal.table import Frame

# ----------------------------------------------------------------------------------------------------
# How models are drawn: a colour and a marker for each family, larger dots for larger models, whiskers for intervals

_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00", "#8b1a4a")
_MARKERS = "os^DvP*Xph<"  # as many as are coprime to the number of colours: 88 families until a pair comes again
_FEW = 12  # models whose names fit beside their dots
NO_FAMILY = "no family"


class Result(Protocol):
    """What an analysis found: a table with one row per thing to draw."""

    def frame(self) -> Any:
        """The table (polars, or columns)."""


class MetricResult(Result, Protocol):
    """The same, of one metric."""

    @property
    def metric(self) -> str:
        """The metric's name."""


class ConditionDisplay(Display):
    """A picture of one condition of an analysis of :mod:`truecal.study`: a dataset at a severity of shift."""

    named_by_result: ClassVar[tuple[str, ...]] = ()  # options of the picture that the result knows

    @classmethod
    def from_result(
        cls, result: Result, *, dataset: str | None = None, severity: float | None = None, ax: Any = None
    ) -> Self:
        """Draw one condition of the analysis; what there is only one of need not be named."""
        options = {name: getattr(result, name) for name in cls.named_by_result}
        return cls(chosen(result.frame(), dataset=dataset, severity=severity), **options).plot(ax)


def family_styles(families: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    """Colour and marker of every family, in the order of their names."""
    names = sorted({NO_FAMILY if family is None else family for family in families})
    return {
        name: {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKERS[i % len(_MARKERS)]}
        for i, name in enumerate(names)
    }


def families_of(frame: Frame) -> list[str]:
    """The family of every row."""
    return [NO_FAMILY if family is None else str(family) for family in frame["family"].tolist()]


def chosen(table: Any, **wanted_of: str | float | None) -> Frame:
    """The rows of a result that one diagram can show, as columns: those with one value of each column named.

    Where no value is wanted (None) there must be only one.
    """
    for name, wanted in wanted_of.items():
        there = table[name].unique().sort().to_list()
        if wanted is None:
            if len(there) > 1:
                raise InputError(f"there is more than one {name} to draw; choose {name}= one of {_listed(there)}")
            continue
        if wanted not in there:
            raise InputError(f"there is no {name} {wanted!r} to draw; there is {_listed(there)}")
        table = table.filter(table[name] == wanted)
    return frame_of(table)


def frame_of(table: Any) -> Frame:
    """A polars table as a frame; what is null stays None, also among numbers."""
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
    """A dot per model, its family's colour and marker, its size by `relative_size` or `size` within the family.

    `styles` are those of all families where several diagrams must agree.
    """
    across, up = columns(frame, x, y)
    families, sizes = families_of(frame), _areas(frame)
    for family, style in (styles or family_styles(families)).items():
        rows = [i for i, name in enumerate(families) if name == family]
        if not rows:
            continue
        face = style["color"] if filled else "none"
        ax.scatter(
            [across[i] for i in rows],
            [up[i] for i in rows],
            [sizes[i] for i in rows],
            marker=style["marker"],
            facecolors=face,
            edgecolors=style["color"],
            alpha=0.85,
            label=family if filled else None,
            zorder=3,
        )
        if bars:
            _whiskers(ax, frame, rows, x, y, style["color"])


def name_models(ax: Any, frame: Frame, x: str, y: str) -> None:
    """The names of few models beside their dots; the limits of the axes are set before."""
    names, across, up = columns(frame, "model", x, y)
    if len(names) <= _FEW:
        name_points(ax, names, across, up)


def family_legend(ax: Any, frame: Frame) -> None:
    """A legend where there are families to tell apart."""
    if set(families_of(frame)) != {NO_FAMILY}:
        for text in ax.legend(frameon=False).get_texts():
            text.set_parse_math(False)


def _whiskers(ax: Any, frame: Frame, rows: list[int], x: str, y: str, color: str) -> None:
    for value, other, draw in ((y, x, ax.vlines), (x, y, ax.hlines)):
        ends = ("low", "high") if value == "value" else (f"{value}_low", f"{value}_high")
        if not all(name in frame for name in ends):
            continue
        low, high, across = columns(frame, *ends, other)
        known = [i for i in rows if low[i] is not None and high[i] is not None]
        where = [across[i] for i in known]
        draw(where, [low[i] for i in known], [high[i] for i in known], color=color, linewidth=0.8, alpha=0.6)


def _areas(frame: Frame) -> list[float]:
    """Area of every dot: 30 to 120 by size within the family, 40 where sizes are unknown."""
    if "relative_size" in frame:
        (relative,) = columns(frame, "relative_size")
    else:
        size = columns(frame, "size")[0] if "size" in frame else [None] * len(frame)
        families = families_of(frame)
        most: dict[str, float] = {}
        for family, value in zip(families, size, strict=True):
            most[family] = max(most.get(family, 0.0), value or 0.0)
        relative = [value / most[f] if value else None for f, value in zip(families, size, strict=True)]
    return [40.0 if part is None or not isfinite(part) else 30 + 90 * part for part in relative]


def _listed(values: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(f"{value:g}" if isinstance(value, float) else repr(value) for value in values[:most])
    return shown + (", ..." if len(values) > most else "")


# ----------------------------------------------------------------------------------------------------
# How far estimators agree in ranking models


class AgreementDisplay(ConditionDisplay):
    """A heat map of Kendall's tau between the rankings by every two metrics; the number is written in each cell.

    `from_result` draws one condition of :func:`truecal.study.rank_agreement`.

    >>> display = AgreementDisplay({"metric_a": ["x"], "metric_b": ["y"], "tau": [0.5]})
    >>> display.table().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "metric_a", "metric_b", "tau")

    def names(self) -> list[str]:
        """The metrics, in order."""
        first, second = columns(self._frame, "metric_a", "metric_b")
        return sorted({*first, *second})

    def table(self) -> np.ndarray:
        """tau as a symmetric matrix in the order of `names()`; NaN where a pair is missing or has no tau."""
        names = self.names()
        matrix = np.full((len(names), len(names)), np.nan)
        np.fill_diagonal(matrix, 1.0)
        for a, b, tau in zip(*columns(self._frame, "metric_a", "metric_b", "tau"), strict=True):
            i, j = names.index(a), names.index(b)
            matrix[i, j] = matrix[j, i] = np.nan if tau is None else tau
        return matrix

    def plot(self, ax: Any = None) -> "AgreementDisplay":
        """Draw on `ax`, or on a new figure."""
        matrix, names = self.table(), self.names()
        side = 2.5 + 0.5 * len(names)
        self._open(ax, size=(side + 1, side))
        image = self.ax_.imshow(matrix, cmap="cividis", vmin=-1, vmax=1)
        if len(names) <= 20:
            for i, j in np.argwhere(~np.isnan(matrix)):
                shade = "black" if matrix[i, j] > 0.2 else "white"
                self.ax_.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize="small", color=shade)
        self.ax_.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
        self.ax_.set_yticks(range(len(names)), names, parse_math=False)
        bar = self.figure_.colorbar(image, ax=self.ax_, label="Kendall's tau")
        return self._done(bar.ax)


# ----------------------------------------------------------------------------------------------------
# The trend of calibration with error, against the number of bins


class BinTrendDisplay(ConditionDisplay):
    """Slope of binned errors on the classification error against their number of bins, and debiased estimators at the right.

    `from_result` draws one condition of :func:`truecal.study.bin_trend`.

    A line that leaves the debiased ones behind as bins grow is the trend of a bias. Whiskers are intervals of the slope.

    >>> frame = {"metric": ["ece-mass-5-l1", "rank-series-l2"], "scheme": ["mass", None], "norm": [1.0, 2.0], "bins": [5, None]}
    >>> frame |= {"debiased": [False, True], "slope": [0.01, 0.0], "low": [0.0, -0.01], "high": [0.02, 0.01]}
    >>> BinTrendDisplay(frame).frame()["slope"].tolist()
    [0.01, 0.0]
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "metric", "scheme", "norm", "bins", "debiased", "slope", "low", "high")

    def plot(self, ax: Any = None) -> "BinTrendDisplay":
        """Draw on `ax`, or on a new figure."""
        names = ("metric", "scheme", "norm", "bins", "debiased", "slope", "low", "high")
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns(self._frame, *names), strict=True)]
        self._open(ax)
        self.ax_.axhline(0, color=GREY, linewidth=1, linestyle=":")
        binned = [row for row in rows if not row["debiased"]]
        for i, (scheme, norm) in enumerate(sorted({(row["scheme"], row["norm"]) for row in binned})):
            group = sorted((r for r in binned if (r["scheme"], r["norm"]) == (scheme, norm)), key=lambda r: r["bins"])
            self._whiskers(
                group, [row["bins"] for row in group], label=f"equal {scheme}, norm {norm:g}", **SERIES[i % 5]
            )
        place = max([row["bins"] for row in binned], default=1)
        self.ax_.set_xscale("log")
        ticks = sorted({row["bins"] for row in binned})
        labels = [f"{tick:g}" for tick in ticks]
        for row in rows:
            if row["debiased"]:
                place *= 1.6
                self._whiskers([row], [place], color="black", marker="x", linestyle="none")
                ticks.append(place)
                labels.append(row["metric"])
        self.ax_.set_xticks(ticks, labels, rotation=60 if any(row["debiased"] for row in rows) else 0)
        self.ax_.minorticks_off()
        self.ax_.set(xlabel="Number of bins (right: debiased estimators)", ylabel="Slope on classification error")
        self.ax_.legend(frameon=False)
        return self._done()

    def _whiskers(self, rows: list[dict[str, Any]], places: list[float], **style: Any) -> None:
        slope = [row["slope"] for row in rows]
        reach = [[s - row["low"] for s, row in zip(slope, rows, strict=True)]]
        reach.append([row["high"] - s for s, row in zip(slope, rows, strict=True)])
        self.ax_.errorbar(places, slope, reach, capsize=2, markersize=5, linewidth=1.2, **style)


# ----------------------------------------------------------------------------------------------------
# Calibration against classification error


class ErrorCalibrationDisplay(ConditionDisplay):
    """Models by classification error (across) and a calibration metric (up): families by colour and marker, size by size.

    `from_result` draws one condition of :func:`truecal.study.error_against_calibration`.

    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [1.0, 2.0], "error": [0.1, 0.2], "value": [0.02, 0.01]}
    >>> ErrorCalibrationDisplay(frame).frame()["value"].tolist()
    [0.02, 0.01]
    """

    named_by_result = ("metric",)

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error") -> None:
        super().__init__(numbers, "model", "family", "error", "value")
        self.metric = metric

    def plot(self, ax: Any = None) -> "ErrorCalibrationDisplay":
        """Draw on `ax`, or on a new figure."""
        self._open(ax)
        draw_models(self.ax_, self._frame, "error", "value")
        self.ax_.set(xlabel="Classification error", ylabel=self.metric)
        self.ax_.set_ylim(bottom=0)
        name_models(self.ax_, self._frame, "error", "value")
        family_legend(self.ax_, self._frame)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# Models on clean and on shifted data


class InOutDisplay(ConditionDisplay):
    """A metric on clean data (across) and on shifted data (up); on the dotted line nothing has changed.

    `from_result` draws one condition of :func:`truecal.study.in_and_out`.

    >>> frame = {"model": ["a"], "family": [None], "size": [None], "inside": [0.02], "outside": [0.05]}
    >>> InOutDisplay(frame).frame()["outside"].tolist()
    [0.05]
    """

    named_by_result = ("metric",)

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error") -> None:
        super().__init__(numbers, "model", "family", "inside", "outside")
        self.metric = metric

    def plot(self, ax: Any = None) -> "InOutDisplay":
        """Draw on `ax`, or on a new figure."""
        inside, outside = columns(self._frame, "inside", "outside")
        self._open(ax)
        low, high = min(*inside, *outside), max(*inside, *outside)
        self.ax_.plot([low, high], [low, high], color=GREY, linestyle=":", linewidth=1)
        draw_models(self.ax_, self._frame, "inside", "outside")
        self.ax_.set(xlabel=f"{self.metric} on clean data", ylabel=f"{self.metric} on shifted data")
        name_models(self.ax_, self._frame, "inside", "outside")
        family_legend(self.ax_, self._frame)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# Models that no other model beats in both of two respects


class ParetoDisplay(Display):
    """Models as points in two respects of which less is better; those that no other beats in both are joined by a line.

    `frame()` has the columns it was given and `front`, which says who is on the line.

    >>> display = ParetoDisplay({"name": ["a", "b", "c"], "error": [0.1, 0.2, 0.3], "calibration": [0.05, 0.01, 0.03]})
    >>> display.frame()["front"].tolist()  # b is better than c in both
    [True, True, False]
    """

    def __init__(self, numbers: Numbers, *, x: str = "error", y: str = "calibration") -> None:
        super().__init__(numbers, "name", x, y)
        self._frame = self._frame.with_columns(front=tc.study.on_front(*columns(self._frame, x, y)))
        self.x, self.y = x, y

    @classmethod
    def from_result(
        cls,
        result: Result,
        *,
        metric: str | None = None,
        dataset: str | None = None,
        severity: float | None = None,
        ax: Any = None,
    ) -> "ParetoDisplay":
        """Draw one metric and condition of :func:`truecal.study.pareto`."""
        frame = chosen(result.frame(), metric=metric, dataset=dataset, severity=severity)
        name = str(frame["metric"][0])
        return cls({"name": frame["model"], "error": frame["error"], name: frame["value"]}, y=name).plot(ax)

    def plot(self, ax: Any = None) -> "ParetoDisplay":
        """Draw on `ax`, or on a new figure."""
        names, across, up, front = columns(self._frame, "name", self.x, self.y, "front")
        self._open(ax)
        line = sorted({(a, b) for a, b, on in zip(across, up, front, strict=True) if on})
        self.ax_.step(*zip(*line, strict=True), where="post", color=BLUE, linewidth=1)
        for a, b, on in zip(across, up, front, strict=True):
            self.ax_.plot(a, b, marker="o" if on else "x", color=BLUE if on else GREY, linestyle="none")
        self.ax_.set(xlabel=self.x, ylabel=self.y)
        # those on the line first: where names would cover each other, theirs stay
        order = sorted(range(len(names)), key=lambda i: not front[i])
        name_points(self.ax_, *([column[i] for i in order] for column in (names, across, up)))
        return self._done()


# ----------------------------------------------------------------------------------------------------
# What recalibration does to every model


class RecalibrationDisplay(ConditionDisplay):
    """Models by error and a calibration metric, before (hollow) and after recalibration (filled), joined by a line.

    `from_result` draws one condition of :func:`truecal.study.effect_of_recalibration`.

    >>> frame = {"model": ["a"], "family": [None], "size": [None], "error": [0.1], "before": [0.05], "after": [0.01]}
    >>> RecalibrationDisplay(frame).frame()["after"].tolist()
    [0.01]
    """

    named_by_result = ("metric", "after")

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error", after: str = "recalibration") -> None:
        super().__init__(numbers, "model", "family", "error", "before", "after")
        self.metric, self.after = metric, after

    def plot(self, ax: Any = None) -> "RecalibrationDisplay":
        """Draw on `ax`, or on a new figure."""
        error, before, after = columns(self._frame, "error", "before", "after")
        self._open(ax)
        later = columns(self._frame, "error_after")[0] if "error_after" in self._frame else error
        for a, b, low, high in zip(error, later, before, after, strict=True):
            self.ax_.plot([a, b], [low, high], color=GREY, linewidth=0.8, alpha=0.7)
        draw_models(self.ax_, self._frame, "error", "before", bars=False, filled=False)
        draw_models(self.ax_, self._frame.with_columns(error=later), "error", "after", bars=False)
        self.ax_.set(xlabel="Classification error", ylabel=f"{self.metric} (hollow: before {self.after})")
        self.ax_.set_ylim(bottom=0)
        name_models(self.ax_, self._frame.with_columns(error=later), "error", "after")
        family_legend(self.ax_, self._frame)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# Scores beyond what error explains


class ResidualDisplay(Display):
    """Residuals of a score against classification error; below the line a model does better than its accuracy predicts.

    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [None, None], "error": [0.1, 0.2], "residual": [0.02, -0.02]}
    >>> ResidualDisplay(frame).frame()["residual"].tolist()
    [0.02, -0.02]
    """

    def __init__(self, numbers: Numbers, *, metric: str = "score") -> None:
        super().__init__(numbers, "model", "family", "error", "residual")
        self.metric = metric

    @classmethod
    def from_result(
        cls,
        result: Result,
        *,
        metric: str | None = None,
        dataset: str | None = None,
        severity: float | None = None,
        ax: Any = None,
    ) -> "ResidualDisplay":
        """Draw one score and condition of :func:`truecal.study.residuals`."""
        frame = chosen(result.frame(), metric=metric, dataset=dataset, severity=severity)
        return cls(frame, metric=frame["metric"][0]).plot(ax)

    def plot(self, ax: Any = None) -> "ResidualDisplay":
        """Draw on `ax`, or on a new figure."""
        self._open(ax)
        self.ax_.axhline(0, color=GREY, linewidth=1, linestyle=":")
        draw_models(self.ax_, self._frame, "error", "residual", bars=False)
        self.ax_.set(xlabel="Classification error", ylabel=f"{self.metric} beyond what error explains")
        name_models(self.ax_, self._frame, "error", "residual")
        family_legend(self.ax_, self._frame)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# Models over the severity of shift


class ShiftDisplay(Display):
    """A metric (or the error) against severity, a line per model in the colour and marker of its family.

    >>> frame = {"model": ["a", "a"], "family": ["x", "x"], "severity": [0.0, 1.0], "value": [0.02, 0.05]}
    >>> ShiftDisplay(frame).frame()["value"].tolist()
    [0.02, 0.05]
    """

    def __init__(self, numbers: Numbers, *, value: str = "value", label: str = "calibration error") -> None:
        super().__init__(numbers, "model", "family", "severity", value)
        self.value, self.label = value, label

    @classmethod
    def from_result(
        cls, result: MetricResult, *, dataset: str | None = None, value: str = "value", ax: Any = None
    ) -> "ShiftDisplay":
        """Draw one dataset of :func:`truecal.study.shift`; `value` names its column, such as "error" or "value_beside_largest"."""
        label = result.metric if value == "value" else value.replace("_", " ").replace("value", result.metric)
        return cls(chosen(result.frame(), dataset=dataset), value=value, label=label).plot(ax)

    def plot(self, ax: Any = None) -> "ShiftDisplay":
        """Draw on `ax`, or on a new figure."""
        models, severity, value = columns(self._frame, "model", "severity", self.value)
        families = families_of(self._frame)
        styles = family_styles(families)
        dashes = [style["linestyle"] for style in SERIES]
        named = set()
        self._open(ax)
        for model in dict.fromkeys(models):
            rows = [i for i, name in enumerate(models) if name == model and value[i] is not None]
            if not rows:
                continue
            family = families[rows[0]]
            points = sorted((severity[i], value[i]) for i in rows)
            self.ax_.plot(
                *zip(*points, strict=True),
                label=None if family in named else family,
                linestyle=dashes[list(styles).index(family) % len(dashes)],
                linewidth=1.2,
                markersize=4,
                alpha=0.85,
                **styles[family],
            )
            named.add(family)
        self.ax_.set(xlabel="Severity of shift", ylabel=self.label)
        family_legend(self.ax_, self._frame)
        return self._done()
