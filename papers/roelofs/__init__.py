"""Roelofs, Cain, Shlens and Mozer, "Mitigating bias in calibration error estimation" (2022, R): the numbers that its items test."""

from collections.abc import Iterable

import numpy as np

from papers.grading import Cells, Number, Quantities, average, difference, share
from papers.page import Row
from papers.roelofs.fits import RESNET110_C10
from truecal.lab import Frame, dataset_of

ESTIMATORS = ("EW", "EM", "EMdebias", "KDE", "EWsweep", "EMsweep", "RankSeries")


def select(table: Iterable[Row], /, **values: object) -> list[Row]:
    """The rows whose columns have these values."""
    return [row for row in table if all(row[key] == value for key, value in values.items())]


def _percent(row: Row, column: str = "bias", error: str = "bias_se") -> Number:
    return Number(100 * float(row[column]), 100 * float(row[error]))


def figure_1(table: Frame) -> Quantities:
    rows = select(table, panel="ECE of samples")
    middle = np.array([(row["low"] + row["high"]) / 2 for row in rows])
    count = np.array([row["count"] for row in rows], dtype=float)
    mean = float(np.average(middle, weights=count))
    sd = float(np.sqrt(np.average((middle - mean) ** 2, weights=count)))
    return {"mean_ece": Number(mean, sd / float(np.sqrt(count.sum())))}


def figure_2(table: Frame) -> Quantities:
    quantities = {}
    for name, rows, bins in (("all", "all", 15), ("tenth_15", "tenth", 15), ("tenth_10", "tenth", 10)):
        part = select(table, rows=rows, bins=bins)
        quantities[name] = share(sum(row["disagree"] for row in part), len(part))
    for metric in ("EW", "EMsweep"):
        picks = [row[f"{metric}_prefers"] == "histogram" for row in select(table, rows="all", bins=15)]
        quantities[f"{metric}_prefers_histogram"] = share(sum(picks), len(picks))
    return quantities


def figure_2_printed(table: Frame) -> Quantities:
    return {"disagree": Number(float(np.mean(table["disagree"].astype(float))))}


def figure_2_worlds(table: Frame) -> Quantities:
    def picks(metric: str) -> Number:
        return average([Number(row["right_share"], row["right_se"]) for row in select(table, metric=metric)])

    quantities = {metric: picks(metric) for metric in ("EW", "EMsweep", "debiased", "RankSeries")}
    for name, n in (("differ_all", 15_000), ("differ_tenth", 1500)):
        rows = select(table, metric="EMsweep", n=n)
        if rows:
            quantities[name] = average([share(row["differs_from_EW"] * row["m"], row["m"]) for row in rows])
    return quantities


def figure_3(table: Frame) -> Quantities:
    return {"largest_gap": Number(float(table["gap"].max()))}


def figure_4(table: Frame) -> Quantities:
    ours = tuple(Number(row["bias_percent"], row["bias_se"]) for row in table)
    first, last = (select(table, n=200, bins=b)[0] for b in (2, 64))
    return {
        "cells": Cells(ours, tuple(row["paper_percent"] for row in table)),
        "bins_2": Number(first["bias_percent"], first["bias_se"]),
        "bins_64": Number(last["bias_percent"], last["bias_se"]),
    }


def figure_5(table: Frame) -> Quantities:
    """Share of the probability below 0.9 in the midpoint sums of the drawn densities."""
    below = {}
    for dataset in ("CIFAR-10", "CIFAR-100", "ImageNet"):
        rows = [row for row in table if row["dataset"] == dataset and row["score"] < 0.9]
        worlds = {row["world"] for row in rows}
        below[dataset] = Number(sum(row["density"] * 0.01 for row in rows) / len(worlds))
    return {"below_c10": below["CIFAR-10"], "below_c100": below["CIFAR-100"], "below_imagenet": below["ImageNet"]}


def figure_6(table: Frame) -> Quantities:
    quantities = {}
    for n in (200, 12_800):
        for name, short in (*((name, name) for name in ESTIMATORS), ("KDE, authors' bandwidth", "KDE_authors")):
            rows = select(table, n=n, estimator=name)
            if rows:
                quantities[f"{short}_{n}"] = average([_percent(row) for row in rows], absolute=True)
    for estimator, dataset, name in (
        ("EW", "CIFAR-10", "EW_c10"),
        ("EW", "CIFAR-100", "EW_c100"),
        ("EWsweep", "CIFAR-10", "EWsweep_c10"),
    ):
        for n in (200, 12_800):
            rows = [r for r in select(table, n=n, estimator=estimator) if dataset_of(r["world"]) == dataset]
            quantities[f"{name}_{n}"] = average([_percent(row) for row in rows], absolute=True)
    for words, name in (("KDE_theirs", "KDE, authors' bandwidth"), ("KDE_ours", "KDE")):
        for row in select(table, world="resnet110_c100", n=200, estimator=name):
            quantities[words] = _percent(row)
    return quantities


def figure_7(table: Frame) -> Quantities:
    quantities = {}
    for name in ("EW", "EMsweep"):
        for n in (200, 5000):
            for d in (1, 3):
                (row,) = select(table, world=f"Uniform d={d}", estimator=name, n=n)
                quantities[f"{name}_{n}_d{d}"] = _percent(row)
    for words, scores in (("uniform", "Uniform"), ("beta", "Beta(1.1, 0.1)")):
        quantities[f"tce_{words}"] = _truth_at(table, scores, 12.0)
        quantities[f"tce_20_{words}"] = _truth_at(table, scores, 20.0)
    return quantities


def _truth_at(table: Frame, scores: str, estimate: float) -> Number:
    """The true error (percent) at which the mean equal-width estimate from 200 rows is `estimate`, between two curves."""
    rows = [r for r in select(table, estimator="EW", n=200) if r["world"].startswith(scores)]
    rows.sort(key=lambda row: float(row["truth"]))
    truth, mean, se = (100 * np.array([row[k] for row in rows], dtype=float) for k in ("truth", "mean", "bias_se"))
    k = int(np.clip(np.searchsorted(mean, estimate), 1, len(mean) - 1))
    slope = (truth[k] - truth[k - 1]) / (mean[k] - mean[k - 1])
    noise = float(slope * max(se[k - 1], se[k]))
    return Number(float(truth[k - 1] + slope * (estimate - mean[k - 1])), abs(noise))


def figure_8(table: Frame) -> Quantities:
    quantities = {}
    for name in ("EW", "EMsweep"):
        for error in (0.02, 0.05, 0.08):
            for n in (500, 2000, 10_000):
                for row in select(table, estimator=name, true_error=error, n=n):
                    quantities[f"{name}_{round(100 * error)}_{n}"] = Number(row["power"], row["power_se"])
    for n in (500, 2000):
        powers = {
            name: average([Number(r["power"], r["power_se"]) for r in select(table, estimator=name, n=n)])
            for name in ("EW", "EMsweep")
        }
        quantities[f"gain_{n}"] = difference(powers["EMsweep"], powers["EW"])
    return quantities


def bias_by_bins(table: Frame) -> Quantities:
    return {
        scheme: average(
            [Number(r["bias_percent"], r["bias_se"]) for r in select(table, metric="BIN", scheme=scheme)], absolute=True
        )
        for scheme in ("width", "mass")
    }


def spread_by_bins(table: Frame) -> Quantities:
    def spread(metric: str, n: int, bins: int) -> Number:
        (row,) = select(table, metric=metric, scheme="mass", n=n, bins=bins)
        return Number(row["std_percent"], row["std_se"])

    sizes = sorted({row["n"] for row in table})
    above = [spread("DEBIAS", n, bins).value > spread("SWEEP", n, -1).value for n in sizes for bins in (8, 16, 32, 64)]
    quantities = {f"bins_{b}": spread("BIN", 800, b) for b in (2, 8, 64)}
    mean = {
        metric: average([spread(metric, n, b) for n in sizes for b in bins])
        for metric, bins in (("DEBIAS", (8, 16, 32, 64)), ("SWEEP", (-1,)))
    }
    return {
        **quantities,
        "cells_above": Number(float(sum(above))),
        "debiased": mean["DEBIAS"],
        "sweep": mean["SWEEP"],
        "rows_200": spread("BIN", sizes[0], 8),
        "rows_6400": spread("BIN", sizes[-1], 8),
    }


def figure_15(table: Frame) -> Quantities:
    quantities = {}
    for world in ("uncalibrated", "calibrated"):
        rows = select(table, world=world, n=5000)
        quantities[f"chosen_{world}"] = Number(rows[0]["sweep_bins"], rows[0]["sweep_bins_se"])
        best = min(rows, key=lambda row: abs(row["mean_percent"] - row["truth_percent"]))
        quantities[f"best_{world}"] = Number(float(best["bins"]))
        nearest = min(rows, key=lambda row: abs(row["bins"] - rows[0]["sweep_bins"]))
        quantities[f"miss_{world}"] = Number(
            abs(nearest["mean_percent"] - nearest["truth_percent"]), nearest["mean_se"]
        )
        usual = select(table, world=world, n=5000, bins=64)[0]
        quantities[f"miss_64_{world}"] = Number(abs(usual["mean_percent"] - usual["truth_percent"]), usual["mean_se"])
    return quantities


def table_1(table: Frame) -> Quantities:
    (row,) = select(table, world="resnet110_c10", reading="as printed")
    others = [r for r in table if r["reading"] == "simulated data"]
    return {
        "alpha": Number(row["alpha"]),
        "beta": Number(row["beta"]),
        "others": Cells(
            tuple(Number(r["alpha"], r["alpha_se"]) for r in others), tuple(r["paper_alpha"] for r in others)
        ),
    }


PRINTED_BOOTSTRAPS = 10  # behind every printed number of Table 2
ROUNDING = 0.01 / 12**0.5  # standard deviation of rounding to two digits
# Both have a constant probability, and so one likelihood; the fits have it once.
SAME_CURVE = {"logit_logflip_b0": "logit_logit_b0"}


def table_2(table: Frame) -> Quantities:
    fitted = {row["curve"]: row for row in select(table, world="resnet110_c10", reading="as printed")}

    def mean(curve: str, name: str) -> tuple[Number, float]:
        """Our mean over bootstraps, and the standard error of a rounded mean of ten."""
        row = fitted[SAME_CURVE.get(curve, curve)]
        sd = row[f"{name}_sd"]
        return Number(row[f"{name}_mean"], sd / row["m"] ** 0.5), float(
            np.hypot(sd / PRINTED_BOOTSTRAPS**0.5, ROUNDING)
        )

    def cells(names: tuple[str, ...], curves: tuple[str, ...] = tuple(RESNET110_C10)) -> Cells:
        """Our means of some curves beside the printed ones."""
        pairs = [
            (mean(curve, name), printed)
            for curve in curves
            for name, printed in zip(("aic", "b0", "b1"), RESNET110_C10[curve], strict=True)
            if name in names and printed is not None
        ]
        ours, printed_se = zip(*(pair[0] for pair in pairs), strict=True)
        return Cells(ours, tuple(pair[1] for pair in pairs), printed_se)

    return {
        "aics": cells(("aic",)),
        "coefficients": cells(("b0", "b1")),
        "coefficients_best": cells(("b0", "b1"), (next(iter(RESNET110_C10)),)),
        "second_above_best": mean("logit_logflip_b0_b1", "above_best")[0],
        "third_above_best": mean("logit_logit_b0_b1", "above_best")[0],
    }


def table_3(table: Frame) -> Quantities:
    parameters = select(table, reading="printed parameters")
    simulated = tuple(Number(r["simulated_percent"], r["simulated_se"]) for r in parameters)
    data = np.array([r["paper_ece"] for r in parameters])
    quantities: dict[str, Number | Cells] = {
        "simulated": Cells(simulated, tuple(r["paper_simulated"] for r in parameters)),
        "off_diagonal": average(
            [Number(n.value - d, n.se) for n, d in zip(simulated, data, strict=True)], absolute=True
        ),
        "correlation": Number(float(np.corrcoef([n.value for n in simulated], data)[0, 1])),
        "correlation_with_print": Number(
            float(np.corrcoef([n.value for n in simulated], [r["paper_simulated"] for r in parameters])[0, 1])
        ),
    }
    for name, reading in (
        ("published_seeds", "as printed"),
        ("more_datasets", "as printed, more datasets"),
        ("test_rows", "as it should be"),
    ):
        for row in select(table, world="resnet110_c10", reading=reading):
            se = 0.0 if reading == "as printed" else row["simulated_se"]  # the published seeds give one number
            quantities[name] = Number(row["simulated_percent"], se)
            quantities[f"{name}_data"] = Number(row["ece_percent"])
    return quantities


def recalibrated(table: Frame) -> Quantities:
    return {"EW": Number(table[0]["EW_percent"]), "EMsweep": Number(table[0]["EMsweep_percent"])}
