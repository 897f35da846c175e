"""Kirchenbauer, Oaks and Heim (2022), section 5 and appendices B and D, by `truecal study interventions`.

Their networks are not public here. Warped digits are trained on with and without each intervention (five seeds), and the logits of
one CIFAR-10 network are repaired after training. Beside each error stands that of a calibrated model with the same outputs, whose
labels are drawn from them: what is left of an error at that floor is owed to the estimator.

And how fine bins may be (appendix B): the full error, its spread, and the number of rows in a bin.
"""

import csv
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copy

import numpy as np

import truecal as tc
from papers.drawing import Figure, clusters, lines, panel, panels, shared_legend
from papers.experiment import Experiment, Field, Setting, the_network, tidy
from papers.page import Row
from truecal.lab import Frame

FOLDER = Path(__file__).parent
_COLUMNS = (
    "intervention",
    "lens",
    "selection",
    "metric",
    "value",
    "se",
    "seeds",
    "if_calibrated",
    "change",
    "change_se",
)


@cache
def _scratch() -> str:
    return tempfile.mkdtemp(prefix="papers-")


def _compared(config: Path, folder: Path, workers: int = 1) -> Frame:
    """All numbers of a comparison: mean over seeds, and the change from the base model of the same seed."""
    rows: list[tuple[Field, ...]] = []
    for row in tc.study.compare_interventions(config, folder, workers=workers).summary.iter_rows(named=True):
        errors = [(row[name] or 0.0) / row["seeds"] ** 0.5 for name in ("sd", "difference_sd")]
        keys = [row[name] for name in ("intervention", "lens", "selection", "metric", "mean")]
        rows.append((*keys, errors[0], row["seeds"], row["if_calibrated"], row["difference"], errors[1]))
    return tidy(_COLUMNS, rows)


def _trained(setting: Setting, config: str, models: str = "digits") -> Frame:
    """A comparison whose models are trained once for all configurations that name the same folder."""
    folder = Path(setting.run.cache or _scratch()) / models
    return _compared(FOLDER / config, folder, setting.run.workers)


def digits(setting: Setting) -> Experiment:
    """Six interventions on warped digits: top k, groups, rows of one group, and words for P(loops)."""
    table = _trained(setting, "digits.yaml")
    return Experiment("kirchenbauer-digits", "six interventions, warped digits, 5 seeds", table, _drawn(table))


def very_high(setting: Setting) -> Experiment:
    """The same models with two words for confidence, [0, 0.8] and [0.9, 1]."""
    table = _trained(setting, "very_high.yaml")
    return Experiment("kirchenbauer-very-high", "very high confidence or not, warped digits", table, _drawn(table))


def cnn(setting: Setting) -> Experiment:
    """The same interventions on a convolutional network."""
    table = _trained(setting, "cnn.yaml", "cnn")
    return Experiment("kirchenbauer-cnn", "six interventions, convolutional network, 5 seeds", table, _drawn(table))


def wide(setting: Setting) -> Experiment:
    """The same interventions on a network four times as wide."""
    table = _trained(setting, "wide.yaml", "wide")
    return Experiment("kirchenbauer-wide", "six interventions, wide network, 5 seeds", table, _drawn(table))


def cifar10(setting: Setting) -> Experiment:
    """Four interventions after training on the logits of the given network."""
    network = the_network(setting.data, "kirchenbauer-cifar10")
    held_out = network.held_out("kirchenbauer-cifar10")
    folder = Path(tempfile.mkdtemp(prefix="papers-"))
    (folder / "logits" / "none").mkdir(parents=True)
    np.savez(
        folder / "logits" / "none" / "0.npz",
        validation_logits=held_out.logits_or_logs(),
        validation_labels=held_out.preds.labels,
        test_logits=network.test.logits_or_logs(),
        test_labels=network.test.preds.labels,
    )
    config = folder / "cifar10.yaml"
    copy(FOLDER / "cifar10.yaml", config)
    if network.test.preds.class_count != 10:  # groups are those of CIFAR-10
        config.write_text("data: {logits: logits}\ninterventions: {temperature: }\n", encoding="utf-8")
    table = _compared(config, folder)
    return Experiment("kirchenbauer-cifar10", "interventions after training, one network", table, _drawn(table))


# What a picture shows: the metric, and whether it is that of groups of classes.
_PICTURES = (
    ("error", False, "calibration error"),
    ("error", True, "calibration error\nof groups"),
    ("confidence", False, "confidence less base"),
    ("confidence", True, "group confidence\nless base"),
    ("inter-interval", False, "inter-interval error"),
    ("total-variation", False, "total variation"),
    ("share", False, "share of the rows"),
    ("accuracy", False, "top-k accuracy"),
)


def _drawn(table: Frame) -> Callable[[Figure], None]:
    def draw(figure: Figure) -> None:
        parts = [
            [row for row in table if row["metric"] == metric and row["lens"].startswith("groups") == grouped]
            for metric, grouped, _ in _PICTURES
        ]
        pictures = [(part, *picture) for part, picture in zip(parts, _PICTURES, strict=True) if part]
        grid = panels(figure, len(pictures), columns=2, share_y=False, height=1.9)
        for axes, (rows, metric, _, words) in zip(grid, pictures, strict=True):
            # Confidences are relative to the base model, as in Figures 2 and 17 to 19.
            column, error = ("change", "change_se") if metric == "confidence" else ("value", "se")
            names = list(dict.fromkeys(row["intervention"] for row in rows))
            things = list(dict.fromkeys((row["lens"], row["selection"]) for row in rows))

            def values(column: str, rows: list[Row] = rows, names: list[str] = names) -> dict[str, list[float]]:
                return {
                    n: [np.nan if r[column] is None else r[column] for r in rows if r["intervention"] == n]
                    for n in names
                }

            two_se = {name: [2 * se for se in column] for name, column in values(error).items()}
            floors = values("if_calibrated") if metric == "error" else None
            clusters(axes, [_thing(*thing) for thing in things], values(column), two_se, floors, "if calibrated")
            axes.set_ylabel(words)
        shared_legend(figure, grid[0])

    return draw


def _thing(lens: str, selection: str) -> str:
    """A lens and a selection of rows in a few words: "shape: loops | bows" is the confidence in loops where bows are true."""
    short = lens.removeprefix("groups ").removeprefix("likert ")
    return short if selection == "all" else f"{short} | {selection.removeprefix('label ')}"


CLASSES = 1000
_FLOOR_ROWS = 4000


def floor(setting: Setting) -> Experiment:
    """Temperature scaling in a simulated world of 1000 classes: top-k and full errors, and their floors.

    Logits are normal (with a heavy head); labels are drawn from the softmax of half of them, so that the outputs are too sure and a
    temperature of 2 calibrates them exactly.
    """
    rng = setting.stream(0)
    logits = 2.0 * rng.standard_normal((_FLOOR_ROWS, CLASSES))
    logits[np.arange(_FLOOR_ROWS), rng.integers(0, CLASSES, _FLOOR_ROWS)] += rng.gamma(4.0, 3.5, _FLOOR_ROWS)
    calm = tc.Predictions.from_logits(logits / 2, np.zeros(_FLOOR_ROWS, dtype=int)).probs
    labels = (calm.cumsum(axis=1) < rng.random((_FLOOR_ROWS, 1))).sum(axis=1).clip(0, CLASSES - 1)
    lenses: dict[str, tc.GeneralizedECE] = {
        f"top-{k}": tc.GeneralizedECE(lens=tc.TopK(k), level=None) for k in (1, 5, 10, 100)
    }
    lenses["full"] = tc.GeneralizedECE(lens=tc.Canonical(), level=None)
    rows: list[tuple[Field, ...]] = []
    for name, scaled in (("none", logits), ("temperature", logits / 2)):
        preds = tc.Predictions.from_logits(scaled, labels)
        drawn = (preds.probs.cumsum(axis=1) < rng.random((_FLOOR_ROWS, 1))).sum(axis=1).clip(0, CLASSES - 1)
        twin = replace(preds, labels=drawn)
        for lens, judge in lenses.items():
            rows.append((name, lens, "error", float(judge(preds)), float(judge(twin)), _FLOOR_ROWS))
    table = tidy(("intervention", "lens", "metric", "value", "if_calibrated", "n"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        heights, floors = (
            {name: [r[column] for r in table if r["intervention"] == name] for name in ("none", "temperature")}
            for column in ("value", "if_calibrated")
        )
        clusters(axes, list(lenses), heights, marks=floors, marks_label="if calibrated")
        axes.set_ylabel("calibration error")
        axes.legend()

    title = "1000 simulated classes: after temperature scaling the full error is all floor"
    return Experiment("kirchenbauer-floor", title, table, draw)


_NETWORKS = ("ResNet50", "MobileNetV2", "DenseNet (100 in Table 1, else 201)")  # columns of the printed tables


def accuracies(setting: Setting) -> Experiment:
    """Tables 1 to 6 as printed: 126 accuracies of the paper's networks."""
    text = (FOLDER / "accuracies.csv").read_text(encoding="utf-8")
    rows: list[Row] = [{**row, "accuracy": float(row["accuracy"])} for row in csv.DictReader(text.splitlines())]
    table = Frame.from_records(rows)

    def draw(figure: Figure) -> None:
        tables = list(dict.fromkeys((row["table"], row["dataset"]) for row in rows))
        for axes, (number, dataset) in zip(panels(figure, len(tables), share_y=False), tables, strict=True):
            part = [row for row in rows if row["table"] == number]
            names = list(dict.fromkeys(row["intervention"] for row in part))
            for network, label in zip(dict.fromkeys(row["network"] for row in part), _NETWORKS, strict=True):
                by_intervention = {row["intervention"]: row["accuracy"] for row in part if row["network"] == network}
                axes.plot(
                    range(len(names)),
                    [by_intervention[n] - by_intervention["Base Model"] for n in names],
                    "o-",
                    label=label,
                )
            axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=6)
            axes.axhline(0, color="grey", linewidth=0.8)
            axes.set(title=f"Table {number}, {dataset}", ylabel="accuracy less base")
        shared_legend(figure, axes)

    return Experiment("kirchenbauer-accuracies", "accuracies as printed, less those of the base model", table, draw)


GAMMAS = tuple(2.0**-k for k in range(1, 12))
_ROW_SHARES = {1.0: 1, 0.5: 1, 0.1: 5}  # parts of the test rows in Figure 9; few rows have five times as many resamples
_GRANULARITY_COLUMNS = (
    *("lens", "gamma", "rows", "resamples", "error", "sd"),
    *("least_in_bin", "median_in_bin", "most_in_bin"),
)


def granularity(setting: Setting) -> Experiment:
    """Resamples of the test rows for every gamma, full and top-1. The paper: the full error is stable about gamma = 2^-4."""
    preds = the_network(setting.data, "kirchenbauer-gamma").test.preds
    rows: list[tuple[Field, ...]] = []
    lenses: tuple[tuple[str, tc.Canonical | tc.TopK], ...] = (("full", tc.Canonical()), ("top-1", tc.TopK(1)))
    for lens_name, lens in lenses:
        for part, times in _ROW_SHARES.items():
            size = round(part * len(preds))
            resampled = replace(setting, m=times * setting.m)

            def drawn(k: int, size: int = size) -> tc.Predictions:
                return preds.take(setting.stream(size, k).integers(0, len(preds), size))

            for gamma in GAMMAS:
                judge = tc.GeneralizedECE(lens=lens, binning=tc.estimators.KDTree(gamma), level=None)
                words = f"{lens_name} error, gamma {gamma:g}, {size} rows"
                values = resampled.repeated(words, lambda k, judge=judge, drawn=drawn: [float(judge(drawn(k)))])  # type: ignore[misc]
                counts = np.asarray(getattr(judge(drawn(0)).vector_bins, "count"))  # noqa: B009 (the protocol names only what pages need)
                filled = counts[counts > 0]
                spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
                sizes = (float(filled.min()), float(np.median(filled)), float(filled.max()))
                rows.append((lens_name, gamma, size, resampled.m, float(values.mean()), spread, *sizes))
    table = tidy(_GRANULARITY_COLUMNS, rows)
    title = "Full calibration error against the fraction of a bin (G, appendix B)"
    return Experiment("kirchenbauer-gamma", title, table, lambda figure: _draw_granularity(figure, table))


def _draw_granularity(figure: Figure, table: Frame) -> None:
    error, bin_sizes, spread = panels(figure, 3, share_y=False)
    sizes = sorted({int(row["rows"]) for row in table})
    full = [row for row in table if row["lens"] == "full"]
    whole = [row for row in full if row["rows"] == sizes[-1]]
    gammas = [row["gamma"] for row in whole]
    band = [row["sd"] for row in whole]
    curve = {"full": (gammas, [r["error"] for r in whole], band)}
    lines(error, curve, x="gamma", y="full error ± sd", title="Figure 7", log_x=True, legend=False)
    counts = {name: (gammas, [r[f"{name}_in_bin"] for r in whole]) for name in ("least", "median", "most")}
    lines(bin_sizes, counts, x="gamma", y="rows in a bin", title="Figure 8", log_x=True)
    bin_sizes.set_yscale("log")
    by_size = {
        f"{lens}, {size} rows": (gammas, [r["sd"] for r in table if (r["lens"], r["rows"]) == (lens, size)])
        for lens in ("full", "top-1")
        for size in sizes
    }
    lines(spread, by_size, x="gamma", y="standard deviation", title="Figure 9", log_x=True, legend=False)
    spread.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), fontsize=6, ncols=2)
