"""Import tables of numbers that were measured elsewhere into a store."""

import hashlib
import os
import re
import zipfile
from pathlib import Path
from typing import Any

from truecal import options
from truecal.errors import FileError, InputError
from truecal.study.metrics import parse_metric
from truecal.study.spec import Entry, Problems, read_document
from truecal.study.store import RESULTS, Store, polars

# ----------------------------------------------------------------------------------------------------
# Tables of measured numbers, read from CSV, zipped CSV or Parquet


def read_table(path: str | os.PathLike[str]) -> Any:
    """The table of a file; a zip archive must hold one CSV file."""
    pl = polars()
    file = Path(path)
    kind = "".join(file.suffixes[-2:]).lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    try:
        if kind in (".parquet", ".pq"):
            return pl.read_parquet(file, glob=False)
        if kind in (".csv", ".csv.gz"):
            return pl.read_csv(file, infer_schema_length=None)
        if kind == ".zip":
            with zipfile.ZipFile(file) as held:
                names = [name for name in held.namelist() if name.lower().endswith(".csv") and "__MACOSX" not in name]
                if len(names) != 1:
                    raise InputError(f"{file} must hold one CSV file; it holds {', '.join(names) or 'none'}")
                return pl.read_csv(held.read(names[0]), infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, zipfile.BadZipFile) as error:
        raise FileError(f"cannot read {file}: {str(error).splitlines()[0]}") from error
    raise InputError(f"{file.name} is not of a known kind; give .csv, .csv.gz, .zip (of one CSV file) or .parquet")


def need_columns(table: Any, names: tuple[str, ...], what: str) -> None:
    """Refuse a table that lacks columns, by name."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(f"{what} has no column {missing[0]!r}; it has {', '.join(table.columns[:20])}")


# ----------------------------------------------------------------------------------------------------
# Any table of measured numbers: a mapping file says which column is what

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


# ----------------------------------------------------------------------------------------------------
# The public table of Minderer et al. (2021): a row per model, dataset, metric, label set and rescaling

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


# ----------------------------------------------------------------------------------------------------
# From a table of measured numbers to a store: nothing is evaluated, numbers of rows may be unknown, intervals may be absent

PRESETS = ("revisiting-calibration",)
_CLEAN = "imagenet"  # of the preset
_WHO = ["model", "dataset", "severity", "seed"]


def import_table(
    table: str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    preset: str | None = None,
    mapping: str | os.PathLike[str] | None = None,
    diagrams: str | os.PathLike[str] | None = None,
    about: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Store:
    """Make a store of the numbers in a table (.csv, .csv.gz, .zip, .parquet), for the analyses, figures and page of studies.

    Parameters
    ----------
    preset : "revisiting-calibration", the public table of Minderer et al. (2021).
    mapping : for any other table, a YAML file that says which column is what.
    diagrams : table of reliability diagrams that goes with the preset.
    about : table with a column `model` and columns such as size or pretraining, one row per model.
    name : of the study; default that of the preset, or of the table's file.

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
    held = read_table(table)
    covariates: list[str] = []
    extra: Any = None
    if preset is not None:
        options.choice(preset, PRESETS, "preset")
        rows, notes = long_table(held)
        extra = eval_temperatures(rows)
        covariates = ["corruption"] if rows["corruption"].is_not_null().any() else []
    else:
        assert mapping is not None
        rows, covariates, notes = mapped(held, mapping)
    if about is not None:
        rows, described = _described(rows, read_table(about))
        covariates += described
        extra = None if extra is None else _described(extra, read_table(about))[0]
    rows = _with_jobs(rows)
    if extra is not None and extra.height:
        rows = _joined(rows, _with_jobs(extra))
    _refuse_twice(rows)
    bins = [] if diagrams is None else diagram_rows(read_table(diagrams), _raw_jobs(rows))
    target = Store(store)
    _write(target, rows, bins, covariates, notes, name or preset or os.path.basename(table))
    return target


def _with_jobs(rows: Any) -> Any:
    """The columns of a store's results, with the parts of metrics' names and a job for every model and dataset."""
    pl = polars()
    kinds = {name: getattr(pl, kind) for name, kind in RESULTS.items()}
    made = {metric: _parts(metric) for metric in rows["metric"].unique().to_list()}
    about = pl.DataFrame(
        [(metric, *parts) for metric, parts in made.items()],
        schema={"metric": pl.String, "scheme": pl.String, "bins": pl.Int64, "norm": pl.Float64},
        orient="row",
    )
    rows = rows.drop([name for name in ("scheme", "bins", "norm") if name in rows.columns])
    for name, kind in kinds.items():
        if name not in rows.columns and name not in about.columns:
            empty = {"seed": 0, "warnings": ""}.get(name)
            rows = rows.with_columns(pl.lit(empty).cast(kind).alias(name))
    rows = rows.join(about, on="metric", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items())
    who = pl.concat_str([pl.col(name).cast(pl.String) for name in _WHO], separator="|")
    return rows.with_columns(who.alias("job"))


def _joined(rows: Any, extra: Any) -> Any:
    pl = polars()
    return pl.concat([rows, extra.select(rows.columns)], how="vertical_relaxed")


def _parts(metric: str) -> tuple[str | None, int | None, float | None]:
    try:
        parsed = parse_metric(metric)
    except InputError:
        return None, None, None
    return parsed.scheme, parsed.bins, parsed.norm


def _described(rows: Any, about: Any) -> tuple[Any, list[str]]:
    """Rows with what another table says of their models."""
    need_columns(about, ("model",), "the table about models")
    names = [name for name in about.columns if name != "model"]
    rows = rows.drop([name for name in names if name in rows.columns])
    key = about.with_columns(polars().col("model").cast(polars().String)).unique("model", keep="first")
    joined = rows.join(key, on="model", how="left", maintain_order="left")
    return joined, [name for name in names if name not in RESULTS]


def _refuse_twice(rows: Any) -> None:
    keys = [*_WHO, "recalibrator", "lens", "selection", "metric"]
    twice = rows.filter(rows.select(keys).is_duplicated())
    if twice.height:
        row = twice.row(0, named=True)
        raise InputError(
            f"{row['metric']} of {row['model']} on {row['dataset']}, severity {row['severity']:g}, is there twice in the table; "
            "give models names of their own, or map a column to seed"
        )


def _raw_jobs(rows: Any) -> dict[tuple[str, str], str]:
    names = rows.select("raw_model", "raw_dataset", "job").unique()
    return {(str(model), str(dataset)): job for model, dataset, job in names.iter_rows()}


def _write(
    store: Store, rows: Any, bins: list[dict[str, Any]], covariates: list[str], notes: list[str], name: str
) -> None:
    """One part with everything."""
    part = hashlib.blake2b(rows.select(sorted(RESULTS)).write_csv().encode(), digest_size=12).hexdigest()
    known = rows.select("job", *covariates).unique("job", keep="first", maintain_order=True)
    of = {job: list(values) for job, *values in known.iter_rows()} if covariates else {}
    names = rows["dataset"].unique().to_list()
    clean = {dataset: _CLEAN for dataset in names if dataset != _CLEAN} if _CLEAN in names else {}
    store.begin(
        {
            "name": str(name),
            "study": {"imported": True, "notes": notes},
            "jobs": [part],
            "covariates": {"names": covariates, "of": of},
            "clean": clean,
        }
    )
    store.add_table(part, rows.select(list(RESULTS)), bins)
