"""Peng, Alamzadeh and Ester, "Better calibration error estimation": one benchmark, and the figures and tests made from it.

Ten worlds, seven sample sizes, m datasets each. The paper's "recalibrated" worlds are fitted to outputs after temperature scaling,
which it does not print: a network given with --data (validation and test logits) is treated in that way. The others are
push-forwards of the printed worlds: shown through the Platt scaling fitted on endless data (`platt_scaled`), and, as the limit of
what recalibration can do, through their own true curve.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from math import log10

import numpy as np
import numpy.typing as npt

import truecal as tc
from papers.drawing import TRUE_LINE, Figure, Line, clusters, lines, panel, panels, shared_legend
from papers.experiment import Array, Experiment, Field, Network, Setting, tidy
from papers.grading import Number, average
from papers.roelofs.bias import DEBIASED, EM, EM_SWEEP, EW, RANK_SERIES
from truecal.estimators import Estimator
from truecal.lab import PAPER_WORLDS, Trial, World, dataset_of, fit_world

Indices = npt.NDArray[np.intp]
SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)
DATASETS = ("CIFAR-10", "CIFAR-100", "ImageNet")
OWN = "own worlds"
# section 4.1: the densest region of the scores, chosen by eye for each dataset
KNN_REGIONS = {"CIFAR-10": (0.998, 1.0), "CIFAR-100": (0.99, 1.0), "ImageNet": (0.98, 1.0)}
ESTIMATORS = ("EW", "EM", "DEBIASED", "SWEEP", "KNN", "RankSeries")

# Section 4.2, percent: mean bias and mean |bias| over worlds and sizes. The paper gives no others.
PAPER_MEANS: Mapping[tuple[str, str, str], tuple[float | None, float | None]] = {
    ("uncalibrated", "all", "KNN"): (-0.115, 0.183),
    ("uncalibrated", "all", "SWEEP"): (-0.281, 0.364),
    ("uncalibrated", "all", "DEBIASED"): (-0.521, None),
    ("uncalibrated", "all", "EW"): (-1.210, None),
    ("uncalibrated", "CIFAR-10", "KNN"): (-0.01, None),
    ("uncalibrated", "ImageNet", "KNN"): (-0.03, None),
    ("recalibrated", "all", "KNN"): (0.676, None),
    ("recalibrated", "all", "SWEEP"): (1.422, None),
}


def dataset(world_name: str) -> str:
    """The dataset of a printed world; worlds of the user have none."""
    return dataset_of(world_name) if world_name in PAPER_WORLDS else OWN


def datasets(setting: Setting) -> tuple[str, ...]:
    """The datasets of the worlds that are simulated."""
    return (OWN,) if setting.worlds else DATASETS


def peng_estimators(world_name: str) -> dict[str, Estimator]:
    """The estimators of the paper, with its hand-picked region for the dataset of this world, and RankSeries."""
    region = KNN_REGIONS.get(dataset(world_name))
    return {
        "EW": EW,
        "EM": EM,
        "DEBIASED": DEBIASED,
        "SWEEP": EM_SWEEP,
        "KNN": tc.NearestECE(norm=2, region=region),
        "RankSeries": RANK_SERIES,
    }


class RoundedDown(tc.NearestECE):
    """ECE_KNN with the k of equation 7 rounded down, not to the nearest: the paper does not say how it is rounded."""

    def count(self, profile: tc.profile.Profile) -> Array:
        if self.region is None:
            return super().count(profile)
        n, (low, high) = profile.size, self.region
        inside = ((profile.scores >= low) & (profile.scores <= high)).sum(axis=1)
        return np.clip(np.floor((n - inside) / (1 + np.log(n / self.alpha))), 1.0, n)


class LeastRisk(tc.NearestECE):
    """ECE_KNN with the k whose windows, each without its own row, predict the gap of that row best, for rows without ties.

    Least (1/n) sum_i ((c_i - y_i - g_i) / (1 - 1/k))^2 over k = 2, 3, 4, 6, 8, 11, ..., n, g_i the mean gap of the window.
    """

    def count(self, profile: tc.profile.Profile) -> Array:
        n = profile.rows
        tried = np.unique(np.append(np.rint(2 ** (np.arange(2, 2 * np.log2(max(n, 2)) + 1e-9) / 2)), n).clip(max=n))
        gaps = profile.scores - profile.outcomes.astype(np.float64)
        return np.array([self._best(c, g, tried.astype(int)) for c, g in zip(profile.scores, gaps, strict=True)])

    @staticmethod
    def _best(scores: Array, gaps: Array, tried: Array) -> float:
        n, sums = len(scores), np.concatenate([[0.0], np.cumsum(gaps)])
        risks = []
        for k in tried.tolist():
            middles = (scores[: n - k] + scores[k:]) / 2  # a window leaves row s for row s + k past their middle
            start = np.clip(np.searchsorted(middles, scores), np.maximum(np.arange(n) - k + 1, 0), np.arange(n))
            start = np.minimum(start, n - k)
            risks.append(float(np.mean(((gaps - (sums[start + k] - sums[start]) / k) / (1 - 1 / k)) ** 2)))
        return float(tried[int(np.argmin(risks))])


def _rounded_down(world_name: str) -> dict[str, Estimator]:
    return {"KNN": RoundedDown(norm=2, region=KNN_REGIONS.get(dataset(world_name)))}


@cache
def _printed_groups() -> dict[str, dict[str, World]]:
    return {
        "uncalibrated": dict(PAPER_WORLDS),
        "recalibrated": {name: world.platt_scaled() for name, world in PAPER_WORLDS.items()},
        "calibrated": {name: world.perfectly_recalibrated() for name, world in PAPER_WORLDS.items()},
    }


def world_groups(setting: Setting) -> dict[str, dict[str, World]]:
    """The ten worlds as they are, recalibrated (by the paper's protocol where data is given), and perfectly recalibrated."""
    if setting.worlds:
        return {
            "uncalibrated": dict(setting.worlds),
            "recalibrated": {name: world.platt_scaled() for name, world in setting.worlds.items()},
            "calibrated": {name: world.perfectly_recalibrated() for name, world in setting.worlds.items()},
        }
    groups = dict(_printed_groups())
    if setting.data:
        scaled = {name: temperature_scaled_world(network) for name, network in setting.data.items()}
        groups["recalibrated"] = {**groups["recalibrated"], **scaled}
    return groups


def temperature_scaled_world(network: Network) -> World:
    """The world fitted to the test outputs after the temperature that suits the validation outputs."""
    fit = network.held_out("the paper's recalibrated world")
    scaling = tc.recalibration.TemperatureScaling(input="logits").fit(fit.logits_or_logs(), fit.preds.labels)
    after = tc.Predictions.from_probs(scaling.predict_proba(network.test.logits_or_logs()), network.test.preds.labels)
    return fit_world(tc.TopLabel()(after)).world


def benchmark(group: str, setting: Setting) -> list[Trial]:
    """Every estimator at every n in the ten worlds of one group."""
    return setting.trials(peng_estimators, world_groups(setting)[group], n=SIZES)


def _percent(part: list[Trial]) -> tuple[Array, float]:
    """Biases in percent, and the standard error of their mean."""
    error = float(np.sqrt(np.sum([(100 * t.standard_error) ** 2 for t in part]))) / len(part)
    return np.array([100 * t.bias for t in part]), error


def means(setting: Setting) -> Experiment:
    """Mean bias and mean |bias| over worlds and sizes, by group, dataset and estimator, beside the paper's."""
    rows: list[tuple[Field, ...]] = []
    groups = world_groups(setting)
    for group in groups:
        trials_of_group = benchmark(group, setting)
        for among in ("all", *datasets(setting)):
            for name in (*ESTIMATORS, *setting.own):
                part = [
                    t for t in trials_of_group if t.estimator_name == name and among in ("all", dataset(t.world_name))
                ]
                bias, error = _percent(part)
                paper = (None, None) if setting.worlds else PAPER_MEANS.get((group, among, name), (None, None))
                size = average([Number(100 * t.bias, 100 * t.standard_error) for t in part], absolute=True)
                rows.append((group, among, name, setting.m, float(bias.mean()), error, size.value, size.se, *paper))
    columns = (
        *("worlds", "dataset", "estimator", "m", "mean_bias", "mean_bias_se", "mean_abs_bias", "mean_abs_se"),
        *("paper_bias", "paper_abs_bias"),
    )
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        for axes, group in zip(panels(figure, 3), groups, strict=True):
            part = [r for r in table if (r["worlds"], r["dataset"]) == (group, "all")]
            printed = [np.nan if r["paper_abs_bias"] is None else r["paper_abs_bias"] for r in part]
            clusters(
                *(axes, [r["estimator"] for r in part]),
                {"ours, two standard errors": [r["mean_abs_bias"] for r in part]},
                {"ours, two standard errors": [2 * r["mean_abs_se"] for r in part]},
                {"ours, two standard errors": printed},
            )
            axes.set(title=group, ylabel="mean |bias| (%)")
        shared_legend(figure, axes)

    return Experiment("peng-means", "mean |bias| over ten worlds and seven sizes", table, draw)


# Section 4.2: what is compared, between KNN and SWEEP, and the printed t.
TESTS = (("uncalibrated", "absolute bias", 4.74), ("uncalibrated", "bias", 3.50), ("recalibrated", "bias", 9.50))
_BLOCKS = 25  # of datasets, left out one after the other for the standard error of t


def t_tests(setting: Setting) -> Experiment:
    """Is KNN less biased than SWEEP? t over the settings (worlds times sizes), paired and not, with one-sided p-values.

    The printed t of 9.50 has the printed p <= 5e-14 only in a paired test of 70 settings, that of 3.50 the printed p < 5e-4 only in
    a one-sided one. Standard errors are the jackknife's over blocks of simulated datasets: `_se` where both estimators see the same
    datasets, as here, and `_apart_se` where each has its own. Both ways to round k are given.
    """
    groups = world_groups(setting)
    trials_by_group = {group: benchmark(group, setting) for group in ("uncalibrated", "recalibrated")}
    down = {group: replace(setting, own={}).trials(_rounded_down, groups[group], n=SIZES) for group in trials_by_group}
    every = np.arange(setting.m)
    less = [np.setdiff1d(every, block) for block in np.array_split(every, min(_BLOCKS, setting.m))]
    rows: list[tuple[Field, ...]] = []
    for rounded, (group, what, printed) in product(("to the nearest", "down"), TESTS):
        bias = {name: [t for t in trials_by_group[group] if t.estimator_name == name] for name in ("KNN", "SWEEP")}
        bias["KNN"] = bias["KNN"] if rounded == "to the nearest" else down[group]
        whole = _tests(bias, what, every, every)
        both, knn, sweep = (
            _jackknife([_tests(bias, what, *subsets) for subsets in kinds])
            for kinds in ([(k, k) for k in less], [(k, every) for k in less], [(every, k) for k in less])
        )
        numbers = [float(v) for three in zip(whole, both, np.hypot(knn, sweep), strict=True) for v in three]
        rows.append((rounded, group, what, setting.m, *numbers, None if setting.worlds else printed))
    names = ("t", "log10_p", "t_paired", "log10_p_paired")
    parts = tuple(f"{name}{part}" for name in names for part in ("", "_se", "_apart_se"))
    table = tidy(("k_rounded", "worlds", "compared", "m", *parts, "paper_t"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        first, second = ([r for r in table if r["k_rounded"] == k] for k in ("to the nearest", "down"))
        kinds = {
            "unpaired": (first, "t"),
            "paired": (first, "t_paired"),
            "paired, k rounded down": (second, "t_paired"),
        }
        clusters(
            *(axes, [f"{r['worlds']},\n{r['compared']}" for r in first]),
            {name: [r[column] for r in part] for name, (part, column) in kinds.items()},
            {name: [2 * r[f"{column}_se"] for r in part] for name, (part, column) in kinds.items()},
            {} if setting.worlds else {"paired": [r["paper_t"] for r in first]},
        )
        axes.set_ylabel("t of SWEEP less KNN")
        axes.legend()

    return Experiment("peng-tests", "KNN against SWEEP: t over worlds and sizes, two standard errors", table, draw)


def _jackknife(values: list[tuple[float, ...]]) -> Array:
    """Standard errors from the values without each block."""
    less = np.array(values)
    return np.asarray(np.sqrt((len(less) - 1) / len(less) * ((less - less.mean(axis=0)) ** 2).sum(axis=0)))


def _tests(trials: Mapping[str, list[Trial]], what: str, *datasets: Indices) -> tuple[float, float, float, float]:
    """t and log10 of its one-sided p, unpaired and paired, from these datasets of KNN and of SWEEP."""
    from scipy.stats import ttest_ind, ttest_rel

    sizes = []
    for name, rows in zip(("KNN", "SWEEP"), datasets, strict=True):
        bias = np.array([100 * (t.values[rows].mean() - t.truth) for t in trials[name]])
        # The size of a bias is compared: the mean bias of both is negative in uncalibrated worlds, positive in the others.
        sizes.append(np.abs(bias) if what == "absolute bias" else np.sign(bias.mean()) * bias)
    tests = [test(sizes[1], sizes[0], alternative="greater") for test in (ttest_ind, ttest_rel)]
    unpaired, paired = ((float(one.statistic), log10(max(float(one.pvalue), 1e-300))) for one in tests)
    return (*unpaired, *paired)


def figure_4(setting: Setting) -> Experiment:
    """Distributions of 10,000 confidences: of the given networks, or of the worlds of three of the paper's."""
    scores_by_network = {name: network.test.top()[0] for name, network in setting.data.items()}
    if not scores_by_network:
        names = ("resnet110_c10", "resnet110_c100", "resnet152_imgnet")
        scores_by_network = {name: PAPER_WORLDS[name].draw(10_000, 1, rng=setting.rng)[0][0] for name in names}
    rows: list[tuple[Field, ...]] = []
    edges = np.arange(51) / 50
    for name, scores in scores_by_network.items():
        counts, _ = np.histogram(scores, edges)
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
            rows.append((name, float(low), float(high), int(count), float(count / scores.size)))
    table = tidy(("network", "low", "high", "rows", "share"), rows)

    def draw(figure: Figure) -> None:
        for axes, name in zip(panels(figure, len(scores_by_network)), scores_by_network, strict=True):
            axes.hist(scores_by_network[name], edges.tolist(), log=True)
            axes.set(title=name, xlabel="confidence", ylabel="rows")

    return Experiment("peng-fig4", "how skewed confidences are", table, draw)


ALPHAS = (10, 30, 100, 200)
_VARIANTS = {"alpha 100, own score": "alpha 100, f(x) itself", "region found": "region estimated"}  # on the figure


def alphas(setting: Setting) -> Experiment:
    """Equation 7 over alpha, k by estimated risk, and f(x_i) in place of the mean (remark after equation 6): bias by worlds."""

    def variants(world_name: str) -> dict[str, Estimator]:
        region = KNN_REGIONS.get(dataset(world_name))
        named: dict[str, Estimator] = {f"alpha {a}": tc.NearestECE(norm=2, region=region, alpha=a) for a in ALPHAS}
        return {
            **named,
            "alpha 100, own score": tc.NearestECE(norm=2, region=region, score="own"),
            "region found": tc.NearestECE(norm=2),
            "k by risk": LeastRisk(norm=2),
        }

    rows: list[tuple[Field, ...]] = []
    for group in ("uncalibrated", "recalibrated"):
        trials_of_variants = setting.trials(variants, world_groups(setting)[group], n=SIZES)
        for name in dict.fromkeys(t.estimator_name for t in trials_of_variants):
            part = [t for t in trials_of_variants if t.estimator_name == name]
            bias, error = _percent(part)
            rmse = float(np.mean([100 * t.rmse for t in part]))
            size = average([Number(100 * t.bias, 100 * t.standard_error) for t in part], absolute=True)
            rows.append((group, name, setting.m, float(bias.mean()), error, size.value, size.se, rmse))
    columns = ("worlds", "variant", "m", "mean_bias", "mean_bias_se", "mean_abs_bias", "mean_abs_se", "mean_rmse")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        for axes, group in zip(panels(figure, 2, columns=2), ("uncalibrated", "recalibrated"), strict=True):
            part = [r for r in table if r["worlds"] == group]
            two_se = [2 * r["mean_abs_se"] for r in part]
            names = [_VARIANTS.get(str(r["variant"]), str(r["variant"])) for r in part]
            axes.barh(names, [r["mean_abs_bias"] for r in part], xerr=two_se)
            axes.set(title=group, xlabel="mean |bias| (%)")

    return Experiment("peng-alpha", "number of neighbours by alpha and by estimated risk", table, draw)


def figure_2(setting: Setting) -> Experiment:
    """SWEEP and DEBIASED trade bias on uncalibrated for bias on recalibrated worlds."""
    return _bias_by_n("peng-fig2", ("uncalibrated", "recalibrated"), ("SWEEP", "DEBIASED", *setting.own), setting)


def figure_8(setting: Setting) -> Experiment:
    """Bias by n on uncalibrated worlds."""
    return _bias_by_n("peng-fig8", ("uncalibrated",), (*ESTIMATORS, *setting.own), setting)


def figure_9(setting: Setting) -> Experiment:
    """Bias by n on recalibrated worlds."""
    return _bias_by_n("peng-fig9", ("recalibrated",), (*ESTIMATORS, *setting.own), setting)


def figure_7(setting: Setting) -> Experiment:
    """Bias on recalibrated against bias on uncalibrated worlds: the origin is where an estimator should be."""
    groups = ("uncalibrated", "recalibrated")
    results = {group: benchmark(group, setting) for group in groups}
    rows: list[tuple[Field, ...]] = []
    for raw, fixed in zip(*(results[group] for group in groups), strict=True):
        key = (raw.estimator_name, raw.world_name, dataset(raw.world_name), raw.n, setting.m)
        rows.append((*key, 100 * raw.bias, 100 * raw.standard_error, 100 * fixed.bias, 100 * fixed.standard_error))
    columns = ("estimator", "world", "dataset", "n", "m", "uncalibrated_bias", "uncalibrated_se")
    table = tidy((*columns, "recalibrated_bias", "recalibrated_se"), rows)

    def draw(figure: Figure) -> None:
        selected = datasets(setting)
        for axes, among in zip(panels(figure, len(selected)), selected, strict=True):
            axes.axhline(0, **TRUE_LINE)
            axes.axvline(0, **TRUE_LINE)
            for name in (*ESTIMATORS, *setting.own):
                part = [r for r in table if (r["estimator"], r["dataset"]) == (name, among)]
                xs, ys = ([float(r[f"{group}_bias"]) for r in part] for group in groups)
                axes.scatter(xs, ys, s=8, label=name)
            axes.set(title=among, xlabel="bias, uncalibrated (%)", ylabel="bias, recalibrated (%)")
        shared_legend(figure, axes)

    return Experiment("peng-fig7", "bias on recalibrated against bias on uncalibrated worlds", table, draw)


def _bias_by_n(name: str, groups: tuple[str, ...], estimators: tuple[str, ...], setting: Setting) -> Experiment:
    """Bias over n, averaged over the worlds of each dataset, with the spread between worlds as band."""
    rows: list[tuple[Field, ...]] = []
    for group in groups:
        results = benchmark(group, setting)
        for among in datasets(setting):
            for estimator in estimators:
                for n in SIZES:
                    part = [t for t in results if (t.estimator_name, t.n) == (estimator, n)]
                    part = [t for t in part if dataset(t.world_name) == among]
                    bias, error = _percent(part)
                    rows.append((group, among, estimator, n, setting.m, float(bias.mean()), error, float(bias.std())))
    columns = ("worlds", "dataset", "estimator", "n", "m", "bias_percent", "bias_se", "std_between_worlds")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        kinds = [(group, among) for group in groups for among in datasets(setting)]
        for axes, (group, among) in zip(panels(figure, len(kinds), share_y=False), kinds, strict=True):
            curves: dict[str, Line] = {}
            for estimator in estimators:
                part = [r for r in table if (r["worlds"], r["dataset"], r["estimator"]) == (group, among, estimator)]
                numbers = ("n", "bias_percent", "std_between_worlds")
                xs, ys, band = ([float(r[key]) for r in part] for key in numbers)
                curves[estimator] = (xs, ys, band)
            title = f"{among}, {group}"
            lines(axes, curves, title=title, x="samples", y="bias (%)", log_x=True, zero=True, legend=False)
        shared_legend(figure, axes)

    return Experiment(name, f"bias by sample size: {' and '.join(groups)} worlds", table, draw)
