"""From a table of measured numbers to a store: nothing is evaluated, numbers of rows may be unknown, intervals may be absent."""

import hashlib
import os
from typing import Any

from truecal import options
from truecal.errors import InputError
from truecal.study.importing.mapping import mapped
from truecal.study.importing.revisiting import diagram_rows, eval_temperatures, long_table
from truecal.study.importing.table import need_columns, read_table
from truecal.study.metrics.names import parse_metric
from truecal.study.store import RESULTS, Store, polars

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
