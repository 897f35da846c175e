"""Import tables of numbers that were measured elsewhere into a store: the public table of Minderer et al., or any other."""

import hashlib
import os
import re
import zipfile
from pathlib import Path
from typing import Any

from truecal import options
from truecal.errors import FileError, InputError
from truecal.study.document import load_schema, read_document
from truecal.study.metrics import SCORES, parse_metric
from truecal.study.store import DIAGRAMS, RESULTS, Store, make_table, pl

PRESETS = ("revisiting-calibration",)
_JOB = ("model", "dataset", "severity", "seed")
_DEFAULTS = {
    "severity": 0.0,
    "seed": 0,
    "recalibrator": "none",
    "lens": "top-label",
    "selection": "all",
    "warnings": "",
}


def import_table(
    table: str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    preset: str | None = None,
    mapping: str | os.PathLike[str] | None = None,
    diagrams: str | os.PathLike[str] | None = None,
    about: str | os.PathLike[str] | None = None,
    reference: str | None = None,
    name: str | None = None,
) -> Store:
    """Make a store of the numbers in a table, for the analyses, figures and page of studies.

    Nothing is evaluated: numbers of rows may be unknown and intervals absent.

    Parameters
    ----------
    table : path
        Table of measured numbers: .csv, .csv.gz, .zip (of one CSV file) or .parquet.
    store : path
        Folder of the new store.
    preset : {"revisiting-calibration"}, default None
        Format of the table: the public one of Minderer et al. (2021).
    mapping : path, default None
        For any other table, a YAML file that says which column is what. One of `preset` and `mapping` is needed.
    diagrams : path, default None
        Table of reliability diagrams that goes with the preset.
    about : path, default None
        Table with a column `model` and columns such as size or pretraining, one row per model.
    reference : str, default None
        Clean dataset that the others are compared with; None: imagenet with the preset, else none.
    name : str, default None
        Name of the study; None: that of the preset, or of the table's file.

    Returns
    -------
    Store
        The new store; `meta()["study"]["notes"]` says what was left out.

    Raises
    ------
    InputError
        If a column is missing, a number is there twice, or not exactly one of `preset` and `mapping` is given.

    Notes
    -----
    In the public table a model is a ModelName; RawModelName includes the rescaling and joins the two tables. A dataset is named
    without its options ("imagenet" for imagenet(split='validation[20%:]')) where no other has the same name, and the severities of
    a corruption are one dataset. Where a dataset has a label set of its own, the selection "all" is that of its classes. `edge_k`
    is the upper edge of bin k.

    References
    ----------
    Minderer et al. (2021), Revisiting the Calibration of Modern Neural Networks, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "runs.csv").write_text("run,acc,ece\\nmlp,0.75,0.1\\ntree,0.5,0.2\\n")
    >>> mapping = "columns: {model: run}\\nconstants: {dataset: digits}\\nmetrics: {acc: accuracy, ece: ece-width-15-l1}\\n"
    >>> _ = (folder / "map.yaml").write_text(mapping)
    >>> import_table(folder / "runs.csv", folder / "store", mapping=folder / "map.yaml").frame()["value"].to_list()
    [0.25, 0.5, 0.1, 0.2]
    """
    if (preset is None) == (mapping is None):
        raise InputError(f"give a preset ({', '.join(PRESETS)}) or a mapping file, one of the two")
    measured = read_table(table)
    if mapping is None:
        options.choice(preset, PRESETS, "preset")
        rows, covariates, notes = read_public_table(measured)
        reference = reference or "imagenet"
    else:
        rows, covariates, notes = read_mapped_table(measured, mapping)
    if about is not None:
        rows, model_columns = _join_models(rows, read_table(about))
        covariates = [*covariates, *model_columns]
    rows = _complete_columns(rows)
    _refuse_duplicates(rows)
    datasets = rows["dataset"].unique().to_list()
    if reference is not None and reference not in datasets:
        notes.append(
            f"the clean dataset {reference!r} is not in the table, so that shifted data have nothing to compare with"
        )
    bins = make_table(DIAGRAMS) if diagrams is None else read_public_diagrams(read_table(diagrams), rows)
    part = hashlib.blake2b(rows.select(sorted(RESULTS)).hash_rows().to_numpy().tobytes(), digest_size=12).hexdigest()
    jobs = rows.unique("job", keep="first", maintain_order=True).select("job", *covariates).to_dicts()
    target = Store(store)
    target.begin(
        {
            "name": str(name or preset or os.path.basename(table)),
            "study": {"imported": True, "notes": notes},
            "jobs": [part],
            "covariates": {job.pop("job"): job for job in jobs} if covariates else {},
            "clean": {name: reference for name in datasets if name != reference and reference in datasets},
        }
    )
    target.add(part, rows.select(list(RESULTS)), bins)
    return target


def read_table(path: str | os.PathLike[str]) -> Any:
    """Read a table of CSV, zipped CSV or Parquet as a polars frame; a zip archive must hold one CSV file."""
    file = Path(path)
    kind = "".join(file.suffixes[-2:]).lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    if kind not in (".parquet", ".pq", ".csv", ".csv.gz", ".zip"):
        raise InputError(f"{file.name} is not of a known kind; give .csv, .csv.gz, .zip (of one CSV file) or .parquet")
    try:
        if kind in (".parquet", ".pq"):
            return pl.read_parquet(file, glob=False)
        content: Any = file
        if kind == ".zip":
            with zipfile.ZipFile(file) as archive:
                names = [n for n in archive.namelist() if n.lower().endswith(".csv") and "__MACOSX" not in n]
                if len(names) != 1:
                    raise InputError(f"{file} must hold one CSV file; it holds {', '.join(names) or 'none'}")
                content = archive.read(names[0])
        return pl.read_csv(content, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, zipfile.BadZipFile) as error:
        raise FileError(f"cannot read {file}: {str(error).splitlines()[0]}") from error


def _require_columns(table: Any, names: tuple[str, ...], what: str) -> None:
    """Refuse a table without one of these columns."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(f"{what} has no column {missing[0]!r}; it has {', '.join(table.columns[:20])}")


def read_mapped_table(table: Any, path: str | os.PathLike[str]) -> tuple[Any, list[str], list[str]]:
    """Convert a table to long rows (metric, value) by a mapping file; return rows, names of covariates, and notes.

    Rows without a value are dropped, with a note; accuracies become errors.
    """
    document = read_document(path)
    document.check(load_schema("mapping.schema.json"))
    columns, constants, metrics = (document.value.get(part, {}) for part in ("columns", "constants", "metrics"))
    covariates = [str(name) for name in document.value.get("covariates", ())]
    for name in ("model", "dataset"):
        if name not in columns and name not in constants:
            document.add((), f"a mapping needs {name!r}, as a column or a constant")
    if bool(metrics) == ("metric" in columns):
        document.add((), "give metrics (a column for each), or metric and value under columns (a long table)")
    document.refuse()
    _require_columns(table, (*map(str, columns.values()), *map(str, metrics), *covariates), "the table")
    rows = table.select(
        *(pl.col(str(column)).alias(name) for name, column in columns.items()),
        *(pl.lit(value).alias(name) for name, value in constants.items()),
        *(pl.col(name) for name in (*metrics, *covariates) if name not in columns.values()),
    )
    if metrics:
        index = [name for name in rows.columns if name not in metrics]
        rows = rows.unpivot(list(metrics), index=index, variable_name="metric", value_name="value")
        rows = rows.with_columns(pl.col("metric").replace(metrics))
    rows = rows.with_columns(pl.col("value").cast(pl.Float64, strict=False).fill_nan(None))
    empty = rows["value"].null_count()
    notes = [f"{empty} numbers of the table are missing"] if empty else []
    accuracy = pl.col("metric") == "accuracy"
    rows = rows.filter(pl.col("value").is_not_null()).with_columns(
        pl.when(accuracy).then(1 - pl.col("value")).otherwise("value").alias("value"),
        pl.when(accuracy).then(pl.lit("error")).otherwise(pl.col("metric").cast(pl.String)).alias("metric"),
    )
    return rows, covariates, notes


# ----------------------------------------------------------------------------------------------------
# The public table of Minderer et al. (2021): a row per model, dataset, metric, label set and rescaling

_NAMES = {  # columns of the public table
    "ModelFamily": "family",
    "ModelName": "model",
    "DatasetName": "raw_dataset",
    "Metric": "raw_metric",
    "MetricValue": "value",
}
_OPTIONAL = {
    "RawModelName": "raw_model",
    "use_dataset_labelset": "labelset",
    "rescaling_method": "recalibrator",
    "corruption_type": "corruption",
    "severity": "severity",
    "tau_on_eval_data": "temperature",
}
_PRETRAINING = {  # covariates in names such as jft-r50-x1-size=13000000-steps=1120000
    "pretraining": r"(imagenet21k|imagenet|jft)-",
    "pretraining_size": r"size=(\d+)",
    "pretraining_steps": r"steps=(\d+)",
}
_OPTION = re.compile(r"(\w+)\s*=\s*'?([^,')]+)'?")
_WHOLE = {"accuracy": "error", "nll": "nll", "brier": "brier"}


def parse_public_metric(name: str) -> tuple[str, str] | None:
    """Parse a metric of the public table as (lens, metric), the lens "" for scores; None where it is unknown or has a threshold.

    >>> name = "gce(binning_scheme='adaptive',max_prob=True,class_conditional=False,norm='l1',num_bins=100,threshold=0.0)"
    >>> parse_public_metric(name), parse_public_metric("accuracy(use_dataset_labelset=True)")
    (('top-label', 'ece-mass-100-l1'), ('', 'error'))
    """
    base, _, inside = name.strip().partition("(")
    if base in _WHOLE:
        return "", _WHOLE[base]
    settings = dict(_OPTION.findall(inside))
    scheme = {"adaptive": "mass", "even": "width"}.get(settings.get("binning_scheme", "even"))
    norm = settings.get("norm", "l1")
    if base == "ece" and "num_bins" not in settings:
        return "top-label", "ece"
    if base not in ("gce", "ece") or scheme is None or norm not in ("l1", "l2", "max") or "num_bins" not in settings:
        return None
    if float(settings.get("threshold", "0")) != 0:
        return None
    lens = "top-label"
    if settings.get("max_prob", "True") != "True":
        lens = "class-wise" if settings.get("class_conditional", "False") == "True" else "all-label"
    return lens, f"ece-{scheme}-{int(float(settings['num_bins']))}-{norm}"


def read_public_table(table: Any) -> tuple[Any, list[str], list[str]]:
    """Convert the public table to rows of a store; return them, the names of the covariates that occur, and notes.

    Accuracies become errors; a fitted temperature becomes the metric "best-temperature" of the unscaled model. Unknown metrics
    are left out with a note. Refuse a table without a known metric. See the notes of `import_table` for datasets and selections.
    """
    _require_columns(table, tuple(_NAMES), "the table of measurements")
    parsed = {name: parse_public_metric(str(name)) for name in table["Metric"].unique().to_list()}
    notes = [f"the metric {name!r} is unknown and left out" for name, pair in sorted(parsed.items()) if pair is None]
    pairs = [(name, *pair) for name, pair in parsed.items() if pair is not None]
    if not pairs:
        raise InputError("no metric of the table is known; give a mapping file instead of the preset")
    missing = [pl.lit(None).alias(name) for name in _OPTIONAL if name not in table.columns]
    rows = table.with_columns(missing).select(*_NAMES, *_OPTIONAL).rename({**_NAMES, **_OPTIONAL})
    rows = rows.join(pl.DataFrame(pairs, schema=["raw_metric", "lens", "metric"], orient="row"), on="raw_metric")
    rows = rows.with_columns(
        pl.col("model", "family", "raw_model", "raw_dataset").cast(pl.String),
        pl.col("value", "severity", "temperature").cast(pl.Float64, strict=False).fill_nan(None),
        *(_text_or_null(name) for name in ("corruption", "recalibrator", "labelset")),
        base=pl.col("raw_dataset").cast(pl.String).str.extract(r"^([^(/]+)", 1),
    )
    name = pl.when(pl.col("raw_dataset").n_unique().over("base") == 1).then("base").otherwise("raw_dataset")
    corrupted = pl.concat_str([pl.col("base"), pl.lit(" "), pl.col("corruption")])  # null without a corruption
    is_own = (pl.col("labelset").str.to_lowercase() == "true").fill_null(False)
    is_all = is_own | ~is_own.any().over("raw_dataset", "metric", "lens")
    rows = rows.with_columns(
        *(pl.col("model").str.extract(pattern, 1).alias(name) for name, pattern in _PRETRAINING.items()),
        value=pl.when(metric="error").then(1 - pl.col("value")).otherwise("value"),
        severity=pl.col("severity").fill_null(0.0),
        recalibrator=pl.col("recalibrator").fill_null("none").replace("temperature_scaling", "temperature"),
        dataset=pl.coalesce(corrupted, name),
        selection=pl.when(is_all).then(pl.lit("all")).otherwise(pl.lit("all classes")),
    )
    rows = rows.with_columns(pl.col("pretraining_size", "pretraining_steps").cast(pl.Float64))
    best = rows.filter(pl.col("temperature").is_not_null(), selection="all", recalibrator="none")
    best = best.unique(["model", "dataset", "severity"], keep="first", maintain_order=True)
    best = best.with_columns(value="temperature", metric=pl.lit("best-temperature"), lens=pl.lit(""))
    covariates = [name for name in ("corruption", *_PRETRAINING) if rows[name].null_count() < rows.height]
    return pl.concat([rows, best]), covariates, notes


def _text_or_null(name: str) -> Any:
    """Return an expression for the stripped text of a column, null where it is empty, "nan" or "null"."""
    words = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(~words.str.to_lowercase().is_in(["", "nan", "null"])).then(words).alias(name)


_BINS = {"high": "edge", "count": "count", "confidence": "conf", "outcome": "acc"}


def _stack_bins(column: str, count: int) -> Any:
    """Return an expression for the columns column_0 to column_(count - 1) as one column of lists, with null for NaN."""
    return pl.concat_list(pl.col(f"{column}_{k}").cast(pl.Float64).fill_nan(None) for k in range(count))


def read_public_diagrams(table: Any, rows: Any) -> Any:
    """Convert the public table of reliability diagrams to the columns of a store, for the jobs in `rows`.

    Of diagrams with several numbers of bins those with the fewest bins are taken; empty bins are left out. The lower edge of a
    bin is the upper edge of the bin before; edges that are missing are those of equal width.
    """
    needed = ("RawModelName", "DatasetName", "num_bins", "adaptive")
    _require_columns(table, needed, "the table of reliability diagrams")
    jobs = rows.select("raw_model", "raw_dataset", "job", "recalibrator").unique(["raw_model", "raw_dataset"])
    is_mass = pl.col("adaptive").cast(pl.String).str.to_lowercase() == "true"
    count = int(table["num_bins"].min() or 0)
    table = table.filter(num_bins=count).select(
        pl.col("RawModelName").cast(pl.String).alias("raw_model"),
        pl.col("DatasetName").cast(pl.String).alias("raw_dataset"),
        scheme=pl.when(is_mass).then(pl.lit("mass")).otherwise(pl.lit("width")),
        **{name: _stack_bins(column, count) for name, column in _BINS.items()},
        bin=pl.lit(list(range(count))),
    )
    table = table.join(jobs, on=["raw_model", "raw_dataset"], maintain_order="left").explode("bin", *_BINS)
    keys, k = ["job", "recalibrator", "scheme"], pl.col("bin")
    table = table.unique([*keys, "bin"], keep="first", maintain_order=True)
    bins = table.with_columns(
        low=pl.col("high").cum_max().forward_fill().shift(1, fill_value=0.0).over(keys).fill_null(k / max(count, 1)),
        high=pl.col("high").fill_null((k + 1) / max(count, 1)),
        lens=pl.lit("top-label"),
        selection=pl.lit("all"),
    )
    bins = bins.filter(pl.col("count") > 0, pl.col("confidence").is_not_null(), pl.col("outcome").is_not_null())
    empty = make_table(DIAGRAMS)
    return bins.select(empty.columns).cast(dict(empty.schema))


# ----------------------------------------------------------------------------------------------------
# From renamed columns to those of a store


def _join_models(rows: Any, about: Any) -> tuple[Any, list[str]]:
    """Join a table with one row per model (the first, if several); return rows and the names of further covariates.

    A column of that table replaces one of the same name in `rows`.
    """
    _require_columns(about, ("model",), "the table about models")
    names = [name for name in about.columns if name != "model"]
    models = about.with_columns(pl.col("model").cast(pl.String)).unique("model", keep="first")
    joined = rows.drop(names, strict=False).join(models, on="model", how="left", maintain_order="left")
    return joined, [name for name in names if name not in RESULTS]


def _complete_columns(rows: Any) -> Any:
    """Add the columns of a store's results: parts of metrics' names, defaults, and a job per model and dataset."""
    parsed = []
    for name in rows["metric"].unique().to_list():
        try:
            parsed.append({**vars(parse_metric(name)), "metric": name})
        except InputError:  # an unknown metric keeps its name and its lens, without scheme, bins and norm
            continue
    parts = ("scheme", "bins", "norm")
    metrics = make_table({name: RESULTS[name] for name in ("metric", *parts)}, parsed)
    defaults = {name: _DEFAULTS.get(name) for name in RESULTS if name not in rows.columns and name not in parts}
    rows = rows.drop(*parts, strict=False).with_columns(pl.lit(value).alias(name) for name, value in defaults.items())
    rows = rows.join(metrics, on="metric", how="left", maintain_order="left")
    is_whole = pl.col("metric").is_in(["best-temperature", *SCORES])
    job = pl.concat_str([pl.col(name).cast(pl.String) for name in _JOB], separator="|")
    rows = rows.with_columns(lens=pl.when(is_whole).then(pl.lit("")).otherwise("lens"), job=job)
    return rows.with_columns(pl.col(name).cast(getattr(pl, kind)) for name, kind in RESULTS.items())


def _refuse_duplicates(rows: Any) -> None:
    """Refuse two values of one metric for the same job, recalibrator, lens and selection."""
    duplicated = rows.filter(rows.select("job", "recalibrator", "lens", "selection", "metric").is_duplicated())
    if duplicated.height:
        row = duplicated.row(0, named=True)
        raise InputError(
            f"{row['metric']} of {row['model']} on {row['dataset']}, severity {row['severity']:g}, is there twice in the table; "
            "give models names of their own, or map a column to seed"
        )
