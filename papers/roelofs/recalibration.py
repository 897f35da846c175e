"""Roelofs et al., Figure 2 and Tables 4 to 7: which recalibration does a metric prefer?

On real networks, given with --data. What reproduces the printed digits of resnet110_c10: temperature by maximum likelihood on the
validation logits; isotonic regression for each class, renormalised; histogram binning of the top label in 15 bins of equal width;
ties split by position in the sweep.

And with the truth known, in worlds: a validation set is drawn from a world, three recalibrations are fitted to it, and every metric
judges their outputs on a test set. The true error of each fitted map is computed from the world, so that the pick is known to be
right or wrong.
"""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import truecal as tc
from papers.drawing import Figure, clusters, panel, panels
from papers.experiment import Array, Experiment, Field, Network, Outputs, Setting, tidy
from truecal.estimators import Estimator
from truecal.lab import PAPER_WORLDS, Cell, World
from truecal.recalibration import Recalibrator

Indices = npt.NDArray[np.intp]
METHODS = ("histogram", "temperature", "isotonic")


def _read_printed() -> dict[str, dict[str, tuple[float, float]]]:
    """Tables 4 to 7 by method and network: equal-width ECE (15 bins, l1) and equal-mass sweep (l1), in percent."""
    text = Path(__file__).with_name("tables_4_to_7.csv").read_text(encoding="utf-8")
    printed: dict[str, dict[str, tuple[float, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        printed.setdefault(row["method"], {})[row["network"]] = (float(row["EW"]), float(row["EMsweep"]))
    return printed


PRINTED = _read_printed()


def recalibrated(
    method: str, fit: Outputs, judge: Outputs, rows: tuple[Indices, Indices] | None = None
) -> tc.Predictions:
    """The test split after a recalibration fitted on the validation split, each restricted to `rows` where given."""
    learn = slice(None) if rows is None else rows[0]
    apply = slice(None) if rows is None else rows[1]
    labels, truth = fit.preds.labels[learn], judge.preds.labels[apply]
    if method == "none":
        return tc.Predictions.from_probs(judge.preds.probs[apply], truth)
    if method == "temperature":
        scaling = tc.recalibration.TemperatureScaling(input="logits").fit(fit.logits_or_logs()[learn], labels)
        return tc.Predictions.from_probs(scaling.predict_proba(judge.logits_or_logs()[apply]), truth)
    if method == "isotonic":
        fitted: tc.recalibration.IsotonicCalibration | tc.recalibration.HistogramBinning = (
            tc.recalibration.IsotonicCalibration()
        )
    else:
        fitted = tc.recalibration.HistogramBinning(bins=15, scheme="width", multiclass="top-label")
    fitted.fit(fit.preds.probs[learn], labels)
    return tc.Predictions.from_probs(fitted.predict_proba(judge.preds.probs[apply]), truth)


def metrics(bins: int = 15) -> dict[str, Estimator]:
    """The two metrics of Tables 4 to 7."""
    return {
        "EW": tc.BinnedECE(bins=bins, scheme="width", norm=1),
        "EMsweep": tc.SweepECE(scheme="mass", norm=1, ties="split"),
    }


def _percent(preds: tc.Predictions, estimator: Estimator) -> float:
    return 100 * float(estimator.values(tc.TopLabel()(preds))[0])


def _networks(setting: Setting, name: str) -> Mapping[str, Network]:
    if not setting.data:
        raise tc.InputError(
            f"{name} is about real networks: give each with --data NAME=FILE (.npz with val_ and test_ splits)"
        )
    return setting.data


def recalibration_table(method: str, name: str) -> Callable[[Setting], Experiment]:
    """Table 4 (method "none"), 5 ("temperature"), 6 ("isotonic") or 7 ("histogram") for the given networks."""

    def make(setting: Setting) -> Experiment:
        rows: list[tuple[Field, ...]] = []
        for network_name, network in _networks(setting, name).items():
            fit = network.test if method == "none" else network.held_out(name)
            after = recalibrated(method, fit, network.test)
            width, sweep = (_percent(after, e) for e in metrics().values())
            printed = PRINTED[method].get(network_name, (float("nan"), float("nan")))
            rows.append((network_name, width, printed[0], sweep, printed[1], width - sweep))
        columns = ("network", "EW_percent", "EW_paper", "EMsweep_percent", "EMsweep_paper", "difference")
        table = tidy(columns, rows)

        def draw(figure: Figure) -> None:
            axes = panel(figure, wide=len(table) > 2)
            ours, printed = (
                {metric: table[f"{metric}_{kind}"].astype(float).tolist() for metric in metrics()}
                for kind in ("percent", "paper")
            )
            clusters(axes, list(table["network"]), ours, marks=printed)
            axes.set(ylabel="top-label ECE (%), l1", ylim=(0, 1.3 * max(map(max, ours.values()))))
            axes.legend(ncols=3)

        return Experiment(name, f"top-label ECE after recalibration: {method}", table, draw)

    return make


def figure_2(setting: Setting) -> Experiment:
    """Which recalibration each metric prefers: on all rows, and on m random tenths of both splits (recalibrated anew)."""
    rng = np.random.default_rng(setting.rng)
    rows: list[tuple[Field, ...]] = []
    for name, network in _networks(setting, "roelofs-fig2").items():
        fit = network.held_out("roelofs-fig2")
        sizes = (len(fit.preds), len(network.test.preds))
        for number in range(setting.m + 1):
            part = None if number == 0 else tuple(rng.choice(n, max(2, n // 10), replace=False) for n in sizes)
            after = {method: recalibrated(method, fit, network.test, part) for method in METHODS}  # type: ignore[arg-type]
            for bins in (15, 10):
                errors = {
                    metric: {method: _percent(preds, e) for method, preds in after.items()}
                    for metric, e in metrics(bins).items()
                }
                chosen = [min(by_method, key=by_method.__getitem__) for by_method in errors.values()]
                values = [value for by_method in errors.values() for value in by_method.values()]
                rows.append(
                    (name, "all" if part is None else "tenth", number, bins, *values, *chosen, int(len({*chosen}) > 1))
                )
    measured = [f"{metric}_{method}" for metric in metrics() for method in METHODS]
    table = tidy(("network", "rows", "number", "bins", *measured, "EW_prefers", "EMsweep_prefers", "disagree"), rows)

    def draw(figure: Figure) -> None:
        left, right = panels(figure, 2, columns=2, share_y=False)
        kinds = [(rows, bins) for rows in ("all", "tenth") for bins in (15, 10)]
        shares = [np.mean([r["disagree"] for r in table if (r["rows"], r["bins"]) == kind]) for kind in kinds]
        printed = [0.3, np.nan, 0.22, 0.27]
        clusters(left, [f"{rows},\n{bins} bins" for rows, bins in kinds], {"ours": shares}, marks={"ours": printed})
        left.set(ylabel="share of cases", title="EW and sweep prefer different methods", ylim=(0, 1))
        left.legend()
        tenths = [r for r in table if (r["rows"], r["bins"]) == ("tenth", 15)]
        heights = {
            metric: [float(np.mean([r[f"{metric}_prefers"] == method for r in tenths])) for method in METHODS]
            for metric in metrics()
        }
        clusters(right, METHODS, heights)
        right.set(title="preferred on tenths of the rows, 15 bins", ylabel="share of cases", ylim=(0, 1))
        right.legend()

    return Experiment("roelofs-fig2", "which recalibration a metric prefers", table, draw)


def figure_2_printed(setting: Setting) -> Experiment:
    """The preferred recalibration of each network by the errors printed in Tables 5 to 7."""
    rows: list[tuple[Field, ...]] = []
    for name in PRINTED["none"]:
        best = [min(METHODS, key=lambda method, k=k: PRINTED[method][name][k]) for k in (0, 1)]  # type: ignore[misc]
        rows.append((name, *best, int(best[0] != best[1])))
    table = tidy(("network", "EW_prefers", "EMsweep_prefers", "disagree"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        heights = {
            metric: [float(sum(r[f"{metric}_prefers"] == method for r in table)) for method in METHODS]
            for metric in metrics()
        }
        clusters(axes, METHODS, heights)
        axes.set_ylabel("networks that prefer it, of ten")
        axes.legend()

    return Experiment("roelofs-fig2-printed", "which recalibration the printed errors prefer", table, draw)


WORLD_SIZES = (1500, 15_000)  # rows, a third of them to recalibrate: a tenth of the CIFAR splits, and all of them
WORLD_METHODS = ("histogram", "scaling", "isotonic")
_GRID = 20_000  # evenly spaced quantiles of the raw scores on which the truth of a map is computed


def world_metrics() -> dict[str, Estimator]:
    """What could choose a recalibration; all in norm 1."""
    return {
        "EW": tc.BinnedECE(bins=15, norm=1),
        "EMsweep": tc.SweepECE(norm=1, ties="split"),
        "debiased": tc.DebiasedECE(bins=15, norm=1),
        "RankSeries": tc.RankSeries(norm=1),
    }


def _recalibrator(method: str) -> Recalibrator:
    if method == "histogram":
        return tc.recalibration.HistogramBinning(bins=15, scheme="width", input="probs")
    return (
        tc.recalibration.BetaCalibration(parameters=2, input="probs", clip=1e-7)
        if method == "scaling"
        else tc.recalibration.IsotonicCalibration(input="probs")
    )


@dataclass(frozen=True)
class Choices:
    """For every dataset: the true l1 error of each fitted map, then each metric's estimate for each map."""

    world: World

    @property
    def name(self) -> str:
        return "the recalibration each metric prefers"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        rng = np.random.default_rng(seed)
        columns = [self._one(c, y, rng) for c, y in zip(profile.scores, profile.outcomes, strict=True)]
        return np.stack(columns, axis=1)

    def _one(self, c: Array, y: Array, rng: np.random.Generator) -> Array:
        order = rng.permutation(c.size)
        fit, judge = order[: c.size // 3], order[c.size // 3 :]
        raw, rest = self.world.scores.from_uniforms(((np.arange(_GRID) + 0.5) / _GRID)[None, :])
        truth = self.world.curve.at(raw, rest)  # type: ignore[union-attr]
        errors, estimates = [], []
        for method in WORLD_METHODS:
            map_ = _recalibrator(method).fit(c[fit], y[fit].astype(np.int64))
            outputs, group = np.unique(map_.predict_proba(raw)[:, 1], return_inverse=True)
            count = np.bincount(group)
            errors.append(float(np.sum(count * np.abs(outputs - np.bincount(group, truth) / count))) / _GRID)
            held_out = tc.profile.Profile.from_arrays(map_.predict_proba(c[judge])[:, 1], y[judge])
            estimates.append([float(e.values(held_out)[0]) for e in world_metrics().values()])
        return np.concatenate([errors, np.ravel(estimates, order="F")])


def figure_2_worlds(setting: Setting) -> Experiment:
    """How often each metric picks the recalibration of least true error, and how much true error a wrong pick costs."""
    worlds = setting.worlds_or(PAPER_WORLDS)
    cells = [Cell(name, world, n, setting.m, (Choices(world),)) for name, world in worlds.items() for n in WORLD_SIZES]
    rows: list[tuple[Field, ...]] = []
    for cell, (answers,) in zip(cells, setting.answers(cells), strict=True):
        true = answers[: len(WORLD_METHODS)]
        for k, metric in enumerate(world_metrics()):
            first = len(WORLD_METHODS) * (k + 1)
            pick = answers[first : first + len(WORLD_METHODS)].argmin(axis=0)
            regret = 100 * (np.take_along_axis(true, pick[None, :], axis=0)[0] - true.min(axis=0))
            right = pick == true.argmin(axis=0)
            share = float(right.mean())
            error = float(np.sqrt(max(share * (1 - share), 1 / setting.m) / setting.m))
            if k == 0:
                usual = pick  # EW, the first metric
            rows.append(
                (
                    cell.name,
                    cell.n,
                    metric,
                    setting.m,
                    share,
                    error,
                    float(regret.mean()),
                    float(np.mean(pick != usual)),
                )
            )
    columns = ("world", "n", "metric", "m", "right_share", "right_se", "regret_percent", "differs_from_EW")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        heights, errors = {}, {}
        for n in WORLD_SIZES:
            parts = [[r for r in table if (r["n"], r["metric"]) == (n, metric)] for metric in world_metrics()]
            heights[f"n = {n}"] = [float(np.mean([r["right_share"] for r in part])) for part in parts]
            errors[f"n = {n}"] = [
                2 * float(np.sqrt(np.sum([r["right_se"] ** 2 for r in part]))) / len(part) for part in parts
            ]
        clusters(axes, list(world_metrics()), heights, errors)
        axes.set(ylabel="share of datasets", ylim=(0, 1))
        axes.legend(ncols=2)

    return Experiment(
        "roelofs-fig2-worlds", "how often a metric picks the better recalibration, two standard errors", table, draw
    )
