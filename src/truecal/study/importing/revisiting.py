"""The public table of Minderer et al. (2021): a row per model, dataset, metric, label set and rescaling.

Columns: ModelFamily, ModelName, RawModelName, DatasetName, Metric, MetricKey, MetricValue, use_dataset_labelset, rescaling_method,
tau_on_eval_data, corruption_type, severity and a few that repeat others. A second table holds reliability diagrams: RawModelName,
DatasetName, num_bins, adaptive, and conf_k, acc_k, edge_k, count_k for every bin k.
"""

import re
from typing import Any

from truecal.errors import InputError
from truecal.study.importing.table import need_columns
from truecal.study.store import polars

_NEEDED = ("ModelFamily", "ModelName", "DatasetName", "Metric", "MetricValue")
_BINS = ("RawModelName", "DatasetName", "num_bins", "adaptive")
_OPTION = re.compile(r"(\w+)\s*=\s*'?([^,')]+)'?")
_RESCALING = {"temperature_scaling": "temperature", "temperature": "temperature", "none": "none", "": "none"}
_WHOLE = {"accuracy": "error", "nll": "nll", "brier": "brier"}
_PREFERRED_BINS = 15


def metric_of(name: str) -> tuple[str, str] | None:
    """Lens and metric behind a name of the table, or None for what is unknown.

    >>> metric_of("gce(binning_scheme='adaptive',max_prob=True,class_conditional=False,norm='l1',num_bins=100,threshold=0.0)")
    ('top-label', 'ece-mass-100-l1')
    >>> metric_of("accuracy"), metric_of("ece")
    (('', 'error'), ('top-label', 'ece'))
    """
    base, _, inside = name.strip().partition("(")
    if base in _WHOLE:
        return "", _WHOLE[base]
    if base == "ece" and not inside:
        return "top-label", "ece"
    if base not in ("gce", "ece"):
        return None
    options = dict(_OPTION.findall(inside))
    scheme = {"adaptive": "mass", "even": "width"}.get(options.get("binning_scheme", "even"))
    norm = {"l1": "l1", "l2": "l2", "max": "max"}.get(options.get("norm", "l1"))
    if scheme is None or norm is None or "num_bins" not in options or float(options.get("threshold", "0")) != 0:
        return None
    lens = "top-label"
    if options.get("max_prob", "True") != "True":
        lens = "class-wise" if options.get("class_conditional", "False") == "True" else "all-label"
    return lens, f"ece-{scheme}-{int(float(options['num_bins']))}-{norm}"


def long_table(table: Any) -> tuple[Any, list[str]]:
    """Rows of a store's results from the public table, with the raw names beside them, and what to know about them."""
    pl = polars()
    need_columns(table, _NEEDED, "the table of measurements")
    rows = table
    for name in ("RawModelName", "use_dataset_labelset", "rescaling_method", "corruption_type", "severity"):
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(None).alias(name))
    known = {name: metric_of(str(name)) for name in rows["Metric"].unique().to_list()}
    notes = [f"the metric {name!r} is unknown and left out" for name, pair in sorted(known.items()) if pair is None]
    pairs = {name: pair for name, pair in known.items() if pair is not None}
    if not pairs:
        raise InputError("no metric of the table is known; give a mapping file instead of the preset")
    rows = rows.filter(pl.col("Metric").is_in(list(pairs))).with_columns(
        pl.col("RawModelName").fill_null(pl.col("ModelName")).cast(pl.String).alias("raw_model"),
        pl.col("DatasetName").cast(pl.String).alias("raw_dataset"),
        pl.col("ModelFamily").cast(pl.String).alias("family"),
        pl.col("Metric").replace_strict({name: pair[0] for name, pair in pairs.items()}).alias("lens"),
        pl.col("Metric").replace_strict({name: pair[1] for name, pair in pairs.items()}).alias("metric"),
        pl.col("MetricValue").cast(pl.Float64, strict=False).alias("value"),
        _number("severity").fill_null(0.0).alias("severity"),
        _text("corruption_type").alias("corruption"),
        _text("rescaling_method").fill_null("none").alias("recalibrator"),
    )
    odd = sorted(set(rows["recalibrator"].unique()) - set(_RESCALING))
    if odd:
        raise InputError(f"the rescaling method {odd[0]!r} is unknown; known are {', '.join(filter(None, _RESCALING))}")
    rows = rows.with_columns(
        pl.col("recalibrator").replace_strict(_RESCALING),
        pl.when(pl.col("metric") == "error").then(1 - pl.col("value")).otherwise("value").alias("value"),
        _dataset().alias("dataset"),
        _model(rows).alias("model"),
        _selection(),
    )
    return rows, notes


def _number(name: str) -> Any:
    pl = polars()
    return pl.col(name).cast(pl.Float64, strict=False).fill_nan(None)


def _text(name: str) -> Any:
    """A text; null where it is empty or a word for nothing."""
    pl = polars()
    words = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(~words.str.to_lowercase().is_in(["", "nan", "none", "null"])).then(words)


def _dataset() -> Any:
    """The dataset's name; the severities of a corruption are one dataset."""
    pl = polars()
    base = pl.col("raw_dataset").str.extract(r"^([^(/]+)", 1)
    corrupted = pl.concat_str([base, pl.lit(" "), pl.col("corruption")])
    return pl.when(pl.col("corruption").is_not_null()).then(corrupted).otherwise("raw_dataset")


def _model(table: Any) -> Any:
    """The readable name where it tells models apart, else the raw one."""
    pl = polars()
    names = table.select("ModelName", "raw_model").unique()
    shared = names.group_by("ModelName").len().filter(pl.col("len") > 1)["ModelName"].to_list()
    return pl.when(pl.col("ModelName").is_in(shared)).then("raw_model").otherwise(pl.col("ModelName").cast(pl.String))


def _selection() -> Any:
    """Where a dataset has a label set of its own, its classes are what is judged ("all"); else all classes are."""
    pl = polars()
    own = pl.col("use_dataset_labelset").cast(pl.String).str.to_lowercase().is_in(["true", "1", "1.0"]).fill_null(False)
    has = own.any().over("raw_model", "raw_dataset", "Metric", "recalibrator")
    return pl.when(own | ~has).then(pl.lit("all")).otherwise(pl.lit("all classes")).alias("selection")


def eval_temperatures(table: Any) -> Any:
    """The temperature that would be best on the judged rows themselves, as a metric, where the table has it."""
    pl = polars()
    if "tau_on_eval_data" not in table.columns:
        return table.clear()
    rows = table.with_columns(_number("tau_on_eval_data").alias("value")).filter(pl.col("value").is_not_null())
    rows = rows.filter((pl.col("selection") == "all") & (pl.col("recalibrator") == "none"))
    rows = rows.with_columns(metric=pl.lit("best-temperature"), lens=pl.lit(""))
    return rows.unique(["model", "dataset", "severity"], keep="first", maintain_order=True)


def diagram_rows(table: Any, jobs: dict[tuple[str, str], str]) -> list[dict[str, Any]]:
    """Bins of reliability diagrams; `jobs` are those of (raw model, raw dataset). Of several numbers of bins, 15 or the fewest."""
    need_columns(table, _BINS, "the table of reliability diagrams")
    pl = polars()
    many = sorted(table["num_bins"].unique().to_list())
    wanted = _PREFERRED_BINS if _PREFERRED_BINS in many else many[0]
    rows = []
    for row in table.filter(pl.col("num_bins") == wanted).iter_rows(named=True):
        job = jobs.get((str(row["RawModelName"]), str(row["DatasetName"])))
        if job is None:
            continue
        scheme = "mass" if str(row["adaptive"]).lower() in ("true", "1", "1.0") else "width"
        base = {"job": job, "recalibrator": "none", "lens": "top-label", "selection": "all", "scheme": scheme}
        rows += [{**base, **one} for one in _bins(row, int(wanted))]
    return rows


def _bins(row: dict[str, Any], count: int) -> list[dict[str, Any]]:
    pairs = []
    for k in range(count):
        confidence, outcome, size = (row.get(f"{name}_{k}") for name in ("conf", "acc", "count"))
        if confidence is None or outcome is None or not size or confidence != confidence or outcome != outcome:
            continue
        low, high = row.get(f"edge_{k}"), row.get(f"edge_{k + 1}")
        one = {"bin": k, "count": float(size), "confidence": float(confidence), "outcome": float(outcome)}
        pairs.append(
            {**one, "low": k / count if low is None else low, "high": (k + 1) / count if high is None else high}
        )
    return pairs
