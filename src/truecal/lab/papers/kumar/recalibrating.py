"""Kumar et al., sections 4.3 and E: scaling-binning against histogram binning on a real model (Figures 3a, 3b, 7), and Figure 17.

1000 rows drawn with replacement recalibrate; the error is that of all rows, taken as the true distribution, with rows grouped by
output (definition 5.1). Histogram binning with ten rows per bin gives many bins the same output, which lowers its error.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

import truecal as tc
from truecal.frame import Frame
from truecal.lab.papers.drawing import Figure, banded, lines
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.papers.kumar.grouped import Grouped, class_rows, marginal_squared, marginals, mean_interval, top_rows
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.quadrature import Array
from truecal.recalibrate import Recalibrator

METHODS = ("histogram binning", "scaling-binning")
_ROWS = 1000  # to recalibrate
_COLUMNS = ("bins", "method", "repeats", "squared_error", "low_90", "high_90", "mean_squared_error", "below_histogram")


def _maker(method: str, bins: int, *, top: bool) -> Recalibrator:
    if top:
        scaling = tc.BetaCalibration(parameters=2, input="probs", clip=1e-7)
        histogram: Recalibrator = tc.HistogramBinning(bins=bins, input="probs")
        return histogram if method == METHODS[0] else tc.ScalingBinning(bins=bins, input="probs", scaling=scaling)
    if method == METHODS[0]:
        return tc.HistogramBinning(bins=bins, normalize=False)
    return tc.ScalingBinning(bins=bins, normalize=False)


def _compared(errors: dict[tuple[int, str], Array], repeats: int) -> Frame:
    """`errors`: squared error and squared loss of every repeat, shape (repeats, 2)."""
    rows: list[tuple[Field, ...]] = []
    for (bins, method), repeated in errors.items():
        squared, losses = repeated.T
        histogram = errors[bins, METHODS[0]][:, 0].mean()
        means = (float(losses.mean()), float(1 - squared.mean() / histogram))
        rows.append((bins, method, repeats, *mean_interval(squared), *means))
    return tidy(_COLUMNS, rows)


def _marginal(setting: Setting, name: str, bins: Sequence[int]) -> Frame:
    """Every class recalibrated by itself, without renormalising; errors averaged, squared losses summed over classes."""
    preds = class_rows(setting, name)

    def one(k: int, count: int, method: str) -> tuple[float, float]:
        rows = setting.stream(k).integers(0, len(preds), _ROWS)
        fitted = _maker(method, count, top=False).fit(preds.probs[rows], preds.labels[rows])
        after = fitted.recalibrate(preds)
        return marginal_squared(marginals(after))[0], _squared_loss(after)

    errors = {
        (count, method): setting.repeated(
            f"marginal error, {method}, {count} bins", partial(one, count=count, method=method)
        )
        for count in bins
        for method in METHODS
    }
    return _compared(errors, setting.m)


def _squared_loss(preds: tc.Predictions) -> float:
    truth = np.eye(preds.class_count)[preds.labels]
    return float(np.mean(np.sum((preds.probs - truth) ** 2, axis=1)))


def figure_3a(setting: Setting) -> Experiment:
    """Squared marginal error by number of bins. The paper: 35 % lower with scaling-binning at 100 bins."""
    table = _marginal(setting, "kumar-fig3a", (10, 20, 40, 60, 80, 100))
    return _by_bins("kumar-fig3a", "squared marginal calibration error, 1000 rows to recalibrate", table)


def figure_3b(setting: Setting) -> Experiment:
    """Squared error against mean squared error. The paper: 9 % lower mean squared error at a calibration error <= 0.02."""
    table = _marginal(setting, "kumar-fig3b", (5, 10, 15, 20, 30, 40, 60, 80, 100))
    gain = lower_loss_at(table, 0.02)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for method in METHODS:
            part = [r for r in table if r["method"] == method]
            axes.plot([r["squared_error"] for r in part], [r["mean_squared_error"] for r in part], "o-", label=method)
        axes.axvline(0.02**2, color="grey", linestyle="--", linewidth=0.8)
        axes.set(xlabel="squared calibration error", ylabel="mean squared error, summed over classes")
        axes.legend()

    return Experiment(
        "kumar-fig3b", f"at a calibration error <= 0.02 the mean squared error is {gain:.1%} lower", table, draw
    )


def lower_loss_at(table: Frame, error: float) -> float:
    """By how much scaling-binning has the lower mean squared error among settings with at most this calibration error."""
    best = [
        min(
            (r["mean_squared_error"] for r in table if r["method"] == method and r["squared_error"] <= error**2),
            default=np.nan,
        )
        for method in METHODS
    ]
    return float(1 - best[1] / best[0])


def figure_7(setting: Setting) -> Experiment:
    """Squared top-label error by number of bins. The paper: nearly 5 times lower on ImageNet at 100 bins."""
    c, y = top_rows(setting, "kumar-fig7")

    def one(k: int, bins: int, method: str) -> tuple[float, float]:
        rows = setting.stream(k).integers(0, c.size, _ROWS)
        fitted = _maker(method, bins, top=True).fit(c[rows], y[rows].astype(np.int64))
        shown = np.asarray(fitted.predict_proba(c)[:, 1], dtype=np.float64)
        group = np.unique(shown, return_inverse=True)[1]
        squared = float(Grouped.of(group, shown, y, np.ones((1, c.size))).squared()[0][0])
        return squared, float(np.mean((shown - y) ** 2))

    errors = {
        (bins, method): setting.repeated(
            f"top-label error, {method}, {bins} bins", partial(one, bins=bins, method=method)
        )
        for bins in (1, 5, 10, 20, 30, 50, 100)
        for method in METHODS
    }
    return _by_bins(
        "kumar-fig7", "squared top-label calibration error, 1000 rows to recalibrate", _compared(errors, setting.m)
    )


def _by_bins(name: str, title: str, table: Frame) -> Experiment:
    def draw(figure: Figure) -> None:
        curves = {m: banded([r for r in table if r["method"] == m], "bins", "squared_error") for m in METHODS}
        lines(figure.subplots(), curves, x="bins", y="squared calibration error")

    return Experiment(name, title, table, draw)


def figure_17(setting: Setting) -> Experiment:
    """Mean squared error against 90 % upper bounds of the calibration error: how many bins may one promise 1.5 % with?

    6000 rows recalibrate, 4000 measure; bounds from the variance of m bootstrap resamples.
    """
    preds = class_rows(setting, "kumar-fig17")
    seed = setting.rng if isinstance(setting.rng, int) else 0
    choice = tc.choose_bins(
        preds, 0.015, bins=tuple(range(10, 101, 5)), fit_share=0.6, resamples=max(setting.m, 2), level=0.9, rng=seed
    )
    records = [
        {**vars(c), "allowed_debiased": int(c.debiased_upper <= 0.015), "allowed_plugin": int(c.plugin_upper <= 0.015)}
        for c in choice.candidates
    ]
    table = Frame.from_records(records)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for kind in ("debiased", "plugin"):
            axes.plot(table[f"{kind}_upper"], table["mean_squared_error"], "o-", label=kind)
        axes.axvline(0.015, color="grey", linestyle="--", linewidth=0.8)
        axes.set(xlabel="90 % upper bound of the calibration error", ylabel="mean squared error")
        axes.legend()

    title = (
        f"bins that keep the error below 1.5 %: debiased {choice.recommended}, plug-in {choice.recommended_by_plugin}"
    )
    return Experiment("kumar-fig17", title, table, draw)
