"""Roelofs et al., "Mitigating bias in calibration error estimation": bias (Figures 1, 4, 6, 7, 9-15) and power (Figure 8)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from types import MappingProxyType

import numpy as np

import truecal as tc
from papers.drawing import TRUE_LINE, Figure, heat, lines, panels, shared_legend
from papers.experiment import Array, Experiment, Field, Setting, tidy
from truecal.estimators import Estimator
from truecal.lab import (
    PAPER_WORLDS,
    Beta,
    Cell,
    Detection,
    Identity,
    Logistic,
    Power,
    Scores,
    Trial,
    Uniform,
    World,
    power_curve,
    table_of,
)

# The papers split ties by position. Saturated scores are ties too: one in six scores of a CIFAR-10 world is exactly 1.
EW = tc.BinnedECE(bins=15, scheme="width", norm=2)
EM = tc.BinnedECE(bins=15, scheme="mass", norm=2, ties="split")
DEBIASED = tc.DebiasedECE(bins=15, norm=2, ties="split")
EM_SWEEP = tc.SweepECE(scheme="mass", norm=2, ties="split")
EW_SWEEP = tc.SweepECE(scheme="width", norm=2)
KDE = tc.estimators.KernelDensityECE(norm=2)
RANK_SERIES = tc.RankSeries(norm=2)
SIZES = (200, 400, 800, 1600, 3200, 6400)
LONG_SIZES = (*SIZES, 12800)
POWER_SIZES = (500, 2000, 10_000)
POWER_ERRORS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.12)
ALPHA = 0.05
NULL_PER_REAL = 4  # calibrated datasets per miscalibrated one, so that the critical value is known well
BINS = (2, 4, 8, 16, 32, 64)

# Figure 4: bias, in percent, of the equal-width binned error on resnet110_c10, for each number of bins over SIZES.
FIGURE_4: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {
        2: (-4.34, -4.52, -4.65, -4.72, -4.78, -4.82),
        4: (-3.28, -3.71, -4.02, -4.21, -4.34, -4.42),
        8: (-1.43, -2.14, -2.69, -3.04, -3.26, -3.40),
        16: (0.62, -0.37, -1.12, -1.67, -2.01, -2.24),
        32: (2.66, 1.50, 0.52, -0.26, -0.83, -1.22),
        64: (4.54, 3.32, 2.14, 1.13, 0.30, -0.30),
    }
)


def roelofs_estimators() -> dict[str, Estimator]:
    """The six of section 5.2."""
    return {"EW": EW, "EM": EM, "EMdebias": DEBIASED, "KDE": KDE, "EWsweep": EW_SWEEP, "EMsweep": EM_SWEEP}


def figure_1(setting: Setting) -> Experiment:
    """A perfectly calibrated model with the scores of resnet110_c10: the diagram of one sample of 200, the ECE of many."""
    name, curve_world = setting.world_or("resnet110_c10")
    world = replace(curve_world, curve=Identity(), recalibration=Identity())
    (trial,) = replace(setting, own={}).trials({"EW": EW}, {"calibrated": world}, n=[200])
    percent = 100 * trial.values
    counts, edges = np.histogram(percent, bins=60)
    rows: list[tuple[Field, ...]] = [
        ("ECE of samples", float(low), float(high), int(count), float(count / setting.m), None, None)
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    bins = EW(tc.profile.Profile.from_arrays(*(part[0] for part in world.draw(200, 1, rng=setting.rng)))).bins
    assert bins is not None
    for k, (weight, score, rate) in enumerate(
        zip(bins.weight[0], bins.score_sum[0] / bins.safe[0], bins.rate[0], strict=True)
    ):
        if weight:
            rows.append(
                ("one sample", k / 15, (k + 1) / 15, int(weight), float(weight) / 200, float(score), float(rate))
            )
    table = tidy(("panel", "low", "high", "count", "share", "mean_score", "mean_outcome"), rows)
    floor = np.quantile(percent, 0.05)
    title = f"calibrated scores of {name}, n = 200: mean ECE {trial.mean:.2%}, 95 % of samples above {floor:.1f} %"

    def draw(figure: Figure) -> None:
        left, right = panels(figure, 2, columns=2, share_y=False)
        part = [r for r in table if r["panel"] == "one sample"]
        left.bar([r["low"] for r in part], [r["mean_outcome"] for r in part], width=1 / 15, align="edge", alpha=0.6)
        left.plot([r["mean_score"] for r in part], [r["mean_outcome"] for r in part], "k.")
        left.axline((0, 0), slope=1, **TRUE_LINE)
        left.set(title="one sample of 200 rows", xlabel="score", ylabel="share correct", xlim=(0, 1), ylim=(0, 1.02))
        right.stairs([float(row[4]) for row in rows[:60]], edges, fill=True, alpha=0.6)  # type: ignore[arg-type]
        title = f"{setting.m} samples"
        right.set(title=title, xlabel="ECE (%), 15 equal-width bins", ylabel="share of samples", xlim=(0, None))

    return Experiment("roelofs-fig1", title, table, draw)


def figure_4(setting: Setting) -> Experiment:
    """Bias of the equal-width binned error by number of bins and n, beside the printed figure; estimators of the user below it."""
    grid: dict[str, Estimator] = {str(b): tc.BinnedECE(bins=b, scheme="width", norm=2) for b in BINS}
    name, world = setting.world_or("resnet110_c10")
    ours = {(t.estimator_name, t.n): t for t in setting.trials(grid, {name: world}, n=SIZES)}
    rows: list[tuple[Field, ...]] = []
    labels: list[int | str] = [*BINS, *setting.own]
    for shown in labels:
        printed = FIGURE_4[shown] if isinstance(shown, int) and not setting.worlds else [np.nan] * len(SIZES)
        for n, number in zip(SIZES, printed, strict=True):
            trial = ours[str(shown), n]
            bias = 100 * trial.bias
            rows.append((shown, n, setting.m, bias, 100 * trial.standard_error, number, bias - number))
    table = tidy(("bins", "n", "m", "bias_percent", "bias_se", "paper_percent", "difference"), rows)

    def draw(figure: Figure) -> None:
        drawn = (("bias_percent", "ours"), ("paper_percent", "as printed"))[: 1 if setting.worlds else 2]
        limit = float(np.abs(table["bias_percent"].astype(float)).max())
        for axes, (column, title) in zip(panels(figure, len(drawn), columns=2), drawn, strict=True):
            numbers = np.reshape(np.array(table[column], dtype=float), (-1, len(SIZES)))
            names = {"rows": [*map(str, labels)], "columns": [*map(str, SIZES)]}
            heat(axes, numbers.tolist(), title=f"bias (%), {title}", limit=limit, **names)  # type: ignore[arg-type]

    return Experiment("roelofs-fig4", f"bias of equal-width ECE, {name}", table, draw)


class AuthorsKDE(tc.estimators.KernelDensityECE):
    """Kernel regression with the bandwidth of the authors' code: by the spread of the scores whose outcome is 1."""

    def bandwidths(self, profile: tc.profile.Profile) -> Array:
        whole = profile.whole()
        ones, of_ones = (profile.sums(name, whole)[:, 0] for name in ("y", "cy"))
        mean = of_ones / np.maximum(ones, 1)
        squares = (profile.outcomes * (profile.scores - mean[:, None]) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(squares / np.maximum(ones, 1)) * (2 * profile.size) ** -0.2)


def figure_6(setting: Setting) -> Experiment:
    """Bias by n of the six estimators, of KDE with the authors' bandwidth, and of RankSeries, in the ten worlds."""
    theirs = AuthorsKDE(norm=2)
    estimators = {**roelofs_estimators(), "KDE, authors' bandwidth": theirs, "RankSeries": RANK_SERIES}
    worlds = setting.worlds_or(PAPER_WORLDS)
    results = setting.trials(estimators, worlds, n=LONG_SIZES)

    def draw(figure: Figure) -> None:
        for axes, name in zip(panels(figure, len(worlds), columns=4, height=1.7), worlds, strict=True):
            curves = _by_n(results, name)
            lines(axes, curves, title=name, x="samples", y="bias (%)", log_x=True, zero=True, legend=False)
        shared_legend(figure, axes)

    return Experiment("roelofs-fig6", "bias by sample size", table_of(results), draw)


def figure_7(setting: Setting) -> Experiment:
    """Average estimate against the true error as T = c^d leaves the diagonal, at n = 200 and 5000."""
    distributions: dict[str, Scores] = {"Uniform": Uniform(), "Beta(1.1, 0.1)": Beta(1.1, 0.1)}
    exponents = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0)
    worlds = {f"{s} d={d:g}": World(scores, Power(d)) for s, scores in distributions.items() for d in exponents}
    results = setting.trials({"EW": EW, "EMsweep": EM_SWEEP, "RankSeries": RANK_SERIES}, worlds, n=(200, 5000))
    names = ("EW", "EMsweep", "RankSeries", *setting.own)

    def draw(figure: Figure) -> None:
        for axes, estimator in zip(panels(figure, len(names)), names, strict=True):
            curves = {}
            for scores in distributions:
                for n in (200, 5000):
                    part = [t for t in results if (t.estimator_name, t.n) == (estimator, n)]
                    part = [t for t in part if t.world_name.startswith(scores)]
                    curves[f"{scores}, n={n}"] = ([100 * t.truth for t in part], [100 * t.mean for t in part])
            axes.axline((0, 0), slope=1, **TRUE_LINE)
            lines(axes, curves, title=estimator, x="true error (%)", y="average estimate (%)", legend=False)
        shared_legend(figure, axes)

    return Experiment("roelofs-fig7", "average estimate against the true error", table_of(results), draw)


def figure_8(
    setting: Setting, *, n: tuple[int, ...] | None = None, errors: tuple[float, ...] = POWER_ERRORS
) -> Experiment:
    """Chance of missing a miscalibration c^d of uniform scores, at type I error 5 %, by its size, for three estimators.

    The critical value of each is the 95 % quantile of its estimates over 4 m calibrated datasets of the same size.
    """
    m, sizes = setting.m, n or POWER_SIZES
    estimators_by_name: dict[str, Estimator] = {"EW": EW, "EMsweep": EM_SWEEP, "RankSeries": RANK_SERIES}
    estimators = (*estimators_by_name, *setting.own)
    curves = {error: power_curve(error) for error in errors}
    worlds = {f"TCE {error:g}": World(Uniform(), curve) for error, curve in curves.items()}
    with setting.run.with_pool() as run:
        many = replace(setting, m=NULL_PER_REAL * m, run=run)
        calibrated = many.trials(estimators_by_name, {"TCE 0": World(Uniform())}, n=sizes)
        miscalibrated = replace(setting, run=run).trials(estimators_by_name, worlds, n=sizes)
    null = {(t.estimator_name, t.n): t.values for t in calibrated}
    real = {(t.estimator_name, t.n, t.world_name): t.values for t in miscalibrated}
    rows: list[tuple[Field, ...]] = []
    for size in sizes:
        for name in estimators:
            for error in errors:
                detection = _detected(null[name, size], real[name, size, f"TCE {error:g}"])
                rates = (detection.rate, detection.standard_error, 1 - detection.rate)
                rows.append((name, size, error, curves[error].d, m, *rates, detection.critical))
    columns = ("estimator", "n", "true_error", "d", "m", "power", "power_se", "miss_rate", "critical_value")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        for axes, size in zip(panels(figure, len(sizes)), sizes, strict=True):
            drawn = {}
            for name in estimators:
                part = [r for r in table if (r["estimator"], r["n"]) == (name, size)]
                drawn[name] = ([100 * float(r["true_error"]) for r in part], [float(r["miss_rate"]) for r in part])
            lines(
                *(axes, drawn),
                title=f"n = {size}",
                x="true error (%)",
                y="type II error (miss rate)",
                log_x=True,
                legend=False,
            )
        shared_legend(figure, axes)

    return Experiment("roelofs-fig8", "type II error at type I error 5 %", table, draw)


def _detected(calibrated: Array, real: Array) -> Detection:
    """How many estimates lie above the critical value, whose own Monte-Carlo error is part of the standard error."""
    slack = sqrt(ALPHA * (1 - ALPHA) / calibrated.size)
    levels = np.clip([1 - ALPHA - slack, 1 - ALPHA, 1 - ALPHA + slack], 0.0, 1.0)
    low, critical, high = np.quantile(calibrated, levels, method="higher")
    uncertain = float(np.mean(real > low) - np.mean(real > high)) / 2
    return Detection(int(np.sum(real > critical)), real.size, ALPHA, float(critical), uncertain)


def bins_and_samples(world_name: str, name: str, setting: Setting, *, spread: bool = False) -> Experiment:
    """Bias (Figures 9-11) or standard deviation (12-14) by number of bins and n; -1 bins stands for the sweep."""
    grid: dict[str, Estimator] = {}
    for b in BINS:
        for scheme in ("width", "mass"):
            grid[f"BIN {scheme} {b}"] = tc.BinnedECE(bins=b, scheme=scheme, norm=2, ties="split")
            grid[f"LB {scheme} {b}"] = tc.estimators.LabelBinnedECE(bins=b, scheme=scheme, norm=2, ties="split")
            grid[f"DEBIAS {scheme} {b}"] = tc.DebiasedECE(bins=b, scheme=scheme, norm=2, ties="split")
    grid |= {"SWEEP width -1": EW_SWEEP, "SWEEP mass -1": EM_SWEEP}
    world_name, world = setting.world_or(world_name)
    results = replace(setting, own={}).trials(grid, {world_name: world}, n=SIZES)
    rows: list[tuple[Field, ...]] = []
    for t in results:
        metric, by, number = t.estimator_name.split()
        rows.append((world_name, metric, by, int(number), t.n, t.m, 100 * t.bias, 100 * t.standard_error))
        rows[-1] += (100 * t.std, 100 * t.std_standard_error)
    columns = ("world", "metric", "scheme", "bins", "n", "m", "bias_percent", "bias_se", "std_percent", "std_se")
    table = tidy(columns, rows)
    quantity, words = ("std_percent", "standard deviation") if spread else ("bias_percent", "bias")

    def draw(figure: Figure) -> None:
        metrics = ("BIN", "LB", "DEBIAS", "SWEEP")
        heights = (len(BINS), len(BINS), len(BINS), 2)
        kinds = [(metric, scheme) for metric in metrics for scheme in ("width", "mass")]
        limit = float(np.abs(table[quantity].astype(float)).max())
        grid = panels(figure, 8, columns=2, share_y=False, rows_heights=heights)
        for axes, (metric, scheme) in zip(grid, kinds, strict=True):
            part = [r for r in table if (r["metric"], r["scheme"]) == (metric, scheme)]
            bins = list(dict.fromkeys(r["bins"] for r in part))
            numbers = [[float(r[quantity]) for r in part if r["bins"] == b] for b in bins]
            heat(
                *(axes, numbers),
                rows=["sweep" if b == -1 else str(b) for b in bins],
                columns=[str(n) for n in SIZES],
                title=f"{metric}, equal {scheme}: {words} (%)",
                limit=limit,
                signed=not spread,
            )

    return Experiment(name, f"{words} by bins and samples, {world_name}", table, draw)


figure_9 = partial(bins_and_samples, "resnet110_c10", "roelofs-fig9")
figure_10 = partial(bins_and_samples, "resnet_wide32_c100", "roelofs-fig10")
figure_11 = partial(bins_and_samples, "resnet152_imgnet", "roelofs-fig11")
figure_12 = partial(bins_and_samples, "resnet110_c10", "roelofs-fig12", spread=True)
figure_13 = partial(bins_and_samples, "resnet_wide32_c100", "roelofs-fig13", spread=True)
figure_14 = partial(bins_and_samples, "resnet152_imgnet", "roelofs-fig14", spread=True)


@dataclass(frozen=True)
class SweepBins:
    """The number of bins the sweep settles on."""

    estimator: tc.SweepECE

    @property
    def name(self) -> str:
        return f"the bins of {self.estimator!r}"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        return self.estimator.sweep(profile)[0].astype(np.float64)[None, :]


def figure_15(setting: Setting) -> Experiment:
    """Equal-mass error by number of bins, and the number the sweep chooses, in an uncalibrated and a calibrated world."""
    m = setting.m
    worlds = setting.worlds_or(
        {"uncalibrated": World(Uniform(), Logistic(10, -5)), "calibrated": World(Uniform(), Identity())}
    )
    sizes, bins = (200, 1000, 5000), (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    grid = {str(b): tc.BinnedECE(bins=b, scheme="mass", norm=2, ties="split") for b in bins}
    # Trials and cells of one name have the same datasets.
    cells = [Cell(w, world, n, m, (SweepBins(EM_SWEEP),)) for w, world in worlds.items() for n in sizes]
    chosen = {(cell.name, cell.n): counts[0] for cell, (counts,) in zip(cells, setting.answers(cells), strict=True)}
    rows: list[tuple[Field, ...]] = []
    for t in replace(setting, own={}).trials(grid, worlds, n=sizes):
        counts = chosen[t.world_name, t.n]
        mean, error = 100 * t.mean, 100 * float(t.values.std()) / m**0.5
        settled = (float(counts.mean()), float(counts.std()) / m**0.5)
        rows.append((t.world_name, t.n, int(t.estimator_name), m, 100 * t.truth, mean, error, *settled))
    columns = ("world", "n", "bins", "m", "truth_percent", "mean_percent", "mean_se", "sweep_bins", "sweep_bins_se")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        for axes, name in zip(panels(figure, len(worlds), columns=2, share_y=False), worlds, strict=True):
            curves = {}
            for k, n in enumerate(sizes):
                part = [r for r in table if (r["world"], r["n"]) == (name, n)]
                curves[f"n = {n}"] = ([float(r["bins"]) for r in part], [float(r["mean_percent"]) for r in part])
                axes.axvline(float(part[0]["sweep_bins"]), linestyle="--", linewidth=0.8, color=f"C{k}")
            axes.axhline(100 * worlds[name].true_error(), linestyle="--", **TRUE_LINE)
            lines(axes, curves, title=name, x="bins", y="mean equal-mass ECE (%)", log_x=True)

    title = "bins chosen by the equal-mass sweep (dashed, by n); green: the true error"
    return Experiment("roelofs-fig15", title, table, draw)


def _by_n(results: list[Trial], world_name: str) -> dict[str, tuple[list[float], list[float], list[float]]]:
    """Bias in percent over n, one line per estimator, with two standard errors as its band."""
    curves: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for t in results:
        if t.world_name == world_name:
            xs, ys, band = curves.setdefault(t.estimator_name, ([], [], []))
            xs.append(t.n)
            ys.append(100 * t.bias)
            band.append(200 * t.standard_error)
    return curves
