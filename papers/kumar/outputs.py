"""Kumar et al. on the outputs of real models.

Section 3 and appendix C (Figures 2, 5, 6): the binned error of a Platt-scaled model grows with its bins. Sections 5.1 and G
(Figures 4, 12 to 16): how close the plug-in and the debiased estimator come to the error. Sections 4.3 and E (Figures 3a, 3b, 7):
scaling-binning against histogram binning. Figure 17: the bins that keep an error below 1.5 %.

Definitions 5.1, 5.2 and G.3 take the rows with the same output s together; p_s is their share, y_s their mean outcome and n_s
their number:

    plug-in, squared    sum_s p_s (s - y_s)^2
    debiased, squared   the same less sum_s p_s y_s (1 - y_s) / (n_s - 1)
    plug-in, l1         sum_s p_s |s - y_s|
    debiased, l1        2 |s - y_s| - E|s - R_s|, R_s ~ Normal(y_s, y_s (1 - y_s) / n_s): a folded normal, in closed form

Where recalibrations are compared, 1000 rows drawn with replacement recalibrate; the error is that of all rows, taken as the true
distribution, with rows grouped by output (definition 5.1). Histogram binning with ten rows per bin gives many bins the same output,
which lowers its error.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

import truecal as tc
from papers.drawing import Figure, Line, banded, lines, panel, panels, shared_legend
from papers.experiment import Array, Experiment, Field, Setting, the_network, tidy
from truecal.lab import PAPER_WORLDS, Frame
from truecal.recalibration import Recalibrator

Groups = npt.NDArray[np.intp]
TAIL = 0.05  # of a 90 % interval
NORMAL = 1.6449  # its normal quantile
STAND_IN = "resnet152_imgnet"
_STAND_IN_ROWS = 50_000
_UNSEEN_ROWS = 1_000_000  # of the stand-in world, for the error with few bins


def top_rows(setting: Setting, experiment: str) -> tuple[Array, Array]:
    """Confidences and outcomes of the given network, or of 50,000 rows of the ImageNet world of Roelofs et al."""
    if setting.data:
        return the_network(setting.data, experiment).test.top()
    scores, outcomes = PAPER_WORLDS[STAND_IN].draw(_STAND_IN_ROWS, 1, rng=setting.rng)
    return scores[0], outcomes[0].astype(np.float64)


def class_rows(setting: Setting, experiment: str) -> tc.Predictions:
    """The predictions of the given network; these figures are about all of its classes."""
    if not setting.data:
        raise tc.InputError(
            f"{experiment} recalibrates every class of a real network: give it with --data NAME=FILE (.npz)"
        )
    return the_network(setting.data, experiment).test.preds


def shuffled_parts(n: int, shares: Sequence[float], rng: np.random.Generator) -> list[Groups]:
    """Disjoint random parts of n rows with these shares."""
    ends = np.cumsum([round(share * n) for share in shares])
    return list(np.split(rng.permutation(n), ends[:-1]))


def platt(c: Array, y: Array) -> Callable[[Array], Array]:
    """A sigmoid in the log odds of confidences, fitted to these rows."""
    scaling = tc.recalibration.BetaCalibration(parameters=2, input="probs", clip=1e-7).fit(c, y.astype(np.int64))
    return lambda confidences: np.asarray(scaling.predict_proba(confidences)[:, 1], dtype=np.float64)


def mass_edges(c: Array, bins: int) -> Array:
    """Inner edges of bins of equal mass, each halfway between its neighbours."""
    ordered = np.sort(c)
    cuts = np.unique([round(k * c.size / bins) for k in range(1, bins)])
    return np.unique((ordered[cuts - 1] + ordered[cuts]) / 2)


@dataclass(frozen=True)
class Grouped:
    """Share, mean score, mean outcome and size of every group, for every resample: shape (resamples, groups)."""

    share: Array
    score: Array
    rate: Array
    size: Array

    @classmethod
    def of(cls, group: Groups, c: Array, y: Array, weights: Array) -> "Grouped":
        """For each row of `weights` over the rows."""
        count = int(group.max()) + 1
        size, scores, ones = (
            np.stack([np.bincount(group, w * values, count) for w in weights]).astype(np.float64)
            for values in (np.ones(c.size), c, y)
        )
        safe = np.maximum(size, 1e-300)
        return cls(size / size.sum(axis=1, keepdims=True), scores / safe, ones / safe, size)

    def squared(self) -> tuple[Array, Array]:
        """Plug-in and debiased squared error of every resample."""
        gaps = (self.score - self.rate) ** 2
        noise = np.where(self.size > 1, self.rate * (1 - self.rate) / np.maximum(self.size - 1, 1.0), 0.0)
        return (self.share * gaps).sum(axis=1), (self.share * (gaps - noise)).sum(axis=1)

    def absolute(self) -> tuple[Array, Array]:
        """Plug-in and debiased l1 error of every resample."""
        from scipy.special import ndtr

        gap = np.abs(self.score - self.rate)
        spread = np.sqrt(self.rate * (1 - self.rate) / np.maximum(self.size, 1.0))
        z = np.divide(gap, spread, out=np.full(gap.shape, 40.0), where=spread > 0)
        folded = spread * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * (1 - 2 * ndtr(-z))
        return (self.share * gap).sum(axis=1), (self.share * (2 * gap - folded)).sum(axis=1)


def marginals(preds: tc.Predictions) -> list[tuple[Groups, Array, Array]]:
    """For every class: which rows share an output, the output of each row, and its outcome."""
    classes = []
    for k in range(preds.class_count):
        column = np.asarray(preds.probs[:, k], dtype=np.float64)
        group = np.unique(column, return_inverse=True)[1]
        classes.append((group, column, (preds.labels == k).astype(np.float64)))
    return classes


def marginal_squared(classes: Sequence[tuple[Groups, Array, Array]], rows: Groups | None = None) -> tuple[float, float]:
    """Plug-in and debiased squared error, averaged over the classes (definition 2.4), of all or some rows."""
    both = []
    for group, c, y in classes:
        part = (group, c, y) if rows is None else (group[rows], c[rows], y[rows])
        both.append([float(v[0]) for v in Grouped.of(*part, np.ones((1, part[1].size))).squared()])
    plugin, debiased = np.mean(both, axis=0)
    return float(plugin), float(debiased)


def mean_interval(values: Array) -> tuple[float, float, float]:
    """Mean and 90 % normal interval of the mean."""
    mean = float(values.mean())
    error = NORMAL * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, mean - error, mean + error


Scheme = Literal["mass", "width"]
BINS = (2, 5, 10, 15, 20, 30, 50, 100)
_LARGE = 25_000  # rows from which the split is that of ImageNet
Binned = tuple[Groups, Array, Array]  # the bin, score and outcome of every row
_BATCH = 50  # resamples at a time


def _shares(n: int) -> tuple[float, float, float]:
    """Rows to fit, to choose bins and to measure: (20000, 5000, 25000) of ImageNet, (1000, 1000, 8000) of CIFAR-10."""
    return (0.4, 0.1, 0.5) if n >= _LARGE else (0.1, 0.1, 0.8)


def binned_errors(name: str, norm: int, schemes: tuple[Scheme, ...]) -> Callable[[Setting], Experiment]:
    """Plug-in and debiased binned error by number of bins, with 90 % bootstrap intervals over m resamples.

    A resample's truth is the plug-in error of the data, P: the limits are e - (q(0.95) - P) and e - (q(0.05) - P), on the squared
    scale for l2, each cut at 0 and in this order. The plug-in estimate itself lies above its interval where its bias is larger than
    its noise. `rise` is the estimate less that with 2 bins, whose standard error is that of differences over the same resamples.
    Where rows are those of a world, `world_error` is the error with these bins of a million scores and their P(y = 1).
    """

    def make(setting: Setting) -> Experiment:
        rng = np.random.default_rng(setting.rng)
        c, y = top_rows(setting, name)
        fit, choose, judge = shuffled_parts(c.size, _shares(c.size), rng)
        scaled = platt(c[fit], y[fit])
        outputs = scaled(c)
        draws = [
            rng.multinomial(judge.size, np.full(judge.size, 1 / judge.size), k).astype(np.float64)
            for k in _batches(setting.m)
        ]
        unseen, rates = np.empty(0), np.empty(0)
        if not setting.data:
            unseen, rates = (values[0] for values in PAPER_WORLDS[STAND_IN].draw_rates(_UNSEEN_ROWS, rng=setting.rng))
            unseen = scaled(unseen)
        rows: list[tuple[Field, ...]] = []
        for scheme in schemes:
            fewest: dict[str, tuple[float, Array]] = {}
            for bins in BINS:
                edges = np.arange(1, bins) / bins if scheme == "width" else mass_edges(outputs[choose], bins)
                side: Literal["left", "right"] = "left" if scheme == "width" else "right"
                group, unseen_group = (np.searchsorted(edges, values, side=side) for values in (outputs[judge], unseen))
                world_error = _error_of_rates(unseen_group, unseen, rates, norm) if unseen.size else np.nan
                for kind, estimate, resampled, *limits in _error_rows((group, outputs[judge], y[judge]), draws, norm):
                    least, least_resampled = fewest.setdefault(kind, (estimate, resampled))
                    rise_se = float((resampled - least_resampled).std(ddof=1))
                    power = (estimate, float(resampled.std(ddof=1)), estimate - least, rise_se)
                    rows.append((scheme, bins, kind, int(judge.size), setting.m, *power, *limits, float(world_error)))
        columns = (
            *("scheme", "bins", "estimator", "n", "resamples"),
            *("power", "power_se", "rise", "rise_se"),  # power: the error to the power of the norm, signed
            *("error", "low_90", "high_90", "world_error"),
        )
        table = tidy(columns, rows)

        def draw(figure: Figure) -> None:
            for axes, scheme in zip(panels(figure, len(schemes), columns=2), schemes, strict=True):
                curves: dict[str, Line] = {}
                for kind in ("plugin", "debiased"):
                    part = [r for r in table if (r["scheme"], r["estimator"]) == (scheme, kind)]
                    curves[kind] = banded(part, "bins", "error")
                lines(axes, curves, title=f"equal {scheme}", x="bins", y=f"binned l{norm} error", log_x=True)

        return Experiment(name, f"binned l{norm} error of a Platt-scaled model, with 90 % intervals", table, draw)

    return make


def _batches(m: int) -> list[int]:
    return [_BATCH] * (m // _BATCH) + ([m % _BATCH] if m % _BATCH else [])


def _error_of_rates(group: Groups, outputs: Array, rates: Array, norm: int) -> float:
    """Error of outputs whose P(y = 1) are known, with these bins."""
    size, scores, expected = (np.bincount(group, values) for values in (np.ones(group.size), outputs, rates))
    filled = size > 0
    gaps = np.abs(scores[filled] - expected[filled]) / size[filled]
    return float(np.sum(size[filled] / group.size * gaps**norm) ** (1 / norm))


def _error_rows(data: Binned, draws: list[Array], norm: int) -> list[tuple[str, float, Array, float, float, float]]:
    """For both estimators the error to the power of the norm, of the rows and of every resample, and the error, low and high."""

    def both(weights: Array) -> tuple[Array, Array]:
        grouped = Grouped.of(*data, weights)
        return grouped.absolute() if norm == 1 else grouped.squared()

    def error_of(value: Array | float) -> Array:
        return np.maximum(value, 0.0) ** (1 / norm)

    whole = both(np.ones((1, data[1].size)))
    resampled = [both(weights) for weights in draws]
    rows: list[tuple[str, float, Array, float, float, float]] = []
    for k, kind in enumerate(("plugin", "debiased")):
        values = np.concatenate([part[k] for part in resampled])
        estimate, truth = float(whole[k][0]), float(whole[0][0])
        low, high = (float(error_of(estimate - (q - truth))) for q in np.quantile(values, [1 - TAIL, TAIL]))
        rows.append((kind, estimate, values, float(error_of(estimate)), low, high))
    return rows


figure_2 = binned_errors("kumar-fig2", 2, ("mass",))
figure_5 = binned_errors("kumar-fig5", 1, ("mass", "width"))
figure_6 = binned_errors("kumar-fig6", 1, ("mass", "width"))


SIZES = (250, 500, 1000, 2000, 3000)
KINDS = ("plugin", "debiased")
NAMES = {"plugin": "plug-in", "debiased": "debiased"}
_FIT_ROWS = 3000  # rows that fit and choose bins; the others are the truth
Estimates = Callable[[Groups], tuple[float, float]]  # of the rows drawn: plug-in, debiased


def _squared_marginals(setting: Setting, name: str, bins: Sequence[int]) -> dict[int, tuple[Estimates, int]]:
    """A scaling-binning calibrator per class and number of bins; the estimates of its squared error on some rows."""
    preds = class_rows(setting, name)
    order = np.random.default_rng(setting.rng).permutation(len(preds))
    fit, judge = preds.take(order[: _first(len(preds))]), preds.take(order[_first(len(preds)) :])
    estimates: dict[int, tuple[Estimates, int]] = {}
    for count in bins:
        after = (
            tc.recalibration.ScalingBinning(bins=count, normalize=False).fit(fit.probs, fit.labels).recalibrate(judge)
        )
        classes = marginals(after)
        estimates[count] = (lambda rows, classes=classes: marginal_squared(classes, rows), len(judge))  # type: ignore[misc]
    return estimates


def _absolute_top(setting: Setting, name: str, bins: Sequence[int]) -> dict[int, tuple[Estimates, int]]:
    """A Platt-scaled confidence and equal-mass bins; the estimates of its binned l1 error on some rows."""
    c, y = top_rows(setting, name)
    rng = np.random.default_rng(setting.rng)
    share = _first(c.size) / c.size
    fit, judge = shuffled_parts(c.size, (share, 1 - share), rng)
    outputs = platt(c[fit], y[fit])(c)
    estimates: dict[int, tuple[Estimates, int]] = {}
    for count in bins:
        group = np.searchsorted(mass_edges(outputs[fit], count), outputs[judge], side="right")

        def absolute(rows: Groups, group: Groups = group) -> tuple[float, float]:
            grouped = Grouped.of(group[rows], outputs[judge][rows], y[judge][rows], np.ones((1, rows.size)))
            plugin, debiased = grouped.absolute()
            return float(plugin[0]), float(debiased[0])

        estimates[count] = (absolute, judge.size)
    return estimates


def _first(n: int) -> int:
    return min(_FIT_ROWS, round(0.3 * n))


def _estimates(setting: Setting, words: str, estimate: Estimates, total: int, n: int) -> Array:
    """Both estimates on m draws of n of all rows: shape (m, 2)."""
    return setting.repeated(f"{words}, {n} rows", lambda k: estimate(setting.stream(n, k).integers(0, total, n)))


Prepare = Callable[[Setting, str, Sequence[int]], dict[int, tuple[Estimates, int]]]


def deviations(name: str, prepare: Prepare, bins: tuple[int, int], what: str) -> Callable[[Setting], Experiment]:
    """Mean squared deviation of both estimates from the error on all rows, over m draws of n rows with replacement."""

    def make(setting: Setting) -> Experiment:
        rows: list[tuple[Field, ...]] = []
        for count, (estimate, total) in prepare(setting, name, bins).items():
            truth = estimate(np.arange(total))[0]
            for n in SIZES:
                estimates = _estimates(setting, f"{what}, {count} bins", estimate, total, n)
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
                lines(axes, curves, title=f"{count} bins", x="rows", y="mean squared deviation", log_x=True)
                axes.set_yscale("log")

        return Experiment(name, f"how far estimates of {what} are from the truth", table, draw)

    return make


def histograms(name: str, prepare: Prepare, bins: tuple[int, int], what: str) -> Callable[[Setting], Experiment]:
    """Histogram of |estimate - truth| over m draws of 1000 rows."""

    def make(setting: Setting) -> Experiment:
        rows: list[tuple[Field, ...]] = []
        for count, (estimate, total) in prepare(setting, name, bins).items():
            truth = estimate(np.arange(total))[0]
            errors = np.abs(_estimates(setting, f"{what}, {count} bins", estimate, total, 1000) - truth)
            edges = np.linspace(0, float(errors.max()) or 1.0, 31)
            for kind, values in zip(KINDS, errors.T, strict=True):
                counts, _ = np.histogram(values, edges)
                mean, se = float(values.mean()), float(values.std(ddof=1)) / setting.m**0.5
                worst = float(np.quantile(values, 0.95))
                for low, high, number in zip(edges[:-1], edges[1:], counts, strict=True):
                    share = float(number / setting.m)
                    rows.append((count, kind, setting.m, float(low), float(high), share, mean, se, worst))
        columns = ("bins", "estimator", "m", "low", "high", "share", "mean_deviation", "mean_se", "deviation_95")
        table = tidy(columns, rows)

        def draw(figure: Figure) -> None:
            for axes, count in zip(panels(figure, 2, columns=2, share_y=False), bins, strict=True):
                for kind in KINDS:
                    part = [r for r in table if (r["bins"], r["estimator"]) == (count, kind)]
                    axes.stairs(
                        [r["share"] for r in part], [*(r["low"] for r in part), part[-1]["high"]], label=NAMES[kind]
                    )
                axes.set(title=f"{count} bins", xlabel="|estimate - truth|", ylabel="share of draws")
                axes.locator_params(axis="x", nbins=5)
                axes.ticklabel_format(axis="x", style="sci", scilimits=(-2, 2))
                axes.legend()

        return Experiment(name, f"distribution of |estimate - truth|, {what}", table, draw)

    return make


figure_4 = deviations("kumar-fig4", _squared_marginals, (10, 100), "the squared marginal error")
figure_12 = deviations("kumar-fig12", _absolute_top, (15, 100), "the l1 error")
figure_13 = deviations("kumar-fig13", _absolute_top, (15, 100), "the l1 error")
figure_14 = histograms("kumar-fig14", _squared_marginals, (10, 100), "squared marginal error")
figure_15 = histograms("kumar-fig15", _absolute_top, (15, 100), "l1 error")
figure_16 = histograms("kumar-fig16", _absolute_top, (15, 100), "l1 error")


METHODS = ("histogram binning", "scaling-binning")
_RECALIBRATION_ROWS = 1000  # to recalibrate
_COMPARED_COLUMNS = (
    "bins",
    "method",
    "repeats",
    "squared_error",
    "low_90",
    "high_90",
    "mean_squared_error",
    "below_histogram",
    "below_se",
)


def _maker(method: str, bins: int, *, top: bool) -> Recalibrator:
    if top:
        scaling = tc.recalibration.BetaCalibration(parameters=2, input="probs", clip=1e-7)
        histogram: Recalibrator = tc.recalibration.HistogramBinning(bins=bins, input="probs")
        return (
            histogram
            if method == METHODS[0]
            else tc.recalibration.ScalingBinning(bins=bins, input="probs", scaling=scaling)
        )
    if method == METHODS[0]:
        return tc.recalibration.HistogramBinning(bins=bins, normalize=False)
    return tc.recalibration.ScalingBinning(bins=bins, normalize=False)


def _compared(errors: dict[tuple[int, str], Array], repeats: int) -> Frame:
    """`errors`: squared error and squared loss of every repeat, shape (repeats, 2)."""
    rows: list[tuple[Field, ...]] = []
    for (bins, method), repeated in errors.items():
        squared, losses = repeated.T
        histogram = errors[bins, METHODS[0]][:, 0]
        below = 1 - squared.mean() / histogram.mean()
        # Both methods see the same rows: the error of the ratio is that of a paired difference.
        paired = (squared - (1 - below) * histogram) / histogram.mean()
        se = float(paired.std(ddof=1)) / repeats**0.5
        rows.append((bins, method, repeats, *mean_interval(squared), float(losses.mean()), float(below), se))
    return tidy(_COMPARED_COLUMNS, rows)


def _marginal(setting: Setting, name: str, bins: Sequence[int]) -> dict[tuple[int, str], Array]:
    """Every class recalibrated by itself, without renormalising; errors averaged, squared losses summed over classes."""
    preds = class_rows(setting, name)

    def one(k: int, count: int, method: str) -> tuple[float, float]:
        rows = setting.stream(k).integers(0, len(preds), _RECALIBRATION_ROWS)
        fitted = _maker(method, count, top=False).fit(preds.probs[rows], preds.labels[rows])
        after = fitted.recalibrate(preds)
        return marginal_squared(marginals(after))[0], _squared_loss(after)

    return {
        (count, method): setting.repeated(
            f"marginal error, {method}, {count} bins", partial(one, count=count, method=method)
        )
        for count in bins
        for method in METHODS
    }


def _squared_loss(preds: tc.Predictions) -> float:
    truth = np.eye(preds.class_count)[preds.labels]
    return float(np.mean(np.sum((preds.probs - truth) ** 2, axis=1)))


def figure_3a(setting: Setting) -> Experiment:
    """Squared marginal error by number of bins. The paper: 35 % lower with scaling-binning at 100 bins."""
    table = _compared(_marginal(setting, "kumar-fig3a", (10, 20, 40, 60, 80, 100)), setting.m)
    return _by_bins("kumar-fig3a", "squared marginal calibration error, 1000 rows to recalibrate", table)


def figure_3b(setting: Setting) -> Experiment:
    """Squared error against mean squared error. The paper: 9 % lower mean squared error at a calibration error <= 0.02."""
    errors = _marginal(setting, "kumar-fig3b", (5, 10, 15, 20, 30, 40, 60, 80, 100))
    compared = _compared(errors, setting.m)
    gain = lower_loss_at(compared, 0.02)
    draws = setting.stream(1).integers(0, setting.m, (100, setting.m))
    again = [lower_loss_at(_compared({k: e[rows] for k, e in errors.items()}, setting.m), 0.02) for rows in draws]
    finite = np.array([value for value in again if np.isfinite(value)])
    gain_se = float(finite.std(ddof=1)) if finite.size > 1 else float("nan")
    table = Frame.from_records([{**row, "gain_at_0.02": gain, "gain_se": gain_se} for row in compared])

    def draw(figure: Figure) -> None:
        axes = panel(figure, wide=True)
        for k, (method, above) in enumerate(zip(METHODS, (4, -9), strict=True)):
            part = [r for r in table if r["method"] == method and r["bins"] >= 10]
            half = [(r["high_90"] - r["low_90"]) / 2 for r in part]
            x, y = ([r[name] for r in part] for name in ("squared_error", "mean_squared_error"))
            axes.errorbar(x, y, xerr=half, fmt=".", label=f"{method}, 90 % intervals")
            for r in part:
                if r["bins"] in (10, 20, 40, 100):
                    position = (r["squared_error"], r["mean_squared_error"])
                    axes.annotate(
                        str(r["bins"]), position, (2, above), textcoords="offset points", color=f"C{k}", size=6
                    )
        axes.set_yscale("log")
        axes.axvline(0.02**2, color="grey", linestyle="--", linewidth=0.8, label="calibration error 0.02")
        axes.set(xlabel="squared calibration error", ylabel="mean squared error, all classes")
        axes.legend()

    title = f"mean squared error {gain:.1%} ± {gain_se:.1%} lower at a calibration error <= 0.02; 10 to 100 bins"
    return Experiment("kumar-fig3b", title, table, draw)


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
        rows = setting.stream(k).integers(0, c.size, _RECALIBRATION_ROWS)
        fitted = _maker(method, bins, top=True).fit(c[rows], y[rows].astype(np.int64))
        outputs = np.asarray(fitted.predict_proba(c)[:, 1], dtype=np.float64)
        group = np.unique(outputs, return_inverse=True)[1]
        squared = float(Grouped.of(group, outputs, y, np.ones((1, c.size))).squared()[0][0])
        return squared, float(np.mean((outputs - y) ** 2))

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
        lines(panel(figure), curves, x="bins", y="squared calibration error")

    return Experiment(name, title, table, draw)


def figure_17(setting: Setting) -> Experiment:
    """Mean squared error against 90 % upper bounds of the calibration error: how many bins may one promise 1.5 % with?

    6000 rows recalibrate, 4000 measure; bounds from the variance of 100 bootstrap resamples. m random splits of the rows.
    """
    preds = class_rows(setting, "kumar-fig17")
    records = []
    for split in range(setting.m):
        choice = tc.recalibration.choose_bins(
            *(preds, 0.015),
            bins=tuple(range(10, 101, 5)),
            fit_share=0.6,
            resamples=100,
            level=0.9,
            rng=setting.seed + split,
        )
        allowed = {kind: [c for c in choice.candidates if getattr(c, f"{kind}_upper") <= 0.015] for kind in KINDS}
        best = {kind: min(cs, key=lambda c: c.mean_squared_error, default=None) for kind, cs in allowed.items()}
        chosen = {f"chosen_{kind}": 0 if c is None else c.bins for kind, c in best.items()}
        losses = {f"loss_{kind}": np.nan if c is None else c.mean_squared_error for kind, c in best.items()}
        records += [{"split": split, "m": setting.m, **vars(c), **chosen, **losses} for c in choice.candidates]
    table = Frame.from_records(records)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        first = [r for r in records if r["split"] == 0]
        for k, kind in enumerate(reversed(KINDS)):
            points = sorted((r[f"{kind}_upper"], r["mean_squared_error"]) for r in first)
            axes.plot(*zip(*points, strict=True), ".", color=f"C{k}")
            front = [p for i, p in enumerate(points) if all(p[1] < q[1] for q in points[:i])]
            axes.step(*zip(*front, strict=True), where="post", color=f"C{k}", label=f"{NAMES[kind]}, Pareto curve")
        axes.axvline(0.015, color="grey", linestyle="--", linewidth=0.8, label="1.5 %")
        axes.set(xlabel="90 % upper bound of the calibration error", ylabel="mean squared error")
        shared_legend(figure, axes)

    return Experiment("kumar-fig17", "bins that keep the error below 1.5 % (first split)", table, draw)
