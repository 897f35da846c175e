"""Displays of groups: forest plots, answer scales, top-k, contexts, segments, granularity."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

import truecal as tc
from truecal.clinical.summaries import Sites
from truecal.errors import InputError
from truecal.estimators.generalized import granularity
from truecal.groups import answer_scales, lower_ranks, segment_search
from truecal.lenses.lens import Lens
from truecal.plot.display import BLUE, GREEN, GREY, ORANGE, SERIES, Display, Numbers, columns, legend_above

# ----------------------------------------------------------------------------------------------------
# The forest plot: one number per site, with its interval, and the mean over sites

_LETTERS = 24  # of a site's name; a longer one would leave no room for the intervals of a small figure
_TITLES = {
    "oe": ("O/E ratio", 1.0),
    "intercept": ("Calibration intercept", 0.0),
    "slope": ("Calibration slope", 1.0),
    "ici": ("ICI", 0.0),
    "e50": ("E50", 0.0),
    "e90": ("E90", 0.0),
    "emax": ("Emax", 0.0),
    "c_statistic": ("c-statistic", None),
    "brier": ("Brier score", None),
    "scaled_brier": ("Scaled Brier score", None),
}


class ForestDisplay(Display):
    """Values with intervals, one line per site; a diamond for the mean over sites and a thin line for a new site.

    Columns: `site`, `value`, `low`, `high`, `events`, `rows`, and `kind` ("site", "mean" or "new site").

    >>> numbers = {"site": ["a"], "value": [1.1], "low": [0.9], "high": [1.3], "events": [40], "rows": [200], "kind": ["site"]}
    >>> ForestDisplay(numbers, number="oe").frame()["value"]
    array([1.1])
    """

    def __init__(self, numbers: Numbers, *, number: str = "oe") -> None:
        super().__init__(numbers, "site", "value", "low", "high", "events", "rows", "kind")
        if number not in _TITLES:
            raise InputError(f"there is no number {number!r}; there are {', '.join(_TITLES)}")
        self.number = number

    @classmethod
    def from_sites(cls, sites: Sites, number: str = "oe", *, plot: bool = True, ax: Any = None) -> Self:
        """Draw one number of :func:`truecal.clinical` with `by=`."""
        if number not in _TITLES:
            raise InputError(f"there is no number {number!r}; there are {', '.join(_TITLES)}")
        frame = sites.frame()
        count = len(frame)
        rows: dict[str, list[Any]] = {
            "site": frame["site"].tolist(),
            "value": frame[number].tolist(),
            "low": frame[f"{number}_low"].tolist(),
            "high": frame[f"{number}_high"].tolist(),
            "events": frame["events"].tolist(),
            "rows": frame["rows"].tolist(),
            "kind": ["site"] * count,
        }
        spread = sites.heterogeneity.get(number)
        if spread is not None:
            total = (int(frame["events"].sum()), int(frame["rows"].sum()))
            mean = ("mean over sites", spread.pooled.value, spread.pooled.low, spread.pooled.high, *total, "mean")
            new = ("a new site", spread.pooled.value, spread.low, spread.high, *total, "new site")
            for line in (mean, new):
                for name, value in zip(rows, line, strict=True):
                    rows[name].append(value)
        made = cls(rows, number=number)
        return made.plot(ax) if plot else made

    @staticmethod
    def shortened(name: str, letters: int = _LETTERS) -> str:
        """The beginning and the end of a long name: groups by several columns may differ in the end only.

        >>> ForestDisplay.shortened("University Hospital, female", 18)
        'University…female'
        """
        if len(name) <= letters:
            return name
        tail = (letters - 1) * 2 // 5
        return f"{name[: letters - 1 - tail].rstrip(' ,')}…{name[len(name) - tail :]}"

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure as tall as the list needs."""
        site, value, low, high, kind = columns(self._frame, "site", "value", "low", "high", "kind")
        events, rows = columns(self._frame, "events", "rows")
        axes = self._open(ax, size=(6.5, 1.2 + 0.32 * len(site)))
        title, ideal = _TITLES[self.number]
        places = np.arange(len(site))[::-1]
        if ideal is not None:
            axes.axvline(ideal, color=GREY, linestyle=(0, (4, 4)), linewidth=1, zorder=1)
        largest = max(e for e, k in zip(events, kind, strict=True) if k == "site") or 1
        for i, place in enumerate(places):
            colour = {"site": BLUE, "mean": ORANGE, "new site": GREY}[kind[i]]
            axes.plot([low[i], high[i]], [place, place], color=colour, linewidth=1.4, zorder=2)
            if kind[i] != "new site":
                size = 14 + 60 * events[i] / largest if kind[i] == "site" else 60
                axes.scatter(
                    [value[i]], [place], s=size, color=colour, marker="D" if kind[i] == "mean" else "s", zorder=3
                )
        short = [self.shortened(str(name)) for name in site]
        names = [
            f"{s}  ({e:,}/{n:,})" if k == "site" else s for s, e, n, k in zip(short, events, rows, kind, strict=True)
        ]
        axes.set_yticks(places, names, parse_math=False)
        axes.set_ylim(-0.7, len(site) - 0.3)
        if self.number == "oe":
            axes.set_xscale("log")
            from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

            span = [x for x in (0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5, 10) if min(low) * 0.8 <= x <= max(high) * 1.25]
            axes.xaxis.set_major_locator(FixedLocator(span))
            axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(f"{title}\n(sites: events/rows)")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# What words for confidence promise, and what happened

_COLUMNS = ("name", "low", "high", "count", "mean_outcome", "outcome_low", "outcome_high", "kept")


class LikertDisplay(Display):
    """One row per category: its interval as a bar, the outcome frequency with its interval as a dot on it.

    >>> import truecal as tc
    >>> report = tc.likert(tc.Predictions.from_probs([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50))
    >>> LikertDisplay(report.frame()).frame()["name"].tolist()
    ['low', 'medium', 'high']
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, *_COLUMNS)

    @classmethod
    def from_report(cls, report: answer_scales.LikertReport, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.likert`."""
        return cls(report.frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        names, low, high, count, rate, bottom, top, kept = columns(self._frame, *_COLUMNS)
        axes = self._open(ax, size=(6.0, 1.2 + 0.6 * len(names)))
        words = {True: "kept", False: "not kept", None: "not sure"}
        for row in range(len(names)):
            axes.barh(row, high[row] - low[row], left=low[row], height=0.6, color=GREY, alpha=0.25)
            if rate[row] is None:
                continue
            axes.hlines(row, bottom[row], top[row], color=BLUE, linewidth=1.5)
            axes.plot(rate[row], row, marker="o", color=BLUE)
            axes.annotate(words[kept[row]], (1.02, row), va="center", xycoords=("axes fraction", "data"))
        ticks = [f"{name} (n = {n:,})" for name, n in zip(names, count, strict=True)]
        axes.set_yticks(range(len(names)), ticks, parse_math=False)
        axes.set(xlim=(0, 1), xlabel="Promised range (grey), frequency with interval (blue)")
        return self._done()


# ----------------------------------------------------------------------------------------------------
# Calibration of the k most probable classes, method by method

_COLUMNS_TOP_K = ("method", "k", "error", "low", "high")
_HATCHES = ("", "//", "..", "xx", "\\\\")


class TopKDisplay(Display):
    """Bars of the top-k calibration error with their intervals, grouped by k, one colour and hatch per method.

    >>> display = TopKDisplay({"method": ["plain"], "k": [1], "error": [0.1], "low": [0.05], "high": [0.2]})
    >>> display.frame()["error"]
    array([0.1])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, *_COLUMNS_TOP_K)

    @classmethod
    def from_report(cls, report: lower_ranks.BeyondTop, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.groups.beyond_top`."""
        return cls(report.frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        method, k, error, low, high = columns(self._frame, *_COLUMNS_TOP_K)
        methods, ks = list(dict.fromkeys(method)), sorted(set(k))
        axes = self._open(ax)
        width = 0.8 / len(methods)
        for i, name in enumerate(methods):
            rows = [j for j in range(len(k)) if method[j] == name]
            x = [ks.index(k[j]) + (i - (len(methods) - 1) / 2) * width for j in rows]
            height = np.array([error[j] for j in rows])
            reach = np.abs(np.array([[error[j] - low[j] for j in rows], [high[j] - error[j] for j in rows]]))
            style = {"color": SERIES[i % len(SERIES)]["color"], "hatch": _HATCHES[i % len(_HATCHES)]}
            axes.bar(x, height, width, edgecolor="white", label=name, **style)
            axes.errorbar(x, height, reach, fmt="none", ecolor="black", elinewidth=1, capsize=2)
        axes.set_xticks(range(len(ks)), [str(value) for value in ks])
        axes.set(xlabel="k", ylabel="Top-k calibration error")
        legend_above(axes, 3)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# Errors in context: of groups of classes, among the rows of each label, or under any lenses

_COLUMNS_CONTEXT = ("name", "error", "low", "high", "if_calibrated", "n")


class ContextDisplay(Display):
    """One line per error: a dot with its interval, and a grey tick where a calibrated model with the same outputs would be.

    >>> display = ContextDisplay(
    ...     {"name": ["cats"], "error": [0.1], "low": [0.05], "high": [0.2], "if_calibrated": [0.03], "n": [400]}
    ... )
    >>> display.frame()["error"]
    array([0.1])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, *_COLUMNS_CONTEXT)

    @classmethod
    def from_estimates(cls, estimates: Mapping[str, tc.Estimate], ax: Any = None) -> Self:
        """Draw estimates by name."""
        rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS_CONTEXT}
        for name, estimate in estimates.items():
            interval = estimate.interval
            low, high = (None, None) if interval is None else (float(interval.low), float(interval.high))
            line = (name, float(estimate.value), low, high, estimate.chance, estimate.n)
            for column, value in zip(_COLUMNS_CONTEXT, line, strict=True):
                rows[column].append(value)
        return cls(rows).plot(ax)

    @classmethod
    def from_labels(
        cls, preds: tc.Predictions, labels: Sequence[object] | None = None, *, lens: Lens | None = None, ax: Any = None
    ) -> Self:
        """Draw the error among the rows of each label (by default of every class)."""
        chosen = labels if labels is not None else preds.classes or range(preds.class_count)
        return cls.from_estimates(
            {str(name): tc.measure(preds, lens=lens, select=tc.by_label(name)) for name in chosen}, ax=ax
        )

    @classmethod
    def from_grouping(cls, preds: tc.Predictions, grouping: tc.Grouping, ax: Any = None) -> Self:
        """Draw the error of each group's probability, and of all groups together."""
        parts = dict(zip(grouping.names, grouping.parts(preds), strict=True))
        lenses: dict[str, Lens] = {**parts, "all groups": grouping}
        return cls.from_estimates({name: tc.measure(preds, lens=lens) for name, lens in lenses.items()}, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure as tall as the list needs."""
        names, error, low, high, chance, count = columns(self._frame, *_COLUMNS_CONTEXT)
        axes = self._open(ax, size=(6.0, 1.2 + 0.4 * len(names)))
        for row in range(len(names)):
            if low[row] is not None:
                axes.hlines(row, low[row], high[row], color=BLUE, linewidth=1.5)
            axes.plot(error[row], row, marker="o", color=BLUE)
            if chance[row] is not None:
                axes.plot(chance[row], row, marker="|", color=GREY, markersize=14)
        ticks = [f"{name} (n = {n:,})" for name, n in zip(names, count, strict=True)]
        axes.set_yticks(range(len(names)), ticks, parse_math=False)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set(xlabel="Calibration error with interval; grey: a calibrated model")
        axes.set_xlim(left=0)
        return self._done()


# ----------------------------------------------------------------------------------------------------
# The segments that an audit found, with the limits of their differences

_COLUMNS_AUDIT = ("depth", "name", "region", "rows", "difference", "low", "high", "beyond")


class AuditDisplay(Display):
    """One row per segment, as a tree: score minus outcome with its limits; orange squares are beyond the tolerance.

    >>> numbers = {"depth": [0], "name": ["site is B"], "region": ["all scores"], "rows": [900]}
    >>> display = AuditDisplay({**numbers, "difference": [0.1], "low": [0.06], "high": [0.14], "beyond": [True]})
    >>> display.frame()["difference"]
    array([0.1])
    """

    def __init__(self, numbers: Numbers, *, tolerance: float | None = None) -> None:
        super().__init__(numbers, *_COLUMNS_AUDIT)
        self.tolerance = tolerance

    @classmethod
    def from_audit(cls, audit: segment_search.Audit, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.audit`."""
        return cls(audit.frame(), tolerance=audit.tolerance).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        depth, names, region, rows, value, low, high, beyond = columns(self._frame, *_COLUMNS_AUDIT)
        axes = self._open(ax, size=(7.0, 1.2 + 0.5 * len(names)))
        axes.axvline(0.0, color=GREY, linewidth=1)
        if self.tolerance is not None:
            axes.axvspan(-self.tolerance, self.tolerance, color=GREY, alpha=0.15, linewidth=0)
        for row in range(len(names)):
            colour, marker = (ORANGE, "s") if beyond[row] else (BLUE, "o")
            axes.hlines(row, low[row], high[row], color=colour, linewidth=1.5)
            axes.plot(value[row], row, marker=marker, color=colour)
        ticks = [
            f"{'    ' * level}{name}\n{'    ' * level}{where}, n = {count:,}"
            for level, name, where, count in zip(depth, names, region, rows, strict=True)
        ]
        axes.set_yticks(range(len(names)), ticks, parse_math=False)
        axes.set(
            ylim=(len(names) - 0.5, -0.5),
            xlabel="Mean score minus mean outcome,\nlimits that hold for all segments",
        )
        return self._done()


# ----------------------------------------------------------------------------------------------------
# The error against the size of the bins


class GranularityDisplay(Display):
    """The generalized error for finer and finer bins, with its spread, what a calibrated model would show, and the stable region.

    >>> frame = {"fraction": [0.5, 0.1], "value": [0.02, 0.05], "spread": [0.01, 0.01], "chance": [0.01, 0.04]}
    >>> GranularityDisplay({**frame, "bins": [3, 15], "stable": [True, True]}).frame()["bins"]
    array([ 3, 15])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "fraction", "value", "spread", "chance", "bins", "stable")

    @classmethod
    def from_sweep(cls, sweep: granularity.GranularitySweep, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.estimators.sweep_granularity`."""
        return cls(sweep.frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        names = ("value", "spread", "chance", "bins", "stable")
        value, spread, chance, bins, stable = (self._frame[name] for name in names)
        axes = self._open(ax)
        if stable.any():
            first, last = bins[stable].min(), bins[stable].max()
            axes.axvspan(first, last, color=GREEN, alpha=0.12, linewidth=0, label="stable")
        axes.errorbar(bins, value, spread, color=BLUE, marker="o", capsize=2, label="error")
        axes.plot(bins, chance, color=GREY, linestyle="--", marker="s", label="a calibrated model")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set(xlabel="Number of bins", ylabel="Generalized calibration error")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        return self._done()
