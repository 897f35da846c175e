"""Results of a study made by hand, with the columns of a store."""

import numpy as np
import polars as pl

SCHEMA = {
    "job": pl.String,
    "model": pl.String,
    "family": pl.String,
    "size": pl.Float64,
    "dataset": pl.String,
    "severity": pl.Float64,
    "seed": pl.Int64,
    "recalibrator": pl.String,
    "lens": pl.String,
    "selection": pl.String,
    "metric": pl.String,
    "scheme": pl.String,
    "bins": pl.Int64,
    "norm": pl.Float64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "n": pl.Int64,
    "warnings": pl.String,
}
WHOLE = ("error", "nll", "brier", "confidence")
COMMON = {
    "job": "j",
    "family": None,
    "size": None,
    "dataset": "digits",
    "severity": 0.0,
    "seed": 0,
    "recalibrator": "none",
    "selection": "all",
    "n": 1000,
    "warnings": "",
}


def number(model, metric, value, **more):
    """One row; scores of whole predictions have no lens."""
    row = {**COMMON, "lens": "" if metric in WHOLE else "top-label", "model": model, "metric": metric, "value": value}
    return {**dict.fromkeys(SCHEMA), **row, **more}


def frame_of(rows):
    return pl.DataFrame(rows, schema=SCHEMA)


def study(errors, metrics, *, half=None, **more):
    """A frame with the given errors and {metric: values}; models are m0, m1, ...; intervals are value +- half."""
    rows = []
    for i, error in enumerate(errors):
        rows.append(number(f"m{i}", "error", error, **more))
        for metric, values in metrics.items():
            bounds = {} if half is None else {"low": values[i] - half, "high": values[i] + half}
            rows.append(number(f"m{i}", metric, values[i], **bounds, **more))
    return frame_of(rows)


def random_study(
    models=12, *, seed=0, metrics=("rank-series-l2", "ece-mass-100-l1"), severities=(0.0,), dataset="digits"
):
    """Families a, b, c of growing sizes; everything grows with severity."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(models):
        who = {"family": "abc"[i % 3], "size": float(2 ** (i // 3)), "dataset": dataset}
        error, values = rng.uniform(0.05, 0.3), rng.uniform(0.01, 0.1, len(metrics))
        for severity in severities:
            rows.append(number(f"m{i}", "error", error + 0.05 * severity, severity=severity, **who))
            for metric, value in zip(metrics, values + 0.02 * severity, strict=True):
                bounds = {"low": value - 0.01, "high": value + 0.01}
                rows.append(number(f"m{i}", metric, value, severity=severity, **who, **bounds))
    return frame_of(rows)
