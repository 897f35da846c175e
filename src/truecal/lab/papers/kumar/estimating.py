"""Kumar et al., sections 5.1 and G: how close the plug-in and the debiased estimator come to the error (Figures 4, 12 to 16)."""

from collections.abc import Callable, Sequence

import numpy as np

import truecal as tc
from truecal.lab.papers.drawing import Figure, Line, banded, lines, panels
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.papers.kumar.grouped import (
    Grouped,
    Groups,
    class_rows,
    marginal_squared,
    marginals,
    mass_edges,
    mean_interval,
    platt,
    shuffled_parts,
    top_rows,
)
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.quadrature import Array

SIZES = (250, 500, 1000, 2000, 3000)
KINDS = ("plugin", "debiased")
_FIT = 3000  # rows that fit and choose bins; the others are the truth
Estimate = Callable[[Groups], tuple[float, float]]  # of the rows drawn: plug-in, debiased


def _squared_marginals(setting: Setting, name: str, bins: Sequence[int]) -> dict[int, tuple[Estimate, int]]:
    """A scaling-binning calibrator per class and number of bins; the estimates of its squared error on some rows."""
    preds = class_rows(setting, name)
    order = np.random.default_rng(setting.rng).permutation(len(preds))
    fit, judge = preds.take(order[: _first(len(preds))]), preds.take(order[_first(len(preds)) :])
    estimates: dict[int, tuple[Estimate, int]] = {}
    for count in bins:
        after = tc.ScalingBinning(bins=count, normalize=False).fit(fit.probs, fit.labels).recalibrate(judge)
        classes = marginals(after)
        estimates[count] = (lambda rows, classes=classes: marginal_squared(classes, rows), len(judge))  # type: ignore[misc]
    return estimates


def _absolute_top(setting: Setting, name: str, bins: Sequence[int]) -> dict[int, tuple[Estimate, int]]:
    """A Platt-scaled confidence and equal-mass bins; the estimates of its binned l1 error on some rows."""
    c, y = top_rows(setting, name)
    rng = np.random.default_rng(setting.rng)
    share = _first(c.size) / c.size
    fit, judge = shuffled_parts(c.size, (share, 1 - share), rng)
    shown = platt(c, y, fit)
    estimates: dict[int, tuple[Estimate, int]] = {}
    for count in bins:
        group = np.searchsorted(mass_edges(shown[fit], count), shown[judge], side="right")

        def absolute(rows: Groups, group: Groups = group) -> tuple[float, float]:
            grouped = Grouped.of(group[rows], shown[judge][rows], y[judge][rows], np.ones((1, rows.size)))
            plugin, debiased = grouped.absolute()
            return float(plugin[0]), float(debiased[0])

        estimates[count] = (absolute, judge.size)
    return estimates


def _first(n: int) -> int:
    return min(_FIT, round(0.3 * n))


def _drawn(setting: Setting, words: str, estimate: Estimate, total: int, n: int) -> Array:
    """Both estimates on m draws of n of all rows: shape (m, 2)."""
    return setting.repeated(f"{words}, {n} rows", lambda k: estimate(setting.stream(n, k).integers(0, total, n)))


Prepare = Callable[[Setting, str, Sequence[int]], dict[int, tuple[Estimate, int]]]


def deviations(name: str, prepare: Prepare, bins: tuple[int, int], what: str) -> Callable[[Setting], Experiment]:
    """Mean squared deviation of both estimates from the error on all rows, over m draws of n rows with replacement."""

    def make(setting: Setting) -> Experiment:
        rows: list[tuple[Field, ...]] = []
        for count, (estimate, total) in prepare(setting, name, bins).items():
            truth = estimate(np.arange(total))[0]
            for n in SIZES:
                estimates = _drawn(setting, f"{what}, {count} bins", estimate, total, n)
                for kind, values in zip(KINDS, estimates.T, strict=True):
                    rows.append((count, n, kind, setting.m, truth, *mean_interval((values - truth) ** 2)))
        columns = ("bins", "n", "estimator", "m", "truth", "mean_squared_deviation", "low_90", "high_90")
        table = tidy(columns, rows)

        def draw(figure: Figure) -> None:
            for axes, count in zip(panels(figure, 2, columns=2, share_y=False), bins, strict=True):
                curves: dict[str, Line] = {}
                for kind in KINDS:
                    part = [r for r in table if (r["bins"], r["estimator"]) == (count, kind)]
                    curves[kind] = banded(part, "n", "mean_squared_deviation")
                lines(axes, curves, title=f"{count} bins", x="rows", y="mean squared deviation")

        return Experiment(name, f"how far estimates of {what} are from the truth", table, draw)

    return make


def histograms(name: str, prepare: Prepare, bins: tuple[int, int], what: str) -> Callable[[Setting], Experiment]:
    """Histogram of |estimate - truth| over m draws of 1000 rows."""

    def make(setting: Setting) -> Experiment:
        rows: list[tuple[Field, ...]] = []
        for count, (estimate, total) in prepare(setting, name, bins).items():
            truth = estimate(np.arange(total))[0]
            errors = np.abs(_drawn(setting, f"{what}, {count} bins", estimate, total, 1000) - truth)
            edges = np.linspace(0, float(errors.max()) or 1.0, 31)
            for kind, values in zip(KINDS, errors.T, strict=True):
                counts, _ = np.histogram(values, edges)
                worst = float(np.quantile(values, 0.95))
                for low, high, number in zip(edges[:-1], edges[1:], counts, strict=True):
                    share = float(number / setting.m)
                    rows.append((count, kind, setting.m, float(low), float(high), share, float(values.mean()), worst))
        table = tidy(("bins", "estimator", "m", "low", "high", "share", "mean_deviation", "deviation_95"), rows)

        def draw(figure: Figure) -> None:
            for axes, count in zip(panels(figure, 2, columns=2, share_y=False), bins, strict=True):
                for kind in KINDS:
                    part = [r for r in table if (r["bins"], r["estimator"]) == (count, kind)]
                    axes.stairs([r["share"] for r in part], [*(r["low"] for r in part), part[-1]["high"]], label=kind)
                axes.set(title=f"{count} bins", xlabel="|estimate - truth|", ylabel="share of draws")
                axes.legend()

        return Experiment(name, f"distribution of |estimate - truth|, {what}", table, draw)

    return make


figure_4 = deviations("kumar-fig4", _squared_marginals, (10, 100), "the squared marginal error")
figure_12 = deviations("kumar-fig12", _absolute_top, (15, 100), "the l1 error")
figure_13 = deviations("kumar-fig13", _absolute_top, (15, 100), "the l1 error")
figure_14 = histograms("kumar-fig14", _squared_marginals, (10, 100), "squared marginal error")
figure_15 = histograms("kumar-fig15", _absolute_top, (15, 100), "l1 error")
figure_16 = histograms("kumar-fig16", _absolute_top, (15, 100), "l1 error")
