"""Any table of measured numbers: a mapping file says which column is what.

    columns: {model: run_name, dataset: data, family: arch, severity: shift}   # a long table adds metric: ..., value: ...
    metrics: {test_ece: ece-width-15-l1, test_acc: accuracy}                   # a wide one (MLflow, W&B) has a column for each
    constants: {dataset: cifar10}
    covariates: [lr, epochs]

accuracy becomes the error. Metrics of known names get their lens (top-label unless `lens` is a column or constant).
"""

import os
from typing import Any

from truecal.errors import InputError
from truecal.study.importing.table import need_columns
from truecal.study.metrics.names import parse_metric
from truecal.study.spec.document import Entry, Problems, read_document
from truecal.study.store import polars

_FIELDS = ("model", "family", "size", "dataset", "severity", "seed", "recalibrator", "lens", "selection")
_NUMBERS = ("metric", "value", "low", "high", "level", "n")
_DEFAULTS = {"severity": 0.0, "seed": 0, "recalibrator": "none", "selection": "all"}


def mapped(table: Any, path: str | os.PathLike[str]) -> tuple[Any, list[str], list[str]]:
    """Rows of a store's results, the names of the covariates, and what to know."""
    pl = polars()
    top = read_document(path)
    problems = Problems(os.path.basename(path))
    items = problems.keys(
        top, ("columns", "metrics", "constants", "covariates"), what="a mapping", required=("columns",)
    )
    known = (*_FIELDS, *_NUMBERS)
    columns = _plain(problems.keys(items["columns"], known, what="columns")) if "columns" in items else {}
    constants = _plain(problems.keys(items["constants"], known, what="constants")) if "constants" in items else {}
    metrics = items["metrics"].plain() if "metrics" in items else {}
    covariates = [str(name) for name in items["covariates"].plain()] if "covariates" in items else []
    for name in ("model", "dataset"):
        if name not in columns and name not in constants:
            problems.add(top.line, f"a mapping needs {name!r}, as a column or a constant")
    if bool(metrics) == ("metric" in columns):
        problems.add(top.line, "give metrics (a column for each), or metric and value under columns (a long table)")
    problems.refuse()
    need_columns(table, (*map(str, columns.values()), *map(str, metrics), *covariates), "the table")
    rows = table.select(
        *(pl.col(str(column)).alias(name) for name, column in columns.items()),
        *(pl.lit(value).alias(name) for name, value in constants.items()),
        *(pl.col(name) for name in (*metrics, *covariates) if name not in columns.values()),
    )
    if metrics:
        kept = [name for name in rows.columns if name not in metrics]
        rows = rows.unpivot(list(metrics), index=kept, variable_name="metric", value_name="value")
        rows = rows.with_columns(pl.col("metric").replace(metrics))
    for name, value in _DEFAULTS.items():
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(value).alias(name))
    rows = rows.with_columns(pl.col("value").cast(pl.Float64, strict=False).fill_nan(None))
    empty = rows.filter(pl.col("value").is_null()).height
    notes = [f"{empty} numbers of the table are missing"] if empty else []
    return _named(rows.filter(pl.col("value").is_not_null())), covariates, notes


def _plain(items: dict[str, Entry]) -> dict[str, Any]:
    return {name: entry.plain() for name, entry in items.items()}


def _named(results: Any) -> Any:
    """accuracy as error, and the lens of every metric."""
    pl = polars()
    right = pl.col("metric") == "accuracy"
    results = results.with_columns(
        pl.when(right).then(1 - pl.col("value")).otherwise("value").alias("value"),
        pl.when(right).then(pl.lit("error")).otherwise(pl.col("metric").cast(pl.String)).alias("metric"),
    )
    whole = [name for name in results["metric"].unique().to_list() if _is_whole(name)]
    given = pl.col("lens") if "lens" in results.columns else pl.lit("top-label")
    return results.with_columns(pl.when(pl.col("metric").is_in(whole)).then(pl.lit("")).otherwise(given).alias("lens"))


def _is_whole(name: str) -> bool:
    try:
        return parse_metric(name).whole
    except InputError:
        return False
