"""Kumar, Liang and Ma, "Verified uncertainty calibration" (2019, K): the numbers that its items test."""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

import truecal as tc
from papers.grading import Number, Quantities, ratio, share
from papers.kumar.theory import explicit_bound
from papers.page import Row
from papers.roelofs import select
from truecal.lab import Frame

_HISTOGRAM, _BINNING, _SCALING = "histogram binning", "scaling-binning", "scaling"


def _with_interval(row: Row, column: str) -> Number:
    """A mean whose standard error is behind its 90 % limits."""
    return Number(float(row[column]), float(row["high_90"] - row["low_90"]) / (2 * NormalDist().inv_cdf(0.95)))


def figure_1(table: Frame) -> Quantities:
    return {"outputs": Number(float(len(set(table[_BINNING].tolist()))))}


def example_3_2(table: Frame) -> Quantities:
    binned, true = table["binned_error_l1"], table["true_error_l1"]
    return {"binned_error": Number(float(binned.max())), "true_error": Number(float(true.min()))}


def _in_standard_errors(difference: float, se: float) -> float:
    """Divide a difference by its standard error, which is 0 where the few datasets of a quick run agree."""
    return difference / se if se else float(np.sign(difference)) * np.inf if difference else 0.0


def figure_2_worlds(table: Frame) -> Quantities:
    """The largest debiased mean above the true error, in standard errors, and how much of the error few bins show."""
    rows = select(table, estimator="debiased")
    excess = [_in_standard_errors(row["mean_percent"] - row["truth_percent"], row["mean_se"]) for row in rows]
    (few,), (many,) = (select(table, world="resnet_wide32_c100", estimator="debiased", bins=b) for b in (2, 64))
    return {
        "largest_excess_in_se": Number(max(excess)),
        "two_bins": Number(few["mean_percent"], few["mean_se"]),
        "bins_64": Number(many["mean_percent"], many["mean_se"]),
        "truth": Number(few["truth_percent"]),
    }


def binned(table: Frame) -> Quantities:
    """Errors to the power of the norm, on whose scale noise is even and a debiased estimate may be negative; errors of a world."""
    quantities = {}
    rows = select(table, scheme="mass")
    for kind in ("plugin", "debiased"):
        for row in select(rows, estimator=kind):
            quantities[f"{kind}_{row['bins']}"] = Number(row["power"], row["power_se"])
            quantities[f"{kind}_rise_{row['bins']}"] = Number(row["rise"], row["rise_se"])
    rise = quantities["debiased_rise_100"]
    quantities["debiased_rise_in_se"] = Number(rise.value / rise.se if rise.se else 0.0)
    for row in select(rows, estimator="plugin"):
        if np.isfinite(row["world_error"]):
            quantities[f"world_{row['bins']}"] = Number(row["world_error"])
    inverted = sum(row["low_90"] > row["high_90"] for row in table)
    return {**quantities, "inverted_intervals": Number(float(inverted))}


def compared(table: Frame) -> Quantities:
    """How much lower, and how many times smaller, the squared error of scaling-binning is, by bins, than with histogram binning."""
    quantities = {}
    for bins in sorted({row["bins"] for row in table}):
        (below,) = select(table, bins=bins, method=_BINNING)
        lower = Number(below["below_histogram"], below["below_se"])
        quantities[f"lower_{bins}"] = lower
        if lower.value < 1:  # both methods are fitted to the same rows: the standard error is that of pairs
            quantities[f"times_{bins}"] = Number(1 / (1 - lower.value), lower.se / (1 - lower.value) ** 2)
    if "gain_at_0.02" in table:
        quantities["gain"] = Number(table[0]["gain_at_0.02"], table[0]["gain_se"])
    return quantities


def closer(table: Frame) -> Quantities:
    """How many times smaller the mean squared deviation of the debiased estimate is, from 1000 rows."""
    quantities = {}
    for bins in sorted({row["bins"] for row in table}):
        both = [
            _with_interval(select(table, bins=bins, n=1000, estimator=kind)[0], "mean_squared_deviation")
            for kind in ("plugin", "debiased")
        ]
        quantities[f"closer_{bins}"] = ratio(*both)
    return quantities


def deviations(table: Frame) -> Quantities:
    quantities = {}
    for bins in sorted({row["bins"] for row in table}):
        for kind in ("plugin", "debiased"):
            row = select(table, bins=bins, estimator=kind)[0]
            quantities[f"{kind}_{bins}"] = Number(row["mean_deviation"], row["mean_se"])
    return quantities


def appendix_e_a(table: Frame) -> Quantities:
    def error(kind: str, n: int, bins: int) -> Number:
        (row,) = select(table, calibrator=kind, n=n, bins=bins)
        return Number(row["squared_error"], row["squared_error_se"])

    quantities = {}
    for kind, short in ((_HISTOGRAM, "histogram"), (_BINNING, "binning")):
        quantities[f"{short}_n"] = ratio(error(kind, 1000, 10), error(kind, 2000, 10))
        quantities[f"{short}_bins"] = ratio(error(kind, 2000, 20), error(kind, 2000, 5))
    return quantities


def appendix_e_b(table: Frame) -> Quantities:
    rows = [select(table, calibrator=kind, n=3000)[0] for kind in (_SCALING, _BINNING)]
    return {"times": ratio(*(Number(row["squared_error"], row["squared_error_se"]) for row in rows))}


def figure_10(table: Frame) -> Quantities:
    step = np.diff(table["p_a"])
    noise = np.abs(table["p_b"] - tc.lab.GLM("logit", "logit", 1.0, 2.0)(table["z_b"]))
    return {"smallest_step": Number(float(step.min())), "noise": Number(float(noise.mean()))}


def figure_17(table: Frame) -> Quantities:
    splits = [select(table, split=k)[0] for k in sorted({row["split"] for row in table})]

    def mean(values: list[float]) -> Number:
        finite = np.array([v for v in values if v == v])
        se = float(finite.std(ddof=1)) / len(finite) ** 0.5 if len(finite) > 1 else 0.0
        return Number(float(finite.mean()), se)

    return {
        "debiased_bins": mean([row["chosen_debiased"] for row in splits]),
        "plugin_bins": mean([row["chosen_plugin"] for row in splits]),
        "higher_loss": mean([row["loss_plugin"] / row["loss_debiased"] - 1 for row in splits]),
    }


def _slope(table: Frame, x: Callable[[Row], float], y: str = "rows", **values: object) -> Number:
    """Slope of log y over log x: mean over replicates, with its standard error."""
    slopes = []
    for k in sorted({row["replicate"] for row in select(table, **values)}):
        rows = select(table, replicate=k, **values)
        slopes.append(np.polyfit(np.log([x(row) for row in rows]), np.log([row[y] for row in rows]), 1)[0])
    return Number(float(np.mean(slopes)), float(np.std(slopes, ddof=1)) / len(slopes) ** 0.5)


def rows_needed(table: Frame) -> Quantities:
    return {kind: _slope(table, lambda row: row["bins"], estimator=kind) for kind in ("plugin", "debiased")}


def balance(table: Frame) -> Quantities:
    return {
        "slope": _slope(table, lambda row: row["bins"] * np.log(row["bins"] / 0.1)),
        "largest_constant": Number(float(table["constant"].max())),
        "smallest_constant": Number(float(table["constant"].min())),
    }


def inequalities(table: Frame) -> Quantities:
    def largest(lemma: str) -> Number:
        return Number(max(row["left_less_right"] for row in select(table, lemma=lemma)))

    scaled = {b: float(np.mean([r["left_less_right"] for r in select(table, lemma="D.4", bins=b)])) for b in (5, 100)}
    return {
        "d5": largest("D.5"),
        "d6": largest("D.6"),
        "b_times_increase_5": Number(scaled[5]),
        "b_times_increase_100": Number(scaled[100]),
    }


def proof_steps(table: Frame) -> Quantities:
    """The largest side over its bound (of equations: the largest difference), and the share of datasets beyond it, by lemma."""
    quantities = {"d3": _slope(table, lambda row: row["n"], "largest", lemma="D.3")}
    for lemma in dict.fromkeys(row["lemma"] for row in table if row["lemma"] != "D.3"):
        rows, name = select(table, lemma=lemma), lemma.lower().replace(".", "").replace(", ", "_")
        quantities[name] = Number(max(row["largest"] for row in rows))
        quantities[f"{name}_beyond"] = max(
            (share(row["beyond"] * row["m"], row["m"]) for row in rows), key=lambda number: number.value
        )
    return quantities


def explicit_bounds(table: Frame) -> Quantities:
    (row,) = select(table, bins=10)
    excess = {
        kind: Number(tc.inference.rows_needed(0.02, bins=10, estimator=kind) - _rows_by_the_formula(kind))
        for kind in ("plugin", "debiased")
    }
    return {
        "F6": Number(row["F6"]),
        "F9": Number(row["F9"]),
        "smaller": Number(row["smaller"]),
        "verify_explicit": Number(row["verify_explicit"]),
        "rows_F6": Number(_rows_by_the_formula("plugin")),
        "rows_F9": Number(_rows_by_the_formula("debiased")),
        "excess_F6": excess["plugin"],
        "excess_F9": excess["debiased"],
        "accuracy": Number(row["accuracy"]),
    }


def _rows_by_the_formula(kind: str) -> float:
    """Rows with which the bound for an estimate of 0 falls to 0.02, 10 outputs of equal probability."""
    low, high = 1.0, 1e8
    while high - low > 1:
        middle = (low + high) // 2
        enough = explicit_bound(0.0, middle, 10, 0.1, 0.95, kind) <= 0.02**2
        low, high = (low, middle) if enough else (middle, high)
    return high
