"""A generated table in the format of the public one of Minderer et al. (2021), with numbers that are easy to check."""

import numpy as np
import polars as pl

CORRUPTIONS = tuple(f"corruption_{k}" for k in range(15))
NATURAL = ("imagenet", "imagenet_v2", "imagenet_r", "imagenet_a")
GCE = "gce(binning_scheme='{}',max_prob={},class_conditional=False,norm='{}',num_bins={},threshold=0.0,datapoints_per_bin=None)"
COLUMNS = (  # of the public table, in its order
    *("ModelFamily", "ModelName", "DatasetName", "Metric", "MetricKey", "MetricValue", "use_dataset_labelset"),
    *("rescaling_method", "rescaling_kwargs", "imagenet_error", "downstream_error", "brier", "nll", "tau_on_eval_data"),
    *("corruption_type", "severity", "RawModelName"),
)
FAMILIES = {"vit": 0.01, "mixer": 0.015, "bit": 0.03, "simclr": 0.05, "clip": 0.045, "wsl": 0.055, "alexnet": 0.02}


def public_table(models=182, metrics=2, seed=0):
    """Long table: `metrics` of the gce variants beside accuracy; models x 79 datasets x (metrics + 1) x before/after."""
    rng = np.random.default_rng(seed)
    families = list(FAMILIES)
    variants = [("adaptive", True, "l1", 100), ("even", True, "l1", 15), ("adaptive", False, "l2", 15)][:metrics]
    rows = {name: [] for name in ("ModelFamily", "ModelName", "RawModelName", "DatasetName", "Metric", "MetricValue")}
    rows |= {
        name: []
        for name in ("use_dataset_labelset", "rescaling_method", "tau_on_eval_data", "corruption_type", "severity")
    }
    places = [(name, None, None) for name in NATURAL]
    places += [
        (f"imagenet_c(corruption_type='{c}',severity={s})", c, float(s)) for c in CORRUPTIONS for s in range(1, 6)
    ]
    for m in range(models):
        family = families[m % len(families)]
        skill = rng.uniform(0.6, 0.9)
        for dataset, corruption, severity in places:
            shift = 0.05 * (severity or 0) + (0.1 if dataset in NATURAL[1:] else 0.0)
            accuracy = float(np.clip(skill - shift + rng.normal(0, 0.005), 0.05, 0.95))
            tau = float(1 + 5 * FAMILIES[family] + rng.normal(0, 0.01))
            for rescaling in (None, "temperature_scaling"):
                error = FAMILIES[family] * (0.5 if rescaling else 1.0) + 0.1 * (1 - accuracy) + shift / 5
                found = [("accuracy", accuracy)]
                found += [
                    (GCE.format(s, top, norm, bins), error * (1 + 0.1 * k))
                    for k, (s, top, norm, bins) in enumerate(variants)
                ]
                if corruption is None:
                    found += [("nll", 3 * (1 - accuracy) + 5 * error), ("brier", (1 - accuracy) + error)]
                for metric, value in found:
                    for own in (True, False) if dataset in ("imagenet_r", "imagenet_a") else (None,):
                        row = (
                            family,
                            f"{family}-{m}",
                            f"raw/{family}/{m}",
                            dataset,
                            metric,
                            value + (0.001 if own is False else 0),
                        )
                        row += (own, rescaling, tau, corruption, severity)
                        for name, cell in zip(rows, row, strict=True):
                            rows[name].append(cell)
    repeated = {
        "MetricKey": pl.col("Metric").str.extract(r"^(\w+)"),
        "rescaling_kwargs": pl.when(pl.col("rescaling_method").is_not_null()).then(pl.lit("{}")),
        "imagenet_error": pl.lit(0.25),
        "downstream_error": pl.lit(0.3),
        "brier": pl.lit(0.4),
        "nll": pl.lit(1.2),
    }
    return pl.DataFrame(rows).with_columns(**repeated).select(COLUMNS)


def public_diagrams(models=6, bins=15, seed=0):
    """Wide table: a row per model, dataset, number of bins and scheme."""
    rng = np.random.default_rng(seed)
    families, rows = list(FAMILIES), []
    for m in range(models):
        for adaptive in (True, False):
            row = {
                "RawModelName": f"raw/{families[m % len(families)]}/{m}",
                "DatasetName": "imagenet",
                "num_bins": bins,
            }
            row["adaptive"] = adaptive
            for k in range(bins):
                confidence = (k + 0.5) / bins
                row |= {f"conf_{k}": confidence, f"acc_{k}": confidence**1.2, f"edge_{k}": k / bins}
                row |= {f"count_{k}": int(rng.integers(1, 500))}
            rows.append(row)
    return pl.DataFrame(rows)
