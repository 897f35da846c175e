"""A generated table in the documented format of the public one of Minderer et al. (2021): 185 models, 79 datasets, 28 metrics.

The format is that of the authors' notebook (google-research/robustness_metrics, projects/revisiting_calibration): columns, names of
datasets, models with and without rescaling, metric strings with and without the dataset's own label set, upper edges of bins.
"""

import numpy as np
import polars as pl

CORRUPTIONS = tuple(f"corruption_{k}" for k in range(15))
CLEAN = "imagenet(split='validation[20%:]')"
NATURAL = (CLEAN, "imagenet_v2(variant='MATCHED_FREQUENCY')", "imagenet_r", "imagenet_a")
LABELSETS = NATURAL[2:]  # datasets with a label set of their own
GCE = "gce({}binning_scheme='{}',max_prob={},class_conditional={},norm='{}',num_bins={},threshold=0.0,datapoints_per_bin=None)"
COLUMNS = (  # of the public table, in its order
    *("index", "ModelFamily", "ModelName", "DatasetName", "Metric", "MetricKey", "MetricValue", "use_dataset_labelset"),
    *("rescaling_method", "rescaling_kwargs", "imagenet_error", "downstream_error", "brier", "nll", "tau_on_eval_data"),
    *("corruption_type", "severity", "RawModelName"),
)
FAMILIES = (
    *("alexnet", "bit", "clip", "efficientnet", "mixer", "simclr", "vit", "wsl"),
    *("resnet", "densenet", "vgg", "nasnet", "regnet", "deit", "beit", "swin"),
)
VARIANTS = (  # scheme, max_prob, class_conditional, norm, bins, factor of the value
    ("adaptive", True, False, "l1", 100, 1.0),
    ("adaptive", True, False, "l1", 15, 0.9),
    ("adaptive", True, False, "l1", 5000, 1.6),
    ("even", True, False, "l1", 15, 0.95),
    ("even", True, False, "l1", 100, 1.05),
    ("adaptive", True, False, "l2", 15, 1.1),
    ("adaptive", True, False, "l2", 100, 1.2),
    ("even", True, False, "l2", 15, 1.15),
    ("adaptive", False, False, "l1", 15, 0.1),
    ("adaptive", False, True, "l1", 15, 0.05),
    ("adaptive", False, False, "l2", 15, 0.12),
)  # with accuracy, nll and brier 14; with the variants of label sets 28


def public_table(models=185, variants=11, seed=0):
    """The long table: models x 79 datasets x metrics x (none, temperature_scaling)."""
    rng = np.random.default_rng(seed)
    number = pl.DataFrame({"m": range(models)})
    of_model = number.with_columns(
        ModelFamily=pl.Series([FAMILIES[m % 16] for m in range(models)]),
        ModelName=pl.Series([model_name(m) for m in range(models)]),
        gain=pl.Series(rng.uniform(0.01, 0.06, models)),
        error=pl.Series(rng.uniform(0.1, 0.4, models)),
        imagenet_error=pl.Series(rng.uniform(0.1, 0.4, models)),
    )
    corrupted = [
        (f"imagenet_c(corruption_type='{c}',severity={s})", c, float(s)) for c in CORRUPTIONS for s in range(1, 6)
    ]
    datasets = pl.DataFrame(
        [*((name, None, None) for name in NATURAL), *corrupted],
        schema={"DatasetName": pl.String, "corruption_type": pl.String, "severity": pl.Float64},
        orient="row",
    )
    names = [("accuracy", "accuracy", 0.0), ("nll", "nll", 0.0), ("brier", "brier", 0.0)]
    names += [(GCE.format("", *v[:5]), "gce", v[5]) for v in VARIANTS[:variants]]
    own_values = [(f"{key}(use_dataset_labelset=True)", key, factor) for _, key, factor in names[:3]]
    own_values += [(GCE.format("use_dataset_labelset=True,", *v[:5]), "gce", v[5]) for v in VARIANTS[:variants]]
    metrics = pl.DataFrame(
        [(*row, False) for row in names] + [(*row, True) for row in own_values],
        schema=["Metric", "MetricKey", "factor", "own"],
        orient="row",
    )
    methods = pl.DataFrame(
        {"rescaling_method": ["none", "temperature_scaling"], "rescaling_kwargs": ["{}", "{'beta': 0.82}"]}
    )
    table = of_model.join(datasets, how="cross").join(methods, how="cross").join(metrics, how="cross")
    table = table.filter(~pl.col("own") | pl.col("DatasetName").is_in(LABELSETS))
    shift = 0.05 * pl.col("severity").fill_null(0.0) + 0.1 * (pl.col("DatasetName") != CLEAN).cast(pl.Float64)
    shift += 0.002 * pl.col("corruption_type").str.extract(r"_(\d+)", 1).cast(pl.Float64).fill_null(0.0)
    table = table.with_columns(downstream_error=(pl.col("error") + shift).clip(0.05, 0.95))
    scaled = pl.col("rescaling_method") == "temperature_scaling"
    gap = pl.col("gain") * pl.when(scaled).then(0.5).otherwise(1.0) + 0.1 * pl.col("downstream_error")
    table = table.with_columns(
        brier=pl.col("downstream_error") + gap,
        nll=3 * pl.col("downstream_error") + 5 * gap,
        tau_on_eval_data=1 + 5 * pl.col("gain"),
    )
    value = (
        pl.when(pl.col("MetricKey") == "accuracy")
        .then(1 - pl.col("downstream_error"))
        .when(pl.col("MetricKey") == "nll")
        .then("nll")
        .when(pl.col("MetricKey") == "brier")
        .then("brier")
        .otherwise(gap * pl.col("factor"))
    )
    raw = pl.when(scaled).then(pl.lit("+temperature_scaling(beta=0.82088172)")).otherwise(pl.lit("+none()"))
    return (
        table.with_columns(
            MetricValue=value - 0.001 * pl.col("own").cast(pl.Float64),
            use_dataset_labelset=pl.when(pl.col("own")).then(True),
            RawModelName=pl.col("ModelName") + raw,
        )
        .with_row_index()
        .select(COLUMNS)
    )


def model_name(m):
    """The m-th model; those of bit are a sweep over pretraining data, as in the public table."""
    if FAMILIES[m % 16] == "bit":
        data, size, steps = ("imagenet21k", "jft")[m // 16 % 2], 1_300_000 * (m // 16 + 1), 112_000 * (1 + m // 32)
        return f"{data}-r50-x1-size={size}-steps={steps}"
    return f"{FAMILIES[m % 16]}-{m}"


def public_diagrams(models=185, datasets=NATURAL, seed=0):
    """The wide table: a row per model, dataset, rescaling and scheme, ten bins, NaN where a bin is empty."""
    rng = np.random.default_rng(seed)
    rows = []
    for m in range(models):
        for dataset in datasets:
            for rescaling in ("none()", "temperature_scaling(beta=0.82088172)"):
                for adaptive in (True, False):
                    row = {"num_bins": 10, "adaptive": adaptive}
                    row |= {"RawModelName": f"{model_name(m)}+{rescaling}", "DatasetName": dataset}
                    edges = [*np.sort(rng.uniform(0.2, 1, 9)).tolist(), 1.0] if adaptive else np.arange(1, 11) / 10
                    for k, edge in enumerate(edges):
                        empty = not adaptive and k == 0
                        conf = float(edge) - 0.02
                        cells = {
                            "conf": conf,
                            "acc": conf**1.2,
                            "edge": float(edge),
                            "count": float(rng.integers(1, 500)),
                        }
                        row |= {f"{name}_{k}": float("nan") if empty else cell for name, cell in cells.items()}
                    rows.append(row)
    return pl.DataFrame(rows).with_row_index()


def about_models(models=185):
    """Sizes of the models."""
    return pl.DataFrame(
        {"model": [model_name(m) for m in range(models)], "size": [1e6 * (1 + m // 16) for m in range(models)]}
    )
