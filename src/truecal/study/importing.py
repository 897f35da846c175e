"""Import the public table of Minderer et al. (2021), or another in its format, into a store."""

import hashlib
import os
import re
import zipfile
from pathlib import Path
from typing import Any

from truecal import options
from truecal.errors import FileError, InputError
from truecal.study.metrics import parse_metric
from truecal.study.store import DIAGRAMS, RESULTS, Store, make_table, pl

PRESETS = ("revisiting-calibration",)


def import_table(
    table: str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    preset: str = "revisiting-calibration",
    diagrams: str | os.PathLike[str] | None = None,
    about: str | os.PathLike[str] | None = None,
    reference: str = "imagenet",
    name: str | None = None,
) -> Store:
    """Make a store of the numbers in a table, for the analyses, figures and page of studies.

    Nothing is evaluated: numbers of rows are unknown and there are no intervals.

    Parameters
    ----------
    table : path
        Table of measured numbers: .csv, .csv.gz, .zip (of one CSV file) or .parquet.
    store : path
        Folder of the new store.
    preset : {"revisiting-calibration"}, default "revisiting-calibration"
        Format of the table: the public one of Minderer et al. (2021).
    diagrams : path, default None
        Table of reliability diagrams that goes with it.
    about : path, default None
        Table with a column `model` and columns such as size or pretraining, one row per model.
    reference : str, default "imagenet"
        Clean dataset that the others are compared with.
    name : str, default None
        Name of the study; None: that of the preset.

    Returns
    -------
    Store
        The new store; `meta()["study"]["notes"]` says what was left out.

    Raises
    ------
    InputError
        If a column is missing, a number is there twice, or no metric is known.

    Notes
    -----
    A row is a model, dataset, metric, label set and rescaling. A model is a ModelName; RawModelName includes the rescaling and
    joins the two tables. A dataset is named without its options ("imagenet" for imagenet(split='validation[20%:]')) where no
    other has the same name, and the severities of a corruption are one dataset. Where a dataset has a label set of its own, the
    selection "all" is that of its classes. `edge_k` is the upper edge of bin k.

    References
    ----------
    Minderer et al. (2021), Revisiting the Calibration of Modern Neural Networks, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = "ModelFamily,ModelName,DatasetName,Metric,MetricValue\\nmlp,mlp-8,imagenet,accuracy,0.75\\n"
    >>> _ = (folder / "table.csv").write_text(table)
    >>> import_table(folder / "table.csv", folder / "store").frame().select("model", "metric", "value").rows()
    [('mlp-8', 'error', 0.25)]
    """
    options.choice(preset, PRESETS, "preset")
    rows, covariates, notes = read_public_table(read_table(table, as_text=True))
    if about is not None:
        rows, model_columns = _join_models(rows, read_table(about))
        covariates = [*covariates, *model_columns]
    rows = _complete_columns(rows)
    _refuse_duplicates(rows)
    datasets = rows["dataset"].unique().to_list()
    if reference not in datasets:
        notes.append(
            f"the clean dataset {reference!r} is not in the table, so that shifted data have nothing to compare with"
        )
    bins = make_table(DIAGRAMS) if diagrams is None else read_public_diagrams(read_table(diagrams, as_text=True), rows)
    part = hashlib.blake2b(rows.select(sorted(RESULTS)).hash_rows().to_numpy().tobytes(), digest_size=12).hexdigest()
    jobs = rows.unique("job", keep="first", maintain_order=True).select("job", *covariates).to_dicts()
    target = Store(store)
    target.begin(
        {
            "name": name or preset,
            "study": {"imported": True, "notes": notes},
            "jobs": [part],
            "covariates": {job.pop("job"): job for job in jobs} if covariates else {},
            "clean": {name: reference for name in datasets if name != reference and reference in datasets},
        }
    )
    target.add(part, rows.select(list(RESULTS)), bins)
    return target


def read_table(path: str | os.PathLike[str], *, as_text: bool = False) -> Any:
    """Read a table of CSV, zipped CSV or Parquet as a polars frame; a zip archive must hold one CSV file.

    With `as_text` the columns of CSV are text, which is several times faster than to find their types.
    """
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
        return pl.read_csv(content, infer_schema=not as_text, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, zipfile.BadZipFile) as error:
        raise FileError(f"cannot read {file}: {str(error).splitlines()[0]}") from error


def _require_columns(table: Any, names: tuple[str, ...], what: str) -> None:
    """Refuse a table that lacks one of the columns `names`; `what` is the table's name in the message.

    >>> _require_columns(pl.DataFrame({"a": [1]}), ("model",), "the table")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: the table has no column 'model'; it has a
    """
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(f"{what} has no column {missing[0]!r}; it has {', '.join(table.columns[:20])}")


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
_METRIC = ["raw_metric", "lens", "metric", "scheme", "bins", "norm"]


def parse_public_metric(name: str) -> tuple[str, str, str | None, int | None, float | None] | None:
    """Parse a metric of the public table as (lens, metric, scheme, bins, norm), the lens "" for scores.

    None where it is unknown or has a threshold.

    >>> name = "gce(binning_scheme='adaptive',max_prob=True,class_conditional=False,norm='l1',num_bins=100,threshold=0.0)"
    >>> parse_public_metric(name), parse_public_metric("accuracy(use_dataset_labelset=True)")
    (('top-label', 'ece-mass-100-l1', 'mass', 100, 1.0), ('', 'error', None, None, None))
    """
    base, _, inside = name.strip().partition("(")
    if base in _WHOLE:
        return "", _WHOLE[base], None, None, None
    settings = dict(_OPTION.findall(inside))
    scheme = {"adaptive": "mass", "even": "width"}.get(settings.get("binning_scheme", "even"))
    norm = settings.get("norm", "l1")
    if base == "ece" and "num_bins" not in settings:
        return "top-label", "ece", None, None, None
    if base not in ("gce", "ece") or scheme is None or norm not in ("l1", "l2", "max") or "num_bins" not in settings:
        return None
    if float(settings.get("threshold", "0")) != 0:
        return None
    lens = "top-label"
    if settings.get("max_prob", "True") != "True":
        lens = "class-wise" if settings.get("class_conditional", "False") == "True" else "all-label"
    metric = parse_metric(f"ece-{scheme}-{int(float(settings['num_bins']))}-{norm}")
    return lens, metric.name, metric.scheme, metric.bins, metric.norm


def read_public_table(table: Any) -> tuple[Any, list[str], list[str]]:
    """Convert the public table to rows of a store; return them, the names of the covariates that occur, and notes.

    Accuracies become errors; a fitted temperature becomes the metric "best-temperature" of the unscaled model. Unknown metrics
    are left out with a note. Refuse a table without a known metric. See the notes of `import_table` for datasets and selections.
    """
    _require_columns(table, tuple(_NAMES), "the table of measurements")
    parsed = {name: parse_public_metric(str(name)) for name in table["Metric"].unique().to_list()}
    notes = [f"the metric {name!r} is unknown and left out" for name, pair in sorted(parsed.items()) if pair is None]
    known = [(name, *pair) for name, pair in parsed.items() if pair is not None]
    if not known:
        raise InputError("no metric of the table is known")
    missing = [pl.lit(None).alias(name) for name in _OPTIONAL if name not in table.columns]
    rows = table.with_columns(missing).select(*_NAMES, *_OPTIONAL).rename({**_NAMES, **_OPTIONAL})
    rows = rows.join(pl.DataFrame(known, schema=_METRIC, orient="row"), on="raw_metric")
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
        value=pl.when(metric="error").then(1 - pl.col("value")).otherwise("value"),
        severity=pl.col("severity").fill_null(0.0),
        recalibrator=pl.col("recalibrator").fill_null("none").replace("temperature_scaling", "temperature"),
        dataset=pl.coalesce(corrupted, name),
        selection=pl.when(is_all).then(pl.lit("all")).otherwise(pl.lit("all classes")),
    )
    sweep = (
        rows.select("model")
        .unique()
        .with_columns(pl.col("model").str.extract(pattern, 1).alias(name) for name, pattern in _PRETRAINING.items())
    )
    sweep = sweep.with_columns(pl.col("pretraining_size", "pretraining_steps").cast(pl.Float64))
    rows = rows.join(sweep, on="model", how="left", maintain_order="left")
    best = rows.filter(pl.col("temperature").is_not_null(), selection="all", recalibrator="none")
    best = best.unique(["model", "dataset", "severity"], keep="first", maintain_order=True)
    best = best.with_columns(lens=pl.lit(""), metric=pl.lit("best-temperature"), value="temperature")
    best = best.with_columns(scheme=None, bins=None, norm=None)
    covariates = [name for name in ("corruption", *_PRETRAINING) if rows[name].null_count() < rows.height]
    return pl.concat([rows, best]), covariates, notes


def _text_or_null(name: str) -> Any:
    """Return an expression for the stripped text of a column, null where it is empty, "nan" or "null".

    >>> pl.DataFrame({"a": [" x ", "nan", ""]}).select(_text_or_null("a"))["a"].to_list()
    ['x', None, None]
    """
    words = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(~words.str.to_lowercase().is_in(["", "nan", "null"])).then(words).alias(name)


_BINS = {"high": "edge", "count": "count", "confidence": "conf", "outcome": "acc"}


def _stack_bins(column: str, count: int) -> Any:
    """Return an expression for the columns column_0 to column_(count - 1) as one column of lists, with null for NaN.

    >>> table = pl.DataFrame({"conf_0": [0.2], "conf_1": [float("nan")]})
    >>> table.select(_stack_bins("conf", 2)).row(0)
    ([0.2, None],)
    """
    return pl.concat_list(pl.col(f"{column}_{k}").cast(pl.Float64).fill_nan(None) for k in range(count))


def read_public_diagrams(table: Any, rows: Any) -> Any:
    """Convert the public table of reliability diagrams to a table of the store's columns DIAGRAMS, a row per bin with data.

    `table` has RawModelName, DatasetName, num_bins, adaptive and, for bin k from 0, edge_k (its upper edge), count_k, conf_k and
    acc_k; diagrams with more bins than the fewest are left out. `rows` is the table of results (raw_model, raw_dataset, job,
    recalibrator). The lower edge is the upper edge of the bin before, 0 for the first; missing edges are those of equal width.
    """
    needed = ("RawModelName", "DatasetName", "num_bins", "adaptive")
    _require_columns(table, needed, "the table of reliability diagrams")
    jobs = rows.select("raw_model", "raw_dataset", "job", "recalibrator").unique(["raw_model", "raw_dataset"])
    is_mass = pl.col("adaptive").cast(pl.String).str.to_lowercase() == "true"
    table = table.with_columns(pl.col("num_bins").cast(pl.Int64))
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
    """Join the columns of `about`, which has a row per model (the first counts), to `rows` by the column model.

    A column of `about` replaces one of the same name in `rows`. Returns the rows, and the names of the columns of `about` that
    are not columns of a store's results: covariates. Refuse a table `about` without a column model.
    """
    _require_columns(about, ("model",), "the table about models")
    names = [name for name in about.columns if name != "model"]
    models = about.with_columns(pl.col("model").cast(pl.String)).unique("model", keep="first")
    joined = rows.drop(names, strict=False).join(models, on="model", how="left", maintain_order="left")
    return joined, [name for name in names if name not in RESULTS]


def _complete_columns(rows: Any) -> Any:
    """Add the columns of RESULTS that are not there yet (seed 0, warnings "", others null), and cast all to their types.

    The column job is "model|dataset|severity".
    """
    defaults = {**dict.fromkeys(RESULTS), "seed": 0, "warnings": ""}
    job = pl.concat_str([pl.col("model", "dataset"), pl.col("severity").cast(pl.String)], separator="|")
    rows = rows.with_columns(pl.lit(value).alias(name) for name, value in defaults.items() if name not in rows.columns)
    return rows.with_columns(job=job).with_columns(
        pl.col(name).cast(getattr(pl, kind)) for name, kind in RESULTS.items()
    )


def _refuse_duplicates(rows: Any) -> None:
    """Raise InputError for rows of which two have the same job, recalibrator, lens, selection and metric; name the first."""
    duplicated = rows.filter(rows.select("job", "recalibrator", "lens", "selection", "metric").is_duplicated())
    if duplicated.height:
        row = duplicated.row(0, named=True)
        raise InputError(
            f"{row['metric']} of {row['model']} on {row['dataset']}, severity {row['severity']:g}, is there twice in the table; "
            "give models names of their own"
        )
