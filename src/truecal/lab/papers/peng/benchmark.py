"""Peng, Alamzadeh and Ester, "Better calibration error estimation": one benchmark, and the figures made from it.

Ten worlds, seven sample sizes, m datasets each. The paper fits "recalibrated" worlds to outputs after temperature
scaling, which it does not print. Here they are push-forwards of the printed worlds: shown through the Platt scaling fitted on
endless data (`platt_scaled`), and, as the limit of what recalibration can do, through their own true curve.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from truecal.lab.papers.drawing import Line, lines, panels, shared_legend
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.estimators import peng_estimators
from truecal.lab.trials.trials import Field, Trial, tidy
from truecal.lab.worlds.paper_worlds import DATASETS, PAPER_WORLDS, dataset_of
from truecal.lab.worlds.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)
ESTIMATORS = ("EW", "EM", "DEBIASED", "SWEEP", "KNN", "RankSeries")

# Section 4.2, percent: mean bias and mean |bias| over worlds and sizes. The paper gives no others.
PAPER_MEANS: Mapping[tuple[str, str], tuple[float | None, float | None]] = {
    ("uncalibrated", "KNN"): (-0.115, 0.183),
    ("uncalibrated", "SWEEP"): (-0.281, 0.364),
    ("uncalibrated", "DEBIASED"): (-0.521, None),
    ("uncalibrated", "EW"): (-1.210, None),
    ("recalibrated", "KNN"): (0.676, None),
    ("recalibrated", "SWEEP"): (1.422, None),
}


@cache
def world_groups() -> dict[str, dict[str, World]]:
    """The ten worlds as they are, after Platt scaling, and perfectly recalibrated."""
    return {
        "uncalibrated": dict(PAPER_WORLDS),
        "recalibrated": {name: world.platt_scaled() for name, world in PAPER_WORLDS.items()},
        "calibrated": {name: world.perfectly_recalibrated() for name, world in PAPER_WORLDS.items()},
    }


def benchmark(group: str, setting: Setting) -> list[Trial]:
    """Every estimator at every n in the ten worlds of one group."""
    return setting.trials(peng_estimators, world_groups()[group], n=SIZES)


def means(setting: Setting) -> Experiment:
    """Mean bias and mean |bias| over worlds and sizes, by group and estimator, beside the paper's."""
    rows: list[tuple[Field, ...]] = []
    for group in world_groups():
        results = benchmark(group, setting)
        for name in ESTIMATORS:
            part = [t for t in results if t.estimator_name == name]
            bias = np.array([100 * t.bias for t in part])
            error = float(np.sqrt(np.sum([(100 * t.standard_error) ** 2 for t in part]))) / len(part)
            paper = [float("nan") if p is None else p for p in PAPER_MEANS.get((group, name), (None, None))]
            rows.append((group, name, setting.m, float(bias.mean()), error, float(np.abs(bias).mean()), *paper))
    columns = ("worlds", "estimator", "m", "mean_bias", "mean_bias_se", "mean_abs_bias", "paper_bias", "paper_abs_bias")
    table = tidy(columns, rows)

    def draw(figure: "Figure") -> None:
        records = table
        for axes, group in zip(panels(figure, 3), world_groups(), strict=True):
            part = [r for r in records if r["worlds"] == group]
            axes.bar([str(r["estimator"]) for r in part], [float(r["mean_abs_bias"]) for r in part])
            axes.tick_params(axis="x", rotation=60)
            axes.set(title=group, ylabel="mean |bias| (%)")

    return Experiment("peng-means", "mean |bias| over ten worlds and seven sizes", table, draw)


def figure_2(setting: Setting) -> Experiment:
    """SWEEP and DEBIASED trade bias on uncalibrated for bias on recalibrated worlds."""
    return _bias_by_n("peng-fig2", ("uncalibrated", "recalibrated"), ("SWEEP", "DEBIASED"), setting)


def figure_8(setting: Setting) -> Experiment:
    """Bias by n on uncalibrated worlds."""
    return _bias_by_n("peng-fig8", ("uncalibrated",), ESTIMATORS, setting)


def figure_9(setting: Setting) -> Experiment:
    """Bias by n on recalibrated worlds."""
    return _bias_by_n("peng-fig9", ("recalibrated",), ESTIMATORS, setting)


def figure_7(setting: Setting) -> Experiment:
    """Bias on recalibrated against bias on uncalibrated worlds: the origin is where an estimator should be."""
    groups = ("uncalibrated", "recalibrated")
    results = {group: benchmark(group, setting) for group in groups}
    rows: list[tuple[Field, ...]] = []
    for raw, fixed in zip(*(results[group] for group in groups), strict=True):
        place = (raw.estimator_name, raw.world_name, dataset_of(raw.world_name), raw.n, setting.m)
        rows.append((*place, 100 * raw.bias, 100 * raw.standard_error, 100 * fixed.bias, 100 * fixed.standard_error))
    columns = ("estimator", "world", "dataset", "n", "m", "uncalibrated_bias", "uncalibrated_se")
    table = tidy((*columns, "recalibrated_bias", "recalibrated_se"), rows)

    def draw(figure: "Figure") -> None:
        records = table
        for axes, dataset in zip(panels(figure, 3), DATASETS.values(), strict=True):
            axes.axhline(0, color="green", linewidth=0.8)
            axes.axvline(0, color="green", linewidth=0.8)
            for name in ESTIMATORS:
                part = [r for r in records if (r["estimator"], r["dataset"]) == (name, dataset)]
                xs, ys = ([float(r[f"{group}_bias"]) for r in part] for group in groups)
                axes.scatter(xs, ys, s=12, label=name)
            axes.set(title=dataset, xlabel="bias, uncalibrated (%)", ylabel="bias, recalibrated (%)")
        shared_legend(figure, axes)

    return Experiment("peng-fig7", "bias on recalibrated against bias on uncalibrated worlds", table, draw)


def _bias_by_n(name: str, groups: tuple[str, ...], estimators: tuple[str, ...], setting: Setting) -> Experiment:
    """Bias over n, averaged over the worlds of each dataset, with the spread between worlds as band."""
    rows: list[tuple[Field, ...]] = []
    for group in groups:
        results = benchmark(group, setting)
        for dataset in DATASETS.values():
            for estimator in estimators:
                for n in SIZES:
                    part = [t for t in results if (t.estimator_name, t.n) == (estimator, n)]
                    part = [t for t in part if dataset_of(t.world_name) == dataset]
                    bias = np.array([100 * t.bias for t in part])
                    error = float(np.sqrt(np.sum([(100 * t.standard_error) ** 2 for t in part]))) / len(part)
                    rows.append((group, dataset, estimator, n, setting.m, float(bias.mean()), error, float(bias.std())))
    columns = ("worlds", "dataset", "estimator", "n", "m", "bias_percent", "bias_se", "std_between_worlds")
    table = tidy(columns, rows)

    def draw(figure: "Figure") -> None:
        if len(groups) > 1:
            figure.set_size_inches(10, 8)
        records = table
        kinds = [(group, dataset) for group in groups for dataset in DATASETS.values()]
        for axes, (group, dataset) in zip(panels(figure, len(kinds), share_y=False), kinds, strict=True):
            curves: dict[str, Line] = {}
            for estimator in estimators:
                part = [
                    r for r in records if (r["worlds"], r["dataset"], r["estimator"]) == (group, dataset, estimator)
                ]
                numbers = ("n", "bias_percent", "std_between_worlds")
                xs, ys, band = ([float(r[key]) for r in part] for key in numbers)
                curves[estimator] = (xs, ys, band)
            title = f"{dataset}, {group}"
            lines(axes, curves, title=title, x="samples", y="bias (%)", log_x=True, zero=True, legend=False)
        shared_legend(figure, axes)

    return Experiment(name, f"bias by sample size: {' and '.join(groups)} worlds", table, draw)
