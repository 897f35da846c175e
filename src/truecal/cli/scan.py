"""Predictions that are too many to hold: a pattern, a folder, several files or any file with --engine, scanned into sketches."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

import truecal as tc
from truecal import names
from truecal.cli.estimators import lens_of, lens_option, selected_columns, selection_of
from truecal.cli.output import Result, answers, note, out_option, working, writes
from truecal.cli.source import Source, by_option, class_names, scan_options
from truecal.errors import InputError
from truecal.writing import check_folder, check_output, write_folder

if TYPE_CHECKING:
    import narwhals as nw

    from truecal.estimators.base import Estimator


# ----------------------------------------------------------------------------------------------------
# Predictions that are too many to hold: a pattern, a folder, several files or any file with --engine, scanned into sketches

SKETCH = "sketch.npz"  # the file of a group
# Names of the parts of one dataset: part-0, 2026-05-01. Other names may be those of models.
_SHARD = re.compile(r"((part|shard|chunk|batch|day)[\W_]*)?[\d\W_]+", re.IGNORECASE)


def is_scan(source: Source) -> bool:
    """Whether the input is to be scanned. A plain file is read into memory unless an engine is named."""
    file = source.file
    pattern = has_magic(file) and not Path(file).exists()
    return bool(source.engine or source.also or pattern or "://" in file or Path(file).is_dir())


def is_sketch(file: str) -> bool:
    """Whether an npz file holds a sketch, and not arrays of predictions."""
    from truecal.predictions import files

    return str(files.read_arrays(Path(file)).get("format")) == "truecal.sketch"


def is_sketched(source: Source) -> bool:
    """Whether the input is a sketch, or would be scanned into one."""
    return is_scan(source) or (source.file.endswith(".npz") and Path(source.file).is_file() and is_sketch(source.file))


def sketch_of(source: Source, lens: str) -> "tc.Sketch":
    """The sketch in a file, or that of one pass over files of predictions."""
    if source.file.endswith(".npz") and is_sketch(source.file):
        return tc.Sketch.load(source.file)
    scan = scanned(source if is_scan(source) else replace(source, engine="polars"), lens)
    if scan.shares is not None:
        raise InputError("a class-wise scan has one sketch per class; judge one class with --lens class=NAME")
    return scan.sketch


def scanned(source: Source, lens: str) -> "tc.engines.Scan":
    """One pass over the files; says on stderr what was read."""
    from truecal.engines import sources
    from truecal.predictions import frames

    _refuse(source)
    files = sources.files_of([source.file, *source.also])
    schema = sources.opened(files[:1], source.engine)[0].collect_schema()
    columns = list(schema)
    other = [] if source.weights is None else [source.weights]
    choice = frames.choose(
        columns, label=source.label, probs=source.probs, logits=source.logits, other=other, by=source.by
    )
    wanted = choice.outputs
    given_names = class_names(source.classes)
    outputs, stars = frames.matching(columns, wanted, "predictions")
    outputs, stars = frames.in_class_order(outputs, stars, given_names)
    alone = len(outputs) == 1 and not schema[outputs[0]].is_nested()
    kind = "logits" if choice.logits is not None else "score" if alone else "probs"
    frames.matching(columns, [choice.label], "label")
    numeric = schema[choice.label].is_numeric()
    frames.class_names(outputs, wanted, stars, given_names, numeric=numeric)
    mapping = frames.label_columns(outputs) if numeric and stars is not None and len(outputs) > 1 else ""
    wanted = outputs if mapping else wanted
    classes, by_word = _classes(source, lens, numeric)
    judge = lens_of(lens, by_word)
    kinds = {name: _kind(schema[name]) for name in selected_columns(source.select) if name in schema}
    with working(f"scanning {source.name}") as say:
        shown = sys.stderr.isatty() and len(files) > 1
        result = tc.scan(
            files,
            label=choice.label,
            lens=judge,
            weights=source.weights,
            by=source.by or None,
            select=selection_of(source.select, by_word, kinds),
            classes=classes,
            engine=source.engine,
            drop_null=source.drop_null,
            progress=(lambda done, of: say(f"scanning {source.name}: {done} of {of} files")) if shown else None,
            score=str(wanted) if kind == "score" else None,
            probs=wanted if kind == "probs" else None,
            logits=wanted if kind == "logits" else None,
        )
    if not source.quiet:
        many = "1 file" if len(files) == 1 else f"{len(files)} files"
        gone = f", {result.dropped} rows with missing values left out" if source.drop_null else ""
        note(f"scanned {result.rows} rows in {many} with {result.engine}: {choice.describe(columns)}{mapping}{gone}")
    one = names.class_of(lens)
    result = replace(result, notes=_pooled(source, files, "model" in columns))
    return result if one is None else replace(result, judged=f"class {one}")


def _pooled(source: Source, files: Sequence[str], named: bool) -> tuple[str, ...]:
    """A note where the rows of several models are, or may be, judged as if they were of one."""
    from truecal.engines import sources

    if "model" in source.by:
        return ()
    if named:
        parts = [[file] for file in files] if sources.is_text(files) else [files]
        columns = (sources.opened(part, source.engine)[0].select("model").unique().collect() for part in parts)
        models = len({model for column in columns for model in column["model"].to_list()})
        one_each = "judged together; --by model gives one answer each"
        return () if models < 2 else (f"the rows of {models} models are {one_each}",)
    stems = {Path(file).name.partition(".")[0] for file in (source.file, *source.also)}
    if not source.also or all(_SHARD.fullmatch(stem) for stem in stems):
        return ()
    many = f"the rows of {len(source.also) + 1} files are judged together, as those of one model"
    return (f"{many}; truecal compare judges every file by itself",)


def marginal(scan: "tc.engines.Scan", column: str) -> "tc.engines.Scan":
    """Add up the sketches of a scan by several columns, so that it is grouped by one of them."""
    place = scan.by.index(column)
    parts: dict[tuple[object, ...], list[tc.Sketch]] = {}
    for group, sketches in scan.sketches.items():
        sums = parts.setdefault((group[place],), [tc.Sketch() for _ in sketches])
        parts[(group[place],)] = [total + sketch for total, sketch in zip(sums, sketches, strict=True)]
    return replace(scan, by=(column,), sketches={group: tuple(sums) for group, sums in parts.items()})


def scan_estimates(
    scan: "tc.engines.Scan", estimators: "Sequence[Estimator]", level: float, seed: int
) -> "list[tuple[str, tc.Estimate]]":
    """Group (empty where there are none) and estimate, group by group."""
    with working("measuring"):
        if not scan.by:
            return [("", scan.measure(estimator=e, level=level, rng=seed)) for e in estimators]
        each = [scan.groups(estimator=e, level=level, rng=seed) for e in estimators]
    return [(", ".join(map(str, group)), by_group[group]) for group in each[0] for by_group in each]


def _kind(dtype: "nw.dtypes.DType") -> str:
    """The numpy kind of a column's type."""
    return "b" if dtype.is_boolean() else "f" if dtype.is_numeric() else "U"


def _refuse(source: Source) -> None:
    """What needs rows and cannot be had from a scan."""
    if source.file == "-":
        raise InputError("standard input cannot be scanned; leave out --engine, or write it to a file first")
    if source.percent or source.words is not None:
        raise InputError("--percent and --words are read in memory; measure one file without --engine")
    if source.unnormalised or source.pos_label is not None:
        raise InputError("--unnormalised and --pos-label are read in memory; measure one file without --engine")
    if source.clusters is not None:
        raise InputError(
            "--clusters needs the rows, and a scan keeps only sums; measure one file without --engine, or join the files first"
        )
    if any(Path(file).suffix == ".npz" for file in (source.file, *source.also)):
        raise InputError("npz files hold arrays, which no engine scans; leave out --engine and measure one at a time")


def _classes(source: Source, lens: str, numeric: bool) -> tuple[Sequence[object] | None, dict[str, object]]:
    """The classes to tell the scan, and how --lens class=NAME finds one.

    Numeric labels with names that are not numbers are positions in the list of names, as for a file in memory.
    """
    given = class_names(source.classes)
    if given is None:
        word = names.class_of(lens)
        return None, {word: int(word)} if word is not None and word.isdigit() else {}
    if not numeric:
        return given, dict(zip(given, given, strict=True))
    if all(name.lstrip("-").isdigit() for name in given):
        numbers = [int(name) for name in given]
        return numbers, dict(zip(given, numbers, strict=True))
    return None, {name: i for i, name in enumerate(given)}


def sketch_files(name: str) -> list[str]:
    """The saved sketches behind a file or folder."""
    path = Path(name)
    if path.suffix == ".npz" and not path.is_dir():
        return [name]
    files = path.rglob("*.npz") if path.is_dir() else ()
    return sorted(str(file) for file in files if "/.truecal-" not in file.as_posix())  # not what is being written


# ----------------------------------------------------------------------------------------------------
# `truecal sketch`: days that are only kept as sketches: saved, merged, shown


@click.group()
def sketch() -> None:
    """Sums of scores and outcomes in fixed cells: a day of any size in one small file, which adds to others.

    \b
    truecal sketch save logs/2026-05-01/*.parquet --out 2026-05-01.npz
    truecal sketch merge 2026-05-*.npz --out 2026-05.npz
    truecal sketch show 2026-05.npz
    """


@sketch.command()
@lens_option
@by_option
@out_option("The sketch to write; with --by a folder, one file per combination of values.", required=True, folder=True)
@writes
@scan_options
def save(source: Source, lens: str, out: str) -> Result:
    """Write the sketch of the predictions in FILE, read in one pass and in bounded memory.

    With --by, OUT becomes a folder with one sketch per group, OUT/model=a/sketch.npz, which `truecal watch update` reads.
    """
    if source.by:
        check_folder(out, SKETCH)
    else:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        check_output(out)
    scan = scanned(source, lens)
    if scan.shares is not None:
        raise InputError("a class-wise scan has one sketch per class; save one class at a time with --lens class=NAME")
    if scan.by:
        write_folder(out, lambda folder: _write_groups(scan, folder), SKETCH)
    else:
        scan.sketch.save(out)
    where = f"{len(scan.sketches)} groups below {out}" if scan.by else out
    content = {"source": source.name, "path": out, "rows": scan.rows, "dropped": scan.dropped, "judged": scan.judged}
    text = f"wrote {where}: {scan.rows} rows, {scan.judged}"
    return Result("sketch-written", {**content, "groups": len(scan.sketches)}, text)


def _write_groups(scan: "tc.engines.Scan", folder: Path) -> None:
    """Write the sketch of every group to column=value/.../sketch.npz; names and values are quoted, so that they stay inside."""
    for group, (sums,) in scan.sketches.items():
        values = zip(scan.by, group, strict=True)
        path = folder.joinpath(*(f"{quote(name, safe='')}={quote(str(value), safe='')}" for name, value in values))
        path.mkdir(parents=True, exist_ok=True)
        sums.save(path / SKETCH)


@sketch.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@out_option("The sketch to write.", required=True)
@writes
def merge(files: tuple[str, ...], out: str) -> Result:
    """Add the sketches in FILE... up into one; they must judge the same scores. A folder stands for all sketches below it."""
    total, many = _added(files)
    total.save(out)
    content = {"path": out, "rows": total.rows, "cells": total.cells, "sketches": many}
    return Result(
        "sketch-written", content, f"wrote {out}: {total.rows} rows of {many} sketches in {total.cells} cells"
    )


@sketch.command()
@click.argument("file", metavar="FILE")
@answers(formats=("text", "json"))
def show(file: str) -> Result:
    """Say what a sketch, or all sketches below a folder, hold: rows, cells, and the calibration error with its interval."""
    total, _ = _added([file])
    estimate = tc.measure(total)
    assert estimate.interval is not None
    numbers = {
        "value": float(estimate.value),
        "low": float(estimate.interval.low),
        "high": float(estimate.interval.high),
    }
    facts = {"level": estimate.interval.level, "sketch_error": estimate.sketch_error}
    content = {"source": Path(file).name, "rows": total.rows, "cells": total.cells, **numbers, **facts}
    return Result("sketch", content, f"{total.rows} rows in {total.cells} cells\n{estimate}")


def _added(names: Sequence[str]) -> "tuple[tc.Sketch, int]":
    """The sum of the sketches behind files and folders, and how many they are."""
    from truecal.engines.sources import refuse_twice

    files = [file for name in names for file in sketch_files(name) or [name]]
    refuse_twice(files)
    total = tc.Sketch()
    for file in files:
        total.merge(tc.Sketch.load(file))
    return total, len(files)
